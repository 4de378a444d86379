//! Whose a CPU, a page or a container is: commands are those of its owner, and none claims what is another's.

use super::culprits::{first, program, refill, second, used, waits};
use super::quiet::{commands, fact, findings, found, quiet, set, thread};
use base::Finding;
use host::Machine;
use host::machine::{Cgroup, Fact, Gauge, GaugeKind, Role};

#[test]
fn two_vms_on_one_cpu_are_told_of_the_one_that_waits() {
    let shared = |own: (f64, f64), others: (f64, f64)| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", own.0, own.1);
        second(&mut machine, "db", vec![thread(Role::Vcpu(0), 21, "0", others.0, others.1)]);
        refill(&mut machine);
        found("PLC-STACKED", machine).expect("PLC-STACKED")
    };
    for (own, others, subject) in [((0.95, 0.0), (0.03, 0.95), "db"), ((0.03, 0.95), (0.95, 0.0), "web")] {
        let hit = shared(own, others);
        assert_eq!((hit.subject.as_str(), hit.severity), (subject, base::Severity::High), "{}", hit.title);
        assert!(hit.fix[0].contains("vcpupin ") || hit.fix[0].starts_with("taskset -cp "), "{:?}", hit.fix);
    }
}

#[test]
fn a_cgroup_of_version_one_is_set_by_its_files_from_above() {
    let mut machine = quiet();
    let path = "/machine.slice";
    for group in [path, "/machine.slice/web.scope"] {
        let place = format!("sys/fs/cgroup/cpuset{group}/cpuset.cpus");
        let effective = Some(Fact::new(set("0-1"), place));
        machine.cgroups.insert(group.into(), Cgroup { cpus: None, effective, memory_nodes: None, partition: None });
    }
    machine.threads = (0..4).map(|vcpu| thread(Role::Vcpu(vcpu), 11 + vcpu as i32, "0-1", 0.5, 0.48)).collect();
    machine.threads.iter_mut().for_each(|thread| thread.cgroup = Some("/machine.slice/web.scope".into()));
    machine.domains[0].vcpus = Some(4);
    machine.domains[0].vcpu_pins.clear();
    for cpu in 0..2 {
        machine.cpu_use.insert(cpu, host::machine::CpuUse { busy: 0.99, idle: 0.01, ..Default::default() });
    }
    let hit = found("PLC-SLICE", machine).expect("PLC-SLICE");
    let file = |group: &str| format!("/sys/fs/cgroup/cpuset{group}/cpuset.cpus");
    let lines = |cpus: &str, groups: [&str; 2]| groups.map(|group| format!("echo {cpus} > {}", file(group)));
    assert_eq!(hit.fix, lines("0-3", [path, "/machine.slice/web.scope"]));
    assert_eq!(hit.undo, lines("0-1", ["/machine.slice/web.scope", path]));
}

#[test]
fn a_pin_to_cpus_of_a_partition_is_not_made_by_claiming_them() {
    let of = |partition: Option<&str>| {
        let mut machine = quiet();
        machine.domains[0].vcpu_pins = [(0, fact(set("6"))), (1, fact(set("7")))].into();
        let group = |cpus: &str, partition: Option<&str>| Cgroup {
            cpus: None,
            effective: Some(Fact::new(set(cpus), "sys/fs/cgroup/machine.slice/cpuset.cpus.effective")),
            memory_nodes: None,
            partition: partition.map(str::to_owned),
        };
        machine.cgroups.insert("/machine.slice".into(), group("0-3", None));
        machine.cgroups.insert("/dpdk.slice".into(), group("6-7", partition));
        for thread in &mut machine.threads {
            thread.cgroup = Some("/machine.slice".into());
            thread.affinity = Some(fact(set("0-3")));
        }
        found("PLC-CPUSET", machine).expect("PLC-CPUSET")
    };
    let foreign = of(Some("isolated"));
    assert!(foreign.fix[0].starts_with("# CPUs 6-7 belong to a partition of another group"), "{:?}", foreign.fix);
    assert!(foreign.undo.is_empty() && foreign.evidence[0].what.ends_with("its cgroup allows none of them"));
    let nobodys = of(None);
    assert!(nobodys.fix[0].starts_with("echo 0-3,6-7 > "), "{:?}", nobodys.fix);
    assert_eq!(nobodys.undo, ["echo '' > /sys/fs/cgroup/machine.slice/cpuset.cpus"], "it was not set there");
}

