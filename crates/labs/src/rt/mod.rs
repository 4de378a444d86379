//! Who took the time of a real-time guest? Here everybody knows: it was done on purpose.
//!
//! ```text
//! this computer   one CPU: vCPU of the guest + a disturbance     other CPUs: QEMU's other threads, load, recorder
//!                     |  a page that both see: go on, what does your counter show?
//! the guest       Debian's PREEMPT_RT kernel in QEMU's TCG: jitterdebugger, cyclictest, rtla, a recorder
//! ```
//! In: [`Settings`]. Out: a recording of this computer (L0) and of the guest (L1), on one axis: the guest's counter is this
//! one and a constant, which is measured. Beside the traces are the results of the guest's programs and the truth about what
//! was done to it, `L0/truth.json`. The guest is emulated: who takes its time and when is real, how much a latency is, is not.
//! A disturbance ends with this program, also if it is killed; a control group stands in the journal before it is made.
//!
//! Environments are named as KVM4NFV named them, host_guest: what this computer does beside the guest, and what the guest does
//! beside measuring.

mod disturb;
mod guest;
mod load;
mod measure;
pub(crate) mod measurement;
mod quota;
mod tools;

pub use disturb::Truth;

use crate::machine::packages::{self, Flavour};
use crate::machine::scratch::Scratch;
use crate::machine::{Places, harvest, needs};
use base::CpuSet;
use base::recording::{Draft, Emulator, Identity, Machine, Recording};
use guest::Guest;
use lab::Error;
use lab::journal::Journal;
use lab::setting::thread;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// This computer, as the recording calls it.
const HOST: &str = "L0";

base::named! {
    /// What this computer does beside the guest, which does nothing beside measuring.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Environment {
        IdleIdle = "idle_idle",
        CpustressIdle = "cpustress_idle",
        MemorystressIdle = "memorystress_idle",
        /// It writes files and waits for the disk.
        IostressIdle = "iostress_idle",
    }
}

base::named! {
    /// What takes the guest's time on purpose, again and again.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Disturbance {
        None = "none",
        /// An ordinary thread on the vCPU's CPU that wants all of it.
        Hog = "hog",
        /// A real-time thread (SCHED_FIFO) there.
        Fifo = "fifo",
        /// A CPU quota of the guest's control group.
        Quota = "quota",
        /// SIGSTOP.
        Stop = "stop",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// What this computer does meanwhile.
    pub environment: Environment,
    /// What is done to the guest.
    pub disturbance: Disturbance,
    /// How long each of the guest's programs measures.
    pub seconds: u64,
}

impl fmt::Display for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (environment, disturbance) = (self.environment.name(), self.disturbance.name());
        write!(out, "--environment {environment} --seconds {} --disturb {disturbance}", self.seconds)
    }
}

/// Which CPUs of this computer do what.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seats {
    vcpu: u32,
    /// Those of everything else; where there is one CPU only, that one.
    others: CpuSet,
}

impl Seats {
    fn of(cpus: &CpuSet) -> Result<Self, Error> {
        let vcpu = cpus.iter().last().ok_or_else(|| Error::Absent("this process may run on no CPU".to_owned()))?;
        let others: CpuSet = cpus.iter().filter(|cpu| *cpu != vcpu).collect();
        Ok(Self { vcpu, others: if others.is_empty() { cpus.clone() } else { others } })
    }
}

/// Runs the lab once. `created` is when, for the manifest; `say` hears what is going on, `stop` ends it early.
///
/// # Errors
/// If something is missing or goes wrong on the way; the sentence says what. Nothing is left behind then, unless it says so.
pub fn run(
    settings: &Settings,
    places: &Places,
    journal: &Journal,
    created: String,
    say: &mut dyn FnMut(&str),
    stop: &AtomicBool,
) -> Result<Recording, Error> {
    needs::require(guest::NEEDS.iter().chain(tools::NEEDS), &places.programs, Path::new("/"))?;
    // Made and let go: a place that is taken is better said before the machine boots than after.
    drop(Draft::new(&places.output)?);
    let seats = Seats::of(&thread::affinity(thread::own())?)?;
    let cache = std::path::absolute(&places.cache).map_err(|error| Error::io(&places.cache, error))?;
    let kernel = packages::kernel(&cache, Flavour::Realtime, say)?;
    let scratch = Scratch::new(&cache)?;
    let programs = tools::programs(settings.seconds, &places.programs)?;
    let guest = Guest::new(&scratch, &kernel, &places.program, programs)?;
    let mut entry = journal.begin("rt")?;
    let session = measure::Session { settings, seats: &seats, guest: &guest, scratch: &scratch, journal };
    let measured = session.run(&mut entry, say, stop);
    let measured = entry.put_back_after(measured, journal.proc())?;
    say("putting the recording together");
    let draft = Draft::new(&places.output)?;
    let harvest = harvest::harvest(&guest.disk(), &draft)?;
    let mut parts = measured.copied(&draft)?;
    parts.extend(harvest.parts);
    let mut clock_pairs = measured.clock_pairs;
    clock_pairs.extend(harvest.clock_pairs);
    let machine = |id: &str, level, parent: Option<&str>, name: Option<&str>| Machine {
        id: id.to_owned(),
        level,
        parent: parent.map(str::to_owned),
        name: name.map(str::to_owned),
        identity: Identity::default(),
    };
    let recording = Recording {
        root: places.output.path.clone(),
        emulated: Some(Emulator::Tcg),
        machines: vec![machine(HOST, 0, None, None), machine(measurement::MACHINE, 1, Some(HOST), Some(guest::NAME))],
        parts,
        clock_pairs,
        ..Recording::made(&format!("kvmscope lab rt {}: {settings}", env!("CARGO_PKG_VERSION")), created)
    };
    Ok(draft.finish(recording)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vcpu_has_a_cpu_of_its_own_where_there_are_two() {
        let seats = |cpus: &str| {
            let seats = Seats::of(&CpuSet::parse(cpus).unwrap()).unwrap();
            (seats.vcpu, seats.others.to_string())
        };
        assert_eq!(seats("0-3"), (3, "0-2".to_owned()));
        assert_eq!(seats("5"), (5, "5".to_owned()));
        assert!(Seats::of(&CpuSet::default()).is_err());
    }
}
