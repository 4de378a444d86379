//! What keeps a guest from being migrated, or has to be the same where it goes? By QEMU's command line.
//!
//! ```text
//! -device vfio-pci,host=04:10.1,id=h0                 a device whose state QEMU may not be able to take along
//! -device virtio-net-pci,failover=on,id=n0            the standby of a pair; a device with failover_pair_id=n0 is unplugged first
//! -cpu host,+invtsc | host,migratable=off             a flag that no other CPU has to keep
//! -device vhost-user-fs-pci | -machine ..,confidential-guest-support=sev0
//! -netdev vhost-user | -object memory-backend-file,mem-path=/dev/hugepages | -drive file=/local.img
//! ```
//! Sources: kvm_arch_init_vcpu of target/i386/kvm/kvm.c (invtsc), vfio_block_migration of hw/vfio/migration.c, hw/virtio/vhost-user-fs.c,
//! sev_kvm_init of target/i386/sev.c, all QEMU 7.2; docs/system/virtio-net-failover.rst.

use crate::machine::command_line::{Keys, options_of};

/// One thing that stands in the way of a migration, or that its target must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// A device of the host that was given to the guest.
    Vfio {
        /// Its place on the PCI bus, `0000:04:10.1`; what QEMU was told where it is none.
        address: String,
        /// What QEMU calls it; empty where nobody named it.
        id: String,
        /// The standby that it is the primary of: it is unplugged before.
        pair: Option<String>,
    },
    /// A card that takes over while its primary is away; whether it has one.
    Standby {
        /// What QEMU calls it.
        id: String,
        /// Whether a primary names it.
        has_primary: bool,
    },
    /// `invtsc` without a stated frequency of the TSC, by that word of `-cpu`.
    Invtsc(&'static str),
    /// The CPU's model is that of this host.
    HostCpu,
    /// A file system of the host, by virtiofs, and what QEMU calls it.
    VirtioFs(String),
    /// Memory is encrypted (SEV, TDX), by that object.
    Encrypted(String),
    /// A card or disk that another process serves, and what QEMU calls it.
    VhostUser(String),
    /// Memory lies in files of huge pages, below that path.
    HugePages(String),
    /// A disk that is a file or device of this host, and may be written to.
    Disk(String),
}

/// A VM as its QEMU was started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Started {
    /// What stands in the way, in the order of the command line.
    pub obstacles: Vec<Obstacle>,
    /// libvirt started it: its own commands change it.
    pub is_libvirts: bool,
}

/// Reads a command line, arguments ended by zero bytes.
pub fn of(command: &str) -> Started {
    let options = options_of(command);
    let of = |option: &'static str| options.iter().filter(move |(name, _)| *name == option).map(|(_, keys)| keys);
    let is_libvirts = of("chardev").any(|keys| text(keys, "id") == "charmonitor");
    let mut started = Started { is_libvirts, ..Started::default() };
    let emulates = of("accel")
        .chain(of("machine"))
        .chain(of("M"))
        .any(|keys| [kind(keys), text(keys, "accel")].iter().any(|accelerator| accelerator.starts_with("tcg")));
    let pairs: Vec<&str> =
        of("device").map(|keys| text(keys, "failover_pair_id")).filter(|id| !id.is_empty()).collect();
    for (option, keys) in &options {
        let kind = kind(keys);
        let id = text(keys, "id").to_owned();
        let found = match *option {
            "device" if kind.starts_with("vfio-") => {
                let pair = text(keys, "failover_pair_id");
                Some(Obstacle::Vfio { address: address(keys), id, pair: (!pair.is_empty()).then(|| pair.to_owned()) })
            }
            "device" if kind.starts_with("virtio-net") && text(keys, "failover") == "on" => {
                Some(Obstacle::Standby { has_primary: pairs.contains(&id.as_str()), id })
            }
            "device" if kind.starts_with("vhost-user-fs") => Some(Obstacle::VirtioFs(id)),
            "device" if kind.starts_with("vhost-user-") => Some(Obstacle::VhostUser(id)),
            "netdev" if kind == "vhost-user" => Some(Obstacle::VhostUser(id)),
            "object" if ["sev-guest", "sev-snp-guest", "tdx-guest"].contains(&kind) => Some(Obstacle::Encrypted(id)),
            "object" if kind == "memory-backend-file" => huge(text(keys, "mem-path")),
            "mem-path" => huge(kind),
            "drive" if !is_on(keys, &["readonly", "read-only"]) => disk(text(keys, "file")),
            "blockdev" if !is_on(keys, &["read-only"]) && ["file", "host_device"].contains(&kind) => {
                disk(text(keys, "filename"))
            }
            "cpu" => {
                let is_host = matches!(kind, "host" | "max");
                started.obstacles.extend((is_host && !emulates).then_some(Obstacle::HostCpu));
                let word = invtsc(keys, is_host).filter(|_| !emulates && !keys.contains_key("tsc-frequency"));
                word.map(Obstacle::Invtsc)
            }
            _ => None,
        };
        started.obstacles.extend(found.filter(|found| !started.obstacles.contains(found)));
    }
    started
}

