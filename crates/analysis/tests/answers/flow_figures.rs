//! The pictures of section `flow` draw what its tables have: shares of all states, rates of all exits, and what findings give back.

use base::figure::{Drawing, Levels, Step, Waterfall};
use base::recording::Recording;
use base::table::Row;
use base::{Cell, Section};
use kvmscope_analysis::{Case, Given, flow};
use std::path::Path;

fn section(name: &str) -> Section {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    let input = kvmscope_analysis::open(Recording::open(&path).unwrap()).unwrap();
    flow::answer(&Case::new(input, Given::default())).unwrap().unwrap().section
}

fn levels(section: &Section) -> &Levels {
    match &section.figures[0].drawing {
        Drawing::Levels(levels) => levels,
        other => panic!("the first picture answers at a glance: {other:?}"),
    }
}

fn wholes(section: &Section) -> &[Waterfall] {
    let drawn = section.figures.iter().find_map(|figure| match &figure.drawing {
        Drawing::Waterfall(wholes) => Some(wholes),
        _ => None,
    });
    drawn.unwrap()
}

fn number(row: &Row<'_>, column: &str) -> f64 {
    match row.cell(column) {
        Some(Cell::U64(value)) => *value as f64,
        Some(Cell::F64(value)) => *value,
        other => panic!("{column}: {other:?}"),
    }
}

/// Rows of the recorded machine: guests that recorded themselves have pictures of their own.
fn rows<'s>(section: &'s Section, table: &str) -> impl Iterator<Item = Row<'s>> {
    section.table(table).unwrap().rows().filter(|row| row.cell("machine") == Some(&Cell::from("L0")))
}

