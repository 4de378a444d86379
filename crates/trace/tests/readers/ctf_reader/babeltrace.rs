//! The same trace as babeltrace2 prints it.

use super::events::{Seen, Value, each_batch, seen};
use kvmscope_trace::batch::LOST;
use kvmscope_trace::{Batch, EventType, Reading, Request};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// One line of `babeltrace2 --names=all --fields=all`.
#[derive(Debug)]
pub(super) struct Line {
    pub time_ns: Option<u64>,
    pub name: String,
    /// Fields of all scopes, the payload's last.
    pub fields: Vec<(String, Printed)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Printed {
    /// A number or a bare word.
    Word(String),
    Text(String),
    List(Vec<Printed>),
    Struct(Vec<(String, Printed)>),
}

/// True if the program is there; else says that the test is skipped.
pub(super) fn is_there() -> bool {
    let there = Command::new("babeltrace2").arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        println!("skipped: babeltrace2 is not installed (Debian: babeltrace2)");
    }
    there
}

/// Calls `take` with each line that babeltrace2 prints of `path`; returns whether it ended well.
pub(super) fn each_line(path: &Path, mut take: impl FnMut(Line)) -> bool {
    let mut child = Command::new("babeltrace2")
        .args(["--no-delta", "--clock-seconds", "--names=all", "--fields=all"])
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if line.contains("name = ") {
            take(parse(&line));
        }
    }
    child.wait().unwrap().success()
}

/// Compares every event and field of `path`; returns how many events were compared.
///
/// Streams are told apart by `cpu_id`; a trace with one stream needs none.
pub(super) fn compare(path: &Path) -> u64 {
    let trace = kvmscope_trace::ctf::open(path).unwrap();
    let types = &trace.facts().event_types;
    let request = Request::everything(trace.facts());
    let reading = Reading { request: &request, fitted: None };
    let mut lanes: Vec<Ours> = Vec::new();
    for lane in trace.lanes(&reading) {
        let mut ours = Ours { cpu: lane.cpu, batches: VecDeque::new(), at: 0 };
        each_batch(lane, types.len(), |batch| ours.batches.push_back(batch));
        lanes.push(ours);
    }
    let mut compared = 0;
    let ended_well = each_line(path, |line| {
        let cpu = line.fields.iter().find(|(name, _)| name == "cpu_id").and_then(|(_, value)| value.int());
        let lane = match lanes.len() {
            1 => 0,
            _ => lanes.iter().position(|lane| lane.cpu.map(i128::from) == cpu).expect("a lane of that CPU"),
        };
        let ours = lanes[lane].next(types).unwrap_or_else(|| panic!("only babeltrace2 has {line:?}"));
        same(&ours, &line);
        compared += 1;
    });
    assert!(ended_well, "babeltrace2 did not read {} to its end", path.display());
    for lane in &mut lanes {
        assert_eq!(lane.next(types), None, "only we have this one");
    }
    compared
}

/// Events of one lane, taken one by one.
struct Ours {
    cpu: Option<u32>,
    batches: VecDeque<Batch>,
    at: usize,
}

impl Ours {
    fn next(&mut self, types: &[EventType]) -> Option<Seen> {
        loop {
            let batch = self.batches.front()?;
            if self.at == batch.len() {
                self.batches.pop_front();
                self.at = 0;
                continue;
            }
            self.at += 1;
            if batch.rows[self.at - 1].kind != LOST {
                return Some(seen(batch, self.at - 1, types));
            }
        }
    }
}

/// Panics unless both are the same event.
pub(super) fn same(ours: &Seen, line: &Line) {
    assert_eq!(ours.name, line.name, "{ours:?} {line:?}");
    if let Some(time_ns) = line.time_ns {
        // babeltrace2 converts frequencies other than 1 GHz in floating point.
        assert!(ours.time_ns.abs_diff(time_ns) <= 1, "{} is not {time_ns}: {line:?}", ours.time_ns);
    }
    for (name, value) in &ours.fields {
        let (name, rest) = name.strip_prefix("context.").unwrap_or(name).split_once('.').unwrap_or((name, ""));
        let theirs = line.fields.iter().rev().find(|(field, _)| field == name);
        let theirs = theirs.unwrap_or_else(|| panic!("babeltrace2 has no {name} in {line:?}"));
        let theirs = rest.split('.').filter(|name| !name.is_empty()).fold(&theirs.1, |value, name| value.member(name));
        assert!(theirs.is(value), "{name} is {value:?} here and {theirs:?} in {line:?}");
    }
}

