//! What a container's manager, a disk's limit, a saving clock and a far node ask for, each with a neighbour that is well.

use super::culprits::{first, program, refill, used, waits};
use super::quiet::{fact, found, set, thread};
use base::{Finding, Severity};
use host::Machine;
use host::machine::{DiskLimit, DiskLimitKind, Fact, Gauge, GaugeKind, Quota, Role, Throttled};

const DOCKER: &str = "/system.slice/docker-4f5c0a9d8e7b6c5d4f5c0a9d8e7b6c5d4f5c0a9d8e7b6c5d4f5c0a9d8e7b6c5d.scope";
const POD: &str = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1a2b3c4d_0000_1111_2222_333344445555.slice/cri-containerd-8f.scope";

/// Everything of the VM, which a command started, is in one group.
fn within(machine: &mut Machine, group: &str) {
    let domain = &mut machine.domains[0];
    domain.by_command = true;
    domain.vcpu_pins.clear();
    domain.emulator_pins.clear();
    machine.threads.iter_mut().filter(|thread| thread.vm.is_some()).for_each(|thread| {
        (thread.cgroup, thread.time_group) = (Some(group.into()), Some(group.into()));
    });
}

#[test]
fn a_quota_is_lifted_by_whoever_made_the_group() {
    let of = |group: &str| {
        let mut machine = used();
        within(&mut machine, group);
        let counted = Throttled { periods: 20, throttled: 18, ns: 0, cpus: 0.4 };
        let cpus = Fact::new(1.5, format!("sys/fs/cgroup{group}/cpu.max"));
        machine.quotas.insert(group.into(), Quota { cpus, since_start: None, measured: Some(fact(counted)) });
        found("PLC-QUOTA", machine).expect("PLC-QUOTA")
    };
    let docker = of(DOCKER);
    assert!(docker.fix[0].starts_with("docker inspect 4f5c0a9d8e7b "), "{:?}", docker.fix);
    assert!(docker.fix[1].starts_with("docker update --cpus 8 4f5c0a9d8e7b "), "{:?}", docker.fix);
    assert_eq!(docker.undo, ["docker update --cpus 1.5 4f5c0a9d8e7b"]);
    let pod = of(POD);
    assert!(pod.fix[0].contains("| grep 1a2b3c4d-0000-1111-2222-333344445555 "), "{:?}", pod.fix);
    assert!(pod.fix[1].starts_with("kubectl set resources OBJECT -n NAMESPACE --limits=cpu=0 "), "{:?}", pod.fix);
    let unit = of("/system.slice/vm.service");
    assert_eq!(unit.fix[1], "systemctl set-property --runtime vm.service CPUQuota=");
}

#[test]
fn a_program_in_a_container_yields_by_its_manager() {
    let mut machine = used();
    waits(&mut machine);
    within(&mut machine, "/system.slice/vm.service");
    machine.threads.extend((0..8).map(|cpu| program("xz", 70 + cpu, &cpu.to_string(), 0.9)));
    machine
        .threads
        .iter_mut()
        .filter(|thread| thread.vm.is_none())
        .for_each(|thread| thread.time_group = Some(DOCKER.into()));
    refill(&mut machine);
    let found = first(machine);
    assert!(found.fix.iter().any(|line| line.starts_with("docker update --cpu-shares ")), "{:?}", found.fix);
    assert!(found.undo.contains(&"docker update --cpu-shares 2598 4f5c0a9d8e7b".to_owned()), "{:?}", found.undo);
}

