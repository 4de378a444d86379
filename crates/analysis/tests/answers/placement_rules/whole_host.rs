//! What is wrong with a host is said of the host: a real-time program, a cap of its clocks, a full iothread, memory that is promised twice.

use super::culprits::{program, refill, used};
use super::quiet::{fact, findings, found, quiet, set, thread};
use base::{Finding, Severity};
use host::Machine;
use host::machine::{CpuUse, Disk, Domain, Gauge, GaugeKind, GuestTopology, Role};

/// Four full vCPUs on CPUs 2-5, and a program on CPU 3.
fn beside(policy: Option<u32>, run: f64, wait: f64) -> Machine {
    let mut machine = quiet();
    machine.threads.clear();
    for (vcpu, cpu) in (0..).zip(2..6) {
        let mut own = thread(Role::Vcpu(vcpu), 11 + vcpu as i32, "2-5", 0.98 - wait, wait);
        own.last_cpu = Some(fact(cpu));
        machine.threads.push(own);
    }
    machine.domains[0] = Domain { name: "web".into(), vcpus: Some(4), ..Domain::default() };
    let mut rival = program("corosync", 700, "0-7", run);
    (rival.last_cpu, rival.policy, rival.start_ticks) = (Some(fact(3)), policy, Some(7));
    rival.time_group = Some("/system.slice/corosync.service".into());
    machine.threads.push(rival);
    refill(&mut machine);
    for cpu in 2..6 {
        machine.cpu_use.insert(cpu, CpuUse { busy: 0.98, idle: 0.02, ..CpuUse::default() });
    }
    machine
}

#[test]
fn a_real_time_program_in_a_vms_set_is_named_first_and_sent_away() {
    for (run, wait) in [(0.62, 0.15), (0.95, 0.23)] {
        let first = findings(beside(Some(2), run, wait)).remove(0);
        assert_eq!(first.rule, "PLC-RTPROGRAM", "{}", first.title);
        assert!(first.title.contains("corosync ran") && first.title.contains("SCHED_RR"), "{}", first.title);
        // CPU 0 and 1 are left to vCPUs where a placement of the page sends one there.
        assert!(first.fix[0].starts_with("taskset -cp ") && first.fix[0].ends_with("6-7 700"), "{:?}", first.fix);
        assert!(first.fix[1].contains("systemctl set-property corosync.service AllowedCPUs="), "{:?}", first.fix);
        assert_eq!(first.undo, ["taskset -cp 0-7 700"]);
    }
    // Another policy, a wait that it did not cause, one that nobody has.
    assert!(found("PLC-RTPROGRAM", beside(Some(0), 0.62, 0.15)).is_none());
    assert!(found("PLC-RTPROGRAM", beside(Some(2), 0.21, 0.3)).is_none());
    assert!(found("PLC-RTPROGRAM", beside(Some(2), 0.62, 0.02)).is_none());
}

/// CPUs 0 and 1 full at 1.4 of 3.5 GHz, with these settings, `file value`.
fn clocked(settings: &[&str]) -> Vec<Finding> {
    let mut machine = quiet();
    let own = "scaling_cur_freq 1400000,cpuinfo_max_freq 3500000,base_frequency 2100000,scaling_governor powersave";
    let of_cpus = (0..2).flat_map(|cpu| own.split(',').map(move |setting| format!("cpu{cpu}/cpufreq/{setting}")));
    for setting in of_cpus.chain(settings.iter().map(|setting| (*setting).to_owned())) {
        let (file, value) = setting.split_once(' ').unwrap();
        machine.settings.insert(format!("sys/devices/system/cpu/{file}"), fact(value.to_owned()));
    }
    machine.cpu_use.extend([0, 1].map(|cpu| (cpu, CpuUse { busy: 1.0, ..CpuUse::default() })));
    let mut found = findings(machine);
    found.retain(|finding| finding.rule == "PLC-TUNED" && finding.severity == Severity::Medium);
    found
}

