//! Limits that no pin reaches beyond: cgroups, by whoever owns them, and partitions.

use super::quiet::{commands, fact, findings, quiet, rules, set, thread};
use host::Machine;
use host::machine::{Cgroup, Role};

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
    assert!(typed[1].starts_with("systemctl set-property --runtime machine.slice AllowedCPUs=0-7"), "{typed:?}");
    // Kubernetes keeps a pool for its own reasons, and a slice with all CPUs limits nobody.
    assert!(!rules(squeezed("/kubepods.slice", "0-1")).contains(&"PLC-SLICE"));
    assert!(!rules(squeezed("/machine.slice", "0-7")).contains(&"PLC-SLICE"));
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
