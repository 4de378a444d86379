//! Does a process run a virtual machine?
//!
//! Any of: its program is called after QEMU, a thread of it is called `CPU 0/KVM` or `CPU 0/TCG` (QEMU's
//! accel/kvm/kvm-accel-ops.c and accel/tcg/tcg-accel-ops-mttcg.c, 7.2), or it holds a file of KVM's (`anon_inode:kvm-vm`,
//! virt/kvm/kvm_main.c, Linux 6.12). Names alone would miss other VMMs; files alone would miss TCG, and cannot be seen
//! without root.

use super::Snapshot;
use crate::machine::{ALL_VCPUS, small_monitor};
use std::collections::BTreeSet;

/// How many threads and files of a process are looked at before it is held to be none.
const MOST: usize = 4_096;

/// How much of a command line its first word may need.
const PROGRAM_BYTES: u64 = 4_096;

impl Snapshot {
    /// The processes that run a VM, by their ids.
    pub fn vms(&self) -> &BTreeSet<String> {
        self.vms.get_or_init(|| {
            let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
            self.names("proc").into_iter().filter(|name| is_number(name) && self.runs_a_vm(name)).collect()
        })
    }

    fn runs_a_vm(&self, pid: &str) -> bool {
        let command = self.bytes(&format!("proc/{pid}/cmdline"), PROGRAM_BYTES).unwrap_or_default();
        let program = command.split(|byte| *byte == 0).next().unwrap_or_default();
        if program.is_empty() {
            return false; // a thread of the kernel, a zombie, or nobody's
        }
        let program = String::from_utf8_lossy(program);
        let called = program.rsplit('/').next().unwrap_or_default();
        if called.starts_with("qemu-system-") || called.starts_with("qemu-kvm") || small_monitor(called).is_some() {
            return true;
        }
        let tasks = format!("proc/{pid}/task");
        let is_vcpu = |comm: &str| {
            let named = comm.starts_with("CPU ") && (comm.ends_with("/KVM") || comm.ends_with("/TCG"));
            named || comm == ALL_VCPUS
        };
        let of_vcpu = |tid: &String| self.line(&format!("{tasks}/{tid}/comm")).is_some_and(|comm| is_vcpu(&comm));
        if self.names(&tasks).iter().take(MOST).any(of_vcpu) {
            return true;
        }
        let files = format!("proc/{pid}/fd");
        let of_kvm = |name: &String| self.link(&format!("{files}/{name}")).is_some_and(|to| to == "anon_inode:kvm-vm");
        self.names(&files).iter().take(MOST).any(of_kvm)
            || self.links_below(&files).any(|(_, target)| target == "anon_inode:kvm-vm")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn vms_are_known_by_program_by_thread_or_by_file() {
        let root = tempfile::tempdir().unwrap();
        let process = |pid: &str, command: &str, comm: &str| {
            let task = root.path().join("proc").join(pid).join("task").join(pid);
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("comm"), format!("{comm}\n")).unwrap();
            fs::write(task.join("../../cmdline"), command).unwrap();
            fs::create_dir(task.join("../../fd")).unwrap();
        };
        process("1", "/sbin/init\0", "systemd");
        process("7", "", "CPU 0/KVM"); // the kernel's own
        process("10", "/usr/bin/qemu-system-x86_64\0-m\x00512\0", "qemu-system-x86");
        process("11", "/opt/vmm\0", "CPU 1/TCG");
        process("12", "firecracker\0", "fc_vcpu 0");
        process("13", "grep\0qemu-system-x86_64\0", "grep");
        let fd = |pid: &str| root.path().join("proc").join(pid).join("fd/9");
        std::os::unix::fs::symlink("anon_inode:kvm-vm", fd("12")).unwrap();
        std::os::unix::fs::symlink("/dev/null", fd("13")).unwrap();
        let snapshot = Snapshot::open(root.path()).unwrap();
        assert_eq!(snapshot.vms().iter().collect::<Vec<_>>(), ["10", "11", "12"]);
    }
}
