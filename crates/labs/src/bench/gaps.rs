//! When did a loop not run that does nothing but read the time-stamp counter?
//!
//! ```text
//! counter   10 11 12 13 ........ 47 48 49    readings that are further apart than a threshold: somebody else had the CPU, or
//!                     [ a gap  ]             the processor did something that no program sees
//! ```
//! The loop is a guest's on `/dev/kvm`, at ring 3, where one can run, else this process's own: then a gap is what a thread
//! loses, without what KVM adds. A guest that QEMU emulates looks on request: there gaps are also what the emulator adds. A guest reads the counter of its host, as far as KVM can set the offset to 0; that is checked.

use super::exits::machine::{Machine, Stop, Turn};
use super::exits::{catalogue, here, layout, payload};
use super::priority;
use super::probe::shared::{COUNT, THRESHOLD};
use super::probe::{Probe, Task};
use base::CpuSet;
use base::gaps::THREAD;
use kvm_ioctls::Kvm;
use lab::Error;
use lab::guest::{self, watchdog::watched};
use lab::setting::thread;
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How the loop runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// KVM's device.
    pub device: PathBuf,
    /// The CPU to stay on.
    pub cpu: u32,
    /// Readings that are so many ticks apart are noted.
    pub threshold_ticks: u64,
    /// How long it runs.
    pub length: Duration,
    /// Nanoseconds of a tick of the time-stamp counter.
    pub ns_per_tick: f64,
    /// By the real-time policy SCHED_FIFO.
    pub fifo: bool,
}

/// Where the loop ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Guest,
    Here,
    /// In a guest that QEMU emulates.
    Emulated,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Gaps {
    pub place: Place,
    /// The thread that ran it.
    pub tid: i32,
    /// The readings before and after each gap, in ticks of the host's counter.
    pub gaps: Vec<(u64, u64)>,
    /// When it looked, in such ticks: it stops for a moment each second.
    pub looked: Vec<(u64, u64)>,
    /// There was no room for more gaps, and it ended early.
    pub is_full: bool,
}

/// Gaps that have room.
const MOST_GAPS: u64 = layout::MOST_SAMPLES / 2;

/// The watchdog comes so much after the end: a host may be busy.
const GRACE: Duration = Duration::from_secs(10);

/// The loop leaves its guest so often, to see whether it is to end.
const ROUND: Duration = Duration::from_secs(1);

/// Notes of an emulated guest are taken so often: it has room for 32,768 gaps.
const EVERY: Duration = Duration::from_millis(50);

impl Plan {
    /// Runs the loop in a thread of this process until its time is over, or until `stop` is set.
    ///
    /// # Errors
    /// If there is no thread, or if it may not stay on its CPU.
    pub fn here(&self, stop: &Arc<AtomicBool>) -> Result<Gaps, Error> {
        let (own, stop) = (self.clone(), Arc::clone(stop));
        let work = move || {
            let tid = own.begin()?;
            let round = |turn: &Turn| Ok(here::gaps(turn));
            let looked = own.rounds(&stop, round).map_err(|_: Stop| Error::Stopped)?;
            Ok(Gaps { place: Place::Here, tid, ..looked })
        };
        let refused = |error| Error::refused("no thread for the loop", error);
        let thread = std::thread::Builder::new().name("gaps".to_owned()).spawn(work).map_err(refused)?;
        thread.join().unwrap_or_else(|_| Err(Error::Died("the loop's thread has failed".to_owned())))
    }

    /// The same in a guest on KVM.
    ///
    /// # Errors
    /// As [`here`](Self::here), and if there is no KVM, if the guest does not run as it should, or if its counter is not the host's.
    pub fn guest(&self, stop: &Arc<AtomicBool>) -> Result<Gaps, Error> {
        let (own, stop) = (self.clone(), Arc::clone(stop));
        let kvm = guest::open(&self.device)?;
        let done = watched(self.length + GRACE, move |late| {
            let tid = own.begin()?;
            let looked = own.in_guest(&kvm, &stop, late)?;
            Ok(looked.map(|looked| Gaps { place: Place::Guest, tid, ..looked }))
        })?;
        match done {
            Some(Ok(Ok(gaps))) => Ok(gaps),
            Some(Ok(Err(Stop::Failed(why)))) => Err(Error::Absent(why)),
            Some(Err(error)) => Err(error),
            Some(Ok(Err(Stop::Stuck))) | None => {
                Err(Error::TimedOut("the guest did not end and was stopped by the watchdog".to_owned()))
            }
        }
    }

