//! `kvmscope apply` and `undo` on threads of a process of the test's own.

mod ablation;
mod killed;
mod libvirt;
mod trial;

use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use testing::{Running, Workspace, wait_for};

fn started(program: &str, arguments: &[&str]) -> Running {
    Running(Command::new(program).args(arguments).spawn().unwrap())
}

/// The CPU list in force, as the kernel says it.
fn cpus_of(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    line.trim().to_owned()
}

fn kvmscope(journal: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    command.args(arguments).env("KVMSCOPE_JOURNAL", journal).output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The change that moves a thread, which is named as a snapshot names it.
fn moved(pid: u32, from: &str, cpus: &str) -> Value {
    let about = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let stat = about("stat");
    let (_, behind_name) = stat.rsplit_once(')').unwrap();
    let started: u64 = behind_name.split_whitespace().nth(19).unwrap().parse().unwrap(); // field 22, proc_pid_stat(5)
    json!({"type": "TaskAffinity", "tid": pid, "start_ticks": started, "comm": about("comm").trim_end(), "cpus": cpus,
        "from": from})
}

/// A report with one finding that moves `pid` from `from` to `cpus`.
fn report(directory: &Path, pid: u32, from: &str, cpus: &str) -> String {
    let path = directory.join("report.json");
    std::fs::write(&path, report_of("PLC-TEST@sleep", &[moved(pid, from, cpus)]).to_string()).unwrap();
    path.display().to_string()
}

/// A report of this host as it runs now, with one finding.
fn report_of(id: &str, changes: &[Value]) -> Value {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let machine = json!({"id": "L0", "level": 0, "parent": null, "boot_id": boot.trim()});
    let finding = json!({"id": id, "title": "a test", "level": "L0", "changes": changes, "fix": [], "undo": []});
    json!({"recording": {"machines": [machine], "emulated": null}, "sections": [{"findings": [finding]}]})
}

/// The first CPU that this machine lets us use, and all of them; `None` where there is one only, or no root.
fn places(test: &str) -> Option<(String, String)> {
    let own = cpus_of(std::process::id());
    let first: String = own.chars().take_while(char::is_ascii_digit).collect();
    if !rustix::process::geteuid().is_root() || first == own {
        println!("skipped: {test}: it needs root and two CPUs");
        return None;
    }
    Some((first, own))
}

#[test]
fn a_finding_is_applied_and_undone_exactly() {
    let Some((first, all)) = places("apply") else { return };
    let directory = Workspace::alone();
    let journal = directory.path().join("journal");
    let sleeper = started("sleep", &["60"]);
    let report = report(directory.path(), sleeper.0.id(), &all, &first);
    let apply = |more: &[&str]| kvmscope(&journal, &[&["apply", "PLC-TEST@sleep", "--from", &report], more].concat());

    let planned = apply(&["--dry-run"]);
    assert!(
        planned.status.success() && said(&planned).contains(&format!("CPUs {all} -> {first}")),
        "{}",
        said(&planned)
    );
    assert_eq!(apply(&[]).status.code(), Some(2), "without a terminal it asks for --yes");
    assert_eq!(cpus_of(sleeper.0.id()), all);

    let done = apply(&["--yes"]);
    assert!(done.status.success(), "{}", said(&done));
    assert_eq!(cpus_of(sleeper.0.id()), first);
    let again = apply(&["--yes"]);
    assert!(again.status.success() && said(&again).contains("already"), "{}", said(&again));

    let undone = kvmscope(&journal, &["undo"]);
    assert!(undone.status.success() && said(&undone).contains("undone: thread"), "{}", said(&undone));
    assert_eq!(cpus_of(sleeper.0.id()), all);
    assert!(said(&kvmscope(&journal, &["undo", "--list"])).contains("nothing to undo"));
}

#[test]
fn what_was_changed_twice_comes_back_to_what_was_before_both() {
    let Some((first, all)) = places("two changes of one thread") else { return };
    let Some(second) = all.split([',', '-']).nth(1).filter(|second| *second != first) else { return };
    let directory = Workspace::alone();
    let journal = directory.path().join("journal");
    let sleeper = started("sleep", &["60"]);
    for (from, to) in [(all.as_str(), first.as_str()), (&first, second)] {
        let report = report(directory.path(), sleeper.0.id(), from, to);
        let done = kvmscope(&journal, &["apply", "PLC-TEST@sleep", "--from", &report, "--yes"]);
        assert!(done.status.success() && cpus_of(sleeper.0.id()) == to, "{}", said(&done));
    }
    // The older one alone would find what the newer one set.
    let listed = said(&kvmscope(&journal, &["undo", "--list"]));
    let oldest = listed.lines().rfind(|line| line.starts_with("apply-")).unwrap().split_whitespace().next().unwrap();
    let refused = kvmscope(&journal, &["undo", oldest]);
    assert!(
        refused.status.code() == Some(1) && said(&refused).contains(" first, or undo all together"),
        "{}",
        said(&refused)
    );
    let undone = kvmscope(&journal, &["undo"]);
    assert!(undone.status.success() && !said(&undone).contains("left alone"), "{}", said(&undone));
    assert_eq!(cpus_of(sleeper.0.id()), all);
}

#[test]
fn a_finding_of_another_machine_boot_or_level_is_printed_and_not_made() {
    let Some((first, all)) = places("apply of another machine's finding") else { return };
    let directory = Workspace::alone();
    let sleeper = started("sleep", &["60"]);
    let place = report(directory.path(), sleeper.0.id(), &all, &first);
    let ours: Value = serde_json::from_slice(&std::fs::read(&place).unwrap()).unwrap();
    let with = |pointer: &str, value: Value| {
        let mut other = ours.clone();
        *other.pointer_mut(pointer).unwrap() = value;
        other
    };
    let bare = |change: &str| {
        let mut other = with("/recording/machines/0/boot_id", Value::Null);
        other.pointer_mut("/sections/0/findings/0/changes/0").unwrap()[change].take();
        other
    };
    for (report, words) in [
        (
            with("/recording/machines/0/boot_id", json!("0f0f0f0f-0000-4000-8000-000000000000")),
            "before this host rebooted",
        ),
        (with("/sections/0/findings/0/level", json!("L1")), "it is about L1, and this host is L0"),
        (with("/recording/machines/0/level", json!(1)), "this host is L1 of the recording"),
        (with("/recording/emulated", json!("tcg")), "emulated by QEMU TCG"),
        (bare("start_ticks"), "so this thread id may now be another thread"),
        (bare("comm"), "does not identify the machine"),
    ] {
        std::fs::write(&place, report.to_string()).unwrap();
        for how in ["--yes", "--dry-run"] {
            let output = kvmscope(directory.path(), &["apply", "PLC-TEST@sleep", "--from", &place, how]);
            let told = said(&output);
            assert!(output.status.code() == Some(1) && told.contains(words), "{told}");
            assert!(told.contains(&format!("taskset -cp {first} {}", sleeper.0.id())), "{told}");
        }
        assert_eq!(cpus_of(sleeper.0.id()), all);
    }
    // Nobody knows the machine, and the thread's start time and name are known: the thread tells.
    std::fs::write(&place, with("/recording", Value::Null).to_string()).unwrap();
    let known = kvmscope(&directory.path().join("journal"), &["apply", "PLC-TEST@sleep", "--from", &place, "--yes"]);
    assert!(known.status.success() && cpus_of(sleeper.0.id()) == first, "{}", said(&known));
}

#[test]
fn a_reader_that_goes_away_ends_neither_undo_nor_a_trial_in_the_middle() {
    let Some((first, all)) = places("a closed stdout") else { return };
    let directory = Workspace::alone();
    let journal = directory.path().join("journal");
    let sleepers = [started("sleep", &["60"]), started("sleep", &["60"])];
    let closed = |arguments: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
        command
            .args(arguments)
            .env("KVMSCOPE_JOURNAL", &journal)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap()
    };
    for sleeper in &sleepers {
        let report = report(directory.path(), sleeper.0.id(), &all, &first);
        let done = closed(&["apply", "PLC-TEST@sleep", "--from", &report, "--yes"]);
        assert!(done.status.success() && cpus_of(sleeper.0.id()) == first, "{}", said(&done));
    }
    let undone = closed(&["undo"]);
    assert!(undone.status.success(), "{}", said(&undone));
    assert!(sleepers.iter().all(|sleeper| cpus_of(sleeper.0.id()) == all), "one was not undone");
    // A sleeper waits for no CPU: nothing can be better, and the change is put back.
    let report = report(directory.path(), sleepers[0].0.id(), &all, &first);
    let tried = closed(&["apply", "PLC-TEST@sleep", "--from", &report, "--yes", "--trial", "1"]);
    assert!(!said(&tried).contains("panicked"), "{}", said(&tried));
    kvmscope(&journal, &["undo"]);
    assert_eq!(cpus_of(sleepers[0].0.id()), all, "{}", said(&tried));
}

