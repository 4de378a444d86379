//! Several recordings become one: machines get ids of their own, guests their parents, parts their places.
//!
//! ```text
//! host/   L0 ---------------------> L0                 L0/trace.dat
//! web/    L1 -- --parent or level-> L1      in L0      L1/trace.dat
//! db/     L1 -- id is taken ------> L1-db   in L0      L1-db/trace.dat
//! ```
//! Nothing is read or copied here: the answer says what is to lie where.

use super::{ClockPair, Emulator, Error, Machine, Part, Recording};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Says that `child` is a guest of `parent`, by the ids that the joined recording has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentLink {
    /// Id of the guest.
    pub child: String,
    /// Id of its host.
    pub parent: String,
}

/// Where a part lies before it is carried into another recording.
#[derive(Debug, Clone)]
pub struct PartSource {
    /// The directory of its recording; empty for bare files.
    pub root: PathBuf,
    /// The part itself.
    pub path: PathBuf,
}

/// A joined recording, and where each of its parts is now.
#[derive(Debug, Clone)]
pub struct Joined {
    /// The manifest, without a place yet.
    pub recording: Recording,
    /// Of each part, where it lies now.
    pub from: Vec<PartSource>,
    /// What the user should know, as sentences: ids that were changed, marks that were taken over.
    pub notes: Vec<String>,
}

/// Puts recordings of different machines together.
///
/// # Errors
/// As [`Error::Named`], if two were emulated by different programs, if a parent is unknown, not further out, or could be
/// one of several.
pub fn join(recordings: &[Recording], links: &[ParentLink]) -> Result<Joined, Error> {
    let mut joined = Joined { recording: empty(recordings)?, from: Vec::new(), notes: Vec::new() };
    let mut taken = Taken::default();
    for recording in recordings {
        joined.add(recording, &mut taken);
    }
    joined.note_marks(recordings);
    let machines = &mut joined.recording.machines;
    machines.sort_by_key(|machine| machine.level);
    for link in links {
        set_parent(machines, link)?;
    }
    find_parents(machines)?;
    Ok(joined)
}

fn empty(recordings: &[Recording]) -> Result<Recording, Error> {
    let mut marks: Vec<Emulator> = recordings.iter().filter_map(|recording| recording.emulated).collect();
    marks.dedup();
    if marks.len() > 1 {
        let sentence = "one was emulated by QEMU TCG and one by Bochs: they are of different runs and cannot be joined";
        return Err(Error::Named(sentence.to_owned()));
    }
    Ok(Recording {
        root: PathBuf::new(),
        created: recordings.iter().filter_map(|recording| recording.created.clone()).min(),
        tool: None,
        emulated: marks.first().copied(),
        machines: Vec::new(),
        parts: Vec::new(),
        problems: recordings.iter().flat_map(|recording| recording.problems.clone()).collect(),
        clock_pairs: Vec::new(),
        ended: None,
        shown: Vec::new(),
    })
}

/// Ids and places that are given away, to be looked up: a manifest may list thousands.
#[derive(Default)]
struct Taken {
    ids: HashSet<String>,
    places: HashSet<PathBuf>,
}

impl Joined {
    fn add(&mut self, recording: &Recording, taken: &mut Taken) {
        let title = recording.title();
        let mut ids: HashMap<&str, String> = HashMap::new();
        for machine in &recording.machines {
            let id = self.free_id(machine, &title, taken);
            taken.ids.insert(id.clone());
            ids.insert(&machine.id, id);
        }
        let new_id = |old: &String| ids.get(old.as_str()).cloned();
        for machine in &recording.machines {
            let id = new_id(&machine.id).unwrap_or_else(|| machine.id.clone());
            let parent = machine.parent.as_ref().and_then(new_id);
            self.recording.machines.push(Machine { id, parent, ..machine.clone() });
        }
        let pairs = recording
            .clock_pairs
            .iter()
            .filter_map(|pair| Some(ClockPair { machine: new_id(&pair.machine)?, ..pair.clone() }));
        self.recording.clock_pairs.extend(pairs);
        for part in &recording.parts {
            let machine = new_id(&part.machine).unwrap_or_else(|| part.machine.clone());
            let path = free_path(place(recording, part, &machine), taken);
            self.from.push(PartSource { root: recording.root.clone(), path: recording.root.join(&part.path) });
            self.recording.parts.push(Part { path, machine, ..part.clone() });
        }
    }

