//! Who a VM is to those who manage it, and who a thread is that had its CPU.

use super::open_metrics::label;
use analysis::flow::live::{Preemptor, Vcpu};
use host::Snapshot;
use host::machine::{Machine, Manager};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Threads that are remembered; beyond that they are looked up again.
const MOST_THREADS: usize = 8_192;

/// Who had a CPU that a vCPU was ready for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Taker {
    /// `vm`, `vhost`, `emulator`, `kernel`, `other`, `unknown`.
    pub kind: &'static str,
    /// The VM, or what the task is called, numbers of kernel threads left out.
    pub by: String,
}

/// All definitions of a host are read for a new VM; where they come and go all the time, no more often.
const LOOKED_UP_EVERY: Duration = Duration::from_secs(10);

/// What is known of VMs and threads, each looked up once.
pub(crate) struct Identities {
    host: PathBuf,
    /// Labels of a VM's identity, by the name that it has in tables.
    vms: BTreeMap<String, String>,
    /// VMs by the threads of their vCPUs, and by their processes.
    vcpus: BTreeMap<i32, String>,
    processes: BTreeMap<i32, String>,
    threads: BTreeMap<(i32, String), Taker>,
    /// When definitions were read last.
    looked_at: Option<Duration>,
}

impl Identities {
    pub(crate) fn new(host: PathBuf) -> Self {
        let (vms, vcpus, processes, threads) = Default::default();
        Self { host, vms, vcpus, processes, threads, looked_at: None }
    }

    /// VMs that were seen `at` a time since the agent began: who is new is looked up.
    pub(crate) fn meet(&mut self, vcpus: &[Vcpu], at: Duration) {
        let now: BTreeMap<i32, String> = vcpus.iter().map(|vcpu| (vcpu.tid, vcpu.vm.clone())).collect();
        if now != self.vcpus {
            self.vcpus = now;
            let process = |(tid, vm): (&i32, &String)| Some((self.status(*tid, "Tgid")?, vm.clone()));
            self.processes = self.vcpus.iter().filter_map(process).collect();
            // Who was nobody's may be theirs.
            self.threads.clear();
        }
        let is_known = |(_, vm): (&i32, &String)| self.vms.contains_key(vm);
        let is_due = self.looked_at.is_none_or(|looked_at| at.saturating_sub(looked_at) >= LOOKED_UP_EVERY);
        if self.processes.iter().all(is_known) || !is_due {
            return;
        }
        self.looked_at = Some(at);
        let machine = Snapshot::open(&self.host).map(|now| Machine::of_snapshots(std::slice::from_ref(&now)));
        let machine = machine.as_ref().ok();
        self.vms = self.processes.iter().map(|(pid, vm)| (vm.clone(), identity(vm, *pid, machine))).collect();
    }

    /// The labels of a VM's identity, where it was met.
    pub(crate) fn of_vm(&self, vm: &str) -> Option<&str> {
        self.vms.get(vm).map(String::as_str)
    }

    /// Who that was.
    pub(crate) fn taker(&mut self, of: &Preemptor) -> Taker {
        let Some(tid) = of.tid else { return Taker { kind: "unknown", by: "unknown".to_owned() } };
        if let Some(vm) = self.vcpus.get(&tid) {
            return Taker { kind: "vm", by: vm.clone() };
        }
        let key = (tid, of.by.clone());
        if let Some(known) = self.threads.get(&key) {
            return known.clone();
        }
        if self.threads.len() >= MOST_THREADS {
            self.threads.clear();
        }
        let taker = self.looked_up(tid, &of.by);
        self.threads.insert(key, taker.clone());
        taker
    }

    fn looked_up(&self, tid: i32, comm: &str) -> Taker {
        // `vhost-4711` works for the process 4711 (drivers/vhost/vhost.c, Linux 6.12).
        if let Some(pid) = comm.strip_prefix("vhost-") {
            let vm = pid.parse().ok().and_then(|pid: i32| self.processes.get(&pid));
            return Taker { kind: "vhost", by: vm.map_or_else(|| comm.to_owned(), Clone::clone) };
        }
        if let Some(vm) = self.status(tid, "Tgid").and_then(|pid| self.processes.get(&pid)) {
            return Taker { kind: "emulator", by: vm.clone() };
        }
        // All threads of the kernel are children of kthreadd, which is 2 (init/main.c, Linux 6.12).
        if tid == 2 || self.status(tid, "PPid") == Some(2) {
            // `kworker/3:1-events` is kworker, `ksoftirqd/2` is ksoftirqd.
            let by = comm.split(['/', ':']).next().unwrap_or(comm);
            return Taker { kind: "kernel", by: by.to_owned() };
        }
        Taker { kind: "other", by: comm.to_owned() }
    }

    /// A number of a task's status (proc_pid_status(5)), if it is still there.
    fn status(&self, tid: i32, name: &str) -> Option<i32> {
        let text = std::fs::read_to_string(self.host.join(format!("proc/{tid}/status"))).ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok())
    }
}

/// `vm="web",pid="4711",manager="kubevirt",namespace="shop",name="web"`: what joins a VM with what others know of it.
fn identity(vm: &str, pid: i32, machine: Option<&Machine>) -> String {
    let mut labels = vec![label("vm", vm), label("pid", &pid.to_string())];
    let domain = machine.and_then(|machine| {
        let is_it = |domain: &&host::machine::Domain| domain.pid == Some(pid) || domain.name == vm;
        Some((machine, machine.domains.iter().find(is_it)?))
    });
    let Some((machine, domain)) = domain else { return labels.join(",") };
    let mut add = |name: &str, value: &str| labels.push(label(name, value));
    match machine.manager_of(domain) {
        Manager::Libvirt => add("manager", "libvirt"),
        // Or something that is not known.
        Manager::Qemu => {}
        Manager::Monitor { program } => add("manager", program),
        Manager::Incus { program } => add("manager", program),
        Manager::Proxmox(id) => {
            add("manager", "proxmox");
            if id > 0 {
                add("id", &id.to_string());
            }
        }
        Manager::KubeVirt { namespace, name } => {
            add("manager", "kubevirt");
            add("namespace", &namespace);
            add("name", &name);
        }
        Manager::OpenStack { server, flavor } => {
            add("manager", "openstack");
            add("instance_name", &server);
            if let Some(flavor) = flavor {
                add("flavor_name", &flavor);
            }
        }
    }
    add("domain", &domain.name);
    labels.join(",")
}