#[test]
fn what_caps_all_clocks_is_named_and_lifted() {
    // Of what is capped the governor is not the cause, and of what is not, it is.
    let [percent] = &clocked(&["intel_pstate/max_perf_pct 40", "intel_pstate/no_turbo 0"])[..] else { panic!("one") };
    assert_eq!(percent.title, "CPUs 0-1 are busy at 1.4 of 3.5 GHz: max_perf_pct of intel_pstate is 40");
    assert_eq!(percent.fix, ["echo 100 > /sys/devices/system/cpu/intel_pstate/max_perf_pct"]);
    assert_eq!(percent.undo, ["echo 40 > /sys/devices/system/cpu/intel_pstate/max_perf_pct"]);
    let turbo = &clocked(&["intel_pstate/max_perf_pct 100", "intel_pstate/no_turbo 1"])[0];
    assert_eq!(turbo.fix, ["echo 0 > /sys/devices/system/cpu/intel_pstate/no_turbo"]);
    assert_eq!(clocked(&["intel_pstate/max_perf_pct 100", "intel_pstate/no_turbo 0"])[0].subject, "scaling_governor");
    let own = &clocked(&["cpu0/cpufreq/scaling_max_freq 3500000", "cpu1/cpufreq/scaling_max_freq 1400000"])[1];
    assert_eq!(own.fix, ["echo 3500000 > /sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq"]);
}

#[test]
fn a_full_iothread_gets_others_beside_it() {
    let of = |run: f64, disks: &[&str]| {
        let mut machine = used();
        machine.threads.push(thread(Role::IoThread(1), 15, "3", run, 0.0));
        machine.domains[0].iothreads = 1;
        machine.domains[0].disks = disks
            .iter()
            .map(|name| Disk {
                target: (*name).into(),
                bus: Some("virtio".into()),
                iothread: Some(1),
                ..Disk::default()
            })
            .collect();
        refill(&mut machine);
        found("PLC-IOTHREAD", machine)
    };
    let three = of(0.98, &["vda", "vdb", "vdc"]).expect("PLC-IOTHREAD");
    assert_eq!(three.title, "iothread 1 of web ran 98.0 % of a CPU, and serves vda, vdb and vdc");
    assert_eq!(three.fix[..2], ["virsh iothreadadd web 2 --live --config", "virsh iothreadadd web 3 --live --config"]);
    assert!(
        three.fix[2].contains("<driver iothread='2'/> of vdb and <driver iothread='3'/> of vdc"),
        "{:?}",
        three.fix
    );
    assert_eq!(three.undo[1..], ["virsh iothreaddel web 2 --live --config", "virsh iothreaddel web 3 --live --config"]);
    let one = of(0.98, &["vda"]).expect("PLC-IOTHREAD");
    assert!(one.fix[1].contains("<iothread id='1'/><iothread id='2'/>"), "{:?}", one.fix);
    assert!(of(0.6, &["vda", "vdb"]).is_none());
}

#[test]
fn small_pages_that_were_counted_tell_where_no_definition_does() {
    let of = |enabled: &str, gib: u64, free: u64| {
        let mut machine = quiet();
        machine.settings.insert("sys/kernel/mm/transparent_hugepage/enabled".into(), fact(enabled.to_owned()));
        machine.vm_small_pages.insert("web".into(), fact(gib << 30));
        machine.nodes.get_mut(&0).unwrap().huge_pages = vec![(2_048, free, free)];
        found("PLC-RAM", machine)
    };
    let told = of("always madvise [never]", 95, 0).expect("PLC-RAM");
    assert_eq!((told.severity, told.title.as_str()), (Severity::Medium, "web has 102.0 GB on pages of 4 KiB"));
    assert!(told.fix[0].starts_with("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"), "{:?}", told.fix);
    assert_eq!(told.undo[0], "echo never > /sys/kernel/mm/transparent_hugepage/enabled");
    let reserved = of("always madvise [never]", 95, 50_000).expect("PLC-RAM").title;
    assert!(reserved.ends_with("; 104.9 GB on huge pages are reserved and free"), "{reserved}");
    assert!(of("always [madvise] never", 95, 0).is_none(), "these count as pages of 4 KiB, too");
    assert!(of("always madvise [never]", 4, 0).is_none());
}