#[test]
fn of_two_opposite_changes_at_once_the_second_is_out_of_date() {
    let Some((first, all)) = places("two applies at once") else { return };
    let Some(second) = all.split([',', '-']).nth(1).filter(|second| *second != first) else { return };
    let directory = Workspace::alone();
    let journal = directory.path().join("journal");
    let sleeper = started("sleep", &["60"]);
    let both = [(&first, "a"), (&second.to_owned(), "b")].map(|(cpus, name)| {
        std::fs::create_dir(directory.path().join(name)).unwrap();
        (cpus.clone(), report(&directory.path().join(name), sleeper.0.id(), &all, cpus))
    });
    let outputs = std::thread::scope(|scope| {
        let applies = both.each_ref().map(|(_, report)| {
            scope.spawn(|| kvmscope(&journal, &["apply", "PLC-TEST@sleep", "--from", report, "--yes"]))
        });
        applies.map(|apply| apply.join().unwrap())
    });
    let made: Vec<usize> = (0..2).filter(|at| outputs[*at].status.success()).collect();
    let [made] = made[..] else { panic!("{}\n{}", said(&outputs[0]), said(&outputs[1])) };
    assert_eq!(cpus_of(sleeper.0.id()), both[made].0);
    assert!(said(&outputs[1 - made]).contains("out of date"), "{}", said(&outputs[1 - made]));
    assert!(kvmscope(&journal, &["undo"]).status.success());
    assert_eq!(cpus_of(sleeper.0.id()), all);
}

