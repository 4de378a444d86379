//! What does a machine say of virtualization, above and below it?
//!
//! In: a snapshot. Out: its processor, the hypervisor below, how KVM is set here, the kernel. No judgement: what it means
//! that something is off is for who asks (`analysis`).

use crate::hypervisor::Hypervisor;
use crate::parameters::{self, Parameter, Setting};
use crate::processor::Processor;
use crate::release::Release;
use crate::{Cpuid, KernelLog, Snapshot, Timing};

/// The facts of one machine.
#[derive(Debug, Clone)]
pub struct Virtualization {
    /// Where they come from; probes ask it for more.
    pub snapshot: Snapshot,
    /// The processor that this level is offered.
    pub processor: Option<Processor>,
    /// CPUID, where it was taken.
    pub cpuid: Option<Cpuid>,
    pub below: Hypervisor,
    /// All parameters of KVM's modules.
    pub parameters: Vec<Parameter>,
    pub release: Option<Release>,
    /// What it wrote, where somebody kept it.
    pub log: Option<KernelLog>,
    /// How long a CPUID takes, where somebody measured it.
    pub timing: Option<Timing>,
}

impl Virtualization {
    pub fn of(snapshot: Snapshot) -> Self {
        let (processor, cpuid) = (Processor::of(&snapshot), Cpuid::of(&snapshot));
        let (log, timing) = (KernelLog::of(&snapshot), Timing::of(&snapshot));
        let below = Hypervisor::of(cpuid.as_ref(), processor.as_ref(), log.as_ref());
        let (parameters, release) = (parameters::parameters(&snapshot), Release::of(&snapshot));
        Self { processor, cpuid, below, parameters, release, log, timing, snapshot }
    }

    /// The setting of a module's parameter.
    pub fn setting(&self, module: &str, name: &str) -> Setting {
        parameters::setting(&self.snapshot, module, name)
    }

    /// Whether a module is loaded or built in.
    pub fn is_loaded(&self, module: &str) -> Option<bool> {
        parameters::is_loaded(&self.snapshot, module)
    }

    /// The module that gives KVM its guests here: `kvm_intel`, `kvm_amd`, `kvm_pvm`.
    pub fn vendor_module(&self) -> Option<&'static str> {
        ["kvm_intel", "kvm_amd", "kvm_pvm"].into_iter().find(|module| self.is_loaded(module) == Some(true))
    }

    /// The clock source in use.
    pub fn clocksource(&self) -> Option<String> {
        self.snapshot.line("sys/devices/system/clocksource/clocksource0/current_clocksource")
    }

    /// What the kernel says of a weakness of the processor: `l1tf`, `meltdown`.
    pub fn vulnerability(&self, name: &str) -> Option<String> {
        self.snapshot.line(&format!("sys/devices/system/cpu/vulnerabilities/{name}"))
    }
}
