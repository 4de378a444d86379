//! `recording.json`, read and written.
//!
//! Reading is strict where a mistake would change the answer (schema, emulation mark, paths that leave the directory)
//! and survives the rest: keys and kinds of parts that a newer version added are passed over, a part of a machine that
//! is not listed has an unknown level, and a manifest that a crash left empty is replaced by what lies in the
//! directory. Whatever is survived is noted as a problem.

use super::{ClockPair, Emulator, Ended, Error, MANIFEST, Machine, NewFile, Part, PartState, Recording, found};
use crate::Problem;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};

/// The schema this version writes: since 2 with `clock_pairs`.
const SCHEMA: &str = "kvmscope-recording/2";

const READ: [&str; 2] = ["kvmscope-recording/1", SCHEMA];

/// A manifest lists machines and files; one this long is something else.
const MOST_BYTES: u64 = 4 << 20;

/// More machines are not read: a host of a thousand VMs that were all recorded has fewer.
pub(super) const MOST_MACHINES: usize = 1_024;

/// More parts are not read: four for each of the machines that there can be.
pub(super) const MOST_PARTS: usize = 4_096;

/// The manifest as it stands in the file. Machines and parts are read one by one, so that one does not cost the rest.
#[derive(Deserialize)]
struct Manifest {
    schema: Option<String>,
    created: Option<String>,
    tool: Option<String>,
    emulated: Option<String>,
    #[serde(default)]
    machines: Vec<Value>,
    #[serde(default)]
    parts: Vec<Value>,
    #[serde(default)]
    clock_pairs: Vec<Value>,
    #[serde(default)]
    ended: Option<Value>,
}

/// The same for writing, in the order of the contract.
#[derive(Serialize)]
struct Written<'a> {
    schema: &'static str,
    created: &'a Option<String>,
    tool: &'a Option<String>,
    emulated: Option<Emulator>,
    machines: &'a [Machine],
    parts: &'a [Part],
    clock_pairs: &'a [ClockPair],
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: &'a Option<Ended>,
}

/// Reads the manifest of the recording in `root`.
pub(super) fn read(root: &Path) -> Result<Recording, Error> {
    let path = root.join(MANIFEST);
    let mut text = Vec::new();
    let io = |source| Error::Io { path: path.clone(), source };
    crate::files::open(&path).map_err(io)?.take(MOST_BYTES).read_to_end(&mut text).map_err(io)?;
    let manifest: Manifest = match serde_json::from_slice(&text) {
        Ok(manifest) => manifest,
        Err(error) => {
            let sentence = format!("the manifest is damaged ({error}); using the files in the directory instead");
            let problem = Problem::at(
                path.display().to_string(),
                None,
                "a JSON object with schema, machines and parts",
                format!("{} bytes that are not", text.len()),
                text.len() as u64,
                sentence,
            );
            return found::in_directory(root, vec![problem]);
        }
    };
    let refuse = |reason: String| Error::Manifest { path: path.clone(), reason };
    match manifest.schema.as_deref() {
        Some(known) if READ.contains(&known) => {}
        Some(other) => {
            return Err(refuse(format!("its schema is `{other}`; this version reads `{}`", READ.join("` and `"))));
        }
        None => return Err(refuse(format!("it has no schema; `{SCHEMA}` is expected"))),
    }
    let emulated = match manifest.emulated.as_deref() {
        None => None,
        Some("tcg") => Some(Emulator::Tcg),
        Some("bochs") => Some(Emulator::Bochs),
        Some(other) => return Err(refuse(format!("`emulated` is `{other}`; it can be null, \"tcg\" or \"bochs\""))),
    };
    let mut problems = Vec::new();
    let listed = first(manifest.machines, MOST_MACHINES, "machines", &path, &mut problems);
    let mut machines: Vec<Machine> = understood(listed, "a machine", &path, &mut problems);
    let listed = first(manifest.parts, MOST_PARTS, "parts", &path, &mut problems);
    let mut parts: Vec<Part> = understood(listed, "a part", &path, &mut problems);
    let listed = first(manifest.clock_pairs, 2 * MOST_MACHINES, "pairs of clocks", &path, &mut problems);
    let clock_pairs: Vec<ClockPair> = understood(listed, "a pair of clocks", &path, &mut problems);
    let ended = understood(manifest.ended.into_iter().collect(), "why the recorder ended", &path, &mut problems).pop();
    let (mut ids, mut places) = (HashSet::new(), HashSet::new());
    machines.retain(|machine| {
        let is_new = ids.insert(machine.id.clone());
        if !is_new {
            problems.push(repeated("machine", &machine.id, &path));
        }
        is_new
    });
    // A file is of one machine and is read once, however often it is named.
    parts.retain(|part| {
        let is_new = places.insert(part.path.components().filter(|at| *at != Component::CurDir).collect::<PathBuf>());
        if !is_new {
            problems.push(repeated("part", &part.path.display().to_string(), &path));
        }
        is_new
    });
    for part in &mut parts {
        if !stays_inside(&part.path) {
            let reason =
                format!("part `{}` is outside the recording's directory and is not opened", part.path.display());
            return Err(refuse(reason));
        }
        if !ids.contains(&part.machine) {
            problems.push(Problem::at(
                path.display().to_string(),
                None,
                "a machine of the list",
                format!("`{}`", part.machine),
                0,
                format!(
                    "part {} is of machine `{}`, which is not listed, so its level is unknown",
                    part.path.display(),
                    part.machine
                ),
            ));
        }
        follow_rename(root, part);
    }
    Ok(Recording {
        root: root.to_owned(),
        created: manifest.created,
        tool: manifest.tool,
        emulated,
        machines,
        parts,
        clock_pairs,
        ended,
        problems,
        shown: Vec::new(),
    })
}

