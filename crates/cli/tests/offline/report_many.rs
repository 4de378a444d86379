//! `kvmscope report` of hosts with many VMs: whoever costs most comes first, and the text stays readable.

use assert_cmd::Command;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// Thread of the only vCPU of the VM whose vCPU spins.
const SPINNING: u32 = 19_900;

/// Lines of a screen.
const SCREEN: usize = 24;

/// Reasons that calm vCPUs exit for in turn. Some are PAUSE: a few of them on every vCPU are no storm.
const REASONS: [&str; 8] =
    ["HLT", "CPUID", "MSR_WRITE", "EXTERNAL_INTERRUPT", "HLT", "PAUSE_INSTRUCTION", "HLT", "VMCALL"];

/// The text of ftrace over 8 ms of a host: `vms` VMs of `vcpus` vCPUs, which exit 64 times each; if one spins, 2,500
/// PAUSE exits of a VM with one vCPU, whose thread has the highest number.
fn host(vms: u32, vcpus: u32, spins: bool) -> String {
    let mut events: Vec<(u32, String)> = Vec::new();
    let mut exit = |at_us: u32, us: u32, cpu: u32, tid: u32, vcpu: u32, reason: &str| {
        let place = |at_us: u32| format!(" CPU {vcpu}/KVM-{tid} [{cpu:03}] d..1. 100.{at_us:06}");
        let exit = format!(
            "{}: kvm_exit: vcpu {vcpu} reason {reason} rip 0xffffffff81000000 info1 0x0 info2 0x0 intr_info 0x0 error_code 0x0",
            place(at_us)
        );
        events.push((at_us, exit));
        events.push((at_us + us, format!("{}: kvm_entry: vcpu {vcpu}, rip 0xffffffff81000002", place(at_us + us))));
    };
    for vm in 0..vms {
        for vcpu in 0..vcpus {
            let thread = vm * vcpus + vcpu;
            for number in 0..64 {
                let at_us = 125 * number + (37 * thread + 11 * number) % 90;
                let reason = REASONS[((thread + number) % 8) as usize];
                exit(at_us, 2 + (thread + number) % 7, thread, 1_000 + 300 * vm + vcpu, vcpu, reason);
            }
        }
    }
    for number in 0..if spins { 2_500 } else { 0 } {
        exit(3 * number + number / 5, 2, vms * vcpus, SPINNING, 0, "PAUSE_INSTRUCTION");
    }
    events.sort();
    events.iter().fold("# tracer: nop\n#\n".to_owned(), |mut text, (_, line)| {
        writeln!(text, "{line}").unwrap();
        text
    })
}

fn report(trace: &Path, arguments: &[&str]) -> String {
    let mut command = Command::cargo_bin("kvmscope").unwrap();
    let output = command.arg("report").args(arguments).arg(trace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The trace of a host in a file, and what keeps it.
fn written(vms: u32, vcpus: u32, spins: bool) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("host.txt");
    std::fs::write(&path, host(vms, vcpus, spins)).unwrap();
    (directory, path)
}

fn findings(trace: &Path) -> Vec<(String, String)> {
    let json: Value = serde_json::from_str(&report(trace, &["--json"])).unwrap();
    let findings = json["sections"][0]["findings"].as_array().unwrap().iter();
    let word = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    findings.map(|finding| (word(finding, "id"), word(finding, "severity"))).collect()
}

#[test]
fn the_one_vcpu_of_eighty_that_spins_is_on_the_first_screen_and_in_the_first_finding() {
    let (_kept, trace) = written(20, 4, true);
    let spinning = SPINNING.to_string();
    for width in ["80", "120"] {
        let text = report(&trace, &["--width", width]);
        let first: Vec<&str> = text.lines().take(SCREEN).collect();
        assert!(first.iter().any(|line| line.contains("PAUSE exits of") && line.contains(&spinning)), "{first:#?}");
        for heading in [" VMS:", " EXIT REASONS OVER ALL VCPUS", " WORST VCPUS:", " WHERE THE TIME WENT", " EXITS"] {
            let below = text.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
            let rows = below.skip_while(|line| !line.contains("CPU/KVM") && !line.contains("PAUSE"));
            let row = rows.into_iter().next().unwrap_or_else(|| panic!("{heading}: {text}"));
            let expected = if heading.contains("REASONS") { "PAUSE" } else { spinning.as_str() };
            assert!(row.contains(expected), "{heading} at {width} columns begins with {row}");
        }
    }
    let first = &findings(&trace)[0];
    assert!(first.0.starts_with("FLW-PAUSE@") && first.0.contains(&spinning) && first.1 == "high", "{first:?}");
}

#[test]
fn eighty_calm_vcpus_give_no_storm_and_nothing_high() {
    let (_kept, trace) = written(20, 4, false);
    let found = findings(&trace);
    assert!(found.iter().all(|(id, severity)| !id.starts_with("FLW-PAUSE") && severity != "high"), "{found:?}");
}

#[test]
fn the_text_of_many_vcpus_fits_the_page_and_few_screens() {
    for (vms, vcpus) in [(1, 64), (64, 4)] {
        let (_kept, trace) = written(vms, vcpus, true);
        for width in [80, 120] {
            let text = report(&trace, &["--width", &width.to_string()]);
            assert!(text.lines().count() < 250, "{} lines for {vms} x {vcpus} vCPUs", text.lines().count());
            let pasted = |line: &str| line.contains("/sys/module/") || line.contains("kvmscope ");
            let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > width && !pasted(line)).collect();
            assert!(wide.is_empty(), "{width} columns: {wide:#?}");
        }
    }
}

