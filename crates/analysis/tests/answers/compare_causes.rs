//! Where a difference comes from, on recordings whose truth others made: tables sum up, and agree with what a report of each says.

use crate::fixtures::{copied, fixture};
use base::recording::Recording;
use base::table::Row;
use base::{Section, Table};
use kvmscope_analysis::{About, Answers, Case, Given};
use std::path::Path;

fn case(path: &Path) -> Case {
    Case::new(kvmscope_analysis::open(Recording::open(path).unwrap()).unwrap(), Given::default())
}

fn compared(before: &Path, after: &Path) -> Section {
    let answers = Answers::about(&case(after).compared_with(case(before)), &[About::Change]);
    assert!(answers.failed.is_empty(), "{:?}", answers.failed);
    answers.sections.into_iter().find(|section| section.id == "compare").unwrap()
}

fn number(row: &Row<'_>, column: &str) -> f64 {
    row.number(column).unwrap_or_else(|| panic!("{column}"))
}

fn row<'t>(table: &'t Table, column: &str, named: &str) -> Row<'t> {
    table.rows().find(|row| row.text(column) == Some(named)).unwrap_or_else(|| panic!("{named}: {table:?}"))
}

/// The first row is the sum of the others, before and after.
fn adds_up(table: &Table, [before, after]: [&str; 2]) {
    for column in [before, after] {
        let all = number(&table.rows().next().unwrap(), column);
        let sum: f64 = table.rows().skip(1).map(|row| number(&row, column)).sum();
        assert!((all - sum).abs() <= 1e-9 * all.abs().max(1.0), "{column}: {all} {sum}");
    }
}

#[test]
fn a_hog_is_named_among_losses_and_shadowing_in_what_each_exit_of_l2_takes() {
    let (off, on) = (fixture("nested-vmx-shadow-off-hog"), fixture("nested-vmx-shadow-on"));
    let section = compared(&off, &on);
    let losses = section.table("losses").unwrap();
    adds_up(losses, ["before", "after"]);
    let hog = row(losses, "cause", "busybox ran instead");
    assert!(number(&hog, "before") > 0.45 && number(&hog, "after") == 0.0, "{losses:?}");
    let each = section.table("per_work").unwrap();
    adds_up(each, ["before_ns", "after_ns"]);
    assert!(each.rows().all(|row| row.text("work") == Some("exit of L2")));
    // The reports of both count the exits.
    for (path, column) in [(&off, "exits_before"), (&on, "exits_after")] {
        let answers = Answers::about(&case(path), &[About::Happened]);
        let flow = answers.sections.iter().find(|section| section.id == "flow").unwrap();
        let exits = |level: &str, reason: Option<&str>| {
            let rows = flow.table("exits").unwrap().rows();
            let of = rows.filter(|row| row.text("level") == Some(level));
            of.filter(|row| reason.is_none_or(|reason| row.text("reason") == Some(reason)))
                .map(|row| number(&row, "count"))
                .sum::<f64>()
        };
        for reason in ["VMREAD", "VMWRITE", "VMRESUME"] {
            let counted = exits("L1", Some(reason)) / exits("L2", None);
            let told = number(&row(each, "part", &format!("{reason} of L1")), column);
            assert!((told - counted).abs() < 1e-9, "{reason} {column}: {told} {counted}");
        }
    }
    // More than twice as much was done in the second run, which is no cause.
    assert!(
        section.summary.contains("The rate of work changed, with the change or by another load: 473 exits of L2 in a second of vCPU time before, 1,064")
    );
    let gone = row(section.table("change").unwrap(), "metric", "L1 VMREAD, exits/s");
    assert_eq!((gone.text("verdict"), number(&gone, "after")), (Some("lower"), 0.0));
}

#[test]
fn the_dark_time_of_a_migration_is_the_sum_of_what_both_sides_did() {
    let logs = fixture("migrate-logs");
    let section = compared(&logs, &logs);
    let dark = section.table("dark").unwrap();
    adds_up(dark, ["before_ns", "after_ns"]);
    assert!(dark.rows().all(|row| number(&row, "difference_ns") == 0.0));
    // By hand, from the lines src-downtime-start of the source's log and dst-precopy-bh-vm-started of the target's.
    assert_eq!(number(&dark.rows().next().unwrap(), "before_ns"), 6_097_000.0);
    assert!(section.summary.contains("The guest was dark for 6.1 ms, 6.1 ms before"), "{}", section.summary);
    let change = section.table("change").unwrap();
    let reported = row(change, "metric", "migration dark as reported, ms");
    assert_eq!((number(&reported, "before"), number(&reported, "ratio")), (2.0, 1.0));
}

#[test]
fn another_placement_has_other_prices_and_the_same_has_none() {
    let (before, place) = (fixture("seed-vhost"), tempfile::tempdir().unwrap());
    let after = place.path().join("after");
    copied(&before, &after);
    assert!(compared(&before, &after).table("placement").is_none(), "nothing was moved");
    let pin = after.join("L0/notes/4-emulatorpin.txt");
    let text = std::fs::read_to_string(&pin).unwrap();
    assert!(text.contains("0,2,4,6,8,10,12,14"));
    std::fs::write(&pin, text.replace("0,2,4,6,8,10,12,14", "1,3,5,7,9,11,13,15")).unwrap();
    let section = compared(&before, &after);
    let prices = section.table("placement").unwrap();
    adds_up(prices, ["before", "after"]);
    let short = row(prices, "price", "CPUs wanted and not got");
    assert!(number(&short, "difference") < -1_000.0 && number(&short, "after") > 0.0, "{prices:?}");
    assert!(section.summary.contains("by our model"), "{}", section.summary);
}
