//! What keeps a guest from being moved, as it was started: rules as data.

use super::Guest;
use base::number::list;
use base::rule::Words;
use base::shell::quoted;
use base::{Evidence, Finding, Level, Severity};
use facts::rule::Hit;
use host::migrated::obstacles::Obstacle;

type Rule = facts::rule::Rule<fn(&Guest) -> Option<Hit>>;

/// What cannot be migrated at all.
pub(super) const BLOCKED: &str = "MIG-BLOCKED";

/// Drivers that hand on the state of a device (drivers/vfio/pci, Linux 6.12; its folder xe, 6.19).
const TAKES_STATE: [&str; 6] =
    ["mlx5_vfio_pci", "hisi_acc_vfio_pci", "pds_vfio_pci", "qat_vfio_pci", "virtio_vfio_pci", "xe_vfio_pci"];
/// The one that does not.
const WITHOUT_STATE: &str = "vfio-pci";

/// All rules, in the order in which equal findings are shown.
const RULES: &[Rule] = &[
    Rule {
        id: BLOCKED,
        per: "VM",
        looks_at: "Whether a device, a CPU flag or a reason that QEMU reports prevents the migration.",
        why: "QEMU refuses to migrate a guest of which it cannot take everything along: the state of a device of the host whose driver does not hand it on, \
              a TSC whose rate another CPU would not keep, encrypted memory.",
        source: "vfio_block_migration in hw/vfio/migration.c, kvm_arch_init_vcpu in target/i386/kvm/kvm.c, sev_kvm_init in target/i386/sev.c, QEMU 7.2",
        ..Rule::checked_by(blocked)
    },
    Rule {
        id: "MIG-FAILOVER",
        per: "VM",
        looks_at: "Whether a card is the standby of a pair: its primary is unplugged before the migration.",
        why: "The guest's net_failover driver uses the standby while the primary is unplugged, from before the first pass until a device is \
              plugged in on the target: for seconds packets take the slow path. Without a primary, or without that driver, the pair does nothing.",
        source: "docs/system/virtio-net-failover.rst, QEMU 7.2",
        ..Rule::checked_by(failover)
    },
    Rule {
        id: "MIG-POSTCOPY",
        per: "VM",
        looks_at: "Whether a device shuts out post-copy, which ends a migration that does not converge.",
        why: "After the switch the guest waits for pages that are still on the source. What writes to its memory without QEMU has to wait as well: a device of the \
              host cannot, and another process must have offered it (VHOST_USER_PROTOCOL_F_PAGEFAULT).",
        source: "vhost_user_postcopy_notifier in hw/virtio/vhost-user.c, QEMU 7.2; commit bf7ef7a2da3e (VFIO); vhost-postcopy-support in ovs-vswitchd.conf.db(5)",
        ..Rule::checked_by(post_copy)
    },
    Rule {
        id: "MIG-TARGET",
        per: "VM",
        looks_at: "What the other host must have, and this command line takes from this one.",
        why: "A migration carries memory and the state of devices. CPU model, huge pages, sockets of other processes and files stay on this host: \
              if the target lacks one, it refuses the migration, or the guest finds different hardware.",
        source: "docs/devel/migration.rst and docs/system/cpu-models-x86.rst.inc, QEMU 7.2",
        ..Rule::checked_by(target)
    },
];

pub fn words() -> Vec<Words> {
    RULES.iter().map(Rule::words).collect()
}

pub(in super::super) fn findings(guest: &Guest, level: Level) -> Vec<Finding> {
    RULES.iter().filter_map(|rule| Some(rule.finding((rule.check)(guest)?, level))).collect()
}

/// Seen on the command line.
fn seen(guest: &Guest, what: impl Into<String>) -> Evidence {
    Evidence::new(what, guest.place.clone())
}

/// What takes a device away from a running guest.
fn unplug(guest: &Guest, id: &str) -> String {
    match (guest.started.is_libvirts, id) {
        (_, "") => "unplug it: it has no id, so the guest has to be started without it".to_owned(),
        (true, id) => format!("virsh detach-device-alias DOMAIN {} --live", quoted(id)),
        (false, id) => format!("device_del {}   # in QEMU's monitor", quoted(id)),
    }
}

