//! How far is the reading of a recording that somebody waits for?
//!
//! Its traces are read once for the answers and once for the timeline, and some of them more often, so a reading ends at its last byte
//! and begins anew. Two that run at the same time are added up.

use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Answers,
    Timeline,
}

#[derive(Debug, Default)]
pub(crate) struct Reading {
    running: [Running; 2],
    begun: AtomicU64,
}

/// Bytes of the reading that runs; none of none where nothing is read.
#[derive(Debug, Default)]
struct Running {
    read: AtomicU64,
    of: AtomicU64,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Progress {
    pub read_bytes: u64,
    /// Of so many; 0 where nothing is being read.
    pub of_bytes: u64,
    /// Which reading of a trace this is, counted from 1; 0 before the first.
    pub pass: u64,
}

impl Reading {
    /// What hears of bytes that are read, and all, as a case says them.
    pub(crate) fn hear(self: &Arc<Self>, purpose: Purpose) -> impl FnMut(u64, u64) + Send + use<> {
        let (reading, mut last) = (Arc::clone(self), u64::MAX);
        move |read, of| {
            if read < last {
                reading.begun.fetch_add(1, Ordering::Relaxed);
            }
            last = read;
            let running = &reading.running[purpose as usize];
            running.read.store(read, Ordering::Relaxed);
            running.of.store(of, Ordering::Relaxed);
        }
    }

    /// Something was read to its end; what is still being read says so itself soon.
    pub(crate) fn end(&self) {
        for running in &self.running {
            running.of.store(0, Ordering::Relaxed);
            running.read.store(0, Ordering::Relaxed);
        }
    }

    /// How far it is now.
    pub(crate) fn progress(&self) -> Progress {
        let sum = |of: fn(&Running) -> &AtomicU64| self.running.iter().map(|it| of(it).load(Ordering::Relaxed)).sum();
        let of_bytes: u64 = sum(|running| &running.of);
        let read_bytes: u64 = sum(|running| &running.read);
        Progress { read_bytes: read_bytes.min(of_bytes), of_bytes, pass: self.begun.load(Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_at_the_same_time_are_added_up_and_each_new_one_is_counted() {
        let reading = Arc::new(Reading::default());
        assert_eq!(reading.progress(), Progress::default());
        let (mut answers, mut timeline) = (reading.hear(Purpose::Answers), reading.hear(Purpose::Timeline));
        answers(10, 100);
        answers(60, 100);
        assert_eq!(reading.progress(), Progress { read_bytes: 60, of_bytes: 100, pass: 1 });
        timeline(20, 100);
        assert_eq!(reading.progress(), Progress { read_bytes: 80, of_bytes: 200, pass: 2 });
        answers(5, 100);
        assert_eq!(reading.progress(), Progress { read_bytes: 25, of_bytes: 200, pass: 3 });
        reading.end();
        assert_eq!(reading.progress(), Progress { read_bytes: 0, of_bytes: 0, pass: 3 });
    }
}
