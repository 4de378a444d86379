//! Samples of a guest: what did its vCPU lose meanwhile?

use super::clocks::{GuestClock, Instant};
use super::counters::{CounterClock, Counters};
use super::lacking::Lacking;
use super::sums::{Names, Sums, Taken};
use super::{ClockError, Found, FoundBy, Over};
use crate::ledger::model::Flow;
use crate::losses::{PartLosses, VcpuLosses};
use crate::samples::{SampleFile, Samples, Timed};
use crate::{Given, Input};
use base::Span;

/// What leads from the times of samples to the trace below.
enum Clock<'a> {
    Aligned(Box<GuestClock<'a>>),
    /// Its time-stamp counter.
    Counter(CounterClock<'a>),
}

impl Clock<'_> {
    fn at(&self, sample: &Timed) -> Option<Instant> {
        match self {
            Clock::Aligned(clock) => clock.at(sample.end_ns),
            Clock::Counter(clock) => clock.at(sample),
        }
    }
}

/// The samples of `file`, by what the trace at `part` shows of the machine's vCPUs.
pub(super) fn attribute(
    (input, given, flow, losses): (&Input, &Given, &Flow, &[PartLosses]),
    part: usize,
    file: &SampleFile,
    over: &[Over],
) -> Result<Found, Lacking> {
    let timed: Vec<&Samples> = file.samples.iter().filter(|samples| super::is_timed(samples)).collect();
    if timed.is_empty() {
        return Err(Lacking::Times);
    }
    let mut clocks: Vec<Option<(Clock<'_>, i32)>> =
        timed.iter().map(|samples| aligned(input, flow, samples, file)).collect();
    let counters;
    if clocks.iter().all(Option::is_none) {
        counters = Counters::of((input, given, flow), part, file)?;
        let found: Vec<_> = timed.iter().map(|samples| counters.clock(cpu_of(samples), samples.clock)).collect();
        if found.iter().all(Result::is_err) {
            return Err(found.into_iter().find_map(Result::err).unwrap_or(Lacking::Times));
        }
        let found = found.into_iter().map(Result::ok);
        clocks = found.map(|found| found.map(|(clock, tid)| (Clock::Counter(clock), tid))).collect();
    }
    let mut sums: Vec<Sums> = over.iter().map(|over| Sums::above(over.above_ns)).collect();
    let mut error = ClockError::default();
    let (first_ns, mut names) = (flow.parts[part].span.from_ns, Names::new(&flow.parts[part]));
    for (samples, clock) in timed.iter().zip(&clocks) {
        let vcpu = clock.as_ref().and_then(|(_, tid)| {
            let place = flow.parts[part].vcpus.iter().position(|vcpu| vcpu.tid == *tid)?;
            losses.get(part)?.vcpus.get(place)
        });
        for sample in &samples.timed {
            let found = clock.as_ref().and_then(|(clock, _)| clock.at(sample));
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
    Ok(Found { part, by: FoundBy::Time(error), sums })
}

/// The clock of the guest's own trace and the thread below, where that trace is there and aligned.
fn aligned<'a>(input: &Input, flow: &'a Flow, samples: &Samples, file: &SampleFile) -> Option<(Clock<'a>, i32)> {
    let guest = flow.parts.iter().position(|own| own.machine == file.machine && own.aligned.is_some())?;
    let alignment = &flow.parts[guest].aligned.as_ref()?.alignment;
    let cpu = cpu_of(samples);
    let tid = alignment.cpus.iter().find(|own| Some(own.cpu) == cpu)?.vcpu.tid;
    Some((Clock::Aligned(Box::new(GuestClock::new(input, flow, guest, cpu, samples.clock)?)), tid))
}

/// The CPU that a thread measured: where the file names none, the thread's number, as each CPU has one thread.
fn cpu_of(samples: &Samples) -> Option<u32> {
    samples.cpu.or_else(|| samples.thread.parse().ok())
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
        Taken { cause: names.of(cause), state: cause.state, inside_ns, beside_ns: wide_ns.saturating_sub(inside_ns) }
    });
    Some(around.collect())
}
