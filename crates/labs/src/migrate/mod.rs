//! Live migrations of a guest whose working set is known, between two QEMUs of this machine.
//!
//! ```text
//! source: QEMU (TCG) with a guest of 512 bytes      --unix socket, QEMU's own bandwidth limit-->      target: QEMU, -incoming defer
//!    '--QMP: MIGRATION_PASS, STOP, query-migrate                                       QMP: RESUME --'
//! ```
//! In: [`Settings`], and a model that is asked before. Out: a recording with both sessions of each run, what the operating system told of both
//! processes, what packets to the guest saw where it has a network, and that prediction; or, of guests that were saved to files, how that
//! went ([`hibernate`]). Both QEMUs end with this program, also if it is killed; namespaces, which a network takes, stand in the journal.
//! Nothing else is on the machine. The guest is emulated: which pages are sent is real, how fast it computes is not.

pub mod sector;

mod guest_memory;
mod hibernate;
mod inject;
mod method;
mod network;
mod observe;
mod qemu;
mod session;
mod trial;
mod watched;
mod worker;

use crate::machine::scratch::Scratch;
use crate::machine::{Places, needs};
use base::method::Method;
use base::prediction::Prediction;
use base::recording::{
    Draft, Emulator, Identity, Machine, Moment, PREDICTION_FILE, Part, PartKind, PartState, Recording,
};
pub use hibernate::{Measured, Saved, run as hibernate};
pub use inject::{Culprit, Injection, Phase};
use lab::journal::Journal;
use lab::program::Program;
use lab::watch::Watch;
use lab::{Error, clocks};
use network::Bed;
pub use network::Pace;
use qemu::{PROGRAM, Side};
use sector::Work;
use session::Ran;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
pub use trial::{Trial, Trials};

/// This computer, as the recording calls it.
const HOST: &str = "L0";

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Of the guest; all but its hot pages are zeros.
    pub memory_bytes: u64,
    /// What the guest does meanwhile.
    pub work: Work,
    /// Between two of its writes, each of which is a beat.
    pub period: Duration,
    /// `max-bandwidth`.
    pub bandwidth_bytes_per_s: u64,
    /// `downtime-limit`.
    pub limit: Duration,
    /// After which a migration counts as one that does not end, and is cancelled.
    pub patience: Duration,
    /// The guest's memory is in shared files, in which its heartbeat is watched from outside.
    pub is_observed: bool,
    /// How often packets go to the guest meanwhile, if any do.
    pub packets: Option<Pace>,
    /// How its memory goes over: in each repeat once by each of them.
    pub methods: Vec<Method>,
    /// What goes wrong on purpose: tests hold the report against it.
    pub injection: Option<Injection>,
    /// How often it is migrated by each, each time anew.
    pub repeats: u32,
    /// What the connection carries, if that is known; else how fast QEMU sends without its limit is tried first: a model wants to know.
    pub link_bytes_per_s: Option<u64>,
    /// The QEMU of both sides; `None`: the one in `PATH`.
    pub qemu: Option<PathBuf>,
}

/// Where a guest is once all is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    Target,
    Source,
    /// Lost with the side that it was on.
    Nowhere,
}

impl Settings {
    /// Whether a model is asked about the runs: it makes passes of pre-copy, knows of no culprit, of which no history is to learn, and of nobody
    /// who slows a run by looking at it.
    fn are_predicted(&self) -> bool {
        self.methods.contains(&Method::Precopy) && self.injection.is_none() && !self.is_observed
    }

    /// The guest, as options state it.
    fn guest(&self) -> String {
        format!("--ram {}M --hot {} pages --ticks {}", self.memory_bytes >> 20, self.work.pages, self.work.ticks)
    }

    fn program(&self) -> Program {
        Program::new(self.qemu.as_deref().unwrap_or(Path::new(PROGRAM.0)), PROGRAM.1)
    }
}

