//! Samples of a guest: what did its vCPU lose meanwhile?

use super::clocks::{GuestClock, Instant};
use super::sums::{Names, Sums, Taken};
use super::{ClockError, Found, FoundBy, Over};
use crate::Input;
use crate::facts::ledger::model::Flow;
use crate::facts::losses::{PartLosses, VcpuLosses};
use crate::facts::samples::{SampleFile, Samples};
use base::Span;

/// The samples of `file`, by what the trace at `part` shows of the machine's vCPUs; `None` where samples have no times, or no clock
/// leads there.
pub(super) fn attribute(
    (input, flow, losses): (&Input, &Flow, &[PartLosses]),
    part: usize,
    file: &SampleFile,
    over: &[Over],
) -> Option<Found> {
    let guest = flow.parts.iter().position(|own| own.machine == file.machine && own.aligned.is_some())?;
    let mut sums: Vec<Sums> = over.iter().map(|over| Sums::above(over.above_ns)).collect();
    let (mut error, mut any) = (ClockError::default(), false);
    let (first_ns, mut names) = (flow.parts[part].span.from_ns, Names::new(&flow.parts[part]));
    for samples in file.samples.iter().filter(|samples| super::is_timed(samples)) {
        let cpu = cpu_of(samples);
        let clock = GuestClock::new(input, flow, guest, cpu, samples.clock);
        let vcpu = vcpu(flow, guest, part, cpu).and_then(|vcpu| losses.get(part)?.vcpus.get(vcpu));
        any |= clock.is_some() && vcpu.is_some();
        for sample in &samples.timed {
            let found = clock.as_ref().and_then(|clock| clock.at(sample.end_ns));
            let explained = found
                .zip(vcpu)
                .and_then(|(at, vcpu)| Some((at, taken(vcpu, first_ns, at, sample.length_ns, &mut names)?)));
            match explained {
                Some((at, taken)) => {
                    error = error.widest(at.error);
                    sums.iter_mut().for_each(|sums| sums.add(sample.length_ns, &taken));
                }
                None => sums.iter_mut().for_each(|sums| sums.add_outside(sample.length_ns)),
            }
        }
    }
    any.then_some(Found { part, by: FoundBy::Time(error), sums })
}

/// The CPU that a thread measured: where the file names none, the thread's number, as each CPU has one thread.
fn cpu_of(samples: &Samples) -> Option<u32> {
    samples.cpu.or_else(|| samples.thread.parse().ok())
}

/// The place of the vCPU that the guest's CPU is, among those of the trace below.
fn vcpu(flow: &Flow, guest: usize, part: usize, cpu: Option<u32>) -> Option<usize> {
    let alignment = &flow.parts[guest].aligned.as_ref()?.alignment;
    let tid = alignment.cpus.iter().find(|own| Some(own.cpu) == cpu)?.vcpu.tid;
    flow.parts[part].vcpus.iter().position(|vcpu| vcpu.tid == tid)
}

/// What the vCPU lost in a sample that ended at `at`, in a trace whose first event was at `first_ns`; `None` where the trace was not
/// looked at.
fn taken(vcpu: &VcpuLosses, first_ns: u64, at: Instant, length_ns: u64, names: &mut Names<'_>) -> Option<Vec<Taken>> {
    let end_ns = at.at_ns.checked_sub(first_ns)?;
    let inside = Span { from_ns: end_ns.checked_sub(length_ns)?, to_ns: end_ns };
    if inside.from_ns < vcpu.span.from_ns || inside.to_ns > vcpu.span.to_ns {
        return None;
    }
    let wide = at.error.widened(inside);
    let within = vcpu.lost.causes_within(inside);
    let around = vcpu.lost.causes_within(wide).into_iter().map(|(cause, wide_ns)| {
        let inside_ns = within.iter().find(|(known, _)| *known == cause).map_or(0, |(_, ns)| *ns);
        Taken { cause: names.of(cause), inside_ns, beside_ns: wide_ns.saturating_sub(inside_ns) }
    });
    Some(around.collect())
}
