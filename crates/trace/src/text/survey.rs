//! Which events and fields does a text hold?
//!
//! A text describes nothing before it starts, so it is read once, in parallel, before anything is handed out. An
//! event's fields are those that its lines showed; a field is text as soon as one of its values is no number.

use super::body::fields;
use super::line::{Line, Stamp};
use super::lines::{Entry, Lines};
use super::{prints, told};
use crate::request::MOST_FIELDS;
use crate::{EventType, FieldKind, FieldType};
use base::MOST_CPUS;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Most kinds of events: a kernel has some 2,500 tracepoints; more kinds are damage.
const MOST_TYPES: usize = 4096;

/// Lines of other files than the one that is read.
#[derive(Debug, Default)]
pub(super) struct OtherFiles {
    pub lines: u64,
    pub bytes: u64,
    pub name: String,
}

/// What a part of a text holds.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Kinds of events in the order of their first lines.
    pub types: Vec<EventType>,
    /// Names of threads.
    pub comms: BTreeMap<i32, String>,
    /// Process of each thread whose lines name it.
    pub tgids: BTreeMap<i32, i32>,
    /// Most digits behind the point of a second; `None` if all times were bare integers.
    pub digits: Option<u8>,
    /// True if a time was a bare integer.
    pub ticks: bool,
    /// One more than the highest CPU.
    pub cpus: u32,
    /// Lines that tell of an event.
    pub events: u64,
    /// When each CPU's first event happened.
    pub first: BTreeMap<u32, Stamp>,
    /// CPUs whose buffer ftrace says began later than the others (`##### CPU 1 buffer started ####`).
    pub late: BTreeSet<u32>,
    /// What stands there of other files than the one that is read.
    pub others: OtherFiles,
    /// Times of the first events behind marks that lines were left out ([`told::is_cut`]), where events stand before them too.
    pub resumed: Vec<Stamp>,
    /// The first event's time.
    begins: Option<Stamp>,
    /// Lines were left out before the first event, or behind the last.
    cut_before: bool,
    cut_behind: bool,
    /// Per name of an event, its groups and positions in `types`.
    positions: FxHashMap<String, Vec<(String, usize)>>,
}

impl OtherFiles {
    fn add(&mut self, line: &Line<'_>, bytes: usize) {
        self.lines += 1;
        self.bytes += bytes as u64;
        if self.name.is_empty() {
            line.file.clone_into(&mut self.name);
        }
    }
}

impl Survey {
    /// Surveys those of `lines` that come from `file`.
    pub(super) fn of(lines: Lines<'_>, file: &str) -> Self {
        let mut survey = Self::default();
        for (_, entry) in lines {
            let Entry::Text(text) = entry else { continue };
            match Line::parse(&text) {
                Some(line) if line.file == file => survey.add(&line),
                Some(line) => survey.others.add(&line, text.len()),
                None if told::is_cut(&text) => match survey.begins {
                    None => survey.cut_before = true,
                    Some(_) => survey.cut_behind = true,
                },
                None => survey.late.extend(late_cpu(&text)),
            }
        }
        survey
    }

    fn add(&mut self, line: &Line<'_>) {
        self.events += 1;
        self.begins.get_or_insert(line.time);
        if std::mem::take(&mut self.cut_behind) {
            self.resumed.push(line.time);
        }
        match line.time {
            Stamp::Ticks(_) => self.ticks = true,
            Stamp::Seconds { digits, .. } => self.digits = self.digits.max(Some(digits)),
        }
        if let Some(cpu) = line.cpu {
            self.cpus = self.cpus.max(cpu.saturating_add(1));
            if cpu < MOST_CPUS {
                self.first.entry(cpu).or_insert(line.time);
            }
        }
        if line.comm != "<...>" && self.comms.get(&line.tid).is_none_or(|comm| comm != line.comm) {
            self.comms.insert(line.tid, line.comm.to_owned());
        }
        if let Some(tgid) = line.tgid {
            self.tgids.insert(line.tid, tgid);
        }
        let Some(at) = self.position(system_of(line), line.event) else { return };
        for (place, (name, value)) in fields(line.event, line.body).into_iter().enumerate() {
            let kind = match value.number {
                None => FieldKind::Text,
                Some(number) if number < 0 => FieldKind::Signed,
                Some(_) => FieldKind::Unsigned,
            };
            add_field(&mut self.types[at], (name, place), kind);
        }
    }

