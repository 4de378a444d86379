//! The rules, carried out by Rust: what a replay of events is, and what the kernel's programs are held against.

use crate::event::{CASE_BITS, Event, Kind};
use crate::layout::{
    BUSY_BITS, BUSY_MASK, MOST_RECORDS, MOST_ROWS, NS_AT, RECORD_WORDS, ROW_BINS_AT, ROW_WORDS, RowWord, State,
    WAITERS, WAKE_BINS_AT, Word, bin, busy, exit_key, irq, mode, off, vmm_key,
};
use crate::rules::{Action, Guard, HALTS, RULES, VMX};
use std::collections::{BTreeMap, HashMap};

/// Records and rows, as the kernel's maps hold them.
#[derive(Debug, Clone)]
pub struct Fold {
    records: Vec<[u64; RECORD_WORDS]>,
    rows: Vec<[u64; ROW_WORDS]>,
    by_key: HashMap<(u16, u64), usize>,
    slots: HashMap<u16, Slot>,
    takers: BTreeMap<(u16, u32), Taken>,
    /// The word of each VM, by its process.
    vms: HashMap<u64, u64>,
    /// Whether a `kvm_exit` has fired on this host.
    pub exits_fire: bool,
}

/// Who waits on a CPU.
#[derive(Debug, Clone, Default)]
struct Slot {
    since_ns: u64,
    /// Record, since when, whether nobody has been charged yet.
    waiters: Vec<(u16, u64, bool)>,
}

/// What a task took from a vCPU that was ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taken {
    /// Waits that began when it took the CPU.
    pub count: u64,
    pub total_ns: u64,
    /// The longest piece.
    pub max_ns: u64,
}

impl Default for Fold {
    fn default() -> Self {
        // Number 0 of both is nobody's.
        let (records, rows) = (vec![[0; RECORD_WORDS]], vec![[0; ROW_WORDS]]);
        Self {
            records,
            rows,
            by_key: HashMap::new(),
            slots: HashMap::new(),
            takers: BTreeMap::new(),
            vms: HashMap::new(),
            exits_fire: false,
        }
    }
}

impl Fold {
    /// Record number `index`; empty if there is none.
    pub fn record(&self, index: u16) -> [u64; RECORD_WORDS] {
        self.records.get(usize::from(index)).copied().unwrap_or([0; RECORD_WORDS])
    }

    /// All records, the first one nobody's.
    pub fn records(&self) -> &[[u64; RECORD_WORDS]] {
        &self.records
    }

    /// The rows of reasons, the first one nobody's.
    pub fn rows(&self) -> &[[u64; ROW_WORDS]] {
        &self.rows
    }

    /// Begins a record for a thread, and gives its number; `None` if there are too many. `off` is where it is.
    pub fn meet(&mut self, tid: u32, tgid: u32, now_ns: u64, off: u64) -> Option<u16> {
        let index = self.records.len();
        if index >= MOST_RECORDS {
            return None;
        }
        self.records.push([0; RECORD_WORDS]);
        let record = &mut self.records[index];
        record[Word::Tid as usize] = u64::from(tid);
        record[Word::Tgid as usize] = u64::from(tgid);
        record[Word::Off as usize] = off;
        for word in [Word::Met, Word::Since, Word::Last] {
            record[word as usize] = now_ns;
        }
        let index = u16::try_from(index).ok()?;
        if off == off::ON {
            self.run(index, now_ns, true);
        }
        Some(index)
    }

    /// Who took how much from whom: number of the record, task.
    pub fn takers(&self) -> &BTreeMap<(u16, u32), Taken> {
        &self.takers
    }