/// Migrates the guest as often as asked. `predict` is asked for what a model says of pre-copy, if that is among the methods and nothing goes
/// wrong on purpose, and hears what was tried for it; `created` is when, for the manifest; `say` hears what is going on, `stop` ends it early.
///
/// # Errors
/// If something is missing or goes wrong on the way; the sentence says what. Nothing is left behind then, unless it says so.
pub fn run(
    settings: &Settings,
    predict: &dyn Fn(Option<Trials>) -> Prediction,
    places: &Places,
    journal: &Journal,
    created: String,
    say: &mut dyn FnMut(&str),
    stop: &AtomicBool,
) -> Result<Recording, Error> {
    let cache = ready(settings, places)?;
    let program = settings.program();
    let asked = method::abilities(&program, Scratch::new(&cache)?.path())?;
    let injected = settings.injection.and_then(Injection::capability);
    method::require(&settings.methods, injected, &asked, &program.path)?;
    let draft = Draft::new(&places.output)?;
    let mut parts = Vec::new();
    let part =
        |path: PathBuf, kind| Part { path, machine: HOST.to_owned(), kind, clock: None, state: PartState::Complete };
    let mut watch = Watch { say, stop };
    if settings.packets.is_some() {
        // What a lab left that was killed.
        journal.clear(network::COMMAND)?;
    }
    // Written before the guest is moved: whoever says what will be cannot know it.
    if settings.are_predicted() {
        let is_tried = settings.link_bytes_per_s.is_none();
        let tried = is_tried.then(|| trial::run(settings, &cache, journal, &mut watch)).transpose()?;
        let path = Path::new(HOST).join(PREDICTION_FILE);
        let whole = draft.part(&path)?;
        predict(tried).write(&whole).map_err(|error| Error::io(&whole, error))?;
        parts.push(part(path, PartKind::Prediction));
    }
    let begin = clocks::pair(HOST, Moment::Begin);
    let methods = (0..settings.repeats).flat_map(|_| &settings.methods);
    let runs = settings.repeats as usize * settings.methods.len();
    for (run, method) in methods.enumerate() {
        let scratch = Scratch::new(&cache)?;
        (watch.say)(&format!("run {} of {runs}, {}: booting the guest", run + 1, method.name()));
        let Ran { source, target, guest, heartbeat, network, memory, processes } =
            moved(settings, *method, scratch.path(), journal, &mut watch)?;
        (watch.say)(&format!(
            "run {}: the guest {}",
            run + 1,
            match guest {
                Whereabouts::Target => "runs on the target",
                Whereabouts::Source => "goes on where it was",
                Whereabouts::Nowhere => "is lost",
            }
        ));
        for (side, messages) in [(Side::Source, source), (Side::Target, target)] {
            let path = Path::new(HOST).join("qmp").join(format!("{run}-{}.jsonl", side.name()));
            let whole = draft.part(&path)?;
            base::qmp::write(&messages, &whole).map_err(|error| Error::io(&whole, error))?;
            parts.push(part(path, PartKind::Qmp));
        }
        let path = Path::new(HOST).join("processes").join(format!("{run}.json"));
        let whole = draft.part(&path)?;
        processes.write(&whole).map_err(|error| Error::io(&whole, error))?;
        parts.push(part(path, PartKind::Processes));
        if let Some(heartbeat) = heartbeat {
            let path = Path::new(HOST).join("heartbeat").join(format!("{run}.json"));
            let whole = draft.part(&path)?;
            heartbeat.write(&whole).map_err(|error| Error::io(&whole, error))?;
            parts.push(part(path, PartKind::Heartbeat));
        }
        if let Some(network) = network {
            let path = Path::new(HOST).join("network").join(format!("{run}.json"));
            let whole = draft.part(&path)?;
            network.write(&whole).map_err(|error| Error::io(&whole, error))?;
            parts.push(part(path, PartKind::Network));
        }
        if let Some(memory) = memory {
            let path = Path::new(HOST).join("memory").join(format!("{run}.json"));
            let whole = draft.part(&path)?;
            memory.write(&whole).map_err(|error| Error::io(&whole, error))?;
            parts.push(part(path, PartKind::MovedMemory));
        }
    }
    let recording = Recording {
        root: places.output.path.clone(),
        emulated: Some(Emulator::Tcg),
        machines: vec![Machine {
            id: HOST.to_owned(),
            level: 0,
            parent: None,
            name: None,
            identity: Identity::default(),
        }],
        parts,
        clock_pairs: vec![begin, clocks::pair(HOST, Moment::End)],
        ..Recording::made(&format!("kvmscope lab migrate {}: {settings}", env!("CARGO_PKG_VERSION")), created)
    };
    Ok(draft.finish(recording)?)
}

/// One move, between network namespaces if packets are sent to the guest meanwhile.
fn moved(
    settings: &Settings,
    method: Method,
    place: &Path,
    journal: &Journal,
    watch: &mut Watch<'_>,
) -> Result<Ran, Error> {
    let mut migrate = |bed: Option<&Bed>| session::migrate(settings, method, place, bed, watch);
    match settings.packets {
        None => migrate(None),
        Some(pace) => network::with_bed(pace, journal, |bed| migrate(Some(bed))),
    }
}

/// Where what is needed meanwhile lies, if the program is there.
fn ready(settings: &Settings, places: &Places) -> Result<PathBuf, Error> {
    if settings.qemu.is_none() {
        needs::require(&[PROGRAM], &places.programs, Path::new("/"))?;
    }
    std::path::absolute(&places.cache).map_err(|error| Error::io(&places.cache, error))
}

impl std::fmt::Display for Settings {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "{} --bandwidth {} B/s --limit {} ms",
            self.guest(),
            self.bandwidth_bytes_per_s,
            self.limit.as_millis()
        )?;
        if let Some(carries) = self.link_bytes_per_s {
            write!(out, " --link {carries} B/s")?;
        }
        let methods: Vec<&str> = self.methods.iter().map(|method| method.name()).collect();
        write!(out, " --method {}", methods.join(","))?;
        match self.packets {
            Some(Pace::Every(interval)) => {
                write!(out, " --network={}/s", (1e3 / interval.as_secs_f64()).round() / 1e3)?;
            }
            Some(Pace::Most) => out.write_str(" --network=most")?,
            None => {}
        }
        out.write_str(if self.is_observed { " --observe" } else { "" })
    }
}
