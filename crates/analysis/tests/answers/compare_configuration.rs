//! What was set up differently between two hosts, told first.

use crate::fixtures::copied;
use base::recording::Recording;
use base::{Cell, Section};
use kvmscope_analysis::{About, Answers, Case, Given};
use std::path::Path;

const HOST: &str = "hosts-intel";

/// The fixture, with some files changed.
fn host(changes: &[(&str, &str)]) -> (tempfile::TempDir, Case) {
    let place = tempfile::tempdir().unwrap();
    copied(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(HOST), place.path());
    for (path, text) in changes {
        let path = place.path().join("L0/host/0").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let recording = Recording::open(place.path()).unwrap();
    (place, Case::new(kvmscope_analysis::open(recording).unwrap(), Given::default()))
}

fn compared(before: Case, after: Case) -> Section {
    let answers = Answers::about(&after.compared_with(before), &[About::Change]);
    assert!(answers.failed.is_empty(), "{:?}", answers.failed);
    answers.sections.into_iter().find(|section| section.id == "compare").unwrap()
}

#[test]
fn nothing_differs_is_said_with_the_number_of_settings() {
    let ((_one, before), (_two, after)) = (host(&[]), host(&[]));
    let section = compared(before, after);
    assert!(
        section.summary.starts_with("Nothing differs in ")
            && section.summary.contains("settings recorded on both sides.")
    );
    assert!(section.table("configuration").is_none());
}

#[test]
fn what_differs_is_named_first_and_words_of_a_command_line_one_by_one() {
    let path = "sys/module/kvm_intel/parameters/enable_shadow_vmcs";
    let before = [(path, "N\n"), ("proc/cmdline", "quiet mitigations=off\n")];
    let after = [(path, "Y\n"), ("proc/cmdline", "quiet isolcpus=2-3\n"), ("proc/sys/vm/swappiness", "10\n")];
    let ((_one, before), (_two, after)) = (host(&before), host(&after));
    let section = compared(before, after);
    let table = section.table("configuration").unwrap();
    assert_eq!(section.tables[0].spec.name, "configuration");
    let rows: Vec<[Option<&str>; 5]> = table
        .rows
        .iter()
        .map(|row| {
            [0, 1, 2, 3, 4].map(|column| if let Cell::Text(text) = &row[column] { Some(text.as_str()) } else { None })
        })
        .collect();
    assert_eq!(
        rows,
        [
            [Some("L0"), Some("module"), Some("kvm_intel.enable_shadow_vmcs"), Some("N"), Some("Y")],
            [Some("L0"), Some("kernel"), Some("/proc/cmdline"), Some("mitigations=off"), Some("isolcpus=2-3")],
            [Some("L0"), Some("memory"), Some("vm.swappiness"), None, Some("10")],
        ]
    );
    let named = "2 differ; 1 more is on one side alone: kvm_intel.enable_shadow_vmcs of L0 (N before, Y after), /proc/cmdline of L0 (mitigations=off before, isolcpus=2-3 after) and \
                 vm.swappiness of L0.";
    assert!(section.summary.contains(named), "{}", section.summary);
}

#[test]
fn what_a_snapshot_could_not_read_and_a_host_without_one_are_unknown() {
    let unreadable = [("unreadable.txt", "sys/module/kvm_intel/parameters/ept: Permission denied\n")];
    let ((one, _), (_two, after)) = (host(&unreadable), host(&[]));
    std::fs::remove_file(one.path().join("L0/host/0/sys/module/kvm_intel/parameters/ept")).unwrap();
    let before = Case::new(kvmscope_analysis::open(Recording::open(one.path()).unwrap()).unwrap(), Given::default());
    let section = compared(before, after);
    assert!(section.table("configuration").is_none(), "{:?}", section.table("configuration"));
    assert!(section.unknown.iter().any(|unknown| unknown.what == "unreadable_settings" && unknown.amount == Some(1.0)));
}

#[test]
fn the_causes_of_a_real_pair_sum_up_and_shadowing_explains_what_it_moves() {
    let case = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
        Case::new(kvmscope_analysis::open(Recording::open(&path).unwrap()).unwrap(), Given::default())
    };
    let section = compared(case("vmx-linux-shadow-off"), case("vmx-linux-shadow-on"));
    let table = section.table("causes").unwrap();
    let number = |row: usize, column: &str| match table.cell(row, column) {
        Some(Cell::F64(number)) => *number,
        other => panic!("{column}: {other:?}"),
    };
    assert_eq!(table.cell(0, "part"), Some(&Cell::from("all")));
    let parts = 1..table.rows.len();
    let sum: f64 = parts.clone().map(|row| number(row, "difference")).sum();
    assert!((sum - number(0, "difference")).abs() < 1e-9, "{sum}");
    for row in parts.clone().filter(|row| table.cell(*row, "by_rate") != Some(&Cell::Missing)) {
        assert!((number(row, "by_rate") + number(row, "by_cost") - number(row, "difference")).abs() < 1e-9);
    }
    let explained: Vec<&Cell> = parts
        .filter(|row| table.cell(*row, "setting") != Some(&Cell::Missing))
        .map(|row| table.cell(row, "part").unwrap())
        .collect();
    assert_eq!(explained, [&Cell::from("VMREAD of L1"), &Cell::from("VMWRITE of L1")]);
    let said = "possible cause: the command (shadow_vmcs=off before, shadow_vmcs=on after)";
    assert!(section.summary.contains(said), "{}", section.summary);
}
