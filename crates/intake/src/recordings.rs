//! Pieces of a text become recordings: one for each run, with the pieces as parts.

use crate::normal::{Line, Normal, letters};
use crate::origin::Origin;
use crate::split::{Kind, Piece, Split, split};
use base::number::counted;
use base::recording::result_file::LOOKED_AT;
use base::recording::{Machine, Part, PartKind, PartState, Recording, Shown};
use base::{Level, Problem, files};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A text of more bytes is no paste: it is opened as it is.
const MOST_BYTES: u64 = 32 << 20;

/// Lines of the rest that are quoted.
const QUOTED: usize = 3;

/// What a text was found to be.
#[derive(Debug)]
pub struct Brought {
    /// One for each run, in the order of the text.
    pub recordings: Vec<Recording>,
    /// Line by line.
    pub split: Split,
}

/// The pieces of a file; `None` for one that is no text, or too large to be a paste.
///
/// # Errors
/// If the operating system refuses to read it.
pub fn told(path: &Path) -> io::Result<Option<Split>> {
    let mut bytes = Vec::new();
    let mut file = files::open(path)?;
    file.by_ref().take(LOOKED_AT).read_to_end(&mut bytes)?;
    if !is_text(&bytes) {
        return Ok(None);
    }
    file.take(MOST_BYTES + 1 - bytes.len() as u64).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MOST_BYTES).then(|| split(Normal::of(&bytes))))
}

/// The pieces of a file that people paste. `None` where it is to be opened where it lies: it is no text, or one piece as it stands, or
/// nothing in it is known.
///
/// # Errors
/// If the operating system refuses to read the file.
pub fn parted(path: &Path) -> io::Result<Option<Split>> {
    let Some(split) = told(path)? else { return Ok(None) };
    let is_whole = !split.changed && split.pieces.len() == 1 && split.rest.is_empty() && split.commands.is_empty();
    if split.pieces.is_empty()
        || is_whole && split.pieces[0].origin == Origin::Unknown && opens_as(path, part_kind(split.pieces[0].kind))
    {
        return Ok(None);
    }
    Ok(Some(split))
}

/// Writes the pieces of `path` below `scratch`, which is private and empty, and opens them; `name` is what the user calls the file.
///
/// # Errors
/// If the operating system refuses to write a piece.
pub fn open(split: Split, path: &Path, name: &Path, scratch: &Path) -> io::Result<Brought> {
    let recordings = made(&split, path, name, scratch)?;
    Ok(Brought { recordings, split })
}

/// Whether a bare file is taken for a part of that kind.
fn opens_as(path: &Path, kind: PartKind) -> bool {
    Recording::open(path).is_ok_and(|bare| matches!(bare.parts.as_slice(), [part] if part.kind == kind))
}

/// Whether a file that begins so is text, in whatever letters.
fn is_text(first: &[u8]) -> bool {
    // Before markup is taken away: what strips colours drops other bytes that nobody prints, too.
    let letters = letters(&first[..first.len().min(4_096) & !1]);
    !first.is_empty() && !letters.contains('\0')
}

/// The pieces that happened together, in the order of the text; what the machine is goes with the first.
pub(crate) fn runs(pieces: &[Piece]) -> Vec<Vec<&Piece>> {
    let mut runs: Vec<Vec<&Piece>> = vec![Vec::new()];
    let (machine, happened): (Vec<&Piece>, Vec<&Piece>) = pieces.iter().partition(|piece| piece.kind == Kind::Machine);
    for piece in happened {
        let is_again = |known: &&Piece| {
            known.kind == piece.kind
                && is_of_one_run(known)
                && is_of_one_run(piece)
                && !counts_others(known, piece)
                && !looks_again(known, piece)
        };
        let is_there = runs.last().is_some_and(|run| run.iter().any(is_again));
        if is_there {
            runs.push(Vec::new());
        }
        runs.last_mut().into_iter().for_each(|run| run.push(piece));
    }
    runs[0].extend(machine);
    runs
}

/// Whether a second piece of its kind is of another run. What a switch says of its threads, queues and interfaces is of one host; a
/// forwarder that shows its ports anew was asked again.
fn is_of_one_run(piece: &Piece) -> bool {
    let shows_ports = |line: &Line| line.text.contains(" statistics for port ");
    piece.kind != Kind::Switch || piece.lines.iter().any(shows_ports)
}

/// Whether a piece looks again at the migration that another was under way: it has the same memory and took as long to begin.
fn looks_again(one: &Piece, other: &Piece) -> bool {
    const ACTIVE: [&str; 4] =
        ["Migration status: active", "Status: active", "Job type: Unbounded", "Job type: Bounded"];
    const SAME: [&str; 4] = ["total ram:", "setup:", "Memory total:", "Setup time:"];
    let words = |line: &Line| line.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let same = |piece: &Piece| {
        piece
            .lines
            .iter()
            .map(words)
            .filter(|line| SAME.iter().any(|name| line.starts_with(name)))
            .collect::<BTreeSet<_>>()
    };
    let is_active = one.lines.iter().map(words).any(|line| ACTIVE.contains(&line.as_str()));
    one.kind == Kind::Migration && is_active && !same(one).is_empty() && same(one) == same(other)
}

/// Whether two pieces count different things: exits by reason, and accesses by port, of one run.
fn counts_others(one: &Piece, other: &Piece) -> bool {
    let names = |piece: &Piece| {
        let named = |line: &Line| {
            let (mut words, is_count) = (line.text.split_whitespace().map(str::to_owned), |word: &str| {
                word.bytes().all(|byte| byte.is_ascii_digit())
            });
            words.next().filter(|_| words.next().is_some_and(|word| is_count(&word)))
        };
        piece.lines.iter().filter_map(named).collect::<BTreeSet<String>>()
    };
    one.kind == Kind::Counts && names(one).is_disjoint(&names(other))
}

