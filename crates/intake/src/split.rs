//! Which lines of a text belong together, and who reads them?
//!
//! ```text
//! lines --results--> traces --> objects of JSON, migrations, switches --> commands --> what a machine is --> the rest
//! ```
//! Whatever has lines that nothing else prints takes them first. A piece ends where a line of another kind, a prompt or somebody's
//! own words stand.

use crate::commands::{is_key, typed};
use crate::normal::{Line, Normal, joined};
use crate::origin::{self, Origin, Sign};
use crate::{excerpt, guest, results, signs};
use base::recording::ResultFile;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Who reads a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A printed trace.
    Trace,
    /// What a program that measures latencies printed.
    Result(ResultFile),
    /// What QEMU or libvirt say of a migration.
    Migration,
    /// What a switch or a forwarder printed of its packets.
    Switch,
    /// What programs counted, without the events.
    Counts,
    /// What a machine is, and who runs on it.
    Machine,
}

impl Kind {
    /// What its reader takes it for.
    pub fn words(self) -> String {
        match self {
            Kind::Trace => "an excerpt of a trace".to_owned(),
            Kind::Result(result) => format!("a result of a latency test ({result:?})"),
            Kind::Migration => "output of QEMU or libvirt about a migration".to_owned(),
            Kind::Switch => "what a switch or a forwarder printed".to_owned(),
            Kind::Counts => "what a program counted".to_owned(),
            Kind::Machine => "what a machine is, and who runs on it".to_owned(),
        }
    }
}

/// Lines that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Who reads it.
    pub kind: Kind,
    /// Its lines, with their numbers in the file.
    pub lines: Vec<Line>,
    /// What was done to its lines beside taking off marks.
    pub mended: Vec<String>,
    /// Where it was printed, and the line that says so.
    pub origin: Origin,
    pub says: Option<u32>,
}

/// A text, line by line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// In the order of the text.
    pub pieces: Vec<Piece>,
    /// What somebody typed, marks that lines were left out, and who says where something was printed.
    pub commands: Vec<Line>,
    /// Lines that nobody reads.
    pub rest: Vec<Line>,
    /// Whether any line is read otherwise than it stands in the file.
    pub changed: bool,
    /// There are more pieces than are told apart.
    pub is_crowded: bool,
}

impl Piece {
    /// Its first and last line in the file.
    pub fn range(&self) -> (u32, u32) {
        let number = |line: Option<&Line>| line.map_or(0, |line| line.number);
        (number(self.lines.first()), number(self.lines.last()))
    }

