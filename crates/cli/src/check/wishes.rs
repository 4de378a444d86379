//! What a placement is for, and what stays: options that `check` hands to the solver.

use analysis::placement::Wishes;
use analysis::placement::solver::Goal;
use base::CpuSet;
use base::shell::quoted;
use clap::{Args, ValueEnum};

/// What the user fixes and wishes of placements.
#[derive(Args)]
pub struct WishOptions {
    /// Goal of the proposed placement
    #[arg(long, value_enum, value_name = "GOAL", default_value = "throughput")]
    goal: GoalName,
    /// Do not move this: a domain, a NIC's interrupts by its name, one interrupt (irq34), all interrupts (irqs), polling
    /// threads (pmd), kernel work (kernel); may be repeated
    #[arg(long, value_name = "NAME")]
    keep: Vec<String>,
    /// Keep threads of VMs and polling threads off these CPUs, such as 0-1; interrupts may use them
    #[arg(long, value_name = "CPUS", value_parser = cpus)]
    reserve: Option<CpuSet>,
}

/// The goals by their names.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GoalName {
    /// Highest throughput
    Throughput,
    /// A CPU of its own for each vCPU, without interrupts and kernel work
    Latency,
    /// Fewest cores
    Density,
    /// Fewest NUMA nodes
    Power,
}

fn cpus(text: &str) -> Result<CpuSet, String> {
    CpuSet::parse(text).ok_or_else(|| "write CPUs as a list: 0-3,8".to_owned())
}

impl WishOptions {
    /// The same in the words of a command line.
    pub fn words(&self) -> Vec<String> {
        let goal = self.goal.to_possible_value().filter(|_| self.goal != GoalName::Throughput);
        let goal = goal.map(|goal| format!("--goal {}", goal.get_name()));
        let keep = self.keep.iter().map(|name| format!("--keep {}", quoted(name)));
        let reserve = self.reserve.as_ref().map(|cpus| format!("--reserve {cpus}"));
        goal.into_iter().chain(keep).chain(reserve).collect()
    }

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
