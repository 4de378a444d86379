//! `kvmscope check` on this machine, with threads that are what a VM's are called: who takes their CPU is named.

use base::CpuSet;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Both tests use the same CPU.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process that runs all the time under names of the test's choice, and ends with it.
struct Busy(Child);

impl Busy {
    /// Bound to `cpu`, with that name of its thread.
    fn start(mut bash: Command, comm: &str, guest: &str, cpu: u32) -> Self {
        let script = format!("echo '{comm}' > /proc/self/comm; while :; do :; done");
        bash.args(["-c", &script, "-name", &format!("guest={guest}")]);
        let busy = Self(bash.stdin(Stdio::null()).spawn().expect("bash starts"));
        let pid = busy.0.id().to_string();
        let pinned = Command::new("taskset").args(["-cp", &cpu.to_string(), &pid]).output().expect("taskset starts");
        assert!(pinned.status.success(), "{pinned:?}");
        busy
    }

    /// A VM of one vCPU that never halts.
    fn vcpu(guest: &str, cpu: u32) -> Self {
        let mut bash = Command::new("bash");
        bash.arg0("qemu-system-x86_64");
        Self::start(bash, "CPU 0/KVM", guest, cpu)
    }

    /// A program in a session of its own: where the kernel groups threads by session, it weighs as much as all of another.
    fn hog(cpu: u32) -> Self {
        let mut bash = Command::new("setsid");
        bash.arg("bash");
        Self::start(bash, "hogger", "none", cpu)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A CPU that this process may use, if the kernel counts waiting and `taskset` is there.
fn cpu() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| CpuSet::parse(line.strip_prefix("Cpus_allowed_list:")?));
    let counted = std::fs::read_to_string("/proc/self/schedstat").is_ok_and(|text| !text.starts_with("0 0 "));
    let taskset = Command::new("taskset").arg("--version").output().is_ok();
    if !counted || !taskset {
        println!("skipped: a starved thread: schedstat or taskset is missing");
        return None;
    }
    allowed.and_then(|cpus| cpus.last())
}

/// Findings of section `placement` about this machine now.
fn findings() -> Vec<Value> {
    let output = assert_cmd::Command::cargo_bin("kvmscope").unwrap().args(["check", "--json", "--span", "2"]).output();
    let answer: Value = serde_json::from_slice(&output.unwrap().stdout).expect("check prints JSON");
    let sections = answer["sections"].as_array().unwrap();
    let section = sections.iter().find(|section| section["id"] == "placement").expect("there is a VM");
    section["findings"].as_array().unwrap().clone()
}

#[test]
fn a_program_that_takes_the_cpu_of_a_vcpu_is_named() {
    let _alone = alone();
    let Some(cpu) = cpu() else { return };
    let _vm = Busy::vcpu("victim", cpu);
    let _hogs: Vec<Busy> = (0..6).map(|_| Busy::hog(cpu)).collect();
    let found = findings();
    let starved = |finding: &&Value| {
        finding["severity"] == "high"
            && finding["evidence"].to_string().contains("vcpu 0")
            && finding["title"].to_string().contains("hogger")
    };
    let titles: Vec<&Value> = found.iter().map(|finding| &finding["title"]).collect();
    let finding = found.iter().find(starved).unwrap_or_else(|| panic!("no finding names it: {titles:?}"));
    assert_eq!(finding["rule"], "PLC-STARVED", "{finding}");
}

/// A group of the CPU controller, of whichever version is mounted; gone with the test.
struct Group(PathBuf);

impl Group {
    /// With a fifth of a CPU. `None`, and why is printed, where groups cannot be made.
    fn limited() -> Option<Self> {
        let name = format!("kvmscope-test-{}", std::process::id());
        for root in ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"] {
            let group = Self(Path::new(root).join(&name));
            if std::fs::create_dir(&group.0).is_err() {
                continue;
            }
            let write = |file: &str, text: &str| std::fs::write(group.0.join(file), text);
            let old = write("cpu.cfs_period_us", "100000").and_then(|()| write("cpu.cfs_quota_us", "20000"));
            if old.or_else(|_| write("cpu.max", "20000 100000")).is_ok() {
                return Some(group);
            }
        }
        println!("skipped: a CPU quota: no group of the CPU controller can be made here");
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_cpu_quota_that_throttles_a_vcpu_is_named() {
    let _alone = alone();
    let (Some(cpu), Some(group)) = (cpu(), Group::limited()) else { return };
    {
        let vm = Busy::vcpu("capped", cpu);
        std::fs::write(group.0.join("cgroup.procs"), vm.0.id().to_string()).unwrap();
        let found = findings();
        let about =
            |finding: &&Value| finding["rule"] == "PLC-QUOTA" && finding["title"].to_string().contains("capped");
        let titles: Vec<&Value> = found.iter().map(|finding| &finding["title"]).collect();
        let finding = found.iter().find(about).unwrap_or_else(|| panic!("no finding names it: {titles:?}"));
        assert_eq!(finding["severity"], "high", "{finding}");
        assert!(finding["evidence"].to_string().contains("may use 0.20 CPUs"), "{finding}");
    }
    drop(group);
}
