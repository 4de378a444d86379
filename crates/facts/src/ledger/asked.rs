//! Does the recording hold what the user asked for by name: a VM, a vCPU, a level, a thread, an event, a stretch of time?

use super::model::{Flow, PartFlow, Vcpu};
use crate::{Error, Given, Input};
use base::nearest::instead;
use base::number::duration;
use base::{Level, Problem};
use std::collections::BTreeSet;

/// Refuses a recording of which no event could be read, and names and numbers that this recording does not have, with the nearest that it has.
///
/// # Errors
/// [`Error::NoEvents`] of nothing but damage, [`Error::NoSuch`] of a name or number, [`Error::Outside`] of a window that begins after the last event.
pub fn check(flow: &Flow, input: &Input, given: &Given) -> Result<(), Error> {
    let vcpus: Vec<&Vcpu> = flow.parts.iter().flat_map(|part| &part.vcpus).collect();
    readable(flow, &input.problems)?;
    events(input, given)?;
    window(flow, given)?;
    threads(&vcpus, given)?;
    machines(&vcpus, given)?;
    witness(flow, given)?;
    level(flow, given)
}

/// Damaged input is answered as long as one event could be read.
fn readable(flow: &Flow, opening: &[Problem]) -> Result<(), Error> {
    if flow.parts.iter().any(|part| part.events > 0) {
        return Ok(());
    }
    let path = flow.parts.first().map_or("the recording", |part| part.path.as_str());
    let problems = opening.iter().chain(flow.parts.iter().flat_map(|part| &part.problems));
    // What has a place in the file is damage; the rest, such as a clock that is not described, would not hide all events.
    let problem = problems.min_by_key(|problem| problem.offset.is_none());
    let because = problem.map_or(String::new(), |problem| format!(": {}", problem.text));
    Err(Error::NoEvents(format!("no event could be read from {path}{because}")))
}

fn no_such(sentence: String) -> Result<(), Error> {
    Err(Error::NoSuch(sentence))
}

fn events(input: &Input, given: &Given) -> Result<(), Error> {
    let known = || input.parts.iter().flat_map(|part| part.trace.facts().event_types.iter()).map(|event| &*event.name);
    let missing = given.traces.ignore_events.iter().find(|name| known().all(|known| known != name.as_str()));
    match missing {
        Some(name) => {
            no_such(format!("--ignore-event {name}: this recording has no such event; {}", instead(name, known())))
        }
        None => Ok(()),
    }
}

fn window(flow: &Flow, given: &Given) -> Result<(), Error> {
    let Some(window) = given.narrow.window else { return Ok(()) };
    let length_ns = flow.parts.iter().map(|part| part.on_axis(part.span.to_ns)).max().unwrap_or(0);
    if flow.parts.iter().all(|part| part.events == 0) || window.from_ns <= length_ns {
        return Ok(());
    }
    Err(Error::Outside(format!(
        "the recording is {} long and has nothing after {}; --from and --to are seconds since its first event",
        duration(length_ns as f64),
        duration(window.from_ns as f64)
    )))
}

fn threads(vcpus: &[&Vcpu], given: &Given) -> Result<(), Error> {
    let missing = given.traces.vm_map.iter().find(|(tid, _)| vcpus.iter().all(|vcpu| vcpu.tid != *tid));
    let Some((tid, name)) = missing else { return Ok(()) };
    let known: Vec<String> = vcpus.iter().map(|vcpu| vcpu.tid.to_string()).collect();
    let instead = instead(&tid.to_string(), known.iter().map(String::as_str));
    no_such(format!("--vm-map {tid}={name}: thread {tid} runs no vCPU in this recording; {instead}"))
}

fn machines(vcpus: &[&Vcpu], given: &Given) -> Result<(), Error> {
    if let Some(vm) = &given.narrow.vm
        && vcpus.iter().all(|vcpu| vcpu.vm != *vm)
    {
        let instead = instead(vm, vcpus.iter().map(|vcpu| vcpu.vm.as_str()));
        return no_such(format!("--vm {vm}: this recording has no such VM; {instead}"));
    }
    let of_vm = |vcpu: &&&Vcpu| given.narrow.wants_vm(&vcpu.vm);
    let known: Vec<u32> = vcpus.iter().filter(of_vm).map(|vcpu| vcpu.vcpu).collect();
    match given.narrow.vcpu {
        Some(number) if !known.contains(&number) => {
            let known: Vec<String> = known.iter().map(u32::to_string).collect();
            let instead = instead(&number.to_string(), known.iter().map(String::as_str));
            let whose = given.narrow.vm.as_ref().map_or("this recording", |vm| vm);
            no_such(format!("--vcpu {number}: {whose} has no such vCPU; {instead}"))
        }
        _ => Ok(()),
    }
}

fn witness(flow: &Flow, given: &Given) -> Result<(), Error> {
    let Some(asked) = given.narrow.witness else { return Ok(()) };
    let known: BTreeSet<Level> = flow.parts.iter().map(|part| part.level).collect();
    if known.contains(&asked) {
        return Ok(());
    }
    let known: Vec<String> = known.iter().map(Level::to_string).collect();
    no_such(format!(
        "--witness {asked}: this recording has no trace of {asked}; it has traces of {}",
        base::number::list(&known)
    ))
}

/// The level of a row is that of the guest that left.
fn level(flow: &Flow, given: &Given) -> Result<(), Error> {
    let Some(level) = given.narrow.level else { return Ok(()) };
    let of_part = |part: &PartFlow| {
        let keys = part.vcpus.iter().flat_map(|vcpu| vcpu.sums.exits.keys());
        keys.map(|(level, _)| part.level_of(*level)).collect::<Vec<Level>>()
    };
    let mut known: Vec<Level> = flow.parts.iter().flat_map(of_part).collect();
    known.sort_unstable();
    known.dedup();
    if known.is_empty() || known.contains(&level) {
        return Ok(());
    }
    let known: Vec<String> = known.iter().map(Level::to_string).collect();
    // One letter apart from every other: the nearest level says nothing.
    let list = base::number::list(&known);
    no_such(format!("--level {level}: this recording has no exits of {level}; it has exits of {list}"))
}