#[test]
fn sockets_that_windows_leaves_idle_become_cores() {
    let of = |sockets: u32, idle: f64, windows: bool| {
        let mut machine = used();
        machine.threads = (0..4)
            .map(|vcpu| thread(Role::Vcpu(vcpu), 11 + vcpu as i32, "0-7", if vcpu < 2 { 0.97 } else { idle }, 0.0))
            .collect();
        let topology = GuestTopology { sockets, dies: 1, cores: 4 / sockets, threads: 1 };
        machine.domains[0] =
            Domain { name: "web".into(), vcpus: Some(4), topology: Some(fact(topology)), ..Domain::default() };
        machine.domains[0].hyperv = windows.then(|| fact(["relaxed".to_owned()].into()));
        found("PLC-SOCKETS", machine)
    };
    let told = of(4, 0.0, true).expect("PLC-SOCKETS");
    assert!(
        told.title.starts_with("web has 4 vCPUs in 4 sockets, and Windows uses 2: vCPUs 2-3 ran 0 % at most"),
        "{}",
        told.title
    );
    assert!(
        told.fix[0].starts_with("virsh edit web   # <topology sockets='1' cores='4' threads='1'/>"),
        "{:?}",
        told.fix
    );
    assert!(of(2, 0.0, true).is_none() && of(4, 0.4, true).is_none() && of(4, 0.0, false).is_none());
}

#[test]
fn swapping_stands_before_what_waits_for_it_and_says_what_was_promised() {
    let of = |gib: u64, limited: bool| {
        let mut machine = used();
        machine.domains[0].memory_bytes = Some(gib << 30);
        let gauge =
            |kind, subject: &str, value| Gauge { kind, subject: subject.into(), value, place: "t/memory.max".into() };
        machine.gauges = vec![
            gauge(GaugeKind::PressureSome, "memory, 10 s", 0.5),
            gauge(GaugeKind::PressureSome, "io, 10 s", 0.6),
            gauge(GaugeKind::SwappedIn, "", 4e7),
        ];
        if limited {
            machine.threads.iter_mut().for_each(|thread| thread.time_group = Some("/machine.slice/web.scope".into()));
            machine.gauges.push(gauge(GaugeKind::LimitReached, "/machine.slice/web.scope", 800.0));
            machine.gauges.push(gauge(GaugeKind::MemoryLimit, "/machine.slice/web.scope", 8e9));
        }
        findings(machine)
    };
    let found = of(48, false);
    assert_eq!(found[0].rule, "PLC-SWAP", "{}", found[0].title);
    assert!(found[0].title.ends_with("; 1 guest may have 51.5 GB, the host has 34.4 GB"), "{}", found[0].title);
    assert!(!of(16, false)[0].title.contains("may have"), "it fits");
    assert_eq!(of(48, true)[0].rule, "PLC-PRESSURE", "the limit withholds what is there");
}

#[test]
fn a_shared_set_over_two_nodes_is_no_fault_while_nobody_waits() {
    let of = |wait: f64, memory: bool, cpus: &str| {
        let mut machine = used();
        for (vcpu, thread) in machine.threads.iter_mut().take(2).enumerate() {
            thread.affinity = Some(fact(set(if vcpu == 0 { cpus } else { "0-1,4-5" })));
            thread.wait_share = Some(fact(wait));
        }
        machine.domains[0].vcpu_pins.clear();
        if memory {
            machine.vm_memory.insert("web".into(), fact([(0, 1 << 30), (1, 1 << 30)].into()));
        }
        found("PLC-NODE", machine).map(|finding| finding.severity)
    };
    assert_eq!(of(0.0, false, "0-1,4-5"), Some(Severity::Info));
    for weighty in [of(0.4, false, "0-1,4-5"), of(0.0, true, "0-1,4-5"), of(0.0, false, "0")] {
        assert_eq!(weighty, Some(Severity::Medium));
    }
}

#[test]
fn a_managed_interrupt_stays_and_the_vcpu_goes() {
    let mut machine = used();
    machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, 0.45);
    machine.threads[2..].iter_mut().for_each(|thread| thread.affinity = Some(fact(set("2"))));
    machine.domains[0].emulator_pins = vec![fact(set("2"))];
    let irq = host::machine::Irq {
        number: 62,
        name: "nvme0q2".into(),
        affinity: Some(fact(set("0-3"))),
        effective: Some(set("0")),
        node: None,
        per_s: [(0, 30_000.0)].into(),
        counts: Default::default(),
    };
    machine.irqs.push(irq);
    machine.cpu_use.insert(0, CpuUse { busy: 0.5, irq: 0.3, softirq: 0.15, idle: 0.05, ..CpuUse::default() });
    let told = found("PLC-IRQ", machine).expect("PLC-IRQ");
    assert!(told.fix[0].starts_with("virsh vcpupin web 0 "), "{:?}", told.fix);
    assert!(told.fix.iter().all(|line| !line.contains("smp_affinity")), "{:?}", told.fix);
}