    /// The same in a guest that QEMU emulates.
    ///
    /// # Errors
    /// If it ends early, or does not say what its counter shows.
    pub fn emulated(&self, probe: &mut Probe, stop: &AtomicBool) -> Result<Gaps, Error> {
        let before = probe.ahead()?;
        let tid = probe.tids().last().copied().unwrap_or(0);
        let mut seen = probe.shared.get(COUNT);
        probe.shared.set(THRESHOLD, self.threshold_ticks);
        let (since, begun) = (now(), Instant::now());
        probe.order(Task::Gaps)?;
        let (mut readings, mut is_full, mut until) = (Vec::new(), false, since);
        while begun.elapsed() < self.length && !is_full && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(EVERY);
            let looked = now();
            let taken = probe.shared.take(&mut seen);
            // Behind notes that were written over nobody knows what is missing.
            is_full = taken.lost > 0 || readings.len() + taken.notes.len() >= 2 * MOST_GAPS as usize;
            if taken.lost == 0 {
                readings.extend(taken.notes);
                until = looked;
            }
            probe.look()?;
        }
        probe.order(Task::Spin)?;
        let (ahead, _) = before.around(probe.ahead()?).middle();
        let of_host = |reading: u64| reading.wrapping_sub(ahead as u64);
        let gaps = readings.chunks_exact(2).map(|pair| (of_host(pair[0]), of_host(pair[1])));
        let gaps = gaps.filter(|(from, to)| from <= to).collect();
        Ok(Gaps { place: Place::Emulated, tid, gaps, looked: vec![(since, until)], is_full })
    }

    fn begin(&self) -> Result<i32, Error> {
        thread::set_affinity(thread::own(), &CpuSet::one(self.cpu))?;
        rustix::thread::set_name(&CString::new(THREAD).unwrap_or_default())
            .map_err(|error| Error::refused("the loop's thread gets no name", error))?;
        if self.fifo {
            priority::fifo(priority::GUEST)?;
        }
        Ok(rustix::thread::gettid().as_raw_nonzero().get())
    }

    fn in_guest(&self, kvm: &Kvm, stop: &AtomicBool, late: &AtomicBool) -> Result<Result<Gaps, Stop>, Error> {
        let test = catalogue::named("rdtsc").ok_or_else(|| Error::Absent("there is no test `rdtsc`".to_owned()))?;
        let mut machine = Machine::new(kvm, test, None)?;
        machine.read_counter_of_host();
        // The first write to a page would be a gap of its own.
        let touch = Turn { entry: payload::touch_pages(), samples: layout::MOST_SAMPLES * 8 / 4096, ..Turn::default() };
        if let Err(stop) = machine.go(&touch, late) {
            return Ok(Err(stop));
        }
        let mut round = |turn: &Turn| {
            machine.go(turn, late)?;
            Ok(machine.samples(2 * turn.samples))
        };
        // Any two readings are a gap of 0.
        let before = now();
        let any = Turn { entry: payload::gaps(), samples: 1, operations: 0, r15: u64::MAX, ..Turn::default() };
        let readings = match round(&any) {
            Ok(readings) => readings,
            Err(stop) => return Ok(Err(stop)),
        };
        if !readings.is_sorted()
            || readings.first().is_none_or(|first| *first < before)
            || readings.last() > Some(&now())
        {
            let why = "the guest's time-stamp counter has an offset that KVM does not let us set";
            return Ok(Err(Stop::Failed(why.to_owned())));
        }
        Ok(self.rounds(stop, round))
    }

    /// Does `round` again and again; it gives the readings around each gap, with others behind the last.
    fn rounds(&self, stop: &AtomicBool, mut round: impl FnMut(&Turn) -> Result<Vec<u64>, Stop>) -> Result<Gaps, Stop> {
        let ticks = |length: Duration| (length.as_nanos() as f64 / self.ns_per_tick) as u64;
        let ends_at = now() + ticks(self.length);
        let mut looked = Gaps { place: Place::Here, tid: 0, gaps: Vec::new(), looked: Vec::new(), is_full: false };
        while now() < ends_at && !looked.is_full && !stop.load(Ordering::Relaxed) {
            let since = now();
            let room = MOST_GAPS - looked.gaps.len() as u64;
            let r15 = ends_at.min(since + ticks(ROUND));
            let turn = Turn {
                entry: payload::gaps(),
                samples: room,
                operations: self.threshold_ticks,
                r15,
                ..Turn::default()
            };
            let readings = round(&turn)?;
            let until = now().min(r15);
            let pairs = readings.chunks_exact(2).map(|pair| (pair[0], pair[1]));
            // Behind the last one lies what an earlier round found, or nothing.
            looked.gaps.extend(pairs.take_while(|(from, to)| since <= *from && from <= to));
            looked.is_full = looked.gaps.len() as u64 >= MOST_GAPS;
            looked.looked.push((since, until));
        }
        Ok(looked)
    }
}

