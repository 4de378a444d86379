//! VMs behind several last-level caches though one would hold them, and neighbours about which nothing is said.

use super::quiet::{fact, findings, quiet, rules, set, thread};
use base::{Finding, Severity};
use host::Machine;
use host::machine::{GuestTopology, Role};

const RULE: &str = "PLC-CACHE";

/// The quiet machine on one node with two caches, each of four CPUs; the second vCPU is on the CPU of that number.
fn second_on(cpu: u32) -> Machine {
    let mut machine = quiet();
    for (cpu, about) in &mut machine.topology.cpus {
        (about.package, about.node, about.last_cache) = (Some(0), Some(0), Some(cpu / 4 * 4));
    }
    machine.nodes.remove(&1);
    machine.threads[1] = thread(Role::Vcpu(1), 12, &cpu.to_string(), 0.5, 0.0);
    machine.domains[0].vcpu_pins.insert(1, fact(set(&cpu.to_string())));
    machine
}

fn apart(change: impl FnOnce(&mut Machine)) -> Option<Finding> {
    let mut machine = second_on(4);
    change(&mut machine);
    findings(machine).into_iter().find(|finding| finding.rule == RULE)
}

#[test]
fn vcpus_behind_two_caches_are_brought_behind_one() {
    let finding = apart(|_| {}).expect("they would fit behind one");
    assert_eq!(finding.severity, Severity::Info, "nobody waits");
    let [change] = &finding.changes[..] else { panic!("{:?}", finding.changes) };
    assert_eq!((change.to.as_str(), change.from.as_deref()), ("1", Some("4")), "near the other vCPU and the helpers");
    let starved = apart(|machine| machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, 0.3)).unwrap();
    assert_eq!(starved.severity, Severity::Low);
    let unmeasured = apart(|machine| machine.threads.iter_mut().for_each(|thread| thread.wait_share = None)).unwrap();
    assert_eq!(unmeasured.severity, Severity::Low);
}

#[test]
fn a_vm_behind_one_cache_is_no_fault() {
    assert_eq!(rules(second_on(1)), Vec::<&str>::new());
}

#[test]
fn a_cache_of_the_whole_node_and_unknown_caches_are_no_groups() {
    for cache in [Some(0), None] {
        let mut machine = second_on(4);
        machine.topology.cpus.values_mut().for_each(|about| about.last_cache = cache);
        assert_eq!(rules(machine), Vec::<&str>::new(), "{cache:?}");
    }
}

#[test]
fn a_vm_that_fits_behind_no_cache_stays() {
    let mut machine = second_on(4);
    for (vcpu, cpu) in [(2, 1), (3, 5), (4, 6)] {
        machine.threads.push(thread(Role::Vcpu(vcpu), 20 + vcpu as i32, &cpu.to_string(), 0.5, 0.0));
        machine.domains[0].vcpu_pins.insert(vcpu, fact(set(&cpu.to_string())));
    }
    machine.domains[0].vcpus = Some(5);
    assert_eq!(rules(machine), Vec::<&str>::new());
    let full = apart(|machine| {
        for (number, cpu) in [(0, 1), (1, 5), (2, 6), (3, 7)] {
            let mut other = thread(Role::Vcpu(number), 30 + number as i32, &cpu.to_string(), 0.5, 0.0);
            other.vm = Some("db".into());
            machine.threads.push(other);
        }
    });
    assert!(full.is_none(), "another VM has the CPUs beside both vCPUs: {full:?}");
}

#[test]
fn a_guest_that_knows_of_groups_stays_spread() {
    let shown = |sockets, dies| GuestTopology { sockets, dies, cores: 2, threads: 1 };
    for (guest_nodes, topology) in [(2, None), (0, Some(shown(2, 1))), (0, Some(shown(1, 2)))] {
        let mut machine = second_on(4);
        machine.domains[0].guest_nodes = guest_nodes;
        machine.domains[0].topology = topology.map(fact);
        let found = rules(machine);
        assert!(!found.contains(&RULE) && !found.contains(&"PLC-PROPOSAL"), "{found:?}");
    }
    let one = apart(|machine| machine.domains[0].topology = Some(fact(shown(1, 1))));
    assert!(one.is_some(), "one socket with one die is no group");
}

#[test]
fn idle_vcpus_and_those_on_sets_of_both_caches_are_left_alone() {
    let idle = apart(|machine| {
        machine.threads[..2].iter_mut().for_each(|thread| thread.run_share = Some(fact(0.01)));
    });
    assert!(idle.is_none(), "{idle:?}");
    let floating = apart(|machine| machine.threads[1] = thread(Role::Vcpu(1), 12, "1,4", 0.5, 0.0));
    assert!(floating.is_none(), "{floating:?}");
}
