//! Offsets and ratios that no event tells: from debugfs, or from causes and effects.

use super::generated::{aligned_with, input, methods, nested, on_tsc, score, story};
use base::recording::{TscReading, TscReadings, TscScaling};
use generate::guest::pair;
use generate::{GuestClock, Pair};
use kvmscope_analysis::facts::align::causes::Causes;
use kvmscope_analysis::facts::align::compose::compose;
use kvmscope_analysis::facts::align::{self, Map, place};
use kvmscope_analysis::facts::ledger::build;
use kvmscope_analysis::{Given, TraceHints};

const SCENARIOS: [&str; 3] = ["svm-no-vls-vgif", "vmx-no-shadowing", "l2-moves"];
const OFFSET: i64 = -60_000_000_000;
/// 3/4, 5/4 and 1, as AMD's processors have them.
const RATIOS: [u64; 3] = [3 << 30, 5 << 30, 1 << 32];

fn scenarios() -> impl Iterator<Item = (u64, &'static str, u64)> {
    let ratios = |(seed, name)| RATIOS.map(|ratio| (seed, name, ratio));
    (1..4).flat_map(|seed| SCENARIOS.map(|name| (seed, name))).flat_map(ratios)
}

/// What debugfs says of every vCPU of a guest.
fn readings(pair: &Pair, offset: i64, ratio: u64) -> Vec<TscReading> {
    let scaling = (ratio > 0).then_some(TscScaling { ratio, frac_bits: 32 });
    let of = |vcpu: &generate::truth::VcpuTruth| TscReading {
        pid: 1,
        vcpu: vcpu.vcpu,
        tid: Some(vcpu.tid),
        offset: Some(offset),
        scaling,
        is_own: true,
        error_ticks: None,
    };
    pair.below.truth.vcpus.iter().map(of).collect()
}

#[test]
fn debugfs_tells_offset_and_ratio_of_a_guest_that_ran_before() {
    for (seed, name, ratio) in scenarios() {
        let clock = GuestClock { offset: OFFSET, ratio, ..GuestClock::default() };
        let pair = on_tsc(&pair(&story(name, seed), &clock, seed));
        let first = readings(&pair, OFFSET, ratio);
        let tsc = TscReadings { last: first.clone(), first };
        let alignment = aligned_with(&pair.below, &pair.above, Some(tsc));
        assert!(methods(&alignment).iter().all(|method| *method == "tsc_offset"), "{name}: {:?}", methods(&alignment));
        let (wrong, placed, worst_ns) = score(&pair, &alignment);
        assert_eq!((wrong.as_slice(), placed), (&[][..], pair.true_ns.len()), "{name} {seed} {ratio}");
        assert!(worst_ns <= 4.0, "{name}: {worst_ns} ns by rounding");
        for cpu in &alignment.cpus {
            assert!(matches!(&cpu.map, Some(Map::Offsets(offsets, _)) if offsets.is_held));
            assert_eq!(cpu.told_ratio(), Some((ratio as f64 / 2f64.powi(32), "debugfs")));
            assert_eq!((cpu.common.len(), cpu.outside.violations), (cpu.own.exits.len(), 0), "{name}");
        }
    }
}

#[test]
fn writes_with_a_ratio_from_debugfs_are_exact() {
    for (seed, name, ratio) in scenarios() {
        let clock = GuestClock { offset: OFFSET, ratio, written: true, ..GuestClock::default() };
        let pair = on_tsc(&pair(&story(name, seed), &clock, seed));
        // The offset in force when it was read is not needed: all writes are there.
        let first = readings(&pair, OFFSET - 5, ratio);
        let alignment = aligned_with(&pair.below, &pair.above, Some(TscReadings { first, last: Vec::new() }));
        let (wrong, placed, worst_ns) = score(&pair, &alignment);
        assert_eq!((wrong.as_slice(), placed), (&[][..], pair.true_ns.len()), "{name} {seed} {ratio}");
        assert!(worst_ns <= 4.0 && methods(&alignment)[0] == "tsc_offset", "{name}: {worst_ns} ns");
    }
}

