//! What does a printed trace tell, as people paste it into tickets?
//!
//! In:  the output of `trace-cmd report` (with or without -R, -N, -t, -l), of ftrace's `trace` and `trace_pipe`, or of
//!      `perf script`, from kernels 3.10 to 6.18.
//! Out: the same events under the field names of the binary formats, as far as they were printed. Names that were
//!      printed in place of numbers become fields of their own; `prints.rs` lists them.
//! ```text
//! lines   parts of 256 KB, cut at line ends     line   who, where, when, which event
//! survey  all lines once: events and fields     body   the event's fields, by the patterns of `prints`
//! ```
//! What the text does not say stays unsaid: `Facts::env["time_digits"]` has the number of digits behind the point of a
//! second (6: events of the same microsecond have equal times), and bare integers are ticks of an unknown clock. Of a
//! report of several files those lines count that come from the first: they are one machine's. What is refused, such as
//! the functions of a latency tracer, is answered with what it is (`foreign.rs`).

mod body;
mod cut;
mod foreign;
mod line;
mod lines;
mod prints;
mod survey;
mod told;

pub use cut::cut;
pub use told::{Told, told};

use crate::facts::{Coverage, Facts, Format, StatedLoss};
use crate::mapped::MappedFile;
use crate::{Batch, Error, FieldKind, Kind, Lane, Pieces, Reading, Scratch, Source, Trace};
use base::number::many;
use base::parallel;
use base::{Clock, ClockSource, MOST_CPUS, Problem, Problems};
use line::{Line, LossLine};
use lines::{Entry, Lines};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use survey::Survey;

/// Bytes of text in a piece: some thousand lines.
const PIECE: usize = 256 << 10;

/// So many lines that are no comments may stand before the first event: what a mail or a page says of it.
const MOST_FOREWORD_LINES: usize = 100;

/// Bytes of comments that may stand before the first event: `perf script --header` lists the ids of every event's
/// counters, one for each CPU.
const MOST_COMMENT_BYTES: u64 = 8 << 20;

/// What a latency tracer writes at the top (kernel/trace/trace_output.c, Linux 6.12).
const LATENCY_HEADER: &str = "latency trace v1.1.5";

/// True if the file at `path`, which starts with `first`, is a printed trace.
pub(crate) fn sniff_file(path: &Path, first: &[u8]) -> bool {
    if !is_only_comments(first) {
        return sniff(first);
    }
    let mut more = Vec::new();
    let read = base::files::open(path).and_then(|file| file.take(MOST_COMMENT_BYTES).read_to_end(&mut more));
    read.is_ok() && sniff(&more)
}

/// True if `first`, the start of a file, holds a line of a printed trace among its first lines.
pub fn sniff(first: &[u8]) -> bool {
    if memchr::memchr(0, first).is_some() {
        return false;
    }
    let is_event = |entry: Entry<'_>| match entry {
        Entry::Text(text) => Line::parse(&text).is_some() || text.contains(LATENCY_HEADER),
        Entry::TooLong(_) => false,
    };
    foreword(first).any(|(_, entry)| is_event(entry))
}

