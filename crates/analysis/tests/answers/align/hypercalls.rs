//! Hypercalls of a guest of the guest, which are reflected: told apart by their places, else by their times.

use super::generated::{aligned_but, methods, score};
use generate::guest::pair;
use generate::scenario::Scenario;
use generate::{Generation, GuestClock, Pair, Vendor};
use kvmscope_analysis::facts::align::pairing::By;
use kvmscope_analysis::facts::align::{Alignment, Map};
use kvmscope_analysis::facts::{Isa, Reason};

fn told(name: &str, vendor: Vendor, seed: u64, clock: GuestClock) -> Pair {
    let story = Scenario::named(name).unwrap().run_on(vendor, Generation::V6_12, seed).unwrap();
    pair(&story, &clock, seed)
}

/// The pair as a guest recorded it that began later and ended earlier.
fn shorter(pair: &Pair) -> Pair {
    let kept = pair.true_ns.len() / 5..pair.true_ns.len() * 4 / 5;
    let mut short = pair.clone();
    short.above.records = pair.above.records[kept.clone()].to_vec();
    short.true_ns = pair.true_ns[kept].to_vec();
    short
}

fn aligned(pair: &Pair) -> Alignment {
    // No MSR may help: nothing but the hypercalls is to tell.
    aligned_but(&pair.below, &pair.above, None, &["write_msr", "read_msr", "local_timer_entry"])
}

fn cases() -> impl Iterator<Item = (Vendor, u64, i64)> {
    let seeds = |vendor| (1..8).map(move |seed: u64| (vendor, seed, (seed as i64 - 4) * 90_000));
    [Vendor::Vmx, Vendor::Svm].into_iter().flat_map(seeds)
}

/// How many exits are matched, all of them right, and how many of these are hypercalls.
fn matched(alignment: &Alignment, pair: &Pair) -> (usize, usize) {
    let cpu = &alignment.cpus[0];
    let (isa, code) = if pair.below.vendor == Vendor::Vmx { (Isa::Vmx, 18) } else { (Isa::Svm, 0x81) };
    let calls = cpu.common.iter().filter(|(low, _)| cpu.vcpu.reflected[*low].reason == Reason::of(isa, code));
    let calls = calls.count();
    let exit = pair.above.schema.events.iter().position(|event| event.name == "kvm_exit").unwrap();
    let records = pair.above.records.iter().zip(&pair.true_ns).filter(|(record, _)| record.event == exit);
    let true_ns: Vec<u64> = records.map(|(_, true_ns)| *true_ns).collect();
    for (low, high) in &cpu.common {
        let handed = cpu.vcpu.reflected.get(*low).unwrap().at;
        let next = cpu.vcpu.reflected.get(low + 1).map_or(u64::MAX, |next| next.at);
        assert!((handed..next).contains(&true_ns[*high]), "exit {high} is not the one reflected at {handed}");
    }
    (cpu.common.len(), calls)
}

#[test]
fn hypercalls_that_are_handed_up_are_matched_as_other_exits_are() {
    for (vendor, seed, drift_ppb) in cases() {
        let clock = GuestClock { offset: -31_000_000_000, drift_ppb, ..GuestClock::default() };
        let pair = shorter(&told("hypercalls", vendor, seed, clock));
        let alignment = aligned(&pair);
        assert_eq!(methods(&alignment), ["causal_lines"], "{vendor:?} {seed}");
        let (wrong, placed, worst_ns) = score(&pair, &alignment);
        assert_eq!((wrong.as_slice(), placed), (&[][..], pair.true_ns.len()), "{vendor:?} {seed}");
        assert!(worst_ns < 20_000.0, "{vendor:?} {seed}: {worst_ns} ns");
        let (exits, calls) = matched(&alignment, &pair);
        assert_eq!(exits, alignment.cpus[0].own.exits.len());
        assert!(calls > 80, "{vendor:?} {seed}: {calls} hypercalls");
    }
}

#[test]
fn hypercalls_from_one_place_are_told_apart_by_their_times() {
    for (vendor, seed, drift_ppb) in cases() {
        let clock = GuestClock { offset: -31_000_000_000, drift_ppb, ..GuestClock::default() };
        let pair = shorter(&told("hypercall-loop", vendor, seed, clock));
        let alignment = aligned(&pair);
        let cpu = &alignment.cpus[0];
        assert!(cpu.paired_by == By::Number, "{vendor:?} {seed}: no stretch of them occurs once");
        assert_eq!(methods(&alignment), ["causal_lines"], "{vendor:?} {seed}");
        let Some(Map::Lines(lines)) = &cpu.map else { panic!("{vendor:?} {seed}") };
        let (flat, steep) = lines.slopes();
        let slope = 1.0 / (1.0 + drift_ppb as f64 * 1e-9);
        assert!((flat..=steep).contains(&slope), "{slope} not in {flat} to {steep}");
        let (wrong, placed, worst_ns) = score(&pair, &alignment);
        assert_eq!((wrong.as_slice(), placed), (&[][..], pair.true_ns.len()), "{vendor:?} {seed}");
        assert!(worst_ns < 20_000.0, "{vendor:?} {seed}: {worst_ns} ns");
        let (exits, calls) = matched(&alignment, &pair);
        assert!(exits + 3 > cpu.own.exits.len() && calls > 80, "{vendor:?} {seed}: {exits} of {}", cpu.own.exits.len());
        assert_eq!(cpu.outside.violations, 0);
    }
}

#[test]
fn hypercalls_of_another_run_fit_nowhere() {
    for (vendor, seed, _) in cases() {
        let clock = GuestClock { offset: 7_000_000, ..GuestClock::default() };
        let [one, other] = [seed, seed + 100].map(|seed| told("hypercall-loop", vendor, seed, clock));
        let mixed = Pair { below: one.below, ..shorter(&other) };
        let alignment = aligned(&mixed);
        assert_eq!((methods(&alignment), alignment.cpus[0].common.len()), (vec!["none"], 0), "{vendor:?} {seed}");
    }
}
