//! The vhost case of 2017, from what was pasted of it, and what its evidence does not carry.

use base::recording::Recording;
use base::{Finding, Section};
use kvmscope_analysis::facts::described::described;
use kvmscope_analysis::placement::section::section;
use kvmscope_analysis::placement::{Wishes, build, hypotheses};
use kvmscope_analysis::{Case, Given};
use std::path::Path;

fn models() -> Vec<kvmscope_analysis::placement::model::Model> {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/seed-vhost");
    let input = kvmscope_analysis::open(Recording::open(&fixture).unwrap()).unwrap();
    let case = Case::new(input, Given::default());
    let (models, problems) = build::build(&described(&case), &Wishes::default());
    assert!(problems.is_empty(), "{problems:?}");
    models
}

fn seed() -> Section {
    section(&models())
}

fn found<'a>(section: &'a Section, rule: &str) -> &'a Finding {
    section.findings.iter().find(|finding| finding.rule == rule).unwrap_or_else(|| panic!("{rule} did not fire"))
}

/// Rules that found something wrong, which proposals are not.
fn wrong(section: &Section) -> Vec<&'static str> {
    section.findings.iter().map(|finding| finding.rule).filter(|rule| *rule != "PLC-PROPOSAL").collect()
}

#[test]
fn what_the_evidence_carries_is_found_and_no_more() {
    let section = seed();
    let mut rules = wrong(&section);
    rules.sort_unstable();
    assert_eq!(rules, ["EVD-MASK", "EVD-ORDER", "PLC-OVERLAP", "PLC-SMT", "PLC-STACKED", "PLC-WORKERS"]);
    let overlap = found(&section, "PLC-OVERLAP");
    assert_eq!(overlap.id(), "PLC-OVERLAP@bigip-virtio");
    assert_eq!(overlap.severity, base::Severity::Medium, "no waiting was measured");
    assert_eq!(overlap.title, "19 or more threads of bigip-virtio share 4 cores (8 CPUs), none on node 1");
    assert!(overlap.fix[0].starts_with("virsh emulatorpin bigip-virtio 1,3,5,7,9,11,13,15"), "{:?}", overlap.fix);
    assert!(overlap.undo[0].starts_with("virsh emulatorpin bigip-virtio 0,2,4,6,8,10,12,14"), "{:?}", overlap.undo);
    let said: Vec<&str> = overlap.evidence.iter().map(|seen| seen.what.as_str()).collect();
    assert!(said.iter().any(|what| what.contains("cost of node 1") && what.contains("-9 to -25 %")), "{said:?}");
    assert!(said.iter().any(|what| what.contains("no waiting times")), "{said:?}");
    let stacked = found(&section, "PLC-STACKED");
    assert!(stacked.evidence[0].what.starts_with("CPU 2: vcpu 1 (ran 98.7 %) and vcpu 8"), "{:?}", stacked.evidence);
    assert!(stacked.evidence[1].what.starts_with("CPU 4: vcpu 2 (ran 96.0 %) and vcpu 9"), "{:?}", stacked.evidence);
    assert_eq!(found(&section, "PLC-SMT").evidence.len(), 5, "four cores, and what is not known");
    assert!(found(&section, "PLC-WORKERS").title.starts_with("8 or 9 vhost workers"));
    let order = found(&section, "EVD-ORDER");
    assert!(
        order.evidence[0].what.contains("1:35.98") && order.evidence[0].what.contains("1:12.12"),
        "{:?}",
        order.evidence
    );
    let mask = found(&section, "EVD-MASK");
    assert!(mask.evidence[..2].iter().all(|seen| seen.what.contains("CPU 1, outside")), "{:?}", mask.evidence);
}

