//! Limits that no pin reaches beyond: cgroups, by whoever owns them, and partitions.

use super::quiet::{commands, fact, findings, quiet, rules, set, thread};
use host::Machine;
use host::machine::{Cgroup, Irq, Nic, Role};

/// Both vCPUs wait for CPUs 0-1, which are all that the slice has; the other CPUs are idle.
fn squeezed(path: &str, allowed: &str) -> Machine {
    let mut machine = quiet();
    let group = Cgroup { cpus: None, effective: Some(fact(set(allowed))), memory_nodes: None, partition: None };
    machine.cgroups.insert(path.into(), group);
    machine.threads = vec![
        thread(Role::Vcpu(0), 11, allowed, 0.5, 0.48),
        thread(Role::Vcpu(1), 12, allowed, 0.5, 0.48),
        thread(Role::Vcpu(2), 14, allowed, 0.5, 0.48),
        thread(Role::Vcpu(3), 15, allowed, 0.5, 0.48),
        thread(Role::Emulator, 10, allowed, 0.01, 0.0),
    ];
    machine.domains[0].vcpus = Some(4);
    machine.domains[0].vcpu_pins.clear();
    machine.domains[0].emulator_pins.clear();
    for thread in &mut machine.threads {
        thread.cgroup = Some(format!("{path}/web.scope/libvirt/emulator"));
    }
    for cpu in set(allowed).iter() {
        machine.cpu_use.insert(cpu, host::machine::CpuUse { busy: 0.99, idle: 0.01, ..Default::default() });
    }
    machine
}

#[test]
fn a_slice_that_is_too_small_is_named_first_with_its_owners_command() {
    let found = findings(squeezed("/machine.slice", "0-1"));
    assert_eq!(found[0].rule, "PLC-SLICE", "{:?}", found.iter().map(|finding| &finding.title).collect::<Vec<_>>());
    assert!(found[0].title.starts_with("machine.slice allows CPUs 0-1 alone: "), "{}", found[0].title);
    let typed = commands("PLC-SLICE", squeezed("/machine.slice", "0-1"));
    assert!(typed[1].starts_with("systemctl set-property --runtime machine.slice AllowedCPUs=0-3"), "{typed:?}");
    // Kubernetes keeps a pool for its own reasons, and a slice with all CPUs limits nobody.
    assert!(!rules(squeezed("/kubepods.slice", "0-1")).contains(&"PLC-SLICE"));
    assert!(!rules(squeezed("/machine.slice", "0-7")).contains(&"PLC-SLICE"));
}

#[test]
fn cpus_of_a_partition_are_its_owners_to_give() {
    let mut machine = squeezed("/machine.slice", "0-1");
    let group = |cpus: &str, partition: Option<&str>| Cgroup {
        cpus: None,
        effective: Some(fact(set(cpus))),
        memory_nodes: None,
        partition: partition.map(str::to_owned),
    };
    machine.cgroups.insert(String::new(), group("0-1", None));
    machine.cgroups.insert("/rt.slice".into(), group("2-7", Some("isolated")));
    let found = findings(machine.clone());
    assert!(
        found[0].title.starts_with("CPUs 2-7 belong to the partition of rt.slice and are idle"),
        "{}",
        found[0].title
    );
    let takes = |line: &String| line.starts_with("systemctl set-property");
    assert!(!found.iter().any(|finding| finding.fix.iter().any(takes)), "{:?}", found[0].fix);
    machine.cgroups.remove("/rt.slice");
    machine.cgroups.insert(String::new(), group("0-1,6-7", None));
    let typed = commands("PLC-SLICE", machine);
    assert!(typed[1].ends_with("AllowedCPUs=0-1,6-7"), "2-5 are a partition's that no thread of a VM is in: {typed:?}");
}

#[test]
fn a_partition_gets_what_is_short_and_never_all_that_is_idle() {
    let of = |partition: &str| {
        let mut machine = squeezed("/rt.slice", "0-1");
        machine.cgroups.get_mut("/rt.slice").unwrap().partition = Some(partition.to_owned());
        findings(machine).into_iter().find(|finding| finding.rule == "PLC-SLICE").expect("PLC-SLICE")
    };
    // Four threads are 1.92 CPUs short.
    for kind in ["root", "isolated"] {
        let found = of(kind);
        assert!(found.title.starts_with("the partition of rt.slice allows CPUs 0-1 alone: "), "{}", found.title);
        assert_eq!(found.fix[1], "systemctl set-property --runtime rt.slice AllowedCPUs=0-3");
    }
    assert_eq!(of("member").fix[1], "systemctl set-property --runtime rt.slice AllowedCPUs=0-3");
}

