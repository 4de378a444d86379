//! Does a guest's own trace fit what the machine below saw?

use super::hit;
use base::number::{counted, duration, many, percent, thousands};
use base::{Cost, CostKind, Evidence, Severity};
use facts::ledger::measure::Measures;
use facts::rule::Hit;

/// Events where the guest cannot have run, exits that were not reflected, writes of offsets that are missing.
pub(crate) fn aligned(measure: &Measures<'_>) -> Vec<Hit> {
    let Some(aligned) = &measure.part.aligned else { return Vec::new() };
    let (alignment, cpus) = (&aligned.alignment, &aligned.alignment.cpus);
    let sum = |of: &dyn Fn(&facts::align::Cpu) -> u64| -> u64 { cpus.iter().map(of).sum() };
    let events = sum(&|cpu| cpu.outside.events);
    let outside = sum(&|cpu| cpu.outside.violations);
    let strangers = sum(&|cpu| cpu.strangers()) + alignment.unpaired;
    let breaks = sum(&|cpu| cpu.vcpu.steps.breaks);
    let changed = sum(&|cpu| u64::from(cpu.counter.changed && cpu.vcpu.steps.is_empty()));
    let ratio = cpus.iter().find_map(|cpu| cpu.untold_ratio());
    if outside + strangers + breaks + changed == 0 && ratio.is_none() {
        return Vec::new();
    }
    let worst = cpus.iter().map(|cpu| cpu.outside.worst).max().unwrap_or(0);
    let (below, machine) = (&alignment.below, &alignment.machine);
    let rows: [(u64, String); 5] = [
        (
            outside,
            format!(
                "{} of {} events are at times when the vCPU did not run, up to {} beyond the stated error",
                thousands(outside),
                thousands(events),
                duration(alignment.axis.length_ns(worst as f64))
            ),
        ),
        (strangers, format!("{} not among those that {below} reflected", counted(strangers, "exit is", "exits are"))),
        (breaks, format!("{} missing", counted(breaks, "offset write of KVM is", "offset writes of KVM are"))),
        (
            changed,
            format!(
                "debugfs has other offsets for {} at the end, and no event shows when they changed",
                many(changed, "vCPU")
            ),
        ),
        (
            u64::from(ratio.is_some()),
            format!(
                "causes and effects imply {:.4} ticks of its TSC per tick of {below}; no file confirms it",
                ratio.unwrap_or(1.0)
            ),
        ),
    ];
    let in_rows = |what| Evidence::in_table(what, "flow.alignment").key("machine", machine.as_str());
    let evidence: Vec<Evidence> =
        rows.into_iter().filter(|(count, _)| *count > 0).map(|(_, what)| in_rows(what)).collect();
    let share = outside as f64 / events.max(1) as f64;
    let severity = if share > 0.01 || strangers > 0 { Severity::Medium } else { Severity::Low };
    let title = if outside > 0 {
        format!("{} of the events of {machine} do not fit the timeline of {below}", percent(share))
    } else if strangers > 0 {
        format!(
            "{} not in the trace of {below}",
            counted(strangers, &format!("exit of {machine} is"), &format!("exits of {machine} are"))
        )
    } else if ratio.is_some() {
        format!("KVM scales the TSC of {machine}, but the ratio is not in the recording")
    } else {
        format!("The clock of {machine} has gaps: not all of KVM's offset writes are in the trace")
    };
    let mut hits = hit(measure, severity, title, evidence, Cost::of(CostKind::Measured, share, "share of its events"));
    hits[0].subject = machine.clone();
    hits
}