    /// The stretches of written lines that it has, as `first-last`: what a machine is stands in several places.
    pub fn stretches(&self) -> String {
        let mut all: Vec<(u32, u32)> = Vec::new();
        for line in self.lines.iter().filter(|line| !line.text.trim().is_empty()) {
            match all.last_mut() {
                Some((_, last)) if line.number <= *last + 2 => *last = line.number,
                _ => all.push((line.number, line.number)),
            }
        }
        let one =
            |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
        all.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// Its text.
    pub fn text(&self) -> String {
        joined(&self.lines)
    }
}

/// How often each line may be looked at for the end of an object: braces that never close would be looked through from each of them.
const MOST_LOOKS: usize = 2;

/// Pieces beyond these are not told apart: a thread of mails has some dozen.
pub(crate) const MOST_PIECES: usize = 64;

/// Splits a text.
pub fn split(normal: Normal) -> Split {
    let Normal { lines, changed } = normal;
    let mut cut = Cutting { taken: vec![false; lines.len()], lines, split: Split { changed, ..Split::default() } };
    let mut refused = Refused::default();
    cut.each(|lines, at| {
        let (kind, end) = result(lines, at, &mut refused)?;
        Some((Piece::of(Kind::Result(kind), &lines[at..end]), at..end))
    });
    cut.each(excerpt::at);
    let mut left = MOST_LOOKS * cut.lines.len();
    cut.each(|lines, at| {
        let end = signs::object(lines, at, &mut left)?;
        let kind = object_kind(&joined(&lines[at..end]))?;
        Some((Piece::of(kind, &lines[at..end]), at..end))
    });
    cut.each(|lines, at| signs::migration(lines, at).map(|end| (Piece::of(Kind::Migration, &lines[at..end]), at..end)));
    // What it is set to belongs to the log of a migration, and to nobody where there is none.
    if cut.split.pieces.iter().any(|piece| piece.kind == Kind::Migration && piece.text().contains("virt-launcher")) {
        cut.each(|lines, at| {
            signs::migration_settings(lines, at).map(|end| (Piece::of(Kind::Migration, &lines[at..end]), at..end))
        });
        cut.settle();
    }
    cut.each(|lines, at| signs::counts(lines, at).map(|end| (Piece::of(Kind::Counts, &lines[at..end]), at..end)));
    cut.each(|lines, at| signs::switch(lines, at).map(|end| (Piece::of(Kind::Switch, &lines[at..end]), at..end)));
    cut.finish()
}

impl Piece {
    pub(crate) fn of(kind: Kind, lines: &[Line]) -> Self {
        Self { kind, lines: lines.to_vec(), mended: Vec::new(), origin: Origin::Unknown, says: None }
    }
}

struct Cutting {
    lines: Vec<Line>,
    taken: Vec<bool>,
    split: Split,
}

impl Cutting {
    /// Takes every piece that `take` finds in what nobody has taken yet: it is handed the lines between two taken ones, and a place
    /// in them.
    fn each(&mut self, mut take: impl FnMut(&[Line], usize) -> Option<(Piece, Range<usize>)>) {
        let mut from = 0;
        while from < self.lines.len() {
            if self.taken[from] {
                from += 1;
                continue;
            }
            let until = (from..self.lines.len()).find(|line| self.taken[*line]).unwrap_or(self.lines.len());
            let mut at = from;
            while at < until {
                let is_blank = self.lines[at].text.trim().is_empty();
                let found = if is_blank { None } else { take(&self.lines[from..until], at - from) };
                let Some((piece, range)) = found else {
                    at += 1;
                    continue;
                };
                if self.split.pieces.len() == MOST_PIECES {
                    self.split.is_crowded = true;
                    return;
                }
                self.taken[from + range.start..from + range.end].fill(true);
                (at, from) = (from + range.end, from + range.end);
                self.split.changed |= !piece.mended.is_empty();
                self.split.pieces.push(piece);
            }
            from = until;
        }
    }

    /// Settings of migrations go to the log that they are beside.
    fn settle(&mut self) {
        let is_log = |piece: &Piece| piece.kind == Kind::Migration && piece.text().contains("virt-launcher");
        let is_set =
            |piece: &Piece| piece.kind == Kind::Migration && signs::migration_settings(&piece.lines, 0).is_some();
        let (set, mut others): (Vec<Piece>, Vec<Piece>) =
            std::mem::take(&mut self.split.pieces).into_iter().partition(is_set);
        if let Some(log) = others.iter_mut().find(|piece| is_log(piece)) {
            log.lines.extend(set.into_iter().flat_map(|piece| piece.lines));
            log.lines.sort_by_key(|line| line.number);
        }
        self.split.pieces = others;
    }

