//! How many frames does a path between two machines carry, what does a window cost, and what disturbed the run?
//!
//! ```text
//! producer   a process on one CPU     frames with a number and a checksum --> ring --> consumer   a process on another
//!            both look at the counter of their CPU once for each batch: where it jumps, somebody else had the CPU
//! ```
//! Paths of DPDK are kept busy by DPDK's own programs (`dpdk/`).
//!
//! A launch runs every setup once, in an order that is drawn, so that what is compared was measured in the same minutes. Then, in the first
//! launch or where no rates are wanted: how long frames take at rates that the path carries ([`delays`]), what several machines deliver while
//! their flow table changes ([`flows`]), and what an honest side makes of a hostile peer (`faults`).

pub mod delays;
pub mod dpdk;
mod faults;
pub mod flows;
mod frames;
pub mod gauges;
mod ground;
pub mod ivshmem;
mod machines;
mod mesh;
mod pair;
mod peer;
mod rings;
mod side;

pub use ground::ground;
pub use pair::relation;

use base::bench::{Measured, Params};
use base::channel::{DPDK_PATHS, Setup};
use channel::Ticks;
use lab::Error;
use lab::random::Random;
use labs::bench::launch::{Job, Launch, Tell, ns_per_tick, plan};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

pub const LAUNCH: Launch = Launch { name: "channel", run: |orders, tell| run(&plan(orders)?, tell) };

/// What a launch measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Who sends, and who receives.
    pub cpus: (u32, u32),
    /// How these two are related: one of [`base::channel::PAIRS`].
    pub pair: String,
    /// All whose rates are measured.
    pub setups: Vec<Setup>,
    /// Where more than two machines run.
    pub machines: Machines,
    /// Delays at rates that are offered, of setups of two machines.
    pub delays: Option<(delays::Offered, Vec<Setup>)>,
    pub flows: Option<flows::Changes>,
    /// Whether rules are broken.
    pub faults: bool,
    pub slots: u32,
    /// Whether descriptors lie apart from frames; `None` for whichever moves fewer bytes.
    pub apart: Option<bool>,
    /// Whether numbers and checksums are looked at.
    pub verify: bool,
    /// How long each setup is measured.
    pub length: Duration,
    /// And how long it runs before.
    pub warm_up: Duration,
    /// Whether to measure by the real-time policy SCHED_FIFO.
    pub fifo: bool,
    /// What programs of DPDK have here, or why they cannot run.
    pub dpdk: Result<dpdk::Bed, String>,
    /// What guests boot from, for paths between them.
    #[serde(default)]
    pub guests: ivshmem::Places,
    /// Where both sides say what is measured right now, if anybody looks.
    #[serde(default)]
    pub gauges: Option<PathBuf>,
    pub launch: u32,
}

/// Where several machines run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machines {
    /// The CPU of each, and of the switch behind them; with too few they begin again.
    pub cpus: Vec<u32>,
    /// How the two are related that are farthest apart: one of [`base::channel::PAIRS`].
    pub pair: String,
}

impl Machines {
    /// Whether so many, the switch counted, have to take turns.
    pub(crate) fn take_turns(&self, machines: u32) -> bool {
        self.cpus.len() < machines as usize
    }
}

impl Plan {
    /// Results of a launch that measures rates, one a setup; without rates, about those of one that measures the rest.
    pub fn results(&self) -> usize {
        let delays = self.delays.as_ref().map_or(0, |(offered, setups)| setups.len() * offered.results());
        let rest = delays + self.flows.as_ref().map_or(0, |flows| flows.vms.len()) + usize::from(self.faults);
        if self.setups.is_empty() { rest } else { self.setups.len() }
    }

    /// What a process is to do for launch `number`: beside rates, the rest is measured once.
    ///
    /// # Errors
    /// If it cannot be written down.
    pub fn launch(&self, number: u32) -> Result<Job, Error> {
        let mut plan = Self { launch: number, ..self.clone() };
        if number > 0 && !self.setups.is_empty() {
            plan = Self { delays: None, flows: None, faults: false, ..plan };
        }
        Job::new(LAUNCH, self.cpus.0, self.fifo, &plan)
    }
}