fn sum(section: &Section, table: &str, column: &str, wanted: impl Fn(&Row<'_>) -> bool) -> f64 {
    rows(section, table).filter(wanted).map(|row| number(&row, column)).sum()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

const ALL: [&str; 4] = ["nested-svm-toy", "nested-vmx-shadow-off-hog", "nested-vmx-shadow-on", "svm-linux"];

#[test]
fn all_time_is_that_of_the_states_and_adds_up() {
    for name in ALL {
        let section = section(name);
        let wall = sum(&section, "vcpus", "wall_ns", |_| true);
        for part in &levels(&section).time {
            let of_state = sum(&section, "vcpus", &format!("{}_ns", part.hue), |_| true);
            assert!(near(part.share, of_state / wall), "{name}: {part:?}, {of_state} of {wall}");
        }
        let all: f64 = levels(&section).time.iter().map(|part| part.share).sum();
        assert!(near(all, 1.0), "{name}: {all}");
        for whole in wholes(&section) {
            let all: f64 = whole.steps.iter().map(|step| step.share).sum();
            assert!(near(all, 1.0), "{name}, {}: {all}", whole.title);
        }
    }
}

#[test]
fn every_exit_is_on_an_arrow_and_the_multiplication_is_that_of_the_chains() {
    for name in ALL {
        let section = section(name);
        let drawn = levels(&section);
        let of = |level: &str| {
            let storeys = drawn.columns.iter().flat_map(|column| &column.storeys);
            storeys.filter(|storey| storey.level == level).filter_map(|storey| storey.exits_per_s).sum::<f64>()
        };
        let count =
            |level: &'static str| sum(&section, "exits", "count", |row| row.cell("level") == Some(&Cell::from(level)));
        // All rates are over the same time.
        assert!(near(of("L1") * count("L2"), of("L2") * count("L1")), "{name}");
        assert!(of("L1") > 0.0 && of("L2") > 0.0, "{name}");
        let seconds = count("L1") / of("L1");
        let chains = sum(&section, "chains", "count", |_| true);
        let [nested, outer] = &drawn.columns[0].storeys[..] else { panic!("{name} has two levels") };
        assert!(near(nested.reflected_per_s.unwrap() * seconds, chains), "{name}: {chains}");
        let inside: f64 = rows(&section, "chains")
            .filter(|row| undisturbed(row) > 0.0)
            .map(|row| number(&row, "exits_mean") * undisturbed(&row))
            .sum();
        let all: f64 = rows(&section, "chains").map(|row| undisturbed(&row)).sum();
        assert!((outer.for_each.unwrap() - inside / all).abs() < 1e-6, "{name}: {:?}", outer.for_each);
    }
}

fn undisturbed(row: &Row<'_>) -> f64 {
    number(row, "count") - number(row, "censored") - number(row, "disturbed")
}

/// One chain of 2,538 exits, in which L1 halted and after which another guest ran, made 12.11 of what is 9.3.
#[test]
fn a_disturbed_chain_is_counted_and_multiplies_nothing() {
    let section = section("svm-linux");
    let of_host = |row: &Row<'_>| row.cell("machine") == Some(&Cell::from("L0"));
    let sum = |column| sum(&section, "chains", column, of_host);
    assert_eq!((sum("count"), sum("censored"), sum("disturbed"), sum("interrupted")), (900.0, 2.0, 1.0, 1.0));
    let exits: f64 = super::flow_figures::sum(&section, "chain_exits", "count", of_host);
    assert_eq!(exits, 10_876.0 - 2_538.0);
    let outer = &levels(&section).columns[0].storeys[1];
    assert!(near(outer.for_each.unwrap(), 8_338.0 / 897.0), "{:?}", outer.for_each);
    assert!(section.summary.contains("1 disturbed chain is left out"), "{}", section.summary);
}

#[test]
fn a_step_names_the_finding_that_would_give_it_back_and_no_more_than_it_has() {
    let section = section("nested-vmx-shadow-off-hog");
    let steps = &wholes(&section)[0].steps;
    let step = |hue: &str| steps.iter().find(|step| step.hue == hue).unwrap();
    let rules = |step: &Step| step.removed.iter().map(|removed| removed.rule.clone()).collect::<Vec<_>>();
    assert_eq!(rules(step("preempted")), ["FLW-PREEMPT"]);
    assert_eq!(rules(step("handling_l1")), ["FLW-SHADOW"]);
    // Of 294.6 ms of waiting 49.6 ms are of the VMM, before its guest first ran and after it ended: they give nothing back.
    let (back, share) = (step("preempted").given_back(), step("preempted").share);
    assert!((share - 0.462).abs() < 0.001 && (back - 0.384).abs() < 0.001, "{back} of {share}");
    let shadow = section.findings.iter().find(|finding| finding.rule == "FLW-SHADOW").unwrap();
    let gives_back = shadow.gives_back.as_ref().unwrap();
    // 13 of 15 exits of a chain are VMREAD and VMWRITE, of which one stays: at most 12 of 15 of what chains take.
    let of_chains = sum(&section, "chains", "total_ns", |_| true) / sum(&section, "vcpus", "wall_ns", |_| true);
    assert!(gives_back.high < of_chains * 12.0 / 15.0, "{gives_back:?} of {of_chains}");
    assert!(0.0 < gives_back.low && gives_back.low < gives_back.share && gives_back.share < gives_back.high);
    assert!(gives_back.high <= step("handling_l1").share);
    assert!(gives_back.unit.contains("Bochs"), "emulated time is marked: {}", gives_back.unit);
    for whole in wholes(&section) {
        assert!(whole.steps.iter().all(|step| step.given_back() <= step.share + 1e-12), "{}", whole.title);
    }
    // Without what took its CPU, and with shadowing, neither finding is there and nothing is named.
    let quiet = self::section("nested-vmx-shadow-on");
    let named: Vec<String> = wholes(&quiet)[0].steps.iter().flat_map(rules).collect();
    assert!(!named.iter().any(|rule| rule == "FLW-SHADOW"), "{named:?}");
}

#[test]
fn reflected_exits_are_a_step_of_their_own_out_of_the_time_of_l1() {
    let section = section("nested-svm-toy");
    let wall = sum(&section, "vcpus", "wall_ns", |_| true);
    let steps = &wholes(&section)[0].steps;
    let share = |hue: &str| steps.iter().filter(|step| step.hue == hue).map(|step| step.share).sum::<f64>();
    let (own, reflected) = (share("guest_l1"), share("handling_l2_by_l1"));
    assert!(near(own + reflected, sum(&section, "vcpus", "guest_l1_ns", |_| true) / wall));
    assert!(reflected > 0.0 && reflected <= sum(&section, "chains", "total_ns", |_| true) / wall);
}

/// Counted by `trace-cmd report L0/trace.dat | grep kvm_exit`, by reason.
const COUNTED: [(&str, &str, f64); 9] = [
    ("svm-linux", "", 11_981.0),
    ("svm-linux", "MSR", 3_595.0),
    ("svm-linux", "VMLOAD", 1_800.0),
    ("svm-linux", "VMSAVE", 941.0),
    ("svm-linux", "VMRUN", 900.0),
    ("nested-vmx-shadow-off-hog", "", 2_644.0),
    ("nested-vmx-shadow-off-hog", "VMREAD", 1_192.0),
    ("nested-vmx-shadow-off-hog", "VMWRITE", 832.0),
    ("nested-vmx-shadow-off-hog", "CPUID", 298.0),
];

/// Shares of the time of L0's vCPUs, in percent, recomputed from the printed events by hand.
const SHARES: [(&str, &str, f64); 8] = [
    ("nested-vmx-shadow-off-hog", "preempted_ns", 46.2),
    ("nested-vmx-shadow-off-hog", "guest_l1_ns", 9.0),
    ("nested-vmx-shadow-off-hog", "guest_l2_ns", 1.2),
    ("vmx-linux-shadow-off", "guest_l2_ns", 57.9),
    ("vmx-linux-shadow-off", "guest_l1_ns", 14.0),
    ("vmx-linux-shadow-off", "handling_l2_ns", 3.8),
    ("vmx-linux-shadow-on", "guest_l2_ns", 66.2),
    ("vmx-linux-shadow-on", "guest_l1_ns", 10.6),
];

#[test]
fn exits_and_shares_are_those_that_others_counted() {
    for (name, reason, expected) in COUNTED {
        let is_it = |row: &Row<'_>| reason.is_empty() || row.text("reason") == Some(reason);
        assert_eq!(sum(&section(name), "exits", "count", is_it), expected, "{name} {reason}");
    }
    for (name, column, percent) in SHARES {
        let section = section(name);
        let share = 100.0 * sum(&section, "vcpus", column, |_| true) / sum(&section, "vcpus", "wall_ns", |_| true);
        assert!((share - percent).abs() <= 0.05, "{name} {column}: {share}");
    }
}

#[test]
fn the_caption_of_a_short_trace_counts_the_exits_of_the_vm_that_it_names() {
    let mut text = String::new();
    for (cpu, tid, exits) in [(0, 98, 3), (1, 99, 2)] {
        for exit in 0..exits {
            let at_us = 20 * exit + cpu;
            text += &format!(" CPU 0/KVM-{tid} [00{cpu}] d..1. 1.{at_us:06}: kvm_entry: vcpu 0, rip 0x1000\n");
            let fields = "rip 0x1000 info1 0x0 info2 0x0 intr_info 0x0 error_code 0x0";
            let exit = format!("kvm_exit: vcpu 0 reason HLT {fields}");
            text += &format!(" CPU 0/KVM-{tid} [00{cpu}] d..1. 1.{:06}: {exit}\n", at_us + 8);
        }
    }
    let file = tempfile::Builder::new().suffix(".txt").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let input = kvmscope_analysis::open(Recording::open(file.path()).unwrap()).unwrap();
    let section = flow::answer(&Case::new(input, Given::default())).unwrap().unwrap().section;
    let caption = &section.figures[0].caption;
    assert_eq!(levels(&section).columns.len(), 2);
    assert!(caption.contains(": 3 exits in ") && !caption.contains("5 exits"), "{caption}");
}
