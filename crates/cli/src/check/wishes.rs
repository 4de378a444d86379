//! What a placement is for, and what stays: options that `check` hands to the solver.

use analysis::placement::Wishes;
use analysis::placement::solver::Goal;
use base::CpuSet;
use clap::{Args, ValueEnum};

/// What the user fixes and wishes of placements.
#[derive(Args)]
pub struct WishOptions {
    /// What the proposed placement is for
    #[arg(long, value_enum, value_name = "GOAL", default_value = "throughput")]
    goal: GoalName,
    /// Do not move this: a domain, a NIC's interrupts by its name, one interrupt as irq34, all of them as irqs, polling
    /// threads as pmd, the kernel's own work as kernel; may be given several times
    #[arg(long, value_name = "NAME")]
    keep: Vec<String>,
    /// Give no thread of a VM and no polling thread to these CPUs, such as 0-1; interrupts may use them
    #[arg(long, value_name = "CPUS", value_parser = cpus)]
    reserve: Option<CpuSet>,
}

/// The goals by their names.
#[derive(Clone, Copy, ValueEnum)]
enum GoalName {
    /// As much work as possible
    Throughput,
    /// A CPU of its own for every vCPU, without interrupts and the kernel's own work
    Latency,
    /// As few cores as possible
    Density,
    /// As few nodes as possible
    Power,
}

fn cpus(text: &str) -> Result<CpuSet, String> {
    CpuSet::parse(text).ok_or_else(|| "write CPUs as a list: 0-3,8".to_owned())
}

impl WishOptions {
    /// As the solver takes them.
    pub fn wishes(&self) -> Wishes {
        let goal = match self.goal {
            GoalName::Throughput => Goal::Throughput,
            GoalName::Latency => Goal::Latency,
            GoalName::Density => Goal::Density,
            GoalName::Power => Goal::Power,
        };
        Wishes { goal, keep: self.keep.clone(), reserve: self.reserve.clone().unwrap_or_default() }
    }
}
