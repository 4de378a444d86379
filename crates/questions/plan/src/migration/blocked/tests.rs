use super::*;
use base::{Finding, Severity};

fn guest(line: &str, driver: Option<&str>) -> Guest {
    let command = format!("qemu-system-x86_64 -name guest=web {line}").replace(' ', "\0");
    Guest::of(&command, "proc/9/cmdline", |_| driver.map(str::to_owned))
}

fn of(line: &str, driver: Option<&str>) -> Vec<Finding> {
    findings(&guest(line, driver), Level::L0)
}

fn rules(found: &[Finding]) -> Vec<&str> {
    found.iter().map(|finding| finding.rule).collect()
}

const DEVICE: &str = "-device vfio-pci,host=04:10.1,id=h0";

#[test]
fn a_device_blocks_by_the_driver_that_serves_it_and_the_change_is_named() {
    let found = of(DEVICE, Some("vfio-pci"));
    assert_eq!(rules(&found), ["MIG-BLOCKED", "MIG-POSTCOPY"]);
    assert_eq!((found[0].subject.as_str(), found[0].severity), ("web", Severity::Low));
    assert_eq!(
        found[0].title,
        "Cannot be migrated: 0000:04:10.1 is served by vfio-pci, which cannot transfer its state"
    );
    assert_eq!(found[0].fix[0], "device_del h0   # in QEMU's monitor");
    let of_libvirt = of(&format!("{DEVICE} -chardev socket,id=charmonitor,fd=3"), Some("vfio-pci"));
    assert_eq!(of_libvirt[0].fix[0], "virsh detach-device-alias web h0 --live");
    assert_eq!(rules(&of(DEVICE, Some("mlx5_vfio_pci"))), ["MIG-POSTCOPY"], "that one hands its state on");
    assert!(of(DEVICE, None)[0].title.starts_with("May not be migrated"), "what serves it is not known");
    let pair = format!("{DEVICE},failover_pair_id=n0 -device virtio-net-pci,failover=on,id=n0");
    assert_eq!(rules(&of(&pair, Some("vfio-pci"))), ["MIG-FAILOVER"], "it is unplugged before");
}

#[test]
fn flags_of_the_cpu_and_qemus_own_word_block() {
    assert_eq!(rules(&of("-cpu Skylake-Server", None)), [""; 0]);
    let found = of("-cpu Skylake-Server,+invtsc", None);
    assert_eq!(rules(&found), ["MIG-BLOCKED"]);
    assert!(found[0].fix[0].contains("tsc-frequency"), "{:?}", found[0].fix);
    let found = of("-cpu host", None);
    assert_eq!((rules(&found), found[0].severity), (vec!["MIG-TARGET"], Severity::Info));
    let asked = Guest { reasons: vec!["State blocked by X".to_owned()], is_asked: true, ..guest("", None) };
    let found = findings(&asked, Level::L0);
    assert_eq!((rules(&found), found[0].severity), (vec!["MIG-BLOCKED"], Severity::High));
    assert_eq!(found[0].title, "Cannot be migrated: QEMU: State blocked by X");
}

#[test]
fn what_the_target_must_have_is_one_list() {
    let found = of("-netdev vhost-user,chardev=c,id=n0 -mem-path /dev/hugepages -drive file=/a.img", None);
    assert_eq!(rules(&found), ["MIG-POSTCOPY", "MIG-TARGET"]);
    assert_eq!((found[1].evidence.len(), found[1].fix.len()), (3, 3));
    assert!(found[0].fix[0].contains("vhost-postcopy-support=true") && !found[0].undo.is_empty());
    let disk = |command: &str| {
        let guest = Guest::of(&command.replace(' ', "\0"), "p", |_| None);
        findings(&guest, Level::L0)[0].fix.concat()
    };
    let proxmox = "kvm -id 108 -name dms,debug-threads=on -chardev socket,id=qmp,path=/var/run/qemu-server/108.qmp -drive file=/a.img";
    assert!(disk(proxmox).contains("else qm migrate 108 TARGET --online --with-local-disks"), "{}", disk(proxmox));
    assert!(
        disk("qemu-system-x86_64 -name guest=web -drive file=/a.img").contains("virsh migrate --copy-storage-all web")
    );
    assert!(!disk("qemu-system-x86_64 -name web -id 8 -drive file=/a.img").contains("virsh"));
}

#[test]
fn a_snapshot_has_the_guests_that_ran_and_the_drivers_of_their_devices() {
    let root = tempfile::tempdir().unwrap();
    let (process, device) = (root.path().join("proc/9"), root.path().join("sys/bus/pci/devices/0000:04:10.1"));
    std::fs::create_dir_all(&process).unwrap();
    std::fs::create_dir_all(&device).unwrap();
    std::fs::write(process.join("cmdline"), format!("qemu-system-x86_64 -name db {DEVICE}").replace(' ', "\0"))
        .unwrap();
    std::os::unix::fs::symlink("../../../../bus/pci/drivers/mlx5_vfio_pci", device.join("driver")).unwrap();
    let guests = Guest::of_snapshot(&Snapshot::open(root.path()).unwrap());
    let [guest] = &guests[..] else { panic!("{guests:?}") };
    assert_eq!((guest.name.as_str(), guest.place.as_str(), guest.is_asked), ("db", "proc/9/cmdline", false));
    assert_eq!(guest.drivers.get("0000:04:10.1").map(String::as_str), Some("mlx5_vfio_pci"));
}