#[test]
fn an_offset_that_changed_unseen_is_not_used() {
    let clock = GuestClock { offset: OFFSET, ..GuestClock::default() };
    let pair = on_tsc(&pair(&story("vmx-no-shadowing", 1), &clock, 1));
    let (first, last) = (readings(&pair, OFFSET, 0), readings(&pair, OFFSET + 7, 0));
    let alignment = aligned_with(&pair.below, &pair.above, Some(TscReadings { first, last }));
    assert!(alignment.cpus.iter().all(|cpu| cpu.counter.changed));
    assert!(methods(&alignment).iter().all(|method| *method == "causal_lines"), "{:?}", methods(&alignment));
    assert!(score(&pair, &alignment).0.is_empty());
}

#[test]
fn a_ratio_that_nothing_tells_is_found_from_causes_and_effects() {
    let (mut found, mut vcpus) = (0, 0);
    for (seed, name, ratio) in scenarios() {
        for written in [true, false] {
            let clock = GuestClock { offset: OFFSET, ratio, written, ..GuestClock::default() };
            let pair = on_tsc(&pair(&story(name, seed), &clock, seed));
            let alignment = aligned_with(&pair.below, &pair.above, None);
            let (wrong, ..) = score(&pair, &alignment);
            assert!(wrong.is_empty(), "{name} {seed} {ratio} {written}: {:?} {wrong:?}", methods(&alignment));
            let truth = ratio as f64 / 2f64.powi(32);
            let told = alignment.cpus.iter().filter_map(|cpu| cpu.untold_ratio());
            let told: Vec<f64> = told.inspect(|told| assert!((told / truth - 1.0).abs() < 0.1, "{told}")).collect();
            assert!(truth != 1.0 || told.is_empty(), "{name} {seed}: {told:?}");
            (found, vcpus) = (found + told.len(), vcpus + usize::from(truth != 1.0) * alignment.cpus.len());
        }
    }
    assert!(found == vcpus, "{found} of {vcpus}");
}

/// What L2 reads: `kvm_calc_nested_tsc_multiplier` and `kvm_calc_nested_tsc_offset` in arch/x86/kvm/x86.c, Linux 6.12.
fn nested_counter(host: u64, [(ratio01, offset01), (ratio12, offset12)]: [(u64, i64); 2]) -> u64 {
    let ratio02 = ((u128::from(ratio01) * u128::from(ratio12)) >> 32) as u64;
    // Rounded towards zero: `mul_s64_u64_shr` in include/linux/math64.h.
    let offset02 = (i128::from(offset01) * i128::from(ratio12) / (1 << 32)) as i64 + offset12;
    (((u128::from(host) * u128::from(ratio02)) >> 32) as u64).wrapping_add_signed(offset02)
}

