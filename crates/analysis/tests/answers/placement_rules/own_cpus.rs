//! What a VM has for itself by its pins is nobody else's: who floats there is narrowed, nobody is sent there, and what the kernel has for one CPU
//! stays on it.

use super::culprits::{of_vm, program, refill, second, used, waits};
use super::quiet::{fact, findings, found, set, thread};
use base::{Finding, Severity};
use host::Machine;
use host::machine::{Cgroup, CpuUse, Domain, Fact, GuestTopology, Nova, Role};

/// `web` pinned to CPUs 2 and 3, where two VMs with this mask run as well.
fn beside(mask: &str, wait: f64) -> Machine {
    let mut machine = used();
    machine.threads = vec![
        thread(Role::Vcpu(0), 11, "2", 0.5, wait),
        thread(Role::Vcpu(1), 12, "3", 0.5, wait),
        thread(Role::Emulator, 10, "2-3", 0.01, 0.0),
    ];
    machine.domains[0].vcpu_pins = [(0, fact(set("2"))), (1, fact(set("3")))].into();
    machine.domains[0].emulator_pins = vec![fact(set("2-3"))];
    for (number, vm) in (0..).zip(["app0", "app1"]) {
        let tid = 20 + 10 * number;
        let mut own = vec![
            thread(Role::Vcpu(0), tid + 1, mask, 0.74, 0.01),
            thread(Role::Vcpu(1), tid + 2, mask, 0.49, wait / 2.0),
        ];
        own[0].last_cpu = Some(fact(number as u32));
        own[1].last_cpu = Some(fact(2 + number as u32));
        second(&mut machine, vm, own);
    }
    refill(&mut machine);
    for cpu in 2..4 {
        machine.cpu_use.insert(cpu, CpuUse { busy: 0.99, idle: 0.01, ..CpuUse::default() });
    }
    machine
}

/// What findings bind threads to: the names or ids, and the CPUs.
fn sent(found: &[Finding]) -> Vec<(String, base::CpuSet)> {
    let of = |line: &String| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["taskset", "-cp", cpus, tid, ..] => Some((tid.to_owned(), set(cpus))),
            ["virsh", "vcpupin", vm, _, cpus, ..] | ["virsh", "emulatorpin", vm, cpus, ..] => {
                Some((vm.to_owned(), set(cpus)))
            }
            _ => None,
        }
    };
    found.iter().flat_map(|finding| &finding.fix).filter_map(of).collect()
}

#[test]
fn a_mask_over_anothers_pins_is_narrowed_and_the_pinned_vm_stays() {
    let found = findings(beside("0-3", 0.48));
    let first = &found[0];
    assert_eq!((first.rule, first.severity), ("PLC-COVERS", Severity::High), "{}", first.title);
    assert_eq!(
        first.title,
        "app0 and app1 may run on CPUs 2-3, which web has for itself by its pins: 4 threads are 1.44 CPUs short"
    );
    let typed = sent(&found);
    assert!(typed.iter().all(|(who, cpus)| who != "web" && !cpus.meets(&set("2-3"))), "{typed:?}");
    assert!(first.fix[0].starts_with("taskset -cp 0-1") && first.undo[0] == "taskset -cp 0-3 21", "{first:?}");
    assert!(found.iter().all(|finding| finding.rule != "PLC-OVERCOMMIT"), "there is room beside the pins");
    let silent = |machine: Machine| findings(machine).iter().all(|finding| finding.rule != "PLC-COVERS");
    assert!(silent(beside("0-1,4-5", 0.48)), "another mask");
    assert!(silent(beside("0-3", 0.0)), "nobody waits");
    let mut shared = beside("0-3", 0.48);
    shared
        .threads
        .extend([2, 3].map(|cpu| of_vm("db", thread(Role::Vcpu(cpu), 40 + cpu as i32, &cpu.to_string(), 0.1, 0.0))));
    assert!(silent(shared), "what two VMs are pinned to is neither's");
}

