//! What holds for every recording.

use super::{Ftrace, case, fixture, golden, us};
use base::Span;
use kvmscope_analysis::Given;
use kvmscope_analysis::facts::losses::{Definition, Limit, LostIn, Stretches, VcpuLosses};

#[test]
fn every_cause_in_every_fixture_sums_to_the_states_of_the_ledger() {
    let states = [
        (LostIn::Preempted, kvmscope_analysis::facts::State::Preempted),
        (LostIn::Irq, kvmscope_analysis::facts::State::Irq),
        (LostIn::Softirq, kvmscope_analysis::facts::State::Softirq),
        (LostIn::Nmi, kvmscope_analysis::facts::State::Nmi),
        (LostIn::WakeDelay, kvmscope_analysis::facts::State::WakeDelay),
        (LostIn::Blocked, kvmscope_analysis::facts::State::Blocked),
    ];
    for name in [
        "nested-svm-toy",
        "nested-vmx-shadow-off-hog",
        "nested-vmx-shadow-on",
        "svm-linux",
        "lttng-svm-l0",
        "vmx-linux-shadow-off",
        "two-tracers",
    ] {
        let case = case(&fixture(name), Given::default());
        // Elsewhere threads do other things before they run a guest, and behind that: the ledger has them, and no guest lost them.
        let runs_throughout = name.contains("-linux");
        for (part, losses) in case.ledger().parts.iter().zip(case.losses()) {
            assert_eq!(part.vcpus.len(), losses.vcpus.len(), "{name}");
            for (vcpu, losses) in part.vcpus.iter().zip(&losses.vcpus) {
                let culprits = losses.lost.culprits();
                for (state, of_ledger) in states {
                    let of_state = culprits.iter().filter(|(cause, _)| cause.state == state);
                    let ns: u64 = of_state.map(|(_, sums)| sums.total_ns).sum();
                    let ledger_ns = vcpu.sums.ns(of_ledger);
                    assert!(
                        ns == ledger_ns || (!runs_throughout || state == LostIn::Blocked) && ns < ledger_ns,
                        "{name}: {} {state:?}: {ns}, {ledger_ns}",
                        vcpu.tid
                    );
                }
                // One life of its guest; a thread may show that it runs a vCPU somewhat before it runs one.
                let (of_losses_ns, of_ledger_ns) = (losses.outside_ns, vcpu.sums.outside_ns());
                let early_ns = of_ledger_ns.checked_sub(of_losses_ns);
                assert!(early_ns.is_some_and(|ns| ns < 1_000_000), "{name}: {of_losses_ns}, {of_ledger_ns}");
                let total_ns: u64 = culprits.iter().map(|(_, sums)| sums.total_ns).sum();
                let lost = losses.stretches(Definition::Involuntary);
                assert_eq!(
                    (total_ns, losses.lost.total_ns()),
                    (lost.total_ns(), lost.total_ns()),
                    "{name}: pieces overlap"
                );
                laws_hold(&lost, losses);
            }
        }
    }
}

/// What no recording may break.
fn laws_hold(lost: &Stretches, losses: &VcpuLosses) {
    let mut last = (0, 0);
    for window_ns in [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000] {
        let Some(worst) = lost.sup(losses.span, window_ns) else { continue };
        let high = losses.at_most(lost).sup(losses.span, window_ns).unwrap();
        assert!(worst.loss_ns <= high.loss_ns && high.loss_ns <= window_ns && worst.loss_ns >= last.1, "{window_ns}");
        let window = Span { from_ns: worst.at_ns, to_ns: worst.at_ns + window_ns };
        let causes = losses.lost.causes_within(window);
        assert_eq!(causes.iter().map(|(_, ns)| ns).sum::<u64>(), worst.loss_ns, "causes of {window:?}");
        let over = lost.over(losses.span, window_ns, Limit::AtLeast(worst.loss_ns + 1)).unwrap();
        assert_eq!(over.total_ns, 0);
        last = (window_ns, worst.loss_ns);
    }
}

