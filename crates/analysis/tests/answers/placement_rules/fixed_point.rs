//! Advice is a fixed point: no two findings send one thread to two places, and what was typed is never asked to be taken back.

use super::quiet::{fact, findings, set, thread};
use base::Finding;
use host::Machine;
use host::machine::{Cpu, CpuUse, Domain, GuestTopology, Node, Role, Thread};
use std::collections::BTreeMap;

/// A sequence of numbers that is the same in every run (Numerical Recipes, 7.1).
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn below(&mut self, most: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(most)) as u32
    }
}

/// What each thread wants, in CPUs, by its id.
type Wants = BTreeMap<i32, f64>;

/// 16 CPUs on 8 cores of two threads, n and n + 8, and two nodes; some VMs with pins, topologies and loads of any kind.
fn host(seed: u64) -> (Machine, Wants) {
    let mut numbers = Numbers(seed.wrapping_mul(97).wrapping_add(11));
    let (mut machine, mut wants) = (Machine::default(), Wants::new());
    for cpu in 0..16 {
        let about = Cpu { core: cpu % 8, package: Some(cpu % 8 / 4), node: Some(cpu % 8 / 4), last_cache: None };
        machine.topology.cpus.insert(cpu, about);
        machine.topology.online.insert(cpu);
    }
    for node in 0..2 {
        machine.nodes.insert(node, Node { distances: [(node, 10), (1 - node, 21)].into(), ..Node::default() });
    }
    for vm in 0..1 + numbers.below(3) {
        let name = format!("vm{vm}");
        let vcpus = 2 * (1 + numbers.below(3));
        let mut domain = Domain { name: name.clone(), vcpus: Some(vcpus), ..Domain::default() };
        let threads = 1 + numbers.below(2);
        domain.topology = Some(fact(GuestTopology { sockets: 1, dies: 1, cores: vcpus / threads.max(1), threads }));
        let is_pinned = numbers.below(4) > 0;
        let floats = format!("{}-{}", 4 * numbers.below(2), 7 + 8 * numbers.below(2));
        let first = 1_000 * (vm as i32 + 1);
        let mut add = |role: Role, tid: i32, cpus: &str, want: f64| {
            let mut thread = thread(role, tid, cpus, 0.0, 0.0);
            (thread.vm, thread.pid) = (Some(name.clone()), Some(first));
            machine.threads.push(thread);
            wants.insert(tid, want);
        };
        for vcpu in 0..vcpus {
            let pin = numbers.below(16).to_string();
            let cpus = if is_pinned { &pin } else { &floats };
            if is_pinned {
                domain.vcpu_pins.insert(vcpu, fact(set(cpus)));
            }
            add(Role::Vcpu(vcpu), first + 10 + vcpu as i32, cpus, f64::from(numbers.below(95)) / 100.0);
        }
        let helpers = format!("{}-{}", numbers.below(8), 8 + numbers.below(8));
        domain.emulator_pins = vec![fact(set(&helpers))];
        add(Role::Emulator, first, &helpers, 0.02);
        add(Role::Vhost, first + 1, &helpers, f64::from(numbers.below(80)) / 100.0);
        machine.domains.push(domain);
    }
    run(&mut machine, &wants);
    (machine, wants)
}

/// What would be measured: whoever may use several CPUs is on the least busy one, and a CPU is shared by what its threads want.
fn run(machine: &mut Machine, wants: &Wants) {
    let mut on = [0.0_f64; 16];
    let may = |thread: &Thread| thread.affinity.as_ref().map_or_else(|| set("0-15"), |set| set.value.clone());
    machine.threads.sort_by_key(|thread| (may(thread).len() > 1, thread.tid));
    for thread in &mut machine.threads {
        let cpu = may(thread).iter().min_by(|a, b| on[*a as usize].total_cmp(&on[*b as usize])).expect("a CPU");
        thread.last_cpu = Some(fact(cpu));
        on[cpu as usize] += wants[&thread.tid.expect("an id")];
    }
    for thread in &mut machine.threads {
        let want = wants[&thread.tid.expect("an id")];
        let ran = want / on[thread.last_cpu.as_ref().expect("a CPU").value as usize].max(1.0);
        (thread.run_share, thread.wait_share) = (Some(fact(ran)), Some(fact(want - ran)));
    }
    for (cpu, on) in (0..).zip(on) {
        let busy = on.min(1.0);
        machine.cpu_use.insert(cpu, CpuUse { busy, idle: 1.0 - busy, ..CpuUse::default() });
    }
}

