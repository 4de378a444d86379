//! Runs that never were, with known answers.

use base::Level;
use base::bench::{Bench, Measured, NS_PER_TICK, Params};
use base::channel::{BENCH, PAIRS, Run, SLICE_NS, Setup, SetupPart, Side};
use facts::benches::{BenchRun, Benches};
use std::collections::BTreeMap;

/// What a run is made of; the rest follows from it.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub launch: u32,
    pub path: &'static str,
    pub window: &'static str,
    pub size: u32,
    pub batch: u32,
    pub policy: &'static str,
    /// The time of a batch in clean slices.
    pub batch_ns: f64,
    /// The share of slices that are clean.
    pub clean: f64,
    /// The rate over all of the time, of that of clean slices.
    pub raw: f64,
    pub window_ns: f64,
    pub kicks: u64,
    pub pair: &'static str,
    pub verified: bool,
    pub counted: bool,
    /// Milliseconds of each part of setting it up, if it was timed.
    pub(crate) setup_ms: Option<[u64; 4]>,
    /// Lost, duplicated, reordered, torn.
    pub wrong: [u64; 4],
    pub ring_bytes: u64,
    pub producer: Side,
    pub consumer: Side,
    pub emulated: bool,
}

/// Slices of a run: 300 ms.
const SLICES: u64 = 3_000;

impl Default for Made {
    fn default() -> Self {
        let side = |cpu| Side { tid: 100 + cpu as i32, cpu, cpu_ns: SLICES * SLICE_NS, ..Side::default() };
        Self {
            launch: 0,
            path: "ring",
            window: "none",
            size: 64,
            batch: 32,
            policy: "poll",
            batch_ns: 640.0,
            clean: 1.0,
            raw: 1.0,
            window_ns: 0.0,
            kicks: 0,
            pair: PAIRS[2],
            verified: true,
            counted: false,
            setup_ms: None,
            wrong: [0; 4],
            ring_bytes: 262_144,
            producer: side(0),
            consumer: side(1),
            emulated: false,
        }
    }
}

impl Made {
    pub(crate) fn run(&self) -> Run {
        let ns = SLICES * SLICE_NS;
        let frames = |ns: u64| ns as f64 * f64::from(self.batch) / self.batch_ns;
        let clean_slices = (SLICES as f64 * self.clean) as u64;
        let [lost, duplicated, reordered, torn] = self.wrong;
        Run {
            setup: Setup {
                path: self.path.into(),
                window: self.window.into(),
                size_bytes: self.size,
                batch: self.batch,
                policy: self.policy.into(),
                vms: 2,
            },
            slots: 4_096,
            moved_bytes: 128,
            ring_bytes: self.ring_bytes,
            ns,
            packets: (frames(ns) * self.raw) as u64,
            slices: SLICES,
            slice_ns: SLICE_NS,
            clean_slices,
            clean_packets: frames(clean_slices * SLICE_NS) as u64,
            verified: self.verified,
            counted: self.counted,
            lost,
            duplicated,
            reordered,
            torn,
            dropped: 0,
            window_ns: self.window_ns,
            kicks: self.kicks,
            setup_ns: self.setup_ms.map(|[_, attach, link, first]| (attach + link + first) * 1_000_000),
            setup_parts: self.setup_ms.map_or_else(Vec::new, |ms| {
                let names = ["processes", "attach", "link", "first frame"];
                names.iter().zip(ms).map(|(name, ms)| SetupPart { name: (*name).into(), ns: ms * 1_000_000 }).collect()
            }),
            pair: self.pair.into(),
            producer: Side { ns, ..self.producer.clone() },
            consumer: Side { ns, ..self.consumer.clone() },
            others: Vec::new(),
            emulated: self.emulated,
        }
    }
}

/// A run for each batch, whose time is a function of it.
pub(crate) fn of_batches(batches: &[u32], ns: impl Fn(f64) -> f64, change: impl Fn(Made) -> Made) -> Vec<Made> {
    let one = |batch: &u32| change(Made { batch: *batch, batch_ns: ns(f64::from(*batch)), ..Made::default() });
    batches.iter().map(one).collect()
}

/// A bench of these on a machine whose time-stamp counter has 2 GHz.
pub(crate) fn benches(made: &[Made]) -> Benches {
    let result = |one: &Made| Measured {
        name: format!("{}, window {}, {} B, batch {}", one.path, one.window, one.size, one.batch),
        params: Params { launch: one.launch, ..Params::default() },
        unit: "count".into(),
        channel: Some(Box::new(one.run())),
        ..Measured::default()
    };
    let environment = BTreeMap::from([(NS_PER_TICK.to_owned(), "0.5".to_owned())]);
    let bench = Bench { results: made.iter().map(result).collect(), ..Bench::new(BENCH, environment) };
    Benches { runs: vec![BenchRun { machine: "L0".into(), level: Level::L0, bench }], ..Benches::default() }
}
