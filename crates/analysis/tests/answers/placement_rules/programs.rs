//! Programs of the host in the way of vCPUs: they go, not the vCPU, as long as there is a place for them.

use super::culprits::{first, program, refill, used, waits};
use super::quiet::{findings, rules, set, thread};
use host::Machine;
use host::machine::{GuestTopology, Role};

/// vCPU 0 waits for a program on its CPU.
fn beside(name: &str) -> Machine {
    let mut machine = used();
    waits(&mut machine);
    machine.threads.push(program(name, 70, "0-7", 0.5));
    machine
}

#[test]
fn a_program_goes_to_idle_cpus_that_no_vm_has() {
    let found = first(beside("pigz"));
    assert_eq!((found.rule, &found.fix[..1]), ("PLC-STARVED", &["taskset -cp 4-7 70".to_owned()][..]));
    assert_eq!(found.undo, ["taskset -cp 0-7 70"]);
    let mut policy = beside("ptp4l");
    policy.threads[4].policy = Some(1);
    let title = first(policy).title;
    assert!(title.ends_with("another program, ptp4l (70) with SCHED_FIFO, ran on CPU 0"), "{title}");
}

#[test]
fn what_has_no_other_place_gets_less_and_the_kernels_own_stays() {
    let mut full = beside("make");
    full.threads.iter_mut().for_each(|thread| thread.time_group = Some("/user.slice/qemu.scope".into()));
    full.threads[4].time_group = Some("/user.slice/session-4.scope".into());
    full.threads.extend((2..8).map(|cpu| program("make", 70 + cpu, &cpu.to_string(), 0.97)));
    full.threads[1] = thread(Role::Vcpu(1), 12, "1", 0.97, 0.0);
    refill(&mut full);
    let found = first(full.clone());
    let weight = "systemctl set-property --runtime session-4.scope CPUWeight=10";
    assert!(found.fix.iter().any(|line| line.starts_with(weight)), "{:?}", found.fix);
    assert!(found.undo.contains(&"systemctl set-property --runtime session-4.scope CPUWeight=".to_owned()));
    let mut fifo = full.clone();
    fifo.threads[4].policy = Some(1);
    assert!(!first(fifo).fix.iter().any(|line| line.contains("CPUWeight")), "no weight holds it");
    full.threads[4].time_group = Some("/kubepods.slice/pod7/cri-1.scope".into());
    assert!(!first(full).fix.iter().any(|line| line.contains("set-property")), "kubelet owns its groups");
    let kernel = first(beside("kcompactd1"));
    assert!(!kernel.fix.iter().any(|line| line.starts_with("taskset -cp 4-7 70")), "{:?}", kernel.fix);
}

#[test]
fn within_a_group_nice_decides_and_is_set() {
    let of = |group: &str, nice: i32| {
        let mut full = beside("make");
        full.threads.extend((1..8).map(|cpu| program("make", 70 + cpu, &cpu.to_string(), 0.97)));
        full.threads.iter_mut().for_each(|thread| thread.time_group = Some("/user.slice/session-3.scope".into()));
        for thread in &mut full.threads {
            thread.nice = Some(if thread.vm.is_some() { nice } else { 0 });
            if thread.vm.is_none() {
                thread.time_group = Some(group.into());
            }
        }
        first(full)
    };
    let found = of("/user.slice/session-3.scope", 10);
    assert!(found.title.ends_with("; web has nice 10 beside 0 of make"), "{}", found.title);
    assert_eq!(found.fix[0], "renice -n 0 -p 11 12 10 13");
    assert_eq!(found.undo[0], "renice -n 10 -p 11 12 10 13");
    for neighbour in [of("/user.slice/session-3.scope", 0), of("/user.slice/session-4.scope", 10)] {
        assert!(!neighbour.fix.iter().any(|line| line.contains("renice")), "{:?}", neighbour.fix);
    }
}

#[test]
fn a_worker_that_any_cpu_may_get_leaves_by_its_mask() {
    let of = |name: &str, mask: &str| {
        let mut machine = beside(name);
        machine.settings.insert("sys/devices/virtual/workqueue/cpumask".into(), super::quiet::fact(mask.to_owned()));
        first(machine)
    };
    let found = of("kworker/u16:4+kcryptd", "ff");
    assert!(found.title.contains("a worker of the kernel, kworker/u16:4+kcryptd (70), ran"), "{}", found.title);
    assert!(found.fix[0].starts_with("echo fc > /sys/devices/virtual/workqueue/cpumask"), "{:?}", found.fix);
    assert_eq!(
        (found.fix.len(), &found.undo[..]),
        (1, &["echo ff > /sys/devices/virtual/workqueue/cpumask".to_owned()][..])
    );
    for neighbour in [of("kworker/0:4", "ff"), of("pigz", "ff"), of("kworker/u16:4", "03")] {
        assert!(!neighbour.fix[0].starts_with("echo fc"), "{:?}", neighbour.fix);
    }
}

