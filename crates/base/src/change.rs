//! Changes that a finding proposes, as types that print as commands.
//!
//! `fix` and `undo` of a finding are these types printed; a program that applies a change executes the type and never
//! a string out of a file.

use serde::Serialize;

/// One change of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
        tid: i32,
        /// CPU list as `taskset -c` takes it.
        cpus: String,
        /// CPU list that holds now, where it is known.
        from: Option<String>,
    },
}

impl Change {
    /// The command a person types to make the change.
    pub fn command(&self) -> String {
        match self {
            Change::ModuleOption { module, parameter, to, .. } => {
                format!("modprobe -r {module} && modprobe {module} {parameter}={to}")
            }
            Change::SysfsWrite { path, to, .. } => format!("echo {to} > /sys/{path}"),
            Change::TaskAffinity { tid, cpus, .. } => format!("taskset -cp {cpus} {tid}"),
        }
    }

    /// The command that takes it back, where the value before is known.
    pub fn undo(&self) -> Option<String> {
        let back = match self.clone() {
            Change::ModuleOption { module, parameter, to, from } => {
                Change::ModuleOption { module, parameter, to: from?, from: Some(to) }
            }
            Change::SysfsWrite { path, to, from } => Change::SysfsWrite { path, to: from?, from: Some(to) },
            Change::TaskAffinity { tid, cpus, from } => Change::TaskAffinity { tid, cpus: from?, from: Some(cpus) },
        };
        Some(back.command())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