fn made(split: &Split, path: &Path, name: &Path, scratch: &Path) -> io::Result<Vec<Recording>> {
    let runs = runs(&split.pieces);
    let is_only = runs.len() == 1;
    let mut recordings = Vec::new();
    for (run, number) in runs.iter().zip(1..) {
        let mut recording = Recording::of_nothing(concat!("kvmscope ", env!("CARGO_PKG_VERSION")));
        recording.tool = None;
        let told = RunContext::of(run);
        for (piece, place) in run.iter().zip(1..) {
            let lines = piece.range();
            let machine = told.machine_of(piece);
            let called = match is_only || piece.kind == Kind::Machine {
                true => name.to_owned(),
                false => suffixed(name, lines),
            };
            let directory = scratch.join(format!("{number}.{place}"));
            fs::create_dir(&directory)?;
            let file = called.file_name().unwrap_or(path.as_os_str());
            let place = directory.join(file);
            fs::write(&place, piece.text())?;
            recording.problems.extend(piece.mended.iter().map(|sentence| {
                let (file, sentence) = (called.display(), sentence.as_str());
                Problem::remark(file.to_string(), "", "", format!("{file}: {sentence}"))
            }));
            recording.parts.push(Part {
                path: place.clone(),
                machine: machine.id.clone(),
                kind: part_kind(piece.kind),
                clock: None,
                state: PartState::Complete,
            });
            recording.shown.push(Shown { place, name: called });
            if !recording.machines.contains(&machine) {
                recording.machines.push(machine);
            }
        }
        recording.machines.sort_by_key(|machine| machine.id.clone());
        recordings.push(recording);
    }
    let (pieces, names) = (split.pieces.iter().filter(|piece| piece.origin != Origin::Unknown), name.display());
    let says: BTreeSet<(u32, Origin)> = pieces.filter_map(|piece| Some((piece.says?, piece.origin))).collect();
    let says = says.iter().map(|(line, place)| match place {
        Origin::Guest(level) => {
            format!("line {line} shows that it is of a guest, called {}", Level::At(*level))
        }
        Origin::Host | Origin::Unknown => {
            format!("line {line} shows that it is of the host, called {}", Level::L0)
        }
    });
    let says = says.collect::<Vec<_>>().join("; ");
    let whose = (!says.is_empty()).then(|| Problem::remark(names.to_string(), "", "", format!("{names}: {says}")));
    let crowded = split.is_crowded.then(|| {
        let (file, most) = (name.display().to_string(), crate::split::MOST_PIECES);
        let text = format!("{file}: it has more than {most} pieces, and the rest was not read; split the file");
        Problem::remark(file, "fewer pieces", "more", text)
    });
    if let Some(last) = recordings.last_mut() {
        last.problems.extend(left(&split.rest, name).into_iter().chain(whose).chain(crowded));
    }
    Ok(recordings)
}

/// What is told of a run's pieces together.
struct RunContext {
    /// Whether a piece without a place is of a machine that nobody names: it stands beside others that have one, or a program measured
    /// there, which runs in guests and on hosts alike. What happens beside a trace is of its machine.
    is_apart: bool,
}

impl RunContext {
    fn of(run: &[&Piece]) -> Self {
        let is_trace = |piece: &&Piece| piece.kind == Kind::Trace && piece.origin == Origin::Unknown;
        let is_measured = |piece: &&Piece| matches!(piece.kind, Kind::Result(_)) || piece.origin != Origin::Unknown;
        Self { is_apart: run.iter().any(is_measured) && !run.iter().any(is_trace) }
    }

    /// A guest is one level above the machine that runs it, however many there are below, unless somebody says which it is.
    fn machine_of(&self, piece: &Piece) -> Machine {
        let of_nobody = matches!(piece.kind, Kind::Result(_) | Kind::Machine) && self.is_apart;
        match piece.origin {
            Origin::Guest(level) => Machine { id: Level::At(level).to_string(), level, ..Machine::default() },
            Origin::Unknown if of_nobody => Machine { id: Machine::UNTOLD.to_owned(), ..Machine::default() },
            Origin::Host | Origin::Unknown => Machine::default(),
        }
    }
}

fn part_kind(kind: Kind) -> PartKind {
    match kind {
        Kind::Trace => PartKind::Text,
        Kind::Result(_) => PartKind::Samples,
        Kind::Migration => PartKind::Qmp,
        Kind::Switch => PartKind::Pmd,
        Kind::Counts => PartKind::Counts,
        Kind::Machine => PartKind::Notes,
    }
}

/// `paste.txt:12-30`, as compilers and grep name lines.
fn suffixed(name: &Path, (first, last): (u32, u32)) -> PathBuf {
    let mut name = name.to_owned().into_os_string();
    name.push(if first == last { format!(":{first}") } else { format!(":{first}-{last}") });
    name.into()
}

/// What nobody reads, as people are told of it.
fn left(rest: &[Line], name: &Path) -> Option<Problem> {
    if rest.is_empty() {
        return None;
    }
    let quoted = rest.iter().take(QUOTED).map(|line| {
        let text = base::plain::beginning(line.text.trim(), 60).replace('\t', " ");
        format!("line {} `{text}`", line.number)
    });
    let file = name.display().to_string();
    let (count, first) = (rest.len() as u64, quoted.collect::<Vec<_>>().join(", "));
    let text =
        format!("{file}: {} of no program that is read, such as {first}", counted(count, "line is", "lines are"));
    Some(Problem::remark(file, "the output of a program that is read", "others", text))
}

#[cfg(test)]
mod tests;
