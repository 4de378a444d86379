//! On which nodes the memory of VMs lies, by `numa_maps` of their processes.
//!
//! Reading it walks all of a process's page tables, so that snapshots take it on request only; sosreports take it always.
//! Each line is a mapping: `7f.. bind:0 file=.. huge N0=512 N1=3 kernelpagesize_kB=2048` (fs/proc/task_mmu.c, Linux 6.12).

use super::Samples;
use crate::Snapshot;
use crate::machine::{Fact, Machine};
use base::CpuSet;
use std::collections::{BTreeMap, BTreeSet};

/// Pages that automatic NUMA balancing moved a second, between two samples (`numa_pages_migrated`).
pub(super) fn pages_moved(samples: &Samples<'_>) -> Option<Fact<f64>> {
    const FILE: &str = "proc/vmstat";
    let (first, last, span_ns) = samples.both(FILE)?;
    let moved = |text: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix("numa_pages_migrated "))?.trim().parse().ok()
    };
    let pages = moved(&last)?.checked_sub(moved(&first)?)?;
    Some(Fact::new(pages as f64 / (span_ns as f64 / 1e9), FILE))
}

/// Counts the pages of each VM whose process is known.
pub(super) fn of_vms(snapshot: &Snapshot, machine: &mut Machine) {
    // A thread in the kernel serves a VM and has another process.
    let owned = machine.threads.iter().filter(|thread| thread.role != crate::machine::Role::Vhost);
    let processes: BTreeSet<(i32, String)> =
        owned.filter_map(|thread| Some((thread.pid?, thread.vm.clone()?))).collect();
    for (pid, vm) in processes {
        let path = format!("proc/{pid}/numa_maps");
        let Some(text) = snapshot.read(&path) else { continue };
        let small: u64 = nodes(&text, |kib| kib == SMALL_KIB).values().sum();
        machine.vm_small_pages.insert(vm.clone(), Fact::new(small, path.clone()));
        if let Some(nodes) = bound(&text) {
            machine.vm_bound.insert(vm.clone(), Fact::new(nodes, path.clone()));
        }
        let nodes = nodes(&text, |_| true);
        if !nodes.is_empty() {
            machine.vm_memory.insert(vm, Fact::new(nodes, path));
        }
    }
}

/// The nodes that a policy binds most of the memory to, if it does: `bind:0`, `bind=static:0-1` (mpol_to_str, mm/mempolicy.c, Linux 6.12).
fn bound(text: &str) -> Option<CpuSet> {
    let all: u64 = nodes(text, |_| true).values().fold(0, |sum, bytes| sum.saturating_add(*bytes));
    let (mut there, mut held) = (CpuSet::default(), 0_u64);
    for line in text.lines() {
        let policy = line.split_whitespace().nth(1).and_then(|policy| policy.strip_prefix("bind"));
        let to = policy.and_then(|policy| CpuSet::parse(policy.split_once(':')?.1));
        if let Some(to) = to.filter(|to| !to.is_empty()) {
            let own: u64 = nodes(line, |_| true).values().fold(0, |sum, bytes| sum.saturating_add(*bytes));
            held = held.saturating_add(own);
            // What is bound and has no page yet is no memory.
            there = if own > 0 { there.or(&to) } else { there };
        }
    }
    (held > all / 2).then_some(there)
}

/// The small page of x86 and of most arm64.
const SMALL_KIB: u64 = 4;

/// Bytes on each node in pages of such sizes, of what is written to: mappings of program files are shared with others and small.
fn nodes(text: &str, wanted: impl Fn(u64) -> bool) -> BTreeMap<u32, u64> {
    let mut nodes = BTreeMap::new();
    for line in text.lines() {
        let field = |key: &str| line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let page_kib: u64 = field("kernelpagesize_kB").and_then(|size| size.parse().ok()).unwrap_or(SMALL_KIB);
        for word in line.split_whitespace().filter(|word| word.starts_with('N') && wanted(page_kib)) {
            let pair =
                word[1..].split_once('=').and_then(|(node, pages)| Some((node.parse().ok()?, pages.parse().ok()?)));
            let Some((node, pages)) = pair else { continue };
            let bytes = u64::saturating_mul(pages, page_kib << 10);
            let sum: &mut u64 = nodes.entry(node).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_sizes() {
        let text = "7f00 bind:0 file=/dev/hugepages/x huge dirty=3 N0=2 N1=1 kernelpagesize_kB=2048\n\
                    7e00 default anon=5 dirty=5 N1=5 kernelpagesize_kB=4\n7d00 default file=/lib/x mapped=1 N=x\n";
        assert_eq!(nodes(text, |_| true), [(0, 4 << 20), (1, (2 << 20) + (20 << 10))].into());
        assert_eq!(nodes(text, |kib| kib == SMALL_KIB), [(1, 20 << 10)].into());
        assert_eq!(bound(text).unwrap().to_string(), "0");
        assert!(bound(&text.replace("bind:0", "prefer:0")).is_none());
    }
}