fn now() -> u64 {
    lab::tracefs::tsc().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::probe::Seats;
    use std::path::Path;

    fn plan(threshold_ticks: u64) -> Plan {
        let cpu = thread::affinity(thread::own()).unwrap().last().unwrap();
        let (device, length) = (PathBuf::from("/dev/kvm"), Duration::from_millis(200));
        Plan { device, cpu, threshold_ticks, length, ns_per_tick: crate::bench::launch::ns_per_tick(), fifo: false }
    }

    fn holds(found: &Gaps, plan: &Plan) {
        let Gaps { gaps, looked, .. } = found;
        let span = (looked[0].0, looked.last().unwrap().1);
        assert!(gaps.iter().all(|(from, to)| to - from >= plan.threshold_ticks), "{gaps:?}");
        assert!(gaps.windows(2).all(|two| two[0].1 <= two[1].0), "in order, and apart");
        assert!(gaps.iter().all(|(from, to)| span.0 <= *from && *to <= span.1), "{gaps:?} {span:?}");
        assert!((span.1 - span.0) as f64 * plan.ns_per_tick >= 190e6 && !found.is_full, "{span:?}");
    }

    #[test]
    fn gaps_are_as_long_as_the_threshold_and_lie_within_the_run() {
        let own = plan(20_000);
        holds(&own.here(&Arc::default()).unwrap(), &own);
        if !Path::new("/dev/kvm").exists() {
            return println!("skipped: gaps of a guest: /dev/kvm does not exist");
        }
        match own.guest(&Arc::default()) {
            Ok(found) => holds(&found, &own),
            Err(error) => println!("skipped: gaps of a guest: {error}"),
        }
    }

    #[test]
    fn gaps_of_an_emulated_guest_are_by_the_hosts_counter() {
        let own = plan(20_000);
        let seats = Seats::of(&thread::affinity(thread::own()).unwrap(), own.cpu, false);
        let scratch = tempfile::tempdir().unwrap();
        match Probe::in_qemu(scratch.path(), &seats) {
            Err(error) => println!("skipped: gaps of an emulated guest: {error}"),
            Ok(mut probe) => {
                let found = own.emulated(&mut probe, &AtomicBool::default()).unwrap();
                holds(&found, &own);
                assert_eq!((found.place, Some(&found.tid)), (Place::Emulated, probe.tids().last()));
            }
        }
    }

    #[test]
    fn a_loop_without_room_ends_early_and_so_does_one_that_is_stopped() {
        let found = plan(0).here(&Arc::default()).unwrap();
        assert!(found.is_full && found.gaps.len() as u64 == MOST_GAPS, "{}", found.gaps.len());
        let stopped = plan(0).here(&Arc::new(AtomicBool::new(true))).unwrap();
        assert_eq!((stopped.gaps.len(), stopped.is_full), (0, false));
    }
}