/// The first `most` entries of a list; that there are more is noted.
fn first(mut entries: Vec<Value>, most: usize, what: &str, path: &Path, problems: &mut Vec<Problem>) -> Vec<Value> {
    if entries.len() > most {
        let count = entries.len();
        problems.push(Problem::at(
            path.display().to_string(),
            None,
            format!("at most {most} {what}"),
            count.to_string(),
            0,
            format!("the manifest lists {count} {what}; those after the first {most} are not read"),
        ));
        entries.truncate(most);
    }
    entries
}

/// An entry that names what an earlier one has named.
fn repeated(what: &str, name: &str, path: &Path) -> Problem {
    let sentence = format!("{what} `{name}` is listed more than once; the first entry counts");
    Problem::at(path.display().to_string(), None, format!("each {what} once"), format!("`{name}`"), 0, sentence)
}

/// Those of `entries` that this version understands; the rest become problems.
fn understood<T: for<'de> Deserialize<'de>>(
    entries: Vec<Value>,
    what: &str,
    path: &Path,
    problems: &mut Vec<Problem>,
) -> Vec<T> {
    let mut kept = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        match serde_json::from_value(entry) {
            Ok(entry) => kept.push(entry),
            Err(error) => problems.push(Problem::at(
                path.display().to_string(),
                None,
                what,
                error.to_string(),
                0,
                format!("entry {index} is not {what} that this version understands ({error}); it is skipped"),
            )),
        }
    }
    kept
}

/// True for a relative path that never climbs.
fn stays_inside(path: &Path) -> bool {
    let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    !path.as_os_str().is_empty() && path.components().all(inside)
}

/// A recorder that died between renaming its part and writing the manifest again left the other name behind.
fn follow_rename(root: &Path, part: &mut Part) {
    let names =
        [("trace.partial", "trace.dat", PartState::Complete), ("trace.dat", "trace.partial", PartState::Partial)];
    for (written, now, state) in names {
        let other = part.path.with_file_name(now);
        if part.path.ends_with(written) && !root.join(&part.path).exists() && root.join(&other).exists() {
            part.path = other;
            part.state = state;
            return;
        }
    }
}

/// The manifest as it is written.
pub(super) fn text(recording: &Recording) -> Result<Vec<u8>, Error> {
    let manifest = Written {
        schema: SCHEMA,
        created: &recording.created,
        tool: &recording.tool,
        emulated: recording.emulated,
        machines: &recording.machines,
        parts: &recording.parts,
        clock_pairs: &recording.clock_pairs,
        ended: &recording.ended,
    };
    let io = |error: serde_json::Error| Error::Io { path: recording.root.join(MANIFEST), source: error.into() };
    let mut text = serde_json::to_vec_pretty(&manifest).map_err(io)?;
    text.push(b'\n');
    Ok(text)
}

/// Writes the manifest whole, makes it durable, and puts it in its place.
pub(super) fn write(recording: &Recording) -> Result<(), Error> {
    let text = text(recording)?;
    let path = recording.root.join(MANIFEST);
    let write = || {
        let new = NewFile::new(&path, 0o666)?;
        new.file().write_all(&text)?;
        new.file().sync_all()?;
        new.replace()?;
        // Its name lasts once the directory is on disk.
        File::open(&recording.root)?.sync_all()
    };
    write().map_err(|source| Error::Io { path: path.clone(), source })
}

#[cfg(test)]
mod tests;
