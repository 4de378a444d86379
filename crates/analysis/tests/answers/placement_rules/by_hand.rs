//! Hosts that somebody set up by hand: groups that no unit has, policies of threads, limits of others, monitors other than QEMU. Each with a
//! neighbour that is well.

use super::culprits::{first, program, refill, second, used, waits};
use super::quiet::{fact, found, quiet, set, thread};
use base::{Finding, Severity};
use host::Machine;
use host::machine::{Cgroup, CpuUse, Domain, Fact, Gauge, GaugeKind, Manager, Role};

/// vCPU 0 waits for a program on its CPU while programs fill the others, and VM and programs are in groups of their own.
fn full(policy: u32) -> Machine {
    let mut machine = used();
    waits(&mut machine);
    machine.threads.extend((0..8).map(|cpu| program("cc1plus", 70 + cpu, &cpu.to_string(), 0.9)));
    for thread in &mut machine.threads {
        let (is_vm, group) = (
            thread.vm.is_some(),
            if thread.vm.is_some() { "/system.slice/vm.service" } else { "/system.slice/ci.service" },
        );
        thread.time_group = Some(group.into());
        thread.policy = Some(if is_vm { policy } else { 0 });
    }
    refill(&mut machine);
    machine
}

#[test]
fn who_yields_to_everybody_gets_the_usual_policy_and_others_keep_their_weight() {
    let found = first(full(5));
    assert!(found.title.ends_with("; web has the policy SCHED_IDLE: it gets what others leave"), "{}", found.title);
    assert!(found.fix.contains(&"chrt --other -p 0 11".to_owned()), "{:?}", found.fix);
    assert!(found.undo.contains(&"chrt --idle -p 0 11".to_owned()), "{:?}", found.undo);
    assert!(!found.fix.iter().any(|line| line.contains("CPUWeight=10 ")), "{:?}", found.fix);
    let silent = |found: &Finding| assert!(!found.title.contains("SCHED_IDLE"), "{}", found.title);
    silent(&first(full(0)));
    // Between groups with weights a policy counts within each alone.
    let mut weighed = full(5);
    for group in ["/system.slice/vm.service", "/system.slice/ci.service"] {
        weighed.weights.insert(group.into(), Fact::new(100, format!("sys/fs/cgroup{group}/cpu.weight")));
    }
    silent(&first(weighed));
}

#[test]
fn a_vm_that_yields_on_a_full_host_is_not_asked_for_fewer_vcpus() {
    let of = |policy: u32| {
        let mut machine = used();
        machine.threads = (0..2).map(|vcpu| thread(Role::Vcpu(vcpu), 11 + vcpu as i32, "0-7", 0.04, 0.9)).collect();
        machine.threads.iter_mut().for_each(|thread| thread.policy = Some(policy));
        second(
            &mut machine,
            "prod",
            (0..8).map(|vcpu| thread(Role::Vcpu(vcpu), 30 + vcpu as i32, "0-7", 0.93, 0.04)).collect(),
        );
        machine.domains[0] = Domain { name: "web".into(), vcpus: Some(2), ..Domain::default() };
        machine.cpu_use.values_mut().for_each(|usage| *usage = CpuUse { busy: 0.99, idle: 0.01, ..CpuUse::default() });
        found("PLC-OVERCOMMIT", machine).expect("PLC-OVERCOMMIT")
    };
    let idle = of(5);
    assert!(idle.title.contains("web has the policy SCHED_IDLE"), "{}", idle.title);
    assert_eq!(idle.fix[..2], ["chrt --other -p 0 11".to_owned(), "chrt --other -p 0 12".to_owned()]);
    assert!(!idle.fix.iter().any(|line| line.contains("setvcpus")), "{:?}", idle.fix);
    assert!(of(0).fix.iter().any(|line| line.starts_with("virsh setvcpus web")));
}