#[test]
fn a_groups_limit_of_a_disk_is_named_where_it_is_reached() {
    let of = |group: &str, did: f64, by_command: bool| {
        let mut machine = used();
        within(&mut machine, group);
        machine.domains[0].whole = (!by_command).then(|| "web.xml".to_owned());
        let gauge = |kind, subject: &str, value| Gauge { kind, subject: subject.into(), value, place: "t:1".into() };
        machine.gauges = vec![gauge(GaugeKind::PressureSome, "io, 2.0 s", 0.5), gauge(GaugeKind::DiskBusy, "sdb", 0.6)];
        machine.disk_limits.push(DiskLimit {
            group: group.into(),
            number: "8:16".into(),
            disk: Some("sdb".into()),
            kind: DiskLimitKind::Reads,
            most: 200,
            did,
            place: format!("sys/fs/cgroup{group}/io.max"),
        });
        found("PLC-PRESSURE", machine).expect("PLC-PRESSURE")
    };
    let unit = of("/system.slice/vm.service", 199.0, true);
    assert!(
        unit.title.ends_with(": vm.service, with web, is at its limit of 200 reads per second of sdb"),
        "{}",
        unit.title
    );
    assert_eq!(unit.fix[1], "systemctl set-property --runtime vm.service 'IOReadIOPSMax=/dev/sdb infinity'");
    assert_eq!(unit.undo, ["systemctl set-property --runtime vm.service 'IOReadIOPSMax=/dev/sdb 200'"]);
    let libvirt = of("/machine.slice/machine-qemu-1-web.scope", 199.0, false);
    assert!(libvirt.fix[0].starts_with("virsh blkiotune web --device-read-iops-sec /dev/sdb,0 "), "{:?}", libvirt.fix);
    let file = of("/fc/web", 199.0, true);
    assert!(file.fix[0].starts_with("echo '8:16 riops=max' > /sys/fs/cgroup/fc/web/io.max "), "{:?}", file.fix);
    let well = of("/system.slice/vm.service", 60.0, true);
    assert!(well.undo.is_empty() && well.title.contains("sdb is busy"), "{}", well.title);
}

#[test]
fn a_driver_that_was_told_to_save_energy_is_named_and_not_its_governor() {
    let of = |preference: &str| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.99, 0.0);
        for (file, value) in [
            ("scaling_governor", "powersave"),
            ("scaling_cur_freq", "1200000"),
            ("cpuinfo_max_freq", "3700000"),
            ("energy_performance_preference", preference),
        ] {
            machine.settings.insert(format!("sys/devices/system/cpu/cpu0/cpufreq/{file}"), fact(value.to_owned()));
        }
        refill(&mut machine);
        found("PLC-TUNED", machine).expect("PLC-TUNED")
    };
    let saves = of("power");
    assert_eq!(saves.title, "CPU 0 is busy at 1.2 of 3.7 GHz: energy_performance_preference is power");
    assert_eq!(saves.fix, ["echo performance > /sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference"]);
    assert_eq!(saves.undo, ["echo power > /sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference"]);
    assert!(of("balance_performance").title.ends_with("scaling_governor is powersave"));
}

#[test]
fn compaction_that_nobody_asks_for_is_switched_off() {
    let of = |proactiveness: &str| {
        let mut machine = used();
        machine.threads.push(program("kcompactd0", 60, "0-7", 0.6));
        machine.settings.insert("proc/sys/vm/compaction_proactiveness".into(), fact(proactiveness.to_owned()));
        refill(&mut machine);
        found("PLC-KTHREAD", machine).expect("PLC-KTHREAD")
    };
    let asked = of("100");
    assert!(asked.fix[0].contains("compaction_proactiveness") && asked.fix[0].contains('0'), "{:?}", asked.fix);
    assert_eq!(asked.undo.len(), 1, "{:?}", asked.undo);
    assert!(of("0").undo.is_empty(), "it works for allocations then");
}

#[test]
fn merging_of_guests_pages_goes_back_to_its_usual_pace() {
    let of = |ratio: &str| {
        let mut machine = used();
        machine.threads.push(program("kvm-nx-lpage-re", 60, "0-7", 0.6));
        let path = "sys/module/kvm/parameters/nx_huge_pages_recovery_ratio";
        machine.settings.insert(path.into(), fact(ratio.to_owned()));
        refill(&mut machine);
        found("PLC-KTHREAD", machine).expect("PLC-KTHREAD").undo
    };
    assert_eq!(of("1"), ["echo 1 > /sys/module/kvm/parameters/nx_huge_pages_recovery_ratio"]);
    assert!(of("60").is_empty());
}

#[test]
fn vcpus_over_several_nodes_are_typed_to_one() {
    let of = |other: &str, helpers: &str| -> Finding {
        let mut machine = used();
        machine.threads[1] = thread(Role::Vcpu(1), 12, other, 0.9, 0.0);
        machine.domains[0].vcpu_pins.insert(1, fact(set(other)));
        machine.threads[2..].iter_mut().for_each(|thread| thread.affinity = Some(fact(set(helpers))));
        machine.domains[0].emulator_pins = vec![fact(set(helpers))];
        machine.vm_memory.insert("web".into(), fact([(0, 1 << 30)].into()));
        refill(&mut machine);
        found("PLC-NODE", machine).expect("PLC-NODE")
    };
    let node = of("5", "2-3");
    assert!(node.fix[0].starts_with("virsh vcpupin web 1 1 "), "{:?}", node.fix);
    assert!(node.undo[0].starts_with("virsh vcpupin web 1 5 "), "{:?}", node.undo);
    assert_eq!(node.severity, Severity::Medium);
}

