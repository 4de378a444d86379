//! What is in what the user named: recordings, however they are packed, and any text with pieces that are read.
//!
//! ```text
//! - --> a copy --> archive, compressed --> a directory --> recording | trees of machines | its files, each by itself
//!                  text                --> its pieces   --> a recording for each run
//!                  anything else       --> as it lies
//! ```

use super::Stdin;
use crate::check::places::{self, Root};
use anyhow::{anyhow, bail};
use archive::{Links, Unpacked};
use base::recording::{Error, MANIFEST, Recording, Shown};
use process::exit::as_named;
use process::interrupt::Interrupt;
use std::path::{Path, PathBuf};

/// What a data set has (docs/use/compare.md); the slim build knows no more of them.
const DATASET: &str = "_kvmscope.json";

/// Files in an archive without a manifest that are opened: the attachments of a ticket are some dozen.
const MOST_FILES: usize = 64;

/// Opens what `path` names, or stdin: one recording for each run that is in it.
pub(crate) fn brought(path: &Path, stdin: &Stdin, interrupt: &Interrupt) -> anyhow::Result<Vec<Recording>> {
    let asked = path;
    let path = stdin.path(asked)?;
    let copy = (path != *asked).then(|| Shown { place: path.clone(), name: asked.to_owned() });
    let mut recordings = of_path(&path, asked, stdin, interrupt).map_err(|error| as_named(error, copy.as_slice()))?;
    recordings.iter_mut().for_each(|recording| recording.shown.extend(copy.clone()));
    Ok(recordings)
}

/// Which lines of what `path` names go to which reader, a sentence each: for whoever wonders why an answer lacks something.
pub(crate) fn reading(path: &Path, stdin: &Stdin, interrupt: &Interrupt) -> anyhow::Result<Vec<String>> {
    let place = stdin.path(path)?;
    let is_file = place.is_file() && archive::format_of(&place).is_none();
    let name = path.display();
    let split = match is_file {
        true => intake::told(&place).map_err(|error| anyhow!("{name}: {error}"))?,
        false => None,
    };
    let Some(split) = split else {
        let recordings = brought(&place, stdin, interrupt)?;
        let parts = recordings.iter().flat_map(|recording| recording.parts.iter().map(move |part| (recording, part)));
        return Ok(parts
            .map(|(recording, part)| {
                let place = part.path.display().to_string();
                format!("{name}: {} is read as {}", recording.as_named(&place), part.kind.name())
            })
            .collect());
    };
    let of_piece = |piece: &intake::Piece| {
        let mended = piece.mended.iter().map(|sentence| format!("; {sentence}")).collect::<String>();
        format!("{name}:{}: {}{}{mended}", piece.stretches(), piece.kind.words(), piece.origin.words())
    };
    let of_lines = |lines: &[intake::Line], what: &str| {
        let shown = |line: &intake::Line| format!("{name}:{}: {what}: {}", line.number, line.text.trim());
        lines.iter().map(shown).collect::<Vec<_>>()
    };
    let pieces: Vec<String> = split.pieces.iter().map(of_piece).collect();
    Ok([pieces, of_lines(&split.commands, "typed, or a mark"), of_lines(&split.rest, "read by nobody")].concat())
}

/// Opens what `path` names where one recording is wanted.
pub(crate) fn opened(path: &Path, stdin: &Stdin, interrupt: &Interrupt) -> anyhow::Result<Recording> {
    let mut recordings = brought(path, stdin, interrupt)?;
    match (recordings.pop(), recordings.len()) {
        (Some(only), 0) => Ok(only),
        (last, before) => {
            let all = recordings.iter().chain(&last).map(Recording::title).collect::<Vec<_>>().join(", ");
            let (path, count) = (path.display(), before + 1);
            bail!(
                "{path} has {count} runs ({all}) but one is needed; save them as separate files, or use `kvmscope report {path}`, which answers each"
            )
        }
    }
}

fn of_path(path: &Path, name: &Path, stdin: &Stdin, interrupt: &Interrupt) -> anyhow::Result<Vec<Recording>> {
    if archive::format_of(path).is_some() {
        // A packed recording has no links; whatever it is called, its manifest comes first.
        let links = if archive::is_recording(path) { Links::Never } else { Links::Inside };
        return stdin.unpacked(path, links, interrupt, |unpacked| {
            let recordings = of_unpacked(path, name, unpacked, stdin, interrupt);
            recordings.map_err(|error| as_named(error, &[unpacked.shown()]))
        });
    }
    if path.is_dir() {
        return match Recording::open(path) {
            Err(Error::Empty { .. }) if path.join(DATASET).is_file() => bail!(
                "{0} is a data set of recordings: kvmscope fleet report {0}",
                base::shell::quoted(&path.display().to_string())
            ),
            Err(Error::Empty { .. }) if places::is_tree(path) => Ok(vec![places::trees(&[Root::at(path)])?]),
            opened => Ok(vec![opened?]),
        };
    }
    of_file(path, name, stdin, interrupt)
}

/// A file that is no archive: a trace, a result, or a text with several of them.
fn of_file(path: &Path, name: &Path, stdin: &Stdin, interrupt: &Interrupt) -> anyhow::Result<Vec<Recording>> {
    let scratch = || {
        let scratch = interrupt.temporary("kvmscope-pieces").map_err(std::io::Error::other)?;
        let place = scratch.path().to_owned();
        stdin.keep(scratch);
        Ok(place)
    };
    intake::of_file(path, name, scratch).map_err(|error| match error {
        intake::Error::Recording(error) => error.into(),
        error => error.into(),
    })
}

/// What was in an archive: a recording, the trees of machines, one directory that is a recording, or files.
fn of_unpacked(
    path: &Path,
    name: &Path,
    unpacked: &Unpacked,
    stdin: &Stdin,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Recording>> {
    let root = unpacked.root();
    let shown = vec![unpacked.shown()];
    if root.join(MANIFEST).is_file() {
        return Ok(vec![unpacked.recording()?]);
    }
    let problems = unpacked.problems.clone();
    if places::is_tree(&root) {
        return Ok(vec![Recording { problems, shown, ..places::trees(&[Root::at(&root)])? }]);
    }
    let mut tops: Vec<PathBuf> = std::fs::read_dir(&root)?.flatten().map(|entry| entry.path()).collect();
    tops.sort();
    if let [only] = tops.as_slice()
        && only.is_dir()
    {
        return Ok(vec![Recording { shown, ..Recording::open(only)? }]);
    }
    let files: Vec<&PathBuf> = tops.iter().filter(|top| top.is_file()).take(MOST_FILES).collect();
    if files.is_empty() {
        bail!("{} has neither a recording nor files that are read", path.display());
    }
    let (mut recordings, mut refused) = (Vec::new(), None);
    for file in &files {
        // One file is what was compressed; several are called by their names inside.
        let called = if files.len() == 1 { name.to_owned() } else { name.join(file.file_name().unwrap_or_default()) };
        match of_file(file, &called, stdin, interrupt) {
            Ok(of_file) => recordings.extend(of_file.into_iter().map(|mut recording| {
                recording.shown.insert(0, Shown { place: (*file).clone(), name: called.clone() });
                recording.shown.extend(shown.clone());
                recording
            })),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    if let Some(first) = recordings.first_mut() {
        first.problems.extend(problems);
    }
    match refused {
        Some(error) if recordings.is_empty() => Err(error),
        _ => Ok(recordings),
    }
}
