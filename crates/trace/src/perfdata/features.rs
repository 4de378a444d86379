//! On which machine, with which command and clock was it recorded?
//!
//! In:  the feature sections of perf.data (perf's `write_hostname` .. `write_clock_data` in tools/perf/util/header.c,
//!      Linux 6.12). Out: facts, and perf's names of the events.

use super::container::feature;
use crate::facts::{Coverage, Facts};
use crate::format::Endian;
use base::{CpuSet, MOST_CPUS};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// What the feature sections say.
pub(super) struct Features<'f> {
    bytes: &'f [u8],
    ranges: &'f BTreeMap<u32, Range<usize>>,
    endian: Endian,
}

impl<'f> Features<'f> {
    /// Features that lie at `ranges` of `bytes`.
    pub(super) fn new(bytes: &'f [u8], ranges: &'f BTreeMap<u32, Range<usize>>, endian: Endian) -> Self {
        Self { bytes, ranges, endian }
    }

    pub(super) fn section(&self, number: u32) -> Option<&'f [u8]> {
        self.bytes.get(self.ranges.get(&number)?.clone())
    }

    fn number(&self, bytes: &[u8], at: usize, size: usize) -> Option<u64> {
        bytes.get(at..at + size).map(|number| self.endian.unsigned(number))
    }

    /// A string behind its length (`perf_header_string`), and what follows it.
    fn string<'b>(&self, bytes: &'b [u8]) -> Option<(String, &'b [u8])> {
        let length = usize::try_from(self.number(bytes, 0, 4)?).ok()?;
        let (text, rest) = bytes[4..].split_at_checked(length)?;
        let text = &text[..memchr::memchr(0, text).unwrap_or(text.len())];
        Some((String::from_utf8_lossy(text).into_owned(), rest))
    }

    fn text(&self, number: u32) -> Option<String> {
        self.string(self.section(number)?).map(|(text, _)| text)
    }

    /// Puts into `facts` what they say of machine and recording.
    pub(super) fn tell(&self, facts: &mut Facts) {
        facts.hostname = self.text(feature::HOSTNAME);
        let release = self.text(feature::OSRELEASE);
        let machine = self.text(feature::ARCH);
        facts.uname = match (release, machine) {
            (Some(release), Some(machine)) => Some(format!("{release} {machine}")),
            (release, machine) => release.or(machine),
        };
        let cpus = self.section(feature::NRCPUS).and_then(|section| self.number(section, 0, 4));
        facts.cpus = cpus.unwrap_or(0) as u32;
        let stated = [
            ("perf_version", self.text(feature::VERSION)),
            ("cpu_desc", self.text(feature::CPUDESC)),
            ("cmdline", self.command_line().map(|words| words.join(" "))),
            ("clock_data", self.clock_data()),
        ];
        facts.env = stated.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    }

    /// For which CPUs events were opened. perf opens them on all at the same time, so that each is covered as a whole, or
    /// (`perf record -C`) not at all. `counters` is how many counters an event had: one per CPU.
    pub(super) fn coverage(&self, counters: usize) -> BTreeMap<u32, Coverage> {
        let cpus = self.section(feature::NRCPUS).and_then(|section| self.number(section, 0, 4)).unwrap_or(0);
        let chosen = self.command_line().and_then(|words| chosen_cpus(&words)).filter(|cpus| cpus.len() == counters);
        let covered = |cpu: &u32| chosen.as_ref().is_none_or(|chosen| chosen.contains(*cpu));
        let coverage = |cpu| (cpu, if covered(&cpu) { Coverage::Whole } else { Coverage::Missing });
        (0..(cpus as u32).min(MOST_CPUS)).map(coverage).collect()
    }

    fn command_line(&self) -> Option<Vec<String>> {
        let section = self.section(feature::CMDLINE)?;
        let count = self.number(section, 0, 4)?;
        let mut rest = &section[4..];
        let mut words = Vec::new();
        for _ in 0..count {
            let (word, behind) = self.string(rest)?;
            words.push(word);
            rest = behind;
        }
        Some(words)
    }

    /// The wall clock at one instant of the trace's clock (`struct perf_header`'s `clock`, version 1).
    fn clock_data(&self) -> Option<String> {
        let section = self.section(feature::CLOCK_DATA)?;
        let wall_ns = self.number(section, 8, 8)?;
        let clock_ns = self.number(section, 16, 8)?;
        Some(format!("wall {wall_ns} ns = clock {clock_ns} ns"))
    }

    /// Names of the events by the first of their ids.
    pub(super) fn event_names(&self) -> FxHashMap<u64, String> {
        let mut names = FxHashMap::default();
        let Some(section) = self.section(feature::EVENT_DESC) else { return names };
        let (Some(count), Some(attr_size)) = (self.number(section, 0, 4), self.number(section, 4, 4)) else {
            return names;
        };
        let mut rest = &section[8..];
        for _ in 0..count {
            let Some((_, behind)) = rest.split_at_checked(attr_size as usize) else { break };
            let Some(ids) = self.number(behind, 0, 4) else { break };
            let Some((name, behind)) = self.string(&behind[4..]) else { break };
            if let (Some(id), true) = (self.number(behind, 0, 8), ids > 0) {
                names.insert(id, name);
            }
            let Some((_, next)) = behind.split_at_checked((ids as usize).saturating_mul(8)) else { break };
            rest = next;
        }
        names
    }
}

impl Features<'_> {
    /// simpleperf's names of the events by type and config: NUL-ended names and values in turn, of which
    /// `event_type_info` has lines `sched:sched_switch,2,45` (system/extras/simpleperf/cmd_record.cpp and
    /// record_file_format.h, Android 14).
    pub(super) fn simpleperf_names(&self) -> FxHashMap<(u32, u64), String> {
        let meta = self.section(feature::META_INFO).unwrap_or_default();
        let mut words = meta.split(|byte| *byte == 0);
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            if name == b"event_type_info" {
                return String::from_utf8_lossy(value).lines().filter_map(event_type).collect();
            }
        }
        FxHashMap::default()
    }
}

/// `sched:sched_switch,2,45`: name, type, config.
fn event_type(line: &str) -> Option<((u32, u64), String)> {
    let (rest, config) = line.rsplit_once(',')?;
    let (name, kind) = rest.rsplit_once(',')?;
    Some(((kind.parse().ok()?, config.parse().ok()?), name.to_owned()))
}

/// The CPUs that `perf record -C` was given (tools/perf/Documentation/perf-record.txt, Linux 6.12).
fn chosen_cpus(words: &[String]) -> Option<CpuSet> {
    let list = words.iter().enumerate().find_map(|(at, word)| match word.as_str() {
        "-C" | "--cpu" => words.get(at + 1).map(String::as_str),
        word => word.strip_prefix("--cpu=").or_else(|| word.strip_prefix("-C")),
    })?;
    CpuSet::parse(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_cpus_are_found_in_every_way_to_say_them() {
        for line in [
            "perf record -C 0,2-3 -e kvm:*",
            "perf record -C0,2-3",
            "perf record --cpu=0,2-3 -a",
            "perf record --cpu 0,2-3",
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(chosen_cpus(&words).unwrap().to_string(), "0,2-3", "{line}");
        }
        assert!(chosen_cpus(&["perf".to_owned(), "record".to_owned(), "-a".to_owned()]).is_none());
    }
}
