//! The stages of interrupts inside of a guest, whose handlers lie where they are known to.

use super::generated::{input, on_tsc, story};
use generate::guest::pair;
use generate::{GuestClock, Pair, Story};
use kvmscope_analysis::facts::ledger::build;
use kvmscope_analysis::facts::stages::sums::InterruptSums;
use kvmscope_analysis::facts::stages::{IrqStage, TimerStage};
use kvmscope_analysis::{Given, Input};
use std::collections::BTreeMap;

/// Time and a field of each event `name` of a story.
fn events(story: &Story, name: &str, field: &str) -> Vec<(u64, u64)> {
    let event = story.schema.events.iter().position(|event| event.name == name).unwrap();
    let at = story.schema.events[event].fields.iter().position(|known| known.name == field);
    let told = story.records.iter().filter(|record| record.event == event);
    told.map(|record| (record.ticks, at.map_or(0, |at| record.value(at).integer()))).collect()
}

/// The guest's events `name` on the clock below, with a field.
fn placed(pair: &Pair, name: &str, field: &str) -> Vec<(u64, u64)> {
    let true_ns: BTreeMap<u64, u64> =
        pair.above.records.iter().map(|record| record.ticks).zip(pair.true_ns.iter().copied()).collect();
    events(&pair.above, name, field).into_iter().map(|(ticks, value)| (true_ns[&ticks], value)).collect()
}

/// Lengths by vector, of the handlers and of the timers in them, and of the tasks that these woke.
type Lengths = BTreeMap<u8, Vec<u64>>;

fn expected(pair: &Pair) -> (Lengths, Lengths, Lengths) {
    let (entries, injections) = (events(&pair.below, "kvm_entry", ""), events(&pair.below, "kvm_inj_virq", "vector"));
    let again: BTreeMap<u64, u64> = events(&pair.below, "kvm_inj_virq", "reinjected").into_iter().collect();
    let timers = placed(pair, "hrtimer_expire_entry", "");
    let runs = placed(pair, "sched_switch", "next_pid");
    let (mut handlers, mut expiries, mut threads) = (Lengths::new(), Lengths::new(), Lengths::new());
    for (at, vector) in placed(pair, "local_timer_entry", "vector") {
        let of_vector = || injections.iter().filter(|(_, other)| *other == vector);
        let (injected, _) = of_vector().rfind(|(injected, _)| *injected < at).unwrap();
        let (entered, _) = entries.iter().find(|(entered, _)| entered > injected).unwrap();
        // Cut short: the handler that counts is the one behind the last of its entries.
        if of_vector().find(|(injected, _)| *injected > at).is_some_and(|(next, _)| again[next] != 0) {
            continue;
        }
        handlers.entry(vector as u8).or_default().push(at - entered);
        if vector == 0xec {
            let (expired, _) = timers.iter().find(|(expired, _)| *expired >= at).unwrap();
            let (ran, _) = runs.iter().find(|(ran, _)| ran >= expired).unwrap();
            expiries.entry(vector as u8).or_default().push(expired - entered);
            threads.entry(vector as u8).or_default().push(ran - expired);
        }
    }
    (handlers, expiries, threads)
}

#[test]
fn what_a_guests_own_trace_adds_is_true() {
    for seed in 1..4 {
        let clock = GuestClock { offset: -60_000_000_000, written: true, ..GuestClock::default() };
        let pair = on_tsc(&pair(&story("interrupt-paths", seed), &clock, seed));
        let directory = tempfile::tempdir().unwrap();
        let input: Input = input(directory.path(), &[&pair.below, &pair.above]);
        let flow = build::build(&input, &Given::default(), &mut |_, _| {});
        let (handlers, expiries, threads) = expected(&pair);
        assert!(handlers.len() >= 3 && threads[&0xec].len() > 10);
        let sums = &flow.parts[0].vcpus[0].sums.interrupts;
        for (vector, sums) in sums.iter() {
            let check = |what: &str, expected: &Lengths, found: &base::Histogram| {
                let mut expected = expected.get(&vector.0).cloned().unwrap_or_default();
                expected.sort_unstable();
                assert_eq!(found.count(), expected.len() as u64, "{seed}: {what} of vector {}", vector.0);
                if let Some(longest) = expected.last() {
                    assert!(found.max().abs_diff(*longest) <= 2, "{seed}: {what}: {} and {longest}", found.max());
                    let mean = expected.iter().sum::<u64>() as f64 / expected.len() as f64;
                    assert!((found.mean().unwrap() - mean).abs() <= 2.0, "{seed}: {what}");
                }
            };
            let InterruptSums { clock_error_ns, .. } = sums;
            assert!(*clock_error_ns <= 3, "{clock_error_ns} ns");
            check("handler", &handlers, sums.irq(IrqStage::Guest));
            check("timer", &expiries, sums.timer(TimerStage::Guest));
            check("thread", &threads, sums.timer(TimerStage::Thread));
        }
    }
}