/// Measures every setup, and tells each result.
///
/// # Errors
/// If a process or a ring cannot be made, or `tell` fails; what this machine lacks is a result without a run.
pub fn run(plan: &Plan, tell: &mut Tell<'_>) -> Result<(), Error> {
    let mut setups = plan.setups.clone();
    Random::of(u64::from(plan.launch) + 1).shuffle(&mut setups);
    let mut between_guests: Vec<Setup> = setups.iter().filter(|setup| ivshmem::is_path(setup)).cloned().collect();
    let gauges = gauges::Gauges::of(plan);
    for setup in setups {
        if let Some(gauges) = &gauges {
            gauges.begin(plan, &setup);
        }
        if ivshmem::is_path(&setup) {
            // One boot measures all of them, where the first stands.
            ivshmem::carry(plan, std::mem::take(&mut between_guests), tell)?;
            continue;
        }
        let carried = if DPDK_PATHS.contains(&setup.path.as_str()) {
            dpdk::carry(plan, &setup)
        } else if setup.vms > 2 || setup.path == "switch" {
            mesh::carry(plan, &setup)
        } else {
            rings::carry(plan, &setup)
        };
        let one = named(plan, name(&setup));
        tell(match carried {
            Ok(run) => Measured { channel: Some(Box::new(run)), ..one },
            Err(Error::Absent(why)) => Measured { skipped: Some(why), ..one },
            Err(error) => return Err(error),
        })?;
    }
    if let Some(gauges) = &gauges {
        gauges.rest();
    }
    let ns = || "ns".to_owned();
    for (offered, setup) in
        plan.delays.iter().flat_map(|(offered, setups)| setups.iter().map(move |one| (offered, one)))
    {
        delays::run(plan, offered, setup, &mut |delays, all| {
            let one = named(plan, format!("{}, delays, {}", name(setup), delays.load));
            let hdr = all.map(|all| all.buckets()).unwrap_or_default();
            tell(Measured { unit: ns(), hdr, delays: Some(Box::new(delays)), ..one })
        })?;
    }
    for (changes, &vms) in plan.flows.iter().flat_map(|changes| changes.vms.iter().map(move |vms| (changes, vms))) {
        let one = named(plan, format!("flow table of {vms} machines"));
        tell(match flows::run(plan, changes, vms) {
            Ok((run, lags)) => Measured { unit: ns(), hdr: lags.buckets(), flows: Some(Box::new(run)), ..one },
            Err(Error::Absent(why)) => Measured { skipped: Some(why), ..one },
            Err(error) => return Err(error),
        })?;
    }
    if plan.faults {
        let faults = faults::faults(plan, Ticks::new(1.0 / ns_per_tick()))?;
        tell(Measured { faults: Some(Box::new(faults)), ..named(plan, "hostile peer".to_owned()) })?;
    }
    Ok(())
}

/// What a setup is called: `ring, window none, 64 B, batch 32`.
pub fn name(setup: &Setup) -> String {
    let Setup { path, window, size_bytes, batch, vms, .. } = setup;
    let machines = if *vms > 2 { format!(", {vms} machines") } else { String::new() };
    format!("{path}, window {window}, {size_bytes} B, batch {batch}{machines}")
}

fn named(plan: &Plan, name: String) -> Measured {
    let params = Params { place: "here".to_owned(), launch: plan.launch, ..Params::default() };
    Measured { name, params, unit: "count".to_owned(), ..Measured::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::channel::PAIRS;

    /// Nothing to measure yet, for half a second each on whatever CPU.
    pub(crate) fn plan() -> Plan {
        Plan {
            cpus: (0, 1),
            pair: PAIRS[2].to_owned(),
            setups: Vec::new(),
            machines: Machines::default(),
            delays: None,
            flows: None,
            faults: false,
            slots: 256,
            apart: None,
            verify: true,
            length: Duration::from_millis(500),
            warm_up: Duration::from_millis(5),
            fifo: false,
            dpdk: Err("no programs of DPDK".to_owned()),
            guests: ivshmem::Places::default(),
            gauges: None,
            launch: 0,
        }
    }
}