/// The lines up to and with the last one of a foreword.
fn foreword(bytes: &[u8]) -> impl Iterator<Item = (u64, Entry<'_>)> {
    let mut others = 0;
    Lines::new(bytes, 0..bytes.len()).take_while(move |(_, entry)| {
        others += usize::from(!matches!(entry, Entry::Text(text) if is_comment(text)));
        others <= MOST_FOREWORD_LINES
    })
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

fn is_only_comments(first: &[u8]) -> bool {
    // The last line may be cut.
    let whole = memchr::memrchr(b'\n', first).map_or(0, |end| end + 1);
    let is_one = |(_, entry)| matches!(entry, Entry::Text(text) if is_comment(&text));
    whole > 0 && Lines::new(first, 0..whole).all(is_one)
}

/// Opens a printed trace.
///
/// # Errors
/// If it cannot be read or mapped, or no line tells of an event.
pub fn open(path: &Path) -> Result<Box<dyn Trace>, Error> {
    Ok(Box::new(Text::open(path)?))
}

struct Text {
    bytes: MappedFile,
    facts: Facts,
    survey: Survey,
    /// The file whose lines are read, where the text is a report of several.
    file: String,
}

impl Text {
    fn open(path: &Path) -> Result<Self, Error> {
        Self::new(MappedFile::open(path)?, path)
    }

    /// The clock by which times are told, where `fitted` is one that was found for its ticks.
    fn clock(&self, fitted: Option<&Clock>) -> Clock {
        let has_none = self.facts.clock.source == ClockSource::None;
        fitted.filter(|_| has_none).unwrap_or(&self.facts.clock).clone()
    }

    fn new(bytes: MappedFile, path: &Path) -> Result<Self, Error> {
        let parts = bytes.len().div_ceil(PIECE);
        let file = first_file(&bytes);
        let part = |index: usize| Survey::of(Lines::new(&bytes, index * PIECE..(index + 1) * PIECE), &file);
        let surveys = parallel::map(parts, part);
        let survey = surveys.into_iter().reduce(Survey::followed_by).unwrap_or_default();
        let clock = if survey.ticks { Clock::uncalibrated("ticks") } else { Clock::nanoseconds("printed seconds") };
        let mut facts = Facts::new(path.to_owned(), Format::Text, clock);
        let is_latency = read_header(&bytes, &mut facts);
        if survey.events == 0 {
            return Err(refusal(path, &bytes, is_latency));
        }
        if survey.others.lines > 0 {
            let name = path.display().to_string();
            let others = &survey.others;
            let text = format!(
                "{name}: the text has several recordings; read: {file}; ignored: {} of others such as {}; use the recordings \
                 themselves, each with its machine",
                many(others.lines, "line"),
                others.name
            );
            facts.problems.push(Problem::remark(name, "lines of one recording", "several", text));
        }
        facts.bytes = bytes.len() as u64;
        facts.cpus = facts.cpus.max(survey.cpus);
        facts.comms.clone_from(&survey.comms);
        facts.tgids.clone_from(&survey.tgids);
        facts.env.insert("time_digits".into(), survey.digits.unwrap_or(0).to_string());
        if survey.ticks && survey.digits.is_some() {
            facts.problems.push(Problem::at(
                path.display().to_string(),
                None,
                "times that are all seconds, or all ticks",
                "both",
                0,
                "the text mixes timestamps in seconds with bare integers: it was combined from several traces",
            ));
        }
        facts.event_types.clone_from(&survey.types);
        facts.resumed_ns = survey.resumed.iter().map(|time| time.ns(&facts.clock)).collect();
        let coverage = coverage(&survey, &facts);
        facts.cover(coverage);
        Ok(Self { bytes, facts, survey, file })
    }
}

/// The file that the first event comes from; empty where the text does not tell files apart.
fn first_file(bytes: &[u8]) -> String {
    let file = |(_, entry)| match entry {
        Entry::Text(text) => Some(Line::parse(&text)?.file.to_owned()),
        Entry::TooLong(_) => None,
    };
    Lines::new(bytes, 0..bytes.len()).find_map(file).unwrap_or_default()
}

/// A CPU that the header counts and that has no event was idle, as far as a text tells.
fn coverage(survey: &Survey, facts: &Facts) -> BTreeMap<u32, Coverage> {
    let mut coverage: BTreeMap<u32, Coverage> =
        (0..facts.cpus.min(MOST_CPUS)).map(|cpu| (cpu, Coverage::Whole)).collect();
    for (cpu, first) in survey.first.iter().filter(|(cpu, _)| survey.late.contains(cpu)) {
        coverage.insert(*cpu, Coverage::between(first.ns(&facts.clock), u64::MAX));
    }
    coverage
}

impl Trace for Text {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn torn(&self) -> Vec<String> {
        self.bytes.is_torn().then(|| self.facts.path.display().to_string()).into_iter().collect()
    }

    fn lanes<'t>(&'t self, reading: &'t Reading<'t>) -> Vec<Lane<'t>> {
        let plan = self.facts.event_types.iter().map(|event| {
            let kind = reading.request.kind_of(event)?;
            let positions = reading.request.events[kind].positions(event);
            Some((Kind::try_from(kind).ok()?, positions))
        });
        let pieces = TextPieces { text: self, plan: plan.collect(), clock: self.clock(reading.fitted.as_ref()) };
        let name = self.facts.path.display().to_string();
        let bytes = self.bytes.len() as u64;
        vec![Lane { name, cpu: None, bytes, source: Source::Pieces(Box::new(pieces)) }]
    }
}