    /// The machine's id, or one with the recording's name where another machine has it.
    fn free_id(&mut self, machine: &Machine, title: &str, taken: &Taken) -> String {
        if !taken.ids.contains(&machine.id) {
            return machine.id.clone();
        }
        let plain = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
        let named = format!("{}-{}", machine.id, title.chars().map(plain).collect::<String>());
        let mut ids = std::iter::once(named.clone()).chain((2..).map(|number| format!("{named}-{number}")));
        let id = ids.find(|id| !taken.ids.contains(id)).unwrap_or(named);
        self.notes.push(format!("{} of {title} is called {id}, because another machine is {}", machine.id, machine.id));
        id
    }

    fn note_marks(&mut self, recordings: &[Recording]) {
        let unmarked = recordings.iter().filter(|recording| recording.emulated.is_none());
        if self.recording.emulated.is_some() {
            let note = |one: &Recording| format!("{} is not marked as emulated; the joined recording is", one.title());
            self.notes.extend(unmarked.map(note));
        }
    }
}

/// A place that no part has yet: the one it would have, else with a number behind its name.
fn free_path(path: PathBuf, taken: &mut Taken) -> PathBuf {
    let numbered = |number: u32| {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{number}"));
        path.with_file_name(name)
    };
    let mut paths = std::iter::once(path.clone()).chain((2..).map(numbered));
    let free = paths.find(|path| !taken.places.contains(path)).unwrap_or(path.clone());
    taken.places.insert(free.clone());
    free
}

/// Where a part goes: below its machine's new directory, by its name there or by the default of its kind.
fn place(recording: &Recording, part: &Part, machine: &str) -> PathBuf {
    if recording.root.as_os_str().is_empty() {
        return Part { machine: machine.to_owned(), ..part.clone() }.default_place();
    }
    let below = part.path.strip_prefix(&part.machine).ok().filter(|below| !below.as_os_str().is_empty());
    Path::new(machine).join(below.unwrap_or(&part.path))
}

fn set_parent(machines: &mut [Machine], link: &ParentLink) -> Result<(), Error> {
    let ids = machines.iter().map(|machine| machine.id.as_str()).collect::<Vec<_>>().join(", ");
    let level = |id: &str| {
        let found = machines.iter().find(|machine| machine.id == id).map(|machine| machine.level);
        found.ok_or_else(|| Error::Named(format!("no machine {id}; machines: {ids}")))
    };
    if level(&link.parent)? >= level(&link.child)? {
        let ParentLink { child, parent } = link;
        return Err(Error::Named(format!("{parent} cannot be the host of {child}: its level is not an outer one")));
    }
    let child = machines.iter_mut().find(|machine| machine.id == link.child);
    child.into_iter().for_each(|machine| machine.parent = Some(link.parent.clone()));
    Ok(())
}

