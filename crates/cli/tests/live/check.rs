//! `kvmscope check` on this machine, with threads that are what a VM's are called: who takes their CPU is named.

use base::CpuSet;
use base::recording::Recording;
use host::Snapshot;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use testing::{machine, wait_for};

/// A process that runs all the time under names of the test's choice, and ends with it.
struct Busy(Child);

impl Busy {
    /// Does `what` again and again, bound to `cpu`, with that name of its thread.
    fn start(mut bash: Command, comm: &str, guest: &str, cpu: u32, what: &str) -> Self {
        let script = format!("echo '{comm}' > /proc/self/comm; while :; do {what}; done");
        bash.args(["-c", &script, "-name", &format!("guest={guest}")]);
        let busy = Self(bash.stdin(Stdio::null()).spawn().expect("bash starts"));
        let pid = busy.0.id().to_string();
        let pinned = Command::new("taskset").args(["-cp", &cpu.to_string(), &pid]).output().expect("taskset starts");
        assert!(pinned.status.success(), "{pinned:?}");
        // Before it has its name it is nobody's vCPU, and a first sample that falls into that time knows nothing of it.
        let named = || std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == comm);
        wait_for("the thread has its name", named);
        busy
    }

    /// A VM of one vCPU that never halts.
    fn vcpu(guest: &str, cpu: u32) -> Self {
        let mut bash = Command::new("bash");
        bash.arg0("qemu-system-x86_64");
        Self::start(bash, "CPU 0/KVM", guest, cpu, ":")
    }

    /// A program in a session of its own: where the kernel groups threads by session, it weighs as much as all of another.
    fn hog(cpu: u32) -> Self {
        let mut bash = Command::new("setsid");
        bash.arg("bash");
        Self::start(bash, "hogger", "none", cpu, ":")
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The CPUs that this process may use.
fn allowed() -> CpuSet {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find_map(|line| CpuSet::parse(line.strip_prefix("Cpus_allowed_list:")?)).unwrap_or_default()
}

/// A CPU that this process may use, if the kernel counts waiting and `taskset` is there.
fn cpu() -> Option<u32> {
    let counted = std::fs::read_to_string("/proc/self/schedstat").is_ok_and(|text| !text.starts_with("0 0 "));
    let taskset = Command::new("taskset").arg("--version").output().is_ok();
    if !counted || !taskset {
        println!("skipped: a starved thread: schedstat or taskset is missing");
        return None;
    }
    allowed().last()
}

/// Findings of section `placement` about this machine now.
fn findings() -> Vec<Value> {
    let output = assert_cmd::Command::cargo_bin("kvmscope").unwrap().args(["check", "--json", "--span", "1"]).output();
    placement(&output.unwrap().stdout)
}

/// Findings of section `placement` of an answer.
fn placement(json: &[u8]) -> Vec<Value> {
    let answer: Value = serde_json::from_slice(json).expect("check prints JSON");
    let sections = answer["sections"].as_array().unwrap();
    let section = sections.iter().find(|section| section["id"] == "placement").expect("there is a VM");
    section["findings"].as_array().unwrap().clone()
}

#[test]
fn a_program_that_takes_the_cpu_of_a_vcpu_is_named() {
    let _machine = machine();
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
    let _machine = machine();
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

/// Datagrams that two network namespaces send each other until their TTL ends, all received on one CPU; gone with the test.
///
/// ```text
/// sender --> first: veth0 --> veth0 :second        no route but back: each forwards what the other sends
///              ^                     |
///              +---------------------+             receive packet steering: softirqs of one CPU
/// ```
/// So a sender of any speed keeps the CPU busy: each datagram is received 255 times.
struct Storm {
    namespaces: [String; 2],
    sender: Option<Busy>,
}

impl Storm {
    /// Onto `cpu`, from another one; or why there can be none here.
    fn onto(cpu: u32) -> Result<Self, String> {
        let from = allowed().without(&CpuSet::one(cpu)).first().ok_or("the sender needs a second CPU")?;
        let namespaces = ["first", "second"].map(|end| format!("kvmscope-test-{}-{end}", std::process::id()));
        let mut storm = Self { namespaces, sender: None };
        let [first, second] = &storm.namespaces;
        ip(&["netns", "add", first])?;
        ip(&["netns", "add", second])?;
        ip(&["-n", first, "link", "add", "veth0", "type", "veth", "peer", "name", "veth0", "netns", second])?;
        for (end, own, other) in [(first, "192.0.2.1", "192.0.2.2"), (second, "192.0.2.2", "192.0.2.1")] {
            ip(&["-n", end, "addr", "add", &format!("{own}/24"), "dev", "veth0"])?;
            ip(&["-n", end, "link", "set", "veth0", "up"])?;
            ip(&["-n", end, "route", "add", "default", "via", other])?;
            // What comes back has the first one's own address as its source: it is dropped without `accept_local`.
            let settings = [
                ("/proc/sys/net/ipv4/ip_forward", "1"),
                ("/proc/sys/net/ipv4/ip_default_ttl", "255"),
                ("/proc/sys/net/ipv4/conf/veth0/accept_local", "1"),
                ("/sys/class/net/veth0/queues/rx-0/rps_cpus", &CpuSet::one(cpu).mask_like("")),
            ];
            for (file, value) in settings {
                ip(&["netns", "exec", end, "sh", "-c", &format!("echo {value} > {file}")])?;
            }
        }
        let mut bash = Command::new("ip");
        bash.args(["netns", "exec", first, "bash"]);
        // To an address that nobody has; a full queue refuses it, which is no matter.
        let send = "echo 2> /dev/null > /dev/udp/198.51.100.1/9";
        storm.sender = Some(Busy::start(bash, "sender", "none", from, send));
        Ok(storm)
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        drop(self.sender.take());
        for namespace in &self.namespaces {
            let _ = ip(&["netns", "delete", namespace]);
        }
    }
}

fn ip(words: &[&str]) -> Result<String, String> {
    let output = Command::new("ip").args(words).output().map_err(|error| format!("ip: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// Two samples of this machine, what softirqs and the vCPU did between them, and the findings about them.
struct Look {
    findings: Vec<Value>,
    /// Share of the time that softirqs took of the CPU.
    softirq: f64,
    /// Share of the time that the vCPU waited.
    waited: f64,
}

impl Look {
    fn at(directory: &Path, vm: &Busy, cpu: u32) -> Self {
        let kvmscope = |arguments: &[&str]| {
            let output = assert_cmd::Command::cargo_bin("kvmscope").unwrap().args(arguments).arg(directory).output();
            output.unwrap().stdout
        };
        kvmscope(&["snapshot", "--span", "1", "--force", "-o"]);
        let recording = Recording::open(directory).unwrap();
        let samples = [0, 1].map(|part| Snapshot::open(&directory.join(&recording.parts[part].path)).unwrap());
        let stat = samples.each_ref().map(|sample| sample.read("proc/stat").unwrap());
        let softirq = host::usage::between(&stat[0], &stat[1]).get(&cpu).map_or(0.0, |usage| usage.softirq);
        let counters = format!("proc/{pid}/task/{pid}/schedstat", pid = vm.0.id());
        let waited_ns = samples.each_ref().map(|sample| {
            let text = sample.read(&counters).unwrap();
            text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        });
        let at_ns = samples.each_ref().map(|sample| sample.read_at_ns(&counters).unwrap());
        let waited = (waited_ns[1] - waited_ns[0]) as f64 / (at_ns[1] - at_ns[0]) as f64;
        Self { findings: placement(&kvmscope(&["check", "--json"])), softirq, waited }
    }

    /// Whether softirqs took most of what the vCPU lost, by the kernel's counters in the very samples that are judged.
    fn storm_prevails(&self) -> bool {
        self.softirq > 0.6 * self.waited
    }
}

fn names_softirqs(finding: &Value) -> bool {
    let title = finding["title"].to_string();
    title.contains("vcpu 0 of stormed starved") && title.contains(": interrupts and softirqs")
}

#[test]
fn an_interrupt_storm_on_the_cpu_of_a_vcpu_is_named() {
    let _machine = machine();
    let Some(cpu) = cpu() else { return };
    let storm = match Storm::onto(cpu) {
        Ok(storm) => storm,
        Err(why) => return println!("skipped: an interrupt storm: {}", why.trim()),
    };
    let namespaces = storm.namespaces.clone();
    let vm = Busy::vcpu("stormed", cpu);
    let directory = tempfile::tempdir().unwrap();
    let mut looks = (0..3).map(|_| Look::at(&directory.path().join("look"), &vm, cpu));
    let found = looks.find(Look::storm_prevails).map(|look| look.findings);
    drop((vm, storm));
    let left = ip(&["netns", "list"]).unwrap();
    assert!(namespaces.iter().all(|namespace| !left.contains(namespace)), "{left}");
    let Some(found) = found else { return println!("skipped: an interrupt storm: the machine is too busy") };
    let titles: Vec<&Value> = found.iter().map(|finding| &finding["title"]).collect();
    let named = found.iter().find(|finding| names_softirqs(finding));
    let finding = named.unwrap_or_else(|| panic!("no finding names it: {titles:?}"));
    assert_eq!((&finding["rule"], &finding["severity"]), (&"PLC-STARVED".into(), &"high".into()), "{finding}");
    assert!(finding["title"].as_str().unwrap().ends_with(&format!("ran on CPU {cpu}")), "{finding}");
    let fix = finding["fix"].to_string();
    assert!(fix.contains("cat /proc/softirqs") && !fix.contains("ksoftirqd"), "{fix}");
}