#[test]
fn a_group_that_a_program_made_is_set_by_its_file() {
    let of = |path: &str| {
        let mut machine = quiet();
        let effective = Some(Fact::new(set("0-1"), format!("sys/fs/cgroup{path}/cpuset.cpus.effective")));
        let cpus = Some(fact(set("0-1")));
        machine.cgroups.insert(path.into(), Cgroup { cpus, effective, memory_nodes: None, partition: None });
        machine.threads = (0..4).map(|vcpu| thread(Role::Vcpu(vcpu), 11 + vcpu as i32, "0-1", 0.5, 0.48)).collect();
        machine.threads.iter_mut().for_each(|thread| thread.cgroup = Some(path.into()));
        machine.domains[0].vcpu_pins.clear();
        for cpu in 0..2 {
            machine.cpu_use.insert(cpu, CpuUse { busy: 0.99, idle: 0.01, ..CpuUse::default() });
        }
        let found = found("PLC-SLICE", machine).expect("PLC-SLICE");
        (found.fix.join("\n"), found.undo.join("\n"))
    };
    let file = "/sys/fs/cgroup/firecracker/a/cpuset.cpus";
    assert_eq!(of("/firecracker/a"), (format!("echo 0-3 > {file}"), format!("echo 0-1 > {file}")));
    assert!(of("/vms.slice").0.contains("systemctl set-property --runtime vms.slice AllowedCPUs=0-3"));
}

#[test]
fn a_clock_that_nothing_set_holds_down_is_the_processors() {
    let of = |khz: &str, governor: &str, cap: &str| {
        let mut machine = quiet();
        machine.cpu_use.insert(0, CpuUse { busy: 0.99, idle: 0.01, ..CpuUse::default() });
        let files = [
            ("scaling_cur_freq", khz),
            ("scaling_governor", governor),
            ("scaling_max_freq", cap),
            ("cpuinfo_max_freq", "3600000"),
        ];
        for (file, value) in files {
            machine.settings.insert(format!("sys/devices/system/cpu/cpu0/cpufreq/{file}"), fact(value.into()));
        }
        found("PLC-TUNED", machine).filter(|found| found.title.contains("holds them down"))
    };
    let told = of("800000", "performance", "3600000").expect("0.8 of 3.6 GHz");
    assert!(told.severity == Severity::Medium && told.fix.iter().any(|line| line.starts_with("turbostat")));
    assert!(of("2600000", "performance", "3600000").is_none(), "all cores at once, or wide vectors");
    assert!(of("800000", "powersave", "3600000").is_none() && of("800000", "performance", "800000").is_none());
}

#[test]
fn nodes_that_a_group_leaves_are_its_owners_to_widen() {
    let of = |group: Option<&str>| {
        let mut machine = used();
        let gauge = |kind, value| Gauge { kind, subject: String::new(), value, place: "proc/vmstat".into() };
        machine.gauges.extend([gauge(GaugeKind::SwappedIn, 2e7), gauge(GaugeKind::MemoryAvailable, 4e8)]);
        machine.nodes.get_mut(&0).unwrap().free_bytes = Some(1 << 27);
        machine.nodes.get_mut(&1).unwrap().free_bytes = Some(8 << 30);
        machine.domains[0].memory_bytes = Some(4 << 30);
        for thread in &mut machine.threads {
            (thread.memory_nodes, thread.cgroup) = (Some(set("0")), Some("/machine.slice/web.scope".into()));
        }
        if let Some(path) = group {
            let memory_nodes = Some(set("0"));
            machine.cgroups.insert(path.into(), Cgroup { cpus: None, effective: None, memory_nodes, partition: None });
        }
        found("PLC-SWAP", machine).expect("PLC-SWAP")
    };
    let told = of(Some("/machine.slice"));
    assert!(
        told.fix.contains(&"systemctl set-property --runtime machine.slice AllowedMemoryNodes=0-1".to_owned()),
        "{:?}",
        told.fix
    );
    assert_eq!(told.undo, ["systemctl set-property --runtime machine.slice AllowedMemoryNodes=0"]);
    assert!(!told.fix.iter().any(|line| line.starts_with("virsh numatune")), "{:?}", told.fix);
    assert!(of(None).fix.iter().any(|line| line.starts_with("virsh numatune web")));
}

#[test]
fn who_may_run_anywhere_leaves_the_cpus_that_others_have() {
    let of = |waits: f64| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.55, waits);
        machine.threads[1] = thread(Role::Vcpu(1), 12, "1", 0.55, waits);
        let mut floats =
            [thread(Role::Vcpu(0), 31, "0-7", 0.4, waits / 2.0), thread(Role::Vcpu(1), 32, "0-7", 0.4, waits / 2.0)];
        floats[1].last_cpu = Some(fact(1));
        second(&mut machine, "db", floats.to_vec());
        refill(&mut machine);
        found("PLC-FLOAT", machine).expect("PLC-FLOAT")
    };
    let told = of(0.4);
    assert!(
        told.severity == Severity::High && told.fix.iter().any(|line| line == "taskset -cp 2-7 31"),
        "{:?}",
        told.fix
    );
    assert_eq!(of(0.0).changes.len(), 0, "where nobody waits nobody is moved");
}

