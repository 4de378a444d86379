//! What somebody chose of a machine, by names that stay the same.

use kvmscope_host::Snapshot;
use kvmscope_host::configuration::{Area, Settings, Value, settings};
use std::collections::BTreeSet;
use std::path::Path;

fn of(files: &[(&str, &str)]) -> Settings {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    settings(&[Snapshot::open(root.path()).unwrap()])
}

fn line(settings: &Settings, area: Area, name: &str) -> String {
    let known = || settings.keys().map(|(_, name)| name.as_str()).collect::<Vec<_>>();
    settings.get(&(area, name.to_owned())).unwrap_or_else(|| panic!("{name}: {:?}", known())).value.to_string()
}

#[test]
fn settings_have_the_names_that_people_set_them_by() {
    let settings = of(&[
        ("sys/module/kvm_intel/parameters/ept", "Y\n"),
        ("sys/module/vhost_net/parameters/experimental_zcopytx", "0\n"),
        ("proc/sys/vm/swappiness", "60\n"),
        ("proc/cmdline", "BOOT_IMAGE=/vmlinuz quiet isolcpus=2-7\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("sys/devices/virtual/workqueue/cpumask", "0000000f\n"),
        ("sys/devices/system/cpu/isolated", "2-7\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
        ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
        ("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n"),
        ("sys/devices/system/cpu/cpu1/cpufreq/scaling_driver", "intel_pstate\n"),
    ]);
    let expected = [
        (Area::Module, "kvm_intel.ept", "Y"),
        (Area::Module, "vhost_net.experimental_zcopytx", "0"),
        (Area::Memory, "vm.swappiness", "60"),
        (Area::Kernel, "/proc/cmdline", "BOOT_IMAGE=/vmlinuz isolcpus=2-7 quiet"),
        (Area::Memory, "/sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
        (Area::Placement, "/sys/devices/virtual/workqueue/cpumask", "0-3"),
        (Area::Processor, "/sys/devices/system/cpu/isolated", "2-7"),
        (Area::Processor, "cpu*/cpufreq/scaling_governor", "performance on 0-1, powersave on 2"),
        (Area::Processor, "cpu*/cpufreq/scaling_driver", "intel_pstate"),
    ];
    for (area, name, value) in expected {
        assert_eq!(line(&settings, area, name), value, "{name}");
    }
}

const COMMAND: &str = "/usr/bin/qemu-system-x86_64\0-name\0guest=web,debug-threads=on\0-smp\x004,sockets=1\0-S\0\
    -device\0{\"driver\":\"virtio-net-pci\",\"netdev\":\"n0\",\"id\":\"net0\"}\0-netdev\0tap,fd=31,id=n0,vhost=on,vhostfd=33\0\
    -chardev\0socket,id=charmonitor,fd=27,server=on\0-overcommit\0cpu-pm=on\0-uuid\x001b4e28ba-2fa1-11d2-883f-0016d3cca427\0";

#[test]
fn a_vm_is_its_options_without_those_of_one_start() {
    let task = "proc/4711/task/4711";
    let settings = of(&[
        ("proc/4711/cmdline", COMMAND),
        (&format!("{task}/comm"), "qemu-system-x86\n"),
        (&format!("{task}/stat"), &format!("4711 (qemu) S {}\n", "0 ".repeat(50))),
    ]);
    let (_, setting) = settings.iter().find(|((area, _), _)| *area == Area::Vm).expect("a VM");
    let Value::Words(words) = &setting.value else { panic!("{:?}", setting.value) };
    let expected = [
        "-device virtio-net-pci,id=net0,netdev=n0",
        "-name debug-threads=on",
        "-netdev tap,id=n0,vhost=on",
        "-overcommit cpu-pm=on",
        "-smp 4,sockets=1",
    ];
    assert_eq!(words.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn a_domain_is_its_elements_told_apart_by_what_names_them() {
    let xml = "<domain type='kvm' id='3'><name>web</name><uuid>1b4e28ba</uuid><memoryBacking><hugepages/></memoryBacking>\
        <cputune><vcpupin vcpu='0' cpuset='4'/><vcpupin vcpu='1' cpuset='5'/></cputune>\
        <devices><interface type='bridge'><model type='virtio'/><alias name='net0'/></interface>\
        <interface type='network'><model type='e1000'/></interface></devices></domain>";
    let settings = of(&[("libvirt/web.xml", xml), ("proc/stat", "cpu 1\n")]);
    let of_domain = settings.iter().filter(|((area, _), _)| *area == Area::Domain);
    let told: Vec<String> = of_domain.map(|((_, name), setting)| format!("{name} = {}", setting.value)).collect();
    let expected = [
        "web: cputune/vcpupin[vcpu=0] cpuset = 4",
        "web: cputune/vcpupin[vcpu=1] cpuset = 5",
        "web: devices/interface[1] type = bridge",
        "web: devices/interface[1]/model type = virtio",
        "web: devices/interface[2] type = network",
        "web: devices/interface[2]/model type = e1000",
        "web: memoryBacking/hugepages = there",
    ];
    assert_eq!(told, expected);
    let broken = of(&[("libvirt/web.xml", "<domain><name>web</name>"), ("proc/stat", "cpu 1\n")]);
    assert!(broken.keys().all(|(area, _)| *area != Area::Domain));
}

#[test]
fn every_host_among_the_fixtures_has_settings_and_differs_from_itself_in_none() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    for (host, least) in [("hosts-intel/L0", 20), ("hosts-amd/L0", 20), ("hosts-hyperv/L1", 10)] {
        let snapshot = Snapshot::open(&fixtures.join(host).join("host/0")).unwrap();
        let (one, two) = (settings(std::slice::from_ref(&snapshot)), settings(std::slice::from_ref(&snapshot)));
        assert!(one.len() >= least && one == two, "{host}: {}", one.len());
        let places: BTreeSet<&str> = one.values().map(|setting| setting.place.as_str()).collect();
        assert!(places.iter().all(|place| !place.starts_with('/')), "{places:?}");
    }
}
