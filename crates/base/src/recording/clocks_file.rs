//! Pairs of clocks of a machine on which nothing recorded: what relates the times of its results to its time-stamp counter.
//!
//! ```text
//! # kvmscope-clocks/1: monotonic_ns realtime_ns tsc error_ns
//! 49717680885282 1790000000123456789 111864781991884 40       before the test
//! 49777680885301 1790000060123456808 246864782034634 38       after it
//! ```
//! `kvmscope clocks` prints such a line, and so can any program. Lines in between tell by how much CLOCK_MONOTONIC, which NTP
//! slews, leaves the line through the first and the last one; that counts as error.

use super::result_file::LOOKED_AT;
use super::{ClockPair, Error, Moment, WallClock};
use std::io::Read;
use std::path::Path;

/// How such a file begins.
const SIGN: &str = "# kvmscope-clocks/1";

/// The head of a file, and what stands where a machine has no time-stamp counter.
const HEAD: &str = "# kvmscope-clocks/1: monotonic_ns realtime_ns tsc error_ns";
const NO_COUNTER: &str = "-";

impl ClockPair {
    /// The pair as a file of its own, to which others can be appended.
    pub fn as_file(&self) -> String {
        let tsc = self.tsc.map_or_else(|| NO_COUNTER.to_owned(), |tsc| tsc.to_string());
        format!("{HEAD}\n{} {} {tsc} {}\n", self.monotonic_ns, self.realtime_ns, self.error_ns)
    }
}

/// The first and the last pair of the file at `path`, taken on `machine`; `None` if it is something else.
pub(super) fn read(path: &Path, machine: &str) -> Result<Option<Vec<ClockPair>>, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    crate::files::open(path).map_err(io)?.take(LOOKED_AT).read_to_end(&mut bytes).map_err(io)?;
    if !bytes.starts_with(SIGN.as_bytes()) {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.map(|(line, number)| {
        let wrong = || Error::Named(format!("{}:{number}: no line of `{HEAD}`", path.display()));
        pair(line, machine).ok_or_else(wrong)
    });
    let mut pairs = pairs.collect::<Result<Vec<ClockPair>, Error>>()?;
    if pairs.is_empty() {
        return Err(Error::Named(format!("{} has no pair of clocks behind its first line", path.display())));
    }
    let first = pairs.remove(0);
    let Some(last) = pairs.pop() else { return Ok(Some(vec![first])) };
    let mut last = ClockPair { at: Moment::End, ..last };
    let line = WallClock { first: first.clone(), last: Some(last.clone()) };
    let bend_ns = pairs.iter().filter_map(|pair| line.bend_ns(pair)).max().unwrap_or(0);
    last.error_ns = last.error_ns.saturating_add(bend_ns);
    Ok(Some(vec![first, last]))
}

fn pair(line: &str, machine: &str) -> Option<ClockPair> {
    let mut words = line.split_whitespace();
    let mut number = || words.next()?.parse().ok();
    let (monotonic_ns, realtime_ns) = (number()?, number()?);
    let tsc = match words.next()? {
        NO_COUNTER => None,
        ticks => Some(ticks.parse().ok()?),
    };
    let error_ns = words.next()?.parse().ok()?;
    let (machine, at) = (machine.to_owned(), Moment::Begin);
    let pair = ClockPair { machine, at, realtime_ns, monotonic_ns, tsc, error_ns, utc_error_ns: None };
    words.next().is_none().then_some(pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> (tempfile::TempDir, Result<Option<Vec<ClockPair>>, Error>) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("clocks.txt");
        std::fs::write(&path, text).unwrap();
        let read = read(&path, "L1");
        (place, read)
    }

    #[test]
    fn the_first_pair_and_the_last_one_are_kept_and_what_lies_between_shows_how_straight_the_clock_is() {
        let pair = |monotonic_ns, tsc| ClockPair {
            machine: "L1".into(),
            at: Moment::Begin,
            realtime_ns: 7 + monotonic_ns,
            monotonic_ns,
            tsc,
            error_ns: 40,
            utc_error_ns: None,
        };
        let two = [pair(1_000, Some(5_000)), pair(101_000, Some(205_000))];
        let text = two.each_ref().map(ClockPair::as_file).concat();
        let [first, last] = &two;
        let last = ClockPair { at: Moment::End, ..last.clone() };
        assert_eq!(written(&text).1.unwrap(), Some(vec![first.clone(), last.clone()]));
        let bent = [first.as_file(), pair(51_000, Some(105_600)).as_file(), last.as_file()].concat();
        let [_, bent] = &written(&bent).1.unwrap().unwrap()[..] else { panic!() };
        assert_eq!(bent.error_ns, 340, "600 ticks of half a ns");
        let alone = written(&pair(3, None).as_file()).1.unwrap().unwrap();
        assert_eq!(alone, [pair(3, None)]);
    }

    #[test]
    fn another_file_is_none_and_a_damaged_one_is_named_with_its_line() {
        assert_eq!(written("0;49717.680885282;26\n").1.unwrap(), None);
        let damaged = |line: &str| written(&format!("{HEAD}\n{line}\n")).1.unwrap_err().to_string();
        for line in ["1 2 3", "1 2 x 4", "1 2 3 4 5", "-1 2 3 4"] {
            assert!(damaged(line).contains("clocks.txt:2:"), "{}", damaged(line));
        }
        assert!(written(HEAD).1.unwrap_err().to_string().contains("no pair of clocks"));
    }
}
