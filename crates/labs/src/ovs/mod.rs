//! What does a chain of VNFs behind Open vSwitch with DPDK carry on this machine? Measured without a NIC.
//!
//! ```text
//!          Open vSwitch, one polling thread (PMD) on one CPU            testpmd, one thread on another
//! chain        null device -> v0 | v1 -> v2 | v3 -> ... | drop     VNF 1: v0 -> v1, VNF 2: v2 -> v3, ...   virtio-user
//! north-south  a null device for each VNF -> v0 | v1 -> drop ...
//! ```
//! In: [`Settings`]. Out: a recording with the trials ([`DatapathRuns`]), in which every packet is somewhere, with the text that
//! both programs printed, and with who disturbed them: this computer is recorded while windows run. The null device sends as fast as it is asked, so that the rate is that of
//! the chain: the maximum receive rate (MRR) of CSIT. A flow that drops is the end of a chain and counts what arrived.
//!
//! The switch is ours: it has a directory, a database and sockets of its own, and never hears of one that runs on the machine.
//! Its daemons and testpmd end with this program, also if it is killed. Huge pages and the directory stand in the journal; both
//! programs keep their memory in files without a name, so that nothing is mounted.

mod beside;
mod books;
mod bounds;
mod control;
mod counters;
mod edge;
mod memory;
mod pace;
mod ports;
mod seats;
mod switch;
mod trial;
mod vnfs;

pub use bounds::Search;
pub use memory::Memory;

use crate::machine::needs::{self, Need};
use base::bench::NS_PER_TICK;
use base::datapath::{DatapathRuns, FCS_BYTES, RateSample, Traffic};
use base::gauges::TrialName;
use base::number::counted;
use base::recording::{ClockPair, Destination, Draft, Identity, Machine, Moment, Part, PartKind, PartState, Recording};
use beside::Beside;
use bounds::{Bounds, Searcher};
use lab::journal::{Entry, Journal};
use lab::watch::Watch;
use lab::{Error, clocks, environment};
use ports::{Source, Wiring};
use seats::Seats;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use switch::Switch;
use trial::{Trial, Trialled};
use vnfs::{Ground, Vnfs};

/// Most VNFs of a chain: each takes two ports and memory for its rings.
pub const MOST_VNFS: u32 = 8;
/// The frames that Ethernet has without jumbo frames, FCS counted (IEEE 802.3, 3.2.7; 64 to 1518 bytes).
pub const SIZES_BYTES: std::ops::RangeInclusive<u32> = 64..=1518;

/// This computer, as the recording calls it.
const HOST: &str = "L0";
/// The datapath, as tables have it.
const DESIGN: &str = "ovs-dpdk";

/// What Debian 12 has them in.
const NEEDS: &[Need] = &[
    ("ovsdb-tool", "openvswitch-common"),
    ("ovs-ofctl", "openvswitch-common"),
    ("ovsdb-server", "openvswitch-switch"),
    ("ovs-vsctl", "openvswitch-switch"),
    (switch::SCHEMA, "openvswitch-common"),
    (switch::DAEMON, "openvswitch-switch-dpdk"),
    (vnfs::PROGRAM, "dpdk-dev"),
];

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub pattern: Traffic,
    /// Lengths of the chain, or numbers of VNFs side by side; each is measured.
    pub vnfs: Vec<u32>,
    /// Sizes of frames, FCS counted; each is measured with each length.
    pub sizes_bytes: Vec<u32>,
    /// Length of each trial's window.
    pub window: Duration,
    /// What of each trial is discarded first.
    pub warm_up: Duration,
    /// How often all of it is measured, in turns.
    pub repeats: u32,
    pub memory: Memory,
    /// What is searched for in the first repeat: bounds of a chain.
    pub search: Option<Search>,
}

/// Where programs are, and where the recording goes.
#[derive(Debug, Clone)]
pub struct Places {
    pub programs: Vec<PathBuf>,
    pub output: Destination,
}

/// What is told while trials run: the trials before, and of the one in progress which it is, from when a sample counts, the sample.
pub type Gauges<'a> = dyn FnMut(&DatapathRuns, TrialName, u64, &RateSample) -> Result<(), Error> + 'a;
type Gauge<'a> = dyn FnMut(TrialName, u64, &RateSample) -> Result<(), Error> + 'a;

