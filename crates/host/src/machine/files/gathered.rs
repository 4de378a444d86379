//! A node of an OpenShift must-gather: threads, interrupts and exclusive CPUs, as its JSON files tell them.
//!
//! ```text
//! cpu_affinities.json    [{"pid", "tid", "process", "thread", "affinity": [cpu, ..]}, ..]     every thread of the node
//! irq_affinities.json    [{"irq", "source", "affinity": [cpu, ..]}, ..]
//! podresources.json      {"pod_resources": [{"name", "namespace", "containers": [{"name", "cpu_ids": [..]}]}]}
//! ```
//! Sources: openshift/must-gather, collection-scripts/gather_ppc_single_node; openshift-kni/debug-tools, pkg/knit/cmd
//! (cpuaff, irqaff); Kubernetes' pod resources API, v1. In KubeVirt a VM's QEMU runs in container `compute` of its pod.

use crate::machine::{Domain, Fact, Irq, Machine, Role, Thread, role_of};
use crate::{Snapshot, budget};
use base::CpuSet;
use base::shell::quoted;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const THREADS: &str = "cpu_affinities.json";
const IRQS: &str = "irq_affinities.json";
const PODS: &str = "podresources.json";

/// Adds what the files tell and nothing else told.
pub(super) fn add(snapshot: &Snapshot, machine: &mut Machine) {
    if machine.threads.is_empty() {
        threads(snapshot, machine);
    }
    let known: BTreeSet<u32> = machine.irqs.iter().map(|irq| irq.number).collect();
    for row in rows(snapshot, IRQS, machine) {
        let number = row["irq"].as_u64().and_then(|number| u32::try_from(number).ok());
        let Some(number) = number.filter(|number| !known.contains(number)) else { continue };
        let name = row["source"].as_str().unwrap_or_default().to_owned();
        // Numbers without a source are nobody's interrupts.
        if !name.is_empty() {
            let affinity = Some(Fact::new(cpus(&row["affinity"]), IRQS));
            machine.irqs.push(Irq { number, name, affinity, ..Irq::default() });
        }
    }
    let packed = ["sysinfo.tgz", "sosreport.tar.xz"].into_iter().find(|name| snapshot.bytes(name, 1).is_ok());
    if let Some(name) = packed.filter(|_| snapshot.names("proc").is_empty()) {
        let tree = snapshot.root().to_string_lossy();
        let (archive, place) = (format!("{tree}/{name}"), quoted(&tree));
        machine.unread.push(format!("{name} is packed, and was not read: tar -xf {} -C {place}", quoted(&archive)));
    }
}

/// Whether the must-gather has the node's threads.
pub(super) fn lists_threads(snapshot: &Snapshot) -> bool {
    snapshot.bytes(THREADS, 1).is_ok()
}

fn rows(snapshot: &Snapshot, path: &str, machine: &mut Machine) -> Vec<Value> {
    let Some(text) = snapshot.read(path) else { return Vec::new() };
    if text.len() > budget::JSON_BYTES {
        let (bytes, most) = (text.len(), budget::JSON_BYTES);
        machine.unread.push(format!("{path}: {bytes} bytes of JSON are more than {most}, so it was not read"));
        return Vec::new();
    }
    match serde_json::from_str(&text) {
        Ok(Value::Array(rows)) => rows,
        _ => {
            machine.unread.push(format!("{path}: no JSON list, so it was not read"));
            Vec::new()
        }
    }
}

fn cpus(list: &Value) -> CpuSet {
    let numbers = list.as_array().into_iter().flatten().filter_map(Value::as_u64);
    numbers.filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

fn number(row: &Value, key: &str) -> Option<i32> {
    row[key].as_i64().and_then(|number| i32::try_from(number).ok())
}

fn threads(snapshot: &Snapshot, machine: &mut Machine) {
    let mut told: Vec<Thread> = Vec::new();
    for row in rows(snapshot, THREADS, machine) {
        let name = row["thread"].as_str().unwrap_or_default();
        let mut thread = Thread::new(role_of(name).map_or(Role::Other, |(role, _)| role), name);
        (thread.pid, thread.tid) = (number(&row, "pid"), number(&row, "tid"));
        thread.affinity = Some(Fact::new(cpus(&row["affinity"]), THREADS));
        told.push(thread);
    }
    let pods = exclusive(snapshot);
    let mut vms: BTreeMap<i32, String> = BTreeMap::new();
    let is_vcpu = |thread: &&Thread| matches!(thread.role, Role::Vcpu(_));
    for vcpu in told.iter().filter(is_vcpu) {
        let (Some(pid), Some(set)) = (vcpu.pid, &vcpu.affinity) else { continue };
        let pod = || pods.iter().find(|(_, cpus)| set.value.is_within(cpus)).map(|(name, _)| name.clone());
        vms.entry(pid).or_insert_with(|| pod().unwrap_or_else(|| format!("process-{pid}")));
    }
    for thread in &mut told {
        let owner = role_of(&thread.name).and_then(|(_, owner)| owner);
        let process = thread.pid.filter(|pid| vms.contains_key(pid)).or(owner);
        thread.vm = process.and_then(|process| vms.get(&process).cloned());
        match thread.role {
            Role::Emulator if thread.tid != thread.pid => thread.role = Role::Other,
            Role::Other if thread.vm.is_some() && thread.tid == thread.pid => thread.role = Role::Emulator,
            _ => {}
        }
    }
    told.retain(|thread| thread.vm.is_some() || thread.role == Role::Pmd);
    let mut vcpus: BTreeMap<i32, u32> = BTreeMap::new();
    for pid in told.iter().filter(is_vcpu).filter_map(|thread| thread.pid) {
        *vcpus.entry(pid).or_default() += 1;
    }
    let mut known: BTreeSet<String> = machine.domains.iter().map(|domain| domain.name.clone()).collect();
    for (pid, name) in vms.into_iter().take(budget::DOMAINS) {
        if known.insert(name.clone()) {
            machine.domains.push(Domain { name, vcpus: vcpus.get(&pid).copied(), ..Domain::default() });
        }
    }
    machine.threads = told;
}

/// Pods of VMs with CPUs of their own.
fn exclusive(snapshot: &Snapshot) -> Vec<(String, CpuSet)> {
    let text = snapshot.read(PODS).filter(|text| text.len() <= budget::JSON_BYTES).unwrap_or_default();
    let Ok(Value::Object(all)) = serde_json::from_str(&text) else { return Vec::new() };
    let mut pods = Vec::new();
    for pod in all.get("pod_resources").and_then(Value::as_array).into_iter().flatten() {
        let name = pod["name"].as_str().unwrap_or_default();
        if pods.len() >= budget::PODS {
            break;
        }
        for container in pod["containers"].as_array().into_iter().flatten() {
            let cpus = cpus(&container["cpu_ids"]);
            if container["name"] == "compute" && !cpus.is_empty() {
                pods.push((name.to_owned(), cpus));
            }
        }
    }
    pods
}
