//! A host that moves memory to a disk and back: why, and whose memory it is.

use super::holders;
use super::nova;
use super::strain::largest;
use super::withheld;
use crate::placement::model::Model;
use base::number::{bytes, list, many, rate};
use base::{Evidence, Severity};
use facts::rule::Hit;
use host::machine::{Domain, Gauge, GaugeKind, Manager};

/// Bytes a second in and out of swap from which a host swaps: 256 pages. Our own threshold.
pub(in crate::placement) const SWAPPING: f64 = 1_048_576.0;

/// A host with so many times the memory available that it has swapped out is not short of it: our own threshold.
pub(in crate::placement) const LEFT: f64 = 2.0;

/// Which groups have a limit that makes them swap (Documentation/admin-guide/cgroup-v2.rst, memory.high, memory.swap.current, Linux 6.12).
const LIMITS: &str = "find /sys/fs/cgroup -name memory.high -o -name memory.max -o -name memory.swap.current | xargs grep -Hv -e max -e '^0$'   \
    # whose limit is it? <memtune> of libvirt, MemoryHigh= and MemoryMax= of systemd set one";

/// A host that moves memory to a disk and back.
pub(crate) fn swap(model: &Model) -> Vec<Hit> {
    let (into, out) = (largest(model, GaugeKind::SwappedIn), largest(model, GaugeKind::SwappedOut));
    if ![into, out].into_iter().flatten().any(|gauge| gauge.value >= SWAPPING) {
        return Vec::new();
    }
    let told = |gauge: Option<&Gauge>, way: &str| gauge.map(|gauge| format!("{}/s {way}", bytes(gauge.value)));
    let rates: Vec<String> = [told(into, "in"), told(out, "out")].into_iter().flatten().collect();
    let gauge = |kind| largest(model, kind).map(|gauge| gauge.value);
    let left = gauge(GaugeKind::MemoryAvailable)
        .filter(|left| gauge(GaugeKind::SwapUsed).is_some_and(|used| *left > LEFT * used));
    let though = left.map_or(String::new(), |left| format!(" though {} are available", bytes(left)));
    let title =
        format!("the host swaps{though}: {}; guests wait for the disk wherever they touch what is out", list(&rates));
    let mut hit = Hit::new("swap", Severity::Medium, title);
    if left.is_some() {
        hit.fix.push(LIMITS.to_owned());
    }
    for (gauge, way) in [(into, "in"), (out, "out")] {
        if let Some(gauge) = gauge {
            hit = hit.seen(format!("swapped {way} at most {}/s", bytes(gauge.value)), &gauge.place);
        }
    }
    for kind in [GaugeKind::SwapUsed, GaugeKind::MemoryAvailable, GaugeKind::TasksBlocked] {
        if let Some(gauge) = largest(model, kind) {
            let (words, unit) = kind.words();
            let value = if unit == "B" { bytes(gauge.value) } else { rate(gauge.value) };
            hit = hit.seen(format!("{words}: {value}"), &gauge.place);
        }
    }
    for told in model.machine.quoted.iter().filter(|told| told.what.contains("VmSwap")) {
        hit = hit.seen(format!("{} of {}: {}", told.what, told.subject, told.value), &told.place);
    }
    let (mut hit, is_withheld) = withheld::causes(model, hit);
    if !is_withheld {
        // Nothing withholds what is there: then tasks wait for memory and disks because it swaps.
        let symptoms = ["PLC-PRESSURE@memory", "PLC-PRESSURE@io", "PLC-IOWAIT@disks", "PLC-KTHREAD@kswapd"];
        hit.explains.extend(symptoms.map(str::to_owned));
        if !holders::holder(model, &mut hit) && !holders::kernel(model, &mut hit) {
            overcommitted(model, &mut hit);
        }
    }
    hit.fix.push(whose_swap(model).to_owned());
    vec![hit]
}

/// Part of the host's memory that guests may have: QEMU's own and the host's tasks are in the rest. Our own limit.
pub(in crate::placement) const FOR_GUESTS: f64 = 0.95;

/// Guests that were promised more memory than the host can give.
fn overcommitted(model: &Model, hit: &mut Hit) {
    let domains = &model.machine.domains;
    let promised: Option<u64> = domains.iter().map(|domain| domain.memory_bytes).sum();
    let of_nodes: Option<u64> = model.machine.nodes.values().map(|node| node.total_bytes).sum();
    let total = largest(model, GaugeKind::MemoryTotal).map(|gauge| gauge.value);
    let total = total.or(of_nodes.map(|all| all as f64)).filter(|total| *total > 0.0);
    let Some((promised, total)) =
        promised.zip(total).filter(|(promised, total)| *promised as f64 > FOR_GUESTS * *total)
    else {
        return;
    };
    let (guests, sum) = (many(domains.len() as u64, "guest"), bytes(promised as f64));
    hit.title = format!("{}; {guests} may have {sum}, the host has {}", hit.title, bytes(total));
    hit.evidence.push(Evidence::new(format!("{guests} with {sum} in all"), "their definitions"));
    let server = domains.iter().find_map(|domain| nova::server(model, &domain.name));
    let over = bytes(promised as f64 - FOR_GUESTS * total);
    match server {
        Some(server) => {
            nova::migrates(hit, &server, &format!("this or others, until guests have {over} less here"));
            hit.fix.push(
                "crudini --set /etc/nova/nova.conf DEFAULT ram_allocation_ratio 1.0   # and reserved_host_memory_mb for the host itself; then restart nova-compute: no others come instead"
                    .to_owned(),
            );
            hit.undo.push(
                "grep ram_allocation_ratio /etc/nova/nova.conf   # before the change: it has what was set".to_owned(),
            );
        }
        None => hit.fix.push(format!(
            "# a guest of {over} or more to another host, or less memory for some: no setting makes up for it"
        )),
    }
}

/// Whose memory is out: by libvirt's own account where all VMs are its, else by that of their processes (proc(5), VmSwap).
fn whose_swap(model: &Model) -> &'static str {
    let is_libvirts = |domain: &Domain| matches!(model.machine.manager_of(domain), Manager::Libvirt);
    match model.machine.domains.iter().all(is_libvirts) {
        true => {
            "for d in $(virsh list --name); do echo \"$d\"; virsh dommemstat \"$d\" | grep -E 'actual|rss|swap_in'; done   # who has it"
        }
        false => "grep VmSwap /proc/[0-9]*/status | sort -rn -k 2 | head   # who has it: ps -o args -p PID",
    }
}