#[test]
fn an_empty_variable_is_no_journal_and_an_entry_without_steps_is_told() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    let help = command.args(["report", "--help"]).env("KVMSCOPE_JOURNAL", "").output().unwrap();
    assert!(help.status.success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    let listed = command.args(["undo", "--list"]).env("KVMSCOPE_JOURNAL", "").output().unwrap();
    assert!(!said(&listed).contains("a value is required"), "{}", said(&listed));
    let directory = Workspace::alone();
    let journal = directory.path().join("journal");
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().mode(0o700).create(&journal).unwrap();
    let entry = json!({"id": "record-999999999-0", "command": "record", "owner": {"pid": 999_999_999, "start_ticks": 1}, "steps": []});
    std::fs::write(journal.join("record-999999999-0.json"), entry.to_string()).unwrap();
    std::fs::write(journal.join("record-999999999-1.0a.new"), "{").unwrap();
    let undone = said(&kvmscope(&journal, &["undo"]));
    assert!(undone.contains("record-999999999-0: removed; nothing was changed"), "{undone}");
    assert!(undone.contains("record-999999999-1.0a.new: removed"), "{undone}");
    assert_eq!(std::fs::read_dir(&journal).unwrap().count(), 0);
}

#[test]
fn a_thread_that_ended_is_passed_over_by_apply_and_by_undo() {
    let Some((first, all)) = places("apply to a thread that ended") else { return };
    let directory = Workspace::alone();
    let journal = directory.path().join("journal");
    let sleeper = started("sleep", &["60"]);
    let report = report(directory.path(), sleeper.0.id(), &all, &first);
    let arguments = ["apply", "PLC-TEST@sleep", "--from", &report, "--yes"];
    assert!(kvmscope(&journal, &arguments).status.success());
    drop(sleeper);
    let undone = kvmscope(&journal, &["undo"]);
    assert!(undone.status.success() && said(&undone).contains("the thread has ended"), "{}", said(&undone));
    let gone = kvmscope(&journal, &arguments);
    assert!(gone.status.success() && said(&gone).contains("skipped: thread"), "{}", said(&gone));
}

