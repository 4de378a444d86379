//! What a placement is for, and what stays: options that `check` hands to the solver.

use analysis::datapath;
use analysis::placement::solver::Goal;
use analysis::placement::{AskedPolling, Wishes};
use anyhow::bail;
use base::CpuSet;
use base::shell::quoted;
use clap::{Args, ValueEnum, ValueHint};
use process::exit::WrongUse;
use process::interrupt::Interrupt;
use std::path::PathBuf;

/// What the user fixes and wishes of placements.
#[derive(Args)]
pub(super) struct WishOptions {
    /// Goal of the proposed placement
    #[arg(long, value_enum, value_name = "GOAL", default_value = "throughput")]
    goal: GoalName,
    /// Do not move this: a domain, a NIC's interrupts by its name, one interrupt (irq34), all interrupts (irqs), polling
    /// threads (pmd), kernel work (kernel); repeatable
    #[arg(long, value_name = "NAME")]
    keep: Vec<String>,
    /// Keep threads of VMs and polling threads off these CPUs, such as 0-1; interrupts may use them
    #[arg(long, value_name = "CPUS", value_parser = cpus)]
    reserve: Option<CpuSet>,
    /// Place this many polling threads of Open vSwitch instead of the running ones (PLC-PMDCOUNT)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pmd_cores: Option<u32>,
    /// Like --pmd-cores, with the number that a plan of service chains needs: the TOML of `kvmscope plan chain`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "pmd_cores")]
    plan: Option<PathBuf>,
}

/// The goals by their names.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GoalName {
    /// Highest throughput
    Throughput,
    /// A dedicated CPU for each vCPU, without interrupts and kernel work
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
    pub(super) fn words(&self) -> Vec<String> {
        let goal = self.goal.to_possible_value().filter(|_| self.goal != GoalName::Throughput);
        let goal = goal.map(|goal| format!("--goal {}", goal.get_name()));
        let keep = self.keep.iter().map(|name| format!("--keep {}", quoted(name)));
        let reserve = self.reserve.as_ref().map(|cpus| format!("--reserve {cpus}"));
        let pmd_cores = self.pmd_cores.map(|number| format!("--pmd-cores {number}"));
        let plan = self.plan.as_ref().map(|file| format!("--plan {}", quoted(&file.to_string_lossy())));
        goal.into_iter().chain(keep).chain(reserve).chain(pmd_cores).chain(plan).collect()
    }

    /// As the solver takes them.
    ///
    /// # Errors
    /// If the plan cannot be read or has nothing that polls, or polling threads are to stay as well.
    pub(super) fn wishes(&self, interrupt: &Interrupt) -> anyhow::Result<Wishes> {
        let goal = match self.goal {
            GoalName::Throughput => Goal::Throughput,
            GoalName::Latency => Goal::Latency,
            GoalName::Density => Goal::Density,
            GoalName::Power => Goal::Power,
        };
        let (keep, reserve) = (self.keep.clone(), self.reserve.clone().unwrap_or_default());
        let polling = self.polling(interrupt)?;
        if let Some(asked) = polling.as_ref().filter(|_| keep.iter().any(|name| name == "pmd")) {
            bail!(WrongUse(format!(
                "{}: another number of polling threads, and --keep pmd keeps those that run",
                asked.from
            )));
        }
        Ok(Wishes { goal, keep, reserve, polling })
    }

    /// The polling threads that are asked for.
    fn polling(&self, interrupt: &Interrupt) -> anyhow::Result<Option<AskedPolling>> {
        if let Some(threads) = self.pmd_cores {
            return Ok(Some(AskedPolling { threads, from: "--pmd-cores".to_owned() }));
        }
        let Some(file) = &self.plan else { return Ok(None) };
        let shown = file.display();
        let Some(threads) = datapath::polling_cpus(&crate::plan::read_plan(file, interrupt)?) else {
            bail!(WrongUse(format!(
                "--plan {shown}: none of its best designs has threads that poll, so there are none to place"
            )));
        };
        Ok(Some(AskedPolling { threads, from: format!("--plan {shown}") }))
    }
}