#[test]
fn ratios_of_a_guest_and_its_guest_are_composed_as_kvm_does() {
    // Ratios that no binary fraction is: rounding each level by itself would be off by a dozen ticks.
    let levels = [(0x1_5555_5555, OFFSET), (0xb333_3333, -15_000_000_000)];
    let clock = GuestClock { offset: OFFSET, ratio: levels[0].0, ..GuestClock::default() };
    let pair = on_tsc(&pair(&story("vmx-no-shadowing", 5), &clock, 5));
    let (mut deep, middle) = nested(&pair, 0);
    for (record, (true_ns, _)) in deep.records.iter_mut().zip(&pair.nested) {
        record.ticks = nested_counter(*true_ns, levels);
    }
    let directory = tempfile::tempdir().unwrap();
    // The middle machine's file must not tell of an offset: debugfs does.
    let write = middle.schema.events.len() - 1;
    let mut middle = middle;
    middle.records.retain(|record| record.event != write);
    let stories = [&pair.below, &middle, &deep].map(|story| story.on_tsc(1_000_000_000, true));
    let mut input = input(directory.path(), &stories.each_ref());
    let first = readings(&pair, levels[0].1, levels[0].0);
    let scaling = Some(TscScaling { ratio: levels[1].0, frac_bits: 32 });
    let of_l2 =
        TscReading { pid: 9, vcpu: 0, tid: None, offset: Some(levels[1].1), scaling, is_own: true, error_ticks: None };
    input.parts[0].tsc = Some(TscReadings { last: first.clone(), first });
    input.parts[1].tsc = Some(TscReadings { first: vec![of_l2.clone()], last: vec![of_l2] });
    let flow = build::build(&input, &Given::default(), &mut |_, _| {});
    let [lower, upper] = [1, 2].map(|place| &flow.parts[place].aligned.as_ref().unwrap().alignment);
    assert_eq!((methods(lower), methods(upper)), (vec!["tsc_offset"], vec!["tsc_offset"]));
    let mut worst = 0;
    for (record, (true_ns, _)) in deep.records.iter().zip(&pair.nested) {
        let placed = compose(lower, upper, 0, record.ticks).unwrap();
        assert!((placed.low..=placed.high).contains(true_ns), "{placed:?}, true {true_ns}");
        worst = worst.max(placed.error());
    }
    assert!(worst <= 8, "{worst} ns by rounding at both levels");
}

#[test]
fn an_emulated_counter_whose_rate_changes_is_placed_by_its_largest_drift() {
    let mut missed = 0;
    let bends = [2_000_000, 5_000_000, 12_000_000];
    for ((seed, name, _), bend_ppb) in scenarios().zip(bends.into_iter().cycle()) {
        let story = story(name, seed);
        // From so much too slow to so much too fast.
        let (drift_ppb, wall_ns) = (-bend_ppb / 2, story.truth.wall_ns() as i64);
        let bend_ppb_per_ms = bend_ppb * 1_000_000 / wall_ns;
        let clock = GuestClock { offset: OFFSET, drift_ppb, bend_ppb_per_ms, ..GuestClock::default() };
        let pair = on_tsc(&pair(&story, &clock, seed));
        let directory = tempfile::tempdir().unwrap();
        let mut input = input(directory.path(), &[&pair.below, &pair.above]);
        let clocks = [0, 1].map(|place| input.parts[place].trace.facts().clock.clone());
        input.parts.iter_mut().for_each(|part| part.emulated = true);
        let [below, above] = [0, 1].map(|place| (&input.parts[place], &clocks[place]));
        // Nobody recorded what KVM wrote.
        let given = Given {
            traces: TraceHints { ignore_events: vec!["kvm_write_tsc_offset".to_owned()], ..TraceHints::default() },
            ..Given::default()
        };
        let alignment = align::align(below, above, &given.traces.ignore_events, None, &|_| Some("L1".to_owned()));
        assert!(
            methods(&alignment).iter().all(|method| *method == "causal_drift"),
            "{name}: {:?}",
            methods(&alignment)
        );
        let (wrong, placed, worst_ns) = score(&pair, &alignment);
        assert_eq!((wrong.as_slice(), placed), (&[][..], pair.true_ns.len()), "{name} {seed}");
        assert!(worst_ns < 60_000.0, "{name} {seed}: {worst_ns} ns");
        // One line of any slope obeys all that causes say, and is wrong.
        for cpu in &alignment.cpus {
            let (common, accesses) = (&cpu.common, &cpu.accesses);
            let causes = Causes { vcpu: &cpu.vcpu, own: &cpu.own, common, accesses, slack: 0 };
            let Some(line) = place::scaled(&causes.exits()) else { continue };
            let records = pair.above.records.iter().zip(&pair.true_ns).filter(|(record, _)| record.cpu == cpu.cpu);
            let places = records.filter_map(|(record, true_ns)| Some((line.place(record.ticks)?, *true_ns)));
            missed += places.filter(|(found, true_ns)| !(found.low..=found.high).contains(true_ns)).count();
        }
    }
    assert!(missed > 0, "a line would have done");
}
