//! Who has the memory that VMs swap for: a process of no VM, whose it is, and what bounds it there.

use super::strain::largest;
use crate::page::typed;
use crate::placement::model::Model;
use base::number::bytes;
use base::shell::printable;
use base::{Evidence, Setting};
use facts::rule::Hit;
use host::machine::{GaugeKind, Holder};
use tongue::holders::owner;

/// Of all memory, what one process must have to be what VMs lack: our own limit.
pub(in crate::placement) const MUCH: f64 = 0.25;

const GIB: f64 = (1_u64 << 30) as f64;

/// The hit with the largest process of no VM, where it has much, and what bounds it; true if there is one.
pub(super) fn holder(model: &Model, hit: &mut Hit) -> bool {
    let total = largest(model, GaugeKind::MemoryTotal).map(|gauge| gauge.value);
    let much = |holder: &&Holder| total.is_some_and(|total| holder.resident.value as f64 >= MUCH * total);
    let Some(holder) = model.machine.holders.first().filter(much) else { return false };
    let (name, has) = (printable(&holder.name), bytes(holder.resident.value as f64));
    let of = owner(holder).map_or(String::new(), |owner| format!(" of {}", owner.label()));
    hit.title = format!("{}; {name} ({}){of} has {has}", hit.title, holder.pid);
    hit.evidence.push(Evidence::new(format!("{name} ({}) has {has} in memory", holder.pid), &holder.resident.place));
    // Less by what is out: then that fits again.
    let out = largest(model, GaugeKind::SwapUsed).map_or(0.0, |gauge| gauge.value);
    let less = ((holder.resident.value as f64 - out) / GIB).floor();
    let size = if less >= 1.0 { format!("{less:.0}") } else { "N".to_owned() };
    match owner(holder) {
        Some(owner) => typed(hit, owner.bounds(&model.machine, &size)),
        None => hit.fix.push(format!(
            "ps -o pid,ppid,rss,args -p {}   # what started {name}, and how much memory is it to have?",
            holder.pid
        )),
    }
    true
}

/// The hit with what the kernel itself has much of, where no process does; true if there is something.
pub(super) fn kernel(model: &Model, hit: &mut Hit) -> bool {
    let Some(total) = largest(model, GaugeKind::MemoryTotal).map(|gauge| gauge.value) else { return false };
    // Guests' memory may be shared memory.
    let of_guests = model.machine.domains.iter().filter_map(|domain| domain.memory_bytes).sum::<u64>() as f64;
    let kinds = [(GaugeKind::ZfsCache, 0.0), (GaugeKind::KernelObjects, 0.0), (GaugeKind::SharedMemory, of_guests)];
    let much = kinds.into_iter().filter_map(|(kind, others)| {
        let gauge = largest(model, kind)?;
        Some((gauge, gauge.value - others)).filter(|(_, value)| *value >= MUCH * total)
    });
    let Some((gauge, value)) = much.max_by(|a, b| a.1.total_cmp(&b.1)) else { return false };
    let words = gauge.kind.words().0;
    hit.title = format!("{}; {words}: {}", hit.title, bytes(gauge.value));
    hit.evidence.push(Evidence::new(format!("{words}: {}", bytes(gauge.value)), &gauge.place));
    match gauge.kind {
        GaugeKind::ZfsCache => {
            let out = largest(model, GaugeKind::SwapUsed).map_or(0.0, |gauge| gauge.value);
            let less = ((value - out) / GIB).floor().max(1.0) * GIB;
            let path = "module/zfs/parameters/zfs_arc_max".to_owned();
            let was = model.machine.setting(&format!("sys/{path}")).map(|told| told.trim().to_owned());
            hit.changes.push(Setting::SysfsWrite { path }.change(format!("{less:.0}"), was));
            hit.fix.push(format!(
                "# to keep it: options zfs zfs_arc_max={less:.0} in /etc/modprobe.d/zfs.conf, then update-initramfs -u; reads then miss the cache more often"
            ));
        }
        GaugeKind::KernelObjects => hit.fix.push("slabtop -o -s c | head -15   # which of them, and what made so many".to_owned()),
        _ => hit.fix.push("df -h -t tmpfs; ipcs -m; lsof +L1 2>/dev/null | grep memfd   # whose files these are: removed, their memory is free".to_owned()),
    }
    true
}