#[test]
fn sets_of_two_vms_on_siblings_of_each_other() {
    let of = |run: f64| {
        let mut machine = used();
        machine.topology.cpus.iter_mut().for_each(|(cpu, about)| (about.core, about.node) = (cpu % 4, Some(0)));
        let vcpus = |first: u32, tid: i32| {
            let set = format!("{first}-{}", first + 1);
            let mut both = [0, 1].map(|at| thread(Role::Vcpu(at), tid + at as i32, &set, run, 0.0));
            both[1].last_cpu = Some(fact(first + 1));
            both.to_vec()
        };
        machine.threads = vcpus(0, 11);
        machine.domains = vec![Domain { name: "web".into(), vcpus: Some(2), ..Domain::default() }];
        second(&mut machine, "db", vcpus(4, 21));
        refill(&mut machine);
        found("PLC-CORE", machine)
    };
    let told = of(0.95).expect("PLC-CORE");
    assert_eq!(told.title, "busy vCPUs of db and web are on sibling threads of 2 cores, and 2 cores are idle");
    assert!(!told.changes.is_empty(), "{:?}", told.fix);
    assert!(of(0.3).is_none());
}

#[test]
fn what_fills_a_set_with_its_vcpus_is_counted_and_what_programs_take_is_not() {
    let of = |run: f64, wait: f64| {
        let mut machine = used();
        machine.threads = (0..2).map(|vcpu| thread(Role::Vcpu(vcpu), 11 + vcpu as i32, "0-1", run, wait)).collect();
        machine.threads[1].last_cpu = Some(fact(1));
        machine.threads.push(thread(Role::IoThread(1), 14, "0-1", 0.4, 0.45));
        machine.domains[0] = Domain { name: "web".into(), vcpus: Some(2), ..Domain::default() };
        for cpu in 0..2 {
            machine.cpu_use.insert(cpu, CpuUse { busy: 0.99, idle: 0.01, ..CpuUse::default() });
        }
        found("PLC-OVERCOMMIT", machine)
    };
    let told = of(0.75, 0.24).expect("PLC-OVERCOMMIT");
    assert!(
        told.title.starts_with("CPUs 0-1 are overcommitted: 2 vCPUs and 1 other thread of web want 2."),
        "{}",
        told.title
    );
    assert!(of(0.3, 0.4).is_none(), "somebody else has most of it");
}

#[test]
fn a_vm_goes_to_the_node_of_its_card_where_that_has_room() {
    let of = |free: u64| {
        let mut machine = used();
        machine.domains[0].host_devices.push(fact("0000:81:00.0".into()));
        machine.domains[0].memory_bytes = Some(4 << 30);
        machine.pci_nodes.insert("0000:81:00.0".into(), fact(1));
        machine.nodes.get_mut(&1).unwrap().free_bytes = Some(free);
        found("PLC-NIC", machine).expect("PLC-NIC")
    };
    let told = of(8 << 30);
    assert!(told.title.ends_with("0000:81:00.0 on node 1"), "{}", told.title);
    assert!(told.fix[0].contains("nodeset='1'") && told.fix[0].contains("CPUs 4-5 of node 1"), "{:?}", told.fix);
    assert!(!of(1 << 30).fix[0].contains("nodeset"));
}

#[test]
fn a_monitor_other_than_qemu_takes_none_of_its_options() {
    let mut machine = quiet();
    machine.domains[0] = Domain {
        name: "web".into(),
        vcpus: Some(2),
        by_command: true,
        monitor: Some("firecracker"),
        ..Domain::default()
    };
    assert_eq!(machine.manager_of(&machine.domains[0]), Manager::Monitor { program: "firecracker" });
    machine.threads = (0..9).map(|vcpu| thread(Role::Vcpu(vcpu), 11 + vcpu as i32, "0-7", 0.5, 0.45)).collect();
    machine.cpu_use.values_mut().for_each(|usage| *usage = CpuUse { busy: 0.99, idle: 0.01, ..CpuUse::default() });
    let fix = found("PLC-OVERCOMMIT", machine).expect("PLC-OVERCOMMIT").fix.join("\n");
    assert!(
        fix.contains("firecracker takes vcpu_count of its machine-config")
            && !fix.contains("virsh")
            && !fix.contains("qemu"),
        "{fix}"
    );
}