#[test]
fn what_is_not_there_or_out_of_date_changes_nothing() {
    let Some((first, all)) = places("apply out of date") else { return };
    let directory = Workspace::alone();
    let sleeper = started("sleep", &["60"]);
    let report = report(directory.path(), sleeper.0.id(), "77", &first);
    let unknown = kvmscope(directory.path(), &["apply", "PLC-NONE@x", "--from", &report, "--yes"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(said(&unknown).contains("PLC-TEST@sleep"), "{}", said(&unknown));
    let stale = kvmscope(directory.path(), &["apply", "PLC-TEST@sleep", "--from", &report, "--yes"]);
    assert_eq!(stale.status.code(), Some(1));
    assert!(said(&stale).contains("out of date"), "{}", said(&stale));
    assert_eq!(cpus_of(sleeper.0.id()), all);
}

#[test]
fn a_trial_keeps_what_helped_and_puts_back_the_rest() {
    let Some((first, all)) = places("a trial") else { return };
    let Some(second) = all.split([',', '-']).nth(1).filter(|second| *second != first) else { return };
    let directory = Workspace::alone();
    let spin = |cpu: &str| started("taskset", &["-c", cpu, "sh", "-c", "while :; do :; done"]);
    let (_busy, moved) = (spin(&first), spin(second));
    // taskset sets the mask and then becomes the shell.
    let comm = || std::fs::read_to_string(format!("/proc/{}/comm", moved.0.id())).unwrap();
    wait_for("a shell that is bound", || cpus_of(moved.0.id()) == second && comm() == "sh\n");
    let report = report(directory.path(), moved.0.id(), second, &first);
    let arguments = ["apply", "PLC-TEST@sleep", "--from", &report, "--yes"];
    let trial = kvmscope(&directory.path().join("journal"), &[&arguments[..], &["--trial", "2"]].concat());
    let told = said(&trial);
    assert!(trial.status.success() && told.contains("measured: threads waited"), "{told}");
    // What else runs here decides how it ends; what is said is what holds.
    if told.contains("it helped") {
        assert!(told.contains("kept") && cpus_of(moved.0.id()) == first, "{told}");
        assert!(kvmscope(&directory.path().join("journal"), &["undo"]).status.success());
    } else {
        assert!(told.contains("undone: thread"), "{told}");
    }
    assert_eq!(cpus_of(moved.0.id()), second);
}

#[test]
fn without_root_the_commands_are_printed_and_nothing_is_changed() {
    let Some((first, all)) = places("apply without root") else { return };
    let directory = Workspace::alone();
    let report = report(directory.path(), std::process::id(), &all, &first);
    let text = std::fs::read(&report).unwrap();
    // Who has no root may not see where the program and the report lie: both go where everybody looks.
    let shared = tempfile::Builder::new().prefix("kvmscope-apply-test-").tempdir_in("/tmp").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(shared.path(), open).unwrap();
    let (program, report) = (shared.path().join("kvmscope"), shared.path().join("report.json"));
    std::fs::copy(env!("CARGO_BIN_EXE_kvmscope"), &program).unwrap();
    std::fs::write(&report, text).unwrap();
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let output = Command::new("setpriv")
        .args(nobody)
        .arg(&program)
        .args(["apply", "PLC-TEST@sleep", "--yes", "--from"])
        .arg(&report)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return println!("skipped: apply without root: setpriv: {error}"),
    };
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains(&format!("taskset -cp {first} ")), "{}", said(&output));
    assert!(said(&output).contains(&format!("taskset -cp {all} ")), "{}", said(&output));
    assert_eq!(cpus_of(std::process::id()), all);
}
