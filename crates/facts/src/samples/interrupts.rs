//! The interrupts of `kvmscope bench irq`: how long from an edge outside a guest to the guest's handler.

use super::buckets::Lengths;
use super::{Found, SampleClock, Samples, Source};
use base::interrupts::Interrupts;
use std::io::BufRead;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edges {
    /// Between two of them.
    pub period_ns: u64,
    /// The guest slept between them; else it spun.
    pub halts: bool,
    /// All of them. Each was answered, or is in one of the next three.
    pub count: u64,
    /// Those that came before the handler had run for an older one.
    pub merged: u64,
    /// Those that no handler answered.
    pub unanswered: u64,
    /// Those of which nobody knows whether they were answered.
    pub lost: u64,
    /// Runs of the handler without an edge.
    pub extra: u64,
}

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let file = match Interrupts::read(input) {
        Ok(file) => file,
        Err(error) => {
            let text = format!("the interrupts of a guest cannot be read: {error}");
            return found.damaged(0, "the interrupts of kvmscope bench irq", "something else", text);
        }
    };
    let edges = Edges {
        period_ns: file.period_ns,
        halts: file.halts,
        count: file.edges,
        merged: file.merged,
        unanswered: file.unanswered,
        lost: file.lost,
        extra: file.extra,
    };
    let told =
        [edges.merged, edges.unanswered, edges.lost].into_iter().fold(file.answered.len() as u64, u64::saturating_add);
    if told != edges.count {
        let text = format!("it tells of {} edges, and what became of {told}", edges.count);
        found.remark("what became of every edge", "another number", text);
    }
    let mut through = file.tids;
    let tid = through.pop();
    let mut samples = Samples {
        tid,
        through,
        cpu: Some(file.cpu),
        unit_ns: 1,
        error_ns: file.error_ns,
        clock: SampleClock::Monotonic,
        ..Samples::new(Source::Irq, tid.map_or_else(String::new, |tid| tid.to_string()))
    };
    let (mut lengths, mut untimed) = (Lengths::default(), 0_u64);
    for (end_ns, length_ns) in file.answered {
        lengths.add(length_ns);
        untimed += u64::from(!samples.add_timed(end_ns, length_ns));
    }
    if untimed > 0 {
        let text = format!("{untimed} interrupts are counted without their times: only the first keep theirs");
        found.remark("fewer interrupts", "more", text);
    }
    found.edges = Some(edges);
    found.samples.push(lengths.of(samples));
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::recording::ResultFile;

    fn file() -> Interrupts {
        Interrupts {
            schema: base::interrupts::SCHEMA.to_owned(),
            tids: vec![70, 71, 77],
            cpu: 3,
            period_ns: 1_000_000,
            halts: false,
            edges: 5,
            merged: 1,
            unanswered: 1,
            lost: 1,
            extra: 0,
            error_ns: 100,
            answered: vec![(500_000, 4_001), (2_900_000, 30_000)],
        }
    }

    fn found(text: &[u8]) -> Found {
        let mut found = Found::default();
        read(&mut &*text, &mut found);
        found
    }

    #[test]
    fn interrupts_are_samples_with_times_and_the_threads_they_went_through() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("irq.json");
        file().write(&path).unwrap();
        let text = std::fs::read(&path).unwrap();
        assert_eq!(ResultFile::of(&text), Some(ResultFile::Interrupts));
        let found = found(&text);
        assert!(found.problems.list().is_empty(), "{:?}", found.problems.list());
        let [samples] = found.samples.as_slice() else { panic!("{found:?}") };
        assert_eq!((samples.count, samples.tid, samples.cpu, samples.error_ns), (2, Some(77), Some(3), 100));
        assert_eq!((samples.through.as_slice(), samples.extremes_ns()), (&[70, 71][..], (Some(4_001), Some(30_000))));
        assert_eq!(found.edges.map(|edges| (edges.count, edges.merged, edges.lost)), Some((5, 1, 1)));
    }

    #[test]
    fn damage_is_said_and_so_are_edges_that_do_not_add_up() {
        let text = serde_json::to_vec(&file()).unwrap();
        for end in (0..text.len()).step_by(7) {
            let found = found(&text[..end]);
            assert_eq!((found.samples.len(), found.problems.list().len()), (0, 1));
        }
        let text = serde_json::to_vec(&Interrupts { edges: 9, tids: Vec::new(), ..file() }).unwrap();
        let found = found(&text);
        assert_eq!((found.samples.len(), found.problems.list().len()), (1, 1));
        assert!(found.problems.list()[0].text.contains("9 edges, and what became of 5"));
    }
}
