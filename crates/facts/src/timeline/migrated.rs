//! When a guest was moved while a trace was recorded: marks on its time line.
//!
//! ```text
//! QEMU's events, CLOCK_REALTIME  --clock pairs-->  the trace's clock  -->  the recording's axis
//! source: migration begins, pass 2 .., guest stopped, migration completed      target: guest runs here
//! ```

use crate::Input;
use crate::attribution::clocks::OwnClock;
use crate::ledger::model::Flow;
use crate::migrations::{Began, Migration};
use crate::samples::SampleClock;
use base::timeline::Marker;

/// Marks of all migrations from or to the machine of the trace at `place`, as far as it was recorded meanwhile; none where nothing relates
/// its clock to that of the events.
pub(super) fn markers(input: &Input, flow: &Flow, place: usize) -> Vec<Marker> {
    let part = &flow.parts[place];
    let list = &input.migrations.list;
    if list.is_empty() {
        return Vec::new();
    }
    let Some(clock) = OwnClock::new(input, flow, place, SampleClock::Realtime) else { return Vec::new() };
    let moments = list.iter().enumerate().flat_map(|(run, migration)| {
        let of_run = if list.len() > 1 { format!("run {run}: ") } else { String::new() };
        let [source, target] = [0, 1].map(|side| migration.machines[side].as_ref() == Some(&part.machine));
        let both = [(source, of_source as fn(&Migration) -> Vec<(u64, String)>), (target, of_target)];
        let here = both.into_iter().filter(|(is_here, _)| *is_here).flat_map(|(_, of)| of(migration));
        here.map(|(at_ns, what)| (at_ns, format!("{of_run}{what}"))).collect::<Vec<_>>()
    });
    let placed = moments.filter_map(|(at_ns, label)| Some((clock.at(at_ns)?.at_ns, label)));
    let placed = placed.filter(|(at_ns, _)| (part.span.from_ns..=part.span.to_ns).contains(at_ns));
    placed.map(|(at_ns, label)| Marker { lane: None, at_ns: part.on_axis(at_ns), label }).collect()
}

fn of_source(migration: &Migration) -> Vec<(u64, String)> {
    let began = (migration.began == Began::Told).then(|| (migration.began_ns, "migration begins".to_owned()));
    // The first pass begins with the migration.
    let passes = migration.passes.iter().filter(|(pass, _)| *pass > 1);
    let passes = passes.map(|(pass, at_ns)| (*at_ns, format!("pass {pass} begins")));
    let stopped = migration.stopped_ns.map(|at_ns| (at_ns, "guest stopped".to_owned()));
    let ended = migration.ended.as_ref().map(|(at_ns, how)| (*at_ns, format!("migration {how}")));
    began.into_iter().chain(passes).chain(stopped).chain(ended).collect()
}

fn of_target(migration: &Migration) -> Vec<(u64, String)> {
    migration.resumed_ns.map(|at_ns| (at_ns, "guest runs on the target".to_owned())).into_iter().collect()
}