/// Per type of event, the kind and the wanted fields' positions in the type.
type Plan = Vec<Option<(Kind, Vec<Option<usize>>)>>;

struct TextPieces<'t> {
    text: &'t Text,
    plan: Plan,
    clock: Clock,
}

impl Pieces for TextPieces<'_> {
    fn count(&self) -> usize {
        self.text.bytes.len().div_ceil(PIECE)
    }

    fn most_bytes(&self) -> usize {
        PIECE
    }

    fn decode(&self, index: usize, _scratch: &mut Scratch, batch: &mut Batch) {
        batch.read_bytes = self.text.bytes.len().saturating_sub(index * PIECE).min(PIECE) as u64;
        let mut problems = Problems::default();
        // A loss is printed before the event that follows it.
        let mut losses: Vec<LossLine> = Vec::new();
        let mut time_ns = 0;
        for (offset, entry) in Lines::new(&self.text.bytes, index * PIECE..(index + 1) * PIECE) {
            let text = match entry {
                Entry::Text(text) => text,
                Entry::TooLong(length) => {
                    problems.note(self.problem(offset, length, "a line of trace text of sensible length"));
                    continue;
                }
            };
            if let Some(line) = Line::parse(&text) {
                time_ns = line.time.ns(&self.clock);
                add_losses(&mut losses, time_ns, batch);
                if self.add(&line, time_ns, batch).is_none() {
                    problems.note(self.problem(offset, text.len(), "an event of one of the first 4,096 kinds"));
                }
            } else if let Some(loss) = LossLine::parse(&text) {
                losses.push(loss);
            } else {
                match told::beside_events(&text) {
                    Told::Broken => problems.note(self.problem(offset, text.len(), "a whole line of a printed trace")),
                    Told::Other => problems.note(self.remark(offset, text.len())),
                    _ => {}
                }
            }
        }
        add_losses(&mut losses, time_ns, batch);
        batch.problems.extend_from_slice(problems.list());
    }
}

fn add_losses(losses: &mut Vec<LossLine>, time_ns: u64, batch: &mut Batch) {
    for loss in losses.drain(..) {
        batch.lost(time_ns, loss.cpu, loss.events, 0);
    }
}

impl TextPieces<'_> {
    /// Adds the event of `line`; `None` if it is of a kind that was not surveyed.
    fn add(&self, line: &Line<'_>, time_ns: u64, batch: &mut Batch) -> Option<()> {
        if line.file != self.text.file {
            return Some(());
        }
        let index = self.text.survey.position_of(line)?;
        batch.saw(time_ns, index);
        let Some((kind, positions)) = &self.plan[index] else { return Some(()) };
        let printed = body::fields(line.event, line.body);
        let types = &self.text.facts.event_types[index].fields;
        let find = |position: &Option<usize>| {
            let field = &types[(*position)?];
            // Lines of one event mostly have its fields in the same places.
            let (_, value) = printed
                .get((*position)?)
                .filter(|(name, _)| *name == field.name)
                .or_else(|| printed.iter().find(|(name, _)| *name == field.name))?;
            (field.kind == FieldKind::Text || value.number.is_some()).then_some((field.kind, *value))
        };
        let found = positions.iter().map(find).enumerate();
        let mask = found.fold(0, |mask, (bit, value)| mask | u64::from(value.is_some()) << bit);
        batch.begin(time_ns, *kind, line.cpu.unwrap_or(0), line.tid, mask);
        for value in positions.iter().map(find) {
            let value = match value {
                None => 0,
                Some((FieldKind::Text, value)) => batch.handle(value.text.as_bytes()),
                Some((_, value)) => value.number.map_or(0, |number| number as u64),
            };
            batch.value(value);
        }
        Some(())
    }

    fn problem(&self, offset: u64, length: usize, expected: &str) -> Problem {
        let file = self.text.facts.path.display().to_string();
        Problem::at(
            file,
            offset,
            expected,
            format!("{length} other bytes"),
            length as u64,
            "some lines begin as an event does and do not end as one: they were cut or wrapped, and were ignored",
        )
    }

    /// A line of somebody's, between events.
    fn remark(&self, offset: u64, length: usize) -> Problem {
        let file = self.text.facts.path.display().to_string();
        let text = "some lines of the text are not events and were not read";
        let (offset, bytes_skipped) = (Some(offset), length as u64);
        Problem { offset, bytes_skipped, ..Problem::remark(file, "a line of a printed trace", "others", text) }
    }
}