/// How often flows are read within a window.
pub(crate) const SAMPLED_EVERY: Duration = Duration::from_millis(500);
/// Most samples of a lab, beside one for each trial: longer ones are sampled less often.
const MOST_SAMPLES: u32 = 3_000;

impl Settings {
    /// How often flows are read within a window.
    pub fn sampled_every(&self) -> Duration {
        let kinds = (self.vnfs.len() as u32).saturating_mul(self.sizes_bytes.len() as u32);
        let trials = kinds.saturating_mul(self.repeats);
        SAMPLED_EVERY.max(self.window.saturating_mul(trials) / MOST_SAMPLES)
    }
}

/// Runs all trials. `created` is when, for the manifest; `say` hears what is going on, `gauges` what is counted meanwhile, `stop`
/// ends it early.
///
/// # Errors
/// If something is missing or goes wrong on the way; the sentence says what. Nothing is left behind then, unless it says so.
pub fn run(
    settings: &Settings,
    places: &Places,
    journal: &Journal,
    created: String,
    say: &mut dyn FnMut(&str),
    gauges: &mut Gauges<'_>,
    stop: &AtomicBool,
) -> Result<Recording, Error> {
    needs::require(NEEDS, &places.programs, Path::new("/"))?;
    // Made and let go: a place that is taken is better said before anything is started than after.
    drop(Draft::new(&places.output)?);
    let seats = Seats::here()?;
    // Two labs at a time would measure each other.
    let Some(_lock) = journal.lock(stop)? else { return Err(Error::Stopped) };
    journal.clear(COMMAND)?;
    // What it records beside has an entry of its own.
    journal.clear("record")?;
    let mut watch = Watch { say, stop };
    let mut entry = journal.begin(COMMAND)?;
    let measured = measure(settings, places, &seats, &mut entry, journal, &mut watch, gauges);
    let measured = entry.put_back_after(measured, journal.proc())?;
    record(settings, places, measured, created)
}

/// The command, as the journal has it.
const COMMAND: &str = "ovs";

struct Measurements {
    runs: DatapathRuns,
    /// What the programs printed, by file name.
    texts: Vec<(String, String)>,
    clock_pairs: Vec<ClockPair>,
    /// The recording, with the parts that lie in it already: the trace.
    draft: Draft,
    parts: Vec<Part>,
}

fn measure(
    settings: &Settings,
    places: &Places,
    seats: &Seats,
    entry: &mut Entry,
    journal: &Journal,
    watch: &mut Watch<'_>,
    gauges: &mut Gauges<'_>,
) -> Result<Measurements, Error> {
    settings.memory.reserve(memory::BOTH_MIB, entry)?;
    (watch.say)(&format!("starting a private Open vSwitch, polling on CPU {}; VNFs on CPU {}", seats.pmd, seats.vnfs));
    let mut switch = Switch::start(settings.memory, seats, entry, journal.proc(), watch)?;
    let mut runs = DatapathRuns::new(surroundings(settings, seats, &switch));
    let begin = clocks::pair(HOST, Moment::Begin);
    let mut beside = Beside::start(seats, &switch.directory().join("recorded"), journal)?;
    let noted = beside.noted();
    if beside.is_absent() {
        (watch.say)(&noted);
    }
    runs.notes.push(noted);
    let mut texts = Vec::new();
    let ground = Ground { memory: settings.memory, seats, proc: journal.proc() };
    for repeat in 0..settings.repeats {
        for vnfs in &settings.vnfs {
            let wiring = Wiring { pattern: settings.pattern, vnfs: *vnfs, source: Source::Generators };
            let mut testpmd = Vnfs::start(&mut switch, wiring, ground, entry, watch)?;
            (watch.say)(&format!("{} connected", counted(u64::from(*vnfs), "VNF is", "VNFs are")));
            for size_bytes in &settings.sizes_bytes {
                let trial = Trial { wiring, size_bytes: *size_bytes, repeat, settings, seats };
                let mut gauge =
                    |name: TrialName, from_ns: u64, sample: &RateSample| gauges(&runs, name, from_ns, sample);
                let Trialled { run, text } = trial.run(&mut switch, &mut testpmd, &mut beside, watch, &mut gauge)?;
                let (pps, faults) = (base::number::plain(run.chain_pps().round()), run.books.faults());
                let closed = if faults.is_empty() { String::new() } else { format!("; {}", faults.join("; ")) };
                (watch.say)(&format!("{}: {pps} packets per second arrived{closed}", trial.words()));
                if let Some(search) = settings.search.as_ref().filter(|_| repeat == 0) {
                    let most_pps = run.window_sent as f64 * 1e9 / run.window_ns.max(1) as f64;
                    let searcher = Searcher { search, trial: &trial, most_pps: most_pps as u64 };
                    let Bounds { bounds, notes } = searcher.run(&mut switch, &mut testpmd, watch)?;
                    runs.bounds.extend(bounds);
                    runs.notes.extend(notes);
                }
                texts.push((format!("{}.txt", trial.name()), text));
                runs.runs.push(run);
                // A gauge of the next trial has it before the end.
                runs.environment.extend(tick(&[begin.clone(), clocks::pair(HOST, Moment::End)]));
            }
            testpmd.end(&switch)?;
        }
    }
    let clock_pairs = vec![begin, clocks::pair(HOST, Moment::End)];
    runs.environment.extend(tick(&clock_pairs));
    let draft = Draft::new(&places.output)?;
    let parts = beside.end(&draft)?;
    Ok(Measurements { runs, texts, clock_pairs, draft, parts })
}

