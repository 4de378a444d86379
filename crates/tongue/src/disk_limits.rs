//! Limits that groups have of disks, and what takes them away.

use crate::groups::Typed;
use base::number::{bytes, rate};
use base::shell::quoted;
use host::machine::{Container, DiskLimit, DiskLimitKind, own_unit};

/// What takes a limit away: where libvirt set it for its one VM, `vm`, by its word; else by the unit, else by the group's file.
pub fn lifted(limit: &DiskLimit, vm: Option<&str>) -> Typed {
    let mut hit = Typed::default();
    let path = limit.group.as_str();
    let (device, value) = (limit.disk.as_ref().map(|disk| format!("/dev/{disk}")), limit.most);
    let unit = own_unit(path).filter(|_| Container::of_group(path).is_none());
    match (vm, unit, device) {
        (Some(vm), unit, Some(device)) if unit.is_none_or(|unit| !unit.ends_with(".slice")) => {
            let line = |most: u64| {
                format!(
                    "virsh blkiotune {} --device-{}-sec {device},{most} --live --config",
                    quoted(vm),
                    virsh(limit.kind)
                )
            };
            hit.fix.insert(0, format!("{}   # 0: no limit", line(0)));
            hit.undo.push(line(value));
        }
        (_, Some(unit), Some(device)) => {
            let line = |most: &str| {
                format!("systemctl set-property --runtime {} '{}={device} {most}'", quoted(unit), property(limit.kind))
            };
            hit.first.push(format!(
                "systemctl show -p {} {}   # who set it, and for whom?",
                property(limit.kind),
                quoted(unit)
            ));
            hit.fix.insert(0, line("infinity"));
            hit.undo.push(line(&value.to_string()));
        }
        _ => {
            let line = |most: &str| {
                format!(
                    "echo '{} {}={most}' > {}",
                    limit.number,
                    limit.kind.key(),
                    quoted(&format!("/{}", limit.place))
                )
            };
            hit.fix.insert(0, format!("{}   # until it starts anew", line("max")));
            hit.undo.push(line(&value.to_string()));
        }
    }
    hit
}

/// `200 reads per second`, `10.0 MB written per second`.
pub fn amount(kind: DiskLimitKind, value: f64) -> String {
    match kind {
        DiskLimitKind::ReadBytes => format!("{} read per second", bytes(value)),
        DiskLimitKind::WrittenBytes => format!("{} written per second", bytes(value)),
        DiskLimitKind::Reads => format!("{} reads per second", rate(value)),
        DiskLimitKind::Writes => format!("{} writes per second", rate(value)),
    }
}

/// Its property of a unit (systemd.resource-control(5)).
fn property(kind: DiskLimitKind) -> &'static str {
    match kind {
        DiskLimitKind::ReadBytes => "IOReadBandwidthMax",
        DiskLimitKind::WrittenBytes => "IOWriteBandwidthMax",
        DiskLimitKind::Reads => "IOReadIOPSMax",
        DiskLimitKind::Writes => "IOWriteIOPSMax",
    }
}

/// Its word of virsh(1), blkiotune.
fn virsh(kind: DiskLimitKind) -> &'static str {
    match kind {
        DiskLimitKind::ReadBytes => "read-bytes",
        DiskLimitKind::WrittenBytes => "write-bytes",
        DiskLimitKind::Reads => "read-iops",
        DiskLimitKind::Writes => "write-iops",
    }
}
