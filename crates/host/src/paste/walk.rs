//! The walk over pasted texts: which block begins at a line, how many lines it takes, and which lines none takes.

use super::{BLOCKS, Pasted, counters, interrupts, marks, switch, threads, waits};
use crate::budget;
use crate::machine::{Domain, Fact, Machine, Pmd};
use base::number::many;
use std::cell::RefCell;
use std::collections::HashMap;

/// How many of the lines that no block took are shown.
const SHOWN_LINES: usize = 3;

/// How much of such a line is shown.
const SHOWN_LETTERS: usize = 60;

pub(crate) struct Text<'a> {
    pub(super) file: &'a str,
    pub(super) lines: Vec<&'a str>,
    /// The same without blanks around them: each reader asks for them, at each line.
    trimmed: Vec<&'a str>,
    /// Texts that no line holds from a line on, so that nobody looks for them twice.
    pub(super) ends: RefCell<HashMap<String, usize>>,
}

impl<'a> Text<'a> {
    pub(super) fn new(file: &'a str, lines: Vec<&'a str>) -> Self {
        let trimmed = lines.iter().map(|line| line.trim()).collect();
        Self { file, lines, trimmed, ends: RefCell::default() }
    }

    /// The line at a position, counted from 0, without blanks around it; empty beyond the end.
    pub(super) fn at(&self, line: usize) -> &'a str {
        self.trimmed.get(line).copied().unwrap_or_default()
    }

    pub(super) fn place(&self, line: usize) -> String {
        format!("{}:{}", self.file, line + 1)
    }

    /// The first line from `line` on for which `ends` holds; `name` tells what is looked for. Where there is none, every
    /// later search for it is told so at once.
    pub(super) fn find_end(&self, line: usize, name: &str, ends: impl Fn(&str) -> bool) -> Option<usize> {
        if self.ends.borrow().get(name).is_some_and(|none_from| line >= *none_from) {
            return None;
        }
        let found = (line..self.lines.len()).find(|line| ends(self.lines[*line]));
        if found.is_none() {
            self.ends.borrow_mut().insert(name.to_owned(), line);
        }
        found
    }

    pub(super) fn fact<T>(&self, value: T, line: usize) -> Fact<T> {
        Fact::new(value, self.place(line))
    }
}

/// Which lines of a text without marks are read. What a bound leaves out is not.
pub fn lines_read(text: &str) -> Vec<bool> {
    let read = base::plain::beginning(text, budget::TEXT_BYTES);
    let lines = read.lines().take(budget::LINES);
    let lines = lines.map(|line| if line.len() > budget::LINE_BYTES { "" } else { line }).collect();
    let text_read = Text::new("", lines);
    let mut told = blocks(&text_read, &mut Pasted::new(Vec::new()));
    told.resize(text.lines().count(), false);
    told
}

/// The receive queues of polling threads that a text tells of, and nothing else.
pub fn receive_queues(file: &str, text: &str) -> Vec<Pmd> {
    let plain = marks::plain(base::plain::beginning(text, budget::TEXT_BYTES));
    let mut lines: Vec<&str> = plain.lines().take(budget::LINES).collect();
    marks::unquote(&mut lines);
    let (text, mut pasted, mut line) = (Text::new(file, lines), Pasted::new(Vec::new()), 0);
    while line < text.lines.len() {
        line += switch::pmd(&text, line, &mut pasted).max(1);
    }
    pasted.machine.switch.pmds
}

/// The machine, and of each text a sentence about the lines that no block took.
pub(super) fn of(domains: Vec<Domain>, texts: &[(String, String)]) -> (Machine, Vec<String>) {
    let mut strange = Vec::new();
    let mut pasted = Pasted::new(domains);
    let mut bytes_left = budget::TEXT_BYTES;
    for (file, text) in texts {
        let whole = text.len();
        let text = base::plain::beginning(text, bytes_left);
        bytes_left -= text.len();
        if text.len() < whole {
            let (read, most) = (text.len(), budget::TEXT_BYTES >> 20);
            pasted.unread(format!("{file}: {read} of {whole} bytes were read; all texts together may have {most} MiB"));
        }
        strange.extend(take(file, &marks::plain(text), &mut pasted));
    }
    interrupts::finish(&mut pasted);
    waits::finish(&mut pasted);
    counters::finish(&mut pasted);
    for (what, (count, most)) in std::mem::take(&mut pasted.left_out) {
        pasted.machine.unread.push(format!("{what} {most} were not read: {count}"));
    }
    (threads::finish(pasted), strange)
}

/// Takes all blocks of one text and notes how many of its lines that were; a sentence about the others, if there are any.
fn take(file: &str, plain: &str, pasted: &mut Pasted) -> Option<String> {
    let mut lines: Vec<&str> = plain.lines().take(budget::LINES).collect();
    let beyond = plain.lines().skip(budget::LINES).count();
    if beyond > 0 {
        pasted.unread(format!("{file}: lines after the first {} were not read: {beyond}", budget::LINES));
    }
    let (is_written, mut too_long) = (|line: &&str| !line.trim().is_empty(), 0);
    for line in lines.iter_mut().filter(|line| line.len() > budget::LINE_BYTES && is_written(line)) {
        (*line, too_long) = ("", too_long + 1);
    }
    if too_long > 0 {
        pasted.unread(format!("{file}: lines of more than {} bytes were not read: {too_long}", budget::LINE_BYTES));
    }
    // Marks alone say nothing, and nothing of them is lost.
    let marks = marks::unquote(&mut lines);
    let written_lines = written(&lines) + marks + too_long + beyond;
    let text = Text::new(file, lines);
    let told = blocks(&text, pasted);
    let is_strange = |line: &usize| !told[*line] && !text.at(*line).is_empty();
    let understood = marks + (0..told.len()).filter(|line| told[*line] && !text.at(*line).is_empty()).count();
    let lost = (written_lines - understood) as u64;
    pasted.machine.sources.push((file.to_owned(), understood as u64, lost));
    let strange = (0..told.len()).filter(is_strange).take(SHOWN_LINES);
    let shown = strange.map(|line| format!("line {} `{}`", line + 1, shown(text.at(line)))).collect::<Vec<_>>();
    (!shown.is_empty())
        .then(|| format!("{file}: {} not understood, the first: {}", many(lost, "line"), shown.join(", ")))
}

/// Takes all blocks of one text, and says of each line whether one took it.
fn blocks(text: &Text<'_>, pasted: &mut Pasted) -> Vec<bool> {
    let mut told = vec![false; text.lines.len()];
    pasted.begin_text();
    let mut line = 0;
    while line < text.lines.len() {
        let taken = match text.at(line).is_empty() {
            true => None,
            false => BLOCKS.iter().map(|block| block(text, line, pasted)).find(|taken| *taken > 0),
        };
        let end = text.lines.len().min(line + taken.unwrap_or(1));
        told[line..end].fill(taken.is_some());
        line = end;
    }
    told
}

/// The beginning of a line, as it is shown to people.
fn shown(line: &str) -> String {
    let plain: String = line.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    match plain.char_indices().nth(SHOWN_LETTERS) {
        Some((end, _)) => format!("{}..", &plain[..end]),
        None => plain,
    }
}

/// How many lines are not blank.
fn written(lines: &[&str]) -> usize {
    lines.iter().filter(|line| !line.trim().is_empty()).count()
}