fn tick(pairs: &[ClockPair]) -> Option<(String, String)> {
    ns_per_tick(pairs).map(|length| (NS_PER_TICK.to_owned(), length.to_string()))
}

/// How long a tick of the time-stamp counter was between two moments.
fn ns_per_tick(pairs: &[ClockPair]) -> Option<f64> {
    let (first, last) = (pairs.first()?, pairs.last()?);
    let ticks = last.tsc?.checked_sub(first.tsc?).filter(|ticks| *ticks > 0)?;
    Some(last.monotonic_ns.saturating_sub(first.monotonic_ns) as f64 / ticks as f64)
}

/// What the machine and the bed are.
fn surroundings(settings: &Settings, seats: &Seats, switch: &Switch) -> std::collections::BTreeMap<String, String> {
    let mut told = environment::here(environment::How::default());
    let mut tell = |name: &str, what: String| told.insert(name.to_owned(), what);
    tell("Open vSwitch", switch.version.clone());
    tell("DPDK", switch.dpdk_version.clone());
    tell("memory", settings.memory.name().to_owned());
    tell("CPU of the polling thread", seats.pmd.to_string());
    tell("CPU of the VNFs", seats.vnfs.to_string());
    tell("size of frames", format!("with FCS, {FCS_BYTES} bytes more than the programs count"));
    told
}

fn record(settings: &Settings, places: &Places, measured: Measurements, created: String) -> Result<Recording, Error> {
    let Measurements { runs, texts, clock_pairs, draft, mut parts } = measured;
    let mut part = |path: PathBuf, kind| {
        parts.push(Part { path, machine: HOST.to_owned(), kind, clock: None, state: PartState::Complete });
    };
    let path = Path::new(HOST).join("datapath/ovs.json");
    runs.write(&draft.part(&path)?)?;
    part(path, PartKind::Datapath);
    for (name, text) in texts {
        let path = Path::new(HOST).join("pmd").join(name);
        let whole = draft.part(&path)?;
        std::fs::write(&whole, text).map_err(|error| Error::io(whole, error))?;
        part(path, PartKind::Pmd);
    }
    let machine = Machine { id: HOST.to_owned(), level: 0, parent: None, name: None, identity: Identity::default() };
    let recording = Recording {
        root: places.output.path.clone(),
        machines: vec![machine],
        parts,
        clock_pairs,
        ..Recording::made(&format!("kvmscope lab ovs {}: {settings}", env!("CARGO_PKG_VERSION")), created)
    };
    Ok(draft.finish(recording)?)
}

impl std::fmt::Display for Settings {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let (vnfs, sizes) = (list(&self.vnfs), list(&self.sizes_bytes));
        let (pattern, seconds, repeats) = (self.pattern.name(), self.window.as_secs_f64(), self.repeats);
        write!(out, "--pattern {pattern} --vnfs {vnfs} --size {sizes} --seconds {seconds} --repeats {repeats}")?;
        if let Some(Search { goals, method }) = &self.search {
            let goals: Vec<&str> = goals.iter().map(|goal| goal.name).collect();
            write!(out, " --search {} --method {}", goals.join(","), method.name())?;
        }
        if self.memory == Memory::Ordinary { write!(out, " --no-huge") } else { Ok(()) }
    }
}
