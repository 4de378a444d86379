//! Changes that a finding proposes, as types that print as commands.
//!
//! `fix` and `undo` of a finding are these types printed; a program that applies a change executes the type and never
//! a string out of a file.

use crate::CpuSet;
use crate::shell::quoted;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

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

/// One change of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Change {
    /// Load a kernel module with another value of one parameter.
    ModuleOption {
        /// Such as `kvm_intel`.
        module: String,
        /// Such as `enable_shadow_vmcs`.
        parameter: String,
        /// Value to set.
        to: String,
        /// Value that holds now, where it is known.
        from: Option<String>,
    },
    /// Write a file below `/sys`.
    SysfsWrite {
        /// Path below `/sys`, such as `module/kvm/parameters/halt_poll_ns`.
        path: String,
        /// Value to write.
        to: String,
        /// Value that holds now, where it is known.
        from: Option<String>,
    },
    /// Let a thread run on these CPUs only.
    TaskAffinity {
        /// The thread.
        #[serde(flatten)]
        thread: ThreadId,
        /// CPU list as `taskset -c` takes it.
        cpus: String,
        /// CPU list that holds now, where it is known.
        from: Option<String>,
    },
    /// Give a thread another scheduling policy.
    TaskPolicy {
        /// The thread.
        #[serde(flatten)]
        thread: ThreadId,
        /// Name of the policy as `chrt` takes it (`other`, `batch`, `idle`, `fifo`, `rr`), and behind a colon the
        /// priority of the last two: `fifo:1`.
        to: String,
        /// The same for what holds now, where it is known.
        from: Option<String>,
    },
    /// Let an interrupt be handled on these CPUs only.
    IrqAffinity {
        /// The interrupt's number.
        irq: u32,
        /// CPU list.
        cpus: String,
        /// CPU list that holds now, where it is known.
        from: Option<String>,
    },
    /// Let the polling threads of Open vSwitch run on these CPUs, one on each.
    PmdMask {
        /// CPU list; empty: no mask, which leaves it to the switch.
        cpus: String,
        /// CPU list that holds now, where it is known; empty: none is set.
        from: Option<String>,
    },
    /// Let a vCPU of a libvirt domain run on these CPUs only.
    VcpuPin {
        /// The domain.
        domain: String,
        /// The vCPU.
        vcpu: u32,
        /// CPU list.
        cpus: String,
        /// CPU list that holds now, where it is known.
        from: Option<String>,
    },
    /// Let the emulator threads of a libvirt domain, and workers in their cgroup, run on these CPUs only.
    EmulatorPin {
        /// The domain.
        domain: String,
        /// CPU list.
        cpus: String,
        /// CPU list that holds now, where it is known.
        from: Option<String>,
    },
    /// Let an iothread of a libvirt domain run on these CPUs only.
    IothreadPin {
        /// The domain.
        domain: String,
        /// The iothread, from 1.
        iothread: u32,
        /// CPU list.
        cpus: String,
        /// CPU list that holds now, where it is known.
        from: Option<String>,
    },
}

impl Change {
    /// The command that makes the change; names out of evidence are quoted.
    pub fn command(&self) -> String {
        match self {
            Change::ModuleOption { module, parameter, to, .. } => {
                let (module, parameter) = (quoted(module), quoted(parameter));
                format!("modprobe -r {module} && modprobe {module} {parameter}={}", quoted(to))
            }
            Change::SysfsWrite { path, to, .. } => format!("echo {} > {}", quoted(to), quoted(&format!("/sys/{path}"))),
            Change::TaskAffinity { thread, cpus, .. } => format!("taskset -cp {} {}", quoted(cpus), thread.tid),
            Change::TaskPolicy { thread, to, .. } => {
                let (policy, priority) = to.split_once(':').unwrap_or((to, "0"));
                format!("chrt --{} -p {} {}", quoted(policy), quoted(priority), thread.tid)
            }
            Change::IrqAffinity { irq, cpus, .. } => {
                format!("echo {} > /proc/irq/{irq}/smp_affinity_list", quoted(cpus))
            }
            Change::PmdMask { cpus, .. } if cpus.is_empty() => {
                "ovs-vsctl remove Open_vSwitch . other_config pmd-cpu-mask".to_owned()
            }
            Change::PmdMask { cpus, .. } => {
                let mask = CpuSet::parse(cpus).unwrap_or_default().mask();
                format!("ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask={mask}")
            }
            Change::VcpuPin { domain, vcpu, cpus, .. } => {
                format!("virsh vcpupin {} {vcpu} {} --live --config", named(domain), quoted(cpus))
            }
            Change::EmulatorPin { domain, cpus, .. } => {
                format!("virsh emulatorpin {} {} --live --config", named(domain), quoted(cpus))
            }
            Change::IothreadPin { domain, iothread, cpus, .. } => {
                format!("virsh iothreadpin {} {iothread} {} --live --config", named(domain), quoted(cpus))
            }
        }
    }

    /// The command that takes it back, where the value before is known.
    pub fn undo(&self) -> Option<String> {
        let mut back = self.clone();
        let (to, from) = back.sides();
        *to = from.take()?;
        Some(back.command())
    }

