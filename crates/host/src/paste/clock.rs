//! When was a machine looked at, and how long lies between two looks, where the text tells it: a `date` or an epoch above each of them,
//! or `sleep 10` in between or in the command that asks for all.
//! ```text
//! Tue Mar 12 10:00:00 UTC 2024      2024-03-12 10:00:00      1710237600      while true; do date; ethtool -S eth0; sleep 1; done
//! ```
//! Source: date(1), coreutils 9.1, without a format, `-I`, `+%s`, `+%s.%N`.

use super::{Text, prompt};

/// Lines above a look in which its date or the command may stand.
pub(super) const ABOVE: usize = 3;

/// A time: seconds, and the words of the day that they are of.
#[derive(Debug, Clone, PartialEq)]
struct Moment {
    seconds: f64,
    day: String,
}

/// Where a look stands in its text, and what that tells of its time.
#[derive(Debug, Clone)]
pub(super) struct When {
    file: String,
    /// Its first line, counted from 0, and the line behind its last.
    at: usize,
    end: usize,
    moment: Option<Moment>,
    /// Of a command that goes on looking: how long it sleeps.
    rhythm: Option<f64>,
}

impl When {
    pub(super) fn of(text: &Text<'_>, at: usize, end: usize) -> Self {
        let above = (at.saturating_sub(ABOVE)..at).rev();
        let (file, moment) = (text.file.to_owned(), above.clone().find_map(|line| moment(text.at(line))));
        Self { file, at, end, moment, rhythm: above.clone().find_map(|line| seconds_slept(text.at(line))) }
    }

    /// Seconds since the look before it in the same text. A command that asks for both stands above the first.
    pub(super) fn since(&mut self, text: &Text<'_>, before: &When) -> Option<f64> {
        if before.file != self.file {
            return None;
        }
        let between = (before.end..self.at).rev().take(MOST_BETWEEN).map(|line| text.at(line));
        // Whoever typed again had waited for as long as he liked.
        let is_typed = |line: &str| line.starts_with("$ ") || prompt::command(line).is_some();
        let goes_on = !between.clone().any(is_typed);
        self.rhythm = between.clone().find_map(seconds_slept).or(before.rhythm.filter(|_| goes_on));
        let dated = before.moment.as_ref().zip(self.moment.as_ref()).filter(|(one, two)| one.day == two.day);
        dated.map(|(one, two)| two.seconds - one.seconds).filter(|span| *span > 0.0).or(self.rhythm)
    }

    pub(super) fn is_of_the_text_of(&self, other: &When) -> bool {
        self.file == other.file
    }
}

/// Lines between two looks that are looked at.
const MOST_BETWEEN: usize = 64;

/// Whether a line is nothing but a time.
pub(super) fn is_moment(line: &str) -> bool {
    moment(line).is_some()
}

/// `sleep 10`, `sleep 1m`, in a command of whatever else.
pub(super) fn seconds_slept(line: &str) -> Option<f64> {
    let mut words = line.split(|letter: char| letter.is_whitespace() || letter == ';');
    words.find(|word| word.trim_start_matches(['`', '(']) == "sleep")?;
    let told = words.find(|word| !word.is_empty())?.trim_end_matches(['`', ')']);
    let (number, scale) = match told.strip_suffix('m') {
        Some(minutes) => (minutes, 60.0),
        None => (told.trim_end_matches('s'), 1.0),
    };
    number.parse::<f64>().ok().map(|number| number * scale).filter(|seconds| *seconds > 0.0)
}

/// `Tue Mar 12 10:00:00 UTC 2024`, `2024-03-12 10:00:00`, or seconds since 1970: ten digits since 2001.
fn moment(line: &str) -> Option<Moment> {
    if !line.starts_with(|first: char| first.is_ascii_digit() || "MTWFS".contains(first)) {
        return None;
    }
    let whole = line.split('.').next().unwrap_or_default();
    if whole.len() == 10 && line.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Some(Moment { seconds: line.parse().ok()?, day: String::new() });
    }
    let words: Vec<&str> = line.split(['T', ' ']).filter(|word| !word.is_empty()).collect();
    let line: Vec<&str> = line.split_whitespace().collect();
    let is_day = |word: &str| ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].iter().any(|day| word.starts_with(day));
    let is_iso = |word: &str| word.len() == 10 && word.matches('-').count() == 2 && word.starts_with("20");
    let words = match (line.first(), words.first()) {
        (Some(day), _) if is_day(day) && (5..=7).contains(&line.len()) => line,
        (_, Some(date)) if is_iso(date) && words.len() <= 3 => words,
        _ => return None,
    };
    let clock = words.iter().position(|word| word.matches(':').count() >= 2)?;
    let parts: Option<Vec<f64>> =
        words[clock].split(['+', 'Z']).next()?.split(':').map(|part| part.replace(',', ".").parse().ok()).collect();
    let [hours, minutes, seconds] = parts?.try_into().ok()?;
    let day: Vec<&str> = words.iter().enumerate().filter(|(at, _)| *at != clock).map(|(_, word)| *word).collect();
    Some(Moment { seconds: hours * 3_600.0 + minutes * 60.0 + seconds, day: day.join(" ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_epochs_and_sleeps_tell_how_long_lies_between_two_looks() {
        let span = |first: &str, between: &str| {
            let whole = format!("{first}look\n{between}look\n");
            let text = Text::new("t", whole.lines().collect());
            let looks: Vec<usize> = (0..text.lines.len()).filter(|line| text.at(*line) == "look").collect();
            let [one, two] = looks[..] else { panic!("{whole}") };
            let before = When::of(&text, one, one + 1);
            When::of(&text, two, two + 1).since(&text, &before)
        };
        assert_eq!(span("1741687331\n", "1741687336\n"), Some(5.0));
        assert_eq!(span("1741687331.5\n", "1741687336.25\n"), Some(4.75));
        assert_eq!(span("Tue Mar 11 10:02:11 CET 2025\n", "Tue Mar 11 10:02:21 CET 2025\n"), Some(10.0));
        assert_eq!(span("Tue Mar 11 10:02:11 CET 2025\n", "Wed Mar 12 10:02:21 CET 2025\n"), None, "another day");
        assert_eq!(span("2024-03-12T10:00:58+01:00\n", "2024-03-12T10:01:02+01:00\n"), Some(4.0));
        assert_eq!(span("", "$ sleep 2m; cat x\n"), Some(120.0));
        assert_eq!(span("$ while true; do cat x; sleep 1; done\n", ""), Some(1.0));
        assert_eq!(span("$ sleep 4; cat x\n", "$ cat x\n"), None, "who typed again waited for as long as he liked");
        assert_eq!(span("4174168733\n", "41741\n"), None, "five digits are no epoch");
        assert_eq!(span("", ""), None);
    }
}
