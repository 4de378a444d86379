//! `kvmscope lab migrate`, small: the guest arrives and goes on, the books of its passes hold, and nothing is left behind, however the
//! lab ends. No time is asserted.

mod injected;
mod network;
mod saved;

use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testing::{Workspace, missing, send, wait_for, wait_for_output};

/// A lab with a cache of its own; `None`, and a reason on stdout, where it cannot run.
fn lab(directory: &Path, more: &[&str]) -> Option<Command> {
    if let Some(why) = missing(&[("qemu-system-x86_64", "qemu-system-x86")]) {
        println!("skipped: lab migrate: {why}");
        return None;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    command.args(["lab", "migrate", "--ram", "128M", "--hot", "32M"]).args(more);
    command.arg("--cache").arg(directory.join("cache")).arg("-o").arg(directory.join("moved"));
    command.arg("--journal").arg(directory.join("journal"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(command)
}

/// Processes that name the cache, and what is in it.
fn left(directory: &Path) -> Vec<String> {
    let cache = directory.join("cache");
    let in_cache = std::fs::read_dir(&cache).into_iter().flatten().flatten();
    let mut left: Vec<String> = in_cache.map(|entry| entry.path().display().to_string()).collect();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        left.extend((line.contains("qemu-system") && line.contains(cache.to_str().unwrap())).then_some(line));
    }
    left
}

fn rows<'a>(section: &'a Value, table: &str) -> (impl Fn(&str) -> usize + use<'a>, &'a Vec<Value>) {
    let table = &section["tables"][table];
    let columns = table["columns"].as_array().unwrap();
    let place = move |name: &str| columns.iter().position(|column| column["name"] == name).unwrap();
    (place, table["rows"].as_array().unwrap())
}

/// What is said of a guest that was moved.
const TARGET: &str = "the guest runs on the target";

/// What nobody has to try out where a prediction is not looked at.
const LINK: [&str; 2] = ["--link", "1GB/s"];

/// The answer about a guest that was moved.
fn moved(directory: &Path, more: &[&str]) -> Option<Value> {
    let mut lab = lab(directory, &["--bandwidth", "100MB/s", "--rate", "4000pages/s", "--json"])?;
    let output = lab.args(LINK).args(more).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && complaints.contains(TARGET), "{complaints}");
    assert_eq!(left(directory), [""; 0]);
    Some(about_migration(&output.stdout))
}

/// That section of what a program answered.
fn about_migration(answer: &[u8]) -> Value {
    let answered: Value = serde_json::from_slice(answer).unwrap();
    answered["sections"].as_array().unwrap().iter().find(|one| one["id"] == "migration").unwrap().clone()
}

/// Each guest that was moved has the memory that it should have, all of it.
fn memory_holds(section: &Value) {
    let (of, runs) = rows(section, "runs");
    let (by, memories) = rows(section, "moved_memory");
    assert_eq!(runs.iter().filter(|run| run[of("ended")] == "completed").count(), memories.len());
    for row in memories {
        let number = |column: &str| row[by(column)].as_u64().unwrap();
        assert_eq!(number("differing"), 0, "{row:?}");
        assert!(number("foretold") >= 1 && number("left_out") < 64 && number("compared") > 10_000, "{row:?}");
        // 128 MiB, and the 8 KiB that it has more.
        assert_eq!(number("compared") + number("foretold") + number("left_out"), 32_768 + 2, "{row:?}");
    }
}

#[test]
fn the_guest_arrives_and_its_passes_sum_up() {
    let directory = Workspace::alone();
    let Some(section) = moved(directory.path(), &[]) else { return };
    memory_holds(&section);
    let (by, work) = rows(&section, "work");
    let phases: Vec<&str> = work.iter().map(|row| row[by("phase")].as_str().unwrap()).collect();
    assert!(phases.iter().any(|phase| phase.starts_with("pass ")), "it was asked meanwhile: {phases:?}");
    let (place, passes) = rows(&section, "passes");
    let number = |row: &Value, column: &str| row[place(column)].as_u64();
    assert!(passes.len() >= 3, "the first one, one that finds little left, and the final one: {passes:?}");
    let times: Vec<u64> =
        passes.iter().flat_map(|row| [number(row, "start_ns").unwrap(), number(row, "end_ns").unwrap()]).collect();
    assert!(times.is_sorted(), "{times:?}");
    let (of, residuals) = rows(&section, "residuals");
    let was =
        |what: &str| residuals.iter().find(|row| row[of("what")] == what).unwrap()[of("actual")].as_f64().unwrap();
    let sent: u64 = passes.iter().filter_map(|row| number(row, "bytes")).sum();
    assert!(sent as f64 <= was("bytes"), "{sent} in passes, {} in all", was("bytes"));
    // 8,192 hot pages at least, each with its header.
    assert!(was("bytes") >= 8_192.0 * 4_104.0 && was("total") > was("downtime"));
    let said = base::prediction::Prediction::read(&directory.path().join("moved/L0/prediction.json")).unwrap();
    assert_eq!(
        said.said.iter().map(|said| said.what.as_str()).collect::<Vec<_>>(),
        ["total", "downtime", "passes", "bytes"]
    );
}