impl Printed {
    pub(super) fn int(&self) -> Option<i128> {
        let Printed::Word(word) = self else { return None };
        let (negative, digits) = match word.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, word.as_str()),
        };
        let number = match digits.as_bytes() {
            [b'0', b'x', ..] => i128::from_str_radix(&digits[2..], 16),
            [b'0', b'b', ..] => i128::from_str_radix(&digits[2..], 2),
            [b'0', _, ..] => i128::from_str_radix(&digits[1..], 8),
            _ => digits.parse(),
        };
        number.ok().map(|number| if negative { -number } else { number })
    }

    fn member(&self, name: &str) -> &Printed {
        let Printed::Struct(members) = self else { panic!("{self:?} has no {name}") };
        &members.iter().find(|member| member.0 == name).unwrap_or_else(|| panic!("{self:?} has no {name}")).1
    }

    fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Int(number)) => {
                // Negative numbers in base 16, 8 or 2 are printed as two's complement of their own length.
                self.int().is_some_and(|theirs| {
                    theirs == *number || (*number < 0 && theirs > 0 && (theirs - number).count_ones() == 1)
                })
            }
            (Printed::Word(word), Value::Float(number)) => {
                word.parse::<f64>().is_ok_and(|theirs| (theirs - number).abs() <= number.abs() * 1e-5)
            }
            (Printed::Text(text), Value::Text(ours)) if text == ours => true,
            (_, Value::Text(ours)) => self.canonical() == *ours,
            _ => false,
        }
    }

    /// The printed form that the reader gives arrays and structures.
    fn canonical(&self) -> String {
        match self {
            Printed::Word(word) => self.int().map_or_else(|| word.clone(), |number| number.to_string()),
            Printed::Text(text) => format!("\"{text}\""),
            Printed::List(list) => {
                format!("[ {} ]", list.iter().map(Printed::canonical).collect::<Vec<_>>().join(", "))
            }
            Printed::Struct(members) => {
                let members = members.iter().map(|(name, value)| format!("{name} = {}", value.canonical()));
                format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

fn parse(line: &str) -> Line {
    let time_ns = line.strip_prefix("timestamp = ").and_then(|rest| {
        let (seconds, rest) = rest.split_once('.')?;
        let ns = rest.get(..9)?;
        Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + ns.parse::<u64>().ok()?)
    });
    let from = line.find(", name = ").map(|at| at + 9).or_else(|| line.starts_with("name = ").then_some(7));
    let rest = &line[from.expect("a name")..];
    let (name, mut rest) = rest.split_once(", ").unwrap_or((rest, ""));
    let mut fields = Vec::new();
    while let Some((_scope, value)) = rest.split_once(" = ") {
        let mut reader = Reader { rest: value };
        if let Printed::Struct(members) = reader.value() {
            fields.extend(members);
        }
        rest = reader.rest.trim_start_matches(", ");
    }
    Line { time_ns, name: name.to_owned(), fields }
}

struct Reader<'l> {
    rest: &'l str,
}

impl Reader<'_> {
    fn takes(&mut self, words: &str) -> bool {
        let found = self.rest.strip_prefix(words);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn value(&mut self) -> Printed {
        if self.takes("{ }") {
            return Printed::Struct(Vec::new());
        }
        if self.takes("[ ]") {
            return Printed::List(Vec::new());
        }
        if self.takes("{ ") {
            let word = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(0);
            if !self.rest[word..].starts_with(" = ") {
                // A variant: braces around the selected value, without the name of the option.
                let value = self.value();
                assert!(self.takes(" }"), "the end of a variant in {:?}", self.rest);
                return value;
            }
            let mut members = Vec::new();
            while !self.takes(" }") {
                self.takes(", ");
                let (name, rest) = self.rest.split_once(" = ").unwrap_or_else(|| panic!("a member in {:?}", self.rest));
                let name = name.to_owned();
                self.rest = rest;
                members.push((name, self.value()));
            }
            return Printed::Struct(members);
        }
        if self.takes("[ ") {
            let mut list = Vec::new();
            while !self.takes(" ]") {
                self.takes(", ");
                // Elements are numbered: `[0] = 7`.
                let (_, rest) = self.rest.split_once("] = ").expect("an element");
                self.rest = rest;
                list.push(self.value());
            }
            return Printed::List(list);
        }
        if self.takes("( ") {
            // `( "label" : container = 5 )` or `( <unknown> : container = 5 )`
            let (enumeration, rest) = self.rest.split_once(" )").expect("the end of an enumeration");
            self.rest = rest;
            let number = enumeration.rsplit_once("= ").expect("a value").1;
            return Printed::Word(number.to_owned());
        }
        if self.takes("\"") {
            let mut text = String::new();
            let mut chars = self.rest.char_indices();
            while let Some((at, c)) = chars.next() {
                match c {
                    '"' => {
                        self.rest = &self.rest[at + 1..];
                        return Printed::Text(text);
                    }
                    '\\' => text.extend(chars.next().map(|(_, escaped)| escaped)),
                    c => text.push(c),
                }
            }
        }
        let end = self.rest.find([',', ' ']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Printed::Word(word.to_owned())
    }
}
