//! Measures: prepares what DPDK's programs need, records beside, and puts back.

use super::super::beside::{self, Task};
use super::super::launches::Work;
use super::Channel;
use super::live::Live;
use base::channel::{BENCH, DPDK_PATHS, GIVEN_WINDOWS};
use base::{Bench, CpuSet};
use channel_bench::dpdk::{Memory, Prepared};
use channel_bench::{Plan, ground};
use lab::environment::{self, How};
use lab::setting::thread;
use labs::bench::launch;
use process::exit::{Exit, complain};
use process::interrupt::Interrupt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// What DPDK's programs have, until somebody has put it back.
type Shared = Arc<Mutex<Option<Prepared>>>;

impl Channel {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let mut plan = self.plan()?;
        let mut environment = environment::here(How { fifo: plan.fifo, ..How::default() });
        let ns_per_tick = launch::ns_per_tick();
        environment.insert(base::bench::NS_PER_TICK.to_owned(), ns_per_tick.to_string());
        environment.extend(ground(Path::new("/"), plan.cpus.1));
        environment.extend(self.given().map(|given| (GIVEN_WINDOWS.to_owned(), given)));
        let interrupt = Interrupt::watch()?;
        let prepared = self.prepare(&mut plan, &interrupt)?;
        if let Ok(bed) = &plan.dpdk {
            environment.insert("memory of DPDK".to_owned(), bed.memory.name().to_owned());
        }
        let mut bench = Bench::new(BENCH, environment);
        if cfg!(debug_assertions) {
            bench
                .notes
                .push("This program was built without optimization: its ring is slower than it could be.".to_owned());
        }
        if plan.dpdk.as_ref().is_ok_and(|bed| bed.memory == Memory::Ordinary) {
            bench.notes.push(
                "The kernel gave no huge pages, so DPDK's programs ran with --no-huge, which is slower.".to_owned(),
            );
        }
        let live = Live::of(&mut plan, ns_per_tick, !self.place.no_progress);
        let live = live.as_ref().map(|live| || live.said());
        let work = Work {
            results: plan.results(),
            rounds: 1,
            job: &|number, _| Ok(plan.launch(number)?),
            live: live.as_ref().map(|live| live as &(dyn Fn() -> Option<String> + Sync)),
        };
        let answered = if self.no_record {
            work.run(self.launches, bench, &self.place, interrupt)
        } else {
            self.recorded(&plan, &work, bench, interrupt)
        };
        back(&prepared)?;
        answered
    }

    /// Measures while the host is recorded.
    fn recorded(&self, plan: &Plan, work: &Work<'_>, mut bench: Bench, interrupt: Interrupt) -> anyhow::Result<Exit> {
        let cpus = CpuSet::from_iter([plan.cpus.0, plan.cpus.1]);
        let others = thread::affinity(thread::own())?.without(&cpus);
        // What records stays off the CPUs of the two sides where it can.
        if !others.is_empty() {
            thread::set_affinity(thread::own(), &others)?;
        }
        let mut place = self.place.begin(&bench.bench, None, interrupt)?;
        // From here on a signal ends the launches, and then the recorder.
        let stop = place.interrupt.hold();
        let mut notes = Vec::new();
        let unexplained = "no gap has a culprit";
        let task = Task { name: "the bench", unexplained, notes: &mut notes };
        let (failed, parts) = beside::along(&mut place, &self.journal, cpus, task, |place, _| {
            work.measure(self.launches, &mut bench, place, !self.place.no_progress)
        })?;
        bench.notes.append(&mut notes);
        place.add(parts);
        let failed = failed?;
        let ended = Work::end(place, bench, failed, &self.place);
        if stop.load(Ordering::Relaxed) { Ok(Exit::Interrupted) } else { ended }
    }

    /// Makes what DPDK's programs need, if any of them is wanted; a signal puts it back.
    fn prepare(&self, plan: &mut Plan, interrupt: &Interrupt) -> anyhow::Result<Shared> {
        let is_wanted = plan.setups.iter().any(|setup| DPDK_PATHS.contains(&setup.path.as_str()));
        if !is_wanted || plan.fifo {
            return Ok(Shared::default());
        }
        let mut told = Err(String::new());
        let shared = interrupt.making(
            || {
                let made = Prepared::begin(&self.journal.journal(), plan.cpus);
                told = made.as_ref().map(|made| made.bed().clone()).map_err(ToString::to_string);
                Ok::<Shared, anyhow::Error>(Arc::new(Mutex::new(made.ok())))
            },
            |shared| {
                let shared = Arc::clone(shared);
                move || {
                    if let Err(error) = back(&shared) {
                        complain(&error.into());
                    }
                }
            },
        )?;
        plan.dpdk = told;
        Ok(shared)
    }
}

fn back(prepared: &Shared) -> Result<(), lab::Error> {
    match prepared.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(prepared) => prepared.back(),
        None => Ok(()),
    }
}