#[test]
fn a_container_is_its_managers_and_a_full_host_has_no_place_to_name() {
    let beside = |group: &str| {
        let mut machine = used();
        waits(&mut machine);
        machine.threads.push(program("cc1plus", 70, "0", 0.5));
        machine.threads[0].time_group = Some("/machine.slice/web.scope".into());
        machine.threads[4].time_group = Some(group.to_owned());
        // No other CPU has room, so neither of them moves.
        machine.threads[1] = thread(Role::Vcpu(1), 12, "1", 0.98, 0.0);
        machine.threads.extend((2..8).map(|cpu| program("stress", 80 + cpu, &cpu.to_string(), 1.0)));
        refill(&mut machine);
        machine
    };
    let typed = |group: &str| first(beside(group)).fix;
    let container = typed("/lxc.payload.build/system.slice/ci.service");
    assert!(container[1].starts_with("incus config set build limits.cpu.allowance=10%"), "{container:?}");
    let proxmoxs = typed("/lxc/101/ns");
    assert!(proxmoxs[1].starts_with("pct set 101 --cpulimit 1"), "{proxmoxs:?}");
    let below = typed("/batch.slice/logs.service");
    assert!(below[1].contains(" batch.slice CPUWeight=10"), "the slice shares the CPU with the VM's: {below:?}");
    let mut full = beside("/user.slice/session-1.scope/own");
    full.threads[4].time_group = None;
    let told = first(full).fix;
    assert!(told[0].starts_with("ps -o pid,ppid,args -p 70   # no CPU without a vCPU has room"), "{told:?}");
}

#[test]
fn steal_is_named_before_threads_that_cannot_have_run_there() {
    let of = |busy: f64, steal: f64| {
        let mut machine = used();
        for (vcpu, tid) in [(0, 11), (1, 12)] {
            machine.threads[vcpu] = thread(Role::Vcpu(vcpu as u32), tid, "0-1", 0.55, 0.4);
            machine.threads[vcpu].last_cpu = Some(fact(vcpu as u32));
        }
        for cpu in 0..2 {
            let usage =
                host::machine::CpuUse { busy: busy + steal, idle: 1.0 - busy - steal, steal, ..Default::default() };
            machine.cpu_use.insert(cpu, usage);
        }
        findings(machine).into_iter().next().expect("something is wrong")
    };
    assert_eq!(of(0.55, 0.42).rule, "PLC-BED");
    assert_ne!(of(0.98, 0.0).rule, "PLC-BED");
}

#[test]
fn memory_on_all_nodes_has_no_home_and_goes_to_the_vcpus() {
    let typed = |memory: &[(u32, u64)]| {
        let mut machine = used();
        machine.vm_memory.insert("web".into(), fact(memory.iter().copied().collect()));
        found("PLC-MEMORY", machine).expect("PLC-MEMORY").fix
    };
    let even = typed(&[(0, 1 << 30), (1, 1 << 30), (2, 1 << 30), (3, 1 << 30)]);
    assert!(even[0].starts_with("migratepages 10 1,2,3 0"), "{even:?}");
    let most = typed(&[(0, 1 << 30), (1, 5 << 30)]);
    assert!(most[0].starts_with("virsh vcpupin web "), "most of it is on node 1: {most:?}");
}

#[test]
fn vcpus_go_to_huge_pages_and_no_binding_of_the_same_page_takes_these_away() {
    let typed = |there: &str| {
        let mut machine = used();
        machine.domains[0].huge_pages = true;
        machine.vm_memory.insert("web".into(), fact([(1, 6 << 30)].into()));
        // A program that keeps all of the memory's node leaves them where they are.
        for cpu in set(there).iter() {
            machine.threads.push(program("dd", 900 + cpu as i32, &cpu.to_string(), 0.99));
        }
        refill(&mut machine);
        found("PLC-MEMORY", machine).expect("PLC-MEMORY").fix
    };
    let moved = typed("");
    assert!(moved.iter().any(|line| line.starts_with("virsh vcpupin web 0 ")), "{moved:?}");
    assert!(!moved.iter().any(|line| line.contains("numatune")), "{moved:?}");
    let stays = typed("4-7");
    assert!(stays.iter().any(|line| line.contains("nodeset='0'")), "{stays:?}");
}

/// A host with these settings and a thread of the kernel that runs for most of a CPU.
fn scanning(name: &str, settings: &[(&str, &str)]) -> Finding {
    let mut machine = used();
    machine.threads.push(program(name, 61, "0-7", 0.9));
    for (path, value) in settings {
        machine.settings.insert((*path).to_owned(), Fact::new((*value).to_owned(), *path));
    }
    found("PLC-KTHREAD", machine).expect("PLC-KTHREAD")
}

