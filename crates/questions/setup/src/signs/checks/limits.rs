//! What somebody allows a disk, against what it does: limits that bind.

use crate::placements::Model;
use crate::signs::Scene;
use base::number::{bytes, duration, percent, plain};
use base::shell::{printable, quoted};
use base::{Level, Severity};
use facts::rule::Hit;
use host::machine::{Disk, DiskMove, Domain, GaugeKind, Quoted};

/// A disk that does as much as it may, within this part of it, is at its limit: our own threshold.
pub(in crate::signs) const AT_LIMIT: f64 = 0.05;

/// The same of a disk that is copied, whose progress is printed in rounded sizes: our own threshold.
pub(in crate::signs) const COPY_AT_LIMIT: f64 = 0.1;

/// What fio did in a job, one way.
struct Did<'a> {
    job: &'a Quoted,
    /// The machine that printed it.
    level: Level,
    is_read: bool,
    iops: f64,
    bytes_per_s: Option<f64>,
}

/// `IOPS=61.2k, BW=239MiB/s (251MB/s)(7172MiB/30009msec)`.
fn did(told: &Quoted, level: Level) -> Option<Did<'_>> {
    let is_read = match told.what.as_str() {
        "fio, read" => true,
        "fio, write" => false,
        _ => return None,
    };
    let number = |text: &str, units: &[(&str, f64)]| {
        let (unit, scale) = units.iter().find(|(unit, _)| text.ends_with(unit)).copied().unwrap_or(("", 1.0));
        text.strip_suffix(unit)?.parse::<f64>().ok().map(|value| value * scale)
    };
    let iops = told.value.strip_prefix("IOPS=")?.split(',').next()?;
    let width = told.value.split_once("BW=").and_then(|(_, rest)| rest.split_whitespace().next());
    let units = [("GiB/s", 1_073_741_824.0), ("MiB/s", 1_048_576.0), ("KiB/s", 1_024.0), ("B/s", 1.0)];
    Some(Did {
        job: told,
        level,
        is_read,
        iops: number(iops, &[("k", 1e3), ("M", 1e6)])?,
        bytes_per_s: width.and_then(|width| number(width, &units)),
    })
}

/// A limit of a disk: `total_iops_sec 600`.
fn limits(disk: &Disk) -> impl Iterator<Item = (&str, f64)> {
    let told = disk.throttle.as_deref().unwrap_or_default().split(", ");
    told.filter_map(|pair| {
        let (name, value) = pair.split_once(' ')?;
        Some((name, value.parse::<f64>().ok().filter(|value| *value > 0.0)?))
    })
}

/// What a job did of what a limit counts, by libvirt's names and Proxmox's (virsh(1), blkdeviotune; qm.conf(5), iops and mbps).
fn counted(did: &Did<'_>, limit: &str) -> Option<f64> {
    let is_own = !limit.starts_with("read_") && !limit.ends_with("_rd") || did.is_read;
    let is_own = is_own && (!limit.starts_with("write_") && !limit.ends_with("_wr") || !did.is_read);
    match limit {
        _ if !is_own => None,
        "total_iops_sec" | "read_iops_sec" | "write_iops_sec" | "iops" | "iops_rd" | "iops_wr" => Some(did.iops),
        "total_bytes_sec" | "read_bytes_sec" | "write_bytes_sec" => did.bytes_per_s,
        "mbps" | "mbps_rd" | "mbps_wr" => did.bytes_per_s.map(|bytes| bytes / 1_048_576.0),
        _ => None,
    }
}

/// Jobs of fio that do exactly what somebody allows a disk of a VM.
pub(in crate::signs) fn disks(scene: &Scene<'_>) -> Vec<Hit> {
    let told = scene.models.iter().flat_map(|model| model.machine.quoted.iter().map(|told| (told, model.level)));
    let jobs: Vec<Did<'_>> = told.filter_map(|(told, level)| did(told, level)).collect();
    let vms = |model: &Model| model.machine.domains.len().max(model.machine.listed_running());
    let vms = scene.models.iter().map(vms).sum::<usize>();
    let mut hits = Vec::new();
    for model in scene.models {
        for (domain, disk) in
            model.machine.domains.iter().flat_map(|domain| domain.disks.iter().map(move |disk| (domain, disk)))
        {
            let bound = limits(disk).find_map(|(name, limit)| {
                let at_limit =
                    |did: &&Did<'_>| counted(did, name).is_some_and(|did| (did - limit).abs() <= AT_LIMIT * limit);
                Some((name, limit, jobs.iter().find(at_limit)?))
            });
            // Of several VMs, or of a job that no guest is known to have run, the numbers alone agree.
            let is_its = |did: &Did<'_>| vms == 1 && did.level > model.level;
            hits.extend(bound.map(|bound| of_disk(model, (domain, disk), bound, is_its(bound.2))));
        }
    }
    hits
}

