//! What a lab did to a vCPU on purpose, and what the trace shows of it: a lab is there to hold the one against the other.

use super::measure::{Measured, Named, causes_within};
use base::Span;
use base::number::{duration, many};
use facts::Case;
use walk::Axis;

/// What became of the time of all bursts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Held {
    bursts: u64,
    total_ns: u64,
    /// What the vCPU lost meanwhile to who did it.
    own_ns: u64,
    /// And to others.
    others_ns: u64,
}

/// A sentence for each vCPU that a lab disturbed.
pub(super) fn sentences(measured: &[Measured<'_>], case: &Case) -> Vec<String> {
    measured.iter().filter_map(|one| sentence(one, case)).collect()
}

fn sentence(one: &Measured<'_>, case: &Case) -> Option<String> {
    let place = case.ledger().parts.iter().position(|part| std::ptr::eq(part, one.part))?;
    let disturbed = case.input().recording.disturbed(&one.part.machine)?;
    let by = disturbed.by.filter(|_| disturbed.vcpu_tid == one.vcpu.tid)?;
    let axis = Axis::new(&case.input().parts[place].trace.facts().clock, &one.part.clock);
    if !axis.tsc {
        return None;
    }
    let since_ns = |ticks: u64| axis.shown_ns(ticks).saturating_sub(one.part.span.from_ns);
    let inside = one.losses.span;
    let bursts = disturbed.bursts.iter().map(|burst| Span {
        from_ns: since_ns(burst.from_tsc).clamp(inside.from_ns, inside.to_ns),
        to_ns: since_ns(burst.to_tsc).clamp(inside.from_ns, inside.to_ns),
    });
    // The kernel's own words for what a quota and a signal do.
    let name = match disturbed.disturbance.as_str() {
        "quota" => "throttled",
        "stop" => "stopped",
        _ => by.as_str(),
    };
    let held = held(bursts, name, |span| causes_within(one.losses, one.part, span));
    let vcpu = format!("vCPU {} of {}", one.vcpu.vcpu, one.vcpu.vm);
    (held.bursts > 0).then(|| words(&by, &vcpu, held))
}

fn held(bursts: impl Iterator<Item = Span>, by: &str, causes: impl Fn(Span) -> Vec<(Named, u64)>) -> Held {
    let mut held = Held::default();
    for burst in bursts.filter(|burst| burst.length_ns() > 0) {
        held.bursts += 1;
        held.total_ns += burst.length_ns();
        for (named, ns) in causes(burst) {
            *(if named.by == by { &mut held.own_ns } else { &mut held.others_ns }) += ns;
        }
    }
    held
}

fn words(by: &str, vcpu: &str, held: Held) -> String {
    let left_ns = held.total_ns.saturating_sub(held.own_ns + held.others_ns);
    let [total, own, others, left] =
        [held.total_ns, held.own_ns, held.others_ns, left_ns].map(|ns| duration(ns as f64));
    format!(
        "On purpose, {by} disturbed {vcpu} {}, for {total} in all (truth.json). Of that the vCPU lost {own} to {by} and {others} to others, by \
         the trace, which shows no loss in the other {left}.",
        many(held.bursts, "time")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::losses::LostIn;

    #[test]
    fn what_was_lost_in_bursts_is_told_by_whom() {
        let span = |from_ns, to_ns| Span { from_ns, to_ns };
        let named = |by: &str| Named { state: LostIn::Preempted, by: by.into(), by_tid: None, irq: None };
        let causes = |span: Span| match span.from_ns {
            100 => vec![(named("hog"), 60), (named("kworker"), 10)],
            _ => vec![(named("hog"), 20)],
        };
        let bursts = [span(100, 200), span(300, 300), span(400, 450)];
        let held = held(bursts.into_iter(), "hog", causes);
        assert_eq!(held, Held { bursts: 2, total_ns: 150, own_ns: 80, others_ns: 10 });
        assert_eq!(
            words("hog", "vCPU 0 of rt", held),
            "On purpose, hog disturbed vCPU 0 of rt 2 times, for 150 ns in all (truth.json). Of that the vCPU lost 80 ns to hog and 10 ns to \
             others, by the trace, which shows no loss in the other 60 ns."
        );
    }
}