    /// What is left is of a machine, typed, or of nobody.
    fn finish(self) -> Split {
        let Self { lines, taken, mut split } = self;
        // What a switch prints tells of the machine too, and so do disks that are copied beside a guest's memory.
        let tells_both = |line: &Line| {
            let is_of = |piece: &Piece| match piece.kind {
                Kind::Switch => true,
                Kind::Migration => signs::is_of_disk(&line.text),
                _ => false,
            };
            let has = |piece: &Piece| piece.lines.binary_search_by_key(&line.number, |line| line.number).is_ok();
            split.pieces.iter().any(|piece| is_of(piece) && has(piece))
        };
        let notes: Vec<Line> = lines
            .iter()
            .zip(&taken)
            .map(|(line, taken)| match taken {
                true if !tells_both(line) => Line { text: String::new(), ..line.clone() },
                _ => line.clone(),
            })
            .collect();
        let told = host::paste::lines_read(&joined(&notes));
        let signs = origin::signs(&lines, |at| !taken[at] && !told.get(at).is_some_and(|told| *told));
        // What is of a guest as a whole, where no heading tells.
        let of_guest = guest::guest_of(&lines);
        let placed = |line: u32| match origin::at(&signs, line).filter(|sign| sign.origin != Origin::Unknown) {
            Some(Sign { line, origin }) => (origin, Some(line)),
            None => (of_guest.map_or(Origin::Unknown, |_| Origin::Guest(1)), of_guest),
        };
        // Whoever counts levels nests guests.
        let counts_levels =
            |line: &Line| line.text.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == "L1");
        let is_of_levels = |sign: &Sign| lines.iter().any(|line| line.number == sign.line && counts_levels(line));
        let is_nested = signs.iter().any(|sign| matches!(sign.origin, Origin::Guest(2..)) || is_of_levels(sign));
        for piece in &mut split.pieces {
            (piece.origin, piece.says) = placed(piece.range().0);
            // What KVM counts and traces, and who migrates, is where the guests are run.
            if matches!(piece.origin, Origin::Guest(_)) && !is_nested && is_of_kvm(piece) {
                (piece.origin, piece.says) = (Origin::Host, None);
            }
        }
        let says: BTreeSet<u32> = signs.iter().map(|sign| sign.line).chain(of_guest).collect();
        // Understood lines with nothing but blank ones between them.
        let (mut groups, mut is_open): (Vec<Vec<Line>>, bool) = (Vec::new(), false);
        for ((line, taken), understood) in notes.iter().zip(taken).zip(told) {
            let is_blank = line.text.trim().is_empty();
            is_open &= !says.contains(&line.number);
            if understood && !is_blank {
                if !is_open {
                    groups.push(Vec::new());
                }
                groups.last_mut().into_iter().for_each(|group| group.push(line.clone()));
                is_open = true;
                continue;
            }
            if is_blank || taken {
                continue;
            }
            is_open = false;
            // What was typed, and marks that something was left out, are no output that is lost.
            let is_cut = trace::text::told(&line.text) == trace::text::Told::Cut;
            match typed(&line.text).is_some() || is_key(&line.text) || is_cut || says.contains(&line.number) {
                true => split.commands.push(line.clone()),
                false => split.rest.push(line.clone()),
            }
        }
        split.pieces.extend(machines(&notes, groups, placed, is_nested));
        split.pieces.sort_by_key(|piece| (piece.kind == Kind::Machine, piece.range()));
        split
    }
}

/// Whether only who runs guests prints such a piece.
fn is_of_kvm(piece: &Piece) -> bool {
    match piece.kind {
        Kind::Counts | Kind::Migration => true,
        Kind::Trace => {
            piece.lines.iter().any(|line| line.text.contains(" kvm_exit: ") || line.text.contains(" kvm_entry: "))
        }
        Kind::Result(_) | Kind::Switch | Kind::Machine => false,
    }
}

/// What is of a machine, as one piece for each place: with blank lines for all others, so that numbers stay. Where somebody tells places,
/// definitions and threads of VMs are of the host, unless guests are nested.
fn machines(
    notes: &[Line],
    groups: Vec<Vec<Line>>,
    placed: impl Fn(u32) -> (Origin, Option<u32>),
    is_nested: bool,
) -> Vec<Piece> {
    let runs_vms = |lines: &[Line]| host::paste::read(&[(String::new(), joined(lines))]).runs_vms();
    // A process of QEMU is seen where it runs, unless that machine is a guest itself.
    let shows_vms = |lines: &[Line]| {
        let machine = host::paste::read(&[(String::new(), joined(lines))]);
        let is_vm = |name: &str| name.contains("qemu") || name == "kvm";
        let is_guest = machine.total_use.iter().any(|told| told.value.shares.steal > 0.0);
        machine.runs_vms() || !is_guest && machine.process_memory.iter().any(|process| is_vm(&process.name))
    };
    let of_group = |group: &Vec<Line>| placed(group.first().map_or(0, |line| line.number));
    let places: Vec<(Origin, Option<u32>)> = groups.iter().map(of_group).collect();
    let is_told = places.iter().any(|(place, _)| *place != Origin::Unknown);
    let mut by_place: BTreeMap<Origin, (Option<u32>, Vec<Line>)> = BTreeMap::new();
    for (group, (mut place, mut says)) in groups.into_iter().zip(places) {
        if place != Origin::Host && is_told && !is_nested && shows_vms(&group) {
            (place, says) = (Origin::Host, None);
        }
        let known = by_place.entry(place).or_insert((says, Vec::new()));
        known.1.extend(group);
    }
    let whole = |lines: Vec<Line>| {
        let own: BTreeMap<u32, Line> = lines.into_iter().map(|line| (line.number, line)).collect();
        let blank = |line: &Line| Line { text: String::new(), ..line.clone() };
        notes.iter().map(|line| own.get(&line.number).cloned().unwrap_or_else(|| blank(line))).collect::<Vec<_>>()
    };
    let of_place = |(place, (says, lines)): (Origin, (Option<u32>, Vec<Line>))| {
        let lines = whole(lines);
        // Who runs VMs is their host, whoever tells nothing.
        let place = if place == Origin::Unknown && runs_vms(&lines) { Origin::Host } else { place };
        Piece { origin: place, says, ..Piece::of(Kind::Machine, &lines) }
    };
    by_place.into_iter().map(of_place).collect()
}