#[test]
fn the_owner_of_a_wide_mask_is_the_one_who_narrows_it_for_good() {
    let mut nova = beside("0-3", 0.48);
    for domain in &mut nova.domains[1..] {
        domain.nova = Some(Nova { server: domain.name.clone(), flavor: None });
    }
    let told = found("PLC-COVERS", nova).expect("PLC-COVERS");
    let of_set = told.fix.iter().find(|line| line.contains("nova.conf compute cpu_shared_set"));
    assert!(of_set.is_some_and(|line| line.starts_with("crudini --set") && line.contains(" 0-1")), "{:?}", told.fix);
    let mut proxmox = beside("0-3", 0.48);
    for thread in &mut proxmox.threads {
        let id = thread.vm.as_deref().map_or(0, |vm| if vm == "app0" { 101 } else { 102 });
        thread.cgroup = thread.vm.as_deref().filter(|vm| *vm != "web").map(|_| format!("/qemu.slice/{id}.scope"));
    }
    let told = found("PLC-COVERS", proxmox).expect("PLC-COVERS");
    let kept = told.fix.iter().find(|line| line.contains("qm set 101 --affinity 0-1"));
    assert!(kept.is_some(), "the set that all have: {:?}", told.fix);
}

#[test]
fn nobody_is_sent_to_what_a_sleeping_vm_is_pinned_to() {
    let with = |pinned: bool| {
        let mut machine = beside("0-3", 0.48);
        if pinned {
            let own = (4..8).map(|cpu| thread(Role::Vcpu(cpu - 4), 50 + cpu as i32, &cpu.to_string(), 0.02, 0.0));
            second(&mut machine, "night", own.collect());
            machine.threads.push(of_vm("night", thread(Role::Emulator, 50, "4-7", 0.001, 0.0)));
        }
        let found = findings(machine);
        sent(&found).iter().any(|(who, cpus)| who != "50" && cpus.meets(&set("4-7")))
    };
    assert!(with(false), "idle CPUs of nobody");
    assert!(!with(true), "idle CPUs that a VM is pinned to");
}

/// Four full vCPUs on a set of a host whose siblings are four apart.
fn crowded(cpus: &str, change: impl FnOnce(&mut Machine)) -> Option<Finding> {
    let mut machine = used();
    machine.topology.cpus.iter_mut().for_each(|(cpu, about)| (about.core, about.node) = (cpu % 4, Some(0)));
    machine.threads = (0..4).map(|vcpu| thread(Role::Vcpu(vcpu), 11 + vcpu as i32, cpus, 0.98, 0.0)).collect();
    for (thread, cpu) in machine.threads.iter_mut().zip(set(cpus).iter()) {
        thread.last_cpu = Some(fact(cpu));
    }
    machine.domains = vec![Domain { name: "web".into(), vcpus: Some(4), ..Domain::default() }];
    refill(&mut machine);
    change(&mut machine);
    found("PLC-SMT", machine)
}

#[test]
fn a_set_of_fewer_cores_than_busy_vcpus_gets_whole_ones() {
    let told = crowded("0-1,4-5", |_| ()).expect("PLC-SMT");
    assert_eq!(told.title, "4 busy vCPUs of web have CPUs 0-1,4-5 of 2 cores alone, while 2 whole cores are idle");
    assert_eq!((told.fix[0].as_str(), told.undo[0].as_str()), ("taskset -cp 0-3 11", "taskset -cp 0-1,4-5 11"));
    let unit = |machine: &mut Machine| {
        machine.threads.iter_mut().for_each(|thread| thread.cgroup = Some("/system.slice/vm-web.service".into()));
        let effective =
            Some(Fact::new(set("0-1,4-5"), "sys/fs/cgroup/system.slice/vm-web.service/cpuset.cpus.effective"));
        let group = Cgroup { cpus: effective.clone(), effective, memory_nodes: None, partition: None };
        machine.cgroups.insert("/system.slice/vm-web.service".into(), group);
    };
    let owned = crowded("0-1,4-5", unit).expect("PLC-SMT");
    assert_eq!(owned.fix[1], "systemctl set-property --runtime vm-web.service AllowedCPUs=0-3");
    assert_eq!(owned.undo, ["systemctl set-property --runtime vm-web.service AllowedCPUs=0-1,4-5"]);
    assert!(crowded("0-3", |_| ()).is_none(), "a core for each");
    let knows = |machine: &mut Machine| {
        let shown = GuestTopology { sockets: 1, dies: 1, cores: 2, threads: 2 };
        machine.domains[0].topology = Some(fact(shown));
    };
    assert!(crowded("0-1,4-5", knows).is_none(), "the guest knows what shares a core");
    let half = |machine: &mut Machine| machine.threads.iter_mut().for_each(|thread| thread.run_share = Some(fact(0.4)));
    assert!(crowded("0-1,4-5", half).is_none(), "they want no core each");
    let full = |machine: &mut Machine| {
        machine.cpu_use.extend([2, 3].map(|cpu| (cpu, CpuUse { busy: 0.9, idle: 0.1, ..CpuUse::default() })));
    };
    assert!(crowded("0-1,4-5", full).is_none(), "no whole core is idle");
}