/// The first words of the rows of the table under `heading`.
fn rows<'t>(text: &'t str, heading: &str) -> Vec<Vec<&'t str>> {
    let below = text.lines().skip_while(|line| !line.starts_with(heading)).skip(2);
    below.take_while(|line| line.starts_with("   ")).map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn sort_top_and_by_change_what_people_see_and_nothing_that_programs_get() {
    let (_kept, trace) = written(20, 4, true);
    let heading = " EXIT REASONS OVER ALL VCPUS";
    let by_count = report(&trace, &["--sort", "count", "--top", "2"]);
    let shown = rows(&by_count, heading);
    assert_eq!([shown[0][0], shown[1][0]], ["PAUSE", "HLT"]);
    assert!(shown[2][..4] == ["+", "4", "more", "rows,"], "{shown:?}");
    let number = |row: &Vec<&str>, column: usize| row[column].replace(',', "").parse::<f64>().unwrap();
    let p99: Vec<f64> = rows(&report(&trace, &["--by", "reason", "--sort", "p99"]), heading)
        .iter()
        // How long a halt took nothing tells here: its cells are empty.
        .filter(|row| row[0] != "+" && row[0] != "HLT")
        .map(|row| number(row, 8))
        .collect();
    assert!(p99.len() == 5 && p99.windows(2).all(|pair| pair[0] >= pair[1]), "{p99:?}");
    let by_vcpu = report(&trace, &["--by", "vcpu"]);
    assert!(by_vcpu.contains(" WORST VCPUS") && !by_vcpu.contains(heading) && !by_vcpu.contains(" VMS:"));
    let ranked = report(&trace, &["--json", "--sort", "p99", "--top", "1", "--by", "vm"]);
    assert_eq!(ranked, report(&trace, &["--json"]));
    let (_kept, few) = written(1, 2, false);
    assert!(!report(&few, &[]).contains(heading) && report(&few, &["--by", "reason"]).contains(heading));
    Command::cargo_bin("kvmscope").unwrap().args(["report", "--sort", "name", "x"]).assert().code(2);
}