fn of_disk(
    model: &Model,
    (domain, disk): (&Domain, &Disk),
    (name, limit, did): (&str, f64, &Did<'_>),
    is_its: bool,
) -> Hit {
    let (vm, target) = (&domain.name, &disk.target);
    let (severity, condition) =
        if is_its { (Severity::High, String::new()) } else { (Severity::Medium, format!("if it ran in {vm}, ")) };
    let title = format!(
        "fio's job {} did {} a second, as many as {name} {} of {target} of {vm} allows: {condition}the limit binds, not the disk",
        did.job.subject,
        plain(counted(did, name).unwrap_or(did.iops)),
        plain(limit)
    );
    let mut hit = Hit::new(format!("{vm}-{target}"), severity, title).of_domain(vm);
    hit.level = Some(model.level);
    hit = hit.seen(format!("{name} is {}", plain(limit)), &disk.place).seen(&did.job.value, &did.job.place);
    // How long a request takes on the host, where iostat told it of a disk.
    let kind = if did.is_read { GaugeKind::DiskRead } else { GaugeKind::DiskWrite };
    let of_disk = |wanted: GaugeKind| {
        model
            .machine
            .gauges
            .iter()
            .filter(move |gauge| gauge.kind == wanted && !gauge.subject.contains(", since the VM began"))
    };
    let slowest = of_disk(kind).max_by(|one, other| one.value.total_cmp(&other.value));
    if let Some(slowest) = slowest {
        let busy = of_disk(GaugeKind::DiskBusy).find(|busy| busy.subject == slowest.subject);
        let busy =
            busy.map_or(String::new(), |busy| format!(", and it is busy for {} of the time", percent(busy.value)));
        let what = format!("on the host a request of {} takes {}{busy}", slowest.subject, duration(slowest.value));
        hit = hit.seen(what, &slowest.place);
    }
    let (vm, target) = (quoted(vm), quoted(target));
    if domain.proxmox.is_none() {
        hit.fix.push(format!(
            "virsh blkdeviotune {vm} {target} --{} 0 --live --config   # 0: no limit",
            name.replace('_', "-")
        ));
        hit.undo.push(format!(
            "virsh blkdeviotune {vm} {target} --{} {} --live --config",
            name.replace('_', "-"),
            plain(limit)
        ));
    } else {
        hit.fix.push(format!(
            "qm config {} | grep {target}   # the same line again with qm set, without {name}=",
            domain.proxmox.unwrap_or(0)
        ));
    }
    hit
}

/// Disks that Proxmox copies as fast as somebody allows.
pub(in crate::signs) fn copies(scene: &Scene<'_>) -> Vec<Hit> {
    let moves = scene.models.iter().flat_map(|model| model.machine.disk_moves.iter().map(move |moved| (model, moved)));
    moves.filter_map(|(model, moved)| of_copy(scene, model, moved)).collect()
}

fn of_copy(scene: &Scene<'_>, model: &Model, moved: &DiskMove) -> Option<Hit> {
    let limit = moved.limit_bytes_per_s.as_ref()?;
    if moved.seconds < SHORT_S {
        return None;
    }
    let speed = moved.sent_bytes / moved.seconds;
    if speed < (1.0 - COPY_AT_LIMIT) * limit.value {
        return None;
    }
    let disk = printable(&moved.disk);
    let title = format!(
        "disk {disk} is copied at {}/s, as fast as its bandwidth limit allows: {} take {} at that",
        bytes(speed),
        bytes(moved.total_bytes),
        hours(moved.total_bytes / limit.value)
    );
    let mut hit = Hit::new(moved.disk.as_str(), Severity::High, title);
    hit.level = Some(match model.level {
        Level::Unknown => Level::L0,
        level => level,
    });
    hit = hit
        .seen(format!("its limit is {}/s ({} KiB/s)", bytes(limit.value), plain(limit.value / 1_024.0)), &limit.place);
    hit = hit.seen(
        format!(
            "{} of {} were copied in {}",
            bytes(moved.sent_bytes),
            bytes(moved.total_bytes),
            duration(moved.seconds * 1e9)
        ),
        &moved.place,
    );
    let quoted = || scene.models.iter().flat_map(|model| &model.machine.quoted);
    if let Some(set) = quoted().find(|told| told.what == "datacenter.cfg, bwlimit") {
        hit = hit.seen(format!("datacenter.cfg sets bwlimit to {}", set.value), &set.place);
    }
    let vm = quoted()
        .find(|told| told.what == "Proxmox migrates")
        .map_or("VMID", |told| told.subject.trim_start_matches("VM "));
    hit.fix.push(format!(
        "qm migrate {} TARGET --online --with-local-disks --bwlimit 0   # started again; 0 is no limit, else KiB/s",
        printable(vm)
    ));
    hit.fix.push("grep -rn bwlimit /etc/pve/datacenter.cfg /etc/pve/storage.cfg   # who set it: for migration, clone, move, restore or all (default)".to_owned());
    Some(hit)
}

/// Progress of fewer seconds is no speed: our own limit.
const SHORT_S: f64 = 3.0;

/// `14.2 h`, or `7.0 min`.
fn hours(seconds: f64) -> String {
    if seconds < 3_600.0 { format!("{:.0} min", seconds / 60.0) } else { format!("{:.1} h", seconds / 3_600.0) }
}