/// The losses of a trace without what comes before or after some of its events, on the axis of the whole.
fn cut(trace: &Ftrace, first: usize, last: usize) -> (Stretches, Stretches, Span) {
    let lines: Vec<&str> = trace.0.lines().collect();
    let at_ns = |line: &str| -> u64 {
        let time = line.split_once(": ").unwrap().0.rsplit(' ').next().unwrap();
        let (seconds, us) = time.split_once('.').unwrap();
        ((seconds.parse::<u64>().unwrap() - 1) * 1_000_000 + us.parse::<u64>().unwrap()) * 1_000
    };
    let origin_ns = at_ns(lines[first]);
    let mut kept = lines[first..last].join("\n");
    kept.push('\n');
    let case = Ftrace(kept).case(Given::default());
    let shifted = |stretches: &Stretches| {
        let since = |span: &Span| Span { from_ns: span.from_ns + origin_ns, to_ns: span.to_ns + origin_ns };
        Stretches::of(stretches.spans().iter().map(since))
    };
    let Some(losses) = case.losses()[0].vcpus.first() else {
        return (Stretches::of([]), Stretches::of([]), Span::default());
    };
    let lost = losses.stretches(Definition::Involuntary);
    let span = Span { from_ns: origin_ns, to_ns: origin_ns + losses.span.to_ns };
    (shifted(&lost), shifted(&losses.at_most(&lost)), span)
}

#[test]
fn a_trace_cut_anywhere_loses_nothing_that_the_whole_does_not_and_what_is_missing_is_unknown() {
    let trace = golden();
    let events = trace.0.lines().count();
    let (whole, _, _) = cut(&trace, 0, events);
    let mut known = 0;
    for first in 0..events - 1 {
        for last in first + 1..=events {
            let (lost, at_most, span) = cut(&trace, first, last);
            assert_eq!(whole.or(&lost), whole, "{first}..{last}: something else is lost");
            let missing = whole.spans().iter().map(|one| {
                let clipped = Span { from_ns: one.from_ns.max(span.from_ns), to_ns: one.to_ns.min(span.to_ns) };
                clipped.length_ns() - at_most.within(clipped)
            });
            // Exits are told when they are over: the last one's own piece may wait for an event that is not there.
            let missing: Vec<u64> = missing.filter(|ns| *ns > 0).collect();
            assert!(missing.is_empty(), "{first}..{last}: {missing:?} ns are known not to be lost");
            known += u64::from(lost.total_ns() > 0);
        }
    }
    assert!(known > 40, "{known} parts show a loss");
}

#[test]
fn the_order_of_events_of_different_cpus_at_one_time_changes_nothing() {
    // Two vCPUs of one VM on CPUs of their own, which lose time at the same moments.
    let line = |cpu: u32, at_us: u64, event: &str| {
        format!(" CPU {cpu}/KVM-{} [00{cpu}] d..2. 1.{at_us:06}: {event}", 98 + cpu)
    };
    let exit = |cpu: u32, reason: &str| {
        format!("kvm_exit: vcpu {cpu} reason {reason} rip 0x1000 info1 0x0 info2 0x0 intr_info 0x0 error_code 0x0")
    };
    let entry = |cpu: u32| format!("kvm_entry: vcpu {cpu}, rip 0x1000");
    let switch = |cpu: u32, out: bool| {
        let (vcpu, hog) = (format!("CPU {cpu}/KVM"), format!("hog/{cpu}"));
        let (vcpu, hog) = ((vcpu, 98 + cpu, "R"), (hog, 700 + cpu, "S"));
        let (from, to) = if out { (vcpu, hog) } else { (hog, vcpu) };
        format!(
            "sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={} ==> next_comm={} next_pid={} next_prio=120",
            from.0, from.1, from.2, to.0, to.1
        )
    };
    let moments: Vec<[String; 2]> = [
        (0, [0, 1].map(entry)),
        (100, [0, 1].map(|cpu| exit(cpu, "EXTERNAL_INTERRUPT"))),
        (110, [0, 1].map(|cpu| switch(cpu, true))),
        (190, [0, 1].map(|cpu| switch(cpu, false))),
        (200, [0, 1].map(entry)),
        (900, [0, 1].map(|cpu| exit(cpu, "CPUID"))),
    ]
    .into_iter()
    .map(|(at_us, [one, other])| [line(0, at_us, &one), line(1, at_us, &other)])
    .collect();
    let answer = |order: u32| {
        let pairs = moments.iter().enumerate().map(|(place, [one, other])| {
            if order >> place & 1 == 0 { format!("{one}\n{other}\n") } else { format!("{other}\n{one}\n") }
        });
        let case = Ftrace(pairs.collect()).case(Given::default());
        let vcpus = case.losses()[0].vcpus.iter().map(|losses| {
            let culprits = losses.lost.culprits();
            (us(losses.stretches(Definition::Involuntary).spans()), format!("{culprits:?}"))
        });
        vcpus.collect::<Vec<_>>()
    };
    let first = answer(0);
    assert_eq!(first.iter().map(|(lost, _)| lost.clone()).collect::<Vec<_>>(), [vec![(100, 200)], vec![(100, 200)]]);
    for order in 1..1 << moments.len() {
        assert_eq!(answer(order), first, "order {order:b}");
    }
}