#[test]
fn a_program_that_serves_a_device_alone_is_told_once_it_is_full() {
    let of = |name: &str, run: f64| {
        let mut machine = used();
        let mut server = program(name, 70, "0-7", run);
        server.time_group = Some("/machine.slice/machine-qemu-1-web.scope/libvirt/emulator".into());
        machine.threads[0].time_group = Some("/machine.slice/machine-qemu-1-web.scope/libvirt/vcpu0".into());
        machine.threads.push(server);
        refill(&mut machine);
        found("PLC-SERVER", machine)
    };
    let full = of("virtiofsd", 0.97).expect("PLC-SERVER");
    assert!(full.title.starts_with("virtiofsd (70) of web ran 97.0 % of a CPU: one thread carries"), "{}", full.title);
    assert!(full.fix[0].contains("<thread_pool size='4'/>"), "{:?}", full.fix);
    assert!(of("virtiofsd", 0.6).is_none() && of("ffmpeg", 0.97).is_none());
}

#[test]
fn busy_siblings_are_typed_apart_where_cores_are_idle() {
    let of = |run: f64| {
        let mut machine = used();
        for cpu in 0..8 {
            machine.topology.cpus.get_mut(&cpu).unwrap().core = cpu / 2;
        }
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", run, 0.0);
        machine.threads[1] = thread(Role::Vcpu(1), 12, "1", run, 0.0);
        refill(&mut machine);
        found("PLC-SMT", machine).expect("PLC-SMT")
    };
    let busy = of(0.95);
    assert!(busy.fix.iter().any(|line| line.starts_with("virsh vcpupin web ")), "{:?}", busy.fix);
    assert!(busy.fix.iter().all(|line| !line.starts_with("virsh edit")), "not both: {:?}", busy.fix);
    assert!(of(0.3).fix[0].starts_with("virsh edit web "), "{:?}", of(0.3).fix);
}

#[test]
fn memory_that_guests_may_have_leaves_none_for_the_host() {
    let of = |gib: u64| {
        let mut machine = used();
        machine.domains[0].memory_bytes = Some(gib << 30);
        let gauge = |kind, value| Gauge { kind, subject: String::new(), value, place: "t:1".into() };
        machine.gauges = vec![gauge(GaugeKind::SwappedIn, 4e7), gauge(GaugeKind::MemoryTotal, (32_u64 << 30) as f64)];
        found("PLC-SWAP", machine).expect("PLC-SWAP").title
    };
    assert!(of(32).ends_with("; 1 guest may have 34.4 GB, the host has 34.4 GB"), "{}", of(32));
    assert!(!of(24).contains("may have"));
}

#[test]
fn memory_that_the_kernel_has_is_named_where_the_host_swaps() {
    let of = |kind: GaugeKind, gib: u64| {
        let mut machine = used();
        machine.domains[0].memory_bytes = Some(4 << 30);
        machine.settings.insert("sys/module/zfs/parameters/zfs_arc_max".into(), fact("0".to_owned()));
        let gauge =
            |kind, gib: u64| Gauge { kind, subject: String::new(), value: (gib << 30) as f64, place: "t:1".into() };
        machine.gauges = vec![
            Gauge { value: 4e7, ..gauge(GaugeKind::SwappedIn, 0) },
            gauge(GaugeKind::MemoryTotal, 32),
            gauge(GaugeKind::SwapUsed, 6),
            gauge(kind, gib),
        ];
        found("PLC-SWAP", machine).expect("PLC-SWAP")
    };
    let cached = of(GaugeKind::ZfsCache, 20);
    assert!(cached.title.ends_with("; memory that ZFS caches with: 21.5 GB"), "{}", cached.title);
    assert_eq!(cached.fix[0], "echo 15032385536 > /sys/module/zfs/parameters/zfs_arc_max");
    assert_eq!(cached.undo, ["echo 0 > /sys/module/zfs/parameters/zfs_arc_max"]);
    assert!(of(GaugeKind::ZfsCache, 4).undo.is_empty(), "a cache of its size");
    assert!(of(GaugeKind::KernelObjects, 12).fix[0].starts_with("slabtop "));
    assert!(of(GaugeKind::SharedMemory, 14).fix[0].starts_with("df -h -t tmpfs"));
    assert!(!of(GaugeKind::SharedMemory, 11).fix[0].starts_with("df "), "less the guest's own it is no quarter");
}
