//! What datapaths carried while they were measured, and what switches and testpmd printed, as a recording has them.

use crate::attribution::is_monotonic;
use base::datapath::DatapathRuns;
use base::recording::{PartKind, Recording};
use base::{Clock, Level, Problem};
use host::polled::{flows, forwarders, pmd, testpmd, traffic};
use std::collections::BTreeMap;
use std::io::Read;

/// What switches print of a thousand ports is some megabytes.
const MOST_BYTES: u64 = 32 << 20;

#[derive(Debug, Default)]
pub struct Datapaths {
    /// Measured trials, by file.
    pub beds: Vec<Bed>,
    /// What programs printed, by file.
    pub printed: Vec<Printed>,
}

/// One file of trials.
#[derive(Debug)]
pub struct Bed {
    pub machine: String,
    pub level: Level,
    pub runs: DatapathRuns,
}

#[derive(Debug)]
pub struct Printed {
    pub machine: String,
    /// The file, as the user names it.
    pub path: String,
    /// Polling threads, each as it was printed last.
    pub pmds: Vec<pmd::PmdStatistics>,
    pub queues: Vec<host::machine::Pmd>,
    pub flows: Vec<flows::Flow>,
    pub testpmd: testpmd::Testpmd,
    /// Intervals of a traffic generator.
    pub traffic: Vec<traffic::Traffic>,
    /// Ports of other programs that forward packets or make them.
    pub forwarders: Vec<forwarders::Port>,
}

impl Printed {
    fn of(machine: &str, path: String, text: String) -> Self {
        let (flows, testpmd, traffic) = (flows::read(&text), testpmd::read(&text), traffic::read(&text));
        let last: BTreeMap<Option<u32>, _> = pmd::read(&text).into_iter().map(|thread| (thread.cpu, thread)).collect();
        let pmds = last.into_values().collect();
        let queues = host::paste::receive_queues(&path, &text);
        let forwarders = forwarders::read(&text);
        Self { machine: machine.to_owned(), path, pmds, queues, flows, testpmd, traffic, forwarders }
    }
}

impl Datapaths {
    /// Reads the parts of `recording`; what cannot be read becomes a problem.
    pub fn of(recording: &Recording) -> (Self, Vec<Problem>) {
        let (mut found, mut problems) = (Self::default(), Vec::new());
        for part in &recording.parts {
            let file = recording.root.join(&part.path);
            let path = recording.as_named(&part.path.display().to_string()).into_owned();
            let mut problem = |expected, error: String| {
                problems.push(Problem::at(&path, None, expected, "none", 0, error));
            };
            match part.kind {
                PartKind::Datapath => match DatapathRuns::read(&file) {
                    Ok(runs) => {
                        let level = recording.level_of(&part.machine);
                        found.beds.push(Bed { machine: part.machine.clone(), level, runs });
                    }
                    Err(error) => problem("measured rates of a datapath", error.to_string()),
                },
                PartKind::Pmd => {
                    let mut bytes = Vec::new();
                    let read = base::files::open(&file).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
                    match read {
                        Ok(_) => {
                            let text = String::from_utf8_lossy(&bytes).into_owned();
                            found.printed.push(Printed::of(&part.machine, path, text));
                        }
                        Err(error) => problem("what a switch printed", error.to_string()),
                    }
                }
                PartKind::TraceDat
                | PartKind::Ctf
                | PartKind::PerfData
                | PartKind::Text
                | PartKind::Host
                | PartKind::Bench
                | PartKind::Samples
                | PartKind::Qmp
                | PartKind::Budget
                | PartKind::Plan
                | PartKind::Prediction
                | PartKind::Heartbeat
                | PartKind::Network
                | PartKind::Processes
                | PartKind::MovedMemory
                | PartKind::Hibernation
                | PartKind::Counts
                | PartKind::Notes => {}
            }
        }
        (found, problems)
    }

    /// When the trace of `machine` went on for another trial, by its own `clock`, in order: between trials it paused.
    pub fn resumed_ns(&self, machine: &str, clock: &Clock) -> Vec<u64> {
        if !is_monotonic(clock) {
            return Vec::new();
        }
        let beds = self.beds.iter().filter(|bed| bed.machine == machine);
        let from_ns = beds.flat_map(|bed| &bed.runs.runs).filter_map(|run| run.traced_from_ns);
        let mut all: Vec<u64> = from_ns.map(|from_ns| from_ns.saturating_add_signed(clock.offset_ns)).collect();
        all.sort_unstable();
        all
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.beds.is_empty() && self.printed.is_empty()
    }
}
