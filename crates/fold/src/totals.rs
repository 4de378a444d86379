//! What a record says at one moment, and what happened between two.

use crate::layout::{
    BINS, BUSY_MASK, NS_AT, RECORD_WORDS, ROW_BINS_AT, ROW_WORDS, RowWord, STATES, State, TAKER_WORDS, TakerWord,
    VMM_CLASS, WAKE_BINS_AT, Word, bin_from, off,
};

/// All vCPU threads that have a record.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// One for each thread.
    pub threads: Vec<ThreadReading>,
    /// Whether a `kvm_exit` has fired since the programs were attached.
    pub exits_fire: bool,
    /// Threads that found no record left.
    pub records_lost: u64,
    /// Pieces of waits for which no row was left to charge anybody.
    pub takers_lost: u64,
    /// Records that a program was changing whenever they were looked at; they are missing here.
    pub restless: u64,
    /// From the first record to the last it took so long to look at them.
    pub spread_ns: u64,
}

/// One vCPU thread since it was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadReading {
    /// Number of the record.
    pub index: u16,
    /// The thread.
    pub tid: u32,
    /// Its process.
    pub tgid: u32,
    /// Number of its vCPU, if an event told.
    pub vcpu: Option<u32>,
    /// It has ended.
    pub has_ended: bool,
    /// What was seen, up to `at_ns`.
    pub totals: Totals,
}

/// What was seen of a thread in some stretch of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// The stretch, on CLOCK_MONOTONIC.
    pub from_ns: u64,
    pub at_ns: u64,
    /// How long it was in each state, in the order of [`STATES`]; they add up to the stretch.
    pub states_ns: [u64; STATES.len()],
    /// Exits by reason.
    pub reasons: Vec<Reason>,
    /// From woken to running.
    pub wakeups: Bins,
    /// Who had its CPU while it was ready.
    pub takers: Vec<Taker>,
    /// Ready while another vCPU of its VM had a CPU.
    pub torn_ns: u64,
    /// How often its events did not fit what was known of it, and time became unknown for that.
    pub missed: u64,
    /// Events that came.
    pub events: u64,
}

/// Who had a CPU while a vCPU was ready for it, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taker {
    /// The task; 0 is the idle task.
    pub tid: u32,
    /// Its name when it was met; empty of one that has not left yet.
    pub comm: String,
    /// Waits that began when it took the CPU.
    pub count: u64,
    pub total_ns: u64,
    /// The longest piece since the record began.
    pub max_ns: u64,
}

impl Taker {
    /// What it took since `before`, if anything.
    fn since(&self, before: &Totals) -> Option<Self> {
        let known = before.takers.iter().find(|known| known.tid == self.tid);
        let (count, total_ns) = known.map_or((0, 0), |known| (known.count, known.total_ns));
        // What was charged while it had the CPU may have ended a moment earlier.
        let (count, total_ns) = (self.count.saturating_sub(count), self.total_ns.saturating_sub(total_ns));
        let taker = Self { count, total_ns, ..self.clone() };
        (taker.count > 0 || taker.total_ns > 0).then_some(taker)
    }

    pub(crate) fn of(words: &[u64; TAKER_WORDS]) -> Self {
        let word = |word: TakerWord| words[word as usize];
        let name = [word(TakerWord::Comm), word(TakerWord::CommEnd)].map(u64::to_ne_bytes).concat();
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Self {
            tid: word(TakerWord::Tid) as u32,
            comm: String::from_utf8_lossy(&name[..end]).into_owned(),
            count: word(TakerWord::Count),
            total_ns: word(TakerWord::Sum),
            max_ns: word(TakerWord::Max),
        }
    }
}

/// Exits for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Whose code it is: the field `isa`; `None`: a reason to return to the VMM.
    pub isa: Option<u8>,
    /// The code, as the kernel has it.
    pub code: u32,
    pub count: u64,
    /// Those whose next entry was not seen; they have no cost.
    pub clipped: u64,
    /// Those in which the VMM took part.
    pub to_vmm: u64,
    /// What those cost that are not clipped, from the exit to the next entry, time without a CPU left out.
    pub cost: Bins,
}

