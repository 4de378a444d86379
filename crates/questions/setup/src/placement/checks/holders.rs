//! Who has the memory that VMs swap for: a process of no VM, whose it is, and what bounds it there.

use super::slice::unit;
use super::strain::largest;
use crate::placement::model::Model;
use base::Evidence;
use base::number::bytes;
use base::shell::{printable, quoted};
use facts::rule::Hit;
use host::Machine;
use host::machine::{GaugeKind, Holder, unit_of};

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
        Some(owner) => owner.bounds(&model.machine, &size, hit),
        None => hit.fix.push(format!(
            "ps -o pid,ppid,rss,args -p {}   # what started {name}, and how much memory is it to have?",
            holder.pid
        )),
    }
    true
}

/// Whose a process is, by its group.
enum Owner<'a> {
    /// A container of Incus or LXD, with its group.
    Incus(&'a str, String),
    /// One of Proxmox, by its number.
    Proxmox(&'a str),
    Pod,
    /// A unit of systemd, with its group.
    Unit(&'a str, &'a str),
}

fn owner(holder: &Holder) -> Option<Owner<'_>> {
    let path = holder.group.as_deref()?;
    if path.contains("kubepods") {
        return Some(Owner::Pod);
    }
    let first = path.strip_prefix('/')?.split('/').next()?;
    if let Some(name) = first.strip_prefix("lxc.payload.") {
        return Some(Owner::Incus(name, format!("/{first}")));
    }
    if let Some(rest) = path.strip_prefix("/lxc/") {
        return rest.split('/').next().map(Owner::Proxmox);
    }
    let name = unit_of(path)?;
    let end = path.find(name)? + name.len();
    // The slice of all services is no owner.
    (!name.ends_with(".slice")).then(|| Owner::Unit(name, &path[..end]))
}

impl Owner<'_> {
    /// `container web`, `backup.service`.
    fn label(&self) -> String {
        match self {
            Owner::Incus(name, _) => format!("container {}", printable(name)),
            Owner::Proxmox(id) => format!("container {}", printable(id)),
            Owner::Pod => "a pod".to_owned(),
            Owner::Unit(name, _) => printable(name).into_owned(),
        }
    }

    /// What gives it less, in the words of whoever owns it; the way back is the limit that was read.
    fn bounds(&self, machine: &Machine, gib: &str, hit: &mut Hit) {
        let limit = |path: &str, file: &str| {
            let file = format!("sys/fs/cgroup{path}/{file}");
            machine.settings.get(&file).map(|told| told.value.trim().to_owned())
        };
        const THEN: &str = "it is to do with less: beyond that its own tasks swap or are killed, and no VM";
        match self {
            Owner::Incus(name, path) => {
                let name = quoted(name);
                hit.first.push(format!("incus config get {name} limits.memory   # with LXD: lxc in place of incus; nothing: all of the host's"));
                hit.fix.push(format!("incus config set {name} limits.memory={gib}GiB   # {THEN}"));
                hit.undo.push(match limit(path, "memory.max").filter(|limit| limit != "max") {
                    Some(limit) => format!("incus config set {name} limits.memory={limit}"),
                    None => format!("incus config unset {name} limits.memory"),
                });
            }
            Owner::Proxmox(id) => {
                let id = quoted(id);
                hit.first.push(format!(
                    "pct config {id} | grep -E 'memory|swap'   # before the change: it has what was set"
                ));
                let mib = gib.parse::<u64>().map_or_else(|_| "MB".to_owned(), |gib| (gib << 10).to_string());
                hit.fix.push(format!("pct set {id} --memory {mib}   # {THEN}"));
            }
            Owner::Pod => {
                hit.fix.push("kubectl get pods -A -o wide   # of its pod, resources.limits.memory bounds it".to_owned())
            }
            Owner::Unit(_, path) => {
                let unit = unit(path);
                hit.first
                    .push(format!("systemctl show -p MemoryHigh -p MemoryMax {unit}   # who set it, and for whom?"));
                hit.fix.push(format!("systemctl set-property --runtime {unit} MemoryHigh={gib}G   # {THEN}"));
                let was = limit(path, "memory.high")
                    .map_or(String::new(), |limit| if limit == "max" { "infinity".to_owned() } else { limit });
                hit.undo.push(format!("systemctl set-property --runtime {unit} MemoryHigh={was}"));
            }
        }
    }
}
