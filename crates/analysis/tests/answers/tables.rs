//! Every table of every answer is what its specification says, and every specification keeps the contracts.

use crate::fixtures::{case, fixture};
use base::figure::{Bar, Drawing};
use base::{ColumnType, Section, TableSpec};
use kvmscope_analysis::facts::budget::built_in;
use kvmscope_analysis::{Answers, Given, Listing, compare, tables};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Tables whose rows belong to no machine: they are about a comparison, a model, or a pair of machines.
const OF_NO_MACHINE: &[&str] = &[
    "nesting.flags",
    "datapath.designs",
    "datapath.latency",
    "datapath.rates",
    "datapath.breakeven",
    "datapath.stages",
    "datapath.sensitivity",
    "datapath.memory",
    "datapath.assumptions",
];
const SECTIONS_OF_NO_MACHINE: &[&str] = &["plan", "contention", "compare", "history", "migration", "ablation", "fleet"];

/// Tables of these whose rows belong to a machine all the same.
const OF_A_MACHINE: &[&str] =
    &["compare.threads", "compare.configuration", "compare.placement", "fleet.exit_histograms", "fleet.numbers"];

/// Tables that no bundled recording fills.
const OF_OWN_TESTS: &[&str] = &[
    "channel.delays",
    "channel.faults",
    "channel.flows",
    "channel.setups",
    "compare.dark",
    "counts.counted",
    "datapath.forwarders",
    "compare.placement",
    "datapath.marks",
    "datapath.predicted",
    "datapath.samples",
    "datapath.traffic",
    "history.changes",
    "history.recordings",
    "history.values",
    "live.userspace_exits",
    "live.vms",
    "nesting.programs",
    "nesting.program_runs",
    "nesting.clocks",
    "migration.devices",
    "migration.wakes",
    "migration.saves",
    "migration.compression",
    "migration.looked",
    "migration.memory",
    "migration.prediction",
    "migration.corrected",
    "migration.history",
    "migration.methods",
    "migration.jobs",
    "migration.pace",
    "migration.scans",
    "migration.ways_out",
    "migration.xbzrle",
    "placement.host",
    "placement.preemptors",
    "placement.rivals",
    "realtime.knobs",
    "realtime.ranking",
];

/// Every recording among the fixtures.
fn fixtures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let entries = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.join("recording.json").exists()).collect()
}

/// Checks the tables of an answer, and that no bar is more than all it is a part of; returns the tables' addresses.
fn checked(section: &Section) -> Vec<String> {
    for figure in &section.figures {
        let Drawing::Bars(groups) = &figure.drawing else { continue };
        for group in groups.iter().filter(|group| group.total > 0.0 && !group.has_shares()) {
            let is_part = |bar: &Bar| bar.value <= group.total * (1.0 + 1e-9);
            assert!(group.bars.iter().all(is_part), "{}: {group:?}", figure.id);
        }
    }
    for table in &section.tables {
        let address = table.spec.address();
        assert_eq!(table.spec.section, section.id, "{address}");
        assert!(
            tables().any(|spec| std::ptr::eq(spec, table.spec) || spec == table.spec),
            "{address} is not registered"
        );
        for row in &table.rows {
            assert_eq!(row.len(), table.spec.columns.len(), "{address}");
            for (cell, column) in row.iter().zip(table.spec.columns) {
                assert!(column.kind.takes(cell), "{address}.{}: {cell:?}", column.name);
            }
        }
    }
    let addresses: Vec<String> = section.tables.iter().map(|table| table.spec.address()).collect();
    let unique: BTreeSet<&String> = addresses.iter().collect();
    assert_eq!(unique.len(), addresses.len(), "{addresses:?}");
    addresses
}

#[test]
fn every_table_of_every_fixture_is_as_specified() {
    let mut seen = BTreeSet::new();
    let all = fixtures();
    assert!(all.len() > 10, "{all:?}");
    for path in &all {
        let listing = Listing { all_features: true, ..Listing::default() };
        let given = Given { listing, ..Given::default() };
        let answers = Answers::of(&case(path, given));
        seen.extend(answers.sections.iter().flat_map(checked));
    }
    for [before, after] in [
        ["nested-vmx-shadow-off-hog", "nested-vmx-shadow-on"],
        ["bench-vmx-shadow-off", "bench-vmx-shadow-on"],
        ["kernel-paths", "kernel-paths"],
        ["hog-samples", "hog-samples"],
    ] {
        let judged = || Given { budget: built_in("kvm4nfv-2015"), ..Given::default() };
        let [before, after] = [before, after].map(|name| case(&fixture(name), judged()));
        let answer = compare::answer(&after.compared_with(before)).unwrap().unwrap();
        seen.extend(checked(&answer.section));
    }
    let judged = Given { budget: built_in("kvm4nfv-2015"), ..Given::default() };
    seen.extend(Answers::of(&case(&fixture("migrate-tcg"), judged)).sections.iter().flat_map(checked));
    // Predictions, the netns loop, trials by a budget, programs, starved threads and real time have no fixture; their own tests fill them.
    let unseen: Vec<String> = tables().map(TableSpec::address).filter(|address| !seen.contains(address)).collect();
    let without_fixture = |address: &String| {
        ["plan.", "contention.", "ablation.", "fleet."].iter().any(|section| address.starts_with(section))
            || OF_OWN_TESTS.contains(&address.as_str())
    };
    assert!(unseen.iter().all(without_fixture), "{unseen:?}");
}

