//! The fold at work: its programs are loaded and attached, its maps are looked at.

mod bench;
mod hooks;
mod reading;

pub use bench::{Bench, Hook};

use crate::emit::{self, Hears, Maps};
use crate::event::over;
use crate::format::{self, Described};
use crate::layout::{
    MOST_RECORDS, MOST_ROWS, MOST_TAKERS, MOST_TIDS, MOST_VMS, RECORD_WORDS, ROW_WORDS, SHARED_WORDS, SLOT_WORDS,
    Shared, TAKER_WORDS, Word, off,
};
use crate::sys::{self, MapType, ProgramType, Words, now_ns};
use hooks::{INTERRUPTS, NMI, PLANS, Plan};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Words of a ring before its events: how many have come, and one for nothing.
const RING_HEAD: usize = 2;

/// Why nothing can be folded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not allowed.
    #[error(
        "the kernel refuses {0} ({1}): run as root, or with CAP_BPF and CAP_PERFMON; under kernel lockdown `confidentiality` nobody may"
    )]
    Denied(&'static str, io::Error),
    /// The kernel cannot.
    #[error("the kernel cannot: {0} ({1}); Linux 5.12 with BPF is needed")]
    Unable(&'static str, io::Error),
    /// There is no tracing file system.
    #[error("there is no tracing file system: mount -t tracefs tracefs /sys/kernel/tracing")]
    NoTracefs,
    /// Nothing says which CPUs there may be.
    #[error("/sys/devices/system/cpu/possible does not say which CPUs there are: mount /sys")]
    NoCpus,
    /// Too much is missing.
    #[error("without {event} nothing can be told: {why}")]
    Lacks {
        /// The event.
        event: &'static str,
        /// What the kernel said.
        why: String,
    },
}

/// An event that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its name, `system:name`.
    pub event: String,
    /// Why.
    pub why: String,
    /// What the verifier said, if it was asked.
    pub log: String,
}

/// What the session is to do beside the fold.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Keep so many of the latest events of each CPU, a power of two.
    pub ring: Option<u32>,
    /// Interrupts, softirqs and NMIs of the host, too.
    pub interrupts: bool,
}

/// What the programs have taken since they were loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Time in ns, and runs, where the kernel measures them.
    pub measured: Option<(u64, u64)>,
    /// Runs that the kernel left out because another program was at work on that CPU; `missed` of a vCPU is what came of them.
    pub left_out: u64,
}

/// A fold that runs. Dropping it takes everything out of the kernel.
pub struct Session {
    words: Mapped,
    tids: OwnedFd,
    vm_keys: OwnedFd,
    maps: Maps,
    missing: Vec<Missing>,
    attached: Vec<OwnedFd>,
    programs: Vec<OwnedFd>,
    /// Open as long as the kernel measures what programs take.
    measuring: Option<OwnedFd>,
    /// Since when it is attached.
    since_ns: u64,
    /// Events whose programs were loaded: what they are called.
    heard: Vec<&'static str>,
    instructions: usize,
    /// Kept open as long as programs use them.
    _kept: Vec<OwnedFd>,
}

/// The maps as memory.
struct Mapped {
    records: Words,
    rows: Words,
    takers: Words,
    vms: Words,
    bits: Words,
    slots: Words,
    shared: Words,
    ring: Option<(Words, usize)>,
    given: Option<Words>,
    cpus: usize,
}

impl Session {
    /// Folds what happens on this host from now on.
    ///
    /// # Errors
    /// If the kernel cannot or may not, or if too much is missing.
    pub fn start(host: &Path, options: Options) -> Result<Self, Error> {
        let events = format::events(host).ok_or(Error::NoTracefs)?;
        let mut session = Self::made(host, options, false)?;
        for plan in PLANS {
            let described = format::described(&events, plan.name);
            let mut whys = Vec::new();
            if !session.hear(plan, described.as_ref(), &mut whys) {
                let why = whys.pop().unwrap_or_else(|| Missing {
                    event: plan.name.replace('/', ":"),
                    why: "this kernel has no such event".to_owned(),
                    log: String::new(),
                });
                if plan.needed {
                    return Err(Error::Lacks {
                        event: plan.name,
                        why: [why.why, why.log].join("\n").trim().to_owned(),
                    });
                }
                session.missing.push(why);
            }
        }
        if options.interrupts {
            session.hear_interrupts(&events);
        }
        session.since_ns = now_ns();
        Ok(session)
    }