    /// A task leaves a CPU: it has run there while others waited.
    fn leaves(&mut self, cpu: u16, task: u32, now_ns: u64) {
        let slot = self.slots.entry(cpu).or_default();
        let from_ns = std::mem::replace(&mut slot.since_ns, now_ns);
        let (records, takers) = (&self.records, &mut self.takers);
        slot.waiters.retain_mut(|(index, began_ns, first)| {
            let record = &records[usize::from(*index)];
            let is_same = record[Word::WaitFrom as usize] == *began_ns;
            let waits = is_same && record[Word::Off as usize] == off::PREEMPTED;
            let to_ns = match (waits, is_same) {
                (true, _) => now_ns,
                (false, true) => record[Word::WaitTo as usize].min(now_ns),
                // It has waited elsewhere since, and when this wait ended is not known.
                (false, false) => from_ns,
            };
            let ns = to_ns.saturating_sub(from_ns);
            let took = std::mem::take(first);
            // The clock went on between its coming and the end of its wait: that is nobody's.
            let is_itself = record[Word::Tid as usize] == u64::from(task);
            if !is_itself && (ns > 0 || took) {
                let taken = takers.entry((*index, task)).or_default();
                taken.count += u64::from(took);
                taken.total_ns += ns;
                taken.max_ns = taken.max_ns.max(ns);
            }
            waits
        });
    }

    /// One vCPU more of a VM has a CPU, or one less.
    fn run(&mut self, index: u16, now_ns: u64, comes: bool) {
        let word = self.vms.entry(self.records[usize::from(index)][Word::Tgid as usize]).or_default();
        let (running, busy) = (*word >> BUSY_BITS, *word & BUSY_MASK);
        let (running, busy) = match (comes, running) {
            (true, 0) => (1, busy.wrapping_sub(now_ns)),
            (true, running) => (running + 1, busy),
            (false, 1) => (0, busy.wrapping_add(now_ns)),
            (false, running) => (running.saturating_sub(1), busy),
        };
        *word = running << BUSY_BITS | busy & BUSY_MASK;
    }

    /// What the VM of a record has been busy for.
    fn busy(&self, index: u16, now_ns: u64) -> u64 {
        let word = self.vms.get(&self.records[usize::from(index)][Word::Tgid as usize]);
        busy(word.copied().unwrap_or(0), now_ns)
    }

    /// Takes an event, as it stands in a ring. Events of one record come in the order of their times.
    pub fn take(&mut self, event: Event) {
        match event.kind() {
            Some(Kind::Met) => {
                let index = event.index();
                while self.records.len() <= usize::from(index) {
                    self.records.push([0; RECORD_WORDS]);
                }
                let record = &mut self.records[usize::from(index)];
                record[Word::Tid as usize] = event.argument();
                for word in [Word::Met, Word::Since, Word::Last] {
                    record[word as usize] = event.time_ns;
                }
            }
            Some(Kind::Woken) if usize::from(event.index()) < self.records.len() => {
                let busy = self.busy(event.index(), event.time_ns);
                let record = &mut self.records[usize::from(event.index())];
                record[Word::Woken as usize] = event.time_ns;
                record[Word::BusyWoken as usize] = busy;
            }
            Some(Kind::Leaves) => self.leaves(event.index(), event.argument() as u32, event.time_ns),
            Some(kind) if usize::from(event.index()) < self.records.len() => self.apply(kind, event),
            _ => {}
        }
    }

    fn apply(&mut self, kind: Kind, event: Event) {
        let mut machine =
            Machine { fold: self, index: event.index(), now_ns: event.time_ns, argument: event.argument() };
        machine.add(Word::Events, 1);
        if machine.now_ns < machine.get(Word::Since) {
            machine.add(Word::Skew, 1);
            machine.now_ns = machine.get(Word::Since);
        }
        for rule in RULES.iter().filter(|rule| rule.on == kind) {
            if rule.when.iter().all(|guard| machine.holds(*guard)) {
                rule.then.iter().for_each(|action| machine.act(*action));
            }
        }
    }
}

/// One event at one record.
struct Machine<'f> {
    fold: &'f mut Fold,
    index: u16,
    now_ns: u64,
    argument: u64,
}