/// Until which line no result of a kind begins, so that none is looked for twice: runs of lines that fit and say too little.
type Refused = BTreeMap<usize, u32>;

/// The result that begins at a line, and where it ends.
fn result(lines: &[Line], at: usize, refused: &mut Refused) -> Option<(ResultFile, usize)> {
    results::kinds_of(&lines[at].text).find_map(|(shape, kind)| {
        if refused.get(&shape).is_some_and(|until| lines[at].number < *until) {
            return None;
        }
        let end = result_end(kind, lines, at);
        let text = joined(&lines[at..end.min(at + DECIDING_LINES)]);
        if ResultFile::of(text.as_bytes()) == Some(kind) {
            return Some((kind, end));
        }
        refused.insert(shape, lines[end - 1].number + 1);
        None
    })
}

/// Lines that decide what a result is, as the first bytes of a file do.
const DECIDING_LINES: usize = 1_000;

/// Blank lines in a row inside of a result: hwlatdetect and oslat put one between paragraphs.
const MOST_BLANKS: usize = 2;

fn result_end(kind: ResultFile, lines: &[Line], at: usize) -> usize {
    let (mut end, mut blanks, mut has_rows) = (at + 1, 0, false);
    // The last row of each thread of cyclictest.
    let mut threads: BTreeMap<u64, &str> = BTreeMap::new();
    // Where a head stands behind rows, which may be that of another run.
    let mut head = None;
    for (place, line) in lines.iter().enumerate().skip(at) {
        let text = line.text.as_str();
        if text.trim().is_empty() {
            blanks += 1;
            if blanks > MOST_BLANKS {
                break;
            }
            continue;
        }
        let is_event =
            || kind == ResultFile::NoiseTrace && matches!(trace::text::told(text), trace::text::Told::Event(_));
        // Whoever ended it pressed a key, which the terminal shows.
        if is_key(text) {
            continue;
        }
        if !results::is_of(kind, text) && !is_event() {
            break;
        }
        if results::begins(kind, text) && has_rows {
            // A screen that is printed over and over is one run.
            if text.trim_start().starts_with('#') || !matches!(kind, ResultFile::CyclictestText | ResultFile::RtlaTop) {
                break;
            }
            head.get_or_insert(place);
        }
        if results::is_row(kind, text) {
            if let Some(thread) = results::thread_of(text) {
                if threads.get(&thread).is_some_and(|last| results::begins_anew(last, text)) {
                    return head.unwrap_or(place);
                }
                threads.insert(thread, text);
            }
            (has_rows, head) = (true, None);
        }
        (end, blanks) = (place + 1, 0);
    }
    end
}

/// What an object of JSON is, where it is none that tells of a machine.
fn object_kind(text: &str) -> Option<Kind> {
    if let Some(kind) = ResultFile::of(text.as_bytes()) {
        return Some(Kind::Result(kind));
    }
    signs::is_migration_object(text).then_some(Kind::Migration)
}

#[cfg(test)]
mod tests;
