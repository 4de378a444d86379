//! Benches of a recording, against what other recordings and the processor's manual say of the same guests.

use analysis::{Answers, Case, Given};
use base::recording::Recording;
use base::{Cell, Table};
use kvmscope_analysis as analysis;
use std::path::Path;

fn table(fixture: &str, section: &str, table: &str) -> Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(fixture);
    let input = kvmscope_analysis::open(Recording::open(&path).unwrap()).unwrap();
    let answers = Answers::of(&Case::new(input, Given::default()));
    let section = answers.sections.iter().find(|one| one.id == section).unwrap();
    section.table(table).unwrap().clone()
}

/// Exits per operation of a guest's test.
fn exits(table: &Table, name: &str) -> Option<f64> {
    let is = |row: usize, column: &str, text: &str| table.cell(row, column) == Some(&Cell::Text(text.to_owned()));
    let row = (0..table.rows.len()).find(|row| is(*row, "name", name) && is(*row, "where", "guest")).unwrap();
    match table.cell(row, "exits_per_op") {
        Some(Cell::F64(exits)) => Some(*exits),
        _ => None,
    }
}

/// The median of L1's exits for a CPUID of L2.
fn chain_of_cpuid(fixture: &str) -> u64 {
    let chains = table(fixture, "flow", "chains");
    let reason = |row: &usize| chains.cell(*row, "reason") == Some(&Cell::Text("CPUID".to_owned()));
    let row = (0..chains.rows.len()).find(reason).unwrap();
    match chains.cell(row, "exits_p50") {
        Some(Cell::U64(exits)) => *exits,
        _ => panic!("{chains:?}"),
    }
}

#[test]
fn the_tiny_hypervisor_multiplies_as_the_trace_of_the_toy_does() {
    let traced = chain_of_cpuid("nested-svm-toy");
    let measured = exits(&table("bench-svm", "nesting", "exits"), "l2_cpuid").unwrap();
    // L2's own exit, and then L1's, the closing VMRUN included.
    assert!((measured - (1 + traced) as f64).abs() < 0.01, "{measured} measured, {traced} traced");
}

#[test]
fn the_tiny_vmx_hypervisor_multiplies_as_the_traces_of_the_toy_do_with_shadowing_and_without() {
    for (bench, traced, vmread) in [
        ("bench-vmx-shadow-on", "nested-vmx-shadow-on", 0.0),
        ("bench-vmx-shadow-off", "nested-vmx-shadow-off-hog", 1.0),
    ] {
        let traced = chain_of_cpuid(traced);
        let table = table(bench, "nesting", "exits");
        // L2's own exit, and then L1's; VMCALL is answered without L1's CPUID; an MSR of L2's own never leaves it.
        for (name, expected) in [
            ("vmread", vmread),
            ("vmwrite", vmread),
            ("vmresume", 2.0),
            ("invept", 1.0),
            ("l2_cpuid", (1 + traced) as f64),
            ("l2_vmcall", traced as f64),
            ("l2_rdmsr_kgs", 0.0),
            ("l2_touch_4k", 1.0),
        ] {
            let measured = exits(&table, name).unwrap();
            assert!((measured - expected).abs() < 0.05, "{bench}, {name}: {measured}, not {expected}");
        }
        assert_eq!(exits(&table, "vmrun"), None);
    }
}

#[test]
fn ring_0_takes_the_exits_that_the_manual_says() {
    let table = table("bench-svm", "nesting", "exits");
    for (name, expected) in [
        ("vmcall", 1.0),
        ("wr_kernel_gs_base", 0.0),
        ("rd_tsc_adjust_msr", 1.0),
        ("toggle_cr0_wp", 2.0),
        ("mov_cr3", 0.0),
        ("invlpg", 0.0),
        ("inl_from_kernel", 1.0),
        ("ipi", 1.0),
        ("ipi_halt", 1.0),
        ("vmrun", 2.0),
        ("l2_vmcall", 4.0),
        ("l2_rdmsr_kgs", 0.0),
        ("l2_touch_4k", 1.0),
        ("fpu_touch_avx", 0.0),
    ] {
        let measured = exits(&table, name).unwrap();
        assert!((measured - expected).abs() < 0.05, "{name}: {measured}, not {expected}");
    }
    // No speculation controls, no VMX, and nobody asked to empty the host's caches.
    for name in ["wr_ibrs_msr", "vmread", "wbinvd", "invd", "inl_from_pmtimer"] {
        assert_eq!(exits(&table, name), None);
    }
}
