//! What did KVM's debugfs say of a vCPU's counter while it was recorded?
//!
//! In:  what the recorder read when recording had begun and before it ended, the vCPU, and whether events tell of writes.
//! Out: the scaling, which no event tells, and the offset, which no event tells of a VM that ran before.
//!
//! ```text
//! first  last   writes recorded   offset
//!   x      x                      x, held all the time
//!   x      y                      none: it changed, and nothing says when
//!   x      -          yes         x: a write would be an event
//! ```
//! A vCPU is found by its thread; readings without a thread by the vCPU's number, if there is one of it.

use super::host_side::HostVcpu;
use super::scaling::Scaling;
use base::recording::{TscReading, TscReadings, TscScaling};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter {
    /// How it is scaled; `None` if nothing tells.
    pub scaling: Option<Scaling>,
    /// The offset that held all the time, modulo 2^64.
    pub offset: Option<u64>,
    /// The offset was measured, and is within so many ticks of the true one.
    pub error: Option<u64>,
    /// The first reading and the last one differ.
    pub changed: bool,
}

/// The readings of `vcpu`; `recorded` if writes of offsets are events of its trace.
pub fn of(vcpu: &HostVcpu, readings: &TscReadings, recorded: bool) -> Counter {
    let (first, last) = (find(vcpu, &readings.first), find(vcpu, &readings.last));
    let both = || first.into_iter().chain(last);
    let mut scalings: Vec<Option<Scaling>> = both().map(|reading| scaling(reading.scaling)).collect();
    scalings.dedup();
    // Of the guest's own offset the kernel says so; where it cannot, no guest of the guest may have run.
    let mut offsets: Vec<i64> = both()
        .filter(|reading| reading.is_own || vcpu.nested.is_empty())
        .filter_map(|reading| reading.offset)
        .collect();
    let twice = offsets.len() == 2;
    offsets.dedup();
    let scaling = if let [only] = scalings[..] { only } else { None };
    let offset = if let [only] = offsets[..] { Some(only as u64).filter(|_| twice || recorded) } else { None };
    let error = both().filter_map(|reading| reading.error_ticks).max();
    Counter { scaling, offset, error, changed: offsets.len() > 1 || scalings.len() > 1 }
}

/// A processor that cannot scale has no file for it.
fn scaling(told: Option<TscScaling>) -> Option<Scaling> {
    told.map_or(Some(Scaling::NONE), Scaling::new)
}

fn find<'r>(vcpu: &HostVcpu, readings: &'r [TscReading]) -> Option<&'r TscReading> {
    let by_thread = readings.iter().find(|reading| reading.tid == Some(vcpu.tid));
    by_thread.or_else(|| {
        let same = |reading: &&TscReading| reading.tid.is_none() && Some(reading.vcpu) == vcpu.vcpu;
        let mut found = readings.iter().filter(same);
        found.next().filter(|_| found.next().is_none())
    })
}

#[cfg(test)]
mod tests {
    use super::super::host_side::Window;
    use super::*;

    fn reading(tid: Option<i32>, offset: Option<i64>, is_own: bool) -> TscReading {
        let scaling = Some(TscScaling { ratio: 3, frac_bits: 1 });
        TscReading { pid: 1, vcpu: 0, tid, offset, scaling, is_own, error_ticks: None }
    }

    fn told(first: &[TscReading], last: &[TscReading], nested: bool, recorded: bool) -> (Option<i64>, bool) {
        let nested = if nested { vec![Window::default()] } else { Vec::new() };
        let vcpu = HostVcpu { tid: 5, vcpu: Some(0), nested, ..HostVcpu::default() };
        let readings = TscReadings { first: first.to_vec(), last: last.to_vec() };
        let counter = of(&vcpu, &readings, recorded);
        (counter.offset.map(|offset| offset as i64), counter.changed)
    }

    #[test]
    fn an_offset_counts_if_it_held_and_is_the_guests_own() {
        let of = |offset| reading(Some(5), Some(offset), true);
        assert_eq!(told(&[of(-3)], &[of(-3)], true, false), (Some(-3), false));
        assert_eq!(told(&[of(-3)], &[of(-4)], true, true), (None, true));
        assert_eq!(told(&[of(-3)], &[], true, true), (Some(-3), false));
        assert_eq!(told(&[of(-3)], &[], true, false), (None, false), "it may have changed behind our back");
        let unsure = [reading(Some(5), Some(-3), false)];
        assert_eq!(told(&unsure, &unsure, true, true), (None, false));
        assert_eq!(told(&unsure, &unsure, false, true), (Some(-3), false));
    }

    #[test]
    fn a_reading_without_a_thread_belongs_to_the_only_vcpu_of_its_number() {
        let of = |tid| reading(tid, Some(-3), true);
        assert_eq!(told(&[of(None), of(Some(6))], &[], false, true).0, Some(-3));
        assert_eq!(told(&[of(None), of(None)], &[], false, true).0, None, "whose is it?");
        assert_eq!(told(&[of(Some(6))], &[], false, true).0, None);
    }

    #[test]
    fn what_was_measured_has_the_larger_error_of_both_times() {
        let vcpu = HostVcpu { tid: 5, ..HostVcpu::default() };
        let of = |error_ticks| vec![TscReading { error_ticks, ..reading(Some(5), Some(-3), true) }];
        let counter = |first, last| super::of(&vcpu, &TscReadings { first: of(first), last: of(last) }, false);
        assert_eq!(counter(Some(20), Some(700)).error, Some(700));
        assert_eq!(counter(None, None).error, None, "KVM says it exactly");
    }

    #[test]
    fn a_processor_that_cannot_scale_does_not() {
        let vcpu = HostVcpu { tid: 5, ..HostVcpu::default() };
        let mut readings = TscReadings { first: vec![reading(Some(5), None, true)], last: Vec::new() };
        assert_eq!(of(&vcpu, &readings, true).scaling.map(Scaling::ratio), Some(1.5));
        readings.first[0].scaling = None;
        assert_eq!(of(&vcpu, &readings, true).scaling, Some(Scaling::NONE));
        assert_eq!(of(&vcpu, &TscReadings::default(), true), Counter::default());
    }
}
