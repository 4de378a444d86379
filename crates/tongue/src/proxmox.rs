//! Commands about one device of a VM whose definition Proxmox VE showed: its own line with what changes, and the line as it was.
//!
//! ```text
//! net1: e1000=BC:24:11:AA:BB:CD,bridge=vmbr1      -->  qm set 204 --net1 virtio=BC:24:11:AA:BB:CD,bridge=vmbr1
//! sata0: local-lvm:vm-204-disk-0,cache=writeback  -->  qm set 204 --delete sata0; qm set 204 --scsi0 local-lvm:vm-204-disk-0,..
//! ```
//! Sources: qm(1) and qm.conf(5), Proxmox VE 8.2: an option is set whole, what is deleted of a disk stays as `unusedN`, and
//! `iothread` works below `virtio-scsi-single` alone.

use base::shell::quoted;
use host::machine::Domain;

/// What changes a device, and what changes it back.
pub(crate) struct Spelled {
    pub fix: Vec<String>,
    pub undo: Vec<String>,
}

/// A line of the table about a device in the words of the VM's own definition; `None` where that was not read.
pub(crate) fn spelled(domain: &Domain, id: u32, subject: &str, line: &str) -> Option<Spelled> {
    let device = subject.strip_prefix(domain.name.as_str())?.strip_prefix('-')?;
    let value = domain.options.get(device)?;
    let set = |option: &str, value: &str| format!("qm set {id} --{option} {}", quoted(value));
    if line.contains(" --net0 virtio,bridge=BRIDGE") {
        let queues =
            if line.contains("queues=N") { ",queues=N   # as many as it has vCPUs that work on packets" } else { "" };
        let fix = format!("{}{queues}", set(device, &virtio(value)));
        return Some(Spelled { fix: vec![fix], undo: vec![set(device, value)] });
    }
    let (_, wanted) = line.split_once(" --scsi0 VOLUME,")?;
    let wanted = wanted.split("   # ").next().unwrap_or_default();
    let volume = value.split(',').next().unwrap_or_default();
    let stays = device.starts_with("scsi") || device.starts_with("virtio");
    let slot = if stays { device.to_owned() } else { free_slot(domain) };
    let mut spelled = Spelled { fix: Vec::new(), undo: Vec::new() };
    let single = "virtio-scsi-single";
    let controller = domain.options.get("scsihw").map_or("", String::as_str);
    if slot.starts_with("scsi") && wanted.contains("iothread") && controller != single {
        spelled.fix.push(set("scsihw", single));
        spelled.undo.push(if controller.is_empty() {
            format!("qm set {id} --delete scsihw")
        } else {
            set("scsihw", controller)
        });
    }
    if !stays {
        spelled
            .fix
            .push(format!("qm set {id} --delete {device}   # with the VM stopped: the volume stays, as unused0"));
        spelled.undo.push(format!("qm set {id} --delete {slot}"));
    }
    let driver = if stays { "" } else { "   # Windows needs the virtio driver first" };
    spelled.fix.push(format!("{}{driver}", set(&slot, &format!("{volume},{wanted}{}", rest(value)))));
    spelled.undo.push(set(device, value));
    let boot = domain.options.get("boot").filter(|order| !stays && order.contains(device));
    if let Some(order) = boot {
        spelled.fix.push(set("boot", &order.replace(device, &slot)));
        spelled.undo.push(set("boot", order));
    }
    Some(spelled)
}

/// The card with another model: the first part is `MODEL=MAC`, or the model alone.
fn virtio(value: &str) -> String {
    let (card, rest) = value.split_once(',').map_or((value, String::new()), |(card, rest)| (card, format!(",{rest}")));
    let mac = card.split_once('=').map_or(String::new(), |(_, mac)| format!("={mac}"));
    format!("virtio{mac}{rest}")
}

/// What a disk has beside what is set anew.
fn rest(value: &str) -> String {
    let set_anew = ["cache=", "aio=", "iothread=", "size="];
    let kept = value.split(',').skip(1).filter(|part| !set_anew.iter().any(|key| part.starts_with(key)));
    kept.map(|part| format!(",{part}")).collect()
}

fn free_slot(domain: &Domain) -> String {
    let free = (0..31).map(|number| format!("scsi{number}")).find(|slot| !domain.options.contains_key(slot));
    free.unwrap_or_else(|| "scsi0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain() -> Domain {
        let options = [
            ("net1", "e1000=BC:24:11:AA:BB:CD,bridge=vmbr1,firewall=1"),
            ("sata0", "local-lvm:vm-204-disk-0,cache=writeback,discard=on,size=32G"),
            ("scsi0", "tank:vm-204-disk-1,size=2T"),
            ("boot", "order=sata0;net0"),
        ];
        let options = options.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Domain { name: "nas".into(), options, ..Domain::default() }
    }

    #[test]
    fn a_card_keeps_its_number_its_address_and_its_bridge() {
        let Spelled { fix, undo } =
            spelled(&domain(), 204, "nas-net1", "qm set 204 --net0 virtio,bridge=BRIDGE   # ..").unwrap();
        assert_eq!(fix, ["qm set 204 --net1 virtio=BC:24:11:AA:BB:CD,bridge=vmbr1,firewall=1"]);
        assert_eq!(undo, ["qm set 204 --net1 e1000=BC:24:11:AA:BB:CD,bridge=vmbr1,firewall=1"]);
        assert!(spelled(&domain(), 204, "nas-net7", "qm set 204 --net0 virtio,bridge=BRIDGE").is_none());
    }

    #[test]
    fn a_disk_moves_to_a_free_slot_and_is_booted_from_there() {
        let line = "qm set 204 --scsi0 VOLUME,iothread=1,aio=native,cache=none   # qm config 204 has the volume";
        let moved = spelled(&domain(), 204, "nas-sata0", line).unwrap();
        assert_eq!(
            moved.fix,
            [
                "qm set 204 --scsihw virtio-scsi-single",
                "qm set 204 --delete sata0   # with the VM stopped: the volume stays, as unused0",
                "qm set 204 --scsi1 local-lvm:vm-204-disk-0,iothread=1,aio=native,cache=none,discard=on   # Windows needs the virtio driver first",
                "qm set 204 --boot 'order=scsi1;net0'",
            ]
        );
        assert_eq!(
            moved.undo[1..],
            [
                "qm set 204 --delete scsi1",
                "qm set 204 --sata0 local-lvm:vm-204-disk-0,cache=writeback,discard=on,size=32G",
                "qm set 204 --boot 'order=sata0;net0'"
            ]
        );
        let stays = spelled(&domain(), 204, "nas-scsi0", "qm set 204 --scsi0 VOLUME,cache=none").unwrap();
        assert_eq!(stays.fix, ["qm set 204 --scsi0 tank:vm-204-disk-1,cache=none"]);
    }
}
