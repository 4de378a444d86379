//! Differences of time whose causes are known.

use super::*;
use base::Cell;
use std::collections::BTreeMap;

const SHADOWING: &str = "kvm_intel.enable_shadow_vmcs";

/// A recording: the guest's own code, VMREAD of L1 so often a second at 2 us each, and CPUID of L2.
fn recording(guest: f64, vmreads_per_s: f64, cpuid: f64) -> Parts {
    let exits = |share: f64, per_s: f64| Spent { amount: share, often: Some(per_s) };
    let parts = [
        (Component::new("guest_l2", "L2 guest", ""), Spent { amount: guest, often: None }),
        (Component::new("handling_l1", "L0 working for L1", "VMREAD"), exits(vmreads_per_s * 2e-6, vmreads_per_s)),
        (Component::new("handling_l2", "L0 working for L2", "CPUID"), exits(cpuid, 1_000.0)),
    ];
    Parts { parts: parts.into_iter().collect() }
}

fn shadowing(before: &str, after: &str) -> Difference {
    Difference {
        machine: "L0".into(),
        level: Some(0),
        area: "module",
        setting: SHADOWING.into(),
        before: Some(before.into()),
        after: Some(after.into()),
        is_of_both: true,
        place: format!("sys/module/kvm_intel/parameters/{SHADOWING}"),
    }
}

#[test]
fn all_is_the_sum_of_its_parts_and_each_part_that_of_how_often_and_how_long() {
    let (one, two) = ([recording(0.30, 140_000.0, 0.05)], [recording(0.32, 10_000.0, 0.02)]);
    let causes = between(Measured::Busy, &one, &two, &[shadowing("N", "Y")]);
    let sum: f64 = causes.list.iter().map(Cause::difference).sum();
    assert!((sum - causes.all.difference()).abs() < 1e-12);
    assert!((causes.all.difference() - (0.02 - 0.26 - 0.03)).abs() < 1e-12);
    for cause in causes.list.iter().filter(|cause| cause.before.often.is_some()) {
        let (by_rate, by_cost) = cause.parted().unwrap();
        assert!((by_rate + by_cost - cause.difference()).abs() < 1e-12, "{cause:?}");
    }
    let part = |name: &str| causes.list.iter().find(|cause| cause.part == name).unwrap();
    let (by_rate, by_cost) = part("VMREAD of L1").parted().unwrap();
    assert!((by_rate + 0.26).abs() < 1e-12 && by_cost.abs() < 1e-12, "as long as before, less often");
    let (by_rate, by_cost) = part("CPUID of L2").parted().unwrap();
    assert!(by_rate.abs() < 1e-12 && (by_cost + 0.03).abs() < 1e-12, "as often as before, shorter");
}

#[test]
fn a_setting_explains_the_exits_that_it_moves_and_the_rest_stays_unexplained() {
    let (one, two) = ([recording(0.30, 140_000.0, 0.05)], [recording(0.32, 10_000.0, 0.02)]);
    let said = between(Measured::Busy, &one, &two, &[shadowing("N", "Y")]).sentence();
    assert_eq!(
        said,
        "vCPUs were busy 36.0 % of their time, 63.0 % before (-27.0 points): -26.0 points from VMREAD of L1 (140,000 exits/s before, 10,000 after), \
         possible cause: kvm_intel.enable_shadow_vmcs of L0 (N before, Y after); -1.0 points unexplained by what was set up differently."
    );
    let other = Difference { setting: "vm.swappiness".into(), ..shadowing("60", "10") };
    let said = between(Measured::Busy, &one, &two, &[other]).sentence();
    assert!(!said.contains("swappiness") && said.contains("-26.0 points from VMREAD of L1"), "{said}");
    // The same module of a guest that runs guests of its own moves exits one level higher.
    let of_l1 = Difference { machine: "L1".into(), level: Some(1), ..shadowing("N", "Y") };
    assert!(between(Measured::Busy, &one, &two, &[of_l1]).list.iter().all(|cause| cause.setting.is_none()));
}

#[test]
fn of_several_recordings_what_differs_within_a_side_is_no_cause() {
    let side = |vmreads: [f64; 3]| vmreads.map(|vmreads| recording(0.3, vmreads, 0.05));
    let noisy = between(
        Measured::Busy,
        &side([100_000.0, 20_000.0, 60_000.0]),
        &side([90_000.0, 30_000.0, 70_000.0]),
        &[shadowing("N", "Y")],
    );
    let vmread = noisy.list.iter().find(|cause| cause.part == "VMREAD of L1").unwrap();
    assert_eq!(vmread.holds, Some(false));
    assert!(!noisy.sentence().contains("possible cause"), "{}", noisy.sentence());
    let clear = between(
        Measured::Busy,
        &side([140_000.0, 141_000.0, 139_000.0]),
        &side([10_000.0, 11_000.0, 9_000.0]),
        &[shadowing("N", "Y")],
    );
    let vmread = clear.list.iter().find(|cause| cause.part == "VMREAD of L1").unwrap();
    assert_eq!(vmread.holds, Some(true));
    let (low, high) = vmread.interval.unwrap();
    assert!(low < -0.26 && -0.26 < high && high < -0.2);
}

#[test]
fn one_recording_a_side_has_no_verdict() {
    let causes = between(Measured::Busy, &[recording(0.3, 1_000.0, 0.1)], &[recording(0.3, 2_000.0, 0.1)], &[]);
    let table = tables::table(&[causes]).unwrap();
    assert_eq!(table.cell(0, "part"), Some(&Cell::from("all")));
    assert_eq!(table.cell(0, "verdict"), Some(&Cell::from("one run a side")));
    assert_eq!(table.cell(0, "low"), Some(&Cell::Missing));
}