/// A machine without a parent is a guest of the one machine of the nearest outer level.
fn find_parents(machines: &mut [Machine]) -> Result<(), Error> {
    for index in 0..machines.len() {
        let (id, level) = (machines[index].id.clone(), machines[index].level);
        if machines[index].parent.is_some() {
            continue;
        }
        let outer = machines.iter().map(|machine| machine.level).filter(|outer| *outer < level).max();
        let hosts = machines.iter().filter(|machine| Some(machine.level) == outer);
        let hosts: Vec<String> = hosts.map(|machine| machine.id.clone()).collect();
        match hosts.as_slice() {
            [] => {}
            [host] => machines[index].parent = Some(host.clone()),
            [first, ..] => {
                let hosts = hosts.join(" or ");
                let sentence = format!("{id} could be a guest of {hosts}; choose one, as in --parent {id}={first}");
                return Err(Error::Named(sentence));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Identity, Moment, PartKind, PartState};

    fn recording(root: &str, machines: &[(&str, u8)], parts: &[(&str, &str)]) -> Recording {
        let machine = |(id, level): &(&str, u8)| Machine {
            id: (*id).into(),
            level: *level,
            parent: None,
            name: None,
            identity: Identity { boot_id: Some(format!("boot of {root}")), ..Identity::default() },
        };
        let part = |(machine, path): &(&str, &str)| Part {
            path: path.into(),
            machine: (*machine).into(),
            kind: PartKind::TraceDat,
            clock: None,
            state: PartState::Complete,
        };
        Recording {
            root: root.into(),
            created: Some(format!("of {root}")),
            tool: None,
            emulated: None,
            machines: machines.iter().map(machine).collect(),
            parts: parts.iter().map(part).collect(),
            problems: Vec::new(),
            clock_pairs: machines.iter().map(|(id, _)| read_at_begin(id)).collect(),
            ended: None,
            shown: Vec::new(),
        }
    }

    fn read_at_begin(machine: &str) -> ClockPair {
        let (machine, at) = (machine.to_owned(), Moment::Begin);
        ClockPair { machine, at, realtime_ns: 0, monotonic_ns: 0, tsc: None, error_ns: 0, utc_error_ns: None }
    }

    fn link(child: &str, parent: &str) -> ParentLink {
        ParentLink { child: child.into(), parent: parent.into() }
    }

    fn family(joined: &Joined) -> Vec<(&str, Option<&str>)> {
        joined.recording.machines.iter().map(|machine| (machine.id.as_str(), machine.parent.as_deref())).collect()
    }

    #[test]
    fn guests_find_their_host_and_ids_stay_apart() {
        let parts = [
            recording("db", &[("L1", 1), ("L2", 2)], &[("L1", "L1/trace.dat"), ("L2", "L2/trace.dat")]),
            recording("host", &[("L0", 0)], &[("L0", "L0/trace.dat"), ("L0", "notes/a")]),
            recording("we b", &[("L1", 1)], &[("L1", "L1/trace.dat")]),
        ];
        let joined = join(&parts, &[link("L2", "L1")]).unwrap();
        assert_eq!(family(&joined), [("L0", None), ("L1", Some("L0")), ("L1-we-b", Some("L0")), ("L2", Some("L1"))]);
        let paths: Vec<_> = joined.recording.parts.iter().map(|part| part.path.to_str().unwrap()).collect();
        assert_eq!(paths, ["L1/trace.dat", "L2/trace.dat", "L0/trace.dat", "L0/notes/a", "L1-we-b/trace.dat"]);
        assert_eq!(joined.from[4].path, Path::new("we b/L1/trace.dat"));
        assert_eq!(joined.recording.created.as_deref(), Some("of db"));
        let boots: Vec<_> =
            joined.recording.machines.iter().map(|machine| machine.identity.boot_id.as_deref()).collect();
        assert_eq!(boots, [Some("boot of host"), Some("boot of db"), Some("boot of we b"), Some("boot of db")]);
        let clocks: Vec<_> = joined.recording.clock_pairs.iter().map(|pair| pair.machine.as_str()).collect();
        assert_eq!(clocks, ["L1", "L2", "L0", "L1-we-b"]);
        assert_eq!(joined.notes, ["L1 of we b is called L1-we-b, because another machine is L1"]);
    }

    #[test]
    fn a_parent_that_could_be_several_is_asked_for() {
        let two =
            [recording("a", &[("L0", 0)], &[]), recording("b", &[("L0", 0)], &[]), recording("c", &[("L1", 1)], &[])];
        let error = join(&two, &[]).unwrap_err().to_string();
        assert_eq!(error, "L1 could be a guest of L0 or L0-b; choose one, as in --parent L1=L0");
        assert_eq!(family(&join(&two, &[link("L1", "L0-b")]).unwrap())[2], ("L1", Some("L0-b")));
    }

    #[test]
    fn links_must_lead_outwards_to_machines_that_are_there() {
        let parts = [recording("a", &[("L0", 0)], &[]), recording("b", &[("L1", 1)], &[])];
        for (child, parent, words) in [("L0", "L1", "cannot be the host"), ("L1", "L7", "machines: L0, L1")] {
            let error = join(&parts, &[link(child, parent)]).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn bare_files_get_the_names_of_their_kinds_and_never_each_others() {
        let parts = [recording("", &[("L0", 0)], &[("L0", "/x/a.dat"), ("L0", "/x/b.dat")])];
        let joined = join(&parts, &[]).unwrap();
        let paths: Vec<_> = joined.recording.parts.iter().map(|part| part.path.to_str().unwrap()).collect();
        assert_eq!(paths, ["L0/trace.dat", "L0/trace.dat.2"]);
    }

    #[test]
    fn marks_of_emulation_are_kept_and_must_agree() {
        let mut parts = [recording("a", &[("L0", 0)], &[]), recording("b", &[("L1", 1)], &[])];
        parts[0].emulated = Some(Emulator::Tcg);
        let joined = join(&parts, &[]).unwrap();
        assert_eq!((joined.recording.emulated, joined.notes.len()), (Some(Emulator::Tcg), 1));
        parts[1].emulated = Some(Emulator::Bochs);
        assert!(join(&parts, &[]).is_err());
    }
}
