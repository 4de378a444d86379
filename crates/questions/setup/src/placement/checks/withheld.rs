//! Memory that tasks wait for though the host has it: a group's limit, a node that is kept to itself, huge pages that nobody uses.

use super::full_node;
use super::strain::largest;
use crate::placement::model::Model;
use base::number::{bytes, rate};
use base::shell::quoted;
use base::{Evidence, Setting};
use facts::rule::Hit;
use host::Machine;
use host::machine::{Container, Gauge, GaugeKind, Manager, is_within_group, own_unit};
use std::collections::BTreeSet;
use tongue::groups::named;

/// Times a second that a group reaches its limit of memory from which it waits for it: our own limit.
pub(in crate::placement) const REACHED: f64 = 10.0;

/// Unused huge pages of so many times the memory that is available are what the host lacks: our own limit.
pub(in crate::placement) const UNUSED: f64 = 2.0;

/// The hit with what withholds memory, each with what gives it back before what is only to be looked at; and whether anything does.
pub(super) fn causes(model: &Model, mut hit: Hit) -> (Hit, bool) {
    let looked_at = std::mem::take(&mut hit.fix);
    let before = hit.evidence.len();
    of_group(&model.machine, &mut hit);
    let is_bound = full_node::of_node(model, &mut hit);
    of_huge_pages(&model.machine, &mut hit);
    let is_withheld = hit.evidence.len() > before;
    // What swaps for want of a node's memory is what waits; a limit makes its own group wait, whether or not anything swaps.
    let symptoms: &[&str] = match (is_bound, hit.subject == "swap") {
        (true, true) => &["PLC-PRESSURE@memory", "PLC-PRESSURE@io", "PLC-IOWAIT@disks", "PLC-KTHREAD@kswapd"],
        (false, false) if is_withheld => &["PLC-SWAP@swap", "PLC-KTHREAD@kswapd"],
        _ => &[],
    };
    hit.explains.extend(symptoms.iter().map(|id| (*id).to_owned()));
    hit.fix.extend(looked_at);
    (hit, is_withheld)
}

/// The group that reaches its limit most often; of equals the lowest, which has the fewest others in it.
fn of_group(machine: &Machine, hit: &mut Hit) {
    let reached = machine.gauges.iter().filter(|gauge| gauge.kind == GaugeKind::LimitReached && gauge.value >= REACHED);
    let depth = |gauge: &Gauge| gauge.subject.matches('/').count();
    let Some(most) = reached.max_by(|a, b| a.value.total_cmp(&b.value).then(depth(a).cmp(&depth(b)))) else { return };
    let path = most.subject.as_str();
    let limit = machine.gauges.iter().find(|gauge| gauge.kind == GaugeKind::MemoryLimit && gauge.subject == path);
    let Some(limit) = limit else { return };
    let inside = |group: Option<&str>| group.is_some_and(|group| is_within_group(group, path));
    let threads =
        machine.threads.iter().filter(|thread| inside(thread.cgroup.as_deref().or(thread.time_group.as_deref())));
    let vms: BTreeSet<&str> = threads.filter_map(|thread| thread.vm.as_deref()).collect();
    let (file, times) = (limit.place.rsplit('/').next().unwrap_or_default(), rate(most.value));
    hit.title = format!(
        "{}: {} reaches its memory limit of {} {times} times per second",
        hit.title,
        named(path),
        bytes(limit.value)
    );
    hit.evidence.push(Evidence::new(format!("{path} was at its limit {times} times per second"), &most.place));
    hit.evidence.push(Evidence::new(format!("{file} is {}", bytes(limit.value)), &limit.place));
    let unit = own_unit(path).map(quoted);
    let of =
        |vm: &str| machine.domains.iter().find(|domain| domain.name == vm).map(|domain| machine.manager_of(domain));
    let only = vms
        .first()
        .filter(|_| vms.len() == 1 && (!path.ends_with(".slice") || path.contains("kubepods")))
        .map(|vm| (quoted(vm), of(vm)));
    let kib = (limit.value / 1_024.0) as u64;
    // libvirt's soft limit is memory.high (virCgroupV2SetMemorySoftLimit, libvirt 10.0).
    let (option, property) =
        if file == "memory.high" { ("--soft-limit", "MemoryHigh") } else { ("--hard-limit", "MemoryMax") };
    match (only, unit) {
        // A pod's limit is its definition's, whichever of its groups reaches it.
        (Some((vm, Some(Manager::KubeVirt { .. }))), _) => {
            hit.fix.push(format!("virsh memtune {vm} {option} N --live --config"));
            hit.undo.push(format!("virsh memtune {vm} {option} {kib} --live --config"));
        }
        _ if path.contains("kubepods") => {
            hit.fix.push("kubectl get pods -A -o wide   # of a pod, resources.limits.memory is this limit".to_owned());
        }
        (Some((vm, Some(Manager::Libvirt | Manager::OpenStack { .. }))), _) => {
            hit.first.push(format!("virsh memtune {vm}   # what is set: the guest's memory and QEMU's own must fit"));
            hit.fix.push(format!("virsh memtune {vm} {option} -1 --live --config"));
            hit.undo.push(format!("virsh memtune {vm} {option} {kib} --live --config"));
        }
        _ if Container::of_group(path).is_some() => {
            let container = Container::of_group(path);
            let set = |memory: &str| Some(container.as_ref()?.set(&format!("--memory {memory} --memory-swap -1"), ""));
            hit.first.extend(container.as_ref().map(Container::shown));
            hit.fix.extend(set("-1").map(|line| format!("{line}   # no limit, or what is needed")));
            hit.undo.extend(set(&limit.value.to_string()));
        }
        (_, Some(unit)) => {
            hit.first.push(format!("systemctl show -p {property} {unit}   # who set it, and for whom?"));
            hit.fix.push(format!("systemctl set-property --runtime {unit} {property}=infinity   # or what is needed"));
            hit.undo.push(format!("systemctl set-property --runtime {unit} {property}={}", limit.value));
        }
        _ => hit.fix.push(format!("grep . {}   # who set it?", quoted(&format!("/{}", limit.place)))),
    }
}

