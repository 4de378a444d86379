//! What the maps say at one moment, while programs go on.

use super::{RING_HEAD, Session};
use crate::event::Event;
use crate::layout::{
    FIRST, MOST_RECORDS, MOST_ROWS, MOST_TAKERS, MOST_VMS, RECORD_WORDS, ROW_WORDS, RowWord, SLOT_WORDS, Shared,
    SlotWord, TAKER_WORDS, TakerWord, WAITERS, Word, busy, off,
};
use crate::sys::now_ns;
use crate::totals::{Reading, Taker, ThreadReading, Totals};
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// How often a record that a program is changing is looked at again.
const MOST_TRIES: u32 = 100;

impl Session {
    /// Looks at all records. Programs go on meanwhile: each record has its own moment.
    pub fn read(&self) -> Reading {
        let began = now_ns();
        let shared = |word: Shared| self.words.shared.at(word as usize).load(Relaxed);
        let mut reading = Reading {
            exits_fire: self.exits_fire(),
            records_lost: shared(Shared::RecordsLost),
            takers_lost: shared(Shared::TakersLost),
            ..Reading::default()
        };
        let mut rows = vec![Vec::new(); MOST_RECORDS];
        for row in 1..shared(Shared::Rows).min(MOST_ROWS as u64) as usize {
            let owner = self.words.rows.at(row * ROW_WORDS + RowWord::Owner as usize).load(Relaxed);
            if let Some(rows) = rows.get_mut(owner as usize) {
                rows.push(row);
            }
        }
        let mut takers = vec![Vec::new(); MOST_RECORDS];
        for row in 1..shared(Shared::Takers).min(MOST_TAKERS as u64) as usize {
            let words: [u64; TAKER_WORDS] =
                std::array::from_fn(|at| self.words.takers.at(row * TAKER_WORDS + at).load(Relaxed));
            if let Some(own) = takers.get_mut(words[TakerWord::Owner as usize] as usize) {
                own.push(Taker::of(&words));
            }
        }
        for index in 1..shared(Shared::Records).min(MOST_RECORDS as u64) as usize {
            match self.copied(index, &rows[index]) {
                Some((record, rows, at_ns)) => {
                    let vm = record[Word::Vm as usize] as usize % MOST_VMS;
                    let busy_ns = busy(self.words.vms.at(vm).load(Acquire), at_ns);
                    let thread = ThreadReading::new(index as u16, &record, &rows, at_ns, busy_ns);
                    let mut takers = std::mem::take(&mut takers[index]);
                    if record[Word::Off as usize] == off::PREEMPTED {
                        self.charge_open(index as u64, record[Word::WaitFrom as usize], at_ns, &mut takers);
                    }
                    reading.threads.extend(
                        thread.map(|thread| ThreadReading { totals: Totals { takers, ..thread.totals }, ..thread }),
                    );
                }
                None => reading.restless += 1,
            }
        }
        reading.spread_ns = now_ns() - began;
        reading
    }

    /// The task that has the CPU which record `index` has waited for since `from_ns` is charged up to `at_ns`, as if it left then.
    fn charge_open(&self, index: u64, from_ns: u64, at_ns: u64, takers: &mut Vec<Taker>) {
        for cpu in 0..self.words.cpus {
            let word = |word: usize| self.words.slots.at(cpu * SLOT_WORDS + word).load(Acquire);
            let waiter = |number: usize| SlotWord::Waiters as usize + 2 * number;
            let since_ns = word(SlotWord::Since as usize);
            let task = word(SlotWord::Task as usize) as u32;
            let waits = (0..WAITERS)
                .find(|number| word(waiter(*number)) as u32 as u64 == index && word(waiter(*number) + 1) == from_ns);
            let Some(number) = waits else { continue };
            let is_first = word(waiter(number)) >= FIRST;
            // Another task has come meanwhile: what is not charged now will be.
            if word(SlotWord::Since as usize) != since_ns {
                return;
            }
            let ns = at_ns.saturating_sub(since_ns);
            match takers.iter_mut().find(|taker| taker.tid == task) {
                Some(taker) => {
                    taker.count += u64::from(is_first);
                    taker.total_ns += ns;
                    taker.max_ns = taker.max_ns.max(ns);
                }
                None => takers.push(Taker {
                    tid: task,
                    comm: String::new(),
                    count: u64::from(is_first),
                    total_ns: ns,
                    max_ns: ns,
                }),
            }
            return;
        }
    }

    /// A record and its rows between two programs.
    fn copied(&self, index: usize, rows: &[usize]) -> Option<([u64; RECORD_WORDS], Vec<[u64; ROW_WORDS]>, u64)> {
        let word = |word: usize| self.words.records.at(index * RECORD_WORDS + word);
        let seq = || word(Word::Seq as usize).load(Acquire);
        (0..MOST_TRIES).find_map(|_| {
            let before = seq();
            if before % 2 == 1 {
                std::hint::spin_loop();
                return None;
            }
            let record = std::array::from_fn(|at| word(at).load(Relaxed));
            let copy = |row: &usize| std::array::from_fn(|at| self.words.rows.at(row * ROW_WORDS + at).load(Relaxed));
            let rows = rows.iter().map(copy).collect();
            let at_ns = now_ns();
            std::sync::atomic::fence(Acquire);
            (seq() == before).then_some((record, rows, at_ns))
        })
    }

    /// A record and its rows as they stand, for tests.
    #[doc(hidden)]
    pub fn raw(&self, index: u16) -> Option<([u64; RECORD_WORDS], Vec<[u64; ROW_WORDS]>)> {
        let owned = |row: &usize| {
            self.words.rows.at(row * ROW_WORDS + RowWord::Owner as usize).load(Relaxed) == u64::from(index)
        };
        let rows: Vec<usize> = (1..MOST_ROWS).filter(owned).collect();
        self.copied(usize::from(index), &rows).map(|(record, rows, _)| (record, rows))
    }

    /// The events that the rings hold, in the order of their times, and how many more have come.
    pub fn events(&self) -> (Vec<Event>, u64) {
        let Some((ring, kept)) = &self.words.ring else { return (Vec::new(), 0) };
        let (mut events, mut more) = (Vec::new(), 0);
        for cpu in 0..self.words.cpus {
            let base = cpu * (RING_HEAD + 2 * kept);
            let came = ring.at(base).load(Acquire) as usize;
            more += came.saturating_sub(*kept) as u64;
            for number in came.saturating_sub(*kept)..came {
                let at = base + RING_HEAD + 2 * (number % kept);
                events.push(Event { time_ns: ring.at(at).load(Relaxed), word: ring.at(at + 1).load(Relaxed) });
            }
        }
        // Interrupts make their events while another one is written down.
        events.sort_by_key(|event| event.time_ns);
        (events, more)
    }
}