/// A recording of a trace and a snapshot of one machine, whose files are given by their paths.
fn recording(files: &[(String, String)]) -> tempfile::TempDir {
    let recording = tempfile::tempdir().unwrap();
    let part = |path: &str, kind: &str| {
        format!(
            "{{\"path\": \"{path}\", \"machine\": \"L0\", \"kind\": \"{kind}\", \"clock\": null, \"state\": \"complete\"}}"
        )
    };
    let manifest = format!(
        "{{\"schema\": \"kvmscope-recording/1\", \"created\": \"2026-01-01T00:00:00Z\", \"tool\": \"test\", \"emulated\": null, \
         \"machines\": [{{\"id\": \"L0\", \"level\": 0, \"parent\": null}}], \"parts\": [{}, {}]}}",
        part("L0/trace.txt", "text"),
        part("L0/host/0", "host")
    );
    for (path, text) in files.iter().chain([&("recording.json".to_owned(), manifest)]) {
        let path = recording.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    recording
}

/// A recording of two VMs whose threads were created in turn, with a snapshot that says whose they are.
fn with_snapshot() -> tempfile::TempDir {
    let mut files: Vec<(String, String)> = Vec::new();
    let mut write = |path: &str, text: &str| files.push((path.to_owned(), text.to_owned()));
    let mut trace = "# tracer: nop\n#\n".to_owned();
    for (cpu, (comm, tid)) in
        [("CPU 0/KVM", 101), ("CPU 0/KVM", 102), ("CPU 1/KVM", 103), ("CPU 1/KVM", 104)].iter().enumerate()
    {
        for number in 0..50 {
            let exit =
                format!("{comm}-{tid} [{cpu:03}] d..1. 5.{:06}: kvm_exit: reason HLT rip 0x1 info 0 0", 100 * number);
            let entry =
                format!("{comm}-{tid} [{cpu:03}] d..1. 5.{:06}: kvm_entry: vcpu {}", 100 * number + 40, &comm[4..5]);
            writeln!(trace, " {exit}\n {entry}").unwrap();
        }
    }
    write("L0/trace.txt", &trace);
    for (pid, name, tids) in [(90, "guest=web,debug-threads=on", [101, 103]), (91, "db", [102, 104])] {
        write(&format!("L0/host/0/proc/{pid}/cmdline"), &format!("qemu-system-x86_64\0-name\0{name}\0-m\01G\0"));
        for tid in tids {
            write(&format!("L0/host/0/proc/{pid}/task/{tid}/comm"), "CPU 0/KVM\n");
            write(&format!("L0/host/0/proc/{pid}/task/{tid}/stat"), &format!("{tid} (x) S {}\n", "1 ".repeat(50)));
        }
    }
    write("L0/host/0/proc/stat", "cpu  1 1 1 1\ncpu0 1 1 1 1\n");
    recording(&files)
}

#[test]
fn a_snapshot_names_the_vms_of_threads_and_all_sections_use_the_names() {
    let recording = with_snapshot();
    let json: Value = serde_json::from_str(&report(recording.path(), &["--json"])).unwrap();
    let column = |section: &str, table: &str, names: &[&str]| -> Vec<Vec<String>> {
        let section = json["sections"].as_array().unwrap().iter().find(|of| of["id"] == section).unwrap();
        let table = &section["tables"][table];
        let columns: Vec<&str> =
            table["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
        let place = |name: &str| columns.iter().position(|column| *column == name).unwrap();
        let rows = table["rows"].as_array().unwrap().iter();
        rows.map(|row| names.iter().map(|name| row[place(name)].to_string().replace('"', "")).collect()).collect()
    };
    let expected = [["db", "0", "102"], ["db", "1", "104"], ["web", "0", "101"], ["web", "1", "103"]];
    assert_eq!(column("flow", "vcpus", &["vm", "vcpu", "tid"]), expected);
    let threads = column("placement", "threads", &["vm", "tid"]);
    for [vm, _, tid] in expected {
        assert!(threads.contains(&vec![vm.to_owned(), tid.to_owned()]), "{tid} is {vm}'s in {threads:?}");
    }
    let narrowed = report(recording.path(), &["--vm", "web"]);
    assert!(narrowed.contains("vm web   vCPU 0   tid 101") && !narrowed.contains("vm db "), "{narrowed}");
}

#[test]
fn masks_in_the_snapshot_make_a_finding_on_preemption_a_change() {
    let switch = |at_us: u32, from: (&str, u32), to: (&str, u32)| {
        format!(
            " {}-{} [002] d..2. 5.{at_us:06}: sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state=R ==> next_comm={} \
             next_pid={} next_prio=120\n",
            from.0, from.1, from.0, from.1, to.0, to.1
        )
    };
    let (vcpu, hog) = (("CPU 0/KVM", 101), ("hog", 500));
    let mut trace = "# tracer: nop\n#\n".to_owned();
    for number in 0..50 {
        let at_us = 10_000 * number;
        trace.push_str(&switch(at_us, hog, vcpu));
        writeln!(trace, " CPU 0/KVM-101 [002] d..1. 5.{:06}: kvm_entry: vcpu 0", at_us + 10).unwrap();
        writeln!(trace, " CPU 0/KVM-101 [002] d..1. 5.{:06}: kvm_exit: reason HLT rip 0x1 info 0 0", at_us + 20)
            .unwrap();
        trace.push_str(&switch(at_us + 2_000, vcpu, hog));
    }
    let mut files = vec![
        ("L0/trace.txt".to_owned(), trace),
        ("L0/host/0/proc/stat".to_owned(), "cpu  1 1 1 1\ncpu0 1 1 1 1\n".to_owned()),
        ("L0/host/0/proc/90/cmdline".to_owned(), "qemu-system-x86_64\0-name\0web\0-m\x001G\0".to_owned()),
    ];
    for (pid, tid, comm, cpus) in [(90, 101, "CPU 0/KVM", "2"), (500, 500, "hog", "0-3")] {
        let file = |name: &str, text: String| (format!("L0/host/0/proc/{pid}/task/{tid}/{name}"), text);
        files.push(file("comm", format!("{comm}\n")));
        files.push(file("stat", format!("{tid} (x) S {}\n", "1 ".repeat(50))));
        files.push(file("status", format!("Name:\t{comm}\nCpus_allowed_list:\t{cpus}\n")));
    }
    let recording = recording(&files);
    let json: Value = serde_json::from_str(&report(recording.path(), &["--json"])).unwrap();
    let findings = json["sections"][0]["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["id"] == "FLW-PREEMPT@web/0").unwrap();
    assert_eq!((&found["fix"][0], &found["undo"][0]), (&"taskset -cp 0-1,3 500".into(), &"taskset -cp 0-3 500".into()));
}