    /// Maps without programs; `given` tells time, thread and CPU.
    fn made(host: &Path, options: Options, given: bool) -> Result<Self, Error> {
        sys::allow_memory();
        let cpus = format::possible_cpus(host).ok_or(Error::NoCpus)?;
        let refused = |error: io::Error| match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Error::Denied("maps of BPF", error),
            _ => Error::Unable("maps of BPF", error),
        };
        let array = |words: usize, entries: usize| {
            let map = sys::make_map(MapType::Array, 4, 8 * words as u32, entries as u32)?;
            let mapped = Words::of(&map, words * entries)?;
            Ok::<_, io::Error>((map, mapped))
        };
        let (records_map, records) = array(RECORD_WORDS, MOST_RECORDS).map_err(refused)?;
        let (rows_map, rows) = array(ROW_WORDS, MOST_ROWS).map_err(refused)?;
        let (bits_map, bits) = array(1, MOST_TIDS / 64).map_err(refused)?;
        let (shared_map, shared) = array(SHARED_WORDS, 1).map_err(refused)?;
        let (cpus_map, slots) = array(SLOT_WORDS, cpus).map_err(refused)?;
        let (takers_map, takers) = array(TAKER_WORDS, MOST_TAKERS).map_err(refused)?;
        let taker_keys = sys::make_map(MapType::Hash, 8, 4, MOST_TAKERS as u32).map_err(refused)?;
        let (vms_map, vms) = array(1, MOST_VMS).map_err(refused)?;
        let vm_keys = sys::make_map(MapType::Hash, 4, 4, MOST_VMS as u32).map_err(refused)?;
        let keys = sys::make_map(MapType::Hash, 8, 4, MOST_ROWS as u32).map_err(refused)?;
        let tids = sys::make_map(MapType::Hash, 4, 4, 2 * MOST_RECORDS as u32).map_err(refused)?;
        let ring = options.ring.map(|events| {
            let words = RING_HEAD + 2 * events as usize;
            array(words, cpus).map(|(map, mapped)| (map, mapped, events))
        });
        let ring = ring.transpose().map_err(refused)?;
        let given = given.then(|| array(3, 1)).transpose().map_err(refused)?;
        // Number 0 of both is nobody's.
        shared.at(Shared::Records as usize).store(1, Relaxed);
        shared.at(Shared::Rows as usize).store(1, Relaxed);
        shared.at(Shared::Takers as usize).store(1, Relaxed);
        shared.at(Shared::Vms as usize).store(1, Relaxed);
        let maps = Maps {
            records: records_map.as_raw_fd(),
            rows: rows_map.as_raw_fd(),
            keys: keys.as_raw_fd(),
            tids: tids.as_raw_fd(),
            bits: bits_map.as_raw_fd(),
            shared: shared_map.as_raw_fd(),
            cpus: cpus_map.as_raw_fd(),
            vms: vms_map.as_raw_fd(),
            vm_keys: vm_keys.as_raw_fd(),
            takers: takers_map.as_raw_fd(),
            taker_keys: taker_keys.as_raw_fd(),
            ring: ring.as_ref().map(|(map, _, events)| (map.as_raw_fd(), *events)),
            given: given.as_ref().map(|(map, _)| map.as_raw_fd()),
        };
        let mut kept =
            vec![records_map, rows_map, bits_map, shared_map, cpus_map, takers_map, taker_keys, vms_map, keys];
        let ring = ring.map(|(map, mapped, events)| {
            kept.push(map);
            (mapped, events as usize)
        });
        let given = given.map(|(map, mapped)| {
            kept.push(map);
            mapped
        });
        Ok(Self {
            words: Mapped { records, rows, takers, vms, bits, slots, shared, ring, given, cpus },
            tids,
            vm_keys,
            maps,
            missing: Vec::new(),
            attached: Vec::new(),
            programs: Vec::new(),
            measuring: None,
            since_ns: now_ns(),
            heard: Vec::new(),
            instructions: 0,
            _kept: kept,
        })
    }

    /// Loads and attaches the program of an event. False, with the reasons: it could not.
    fn hear(&mut self, plan: &Plan, described: Option<&Described>, whys: &mut Vec<Missing>) -> bool {
        let Some(described) = described else { return false };
        let raw_name = plan.name.rsplit('/').next().unwrap_or(plan.name);
        let ways = [
            plan.raw.map(|hears| (ProgramType::RawTracepoint, hears)),
            plan.traced.and_then(|hears| Some((ProgramType::Tracepoint, hears(described)?))),
        ];
        for (kind, hears) in ways.into_iter().flatten() {
            let tried = self.loaded(kind, hears).and_then(|program| {
                let attached = match kind {
                    ProgramType::RawTracepoint => sys::attach_raw(raw_name, &program),
                    ProgramType::Tracepoint => sys::attach(described.id, &program),
                };
                attached.map(|attached| (program, attached)).map_err(|error| (error, String::new()))
            });
            match tried {
                Ok((program, attached)) => {
                    self.attached.push(attached);
                    self.programs.push(program);
                    self.heard.push(plan.name);
                    return true;
                }
                Err((error, log)) => {
                    let event = plan.name.replace('/', ":");
                    whys.push(Missing { event, why: error.to_string(), log: last_lines(&log) });
                }
            }
        }
        false
    }

    fn loaded(&mut self, kind: ProgramType, hears: Hears) -> Result<OwnedFd, (io::Error, String)> {
        let unwritten = || (io::Error::other("the program is too long"), String::new());
        let code = emit::program(hears, &self.maps).ok_or_else(unwritten)?;
        self.instructions += code.len();
        sys::load(kind, &code)
    }

    /// One program for all that begins interrupts, one for all that ends them, and so on.
    fn hear_interrupts(&mut self, events: &Path) {
        let kinds = [over::IRQ_BEGINS, over::IRQ_ENDS, over::SOFTIRQ_BEGINS, over::SOFTIRQ_ENDS];
        let all = kinds.map(|kind| {
            let names = INTERRUPTS.iter().filter(|(_, of)| *of == kind).map(|(name, _)| *name).collect::<Vec<_>>();
            (Hears::Host(kind), names)
        });
        for (hears, names) in all.into_iter().chain([(NMI.1, vec![NMI.0])]) {
            let names: Vec<&'static str> = names.into_iter().filter(|name| events.join(name).is_dir()).collect();
            let loaded = self.loaded(ProgramType::RawTracepoint, hears);
            for name in names {
                let attached = match &loaded {
                    Ok(program) => sys::attach_raw(name.rsplit('/').next().unwrap_or(name), program)
                        .map_err(|error| (error.to_string(), "")),
                    Err((error, log)) => Err((error.to_string(), log.as_str())),
                };
                match attached {
                    Ok(attached) => {
                        self.attached.push(attached);
                        self.heard.push(name);
                    }
                    Err((why, log)) => {
                        self.missing.push(Missing { event: name.replace('/', ":"), why, log: last_lines(log) });
                    }
                }
            }
            self.programs.extend(loaded.ok());
        }
    }

    /// Events that are left out, and why.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Whether the event `system/name` is heard.
    pub fn hears(&self, name: &str) -> bool {
        self.heard.contains(&name)
    }

    /// Since when everything is attached, on CLOCK_MONOTONIC.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Instructions of all programs.
    pub fn instructions(&self) -> usize {
        self.instructions
    }

    /// Has the kernel measure what the programs take from now on, which itself takes two readings of the clock for each run.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn measure(&mut self) -> io::Result<()> {
        self.measuring = Some(sys::measure_programs()?);
        Ok(())
    }

    /// What the programs have taken.
    pub fn cost(&self) -> Cost {
        let all = self.programs.iter().filter_map(|program| sys::taken(program).ok());
        let sum = all.fold((0, 0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2));
        let measured = self.measuring.is_some().then_some((sum.0, sum.1));
        Cost { measured, left_out: sum.2 }
    }

    /// Nothing is folded from now on; what was stays to be looked at.
    pub fn detach(&mut self) {
        self.attached.clear();
    }

    /// Begins a record for a thread that runs a vCPU, before its first event; without one it is met by that. `is_asleep` is asked once its
    /// events would be seen: a thread that then sleeps and has had none has slept all the time.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn expect(&self, tid: u32, tgid: u32, is_asleep: impl FnOnce() -> bool) -> io::Result<()> {
        let index = self.words.shared.at(Shared::Records as usize).fetch_add(1, Relaxed);
        let Ok(index) = u32::try_from(index) else { return Ok(()) };
        if index as usize >= MOST_RECORDS || tid as usize >= MOST_TIDS {
            self.words.shared.at(Shared::RecordsLost as usize).fetch_add(1, Relaxed);
            return Ok(());
        }
        let now = now_ns();
        let word = |word: Word| self.words.records.at(index as usize * RECORD_WORDS + word as usize);
        for (at, value) in [(Word::Tid, u64::from(tid)), (Word::Tgid, u64::from(tgid)), (Word::Off, off::UNSEEN)] {
            word(at).store(value, Relaxed);
        }
        // A waking before it is none of its sleep.
        for at in [Word::Met, Word::Since, Word::Last, Word::SleptFrom] {
            word(at).store(now, Relaxed);
        }
        word(Word::Vm).store(u64::from(self.vm_of(tgid)?), Relaxed);
        if !sys::add_to_map(&self.tids, tid, index)? {
            // An event was faster, and made another record.
            word(Word::Tid).store(0, Relaxed);
            return Ok(());
        }
        self.words.bits.at(tid as usize / 64).fetch_or(1 << (tid % 64), Release);
        if is_asleep() && word(Word::Events).load(Acquire) == 0 {
            // Where exits are told, the one that would say why it sleeps was not seen.
            let sleeps = if self.hears("kvm/kvm_exit") && self.exits_fire() { off::ASLEEP } else { off::BLOCKED };
            let _ = word(Word::Off).compare_exchange(off::UNSEEN, sleeps, Release, Relaxed);
        }
        Ok(())
    }

    /// The number of a process's VM, which gets one if it has none; 0 if there are too many.
    fn vm_of(&self, tgid: u32) -> io::Result<u32> {
        if let Some(known) = sys::look_up(&self.vm_keys, tgid)? {
            return Ok(known);
        }
        let number = self.words.shared.at(Shared::Vms as usize).fetch_add(1, Relaxed);
        let Some(number) = u32::try_from(number).ok().filter(|number| (*number as usize) < MOST_VMS) else {
            return Ok(0);
        };
        sys::add_to_map(&self.vm_keys, tgid, number)?;
        // A vCPU that was met meanwhile may have been faster.
        Ok(sys::look_up(&self.vm_keys, tgid)?.unwrap_or(0))
    }

    /// A thread has ended: its id may be another one's.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn forget(&self, tid: u32) -> io::Result<()> {
        self.words.bits.at(tid as usize / 64 % (MOST_TIDS / 64)).fetch_and(!(1 << (tid % 64)), Release);
        sys::remove_from_map(&self.tids, tid)
    }

    /// Whether a `kvm_exit` has fired.
    pub fn exits_fire(&self) -> bool {
        self.words.shared.at(Shared::SeenExit as usize).load(Relaxed) != 0
    }
}

/// The end of what the verifier says, where the complaint stands.
fn last_lines(log: &str) -> String {
    const LINES: usize = 6;
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