#[test]
fn a_thread_that_the_kernel_has_for_a_cpu_is_not_moved() {
    let of = |fixed: bool| {
        let mut machine = used();
        waits(&mut machine);
        machine.threads.push(program("foo/0", 70, "0", 0.5));
        machine.threads[4].is_fixed = fixed;
        refill(&mut machine);
        findings(machine)
    };
    let typed = |found: &[Finding]| sent(found).iter().any(|(who, _)| who == "70");
    assert!(typed(&of(false)) && !typed(&of(true)));
    let told = &of(true)[0];
    assert!(told.evidence.iter().any(|seen| seen.place.contains("PF_NO_SETAFFINITY")), "{told:?}");
}

#[test]
fn injected_idle_time_is_its_cooling_devices() {
    let of = |state: &str, name: &str| {
        let mut machine = used();
        waits(&mut machine);
        machine.threads.push(program(name, 70, "0", 0.5));
        let device = "sys/class/thermal/cooling_device8";
        machine.settings.insert(format!("{device}/type"), fact("intel_powerclamp".to_owned()));
        machine.settings.insert(format!("{device}/cur_state"), fact(state.to_owned()));
        refill(&mut machine);
        findings(machine).remove(0)
    };
    let told = of("40", "kidle_inj/0");
    assert_eq!(told.rule, "PLC-KTHREAD");
    assert!(told.title.contains("intel_powerclamp") && told.title.contains("thermald"), "{}", told.title);
    assert!(told.fix[1].starts_with("echo 0 > /sys/class/thermal/cooling_device8/cur_state"), "{:?}", told.fix);
    assert_eq!(told.undo, ["echo 40 > /sys/class/thermal/cooling_device8/cur_state"]);
    assert!(of("0", "kidle_inj/0").undo.is_empty(), "another device asks for it");
    assert_eq!(of("40", "python3").rule, "PLC-STARVED");
}

#[test]
fn pins_are_kept_by_the_list_of_them_as_their_manager_takes_it() {
    let mut incus = used();
    incus.domains[0].vcpu_pins.clear();
    incus.domains[0].emulator_pins.clear();
    waits(&mut incus);
    second(&mut incus, "db", vec![thread(Role::Vcpu(0), 21, "0", 0.5, 0.45)]);
    for domain in &mut incus.domains {
        domain.read_config = Some(format!("/run/incus/{}/qemu.conf", domain.name));
    }
    refill(&mut incus);
    let told = found("PLC-STACKED", incus).expect("PLC-STACKED").fix;
    let kept = |line: &String| line.contains("incus stop ") && line.contains(" limits.cpu=") && !line.contains("LIST");
    assert!(told.iter().any(kept), "{told:?}");
    let isolated = |cpus: Option<&str>| {
        let mut machine = used();
        machine.domains[0] = Domain { name: "web".into(), vcpus: Some(2), ..Domain::default() };
        machine.topology.isolated = cpus.map(set);
        for thread in &mut machine.threads {
            (thread.affinity, thread.last_cpu) = (Some(fact(set("4-7"))), Some(fact(4)));
            (thread.run_share, thread.wait_share) = (Some(fact(0.3)), Some(fact(0.6)));
            thread.cgroup = Some("/qemu.slice/105.scope".into());
        }
        refill(&mut machine);
        findings(machine).iter().flat_map(|finding| finding.fix.clone()).collect::<Vec<_>>()
    };
    let told = isolated(Some("4-7"));
    assert!(told.iter().any(|line| line.contains("qm set 105 --hookscript")), "{told:?}");
    assert!(told.iter().all(|line| !line.contains("qm set 105 --affinity")), "nothing moves threads there: {told:?}");
}

#[test]
fn helpers_that_hardly_run_are_bound_to_nothing() {
    let of = |run: f64, wait: f64| {
        let mut machine = used();
        waits(&mut machine);
        machine.threads.truncate(2);
        machine.threads.push(thread(Role::Emulator, 10, "0-1", run, wait));
        machine.domains[0].emulator_pins = vec![fact(set("0-1"))];
        if run < 0.1 {
            machine.threads.push(program("make", 70, "0", 0.45));
        }
        refill(&mut machine);
        findings(machine)
    };
    let bound =
        |found: &[Finding]| found.iter().any(|finding| finding.fix.iter().any(|line| line.contains("emulatorpin web")));
    assert!(bound(&of(0.5, 0.4)), "it takes what the vCPU waits for");
    assert!(!bound(&of(0.005, 0.0)), "another program does");
}
