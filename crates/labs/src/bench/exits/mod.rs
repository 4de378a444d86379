//! What does each kind of exit cost, and who handles it?
//!
//! ```text
//! catalogue  which tests there are           payload  their code, privileged  that of ring 0, layout  where it lies
//! partner    a second vCPU
//! svm, vmx   a hypervisor inside the guest, whose guest runs the same code    nesting  which of them
//! here       the same code in this process   machine  a guest that runs it, and KVM's counters around the run
//! measure    one test --> base::Measured
//! ```
//! Ring 3 with I/O privilege is the rule: some hypervisors (`kvm_pvm`) run it natively and interpret ring 0.

pub mod catalogue;
pub(super) mod here;
pub(super) mod layout;
pub(super) mod machine;
mod measure;
mod nesting;
mod partner;
pub(crate) mod payload;
mod privileged;
mod svm;
mod test;
mod vmx;

pub use measure::{guest, here, names};
pub use test::Test;

use crate::bench::launch::{Job, Launch, Tell, plan};
use lab::Error;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// How a launch measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// KVM's device.
    pub device: PathBuf,
    /// Where the machine's files are.
    pub root: PathBuf,
    /// The CPU to stay on.
    pub cpu: u32,
    /// Another CPU, for the second vCPU of tests that need two.
    pub other_cpu: Option<u32>,
    /// Nanoseconds of a tick of the time-stamp counter; only for sizing.
    pub ns_per_tick: f64,
    /// How long the samples of a test may take.
    pub target: Duration,
    /// When the watchdog comes.
    pub limit: Duration,
    pub launch: u32,
    /// Whether tests may run that disturb the whole host.
    pub disturb: bool,
    /// Whether to measure by the real-time policy SCHED_FIFO.
    pub fifo: bool,
    /// Only tests of these names; all if empty.
    pub only: Vec<String>,
}

pub const LAUNCH: Launch = Launch { name: "exits", run: |orders, tell| run(&plan(orders)?, tell) };

impl Plan {
    /// Whether a test of that name is wanted.
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// How many results a launch gives.
    pub fn results(&self) -> usize {
        names().filter(|(_, name)| self.wants(name)).count()
    }

    /// The plan of launch `number`.
    ///
    /// # Errors
    /// If it cannot be written down.
    pub fn launch(&self, number: u32) -> Result<Job, Error> {
        Job::new(LAUNCH, self.cpu, self.fifo, &Self { launch: number, ..self.clone() })
    }
}

/// Measures all that is wanted, and tells each result as it comes.
///
/// # Errors
/// If `tell` fails.
pub fn run(plan: &Plan, tell: &mut Tell<'_>) -> Result<(), Error> {
    let mut no_ring_0 = None;
    for (place, name) in names().filter(|(_, name)| plan.wants(name)) {
        let test = catalogue::named(name).filter(|_| place == "guest");
        let measured = match test {
            Some(Test { ring, why_not: Some(why), disturbs, .. }) if !(*disturbs && plan.disturb) => {
                measure::skipped(name, measure::params("guest", *ring, plan), (*why).to_owned())
            }
            Some(test) if test.ring == 0 => {
                // Asked once a launch, and only where somebody wants to know.
                let known = no_ring_0.get_or_insert_with(|| measure::interpreted(plan));
                let why = known.as_ref().map_or_else(|error| Some(error.to_string()), Clone::clone);
                why.map_or_else(
                    || measure::guest(test, plan),
                    |why| measure::skipped(name, measure::params("guest", test.ring, plan), why),
                )
            }
            Some(test) => measure::guest(test, plan),
            None => measure::here(name, plan),
        };
        tell(measured)?;
    }
    Ok(())
}
