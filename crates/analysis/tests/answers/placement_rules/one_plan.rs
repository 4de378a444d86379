//! One page is one plan: no finding sets what another one sets, or what it was counted on.

use super::culprits::{of_vm, refill, second, used};
use super::fixed_point::Numbers;
use super::quiet::{fact, findings, quiet, set, thread};
use base::Finding;
use host::Machine;
use host::machine::{Cgroup, CpuUse, Domain, Fact, Role};

/// A unit with these CPUs, whose threads of a VM run and wait as told.
fn unit(machine: &mut Machine, vm: &str, cpus: &str, shares: &[(Role, f64, f64)]) {
    let path = format!("/system.slice/vm-{vm}.service");
    let effective = Some(fact(set(cpus)));
    machine.cgroups.insert(path.clone(), Cgroup { cpus: None, effective, memory_nodes: None, partition: None });
    let first = 1_000 * (1 + machine.domains.len() as i32);
    let vcpus = shares.iter().filter(|(role, ..)| matches!(role, Role::Vcpu(_))).count() as u32;
    machine.domains.push(Domain { name: vm.into(), vcpus: Some(vcpus), ..Domain::default() });
    let threads = (first..).zip(shares).zip(set(cpus).iter().collect::<Vec<_>>().into_iter().cycle());
    for ((tid, (role, run, wait)), cpu) in threads {
        let mut thread = of_vm(vm, thread(*role, tid, cpus, *run, *wait));
        (thread.pid, thread.last_cpu) = (Some(first), Some(fact(cpu)));
        (thread.cgroup, thread.time_group) = (Some(path.clone()), Some(path.clone()));
        machine.threads.push(thread);
    }
}

/// Two full vCPUs and two workers on CPUs 2-3; beside them a VM on CPUs 4-7, and CPUs 0-1 idle.
fn squeezed() -> Machine {
    let mut machine = quiet();
    (machine.threads, machine.domains) = (Vec::new(), Vec::new());
    let of = |role| (role, 0.5, 0.42);
    unit(
        &mut machine,
        "a",
        "2-3",
        &[of(Role::Vcpu(0)), of(Role::Vcpu(1)), of(Role::Vhost), of(Role::Vhost), (Role::Emulator, 0.02, 0.01)],
    );
    unit(
        &mut machine,
        "b",
        "4-7",
        &[(Role::Vcpu(0), 0.5, 0.0), (Role::Vcpu(1), 0.5, 0.0), (Role::Emulator, 0.01, 0.0)],
    );
    refill(&mut machine);
    machine
}

fn of<'a>(found: &'a [Finding], id: &str) -> &'a Finding {
    found.iter().find(|finding| finding.id() == id).unwrap_or_else(|| panic!("{id}"))
}

#[test]
fn a_unit_gets_what_is_short_of_cpus_that_nobody_owns_and_nothing_is_pinned_in_it() {
    let found = findings(squeezed());
    let slice = of(&found, "PLC-SLICE@/system.slice/vm-a.service");
    assert_eq!(slice.fix[1], "systemctl set-property --runtime vm-a.service AllowedCPUs=0-3");
    assert!(slice.title.ends_with("while CPUs 0-1 are idle"), "{}", slice.title);
    for id in ["PLC-OVERLAP@a", "PLC-WORKERS@a"] {
        let below = of(&found, id);
        assert!(below.fix[0].contains("after PLC-SLICE@/system.slice/vm-a.service"), "{:?}", below.fix);
        assert!(below.changes.is_empty() && below.undo.is_empty(), "{id}");
    }
    assert!(!found.iter().any(|finding| finding.rule == "PLC-PROPOSAL"), "they are counted on the CPUs of today");
    let mut roomy = squeezed();
    roomy.cpu_use.extend([0, 1].map(|cpu| (cpu, CpuUse { busy: 0.45, idle: 0.55, ..CpuUse::default() })));
    let found = findings(roomy);
    assert!(of(&found, "PLC-SLICE@/system.slice/vm-a.service").title.ends_with("while CPUs 0-1 have room"));
    // With nothing to be given, those in it are pinned, and the owner of the idle CPUs is asked.
    let mut owned = squeezed();
    owned.cgroups.get_mut("/system.slice/vm-b.service").unwrap().effective = Some(fact(set("0-1,4-7")));
    let found = findings(owned);
    let slice = of(&found, "PLC-SLICE@/system.slice/vm-a.service");
    assert!(slice.title.contains("belong to vm-b.service"), "{}", slice.title);
    assert!(slice.fix.iter().all(|line| line.starts_with('#')) && slice.undo.is_empty(), "{:?}", slice.fix);
}

fn second_version() -> Cgroup {
    let effective = Some(Fact::new(set("0-7"), "sys/fs/cgroup/machine.slice/cpuset.cpus.effective"));
    Cgroup { cpus: None, effective, memory_nodes: None, partition: None }
}