/// Huge pages that nobody has, of which there are more than there is other memory. The kernel keeps those that are promised to
/// somebody whatever number is written (`set_max_huge_pages`, mm/hugetlb.c, Linux 6.12).
fn of_huge_pages(machine: &Machine, hit: &mut Hit) {
    let available = machine.gauges.iter().find(|gauge| gauge.kind == GaugeKind::MemoryAvailable);
    let sizes: BTreeSet<u64> =
        machine.nodes.values().flat_map(|node| node.huge_pages.iter().map(|(kib, ..)| *kib)).collect();
    for kib in sizes {
        let own = machine.nodes.values().flat_map(|node| node.huge_pages.iter().filter(|(size, ..)| *size == kib));
        let (count, free) = own.fold((0, 0), |(count, free), (_, own, unused)| (count + own, free + unused));
        let unused = free as f64 * kib as f64 * 1_024.0;
        let Some(_) = available.filter(|left| free > 0 && unused >= UNUSED * left.value) else { continue };
        let path = format!("sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages");
        hit.title = format!("{}: {} are set aside as huge pages and free", hit.title, bytes(unused));
        let place = format!("sys/devices/system/node/node*/hugepages/hugepages-{kib}kB");
        hit.evidence.push(Evidence::new(format!("{free} of {count} huge pages of {kib} kB are free"), place));
        hit.first
            .push("grep -r hugepages /etc/sysctl.d /proc/cmdline   # who set them aside, for which VMs?".to_owned());
        hit.fix.push(format!("echo {} > /{path}", count - free));
        hit.undo.push(format!("echo {count} > /{path}   # as many as are found together then"));
    }
}

/// Part of all memory that is kept free from which on that is what tasks lack: our own threshold.
const KEPT_FREE: f64 = 0.05;

/// The most that the kernel keeps free by itself (`init_per_zone_wmark_min`, mm/page_alloc.c, Linux 6.12).
const USUALLY_FREE_KIB: f64 = 262_144.0;

/// Why tasks free pages themselves: kswapd begins above `min_free_kbytes` by so many of 10,000 parts of memory, and who is faster than it
/// meets that limit (Documentation/admin-guide/sysctl/vm.rst, watermark_scale_factor, Linux 6.12).
pub(super) fn reclaimed(model: &Model, stalls: &Gauge, hit: &mut Hit) {
    const KEPT: &str = "proc/sys/vm/min_free_kbytes";
    const SCALE: &str = "proc/sys/vm/watermark_scale_factor";
    let number = |path: &str| model.machine.setting(path)?.trim().parse::<f64>().ok();
    hit.title = format!("{}: {} allocations per second waited for that", hit.title, rate(stalls.value));
    hit.evidence
        .push(Evidence::new(format!("{} a second: {}", stalls.kind.words().0, rate(stalls.value)), &stalls.place));
    for (path, value) in [KEPT, SCALE].into_iter().filter_map(|path| Some((path, number(path)?))) {
        hit.evidence.push(Evidence::new(format!("/{path} is {value}"), path));
    }
    let left = largest(model, GaugeKind::MemoryAvailable);
    hit.evidence.extend(left.map(|left| Evidence::new(format!("available: {}", bytes(left.value)), &left.place)));
    let total = largest(model, GaugeKind::MemoryTotal).map_or(f64::INFINITY, |gauge| gauge.value / 1_024.0);
    let change = match (number(KEPT), number(SCALE)) {
        (Some(kept), _) if kept > USUALLY_FREE_KIB && kept >= KEPT_FREE * total => (KEPT, USUALLY_FREE_KIB, kept),
        // Twenty times the kernel's own: 2 % of memory between the two limits.
        (_, Some(scale)) if scale < 200.0 => (SCALE, 200.0, scale),
        _ => return hit.fix.push(format!("grep . /{KEPT} /{SCALE}   # kswapd begins earlier with more of the second")),
    };
    let setting = Setting::Sysctl { path: change.0.trim_start_matches("proc/sys/").to_owned() };
    hit.changes.push(setting.change(change.1.to_string(), Some(change.2.to_string())));
}