    /// Adds what the part behind this one holds.
    #[must_use]
    pub(super) fn followed_by(mut self, next: Survey) -> Self {
        self.comms.extend(next.comms);
        self.tgids.extend(next.tgids);
        self.digits = self.digits.max(next.digits);
        self.ticks |= next.ticks;
        self.cpus = self.cpus.max(next.cpus);
        self.events += next.events;
        self.others.lines += next.others.lines;
        self.others.bytes += next.others.bytes;
        if self.others.name.is_empty() {
            self.others.name = next.others.name;
        }
        match next.begins {
            Some(begins) => {
                let is_cut = self.begins.is_some() && (self.cut_behind || next.cut_before);
                self.resumed.extend(is_cut.then_some(begins));
                self.resumed.extend(next.resumed);
                self.cut_before |= self.begins.is_none() && next.cut_before;
                self.begins = self.begins.or(Some(begins));
                self.cut_behind = next.cut_behind;
            }
            None if self.begins.is_some() => self.cut_behind |= next.cut_before,
            None => self.cut_before |= next.cut_before,
        }
        self.late.extend(next.late);
        for (cpu, time) in next.first {
            self.first.entry(cpu).or_insert(time);
        }
        for event in next.types {
            let Some(at) = self.position(&event.system, &event.name) else { continue };
            for (place, field) in event.fields.iter().enumerate() {
                add_field(&mut self.types[at], (&field.name, place), field.kind);
            }
        }
        self
    }

    /// The position in `types` of the event of `line`.
    pub(super) fn position_of(&self, line: &Line<'_>) -> Option<usize> {
        self.find(system_of(line), line.event)
    }

    fn find(&self, system: &str, name: &str) -> Option<usize> {
        self.positions.get(name)?.iter().find(|(known, _)| known == system).map(|(_, position)| *position)
    }

    fn position(&mut self, system: &str, name: &str) -> Option<usize> {
        let known = self.find(system, name);
        if known.is_some() || self.types.len() == MOST_TYPES {
            return known;
        }
        let position = self.types.len();
        self.types.push(EventType { system: system.to_owned(), name: name.to_owned(), fields: Vec::new() });
        self.positions.entry(name.to_owned()).or_default().push((system.to_owned(), position));
        Some(position)
    }
}

/// The CPU of `##### CPU 1 buffer started ####`, which ftrace prints where buffers were overwritten
/// (`test_cpu_buff_start` in kernel/trace/trace.c, Linux 6.12).
pub(super) fn late_cpu(text: &str) -> Option<u32> {
    let rest = text.trim().strip_prefix("##### CPU ")?;
    let cpu = rest.split_once(" buffer started")?.0.parse().ok()?;
    (cpu < MOST_CPUS).then_some(cpu)
}

/// The group of a line's event, as printed or as known.
fn system_of<'l>(line: &Line<'l>) -> &'l str {
    if line.system.is_empty() { prints::system(line.event) } else { line.system }
}

/// Takes in that a line has the field `name` at `place`, where the lines before it mostly had it, too.
fn add_field(event: &mut EventType, (name, place): (&str, usize), kind: FieldKind) {
    let is_there = |field: &FieldType| field.name == name;
    let place = match event.fields.get(place) {
        Some(field) if is_there(field) => Some(place),
        _ => event.fields.iter().position(is_there),
    };
    let Some(field) = place.map(|place| &mut event.fields[place]) else {
        if event.fields.len() < MOST_FIELDS {
            event.fields.push(FieldType { name: name.to_owned(), kind, labels: Vec::new() });
        }
        return;
    };
    field.kind = match (field.kind, kind) {
        (FieldKind::Text, _) | (_, FieldKind::Text) => FieldKind::Text,
        (FieldKind::Signed, _) | (_, FieldKind::Signed) => FieldKind::Signed,
        (kept, _) => kept,
    };
}
