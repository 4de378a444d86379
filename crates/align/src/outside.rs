//! Does every event of a guest lie in a stretch in which its vCPU ran?
//!
//! A guest writes its trace itself, so it was running. An event whose possible times all lie outside the windows that the
//! machine below saw is a violation: the alignment is wrong, or a window is. Events before the first window, behind the
//! last, or where events of the machine below are lost cannot be judged.

use super::host_side::{HostVcpu, Window};
use super::place::{Map, Placed};
use base::Histogram;
use std::collections::BTreeMap;
use trace::replay::Listener;
use trace::{Event, Reading, Request};
use walk::Axis;
use walk::Part;

/// What became of the events of one CPU.
#[derive(Debug, Clone, Default)]
pub struct Outside {
    pub events: u64,
    /// Those that cannot be judged.
    pub unjudged: u64,
    pub violations: u64,
    /// The farthest of them from a window.
    pub worst: u64,
    /// Errors of the events' places.
    pub errors: Histogram,
    /// Where the first event that could be placed lies on the two clocks, and the last.
    pub ends: Option<[(u64, u64); 2]>,
}

/// Judges all events of `part`; `cpus` are its CPUs that have a map.
pub(super) fn outside(part: &Part, axis: &Axis, cpus: &BTreeMap<u32, (&Map, &HostVcpu)>) -> BTreeMap<u32, Outside> {
    let mut request = Request::everything(part.trace.facts());
    request.events.iter_mut().for_each(|wanted| wanted.fields.clear());
    let mut judge = Judge { axis, cpus, told: BTreeMap::new() };
    trace::replay(part.trace.as_ref(), &Reading { request: &request, fitted: None }, &mut judge);
    judge.told
}

struct Judge<'a> {
    axis: &'a Axis,
    cpus: &'a BTreeMap<u32, (&'a Map, &'a HostVcpu)>,
    told: BTreeMap<u32, Outside>,
}

impl Listener for Judge<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let Some((map, vcpu)) = self.cpus.get(&event.cpu) else { return };
        if event.is_loss() {
            return;
        }
        let told = self.told.entry(event.cpu).or_default();
        told.events += 1;
        let at = self.axis.of_event(event.time_ns);
        let Some(placed) = map.place(at) else {
            told.unjudged += 1;
            return;
        };
        let first = told.ends.map_or((at, placed.value), |ends| ends[0]);
        told.ends = Some([first, (at, placed.value)]);
        match distance(vcpu, &placed) {
            None => told.unjudged += 1,
            Some(distance) => {
                told.errors.record(placed.error());
                told.violations += u64::from(distance > 0);
                told.worst = told.worst.max(distance);
            }
        }
    }
}

/// How far the nearest window is; `None` if the event cannot be judged.
fn distance(vcpu: &HostVcpu, placed: &Placed) -> Option<u64> {
    let beyond = |windows: &[Window]| {
        let ends = windows.first().zip(windows.last());
        ends.is_none_or(|(first, last)| placed.high < first.from || placed.low > last.to)
    };
    if beyond(&vcpu.windows) {
        return None;
    }
    let gap = to_nearest(&vcpu.windows, placed);
    (gap == 0 || to_nearest(&vcpu.unknown, placed) > 0).then_some(gap)
}

/// How far `placed` is from the nearest of some windows.
fn to_nearest(windows: &[Window], placed: &Placed) -> u64 {
    let next = windows.partition_point(|window| window.to < placed.low);
    let after = windows.get(next).map_or(u64::MAX, |window| window.from.saturating_sub(placed.high));
    let before = next.checked_sub(1).map_or(u64::MAX, |last| placed.low - windows[last].to);
    after.min(before)
}
