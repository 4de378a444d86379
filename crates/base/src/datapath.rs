//! What a datapath carried when it was measured: counted packets, in one shape for all datapaths.
//!
//! ```text
//! <machine>/datapath/<name>.json   { schema, environment, notes, runs: [DatapathRun, ..] }
//! DatapathRun                      one trial: what was asked for, packets received in its window, its books, who disturbed it
//! Books                            sent = received + dropped at named places + held in rings at the stop
//! ```
//! `lab` writes it, `analysis` reads it. Nothing here is averaged, and no count is computed from the others: each one was read
//! from a counter of the program that keeps it, so that books that do not close show it.

mod beside;
mod samples;

pub use crate::bench::Error;
pub use beside::{RateBounds, StreamRun};
pub use samples::{RateSample, gbps};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The schema this version reads and writes.
pub const SCHEMA: &str = "kvmscope-datapath/1";

/// Bytes of the frame check sequence, which sizes here count and most programs do not (IEEE 802.3, 3.2.9).
pub const FCS_BYTES: u32 = 4;

/// The file of a hundred trials is some 300 KB; one this long is something else.
const MOST_BYTES: u64 = 32 << 20;

/// The trials of one bed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatapathRuns {
    /// [`SCHEMA`].
    pub schema: String,
    /// What the machine and the programs were, by name: CPU, kernel, versions, huge pages.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// What was said of the bed as a whole.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The trials, in the order in which they were made.
    pub runs: Vec<DatapathRun>,
    /// Bounds that searches found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<RateBounds>,
    /// Streams of messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamRun>,
}

crate::named! {
    /// Which way packets go.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Traffic {
        /// Through all VNFs, one behind the other: east-west.
        #[default]
        Chain = "chain",
        /// Through one VNF each, in and out again.
        NorthSouth = "north-south",
    }
}

/// One trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatapathRun {
    /// What carried the packets: `ovs-dpdk`, `bridge`.
    pub design: String,
    /// Which way they went.
    pub pattern: Traffic,
    /// VNFs of the chain; with [`Traffic::NorthSouth`] VNFs side by side.
    pub vnfs: u32,
    /// Size of each frame, FCS counted.
    pub size_bytes: u32,
    /// Which trial of its kind, from 0.
    pub repeat: u32,
    /// What was offered; `None`: as much as the sender could send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_pps: Option<f64>,
    /// Where the window begins, CLOCK_MONOTONIC.
    pub begin_ns: u64,
    /// From when on this computer was recorded beside it, CLOCK_MONOTONIC, at least until the window ends; `None`: it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced_from_ns: Option<u64>,
    /// Its length.
    pub window_ns: u64,
    /// By how much that length may be wrong: reading a counter takes time.
    pub window_error_ns: u64,
    /// Packets sent within it.
    pub window_sent: u64,
    /// Packets received within it, at the ends of all chains together.
    pub window_received: u64,
    /// The window piece by piece, what a gauge shows: the counts of all pieces add up to those of the window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<RateSample>,
    /// All packets of the trial, the time before and after the window counted.
    pub books: Books,
    /// What the threads that poll for packets did within the window.
    #[serde(default)]
    pub pollers: Vec<Poller>,
    /// Share of the CPUs' time within the window that the machine below kept for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_share: Option<f64>,
    /// What disturbed it, a sentence each; none if nothing was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interference: Vec<String>,
    /// The resource that kept the rate from being higher: `pmd`, `guest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_by: Option<String>,
    /// CPUs that switch packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
}

/// Where the packets of a trial are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Books {
    /// Packets that the senders sent.
    pub sent: u64,
    /// Packets that arrived at the sinks.
    pub received: u64,
    /// Packets that were dropped, by place.
    pub dropped: Vec<Place>,
    /// Packets that lay in rings when counters were read for the last time.
    pub held: Vec<Place>,
    /// What two programs counted of the same packets.
    #[serde(default)]
    pub agreements: Vec<Agreement>,
}

/// Packets at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Where: `ring into VNF 1`.
    pub place: String,
    /// How many.
    pub packets: u64,
    /// Which counter says so.
    pub counter: String,
    /// The most that fit there; `None` for a place that keeps none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
}

/// The same packets, counted twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// Which packets.
    pub packets: String,
    /// One counter, and what it says.
    pub one: (String, u64),
    /// The other.
    pub other: (String, u64),
}

/// A thread that polls for packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Poller {
    /// Its name: `pmd-c00/id:9`.
    pub name: String,
    /// Its id.
    pub tid: u32,
    /// The CPU it is bound to.
    pub cpu: u32,
    /// Share of the window that it ran.
    pub run_share: f64,
    /// Share of the window that it was ready and another thread ran.
    pub wait_share: f64,
    /// What it says of its cycles, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<PollerCycles>,
}

/// A poller's own account. Cycles are those of the time-stamp counter, and go on while another thread has the CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PollerCycles {
    /// Cycles of its loop.
    pub used: u64,
    /// Those of turns that found packets.
    pub busy: u64,
    /// Packets it took in.
    pub packets: u64,
    /// Batches it sent, where it counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batches: Option<u64>,
    /// Queues that it polls.
    pub queues: u32,
    /// Cycles of a packet that a full ring refuses, only those during which the thread ran: measured with the VNFs stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_cycles: Option<f64>,
}

