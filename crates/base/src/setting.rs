//! Settings of a host: what can be set, by which name, and the command that sets it.
//!
//! ```text
//! Setting                what is set, without a value     this file: its name, its command
//!  |                                                      lab::setting: how it is read and set on a running host
//!  +-- Change            a value to set, the one before   a finding proposes it
//!  +-- Altered (lab)     what held, and what we set       the journal notes it, and undo puts it back
//! ```
//! A new kind of setting begins with a variant here; the compiler then finds the places that have to know it.

use crate::shell::quoted;
use crate::{Change, CpuSet};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// A thread of the host, as whoever proposes a change knew it.
///
/// The kernel gives ids to new threads again: what is known besides the id tells whether it is still the same thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadId {
    /// The id.
    pub tid: i32,
    /// When it started, in clock ticks since boot (field 22 of `/proc/TID/stat`), where that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ticks: Option<u64>,
    /// Its name, where that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comm: Option<String>,
}

impl From<i32> for ThreadId {
    fn from(tid: i32) -> Self {
        Self { tid, start_ticks: None, comm: None }
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "thread {}", self.tid)?;
        self.comm.as_ref().map_or(Ok(()), |comm| write!(out, " ({comm})"))
    }
}

/// When a pin of a libvirt domain holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Now, and from the domain's next start on.
    #[default]
    Both,
    /// In the running domain.
    Live,
    /// From the domain's next start on.
    Config,
}

impl Scope {
    fn is_both(&self) -> bool {
        *self == Scope::Both
    }

    /// The options of `virsh`.
    pub fn options(self) -> &'static str {
        match self {
            Scope::Both => "--live --config",
            Scope::Live => "--live",
            Scope::Config => "--config",
        }
    }
}

/// What can be set on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Setting {
    /// A parameter of a kernel module, given when the module is loaded.
    ModuleOption {
        /// Such as `kvm_intel`.
        module: String,
        /// Such as `enable_shadow_vmcs`.
        parameter: String,
    },
    /// A file below `/sys`.
    SysfsWrite {
        /// Path below `/sys`, such as `module/kvm/parameters/halt_poll_ns`.
        path: String,
    },
    /// A file below `/proc/sys`.
    Sysctl {
        /// Path below `/proc/sys`, such as `kernel/numa_balancing`.
        path: String,
    },
    /// The CPUs on which a thread may run, as `taskset -c` takes them.
    TaskAffinity(ThreadId),
    /// A thread's scheduling policy by the name that `chrt` takes (`other`, `batch`, `idle`, `fifo`, `rr`), and behind a
    /// colon the priority of the last two: `fifo:1`.
    TaskPolicy(ThreadId),
    /// The CPUs that may handle an interrupt.
    IrqAffinity {
        /// The interrupt's number.
        irq: u32,
    },
    /// The CPUs of Open vSwitch's polling threads, one on each; empty: no mask, which leaves it to the switch.
    PmdMask,
    /// The CPUs on which a vCPU of a libvirt domain may run.
    VcpuPin {
        /// The domain.
        domain: String,
        /// The vCPU.
        vcpu: u32,
        /// When it holds.
        #[serde(default, skip_serializing_if = "Scope::is_both")]
        scope: Scope,
    },
    /// The CPUs of the emulator threads of a libvirt domain, and of workers in their cgroup.
    EmulatorPin {
        /// The domain.
        domain: String,
        /// When it holds.
        #[serde(default, skip_serializing_if = "Scope::is_both")]
        scope: Scope,
    },
    /// The CPUs on which an iothread of a libvirt domain may run.
    IothreadPin {
        /// The domain.
        domain: String,
        /// The iothread, from 1.
        iothread: u32,
        /// When it holds.
        #[serde(default, skip_serializing_if = "Scope::is_both")]
        scope: Scope,
    },
}

impl Setting {
    /// The change that sets `to`, where `from` holds as far as whoever proposes it knows.
    pub fn change(self, to: impl Into<String>, from: Option<String>) -> Change {
        Change { setting: self, to: to.into(), from }
    }

    /// A pin of a vCPU, now and at the next start.
    pub fn vcpu_pin(domain: impl Into<String>, vcpu: u32) -> Self {
        Setting::VcpuPin { domain: domain.into(), vcpu, scope: Scope::Both }
    }

    /// A pin of the emulator's threads, now and at the next start.
    pub fn emulator_pin(domain: impl Into<String>) -> Self {
        Setting::EmulatorPin { domain: domain.into(), scope: Scope::Both }
    }

    /// A pin of an iothread, now and at the next start.
    pub fn iothread_pin(domain: impl Into<String>, iothread: u32) -> Self {
        Setting::IothreadPin { domain: domain.into(), iothread, scope: Scope::Both }
    }

