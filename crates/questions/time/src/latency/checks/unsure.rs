//! Goals that neither pass nor fail: what the recording lacks.

use super::super::goals::Verdicts;
use super::seen;
use base::Severity;
use base::number::{counted, list};
use facts::budget::{Doubt, Metric, Verdict};
use facts::rule::Hit;

/// One finding for the budget.
pub(crate) fn unsure(goals: &[Verdicts<'_>]) -> Vec<Hit> {
    let of = |verdict: Verdict| goals.iter().filter(move |verdicts| verdicts.verdict() == verdict);
    let (inconclusive, unmeasured) = (of(Verdict::Inconclusive).count(), of(Verdict::NotMeasured).count());
    let Some(first) = of(Verdict::Inconclusive).chain(of(Verdict::NotMeasured)).next() else { return Vec::new() };
    let counts = [(inconclusive, "INCONCLUSIVE"), (unmeasured, "NOT MEASURED")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> =
        counts.map(|(count, name)| format!("{} {name}", counted(*count as u64, "goal is", "goals are"))).collect();
    let name = first.case.budget().map_or("budget", |budget| budget.name.as_str());
    let mut hit = Hit::new(name, Severity::Info, list(&counts));
    for verdicts in of(Verdict::Inconclusive).chain(of(Verdict::NotMeasured)) {
        let judgement = &verdicts.worst().judgement;
        let why = judgement.why().unwrap_or_default();
        hit.evidence.push(seen(verdicts, verdicts.worst(), format!("{}: {why}", verdicts.goal.id)));
        for command in judgement.doubts.iter().filter_map(|doubt| remedy(verdicts, doubt)) {
            if !hit.fix.contains(&command) {
                hit.fix.push(command);
            }
        }
    }
    vec![hit]
}

/// What records what is missing.
fn remedy(verdicts: &Verdicts<'_>, doubt: &Doubt) -> Option<String> {
    match doubt {
        Doubt::ShortTrace { least_ns: ns, .. } | Doubt::NoWindow { window_ns: ns, .. } => {
            Some(format!("kvmscope record --seconds {} -o again   # on the host", ns.div_ceil(1_000_000_000)))
        }
        Doubt::NoVcpu | Doubt::Unseen(_) => {
            let least_ns = verdicts.goal.require.trace_ns.unwrap_or(10_000_000_000);
            Some(format!("kvmscope record --seconds {} -o again   # on the host", least_ns.div_ceil(1_000_000_000)))
        }
        Doubt::FewSamples { least, .. } if verdicts.goal.metric == Metric::IrqLatency => Some(irq(*least)),
        Doubt::NoSamples(Metric::IrqLatency) => Some(irq(verdicts.goal.require.samples.unwrap_or(0))),
        Doubt::FewSamples { least, .. } => Some(format!(
            "cyclictest -m -a -t -p 99 -i 1000 -l {least} -h 100 -q --json=cyclictest.json   # in the guest"
        )),
        Doubt::NoSamples(_)
        | Doubt::UnknownTime { .. }
        | Doubt::UnknownShare { .. }
        | Doubt::Uncalibrated
        | Doubt::ClockError { .. }
        | Doubt::InBucket { .. }
        | Doubt::Emulated(_)
        | Doubt::NoMigration
        | Doubt::NotTold(_)
        | Doubt::AsReported { .. }
        | Doubt::Workload(_)
        | Doubt::Interval
        | Doubt::UnsureMean => None,
    }
}

/// What measures so many interrupts, one each millisecond, and a tenth more: some are merged.
fn irq(least: u64) -> String {
    let seconds = (least + least / 10).div_ceil(1_000).max(10);
    format!("kvmscope bench irq --seconds {seconds}   # on the host")
}