#[test]
fn a_guest_that_is_watched_beats_on_the_target_and_is_held_against_no_prediction() {
    let directory = Workspace::alone();
    let Some(section) = moved(directory.path(), &["--observe"]) else { return };
    let (by, downtimes) = rows(&section, "downtimes");
    assert_eq!(
        downtimes.iter().map(|row| row[by("definition")].clone()).collect::<Vec<_>>(),
        ["vmm_reported", "vmm_events", "guest"]
    );
    // A busy machine may starve the poller; then there is no value, and the reason.
    let guest = downtimes.iter().find(|row| row[by("definition")] == "guest").unwrap();
    assert_eq!(guest[by("value_ns")].is_null(), guest[by("cause")].as_str().unwrap().starts_with("rejected: "));
    let unknown = section["unknown"].as_array().unwrap();
    assert!(unknown.iter().all(|one| one["what"] != "guest_before_resume"), "{unknown:?} {downtimes:?}");
    assert!(section["tables"].get("residuals").is_none_or(|table| table["rows"].as_array().unwrap().is_empty()));
}

/// The methods of all runs, as the report says, and the numbers of those that the prediction was held against.
fn methods(section: &Value) -> (Vec<String>, Vec<u64>) {
    memory_holds(section);
    let (of, runs) = rows(section, "runs");
    assert!(runs.iter().all(|run| run[of("ended")] == "completed"), "{runs:?}");
    let methods = runs.iter().map(|run| run[of("method")].as_str().unwrap().to_owned()).collect();
    let (of, residuals) = rows(section, "residuals");
    let held: std::collections::BTreeSet<u64> = residuals.iter().map(|row| row[of("run")].as_u64().unwrap()).collect();
    (methods, held.into_iter().collect())
}

#[test]
#[ignore = "torture"]
fn each_run_has_its_method_and_what_was_said_of_pre_copy_is_held_against_that_alone() {
    let directory = Workspace::alone();
    let Some(section) = moved(directory.path(), &["--method", "multifd,precopy"]) else { return };
    assert_eq!(methods(&section), (vec!["multifd".to_owned(), "precopy".to_owned()], vec![1]));
    assert!(section["unknown"].as_array().unwrap().iter().any(|one| one["what"] == "method"));
}

#[test]
#[ignore = "torture"]
fn another_qemu_moves_a_guest_by_methods_that_the_installed_one_may_lack() {
    let program =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/qemu-backports/root/usr/bin/qemu-system-x86_64");
    if !program.exists() {
        return println!("skipped: lab migrate with a second QEMU: tools/qemu-backports.sh unpacks one");
    }
    let directory = Workspace::alone();
    let all = "precopy,postcopy,multifd,mapped-ram";
    let arguments = ["--qemu", program.to_str().unwrap(), "--method", all];
    let Some(section) = moved(directory.path(), &arguments) else { return };
    assert_eq!(methods(&section).0.join(","), all);
}

#[test]
#[ignore = "torture"]
fn all_methods_move_the_guest_and_post_copy_says_what_it_waited_for() {
    let directory = Workspace::alone();
    let all = "precopy,postcopy,multifd,zstd,xbzrle,auto-converge";
    let Some(section) = moved(directory.path(), &["--method", all]) else { return };
    assert_eq!(methods(&section).0.join(","), all);
    let (of, runs) = rows(&section, "runs");
    let (waited, asked) = (&runs[1][of("blocktime_ns")], &runs[1][of("requested_pages")]);
    assert!(waited.is_u64() && asked.is_u64(), "{:?}", runs[1]);
    assert!(runs.iter().enumerate().all(|(run, row)| run == 1 || row[of("blocktime_ns")].is_null()), "{runs:?}");
}

/// Rules that found something, and what, in one line each.
fn found(section: &Value) -> Vec<String> {
    let findings = section["findings"].as_array().unwrap().iter();
    findings.map(|one| format!("{}: {}", one["rule"].as_str().unwrap(), one["title"].as_str().unwrap())).collect()
}

#[test]
fn one_that_never_ends_is_cancelled_and_said_to_be_before() {
    // Six trials of how fast QEMU sends take a minute.
    let more: &[&str] = if std::env::var_os("KVMSCOPE_TORTURE").is_some() { &[] } else { &LINK };
    let directory = Workspace::alone();
    // A pass takes a second, in which a guest that gets a seventh of a CPU writes to all of its hot pages again.
    let hot = ["--rate", "60000pages/s", "--bandwidth", "30MB/s", "--limit", "5ms", "--patience", "3s"];
    let Some(mut lab) = lab(directory.path(), &[&hot[..], more].concat()) else { return };
    let output = lab.output().unwrap();
    let (text, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{complaints}");
    assert!(
        text.contains("ended as cancelled") && text.contains("Predicted never to end; 1 of 1 run did not."),
        "{text}"
    );
    assert_eq!(left(directory.path()), [""; 0]);
}

fn at_work(mut lab: Command, word: &str) -> Child {
    let mut lab = lab.spawn().unwrap();
    wait_for_output(lab.stderr.take().unwrap(), word);
    lab
}

#[test]
fn nothing_is_left_after_ctrl_c_and_no_program_after_kill_9() {
    let cases: [(_, _, _, &[&str]); 2] =
        [("-INT", Some(130), "how fast QEMU sends", &[]), ("-KILL", None, "booting the guest", &LINK)];
    for (signal, status, word, more) in cases {
        let directory = Workspace::alone();
        let arguments = [&["--rate", "100pages/s", "--repeats", "100"], more].concat();
        let Some(command) = lab(directory.path(), &arguments) else { return };
        let mut lab = at_work(command, word);
        send(&lab, signal);
        assert_eq!(lab.wait().unwrap().code(), status, "{signal}");
        let is_program = |line: &String| line.starts_with("qemu");
        wait_for("the end of both QEMUs", || !left(directory.path()).iter().any(is_program));
        let left = left(directory.path());
        assert!(status.is_none() || left.is_empty(), "{signal}: {left:?}");
    }
}