#[test]
fn a_scan_that_starves_a_vcpu_stands_before_it() {
    let of = |name: &str| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.2, 0.78);
        let mut scan = program(name, 60, "0-7", 0.8);
        scan.last_cpu = Some(fact(0));
        machine.threads.push(scan);
        machine.settings.insert("sys/kernel/mm/ksm/pages_sharing".into(), fact("1200".to_owned()));
        refill(&mut machine);
        findings(machine)
    };
    assert_eq!(of("ksmd")[0].fix[0], "echo 0 > /sys/kernel/mm/ksm/run");
    assert!(of("ksmd")[1].fix[0].contains("after PLC-KTHREAD@ksmd"), "the vCPU stays where it is");
    assert_eq!((of("z_wr_iss")[0].rule, of("make")[0].rule), ("PLC-KTHREAD", "PLC-STARVED"));
    assert!(of("z_wr_iss")[0].fix[0].starts_with("zfs get compression"), "{:?}", of("z_wr_iss")[0].fix);
}

#[test]
fn a_pod_whose_cpus_are_its_own_is_asked_for_nothing_that_it_has() {
    let asked = |emulator: &str, vcpu: &str| {
        let mut machine = used();
        machine.threads.truncate(2);
        machine.threads[1] = thread(Role::Vcpu(1), 12, vcpu, 0.5, 0.45);
        machine.threads.push(thread(Role::Emulator, 10, emulator, 0.3, 0.1));
        machine.domains[0].name = "shop_web".into();
        for thread in &mut machine.threads {
            (thread.vm, thread.cgroup) = (Some("shop_web".into()), Some("/kubepods.slice/pod1/cri-1.scope".into()));
        }
        refill(&mut machine);
        let typed: String = findings(machine).iter().flat_map(|finding| finding.fix.clone()).collect();
        ["dedicatedCpuPlacement", "isolateEmulatorThread", "--xml"].map(|word| typed.contains(word))
    };
    assert_eq!(asked("3", "1"), [false, false, false]);
    assert_eq!(asked("1", "1"), [false, true, false]);
    assert_eq!(asked("0-3", "0-3"), [true, true, false]);
}

#[test]
fn no_limit_is_lifted_that_leaves_others_their_time() {
    let asked = |cpus: &str| {
        let mut machine = used();
        (machine.threads[0].policy, machine.threads[1].affinity) = (Some(2), Some(fact(set(cpus))));
        machine.settings.insert("proc/sys/kernel/sched_rt_runtime_us".into(), fact("950000".to_owned()));
        found("PLC-REALTIME", machine).is_some()
    };
    assert!(asked("1") && !asked("0-1"), "the ordinary vCPU gets what the limit leaves");
}

#[test]
fn polling_for_halted_vcpus_counts_where_somebody_raised_its_limit() {
    let of = |cpus: f64, limit: &str| {
        let mut machine = used();
        let place = "sys/kernel/debug/kvm/halt_poll_success_ns".to_owned();
        machine.gauges.push(Gauge { kind: GaugeKind::HaltPolling, subject: String::new(), value: cpus, place });
        machine.settings.insert("sys/module/kvm/parameters/halt_poll_ns".into(), fact(limit.to_owned()));
        found("PLC-HALTPOLL", machine)
    };
    let told = of(2.7, "2000000").expect("PLC-HALTPOLL");
    assert!(
        told.title.starts_with("KVM polls for halted vCPUs with 2.70 of 8 CPUs: halt_poll_ns is 2000000"),
        "{}",
        told.title
    );
    let echo = |ns: &str| format!("echo {ns} > /sys/module/kvm/parameters/halt_poll_ns");
    assert_eq!((told.fix, told.undo), (vec![echo("200000")], vec![echo("2000000")]));
    assert!(of(2.7, "200000").is_none() && of(0.5, "2000000").is_none());
}