impl Books {
    /// What `sent` has more than all places together: 0 where the books close.
    pub fn missing(&self) -> i128 {
        let there = |places: &[Place]| places.iter().map(|place| i128::from(place.packets)).sum::<i128>();
        i128::from(self.sent) - i128::from(self.received) - there(&self.dropped) - there(&self.held)
    }

    /// What keeps these books from being whole, a sentence each.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.missing() != 0 {
            faults.push(format!("sent is not received + dropped + held: {} packets are missing", self.missing()));
        }
        let over = self.held.iter().filter(|held| held.most.is_some_and(|most| held.packets > most));
        faults.extend(over.map(|held| format!("{}: {} packets do not fit there", held.place, held.packets)));
        let differ = self.agreements.iter().filter(|agreement| agreement.one.1 != agreement.other.1);
        faults.extend(differ.map(|Agreement { packets, one, other }| {
            format!("{packets}: {} is {} and {} is {}", one.0, one.1, other.0, other.1)
        }));
        faults
    }
}

impl DatapathRun {
    /// Packets per second from one end of a chain to the other; with [`Traffic::NorthSouth`] per VNF.
    pub fn chain_pps(&self) -> f64 {
        let chains = match self.pattern {
            Traffic::Chain => 1,
            Traffic::NorthSouth => self.vnfs.max(1),
        };
        self.window_received as f64 / f64::from(chains) / (self.window_ns.max(1) as f64 / 1e9)
    }

    /// Packets per second that all VNFs together send.
    pub fn system_pps(&self) -> f64 {
        self.chain_pps() * f64::from(self.vnfs)
    }
}

impl DatapathRuns {
    /// A bed without trials yet.
    pub fn new(environment: BTreeMap<String, String>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            environment,
            notes: Vec::new(),
            runs: Vec::new(),
            bounds: Vec::new(),
            streams: Vec::new(),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, holds something else, or is of another schema.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let damaged = |reason| Error::Damaged { path: path.to_owned(), reason };
        let bytes = crate::files::read(path, MOST_BYTES).map_err(io)?;
        let runs: Self = serde_json::from_slice(&bytes)
            .map_err(|error| damaged(format!("these are not measured rates of a datapath ({error})")))?;
        match runs.schema.as_str() {
            SCHEMA => Ok(runs),
            other => Err(damaged(format!("its schema is `{other}`; this version reads `{SCHEMA}`"))),
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        crate::json_line::write(self, path).map_err(|source| Error::Io { path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(place: &str, packets: u64, most: Option<u64>) -> Place {
        Place { place: place.into(), packets, counter: "c".into(), most }
    }

    fn run() -> DatapathRun {
        DatapathRun {
            design: "ovs-dpdk".into(),
            pattern: Traffic::Chain,
            vnfs: 4,
            size_bytes: 64,
            repeat: 0,
            offered_pps: None,
            begin_ns: 5,
            traced_from_ns: None,
            window_ns: 500_000_000,
            window_error_ns: 1_000,
            window_sent: 90,
            window_received: 50,
            samples: Vec::new(),
            books: Books {
                sent: 100,
                received: 60,
                dropped: vec![place("ring into VNF 1", 35, None)],
                held: vec![place("ring into VNF 2", 5, Some(1024))],
                agreements: vec![Agreement {
                    packets: "into VNF 1".into(),
                    one: ("a".into(), 65),
                    other: ("b".into(), 65),
                }],
            },
            pollers: Vec::new(),
            steal_share: None,
            interference: Vec::new(),
            bound_by: Some("guest".into()),
            cores: Some(1),
        }
    }

    #[test]
    fn books_close_only_if_every_packet_is_somewhere() {
        let whole = run().books;
        assert_eq!((whole.missing(), whole.faults()), (0, Vec::<String>::new()));
        let lost = Books { sent: 101, ..whole.clone() };
        assert_eq!(lost.missing(), 1);
        assert!(lost.faults()[0].contains("1 packets are missing"), "{:?}", lost.faults());
        let mut full = whole.clone();
        full.held[0].most = Some(4);
        assert!(full.faults()[0].contains("do not fit"), "{:?}", full.faults());
        let mut differ = whole;
        differ.agreements[0].other.1 = 64;
        assert_eq!(differ.faults(), ["into VNF 1: a is 65 and b is 64"]);
        let huge = Books { sent: u64::MAX, dropped: vec![place("x", u64::MAX, None); 3], ..Books::default() };
        assert!(huge.missing() < 0, "no overflow");
    }

    #[test]
    fn a_chain_counts_its_end_once_and_vnfs_side_by_side_share() {
        let chain = run();
        assert_eq!((chain.chain_pps(), chain.system_pps()), (100.0, 400.0));
        let beside = DatapathRun { pattern: Traffic::NorthSouth, ..run() };
        assert_eq!((beside.chain_pps(), beside.system_pps()), (25.0, 100.0));
        assert!(DatapathRun { window_ns: 0, ..run() }.chain_pps().is_finite());
    }

    #[test]
    fn trials_outlive_their_file_and_what_is_none_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("L0/datapath/ovs.json");
        let runs = DatapathRuns { runs: vec![run()], ..DatapathRuns::new(BTreeMap::new()) };
        runs.write(&path).unwrap();
        assert_eq!(DatapathRuns::read(&path).unwrap(), runs);
        for text in ["", "{}", r#"{"schema":"kvmscope-datapath/9","runs":[]}"#] {
            std::fs::write(&path, text).unwrap();
            assert!(DatapathRuns::read(&path).is_err(), "{text}");
        }
        assert!(DatapathRuns::read(directory.path()).is_err());
    }
}
