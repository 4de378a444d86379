//! The gaps of `kvmscope bench timer`: when a loop did not run that does nothing but read the time-stamp counter.

use super::buckets::Lengths;
use super::{Found, SampleClock, Samples, Source};
use base::gaps::Gaps;
use std::io::BufRead;

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let gaps = match Gaps::read(input) {
        Ok(gaps) => gaps,
        Err(error) => {
            let text = format!("the gaps of a loop cannot be read: {error}");
            return found.damaged(0, "the gaps of kvmscope bench timer", "something else", text);
        }
    };
    let mut lengths = Lengths::default();
    let mut samples = Samples {
        tid: Some(gaps.tid),
        cpu: Some(gaps.cpu),
        unit_ns: 1,
        clock: SampleClock::Monotonic,
        ..Samples::new(Source::Gaps, gaps.tid.to_string())
    };
    let mut untimed = 0_u64;
    for (end_ns, length_ns) in gaps.gaps {
        lengths.add(length_ns);
        untimed += u64::from(!samples.add_timed(end_ns, length_ns));
    }
    if untimed > 0 {
        let text = format!("{untimed} gaps are counted without their times: only the first keep theirs");
        found.remark("fewer gaps", "more", text);
    }
    found.samples.push(lengths.of(samples));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_samples_with_times_and_damage_is_said() {
        let file = Gaps {
            schema: base::gaps::SCHEMA.to_owned(),
            tid: 77,
            cpu: 3,
            threshold_ns: 20_000,
            looked: vec![(0, 1_000_000_000)],
            gaps: vec![(500_000, 30_001), (900_000, 100_000)],
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gaps.json");
        file.write(&path).unwrap();
        let text = std::fs::read(&path).unwrap();
        assert_eq!(base::recording::ResultFile::of(&text), Some(base::recording::ResultFile::Gaps));
        let mut found = Found::default();
        read(&mut text.as_slice(), &mut found);
        let [samples] = found.samples.as_slice() else { panic!("{found:?}") };
        assert_eq!((samples.count, samples.tid, samples.cpu), (2, Some(77), Some(3)));
        assert_eq!(samples.extremes_ns(), (Some(30_001), Some(100_000)));
        let timed: Vec<_> = samples.timed.iter().map(|timed| (timed.end_ns, timed.length_ns)).collect();
        assert_eq!((timed, samples.clock), (file.gaps, SampleClock::Monotonic));
        let mut found = Found::default();
        read(&mut &text[..text.len() / 2], &mut found);
        assert_eq!((found.samples.len(), found.problems.list().len()), (0, 1));
    }
}