#[test]
fn of_a_real_time_vcpu_and_its_helpers_the_helpers_go() {
    let of = |policy: u32| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.96, 0.0);
        machine.threads[2] = thread(Role::Emulator, 10, "0", 0.0, 0.0);
        machine.threads[3] = thread(Role::Vhost, 13, "0", 0.03, 0.9);
        machine.domains[0].emulator_pins = vec![fact(set("0"))];
        machine.threads[0].policy = Some(policy);
        refill(&mut machine);
        found("PLC-OVERLAP", machine).expect("PLC-OVERLAP")
    };
    let told = of(1);
    assert!(told.evidence.iter().any(|seen| seen.what.contains("(11) with SCHED_FIFO ran")), "{:?}", told.evidence);
    assert!(told.fix[0].starts_with("virsh emulatorpin web "), "{:?}", told.fix);
    assert!(!told.fix.iter().any(|line| line.starts_with("virsh vcpupin")), "{:?}", told.fix);
    assert!(!of(0).evidence.iter().any(|seen| seen.what.contains("SCHED_FIFO")));
}

#[test]
fn a_set_without_a_choice_is_behind_the_caches_of_its_cpus() {
    let of = |cpus: &str| {
        let mut machine = used();
        machine
            .topology
            .cpus
            .iter_mut()
            .for_each(|(cpu, about)| (about.node, about.last_cache) = (Some(0), Some(cpu / 4)));
        machine.threads = vec![thread(Role::Vcpu(0), 11, cpus, 0.9, 0.0), thread(Role::Vcpu(1), 12, cpus, 0.9, 0.0)];
        machine.threads[1].last_cpu = Some(fact(4));
        machine.domains = vec![Domain { name: "web".into(), vcpus: Some(2), ..Domain::default() }];
        refill(&mut machine);
        found("PLC-CACHE", machine)
    };
    let told = of("0,4").expect("PLC-CACHE");
    assert_eq!(told.title, "the vCPUs of web are behind 2 last-level caches; they fit behind one");
    assert!(!told.changes.is_empty(), "{:?}", told.fix);
    assert!(of("0-1,4-5").is_none(), "the scheduler has a choice");
}

#[test]
fn a_main_loop_that_carries_packets_is_told_with_what_has_the_kernel_carry_them() {
    let of = |driver: &str| {
        let mut machine = used();
        machine.threads[2] = thread(Role::Emulator, 10, "2-3", 0.97, 0.0);
        let card = host::machine::Interface {
            name: "net0".into(),
            kind: "bridge".into(),
            model: Some("virtio".into()),
            driver: Some(driver.into()),
            ..Default::default()
        };
        machine.domains[0].interfaces.push(card);
        refill(&mut machine);
        found("PLC-MAINLOOP", machine).expect("PLC-MAINLOOP")
    };
    let told = of("qemu");
    assert!(told.title.ends_with("and carries the packets of net0"), "{}", told.title);
    assert_eq!(told.fix[0], "virsh edit web   # <model type='virtio'/> and <driver name='vhost'/>");
    assert!(!of("vhost").title.contains("carries"));
}

#[test]
fn queues_of_one_cpu_are_spread_over_cpus_without_vcpus_and_come_back_as_they_were() {
    let mut machine = used();
    machine.cpu_use.insert(5, CpuUse { softirq: 0.95, ..CpuUse::default() });
    machine.irqs.extend((0..3).map(|queue| host::machine::Irq {
        number: 40 + queue,
        name: format!("eth0-{queue}"),
        affinity: Some(fact(set("4-7"))),
        per_s: [(5, 9_000.0)].into(),
        ..Default::default()
    }));
    let told = found("PLC-SOFTIRQ", machine).expect("PLC-SOFTIRQ");
    let to: Vec<&str> = told.fix.iter().filter_map(|line| line.strip_prefix("echo ")?.split(' ').next()).collect();
    assert!(to.len() == 3 && to.iter().all(|cpu| ["4", "6", "7"].contains(cpu)), "{:?}", told.fix);
    assert!(told.undo.contains(&"echo 4-7 > /proc/irq/40/smp_affinity_list".to_owned()), "{:?}", told.undo);
}