#[test]
fn an_invalid_partition_is_told_with_who_has_its_cpus() {
    let of = |partition: &str| {
        let mut machine = squeezed("/machine.slice/rt.scope", "0-1");
        machine.cgroups.get_mut("/machine.slice/rt.scope").unwrap().partition = Some(partition.to_owned());
        let beside = Cgroup { cpus: None, effective: Some(fact(set("0-7"))), memory_nodes: None, partition: None };
        machine.cgroups.insert("/system.slice".into(), beside);
        findings(machine).into_iter().find(|finding| finding.title.contains("is invalid"))
    };
    let found = of("isolated invalid (Cpu list in cpuset.cpus not exclusive)").unwrap();
    let title = "the partition isolated of rt.scope is invalid: Cpu list in cpuset.cpus not exclusive; others run on CPUs 0-1 as well";
    assert_eq!((found.rule, found.title.as_str()), ("PLC-SLICE", title));
    assert_eq!(found.fix[1], "systemctl set-property --runtime system.slice AllowedCPUs=2-7");
    assert!(of("isolated").is_none() && of("member").is_none());
}

#[test]
fn of_two_groups_with_the_same_cpus_one_moves() {
    let mut machine = squeezed("/batch.slice", "0-1");
    let beside = squeezed("/rt.slice", "1-2");
    machine.cgroups.extend(beside.cgroups);
    let threads = beside.threads.into_iter().map(|mut thread| {
        thread.tid = thread.tid.map(|tid| tid + 100);
        super::culprits::of_vm("db", thread)
    });
    machine.threads.extend(threads);
    machine.domains.push(host::machine::Domain { name: "db".into(), vcpus: Some(4), ..Default::default() });
    machine.cpu_use.extend(beside.cpu_use.into_iter().filter(|(cpu, _)| *cpu == 2));
    let found: Vec<_> = findings(machine).into_iter().filter(|finding| finding.rule == "PLC-SLICE").collect();
    assert_eq!(found.len(), 1, "one command settles both");
    assert!(found[0].title.starts_with("batch.slice and rt.slice both have CPU 1: "), "{}", found[0].title);
    assert_eq!(found[0].fix[1], "systemctl set-property --runtime rt.slice AllowedCPUs=2-3");
    assert_eq!(found[0].undo, ["systemctl set-property --runtime rt.slice AllowedCPUs="]);
}

/// vCPU 0 of web and a program share CPU 0 and nothing else, in groups with these weights.
fn weighed(own: (&str, u64), other: (&str, u64), file: &str) -> Machine {
    let mut machine = super::culprits::used();
    super::culprits::waits(&mut machine);
    machine.threads.push(super::culprits::program("make", 70, "0", 0.5));
    for thread in &mut machine.threads {
        let group = if thread.vm.is_some() { own.0 } else { other.0 };
        thread.time_group = Some(format!("{group}/below"));
    }
    for (path, weight) in [own, other] {
        machine.weights.insert(path.into(), host::machine::Fact::new(weight, format!("sys/fs/cgroup{path}/{file}")));
    }
    super::culprits::refill(&mut machine);
    machine
}

#[test]
fn the_lighter_of_two_groups_is_told_with_both_weights() {
    let told = |machine: Machine| findings(machine).into_iter().find(|finding| finding.rule == "PLC-WEIGHT");
    let (web, user) = ("/web.scope", "/user.slice");
    let light = weighed((web, 10), (user, 100), "cpu.weight");
    let found = told(light.clone()).expect("PLC-WEIGHT");
    assert_eq!(findings(light)[0].rule, "PLC-WEIGHT", "it comes before the threads that starve by it");
    assert_eq!(found.title, "web has a CPU weight of 10 beside 100 of user.slice: 1 thread is there 0.45 CPUs short");
    assert_eq!(found.fix[1..], ["virsh schedinfo web --live --config --set cpu_shares=100"]);
    assert_eq!(found.undo, ["virsh schedinfo web --live --config --set cpu_shares=10"]);
    let heavy = told(weighed((web, 100), (user, 1_000), "cpu.weight")).expect("PLC-WEIGHT");
    assert_eq!(heavy.fix[1..], ["systemctl set-property --runtime user.slice CPUWeight="]);
    assert_eq!(heavy.undo, ["systemctl set-property --runtime user.slice CPUWeight=1000"]);
    let old = told(weighed((web, 1_024), (user, 4_096), "cpu.shares")).expect("PLC-WEIGHT");
    assert_eq!(old.undo, ["systemctl set-property --runtime user.slice CPUWeight=400"]);
    let slice = told(weighed(("/machine.slice", 10), (user, 100), "cpu.weight")).expect("PLC-WEIGHT");
    assert_eq!(
        slice.fix[1..],
        ["systemctl set-property --runtime machine.slice CPUWeight="],
        "the slice's, not the VM's in it"
    );
    // Equal weights, a heavier VM, and a policy before which no weight counts.
    let mut fifo = weighed((web, 10), (user, 100), "cpu.weight");
    fifo.threads.last_mut().unwrap().policy = Some(1);
    for neighbour in
        [weighed((web, 100), (user, 100), "cpu.weight"), weighed((web, 400), (user, 100), "cpu.weight"), fifo]
    {
        assert!(told(neighbour).is_none());
    }
}