/// How many events the buffer has and how many were written to it (`print_event_info` in kernel/trace/trace.c, Linux 6.12): the
/// others were overwritten.
const ENTRIES: &str = "# entries-in-buffer/entries-written:";

/// What perf script, ftrace and trace-cmd say in comments, and how facts call it.
const SAID: &[(&str, &str)] = &[
    ("# tracer:", "tracer"),
    (ENTRIES, "entries"),
    ("# cmdline :", "cmdline"),
    ("# perf version :", "perf_version"),
    ("# cpudesc :", "cpu_desc"),
];

/// Reads what stands before the first event; true if a latency tracer wrote it.
fn read_header(bytes: &[u8], facts: &mut Facts) -> bool {
    let mut is_latency = false;
    for (_, entry) in foreword(bytes) {
        let Entry::Text(text) = entry else { continue };
        is_latency |= text.contains(LATENCY_HEADER);
        let cpus = text.strip_prefix("cpus=").or_else(|| text.strip_prefix("# nrcpus avail : "));
        let cpus = cpus.or_else(|| text.split_once("#P:").map(|(_, cpus)| cpus));
        if let Some(cpus) = cpus.and_then(|cpus| cpus.split([')', ' ']).next()?.trim().parse().ok()) {
            facts.cpus = cpus;
        }
        let said = |prefix: &str| text.strip_prefix(prefix).map(|value| value.trim().to_owned());
        facts.hostname = facts.hostname.take().or_else(|| said("# hostname :"));
        facts.uname = facts.uname.take().or_else(|| said("# os release :"));
        for (prefix, name) in SAID {
            if let Some(value) = text.strip_prefix(prefix) {
                if *prefix == ENTRIES {
                    facts.losses.extend(overwritten(value));
                }
                facts.env.insert((*name).into(), value.split("#P:").next().unwrap_or("").trim().to_owned());
            }
        }
    }
    is_latency
}

/// `3/1003   #P:4`: a thousand were overwritten.
fn overwritten(entries: &str) -> Option<StatedLoss> {
    let (left, written) = entries.split_whitespace().next()?.split_once('/')?;
    let count = written.parse::<u64>().ok()?.checked_sub(left.parse().ok()?)?;
    (count > 0).then(|| StatedLoss { cpu: None, kind: "overrun".into(), count })
}

fn refusal(path: &Path, bytes: &[u8], is_latency: bool) -> Error {
    let file = path.to_owned();
    let start = &bytes[..bytes.len().min(foreign::LOOKED_AT)];
    let reason = if is_latency { Some(foreign::LATENCY_TRACER) } else { foreign::reason(start) };
    if let Some(reason) = reason {
        return Error::Unsupported { file, reason: reason.into() };
    }
    let first = String::from_utf8_lossy(&bytes[..bytes.len().min(32)]);
    Error::UnknownFormat { file, found: format!("it starts with {first:?}") }
}

/// Why a text with names of events in it, which starts with `first`, is none that is read; what to give instead.
pub fn why_not(first: &[u8]) -> Option<&'static str> {
    foreign::reason(first)
}
