//! Do our own readers see every event and value of every story in every format?

use generate::scenario::{self, ALL};
use generate::{Generation, Scenario, Story, Target, Vendor};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use trace::replay::{Event, Listener, replay};
use trace::write::{Shape, Value};
use trace::{Facts, FieldKind, Reading, Request, open};

/// One line per event, sorted. A host with 4-byte longs keeps the low half of longs and of all instruction pointers.
fn written(story: &Story, narrow: bool) -> Vec<String> {
    let line = |record: &trace::write::Record| {
        let event = &story.schema.events[record.event];
        let mut line = format!("{} {} {} {}", record.ticks, record.cpu, record.tid, event.name);
        for (field, value) in event.fields.iter().zip(&record.values) {
            match value {
                Value::Integer(number)
                    if narrow && (matches!(field.shape, Shape::Long { .. }) || field.name.ends_with("rip")) =>
                {
                    line.push_str(&format!(" {}={}", field.name, number & 0xffff_ffff));
                }
                Value::Integer(number) => line.push_str(&format!(" {}={number}", field.name)),
                other => line.push_str(&format!(" {}={}", field.name, String::from_utf8_lossy(other.content()))),
            }
        }
        line
    };
    let mut lines: Vec<_> = story.records.iter().map(line).collect();
    lines.sort();
    lines
}

/// Writes down what a trace holds, in the same words.
struct Notes<'f> {
    facts: &'f Facts,
    /// Events and fields of the story.
    known: BTreeSet<(&'f str, &'f str)>,
    /// What to add to a time, so that the first event has the story's first time: CTF counts from 1970.
    shift: i128,
    first_ns: u64,
    lines: Vec<String>,
    losses: u64,
}

impl Listener for Notes<'_> {
    fn start(&mut self, origin_ns: u64) {
        self.shift = i128::from(self.first_ns) - i128::from(origin_ns);
    }

    fn event(&mut self, event: &Event<'_>) {
        if event.is_loss() {
            self.losses += 1;
            return;
        }
        let kind = &self.facts.event_types[usize::from(event.kind)];
        let time = i128::from(event.time_ns) + self.shift;
        let mut line = format!("{time} {} {} {}", event.cpu, event.tid, kind.name);
        for (at, field) in kind.fields.iter().enumerate() {
            // CTF's context comes as a field more.
            if !self.known.contains(&(kind.name.as_str(), field.name.as_str())) {
                continue;
            }
            let value = match field.kind {
                FieldKind::Text => String::from_utf8_lossy(event.content(at).unwrap_or_default()).into_owned(),
                _ => event.or_zero(at).to_string(),
            };
            line.push_str(&format!(" {}={}", field.name, value.trim_end_matches('\0')));
        }
        self.lines.push(line);
    }
}

/// The events, the number of losses, and the damage that a reader finds.
fn read(path: &Path, story: &Story) -> (Vec<String>, u64, Vec<String>) {
    let trace = open(path).unwrap();
    let facts = trace.facts();
    let request = Request::everything(facts);
    let reading = Reading { request: &request, fitted: None };
    let pairs = story
        .schema
        .events
        .iter()
        .flat_map(|event| event.fields.iter().map(|field| (event.name.as_str(), field.name.as_str())));
    let mut notes =
        Notes { facts, known: pairs.collect(), shift: 0, first_ns: story.truth.from_ns, lines: Vec::new(), losses: 0 };
    let totals = replay(&*trace, &reading, &mut notes);
    notes.lines.sort();
    let problems = facts.problems.iter().chain(totals.problems.list());
    (notes.lines, notes.losses, problems.map(|problem| problem.text.clone()).collect())
}

#[test]
fn every_binary_format_gives_back_what_was_written() {
    let mut stories: BTreeMap<String, Story> = ALL.iter().map(|s| (s.name.to_owned(), s.run(3))).collect();
    stories.extend((0..5).map(|seed| (format!("random{seed}"), scenario::random(seed))));
    for (name, story) in &stories {
        let directory = tempfile::tempdir().unwrap();
        for target in Target::all() {
            // Rounded times and LTTng's own names and fields are others' to compare.
            if matches!(target, Target::TextPrinted | Target::Ctf1 { lttng: true, .. }) {
                continue;
            }
            let case = format!("{name} as {}", target.name());
            let expected = written(story, target.name().contains("-32"));
            let path = story.write(target, directory.path()).unwrap();
            let (found, losses, problems) = read(&path, story);
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "{case}");
            }
            assert_eq!(found.len(), expected.len(), "{case}");
            assert_eq!(losses, story.losses.len() as u64, "{case}");
            assert!(problems.is_empty(), "{case}: {problems:?}");
        }
    }
}

#[test]
fn every_line_of_the_kernels_own_text_is_understood() {
    for name in ["halts", "hogs", "chain-with-halt", "vmx-refused", "svm-refused", "losses"] {
        for generation in Generation::ALL {
            let scenario = Scenario::named(name).unwrap();
            let vendor = if generation < Generation::V5_10 { Vendor::Svm } else { scenario.vendors[0] };
            let Some(story) = scenario.run_on(vendor, generation, 3) else { continue };
            let directory = tempfile::tempdir().unwrap();
            let path = story.write(Target::TextPrinted, directory.path()).unwrap();
            let (found, losses, problems) = read(&path, &story);
            let case = format!("{name} {vendor:?} {generation:?}");
            assert_eq!(found.len(), story.records.len(), "{case}");
            assert_eq!(losses, story.losses.len() as u64, "{case}");
            assert!(problems.is_empty(), "{case}: {problems:?}");
            let names = |lines: &[String]| {
                let mut names: Vec<_> =
                    lines.iter().filter_map(|line| line.split(' ').nth(3)).map(str::to_owned).collect();
                names.sort();
                names
            };
            assert_eq!(names(&found), names(&written(&story, false)), "{case}");
        }
    }
}