#[test]
fn the_interrupt_theory_is_an_open_explanation_and_no_size_is_predicted() {
    let section = seed();
    let told = format!("{} {:?} {:?} {:?}", section.summary, section.findings, section.unknown, section.tables);
    for wrong in ["Gb/s", "Gbit", "bits/sec"] {
        assert!(!told.contains(wrong), "{wrong} is in the answer");
    }
    for finding in &section.findings {
        let text = format!("{} {:?}", finding.title, finding.evidence).to_lowercase();
        assert!(!text.contains("softirq") && !text.contains("interrupt"), "{}: {text}", finding.rule);
    }
    let left = hypotheses::hypotheses(&models()[0]);
    assert_eq!(left.iter().map(|one| one.id).collect::<Vec<_>>(), ["H1", "H2", "H3", "H4", "H5", "H6"]);
    assert!(left[1].so_far.starts_with("open"), "{}", left[1].so_far);
    assert!(left.iter().all(|one| !one.decides.is_empty()));
    assert!(
        section.unknown.iter().any(|one| one.what == "nic_node")
            && section.unknown.iter().any(|one| one.what == "memory_node")
    );
}

#[test]
fn the_tables_have_the_columns_that_programs_read() {
    let section = seed();
    let names = |table: &str| -> Vec<&str> {
        section.table(table).unwrap().spec.columns.iter().map(|column| column.name).collect()
    };
    assert_eq!(names("threads")[..7], ["machine", "vm", "role", "tid", "cpus", "run_share", "wait_share"]);
    let threads = section.table("threads").unwrap();
    assert!(
        threads.rows().any(|row| row.text("comm").is_some_and(|name| !name.is_empty())),
        "who it is, beside its id"
    );
    assert_eq!(names("cpus")[..5], ["machine", "cpu", "core", "node", "threads"]);
    assert_eq!(names("proposal")[..6], ["machine", "rank", "thread", "cpus", "why", "predicted"]);
    assert_eq!(section.table("threads").unwrap().rows.len(), 19);
    let proposal = section.table("proposal").unwrap();
    let seeds_answer =
        proposal.rows().find(|row| row.text("cpus") == Some("1,3,5,7,9,11,13,15")).expect("among the proposals");
    let command = seeds_answer.text("command").unwrap();
    assert!(command.starts_with("virsh emulatorpin bigip-virtio 1,3,5,7,9,11,13,15"), "{command}");
}

/// One command that frees the helpers comes before the placements that move vCPUs as well and score better.
#[test]
fn the_cheapest_change_that_removes_the_contention_comes_first() {
    let section = seed();
    let first = section.findings.iter().find(|finding| finding.id() == "PLC-PROPOSAL@1").expect("a first placement");
    assert_eq!(first.fix[0], "virsh emulatorpin bigip-virtio 1,3,5,7,9,11,13,15 --live --config");
    assert_eq!(first.undo, ["virsh emulatorpin bigip-virtio 0,2,4,6,8,10,12,14 --live --config"]);
    assert_eq!((first.changes.len(), first.needs), (1, base::Needs::Nothing));
    let plans = section.table("plans").unwrap();
    let plans: Vec<_> = plans.rows().collect();
    let at = |row: usize, column: &str| plans[row].number(column).unwrap();
    assert_eq!(at(0, "commands"), 1.0);
    assert!(at(0, "effect") > at(1, "effect") && at(1, "commands") > 1.0);
    assert!(at(1, "score") < at(0, "score"), "the second brings more, for more commands");
}

/// The seed with the emulator already moved: what is then left to say.
#[test]
fn helpers_apart_are_no_overlap() {
    let notes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/seed-vhost/L0/notes");
    let read = |file: &str| (file.to_owned(), std::fs::read_to_string(notes.join(file)).unwrap());
    let mut texts: Vec<_> = ["2-interfaces.xml", "3-vcpupin.txt", "5-lscpu.txt", "6-top-after.txt"].map(read).into();
    texts.push((
        "after".into(),
        "# virsh emulatorpin bigip-virtio\nemulator: CPU Affinity\n---\n  *: 1,3,5,7,9,11,13,15\n".into(),
    ));
    let model = build::model(base::Level::At(0), "L0", host::paste::read(&texts), true, &Wishes::default());
    let section = section(&[model]);
    assert_eq!(wrong(&section), ["PLC-STACKED", "PLC-SMT"], "the screen of that moment contradicts nothing");
    assert!(section.table("hypotheses").is_none());
}