#[test]
fn no_command_leads_out_of_a_cgroup() {
    for path in ["/machine.slice", "/kubepods.slice/pod1"] {
        for finding in findings(squeezed(path, "0-1")).iter().filter(|finding| finding.rule != "PLC-SLICE") {
            let pins = finding.fix.iter().filter(|command| command.contains("pin web"));
            for command in pins {
                let cpus = command
                    .split_whitespace()
                    .rev()
                    .find(|word| word.bytes().all(|byte| byte.is_ascii_digit() || b",-".contains(&byte)));
                let cpus = set(cpus.unwrap_or_default());
                assert!(cpus.is_within(&set("0-1")), "{}: {command}", finding.rule);
            }
        }
    }
}

/// The quiet machine with a whole definition.
fn defined(vcpus: u32, memory_gib: u64) -> Machine {
    let mut machine = quiet();
    let domain = &mut machine.domains[0];
    domain.whole = Some("web.xml:1".into());
    domain.cpu_mode = Some(fact("host-model".into()));
    domain.vcpus = Some(vcpus);
    domain.memory_bytes = Some(memory_gib << 30);
    machine
}

#[test]
fn a_guest_wider_than_a_node_is_to_see_nodes() {
    // A node has 4 CPUs and 16 GiB.
    let fires = |vcpus: u32, memory: u64| rules(defined(vcpus, memory)).contains(&"PLC-CELLS");
    assert!(fires(5, 8) && !fires(4, 8));
    assert!(fires(4, 17) && !fires(4, 16));
    let mut shown = defined(8, 8);
    shown.domains[0].guest_nodes = 2;
    assert!(!rules(shown).contains(&"PLC-CELLS"));
    let typed = commands("PLC-CELLS", defined(8, 8));
    assert!(
        typed[0].contains("<cell id='0' cpus='0-3' memory='4194304' unit='KiB'/><cell id='1' cpus='4-7'"),
        "{typed:?}"
    );
}

#[test]
fn pages_that_migrate_are_told_where_a_guest_may_run_on_several_nodes() {
    let of = |pages: f64, cpus: &str| {
        let mut machine = quiet();
        machine.pages_moved_per_s = Some(fact(pages));
        machine.threads[0] = thread(Role::Vcpu(0), 11, cpus, 0.5, 0.0);
        rules(machine).contains(&"PLC-MIGRATING")
    };
    assert!(of(10_000.0, "0-7") && !of(9_999.0, "0-7") && !of(10_000.0, "0"));
}

#[test]
fn interrupts_of_a_card_on_the_other_node() {
    let of = |per_s: &[(u32, f64)]| {
        let mut machine = quiet();
        machine.nics.push(Nic { name: "eth0".into(), node: Some(fact(0)), ..Nic::default() });
        machine.irqs.push(Irq {
            number: 24,
            name: "eth0-rx-0".into(),
            affinity: Some(fact(set("0-7"))),
            per_s: per_s.iter().copied().collect(),
            ..Irq::default()
        });
        rules(machine).contains(&"PLC-FARIRQ")
    };
    assert!(of(&[(5, 1_000.0)]) && !of(&[(5, 999.0)]) && !of(&[(2, 9_000.0)]));
    assert!(!of(&[(2, 500.0), (5, 1_500.0)]), "spread over the nodes");
}

#[test]
fn an_offline_pin_leads_where_its_thread_is_in_the_way() {
    let of = |pin: &str, waits: f64| {
        let mut machine = quiet();
        machine.topology.online = set("0-6");
        machine.topology.cpus.remove(&7);
        machine.domains[0].vcpu_pins.insert(1, fact(set(pin)));
        machine.threads[1] = thread(Role::Vcpu(1), 12, "0-6", 0.5, waits);
        let found = findings(machine);
        found.iter().find(|finding| finding.rule == "PLC-OFFLINE").map(|finding| finding.severity)
    };
    assert_eq!(of("7", 0.48), Some(base::Severity::High));
    assert_eq!(of("7", 0.0), Some(base::Severity::Medium));
    assert_eq!(of("1,7", 0.0), Some(base::Severity::Info), "it is where it was wanted");
}