/// A distribution: two counters for each doubling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bins {
    counts: [u32; BINS],
    /// All of it, exact; 0 of wake-ups, whose sum is a state.
    pub sum_ns: u64,
    /// The longest since the record began.
    pub max_ns: u64,
}

impl Bins {
    fn of(words: &[u64], sum_ns: u64, max_ns: u64) -> Self {
        Self { counts: std::array::from_fn(|bin| (words[bin / 2] >> (32 * (bin % 2))) as u32), sum_ns, max_ns }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// From, to, how many; those that are empty left out.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let full = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        full.map(|(bin, count)| (bin_from(bin), bin_from(bin + 1), u64::from(*count)))
    }

    /// The upper edge of the bin in which a share of all lie at or below it, or the longest, if that is less; `None` of none.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        let bin = self.bins().find(|(.., count)| {
            below += count;
            below >= wanted
        })?;
        Some(bin.1.min(self.max_ns))
    }

    fn since(&self, before: &Bins) -> Bins {
        Bins {
            counts: std::array::from_fn(|bin| self.counts[bin].wrapping_sub(before.counts[bin])),
            sum_ns: self.sum_ns.wrapping_sub(before.sum_ns),
            max_ns: self.max_ns,
        }
    }

    /// All of both.
    pub fn merge(&mut self, other: &Bins) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

impl Default for Bins {
    fn default() -> Self {
        Self { counts: [0; BINS], sum_ns: 0, max_ns: 0 }
    }
}

impl Totals {
    /// What was seen since `before`, an earlier look at the same thread.
    pub fn since(&self, before: &Totals) -> Totals {
        let same =
            |reason: &Reason| before.reasons.iter().find(|known| (known.isa, known.code) == (reason.isa, reason.code));
        let reasons = self.reasons.iter().map(|reason| match same(reason) {
            None => reason.clone(),
            Some(known) => Reason {
                count: reason.count - known.count,
                clipped: reason.clipped - known.clipped,
                to_vmm: reason.to_vmm - known.to_vmm,
                cost: reason.cost.since(&known.cost),
                ..*reason
            },
        });
        Totals {
            from_ns: before.at_ns,
            at_ns: self.at_ns,
            // An event that was on its way when the clock was read has a time before that.
            states_ns: std::array::from_fn(|state| self.states_ns[state].saturating_sub(before.states_ns[state])),
            reasons: reasons.filter(|reason| reason.count > 0).collect(),
            wakeups: self.wakeups.since(&before.wakeups),
            torn_ns: self.torn_ns.saturating_sub(before.torn_ns),
            takers: self.takers.iter().filter_map(|taker| taker.since(before)).collect(),
            missed: self.missed - before.missed,
            events: self.events - before.events,
        }
    }

    /// Time in one state.
    pub fn ns(&self, state: State) -> u64 {
        self.states_ns[state as usize]
    }

    /// All of the time.
    pub fn wall_ns(&self) -> u64 {
        self.states_ns.iter().sum()
    }
}

impl ThreadReading {
    /// What record number `index` and its rows say at `at_ns`; `None` if it is nobody's.
    /// `busy` is what its VM says then of how long it had a CPU at all.
    pub fn new(
        index: u16,
        record: &[u64; RECORD_WORDS],
        rows: &[[u64; ROW_WORDS]],
        at_ns: u64,
        busy: u64,
    ) -> Option<Self> {
        let word = |word: Word| record[word as usize];
        if word(Word::Tid) == 0 {
            return None;
        }
        let mut states_ns = std::array::from_fn(|state| record[NS_AT + state]);
        let at_ns = at_ns.max(word(Word::Since));
        for (state, ns) in tail(record, at_ns) {
            states_ns[state as usize] += ns;
        }
        let reasons = rows.iter().map(|row| {
            let word = |word: RowWord| row[word as usize];
            let key = word(RowWord::Key);
            Reason {
                isa: (key >> 32 != VMM_CLASS).then_some((key >> 32) as u8),
                code: key as u32,
                count: word(RowWord::Count),
                clipped: word(RowWord::Clipped),
                to_vmm: word(RowWord::ToVmm),
                cost: Bins::of(&row[ROW_BINS_AT..], word(RowWord::Sum), word(RowWord::Max)),
            }
        });
        Some(Self {
            index,
            tid: word(Word::Tid) as u32,
            tgid: word(Word::Tgid) as u32,
            // Above the numbers that an argument has room for: no number.
            vcpu: word(Word::Vcpu).checked_sub(1).and_then(|vcpu| u32::try_from(vcpu).ok()),
            has_ended: word(Word::Off) == off::ENDED,
            totals: Totals {
                from_ns: word(Word::Met),
                at_ns,
                states_ns,
                reasons: reasons.collect(),
                wakeups: Bins::of(&record[WAKE_BINS_AT..], 0, word(Word::WakeMax)),
                takers: Vec::new(),
                torn_ns: word(Word::TornNs) + torn_tail(record, busy),
                missed: word(Word::Missed),
                events: word(Word::Events),
            },
        })
    }
}