/// Who is sent where: the VM with `0` of a vCPU or `emulator`, and the list of CPUs.
type Pins = BTreeMap<(String, String), String>;

/// The pins in some lines; panics where one thread is sent to two places.
fn pins<'a>(lines: impl Iterator<Item = (&'a str, &'a String)>) -> Pins {
    let mut pins = Pins::new();
    for (rule, line) in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let told = match words[..] {
            ["virsh", "vcpupin", vm, vcpu, cpus, "--live", ..] => Some((vm, vcpu, cpus)),
            ["virsh", "emulatorpin", vm, cpus, "--live", ..] => Some((vm, "emulator", cpus)),
            _ => None,
        };
        let Some((vm, who, cpus)) = told else { continue };
        let before = pins.insert((vm.to_owned(), who.to_owned()), cpus.to_owned());
        assert!(
            before.as_deref().is_none_or(|before| before == cpus),
            "{who} of {vm} goes to {before:?} and, by {rule}, to {cpus}"
        );
    }
    pins
}

/// Of several placements the first is what one types.
fn first(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(|finding| finding.rule != "PLC-PROPOSAL" || finding.subject == "1")
}

fn typed(machine: &mut Machine, pins: &Pins) {
    for ((vm, who), cpus) in pins {
        let domain = machine.domains.iter_mut().find(|domain| domain.name == *vm).expect("a VM of this host");
        let is_it = |role: Role| match who.parse::<u32>() {
            Ok(vcpu) => role == Role::Vcpu(vcpu),
            Err(_) => matches!(role, Role::Emulator | Role::Vhost),
        };
        match who.parse::<u32>() {
            Ok(vcpu) => drop(domain.vcpu_pins.insert(vcpu, fact(set(cpus)))),
            Err(_) => domain.emulator_pins = vec![fact(set(cpus))],
        }
        for thread in machine.threads.iter_mut().filter(|thread| thread.vm.as_deref() == Some(vm) && is_it(thread.role))
        {
            thread.affinity = Some(fact(set(cpus)));
        }
    }
}

#[test]
fn what_was_typed_is_never_asked_to_be_taken_back() {
    let mut advised = 0;
    for seed in 0..60 {
        let (mut machine, wants) = host(seed);
        let found = findings(machine.clone());
        let asked = pins(first(&found).flat_map(|finding| finding.fix.iter().map(|line| (finding.rule, line))));
        let before: Pins = asked
            .keys()
            .filter_map(|(vm, who)| {
                let domain = machine.domains.iter().find(|domain| domain.name == *vm)?;
                let pin = match who.parse::<u32>() {
                    Ok(vcpu) => domain.vcpu_pin(vcpu)?.value.to_string(),
                    Err(_) => domain.emulator_pin()?.value.to_string(),
                };
                Some(((vm.clone(), who.clone()), pin))
            })
            .collect();
        advised += usize::from(!asked.is_empty());
        typed(&mut machine, &asked);
        run(&mut machine, &wants);
        let again = findings(machine.clone());
        let next = pins(first(&again).flat_map(|finding| finding.fix.iter().map(|line| (finding.rule, line))));
        for (who, cpus) in &next {
            assert!(before.get(who) != Some(cpus), "host {seed}: {who:?} is sent back to {cpus}");
        }
    }
    assert!(advised > 40, "{advised} hosts were given commands");
}