    /// The command that sets `value`; names out of evidence are quoted.
    pub fn command(&self, value: &str) -> String {
        let to = quoted(value);
        match self {
            Setting::ModuleOption { module, parameter } => {
                let (module, parameter) = (quoted(module), quoted(parameter));
                // kvm_intel or kvm_amd holds kvm, and modprobe(8) removes no module that another one holds.
                if module == "kvm" {
                    format!(
                        "vendor=$(ls /sys/module/kvm/holders) && modprobe -r $vendor kvm && modprobe kvm {parameter}={to} && \
                         modprobe -a $vendor"
                    )
                } else {
                    format!("modprobe -r {module} && modprobe {module} {parameter}={to}")
                }
            }
            Setting::SysfsWrite { path } => format!("echo {to} > {}", quoted(&format!("/sys/{path}"))),
            Setting::Sysctl { path } => format!("echo {to} > {}", quoted(&format!("/proc/sys/{path}"))),
            Setting::TaskAffinity(thread) => format!("taskset -cp {to} {}", thread.tid),
            Setting::TaskPolicy(thread) => {
                let (policy, priority) = value.split_once(':').unwrap_or((value, "0"));
                format!("chrt --{} -p {} {}", quoted(policy), quoted(priority), thread.tid)
            }
            Setting::IrqAffinity { irq } => format!("echo {to} > /proc/irq/{irq}/smp_affinity_list"),
            Setting::PmdMask if value.is_empty() => {
                "ovs-vsctl remove Open_vSwitch . other_config pmd-cpu-mask".to_owned()
            }
            Setting::PmdMask => {
                let mask = CpuSet::parse(value).unwrap_or_default().mask();
                format!("ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask={mask}")
            }
            Setting::VcpuPin { domain, vcpu, scope } => {
                format!("virsh vcpupin {} {vcpu} {to} {}", named(domain), scope.options())
            }
            Setting::EmulatorPin { domain, scope } => {
                format!("virsh emulatorpin {} {to} {}", named(domain), scope.options())
            }
            Setting::IothreadPin { domain, iothread, scope } => {
                format!("virsh iothreadpin {} {iothread} {to} {}", named(domain), scope.options())
            }
        }
    }

    /// What its command does besides, for whoever types it.
    pub fn remark(&self) -> Option<&'static str> {
        match self {
            Setting::ModuleOption { .. } => Some("reloading the module stops all VMs: shut them down first"),
            Setting::SysfsWrite { .. }
            | Setting::Sysctl { .. }
            | Setting::TaskAffinity(_)
            | Setting::TaskPolicy(_)
            | Setting::IrqAffinity { .. }
            | Setting::PmdMask
            | Setting::VcpuPin { .. }
            | Setting::EmulatorPin { .. }
            | Setting::IothreadPin { .. } => None,
        }
    }

    /// True if its value is a list of CPUs.
    pub fn takes_cpus(&self) -> bool {
        match self {
            Setting::ModuleOption { .. }
            | Setting::SysfsWrite { .. }
            | Setting::Sysctl { .. }
            | Setting::TaskPolicy(_) => false,
            Setting::TaskAffinity(_)
            | Setting::IrqAffinity { .. }
            | Setting::PmdMask
            | Setting::VcpuPin { .. }
            | Setting::EmulatorPin { .. }
            | Setting::IothreadPin { .. } => true,
        }
    }

    /// The thread that is set, if it is one by its id.
    pub fn thread(&self) -> Option<&ThreadId> {
        match self {
            Setting::TaskAffinity(thread) | Setting::TaskPolicy(thread) => Some(thread),
            Setting::ModuleOption { .. }
            | Setting::SysfsWrite { .. }
            | Setting::Sysctl { .. }
            | Setting::IrqAffinity { .. }
            | Setting::PmdMask
            | Setting::VcpuPin { .. }
            | Setting::EmulatorPin { .. }
            | Setting::IothreadPin { .. } => None,
        }
    }

    /// True if both are the same setting of the same thing, whatever a thread was called when.
    pub fn is_same(&self, other: &Self) -> bool {
        let unnamed = |setting: &Self| match setting {
            Setting::TaskAffinity(thread) => Setting::TaskAffinity(ThreadId { comm: None, ..thread.clone() }),
            Setting::TaskPolicy(thread) => Setting::TaskPolicy(ThreadId { comm: None, ..thread.clone() }),
            other => other.clone(),
        };
        unnamed(self) == unnamed(other)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = |scope: &Scope| match scope {
            Scope::Both => "",
            Scope::Live => " (running)",
            Scope::Config => " (next start)",
        };
        match self {
            Setting::ModuleOption { module, parameter } => write!(out, "parameter {parameter} of module {module}"),
            Setting::SysfsWrite { path } => write!(out, "/sys/{path}"),
            Setting::Sysctl { path } => write!(out, "/proc/sys/{path}"),
            Setting::TaskAffinity(thread) => write!(out, "{thread}"),
            Setting::TaskPolicy(thread) => write!(out, "policy of {thread}"),
            Setting::IrqAffinity { irq } => write!(out, "interrupt {irq}"),
            Setting::PmdMask => write!(out, "polling threads of Open vSwitch"),
            Setting::VcpuPin { domain, vcpu, scope } => write!(out, "{domain} vCPU {vcpu}{}", when(scope)),
            Setting::EmulatorPin { domain, scope } => write!(out, "{domain} emulator threads{}", when(scope)),
            Setting::IothreadPin { domain, iothread, scope } => {
                write!(out, "{domain} iothread {iothread}{}", when(scope))
            }
        }
    }
}

/// A domain's name as `virsh` takes it: one that begins as an option does goes behind its key.
fn named(domain: &str) -> Cow<'_, str> {
    if domain.starts_with('-') { format!("--domain={}", quoted(domain)).into() } else { quoted(domain) }
}