#[test]
fn the_same_work_at_another_rate_is_no_difference_of_what_each_unit_takes() {
    // Twice the load: everything twice as often, and each request as long as before.
    let busy = |parts: Parts, per_s: f64| Busy { parts, work: BTreeMap::from([("request".to_owned(), per_s)]) };
    let twice = Parts { parts: recording(0.2, 10_000.0, 0.04).parts.into_iter().collect() };
    let twice = Parts {
        parts: twice
            .parts
            .into_iter()
            .map(|(part, spent)| {
                (part, Spent { amount: spent.amount * 2.0, often: spent.often.map(|often| often * 2.0) })
            })
            .collect(),
    };
    let told = per_work(&[busy(recording(0.2, 10_000.0, 0.04), 500.0)], &[busy(twice, 1_000.0)], &[]);
    let [(load, each)] = &told[..] else { panic!("{told:?}") };
    assert_eq!(
        load,
        "The rate of work changed, with the change or by another load: 500 requests in a second of vCPU time before, 1,000 after. "
    );
    assert!(each.all.difference().abs() < 1e-6, "{each:?}");
    assert_eq!(each.sentence(), "Each request takes 520.0 us of vCPU time, 520.0 us before (0 ns).");
    // Half of the VMREADs of each request are gone: 10 of 20, 2 us each.
    let told = per_work(
        &[busy(recording(0.2, 10_000.0, 0.04), 500.0)],
        &[busy(recording(0.2, 5_000.0, 0.04), 500.0)],
        &[shadowing("N", "Y")],
    );
    let [(load, each)] = &told[..] else { panic!("{told:?}") };
    let vmread = each.list.iter().find(|cause| cause.part == "VMREAD of L1").unwrap();
    let (by_rate, by_cost) = vmread.parted().unwrap();
    assert!((by_rate + 20_000.0).abs() < 1e-6 && by_cost.abs() < 1e-6 && load.is_empty(), "{each:?}");
    let table = tables::table(std::slice::from_ref(each)).unwrap();
    let row = table.rows().find(|row| row.text("part") == Some("VMREAD of L1")).unwrap();
    let number = |name: &str| row.number(name).unwrap().round();
    assert_eq!((row.text("work"), number("before_ns"), number("after_ns")), (Some("request"), 40_000.0, 20_000.0));
    assert_eq!((number("exits_before"), number("exits_after"), number("cost_after_ns")), (20.0, 10.0, 2_000.0));
}

#[test]
fn what_the_host_no_longer_takes_is_put_down_to_where_threads_may_run() {
    let lost = |hog: f64, times: f64| Parts {
        parts: [(
            Component::lost("preempted", "stress-ng ran instead".into()),
            Spent { amount: hog, often: Some(times) },
        )]
        .into(),
    };
    let moved = Difference { area: "placement", setting: "web vcpu 0".into(), ..shadowing("CPUs 0-3", "CPUs 2") };
    let causes = between(Measured::Lost, &[lost(0.48, 250.0)], &[lost(0.02, 10.0)], &[moved]);
    assert_eq!(
        causes.sentence(),
        "The host took 2.0 % of the vCPUs' time, 48.0 % before (-46.0 points): -46.0 points from stress-ng ran instead (250 times/s before, 10 after), \
         possible cause: web vcpu 0 of L0 (CPUs 0-3 before, CPUs 2 after); 0.0 points unexplained by what was set up differently."
    );
    assert!(
        between(Measured::Lost, &[lost(0.48, 250.0)], &[lost(0.02, 10.0)], &[shadowing("N", "Y")]).list[0]
            .setting
            .is_none()
    );
}

#[test]
fn equals_are_claimed_to_differ_in_at_most_one_comparison_of_twenty() {
    const TRIALS: usize = 400;
    let mut random = facts::statistics::spread::Random::seeded();
    // Sums of twelve are normal: off by 5 % each.
    let mut noisy = |value: f64| {
        let normal: f64 = (0..12).map(|_| random.below(1_000_000) as f64 / 1e6).sum::<f64>() - 6.0;
        value * (1.0 + 0.05 * normal)
    };
    let mut side = || -> Vec<Parts> { (0..4).map(|_| recording(noisy(0.3), noisy(60_000.0), noisy(0.1))).collect() };
    let claims = (0..TRIALS).filter(|_| {
        let (one, two) = (side(), side());
        between(Measured::Busy, &one, &two, &[]).list.iter().any(|cause| cause.holds == Some(true))
    });
    // 20 of 400 are expected at most; 3.3 deviations more are 34.
    let claims = claims.count();
    assert!(claims <= 34, "{claims}");
}

#[test]
fn steps_of_a_whole_stay_within_it_and_others_come_by_size() {
    let (one, two) = ([recording(0.60, 150_000.0, 0.05)], [recording(0.90, 10_000.0, 0.05)]);
    let drawn = |measured| {
        let figure = figures::staircase(&between(measured, &one, &two, &[]), "causes".into()).unwrap();
        let base::figure::Drawing::Spans(groups) = figure.drawing else { panic!("{}", figure.title) };
        let labels: Vec<String> = groups[0].rows.iter().map(|row| row.label.clone()).collect();
        (labels, groups[0].scale(&groups).to)
    };
    let (labels, ends) = drawn(Measured::Busy);
    assert_eq!(labels, ["before", "VMREAD of L1", "L2 guest", "after"]);
    assert_eq!(ends, 1.0, "95 % and 30 points more would end at 120 %");
    let (labels, _) = drawn(Measured::PerWork("exit of L2".into()));
    assert_eq!(labels, ["before", "L2 guest", "VMREAD of L1", "after"]);
}