/// The same of this VM.
fn named(command: String, guest: &Guest) -> String {
    let command = guest.proxmox.map_or_else(|| command.clone(), |id| command.replace("VMID", &id.to_string()));
    command.replace("DOMAIN", &quoted(&guest.name))
}

fn blocked(guest: &Guest) -> Option<Hit> {
    let mut reasons: Vec<(String, Vec<String>, bool)> = Vec::new();
    for obstacle in &guest.started.obstacles {
        match obstacle {
            // Its primary is unplugged before anything is sent.
            Obstacle::Vfio { pair: Some(_), .. } => {}
            Obstacle::Vfio { address, id, .. } => {
                let driver = guest.drivers.get(address).map(String::as_str);
                let (what, is_certain) = match driver {
                    Some(driver) if TAKES_STATE.contains(&driver) => continue,
                    Some(WITHOUT_STATE) => {
                        (format!("{address} is served by vfio-pci, which cannot transfer its state"), true)
                    }
                    Some(other) => (format!("{address} is served by {other}, not known to transfer its state"), false),
                    None => (format!("{address} is a device of this host; which driver serves it is not known"), false),
                };
                let pair = "start it with a pair: virtio-net failover=on, and failover_pair_id of the device (libvirt: teaming)";
                reasons.push((what, vec![unplug(guest, id), pair.to_owned()], is_certain));
            }
            Obstacle::Invtsc(word) => {
                let fix = match (*word, guest.started.is_libvirts) {
                    ("migratable=off", true) => "virsh edit DOMAIN   # <cpu mode='host-passthrough' migratable='on'>",
                    ("migratable=off", false) => "start it with -cpu host, which is migratable=on",
                    (_, true) => {
                        "virsh edit DOMAIN   # <feature policy='disable' name='invtsc'/>, or <timer name='tsc' frequency='HZ'/>"
                    }
                    (_, false) => {
                        "start it without invtsc, or with tsc-frequency=HZ of a TSC that both hosts can give it"
                    }
                };
                let what = format!("-cpu has {word} without tsc-frequency: the TSC is declared to keep its rate");
                reasons.push((what, vec![fix.to_owned()], *word == "invtsc"));
            }
            Obstacle::VirtioFs(id) => reasons.push((
                format!("{id} is a virtiofs, of which QEMU before 8.2 takes no state along"),
                vec![format!("{}   # after the guest has unmounted it", unplug(guest, id))],
                false,
            )),
            Obstacle::Encrypted(id) => reasons.push((
                format!("{id} encrypts its memory, which no other host can read"),
                vec!["shut it down, and start it on the other host".to_owned()],
                true,
            )),
            _ => {}
        }
    }
    let by_qemu = guest.reasons.iter().map(|reason| format!("QEMU: {}", reason.trim()));
    let certain = reasons.iter().any(|(.., is_certain)| *is_certain) || !guest.reasons.is_empty();
    let whys: Vec<String> = reasons.iter().map(|(why, ..)| why.clone()).chain(by_qemu).collect();
    let first = whys.first()?;
    let title = if certain { format!("Cannot be migrated: {first}") } else { format!("May not be migrated: {first}") };
    let severity = match (guest.is_asked, certain) {
        (true, true) => Severity::High,
        (true, false) => Severity::Medium,
        (false, _) => Severity::Low,
    };
    let mut hit = Hit::new(guest.name.clone(), severity, title).of_domain(&guest.name);
    for why in whys {
        hit = hit.with(seen(guest, why));
    }
    hit.fix = reasons.into_iter().flat_map(|(_, fix, _)| fix).map(|fix| named(fix, guest)).collect();
    hit.fix.dedup();
    Some(hit)
}

fn failover(guest: &Guest) -> Option<Hit> {
    let mut pairs = guest.started.obstacles.iter().filter_map(|obstacle| match obstacle {
        Obstacle::Standby { id, has_primary } => Some((id, *has_primary)),
        _ => None,
    });
    let (id, has_primary) = pairs.next()?;
    let (severity, title) = if has_primary {
        (
            Severity::Info,
            format!("The primary of {id} is unplugged for the migration: packets take {id} until it is over"),
        )
    } else {
        (Severity::Low, format!("{id} is the standby of a pair without a primary: failover=on does nothing"))
    };
    let mut hit = Hit::new(guest.name.clone(), severity, title).with(seen(guest, format!("failover=on of {id}")));
    hit.fix = if has_primary {
        vec!["lsmod | grep net_failover   # in the guest: without it nothing takes over".to_owned()]
    } else {
        vec![format!("start it with the primary: -device vfio-pci,host=ADDRESS,failover_pair_id={id}")]
    };
    Some(hit)
}