#[test]
fn specifications_are_addressed_once_and_name_columns_that_exist() {
    let addresses: Vec<String> = tables().map(TableSpec::address).collect();
    assert_eq!(addresses.iter().collect::<BTreeSet<_>>().len(), addresses.len(), "{addresses:?}");
    for spec in tables() {
        let address = spec.address();
        let names: BTreeSet<&str> = spec.columns.iter().map(|column| column.name).collect();
        assert_eq!(names.len(), spec.columns.len(), "{address} has a column twice");
        assert!(spec.version >= 1 && spec.columns.iter().any(|column| column.key), "{address}");
        assert!(spec.row.ends_with('.') && spec.row.starts_with(char::is_uppercase), "{address}: {}", spec.row);
        let Some(shown) = spec.shown else { continue };
        let named = shown.columns.iter().map(|(name, _)| *name).chain(shown.bar).chain(shown.largest_first);
        for name in named.chain(shown.grouped_by).chain(shown.whole.iter().copied()) {
            assert!(names.contains(name), "{address} shows {name}");
        }
    }
}

#[test]
fn machine_is_the_first_column_of_tables_whose_rows_belong_to_one() {
    for spec in tables() {
        let address = spec.address();
        let is = |list: &[&str]| list.contains(&address.as_str());
        let of_none = is(OF_NO_MACHINE) || SECTIONS_OF_NO_MACHINE.contains(&spec.section) && !is(OF_A_MACHINE);
        let place = spec.column("machine");
        assert_eq!(place, (!of_none).then_some(0), "{address}");
        assert!(place.is_none_or(|place| spec.columns[place].key), "{address}");
    }
}

#[test]
fn units_stand_in_names() {
    for spec in tables() {
        for column in spec.columns {
            let name = format!("{}.{}", spec.address(), column.name);
            assert_eq!(column.name.ends_with("_ns") || column.name == "ns", column.unit == "ns", "{name}");
            assert_eq!(column.name.ends_with("_cycles") || column.name == "cycles", column.unit == "cycles", "{name}");
            assert!(!column.name.ends_with("_share") || column.unit == "share", "{name}");
            assert!(
                column.unit.is_empty()
                    || !matches!(column.kind, ColumnType::Text | ColumnType::Bool | ColumnType::Bytes),
                "{name}"
            );
        }
    }
}

/// CONTRACTS.md, section 3: these columns in this order behind `machine`; later ones are appended.
#[test]
fn tables_of_flow_have_the_columns_of_the_contract() {
    const CONTRACT: &[(&str, &[&str])] = &[
        (
            "flow.vcpus",
            &[
                "vm",
                "vcpu",
                "tid",
                "wall_ns",
                "guest_l1_ns",
                "guest_l2_ns",
                "guest_l3_ns",
                "guest_unknown_level_ns",
                "handling_l1_ns",
                "handling_l2_ns",
                "handling_l3_ns",
                "handling_unknown_level_ns",
                "userspace_ns",
                "irq_ns",
                "softirq_ns",
                "nmi_ns",
                "halt_poll_ns",
                "halted_ns",
                "wake_delay_ns",
                "preempted_ns",
                "blocked_ns",
                "unknown_ns",
                "exits",
                "clipped",
            ],
        ),
        ("flow.exits", &["vm", "vcpu", "level", "reason", "count", "total_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"]),
        ("flow.exit_details", &["vm", "vcpu", "level", "reason", "detail", "count", "total_ns"]),
        (
            "flow.chains",
            &[
                "vm",
                "reason",
                "count",
                "censored",
                "interrupted",
                "exits_p50",
                "exits_p90",
                "exits_p99",
                "exits_mean",
                "total_ns",
            ],
        ),
        ("flow.preemptors", &["vm", "vcpu", "by", "by_tid", "count", "total_ns", "max_ns"]),
        ("flow.losses", &["part", "cpu", "kind", "count", "bytes"]),
    ];
    for (address, columns) in CONTRACT {
        let spec = tables().find(|spec| spec.address() == *address).unwrap();
        let names: Vec<&str> = spec.columns.iter().map(|column| column.name).collect();
        assert_eq!((names[0], &names[1..=columns.len()]), ("machine", *columns), "{address}");
    }
}