    /// The command that takes it back, or a comment of a shell that says why there is none.
    pub fn undo_or_why(&self) -> String {
        self.undo().unwrap_or_else(|| format!("# no undo for `{}`: the previous value was not read", self.command()))
    }

    /// The value that the change sets, and the one that held before.
    fn sides(&mut self) -> (&mut String, &mut Option<String>) {
        match self {
            Change::ModuleOption { to, from, .. }
            | Change::SysfsWrite { to, from, .. }
            | Change::TaskPolicy { to, from, .. } => (to, from),
            Change::TaskAffinity { cpus, from, .. }
            | Change::IrqAffinity { cpus, from, .. }
            | Change::PmdMask { cpus, from }
            | Change::VcpuPin { cpus, from, .. }
            | Change::EmulatorPin { cpus, from, .. }
            | Change::IothreadPin { cpus, from, .. } => (cpus, from),
        }
    }

    /// What stands there now, as far as whoever proposed the change knew.
    pub fn from(&self) -> Option<String> {
        self.clone().sides().1.take()
    }
}

/// A domain's name as `virsh` takes it: one that begins as an option does goes behind its key.
fn named(domain: &str) -> Cow<'_, str> {
    if domain.starts_with('-') { format!("--domain={}", quoted(domain)).into() } else { quoted(domain) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_print_as_a_person_types_them_and_come_back_from_json() {
        let pin = Change::EmulatorPin { domain: "bigip-virtio".into(), cpus: "1,3".into(), from: Some("0,2".into()) };
        assert_eq!(pin.command(), "virsh emulatorpin bigip-virtio 1,3 --live --config");
        assert_eq!(pin.undo().unwrap(), "virsh emulatorpin bigip-virtio 0,2 --live --config");
        let policy = Change::TaskPolicy { thread: 7.into(), to: "fifo:1".into(), from: Some("other".into()) };
        assert_eq!(policy.command(), "chrt --fifo -p 1 7");
        assert_eq!(policy.undo().unwrap(), "chrt --other -p 0 7");
        assert_eq!(Change::IrqAffinity { irq: 9, cpus: "1".into(), from: None }.undo(), None);
        let text = serde_json::to_string(&pin).unwrap();
        assert_eq!(serde_json::from_str::<Change>(&text).unwrap(), pin);
        assert!(serde_json::from_str::<Change>(r#"{"type":"Shell","command":"rm"}"#).is_err());
    }

    #[test]
    fn a_thread_is_written_flat_and_only_with_what_is_known_of_it() {
        let pin = |thread| Change::TaskAffinity { thread, cpus: "1".into(), from: None };
        let bare = serde_json::to_value(pin(7.into())).unwrap();
        assert_eq!(bare, serde_json::json!({"type": "TaskAffinity", "tid": 7, "cpus": "1", "from": null}));
        assert_eq!(serde_json::from_value::<Change>(bare).unwrap(), pin(7.into()));
        let known = pin(ThreadId { tid: 7, start_ticks: Some(99), comm: Some("vhost-6".into()) });
        let text = serde_json::to_string(&known).unwrap();
        assert!(text.contains(r#""start_ticks":99,"comm":"vhost-6""#), "{text}");
        assert_eq!(serde_json::from_str::<Change>(&text).unwrap(), known);
    }

    #[test]
    fn a_name_out_of_evidence_is_one_word_of_the_command() {
        let pin =
            |domain: &str| Change::EmulatorPin { domain: domain.into(), cpus: "1".into(), from: Some("$(x)".into()) };
        assert_eq!(pin("a; rm -rf /").command(), "virsh emulatorpin 'a; rm -rf /' 1 --live --config");
        assert_eq!(pin("a").undo().unwrap(), "virsh emulatorpin a '$(x)' --live --config");
        assert_eq!(pin("--all").command(), "virsh emulatorpin --domain=--all 1 --live --config");
        let write = Change::SysfsWrite { path: "a b".into(), to: "`x`".into(), from: None };
        assert_eq!(write.command(), "echo '`x`' > '/sys/a b'");
    }

    #[test]
    fn a_mask_of_polling_threads_is_set_and_taken_away_again() {
        let mask = |from: Option<&str>| Change::PmdMask { cpus: "1,9".into(), from: from.map(str::to_owned) };
        assert_eq!(mask(None).command(), "ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask=0x202");
        assert_eq!(mask(None).undo(), None);
        let back = "ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask=0x1";
        assert_eq!(mask(Some("0")).undo().unwrap(), back);
        assert_eq!(mask(Some("")).undo().unwrap(), "ovs-vsctl remove Open_vSwitch . other_config pmd-cpu-mask");
    }

    #[test]
    fn a_module_option_prints_its_command_and_its_way_back() {
        let change = Change::ModuleOption {
            module: "kvm_intel".into(),
            parameter: "enable_shadow_vmcs".into(),
            to: "1".into(),
            from: Some("0".into()),
        };
        assert_eq!(change.command(), "modprobe -r kvm_intel && modprobe kvm_intel enable_shadow_vmcs=1");
        assert_eq!(change.undo().unwrap(), "modprobe -r kvm_intel && modprobe kvm_intel enable_shadow_vmcs=0");
    }
}
