//! A trace and a snapshot of one host: who took the CPU stands in the answer about placement, in its words.

use base::recording::{Part, PartKind, PartState, Recording};
use base::{Cell, Section};
use kvmscope_analysis::{Answers, Case, Given};
use std::fs;
use std::path::Path;

/// The fixture's vCPU is thread 98 of process 98, and a program `busybox`, thread 90, ran on its CPU.
fn answers(tids: &[(i32, i32, &str)]) -> Vec<Section> {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nested-vmx-shadow-off-hog");
    let tree = tempfile::tempdir().unwrap();
    let put = |path: String, text: &str| {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("sys/devices/system/cpu/online".into(), "0-1\n");
    for cpu in 0..2 {
        put(format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), &format!("{cpu}\n"));
    }
    for (pid, tid, comm) in tids {
        let of = |file: &str| format!("proc/{pid}/task/{tid}/{file}");
        put(of("comm"), &format!("{comm}\n"));
        put(of("stat"), &format!("{tid} ({comm}) R{}\n", " 0".repeat(49)));
        put(of("status"), "Cpus_allowed_list:\t0\n");
        put(format!("proc/{pid}/cmdline"), "qemu-system-x86_64\0-name\0guest=web\0");
    }
    let mut recording = Recording::open(&fixture).unwrap();
    let part = Part {
        path: tree.path().to_owned(),
        kind: PartKind::Host,
        clock: None,
        state: PartState::Complete,
        ..recording.parts[0].clone()
    };
    recording.parts.push(part);
    let input = kvmscope_analysis::open(recording).unwrap();
    Answers::of(&Case::new(input, Given::default())).sections
}

fn placement(sections: &[Section]) -> &Section {
    sections.iter().find(|section| section.id == "placement").unwrap()
}

#[test]
fn the_one_who_ran_meanwhile_is_named_by_its_role() {
    let sections = answers(&[(98, 98, "CPU 0/KVM"), (98, 90, "vhost-98")]);
    let section = placement(&sections);
    let rows = &section.table("preemptors").unwrap().rows;
    let [
        Cell::Text(machine),
        Cell::Text(vm),
        Cell::U64(0),
        Cell::F64(ready),
        Cell::Text(by),
        Cell::I64(90),
        Cell::F64(part),
    ] = &rows[0][..]
    else {
        panic!("{rows:?}")
    };
    assert_eq!((machine.as_str(), vm.as_str(), by.as_str(), rows.len()), ("L0", "web", "vhost of web", 1));
    assert!((0.45..0.47).contains(ready) && (0.97..0.99).contains(part), "{ready} {part}");
    assert!(section.summary.contains("while vhost of web (thread 90) ran"), "{}", section.summary);
    let overlap = section.findings.iter().find(|finding| finding.rule == "PLC-OVERLAP").unwrap();
    assert!(
        overlap.evidence.iter().any(|seen| seen.what.contains("waited for a CPU for 46.2 %")),
        "{:?}",
        overlap.evidence
    );
}

#[test]
fn threads_that_no_file_names_keep_the_names_of_the_trace() {
    let sections = answers(&[(7, 7, "CPU 0/KVM")]);
    let rows = &placement(&sections).table("preemptors").unwrap().rows;
    assert_eq!((&rows[0][1], &rows[0][4]), (&Cell::from("nestv-98"), &Cell::from("busybox")));
}
