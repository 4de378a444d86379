//! The times of a guest without a trace of its own, on the clock of the trace below: by the guest's time-stamp counter.
//!
//! ```text
//! CLOCK_MONOTONIC of the guest --its pairs--> its counter --KVM's offset--> the counter below --+-- trace with clock x86-tsc
//!                                                                                               +-- pairs below --> mono
//! ```
//! A sample in which the offset changed is not placed: its two ends are of two clocks.

use super::ClockError;
use super::clocks::{Instant, is_monotonic};
use super::lacking::Lacking;
use crate::ledger::model::Flow;
use crate::samples::{SampleClock, SampleFile, Timed};
use crate::{Given, Input};
use align::host_side::{self, HostVcpu};
use align::offsets::Offsets;
use align::readings;
use base::recording::WallClock;
use std::collections::BTreeSet;
use walk::Axis;

/// What leads from a guest's clock to the trace below.
pub(super) struct Counters {
    guest: WallClock,
    below: Below,
    vcpus: Vec<Vcpu>,
}

/// The clock of the trace below.
enum Below {
    Counter(Axis),
    /// CLOCK_MONOTONIC, to which the trace adds so much.
    Monotonic {
        pairs: WallClock,
        offset_ns: i64,
    },
}

struct Vcpu {
    number: u32,
    tid: i32,
    /// `None` if nothing tells it.
    offsets: Option<Offsets>,
    /// How far it may be off, in ticks.
    error: u64,
}

/// The clock of one of the guest's CPUs.
pub(super) struct CounterClock<'a> {
    counters: &'a Counters,
    offsets: &'a Offsets,
    error: u64,
    clock: SampleClock,
}

impl Counters {
    /// Those of the machine of `file`, a guest of the machine whose trace is at `part`.
    pub(super) fn of(
        (input, given, flow): (&Input, &Given, &Flow),
        part: usize,
        file: &SampleFile,
    ) -> Result<Self, Lacking> {
        let (traced, lower) = (&input.parts[part], &flow.parts[part]);
        let pairs = |machine: &str| input.recording.wall_clock(machine).filter(|pairs| pairs.tsc_of(0).is_some());
        let guest = pairs(&file.machine).ok_or(Lacking::Pairs)?;
        let axis = Axis::new(&traced.trace.facts().clock, &lower.clock);
        let below = if axis.tsc {
            Below::Counter(axis.clone())
        } else {
            let pairs = pairs(&lower.machine).filter(|_| is_monotonic(&lower.clock));
            let pairs = pairs.ok_or_else(|| Lacking::HostClock(lower.clock.name.clone()))?;
            Below::Monotonic { pairs, offset_ns: lower.clock.offset_ns }
        };
        let own = input.recording.machines.iter().find(|machine| machine.id == file.machine);
        let name = own.and_then(|machine| machine.name.as_deref());
        let vms: BTreeSet<&str> = lower.vcpus.iter().map(|vcpu| vcpu.vm.as_str()).collect();
        let vm = match name.filter(|name| vms.contains(name)) {
            Some(name) => name,
            None if vms.len() == 1 => vms.first().copied().unwrap_or_default(),
            None => return Err(Lacking::Vm(vms.into_iter().map(str::to_owned).collect())),
        };
        let side = host_side::read(traced, &axis, &given.traces.ignore_events);
        let readings = traced.tsc.clone().unwrap_or_default();
        let is_one_clock = matches!(below, Below::Counter(_));
        let vcpu = |number, host: &HostVcpu| {
            let counter = readings::of(host, &readings, side.writes_are_recorded);
            // Where the trace's times are no ticks, nothing tells which of several offsets held when.
            let offsets = Offsets::of(host, &counter).filter(|offsets| is_one_clock || offsets.are_one());
            Vcpu { number, tid: host.tid, offsets, error: axis.rounding() + counter.error.unwrap_or(0) }
        };
        let own = lower.vcpus.iter().filter(|vcpu| vcpu.vm == vm);
        let own = own.filter_map(|own| Some((own.vcpu, side.vcpus.iter().find(|host| host.tid == own.tid)?)));
        let vcpus: Vec<Vcpu> = own.map(|(number, host)| vcpu(number, host)).collect();
        Ok(Self { guest, below, vcpus })
    }

    /// The thread below that runs the guest's CPU number `cpu`, and the clock of samples that were taken there by `clock`.
    pub(super) fn clock(&self, cpu: Option<u32>, clock: SampleClock) -> Result<(CounterClock<'_>, i32), Lacking> {
        match clock {
            SampleClock::Monotonic | SampleClock::Realtime => {}
            SampleClock::Local | SampleClock::Trace => return Err(Lacking::Trace),
            SampleClock::None => return Err(Lacking::Times),
        }
        let vcpu = self.vcpus.iter().find(|vcpu| Some(vcpu.number) == cpu).ok_or(Lacking::Vcpu(cpu))?;
        let offsets = vcpu.offsets.as_ref().ok_or(Lacking::Offset)?;
        Ok((CounterClock { counters: self, offsets, error: vcpu.error, clock }, vcpu.tid))
    }
}

impl CounterClock<'_> {
    /// When `sample` ended on the clock below.
    pub(super) fn at(&self, sample: &Timed) -> Option<Instant> {
        let guest = &self.counters.guest;
        let (end_ns, error) = match self.clock {
            SampleClock::Realtime => {
                let (end_ns, error_ns) = guest.monotonic_of(sample.end_ns);
                (end_ns, ClockError::both(error_ns))
            }
            SampleClock::Monotonic | SampleClock::Local | SampleClock::Trace | SampleClock::None => {
                (sample.end_ns, ClockError::default())
            }
        };
        let (ticks, width_ns) = guest.tsc_of(end_ns)?;
        let (begin, _) = guest.tsc_of(end_ns.saturating_sub(sample.length_ns))?;
        if self.offsets.offset_at(begin) != self.offsets.offset_at(ticks) {
            return None;
        }
        let (low, high) = self.offsets.place(ticks);
        let (low, high) = (low.saturating_sub(self.error), high.saturating_add(self.error));
        let error = error.plus(ClockError::both(width_ns));
        let middle = low + (high - low) / 2;
        match &self.counters.below {
            Below::Counter(axis) => {
                let ns = |ticks: u64| axis.length_ns(ticks as f64).ceil() as u64;
                let of_offset = ClockError { low_ns: ns(middle - low), high_ns: ns(high - middle) };
                Some(Instant { at_ns: axis.shown_ns(middle), error: error.plus(of_offset) })
            }
            Below::Monotonic { pairs, offset_ns } => {
                let of = |ticks| pairs.monotonic_at(ticks);
                let ((first_ns, _), (at_ns, width_ns), (last_ns, _)) = (of(low)?, of(middle)?, of(high)?);
                let of_offset =
                    ClockError { low_ns: at_ns.saturating_sub(first_ns), high_ns: last_ns.saturating_sub(at_ns) };
                let error = error.plus(ClockError::both(width_ns)).plus(of_offset);
                Some(Instant { at_ns: at_ns.saturating_add_signed(*offset_ns), error })
            }
        }
    }
}