impl Machine<'_> {
    fn record(&mut self) -> &mut [u64; RECORD_WORDS] {
        &mut self.fold.records[usize::from(self.index)]
    }

    fn get(&self, word: Word) -> u64 {
        self.fold.records[usize::from(self.index)][word as usize]
    }

    fn set(&mut self, word: Word, value: u64) {
        self.record()[word as usize] = value;
    }

    fn add(&mut self, word: Word, value: u64) {
        let sum = self.get(word).wrapping_add(value);
        self.set(word, sum);
    }

    fn holds(&self, guard: Guard) -> bool {
        match guard {
            Guard::Is(word, value) => self.get(word) == value,
            Guard::Argument(value) => self.argument & ((1 << CASE_BITS) - 1) == value,
            Guard::ExitsFire => self.fold.exits_fire,
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Set(word, value) => self.set(word, value),
            Action::SetBit(word, bit) => self.set(word, self.get(word) | bit),
            Action::ClearBit(word, bit) => self.set(word, self.get(word) & !bit),
            Action::Copy(to, from) => self.set(to, self.get(from)),
            Action::Count(word) => self.add(word, 1),
            Action::Stamp(word) => self.set(word, self.now_ns),
            Action::Arrive => match self.get(Word::Off) {
                off::ON => {}
                off::UNSEEN => {
                    self.set(Word::Off, off::ON);
                    self.fold.run(self.index, self.now_ns, true);
                }
                _ => {
                    self.miss();
                    self.fold.run(self.index, self.now_ns, true);
                }
            },
            Action::Miss => self.miss(),
            Action::Close => self.close(self.now_ns),
            Action::CloseAtLast => self.close(self.last()),
            Action::CloseAs(state) => self.close_as(state, self.now_ns),
            Action::CloseNmi => {
                let begun = self.now_ns.saturating_sub(self.argument).max(self.get(Word::Since));
                self.close(begun);
                self.close_as(State::Nmi, self.now_ns);
            }
            Action::Wake => self.wake(),
            Action::OpenExit => self.open_exit(),
            Action::FinishExit => self.finish_exit(true),
            Action::DropExit => self.finish_exit(false),
            Action::CountVmm => {
                if let Some(row) = self.row(vmm_key(self.argument as u32)) {
                    self.fold.rows[row][RowWord::Count as usize] += 1;
                }
            }
            Action::Number => self.set(Word::Vcpu, self.argument + 1),
            Action::SeeExit => self.fold.exits_fire = true,
            Action::Wait => self.wait(),
            Action::Come => self.fold.run(self.index, self.now_ns, true),
            Action::Leave => {
                self.fold.run(self.index, self.now_ns, false);
                self.set(Word::BusyFrom, self.fold.busy(self.index, self.now_ns));
            }
            Action::Tear => self.tear(),
        }
    }

    /// The time of the last event, inside the piece that is not over.
    fn last(&self) -> u64 {
        self.get(Word::Last).max(self.get(Word::Since)).min(self.now_ns)
    }

    fn close(&mut self, to_ns: u64) {
        let state = label(self.record());
        if (off::PREEMPTED..=off::WAKING).contains(&self.get(Word::Off)) {
            self.add(Word::OffNs, to_ns - self.get(Word::Since));
        }
        self.close_as(state, to_ns);
    }

    fn close_as(&mut self, state: State, to_ns: u64) {
        let length_ns = to_ns - self.get(Word::Since);
        self.record()[NS_AT + state as usize] += length_ns;
        self.set(Word::Since, to_ns);
        self.set(Word::Last, to_ns);
    }

    fn miss(&mut self) {
        self.add(Word::Missed, 1);
        self.close(self.last());
        for word in [Word::Mode, Word::Off, Word::Irq, Word::Pending, Word::Halt, Word::Woken] {
            self.set(word, 0);
        }
        self.set(Word::Lost, 1);
        self.finish_exit(false);
    }

    fn wake(&mut self) {
        let was = self.get(Word::Off);
        if !matches!(was, off::HALTED | off::BLOCKED | off::ASLEEP) {
            return;
        }
        let woken = self.get(Word::Woken);
        if woken < self.get(Word::SleptFrom) {
            // Nobody is known to have woken it, nor how long it then waited. No cost contains it either way.
            self.add(Word::OffNs, self.now_ns - self.get(Word::Since));
            return self.close_as(State::Unknown, self.now_ns);
        }
        self.close(woken.max(self.get(Word::Since)).min(self.now_ns));
        self.set(Word::Off, off::WAKING);
        let waited_ns = self.now_ns - self.get(Word::Since);
        self.add(Word::Wakeups, 1);
        self.set(Word::WakeMax, self.get(Word::WakeMax).max(waited_ns));
        count(&mut self.record()[WAKE_BINS_AT..], waited_ns);
    }

    /// Of a sleep the wait begins where it was woken, unless that was on its way off the CPU.
    fn tear(&mut self) {
        let woken = self.get(Word::Off) == off::WAKING && self.get(Word::Woken) == self.get(Word::Since);
        let from = self.get(if woken { Word::BusyWoken } else { Word::BusyFrom });
        let torn_ns = self.fold.busy(self.index, self.now_ns).wrapping_sub(from) & BUSY_MASK;
        self.add(Word::TornNs, torn_ns);
    }

    fn wait(&mut self) {
        let (index, now_ns) = (self.index, self.now_ns);
        self.set(Word::WaitFrom, now_ns);
        let slot = self.fold.slots.entry((self.argument >> CASE_BITS) as u16).or_default();
        slot.since_ns = now_ns;
        if slot.waiters.len() < WAITERS {
            slot.waiters.push((index, now_ns, true));
        }
    }

    fn open_exit(&mut self) {
        let (isa, code) = ((self.argument >> 32) as u8, self.argument as u32);
        let code = if isa == VMX { code & 0xffff } else { code };
        self.set(Word::ExitOpen, 1);
        self.set(Word::ExitKey, exit_key(isa, code));
        self.set(Word::ExitAt, self.now_ns);
        self.set(Word::OffBefore, self.get(Word::OffNs));
        self.set(Word::ToVmm, 0);
        self.set(Word::Halt, u64::from(HALTS.contains(&(isa, code))));
    }

    fn finish_exit(&mut self, entered: bool) {
        if self.get(Word::ExitOpen) == 0 {
            return;
        }
        self.set(Word::ExitOpen, 0);
        let off_ns = self.get(Word::OffNs) - self.get(Word::OffBefore);
        let cost_ns = (self.now_ns - self.get(Word::ExitAt)).saturating_sub(off_ns);
        let to_vmm = self.get(Word::ToVmm);
        let Some(row) = self.row(self.get(Word::ExitKey)) else { return };
        let row = &mut self.fold.rows[row];
        row[RowWord::Count as usize] += 1;
        row[RowWord::ToVmm as usize] += to_vmm;
        if !entered {
            row[RowWord::Clipped as usize] += 1;
            return;
        }
        row[RowWord::Sum as usize] += cost_ns;
        row[RowWord::Max as usize] = row[RowWord::Max as usize].max(cost_ns);
        count(&mut row[ROW_BINS_AT..], cost_ns);
    }

    /// The row of a reason; `None` if none is left.
    fn row(&mut self, key: u64) -> Option<usize> {
        if let Some(row) = self.fold.by_key.get(&(self.index, key)) {
            return Some(*row);
        }
        let row = self.fold.rows.len();
        if row >= MOST_ROWS {
            self.add(Word::RowsLost, 1);
            return None;
        }
        let mut words = [0; ROW_WORDS];
        words[RowWord::Owner as usize] = u64::from(self.index);
        words[RowWord::Key as usize] = key;
        self.fold.rows.push(words);
        self.fold.by_key.insert((self.index, key), row);
        Some(row)
    }
}

/// The state of the piece that is not over.
pub(crate) fn label(record: &[u64; RECORD_WORDS]) -> State {
    match record[Word::Off as usize] {
        off::PREEMPTED => return State::Preempted,
        off::HALTED => return State::Halted,
        off::BLOCKED => return State::Blocked,
        off::WAKING => return State::WakeDelay,
        off::ON => {}
        _ => return State::Unknown,
    }
    match (record[Word::Irq as usize], record[Word::Mode as usize]) {
        (0, mode::GUEST) => State::Guest,
        (0, mode::KVM) => State::Handling,
        (0, mode::USER) => State::Userspace,
        (0, _) => State::Unknown,
        (bits, _) if bits & irq::IRQ != 0 => State::Irq,
        _ => State::Softirq,
    }
}

/// One more in the counter of a length: two counters of 32 bits lie in a word, and they wrap.
fn count(words: &mut [u64], ns: u64) {
    let bin = bin(ns);
    let shift = 32 * (bin % 2);
    let word = &mut words[bin / 2];
    let counted = (*word >> shift) as u32;
    *word = *word & !(u64::from(u32::MAX) << shift) | u64::from(counted.wrapping_add(1)) << shift;
}
