//! What do the kernel's own datapaths carry between two namespaces? Measured with frames of ours, and with streams of iperf3.
//!
//! ```text
//! namespace -source     namespace -chain: one polling kernel thread for each port, all on one CPU       namespace -sink
//! source0 --- veth --- port0 [VNF 1] port1 --- veth --- port2 [VNF 2] port3 --- ... port2N-1 --- veth --- sink0
//! sender, another CPU        veth: redirected by tc · bridge: a bridge · macvtap: a thread of ours copies · vhost-net: testpmd
//! ```
//! In: [`Settings`]. Out: trials in the form of all datapaths ([`DatapathRuns`]): at the highest rate that the sender reaches, with
//! books in which every frame is somewhere; bounds that the search (`search/`) finds; streams of messages.
//!
//! Namespaces stand in the journal, and everything else lies inside them.

mod bed;
mod carrier;
mod counters;
mod ledger;
mod macvtap;
mod needs;
mod record;
mod sender;
mod streams;
mod trial;
mod vnfs;

pub use bed::Path;
pub use record::record;

use super::inside::WorkerThreads;
use crate::search::bounds::{Searched, bounds, words};
use crate::search::{self, Goal, Method, Outcome, Range};
use base::datapath::{DatapathRun, DatapathRuns};
use bed::{Bed, Making};
use lab::journal::Journal;
use lab::setting::thread;
use lab::{Error, environment};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Most VNFs of a chain.
pub const MOST_VNFS: u32 = 8;

/// The command, as the journal has it.
const COMMAND: &str = "paths";
/// How long frames are sent before anything is measured: caches and the clock of CPUs that were idle settle meanwhile. No longer than a
/// trial.
const WARM_UP: Duration = Duration::from_secs(1);
/// The lowest rate that is searched: a trial of a second has enough frames for 0.1 % of them to be one.
const LEAST_PPS: u64 = 1_000;
/// More trials than this find nothing that fewer did not.
const MOST_TRIALS: u32 = 300;

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The datapaths, in turns.
    pub paths: Vec<Path>,
    /// Lengths of the chain.
    pub vnfs: Vec<u32>,
    /// Sizes of frames, FCS counted.
    pub sizes_bytes: Vec<u32>,
    pub trial: Duration,
    /// How often all is measured.
    pub repeats: u32,
    /// What is searched for in the first round, and how.
    pub search: Option<(Vec<Goal>, Method)>,
    /// Sizes of messages of TCP streams; none for no streams.
    pub messages_bytes: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Cpus {
    /// Where frames are sent.
    sender: u32,
    chain: u32,
}

/// Measures, with programs of the directories `programs`. `say` hears what is going on, `stop` ends it early.
///
/// # Errors
/// If something is missing or goes wrong on the way. Nothing is left behind then, unless the error says so.
pub fn run(
    settings: &Settings,
    programs: &[PathBuf],
    journal: &Journal,
    say: &mut dyn FnMut(&str),
    stop: &AtomicBool,
) -> Result<DatapathRuns, Error> {
    needs::check(&settings.paths, programs, std::path::Path::new("/"))?;
    let cpus: Vec<u32> = thread::affinity(thread::own())?.iter().collect();
    let [sender, chain, ..] = cpus[..] else {
        return Err(Error::Absent(
            "a sender and a forwarder need a CPU each; this process may use only one".to_owned(),
        ));
    };
    // Two labs at a time would measure each other.
    let Some(_lock) = journal.lock(stop)? else { return Err(Error::Stopped) };
    journal.clear(COMMAND)?;
    let lab = Lab { settings, cpus: Cpus { sender, chain }, journal, stop };
    let mut told = environment::here(environment::How::default());
    told.insert("CPU of the sender".to_owned(), sender.to_string());
    told.insert("CPU of the datapath".to_owned(), chain.to_string());
    let mut runs = DatapathRuns::new(told);
    for repeat in 0..settings.repeats {
        for vnfs in &settings.vnfs {
            for path in &settings.paths {
                lab.round(*path, *vnfs, repeat, &mut runs, say)?;
            }
        }
    }
    Ok(runs)
}