#[test]
fn a_scan_of_memory_is_slowed_and_what_it_saves_is_kept() {
    const HUGE: &str = "sys/kernel/mm/transparent_hugepage/khugepaged";
    let sleep = format!("{HUGE}/scan_sleep_millisecs");
    let busy = scanning("khugepaged", &[(&sleep, "0")]);
    assert_eq!(busy.fix[0], format!("echo 10000 > /{sleep}"));
    assert_eq!(busy.undo, [format!("echo 0 > /{sleep}")]);
    let usual = scanning("khugepaged", &[(&sleep, "10000")]);
    assert_eq!(usual.fix[0], format!("echo 100000 > /{sleep}"));
    let ksm = |pages: &str| {
        let of = |file: &str| format!("sys/kernel/mm/ksm/{file}");
        let settings = [(of("pages_sharing"), pages), (of("pages_to_scan"), "5000"), (of("sleep_millisecs"), "20")];
        scanning("ksmd", &settings.each_ref().map(|(path, value)| (path.as_str(), *value)))
    };
    assert_eq!(ksm("12000000").fix[0], "echo 100 > /sys/kernel/mm/ksm/pages_to_scan", "46 GiB are not given up");
    assert_eq!(ksm("120").fix[0], "echo 0 > /sys/kernel/mm/ksm/run");
}

#[test]
fn pressure_of_memory_says_what_it_comes_from() {
    let of = |gauges: &[(GaugeKind, &str, f64)]| {
        let mut machine = used();
        machine.settings.insert(
            "sys/kernel/mm/transparent_hugepage/defrag".into(),
            fact("[always] defer defer+madvise madvise never".to_owned()),
        );
        machine.gauges = gauges
            .iter()
            .map(|(kind, subject, value)| Gauge {
                kind: *kind,
                subject: (*subject).to_owned(),
                value: *value,
                place: "t:1".into(),
            })
            .collect();
        findings(machine)
    };
    let memory = (GaugeKind::PressureSome, "memory, 10 s", 0.5);
    let stalls = &of(&[memory, (GaugeKind::CompactionStalls, "", 3_000.0)])[0];
    assert!(stalls.title.ends_with("3,000 allocations per second waited for compaction"), "{}", stalls.title);
    assert!(stalls.fix[0].starts_with("echo defer+madvise > /sys/kernel/mm/transparent_hugepage/defrag"));
    assert_eq!(stalls.undo, ["echo always > /sys/kernel/mm/transparent_hugepage/defrag"]);
    assert!(of(&[memory, (GaugeKind::CompactionStalls, "", 9.0)])[0].undo.is_empty());
    let disks = (GaugeKind::PressureSome, "io, 10 s", 0.6);
    let read_back = of(&[memory, disks, (GaugeKind::MajorFaults, "", 15_000.0)]);
    assert_eq!(read_back[0].subject, "memory", "the disk is waited for because memory is short");
    let swaps = (GaugeKind::SwappedIn, "", 3e7);
    let left =
        |bytes: f64| of(&[swaps, (GaugeKind::SwapUsed, "", 8e9), (GaugeKind::MemoryAvailable, "", bytes)]).remove(0);
    assert!(left(75e9).title.contains("though 75.0 GB are available") && left(75e9).fix[0].contains("memory.high"));
    assert!(!left(1e9).title.contains("though"), "the host itself is short");
}