fn post_copy(guest: &Guest) -> Option<Hit> {
    let (mut shut_out, mut served) = (Vec::new(), Vec::new());
    for obstacle in &guest.started.obstacles {
        match obstacle {
            Obstacle::Vfio { address, pair: None, .. } => shut_out.push(address.clone()),
            Obstacle::VhostUser(id) => served.push(id.clone()),
            _ => {}
        }
    }
    if shut_out.is_empty() && served.is_empty() {
        return None;
    }
    let title = if shut_out.is_empty() {
        format!("Post-copy only where the process that serves {} offers it", list(&served))
    } else {
        format!("No post-copy: {} writes to memory without QEMU", list(&shut_out))
    };
    let mut hit = Hit::new(guest.name.clone(), Severity::Info, title);
    for what in shut_out
        .iter()
        .map(|address| format!("{address} by VFIO"))
        .chain(served.iter().map(|id| format!("{id} by vhost-user")))
    {
        hit = hit.with(seen(guest, what));
    }
    let open_vswitch = "ovs-vsctl --no-wait set Open_vSwitch . other_config:vhost-postcopy-support=true   # where Open vSwitch serves it: as it starts";
    if shut_out.is_empty() {
        hit.fix = vec![open_vswitch.to_owned()];
        hit.undo = vec!["ovs-vsctl --no-wait remove Open_vSwitch . other_config vhost-postcopy-support".to_owned()];
    }
    Some(hit)
}

fn target(guest: &Guest) -> Option<Hit> {
    let (mut needed, mut fix) = (Vec::new(), Vec::new());
    let mut needs = |what: String, how: &str| {
        needed.push(what);
        if !fix.iter().any(|known| known == how) {
            fix.push(how.to_owned());
        }
    };
    for obstacle in &guest.started.obstacles {
        match obstacle {
            Obstacle::HostCpu => needs(
                "the CPU model of this host".to_owned(),
                match guest.is_libvirts {
                    true => {
                        "virsh hypervisor-cpu-baseline BOTH-HOSTS.xml   # a named model that both have, instead of the host's"
                    }
                    false => {
                        "lscpu   # on both hosts: the other one needs the same flags, or the guest a named model that both have"
                    }
                },
            ),
            Obstacle::HugePages(path) => needs(
                format!("free huge pages of the same size (memory is in {path})"),
                "grep . /sys/kernel/mm/hugepages/*/free_hugepages   # on the other host",
            ),
            Obstacle::VhostUser(id) => needs(
                format!("a process that serves {id}, with VHOST_F_LOG_ALL"),
                "ovs-vsctl list interface   # on the other host: the port and its socket must be there before",
            ),
            Obstacle::Disk(path) => needs(
                path.clone(),
                match (guest.proxmox, guest.is_libvirts) {
                    (Some(_), _) => {
                        "stat -f -c %T PATH   # nfs, ceph, gfs2: shared; else qm migrate VMID TARGET --online --with-local-disks"
                    }
                    (None, true) => {
                        "stat -f -c %T PATH   # nfs, ceph, gfs2: shared; else virsh migrate --copy-storage-all DOMAIN DESTINATION"
                    }
                    (None, false) => {
                        "stat -f -c %T PATH   # nfs, ceph, gfs2: shared; else it is copied there first: drive-mirror to an NBD server"
                    }
                },
            ),
            _ => {}
        }
    }
    if needed.is_empty() {
        return None;
    }
    let title = format!("The other host must have {}", list(&needed));
    let mut hit = Hit::new(guest.name.clone(), Severity::Info, title);
    for what in needed {
        hit = hit.with(seen(guest, what));
    }
    hit.fix = fix.into_iter().map(|fix| named(fix, guest)).collect();
    Some(hit)
}