struct Lab<'a> {
    settings: &'a Settings,
    cpus: Cpus,
    journal: &'a Journal,
    stop: &'a AtomicBool,
}

impl Lab<'_> {
    /// All of one path and length, in a bed of its own.
    fn round(
        &self,
        path: Path,
        vnfs: u32,
        repeat: u32,
        runs: &mut DatapathRuns,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        let mut entry = self.journal.begin(COMMAND)?;
        let mut workers = WorkerThreads::new();
        let mut making =
            Making { entry: &mut entry, workers: &mut workers, proc: self.journal.proc(), stop: self.stop };
        let measured = Bed::build(path, vnfs, self.cpus, &mut making).and_then(|bed| {
            bed.warm_up()?;
            self.measured(&bed, repeat, runs, say)
        });
        let trouble = workers.trouble();
        workers.end();
        entry.put_back_after(measured, self.journal.proc())?;
        trouble.map_or(Ok(()), |trouble| Err(Error::Died(trouble)))
    }

    fn measured(
        &self,
        bed: &Bed<'_>,
        repeat: u32,
        runs: &mut DatapathRuns,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        for size_bytes in &self.settings.sizes_bytes {
            let offer = trial::Offer { size_bytes: *size_bytes, pps: None, length: self.settings.trial };
            bed.trial(&trial::Offer { length: WARM_UP.min(offer.length), ..offer })?;
            let run = DatapathRun { repeat, ..bed.trial(&offer)? };
            let pps = base::number::plain(run.chain_pps().round());
            let what = format!("{}, {} VNFs, {size_bytes} B", bed.path.name(), bed.vnfs);
            say(&format!("{what}: {pps} packets per second arrived"));
            if let Some((goals, method)) = self.settings.search.as_ref().filter(|_| repeat == 0) {
                let outcome = self.search(bed, &run, goals, *method)?;
                let (design, vnfs, size_bytes, method) = (bed.path.name(), bed.vnfs, *size_bytes, *method);
                for found in &outcome.found {
                    let bounds = bounds(Searched { design, vnfs, size_bytes, method }, &outcome, found);
                    say(&format!("{what}: {}: {}", bounds.goal, words(&bounds)));
                    runs.bounds.push(bounds);
                }
            }
            runs.runs.push(run);
        }
        for message_bytes in &self.settings.messages_bytes {
            let stream = streams::run(bed, *message_bytes, repeat, self.settings.trial, self.stop)?;
            say(&format!("{}, messages of {message_bytes} B: {:.2} Gb/s", bed.path.name(), stream.gbps));
            runs.streams.push(stream);
        }
        Ok(())
    }

    /// Searches below the rate that the sender reached when it sent all it could.
    fn search(&self, bed: &Bed<'_>, most: &DatapathRun, goals: &[Goal], method: Method) -> Result<Outcome, Error> {
        let most_pps = (most.window_sent as f64 / (most.window_ns.max(1) as f64 / 1e9)) as u64;
        let range = Range::new(LEAST_PPS, most_pps, MOST_TRIALS);
        let trial = |pps: u64| {
            let offer = trial::Offer { size_bytes: most.size_bytes, pps: Some(pps), length: self.settings.trial };
            let run = bed.trial(&offer)?;
            let steal_share = run.steal_share.unwrap_or(0.0);
            let (sent, received) = (run.window_sent, run.window_received);
            Ok(search::Trial { intended_pps: pps, sent, received, took_ns: run.window_ns, steal_share })
        };
        match method {
            Method::Mlr => search::mlr(goals, &range, trial),
            Method::Binary => search::binary(goals, &range, trial),
        }
    }
}

/// The user has had enough.
fn check(stop: &AtomicBool) -> Result<(), Error> {
    if stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