#[test]
fn what_withholds_memory_is_named_with_what_gives_it_back() {
    let gauge =
        |kind, subject: &str, value| Gauge { kind, subject: subject.into(), value, place: "t/memory.max".into() };
    let of = |change: &dyn Fn(&mut Machine)| {
        let mut machine = used();
        machine.gauges.push(gauge(GaugeKind::PressureSome, "memory, 10 s", 0.5));
        machine.gauges.push(gauge(GaugeKind::MemoryAvailable, "", 2e9));
        change(&mut machine);
        found("PLC-PRESSURE", machine).expect("PLC-PRESSURE")
    };
    let limited = |group: &str, per_s: f64| {
        of(&|machine: &mut Machine| {
            machine.threads.iter_mut().for_each(|thread| thread.time_group = Some(format!("{group}/libvirt/emulator")));
            machine.gauges.push(gauge(GaugeKind::LimitReached, group, per_s));
            machine.gauges.push(gauge(GaugeKind::MemoryLimit, group, (8_u64 << 30) as f64));
        })
    };
    let scope = limited("/machine.slice/machine-qemu-web.scope", 800.0);
    assert!(
        scope.title.ends_with(": machine-qemu-web.scope reaches its memory limit of 8.6 GB 800 times per second"),
        "{}",
        scope.title
    );
    assert_eq!(scope.fix[1], "virsh memtune web --hard-limit -1 --live --config");
    assert_eq!(scope.undo, ["virsh memtune web --hard-limit 8388608 --live --config"]);
    let slice = limited("/machine.slice", 800.0);
    assert!(
        slice.fix[1].starts_with("systemctl set-property --runtime machine.slice MemoryMax=infinity"),
        "{:?}",
        slice.fix
    );
    assert_eq!(slice.undo, ["systemctl set-property --runtime machine.slice MemoryMax=8589934592"]);
    assert!(!limited("/machine.slice", 1.0).title.contains("limit"), "now and then");
    let nodes = |mode: &str, free: u64| {
        of(&|machine: &mut Machine| {
            machine.settings.insert("proc/sys/vm/zone_reclaim_mode".into(), fact(mode.to_owned()));
            machine.nodes.get_mut(&0).unwrap().free_bytes = Some(1 << 27);
            machine.nodes.get_mut(&1).unwrap().free_bytes = Some(free);
        })
    };
    let kept = nodes("1", 1 << 33);
    assert!(
        kept.title.contains("vm.zone_reclaim_mode 1") && kept.title.ends_with("node 1 has 8.6 GB free"),
        "{}",
        kept.title
    );
    assert_eq!(
        (kept.fix[0].as_str(), kept.undo[0].as_str()),
        ("echo 0 > /proc/sys/vm/zone_reclaim_mode", "echo 1 > /proc/sys/vm/zone_reclaim_mode")
    );
    assert!(nodes("0", 1 << 33).undo.is_empty() && nodes("1", 1 << 28).undo.is_empty());
    let pages = |free: u64| {
        of(&|machine: &mut Machine| machine.nodes.get_mut(&0).unwrap().huge_pages = vec![(2_048, 24_576, free)])
    };
    let unused = pages(24_000);
    assert!(unused.title.ends_with("50.3 GB are set aside as huge pages and free"), "{}", unused.title);
    assert_eq!(unused.fix[1], "echo 576 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
    assert!(pages(1_000).undo.is_empty(), "there is as much other memory");
}

#[test]
fn a_command_line_without_nodes_shows_a_wide_guest_none() {
    let of = |by_command: bool| {
        let mut machine = quiet();
        let domain = &mut machine.domains[0];
        (domain.vcpus, domain.by_command) = (Some(6), by_command);
        commands("PLC-CELLS", machine)
    };
    assert_eq!((of(true).is_empty(), of(false).is_empty()), (false, true));
}

#[test]
fn a_command_line_with_windows_clock_and_nothing_of_hyper_v_is_told() {
    let of = |by_command: bool, windows: bool| {
        let mut machine = quiet();
        let domain = &mut machine.domains[0];
        (domain.by_command, domain.windows) = (by_command, windows.then(|| fact("local time".to_owned())));
        found("PLC-HYPERV", machine)
    };
    let told = of(true, true).expect("PLC-HYPERV");
    assert!(told.title.contains("synic") && told.evidence[1].what == "no hv- word behind -cpu", "{told:?}");
    assert!(of(true, false).is_none() && of(false, true).is_none());
}

#[test]
fn a_full_main_loop_is_told_with_the_disks_that_it_serves() {
    let of = |run: f64, bus: &str, iothreads: u32| {
        let mut machine = used();
        machine.threads[2] = thread(Role::Emulator, 10, "2-3", run, 0.0);
        let domain = &mut machine.domains[0];
        (domain.by_command, domain.iothreads) = (true, iothreads);
        domain.disks.push(host::machine::Disk { target: "sda".into(), bus: Some(bus.into()), ..Default::default() });
        refill(&mut machine);
        found("PLC-MAINLOOP", machine)
    };
    let scsi = of(0.98, "scsi", 0).expect("PLC-MAINLOOP");
    assert_eq!(scsi.title, "QEMU's main loop of web ran 98.0 % of a CPU, and serves sda");
    let controllers = "<driver iothread='1'/>, within <controller type='scsi' model='virtio-scsi'>";
    assert!(scsi.fix.last().unwrap().ends_with(controllers), "{:?}", scsi.fix);
    assert!(scsi.fix.iter().all(|line| !line.contains("io='native' iothread")), "a SCSI disk has none of its own");
    assert!(of(0.98, "scsi", 1).unwrap().title.ends_with("of a CPU"), "the controller may have that thread");
    assert!(of(0.5, "scsi", 0).is_none());
}