/// The piece that is not over, as if it ended at `at_ns`.
fn tail(record: &[u64; RECORD_WORDS], at_ns: u64) -> [(State, u64); 2] {
    let word = |word: Word| record[word as usize];
    let (since, now) = (word(Word::Since), at_ns);
    let asleep = match word(Word::Off) {
        off::HALTED => State::Halted,
        off::BLOCKED => State::Blocked,
        off::ASLEEP => State::Unknown,
        _ => return [(crate::interpret::label(record), now - since), (State::Unknown, 0)],
    };
    let woken = word(Word::Woken);
    let until = if woken >= word(Word::SleptFrom) { woken.clamp(since, now) } else { now };
    [(asleep, until - since), (State::WakeDelay, now - until)]
}

/// What a wait that is not over has been torn for.
fn torn_tail(record: &[u64; RECORD_WORDS], busy: u64) -> u64 {
    let word = |word: Word| record[word as usize];
    let is_woken = word(Word::Woken) >= word(Word::SleptFrom);
    let from = match word(Word::Off) {
        off::PREEMPTED => Word::BusyFrom,
        off::HALTED | off::BLOCKED | off::ASLEEP if is_woken && word(Word::Woken) >= word(Word::Since) => {
            Word::BusyWoken
        }
        off::HALTED | off::BLOCKED | off::ASLEEP if is_woken => Word::BusyFrom,
        _ => return 0,
    };
    busy.wrapping_sub(word(from)) & BUSY_MASK
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Kind, leaves};
    use crate::interpret::Fold;

    #[test]
    fn a_sleep_that_is_not_over_is_split_where_it_was_woken() {
        let mut fold = Fold::default();
        let index = fold.meet(7, 7, 100, off::ON).unwrap();
        fold.take(Event::new(110, Kind::UserspaceExit, index, 2));
        fold.take(Event::new(120, Kind::SwitchOut, index, leaves::ASLEEP));
        let seen = |fold: &Fold, at| ThreadReading::new(index, &fold.record(index), &[], at, 0).unwrap().totals;
        let before = seen(&fold, 150);
        assert_eq!((before.ns(State::Blocked), before.ns(State::Userspace), before.wall_ns()), (30, 10, 50));
        fold.take(Event::new(160, Kind::Woken, index, 0));
        let after = seen(&fold, 175);
        assert_eq!((after.ns(State::Blocked), after.ns(State::WakeDelay)), (40, 15));
        let between = after.since(&before);
        assert_eq!((between.ns(State::Blocked), between.ns(State::WakeDelay), between.wall_ns()), (10, 15, 25));
    }

    #[test]
    fn a_quantile_is_the_edge_of_its_bin_or_the_longest() {
        let mut words = [0; BINS / 2];
        // 8 to 12 twice, 12 to 16 once.
        words[3] = 2 | 1 << 32;
        let bins = Bins::of(&words, 33, 13);
        assert_eq!((bins.count(), bins.quantile(0.5), bins.quantile(0.99)), (3, Some(12), Some(13)));
        assert_eq!(Bins::default().quantile(0.5), None);
    }
}