#[test]
fn slow_cores_are_known_by_their_kind_and_a_group_that_has_no_others_is_its_owners_to_change() {
    let of = |file: &str, slow: &str, fast: &str| {
        let mut machine = used();
        machine.topology.cpus.values_mut().for_each(|about| about.node = Some(0));
        for thread in &mut machine.threads {
            thread.affinity = Some(super::quiet::fact(set("0-3")));
            thread.cgroup = Some("/system.slice/vm-cad.service".into());
        }
        machine.threads[0].run_share = Some(super::quiet::fact(0.95));
        machine.domains[0].vcpu_pins.clear();
        machine.domains[0].emulator_pins.clear();
        let effective = Some(super::quiet::fact(set("0-3")));
        let group = host::machine::Cgroup { effective: effective.clone(), cpus: effective, ..Default::default() };
        machine.cgroups.insert("/system.slice/vm-cad.service".into(), group);
        for cpu in 0..8 {
            let path = format!("sys/devices/system/cpu/cpu{cpu}/{file}");
            machine.settings.insert(path, super::quiet::fact(if cpu < 4 { slow } else { fast }.to_owned()));
        }
        refill(&mut machine);
        findings(machine).into_iter().find(|finding| finding.rule == "PLC-HYBRID")
    };
    let found = of("cpu_capacity", "742", "1024").expect("PLC-HYBRID");
    assert_eq!(found.title, "1 busy vCPU of web is bound to slow cores (CPUs 0-3), while CPUs 4-7 are idle");
    assert_eq!(found.fix[1], "systemctl set-property --runtime vm-cad.service AllowedCPUs=4-7");
    assert_eq!(found.undo, ["systemctl set-property --runtime vm-cad.service AllowedCPUs=0-3"]);
    assert!(
        of("cpu_capacity", "980", "1024").is_none() && of("cpufreq/cpuinfo_max_freq", "4600000", "5400000").is_none()
    );
}

#[test]
fn vcpus_on_slow_cores_of_a_hybrid_processor_are_told_while_fast_ones_idle() {
    let hybrid = |slow: &str, run: f64| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", run, 0.0);
        machine.topology.cpus.values_mut().for_each(|about| about.node = Some(0));
        for cpu in 0..8 {
            let khz = if cpu < 2 { slow } else { "5000000" };
            let path = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq");
            machine.settings.insert(path, super::quiet::fact(khz.to_owned()));
        }
        refill(&mut machine);
        machine
    };
    let found = first(hybrid("3600000", 0.95));
    assert_eq!(found.rule, "PLC-HYBRID", "{}", found.title);
    assert_eq!(found.title, "1 busy vCPU of web is bound to slow cores (CPU 0: 3.6 of 5.0 GHz), while CPU 4 is idle");
    assert_eq!(found.fix, ["virsh vcpupin web 0 4 --live --config"]);
    for neighbour in [hybrid("4800000", 0.95), hybrid("3600000", 0.5)] {
        assert!(!rules(neighbour).contains(&"PLC-HYBRID"));
    }
}

#[test]
fn a_placement_keeps_threads_of_a_core_together_and_a_vm_by_its_memory() {
    let shown = |threads: u32| {
        let mut machine = beside("pigz");
        // The program may run nowhere else, so the vCPU is what could move.
        machine.threads[4] = program("pigz", 70, "0", 0.5);
        machine.threads[4].cgroup = Some("/batch.slice".into());
        machine.cgroups.insert(
            "/batch.slice".into(),
            host::machine::Cgroup {
                cpus: None,
                effective: Some(super::quiet::fact(set("0"))),
                memory_nodes: None,
                partition: None,
            },
        );
        machine.topology.cpus.iter_mut().for_each(|(cpu, about)| about.core = cpu / 2);
        let topology = GuestTopology { sockets: 1, dies: 1, cores: 2 / threads, threads };
        machine.domains[0].topology = Some(super::quiet::fact(topology));
        refill(&mut machine);
        let all = findings(machine);
        all.iter().flat_map(|finding| finding.fix.clone()).any(|line| line.starts_with("virsh vcpupin web 0"))
    };
    assert!(shown(1) && !shown(2), "a guest that is shown threads of a core keeps both on one");
}

#[test]
fn a_list_without_waiting_tells_who_uses_a_cpu_together() {
    let listed = |runs: [f64; 2], cpus: [u32; 2]| {
        let mut machine = used();
        let one = |role, tid, run: f64, cpu: u32| {
            let mut thread = thread(role, tid, "0-7", run, 0.0);
            (thread.wait_share, thread.affinity) = (None, None);
            thread.last_cpu = Some(super::quiet::fact(cpu));
            thread
        };
        let polling =
            host::machine::Thread { vm: None, name: "pmd-c05".into(), ..one(Role::Pmd, 21, runs[0], cpus[0]) };
        machine.threads = vec![polling, one(Role::Vcpu(3), 14, runs[1], cpus[1])];
        findings(machine).into_iter().find(|finding| finding.rule == "PLC-ONECPU").map(|finding| finding.title)
    };
    let title = "CPU 5 is used whole by pmd-c05 (21) with 62.0 % and vcpu 3 of web (14) with 37.0 %";
    assert_eq!(listed([0.62, 0.37], [5, 5]).as_deref(), Some(title));
    for (runs, cpus) in [([0.62, 0.37], [5, 6]), ([0.62, 0.2], [5, 5]), ([0.99, 0.05], [5, 5])] {
        assert_eq!(listed(runs, cpus), None);
    }
}
