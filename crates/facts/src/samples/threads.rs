//! The threads of a result in JSON: rt-tests and jitterdebugger write them alike.
//!
//! ```text
//! { "cmdline:": .., "thread": { "0": { "histogram": { "17": 3, .. }, "cycles": 1998, "min": 17, .. }, "1": .. } }
//! ```

use super::Found;
use base::scalars::{self, Broken, Scalar};
use std::collections::BTreeMap;
use std::io::{BufRead, Read};

/// A longer document is no result: the largest, a histogram of a million buckets for each of 64 CPUs, would be.
const MOST_BYTES: u64 = 256 << 20;

#[derive(Debug, Default)]
pub(super) struct Threads {
    /// In the order of the file.
    pub list: Vec<Thread>,
    /// What it tells beside them, by the last name that leads to it.
    about: BTreeMap<String, Scalar>,
}

#[derive(Debug, Default)]
pub(super) struct Thread {
    pub name: String,
    /// Samples by length as printed.
    pub histogram: BTreeMap<u64, u64>,
    fields: BTreeMap<String, Scalar>,
}

impl Threads {
    /// Reads `input`, whose threads stand below `key`.
    pub(super) fn read(input: &mut dyn BufRead, key: &str, found: &mut Found) -> Self {
        let (mut threads, mut strange, mut bytes) = (Self::default(), 0_u64, Vec::new());
        let read = Read::take(&mut *input, MOST_BYTES).read_to_end(&mut bytes);
        if let Err(error) = &read {
            found.damaged(bytes.len() as u64, "bytes that can be read", error.to_string(), error.to_string());
        }
        let walked = scalars::each(&bytes, &mut |names, value| match names {
            [top, thread, histogram, length] if top == key && histogram == "histogram" => {
                let place = length.parse().ok().and_then(|length: u64| Some((length, value.count()?)));
                match place {
                    Some((length, count)) => {
                        let known = threads.at(thread).histogram.entry(length).or_default();
                        *known = known.saturating_add(count);
                    }
                    None => strange += 1,
                }
            }
            [top, thread, field] if top == key => {
                threads.at(thread).fields.insert(field.clone(), value);
            }
            [.., name] => {
                threads.about.insert(name.clone(), value);
            }
            [] => {}
        });
        // What cannot be read to its end ends early, and is not damaged for that.
        if let (Ok(_), Err(Broken { offset, reason })) = (read, walked) {
            let text = format!("the file is damaged or was cut off ({reason}); what stands before that is read");
            found.damaged(offset, "JSON up to its end", reason, text);
        }
        if strange > 0 {
            let text = format!("{strange} buckets of histograms are no whole numbers and are not counted");
            found.damaged(0, "lengths and counts that are whole numbers", "others", text);
        }
        threads
    }

    fn at(&mut self, name: &str) -> &mut Thread {
        if self.list.last().is_none_or(|last| last.name != name) {
            self.list.push(Thread { name: name.to_owned(), ..Thread::default() });
        }
        let last = self.list.len() - 1;
        &mut self.list[last]
    }

    /// A number that is told of all threads.
    pub(super) fn count(&self, name: &str) -> Option<u64> {
        self.about.get(name)?.count()
    }

    /// The command, whose name in rt-tests 2.4 ends with a colon.
    pub(super) fn command(&self) -> CommandLine<'_> {
        let text = ["cmdline:", "cmdline"].into_iter().find_map(|name| self.about.get(name));
        CommandLine(match text {
            Some(Scalar::Text(text)) => text,
            Some(Scalar::Count(_) | Scalar::Number(_)) | None => "",
        })
    }
}

impl Thread {
    pub(super) fn count(&self, field: &str) -> Option<u64> {
        self.fields.get(field)?.count()
    }

    pub(super) fn number(&self, field: &str) -> Option<f64> {
        self.fields.get(field)?.number()
    }

    /// All samples of the histogram.
    pub(super) fn sum(&self) -> u64 {
        self.histogram.values().fold(0, |sum: u64, count| sum.saturating_add(*count))
    }
}

pub(super) struct CommandLine<'t>(&'t str);

impl CommandLine<'_> {
    /// Whether it has an option, by its letter, alone or among others (`-mNq`), or by its name.
    pub(super) fn has(&self, letter: char, name: &str) -> bool {
        self.places(letter, name).next().is_some()
    }

    /// The number that an option has: `-h 100`, `-h100`, `-qh 100`, `--histogram=100`.
    pub(super) fn number(&self, letter: char, name: &str) -> Option<u64> {
        let words: Vec<&str> = self.0.split_whitespace().collect();
        let (place, attached) = self.places(letter, name).last()?;
        let value = if attached.is_empty() { words.get(place + 1).copied()? } else { attached };
        value.trim_start_matches('=').parse().ok()
    }

    /// The word in which an option stands, and what is attached to it.
    fn places<'s>(&'s self, letter: char, name: &'s str) -> impl Iterator<Item = (usize, &'s str)> {
        self.0.split_whitespace().enumerate().skip(1).filter_map(move |(place, word)| {
            if let Some(long) = word.strip_prefix("--") {
                let rest = long.strip_prefix(name)?;
                return (rest.is_empty() || rest.starts_with('=')).then_some((place, rest));
            }
            let short = word.strip_prefix('-')?;
            let letters = short.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(short.len());
            let at = short[..letters].find(letter)?;
            Some((place, &short[at + letter.len_utf8()..]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_fails_is_no_damage_of_the_file() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::from_raw_os_error(5)) // EIO
            }
        }
        let mut found = Found::default();
        let half = br#"{"thread": {"0": {"histogram": {"2": 7"#;
        let threads = Threads::read(&mut std::io::BufReader::new(half.chain(Failing)), "thread", &mut found);
        let said: Vec<&str> = found.problems.list().iter().map(|problem| problem.text.as_str()).collect();
        assert_eq!(said, ["Input/output error (os error 5)"]);
        assert_eq!(threads.list[0].histogram[&2], 7, "what stands before that is read");
    }

    #[test]
    fn options_are_found_however_they_are_written() {
        for line in ["cyclictest -q -h 100 -N", "cyclictest -qNh100", "cyclictest -N --histogram=100", "x -Nqh 100"] {
            let command = CommandLine(line);
            assert_eq!((command.number('h', "histogram"), command.has('N', "nsecs")), (Some(100), true), "{line}");
        }
        let command = CommandLine("cyclictest -q -D 2 --nsecs");
        assert_eq!((command.number('h', "histogram"), command.has('h', "histogram")), (None, false));
        assert!(command.has('N', "nsecs") && !CommandLine("./N -q").has('N', "nsecs"));
        assert_eq!(CommandLine("oslat -b").number('b', "bucket-size"), None);
    }
}