#[test]
fn of_two_weights_for_one_vm_the_finding_above_has_its_own() {
    let weighed = |shares: u64| {
        let mut machine = used();
        machine.threads = (0..4).map(|vcpu| thread(Role::Vcpu(vcpu), 11 + vcpu as i32, "0-7", 0.1, 0.85)).collect();
        second(
            &mut machine,
            "db",
            (0..8).map(|vcpu| thread(Role::Vcpu(vcpu), 30 + vcpu as i32, "0-7", 0.95, 0.03)).collect(),
        );
        machine.domains[0] =
            Domain { name: "web".into(), vcpus: Some(4), cpu_shares: Some(fact(shares)), ..Domain::default() };
        machine.domains[1].cpu_shares = Some(fact(20_000));
        machine.cgroups.insert("/machine.slice".into(), second_version());
        machine.cpu_use.values_mut().for_each(|usage| *usage = CpuUse { busy: 0.99, idle: 0.01, ..CpuUse::default() });
        findings(machine)
    };
    let found = weighed(10);
    let typed =
        found.iter().flat_map(|finding| &finding.fix).filter(|line| line.starts_with("virsh schedinfo web --live"));
    assert_eq!(typed.count(), 1);
    assert!(of(&found, "PLC-LIMIT@web shares").fix[0].contains("after PLC-OVERCOMMIT@host"));
    // Alone it types its own.
    let mut alone = quiet();
    alone.domains[0].cpu_shares = Some(fact(10));
    alone.cgroups.insert("/machine.slice".into(), second_version());
    assert!(of(&findings(alone), "PLC-LIMIT@web shares").fix[0].starts_with("virsh schedinfo web --live"));
}

/// Whose CPUs or weight a line sets, as a person reads it: the VM or the unit, and the value.
fn set_by(line: &str) -> Option<(&'static str, String, String)> {
    let words: Vec<&str> = line.split("   #").next()?.split_whitespace().collect();
    match words[..] {
        ["virsh", "vcpupin", vm, vcpu, cpus, ..] => Some(("pin", format!("{vm} {vcpu}"), cpus.into())),
        ["virsh", "emulatorpin", vm, cpus, ..] => Some(("pin", format!("{vm} emulator"), cpus.into())),
        ["virsh", "schedinfo", vm, _, _, _, shares] => Some(("weight", vm.into(), shares.into())),
        ["virsh", "setvcpus", vm, ..] => Some(("size", vm.into(), String::new())),
        ["virsh", "edit", vm, ..] if line.contains("fewer") => Some(("size", vm.into(), String::new())),
        ["systemctl", "set-property", _, unit, value] => {
            Some(("group", unit.strip_prefix("vm-")?.strip_suffix(".service")?.into(), value.into()))
        }
        _ => None,
    }
}

#[test]
fn no_page_of_any_host_takes_back_what_it_types() {
    let (mut widened, mut several) = (0, 0);
    for seed in 0..150_u64 {
        let mut numbers = Numbers(seed.wrapping_mul(97).wrapping_add(11));
        let mut machine = quiet();
        (machine.threads, machine.domains) = (Vec::new(), Vec::new());
        for vm in ["a", "b"].iter().take(1 + numbers.below(2) as usize) {
            let first = numbers.below(6);
            let cpus = format!("{first}-{}", (first + 1 + numbers.below(2)).min(7));
            let mut shares: Vec<(Role, f64, f64)> = (0..2 + numbers.below(2))
                .map(|vcpu| (Role::Vcpu(vcpu), 0.5, f64::from(numbers.below(50)) / 100.0))
                .collect();
            shares.extend((0..numbers.below(3)).map(|_| (Role::Vhost, 0.4, f64::from(numbers.below(50)) / 100.0)));
            shares.push((Role::Emulator, 0.02, 0.0));
            unit(&mut machine, vm, &cpus, &shares);
            let domain = machine.domains.last_mut().unwrap();
            domain.cpu_shares = Some(fact([20, 100, 1_024][numbers.below(3) as usize]));
        }
        refill(&mut machine);
        let found = findings(machine.clone());
        let typing = found.iter().filter(|finding| finding.rule != "PLC-PROPOSAL");
        let lines: Vec<_> = typing
            .flat_map(|finding| finding.fix.iter().filter_map(|line| Some((finding.id(), set_by(line)?))))
            .collect();
        let mut given = set("");
        for (one, (kind, who, value)) in &lines {
            if let Some(cpus) = value.strip_prefix("AllowedCPUs=") {
                widened += 1;
                let own = |path: &str| path == format!("/system.slice/vm-{who}.service");
                let sets = |is_own: bool| {
                    let groups = machine.cgroups.iter().filter(move |(path, _)| own(path) == is_own);
                    groups.fold(set(""), |all, (_, group)| all.or(&group.effective.as_ref().unwrap().value))
                };
                let more = set(cpus).without(&sets(true));
                assert!(!more.meets(&given), "host {seed}: {one} gets what another unit gets");
                given = given.or(&more);
                assert!(!more.meets(&sets(false)), "host {seed}: {one} takes another's CPUs");
            }
            for (other, (kind_of_other, of_other, value_of_other)) in lines.iter().filter(|(other, _)| other != one) {
                several += 1;
                let together =
                    format!("host {seed}: {one} sets {who} {value}, and {other} {of_other} {value_of_other}");
                assert!((kind, who) != (kind_of_other, of_other) || value == value_of_other, "{together}");
                let is_pin = *kind_of_other == "pin" && of_other.split(' ').next() == Some(who);
                assert!(!is_pin || *kind != "group" && *kind != "size", "{together}");
                assert!(*kind != "group" || *kind_of_other == "group" || of_other != who, "{together}");
            }
        }
    }
    assert!(widened > 20 && several > 20, "{widened} widened, {several} pairs");
}
