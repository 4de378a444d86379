//! Who bounds the memory of a process, by its group: a container's manager, Kubernetes, systemd.

use crate::groups::{Typed, unit};
use base::shell::{printable, quoted};
use host::Machine;
use host::machine::{Container, Holder, unit_of};

/// Whose a process is, by its group.
pub enum Owner<'a> {
    /// A container of Incus or LXD, with its group.
    Incus(&'a str, String),
    /// One of Proxmox, by its number.
    Proxmox(&'a str),
    /// A pod of Kubernetes.
    Pod,
    /// One of Docker or Podman, with its group.
    Engine(Container, &'a str),
    /// A unit of systemd, with its group.
    Unit(&'a str, &'a str),
}

/// Whose a process is; none where its group is nobody's.
pub fn owner(holder: &Holder) -> Option<Owner<'_>> {
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
    if let Some(container) = Container::of_group(path) {
        return Some(Owner::Engine(container, path));
    }
    let name = unit_of(path)?;
    let end = path.find(name)? + name.len();
    // The slice of all services is no owner.
    (!name.ends_with(".slice")).then(|| Owner::Unit(name, &path[..end]))
}

impl Owner<'_> {
    /// `container web`, `backup.service`.
    pub fn label(&self) -> String {
        match self {
            Owner::Incus(name, _) => format!("container {}", printable(name)),
            Owner::Proxmox(id) => format!("container {}", printable(id)),
            Owner::Pod => "a pod".to_owned(),
            Owner::Engine(container, _) => container.label(),
            Owner::Unit(name, _) => printable(name).into_owned(),
        }
    }

    /// What gives it less, in the words of whoever owns it; the way back is the limit that was read.
    pub fn bounds(&self, machine: &Machine, gib: &str) -> Typed {
        let mut hit = Typed::default();
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
            // A limit of memory is refused where that of memory and swap is lower (docker update).
            Owner::Engine(container, path) => {
                hit.first.push(container.shown());
                let set = |memory: &str| container.set(&format!("--memory {memory} --memory-swap -1"), "");
                hit.fix.push(format!("{}   # {THEN}", set(&format!("{gib}g"))));
                hit.undo
                    .push(set(&limit(path, "memory.max").filter(|limit| limit != "max").unwrap_or("-1".to_owned())));
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
        hit
    }
}