fn text<'a>(keys: &'a Keys, name: &str) -> &'a str {
    keys.get(name).map_or("", String::as_str)
}

fn kind(keys: &Keys) -> &str {
    ["type", "driver", "qom-type"].iter().map(|name| text(keys, name)).find(|kind| !kind.is_empty()).unwrap_or("")
}

fn is_on(keys: &Keys, names: &[&str]) -> bool {
    names.iter().any(|name| text(keys, name) == "on")
}

/// `04:10.1` is in the first domain.
fn address(keys: &Keys) -> String {
    let address = ["host", "sysfsdev"].iter().map(|name| text(keys, name)).find(|text| !text.is_empty()).unwrap_or("");
    if address.matches(':').count() == 1 { format!("0000:{address}") } else { address.to_owned() }
}

/// The word that gives the guest a TSC that is said never to change its rate.
fn invtsc(keys: &Keys, is_host: bool) -> Option<&'static str> {
    if keys.contains_key("+invtsc") || is_on(keys, &["invtsc"]) {
        return Some("invtsc");
    }
    let is_off = keys.contains_key("-invtsc") || text(keys, "invtsc") == "off";
    (is_host && text(keys, "migratable") == "off" && !is_off).then_some("migratable=off")
}

fn huge(path: &str) -> Option<Obstacle> {
    path.contains("hugepages").then(|| Obstacle::HugePages(path.to_owned()))
}

/// What is a path here; `rbd:..`, `nbd://..` and the like are reached from anywhere.
fn disk(path: &str) -> Option<Obstacle> {
    path.starts_with('/').then(|| Obstacle::Disk(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<Obstacle> {
        of(&line.replace(' ', "\0")).obstacles
    }

    #[test]
    fn devices_of_the_host_block_unless_a_standby_takes_over() {
        let vfio = |address: &str, id: &str, pair: Option<&str>| Obstacle::Vfio {
            address: address.into(),
            id: id.into(),
            pair: pair.map(str::to_owned),
        };
        assert_eq!(found("qemu -device vfio-pci,host=04:10.1,id=h0"), [vfio("0000:04:10.1", "h0", None)]);
        let json =
            r#"qemu -device {"driver":"vfio-pci","host":"0000:04:10.1","id":"hostdev0","failover_pair_id":"ua-n"}"#;
        let standby = |has_primary| Obstacle::Standby { id: "ua-n".into(), has_primary };
        let card = "-device virtio-net-pci,netdev=n,failover=on,id=ua-n";
        assert_eq!(found(&format!("{json} {card}")), [vfio("0000:04:10.1", "hostdev0", Some("ua-n")), standby(true)]);
        assert_eq!(found(&format!("qemu {card}")), [standby(false)]);
        assert_eq!(found("qemu -device virtio-net-pci,netdev=n,id=ua-n"), []);
    }

    #[test]
    fn an_invariant_tsc_blocks_where_its_rate_is_not_stated_and_kvm_runs_the_guest() {
        let of = |cpu: &str| found(&format!("qemu -accel kvm -cpu {cpu}"));
        assert_eq!(of("host"), [Obstacle::HostCpu]);
        assert_eq!(of("host,migratable=on"), [Obstacle::HostCpu]);
        assert_eq!(of("host,migratable=off"), [Obstacle::HostCpu, Obstacle::Invtsc("migratable=off")]);
        assert_eq!(of("host,migratable=off,invtsc=off"), [Obstacle::HostCpu]);
        assert_eq!(of("Skylake-Server,+invtsc"), [Obstacle::Invtsc("invtsc")]);
        assert_eq!(of("Skylake-Server,invtsc=on,tsc-frequency=2400000000"), []);
        assert_eq!(found("qemu -machine q35,accel=tcg -cpu max,+invtsc"), []);
    }

    #[test]
    fn what_the_target_needs_is_found_in_both_spellings() {
        let line = r#"qemu -netdev vhost-user,chardev=c,id=n0 -device vhost-user-fs-pci,id=fs0 -device vhost-user-blk-pci,id=b0 -object {"qom-type":"memory-backend-file","id":"m","mem-path":"/dev/hugepages/libvirt","share":true} -drive file=/a.img,if=virtio -drive file=rbd:pool/b -drive file=/c.iso,readonly=on -blockdev {"driver":"file","filename":"/d.img"} -object sev-guest,id=sev0 -chardev socket,id=charmonitor,fd=3"#;
        let started = of(&line.replace(' ', "\0"));
        let expected = [
            Obstacle::VhostUser("n0".into()),
            Obstacle::VirtioFs("fs0".into()),
            Obstacle::VhostUser("b0".into()),
            Obstacle::HugePages("/dev/hugepages/libvirt".into()),
            Obstacle::Disk("/a.img".into()),
            Obstacle::Disk("/d.img".into()),
            Obstacle::Encrypted("sev0".into()),
        ];
        assert_eq!((started.obstacles, started.is_libvirts), (expected.to_vec(), true));
        assert_eq!(of(""), Started::default());
    }
}
