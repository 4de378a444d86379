//! A machine on which nothing is wrong, and what rules say after one change.

use base::{CpuSet, FactKind, Finding};
use host::Machine;
use host::machine::{Cpu, CpuUse, Domain, Fact, Node, Role, Switch, Thread, domains_of};
use kvmscope_analysis::placement::{Wishes, build, rules as table, section::section};
use std::collections::BTreeSet;

pub(super) fn set(list: &str) -> CpuSet {
    CpuSet::parse(list).unwrap()
}

pub(super) fn fact<T>(value: T) -> Fact<T> {
    Fact::new(value, "test:1")
}

/// A thread of VM `web` with its mask, and what it ran and waited.
pub(super) fn thread(role: Role, tid: i32, cpus: &str, run: f64, wait: f64) -> Thread {
    let mut thread = Thread::new(role, role.to_string());
    (thread.vm, thread.pid, thread.tid) = (Some("web".into()), Some(10), Some(tid));
    thread.affinity = Some(fact(set(cpus)));
    thread.last_cpu = set(cpus).first().map(fact);
    (thread.run_share, thread.wait_share) = (Some(fact(run)), Some(fact(wait)));
    thread
}

/// Eight CPUs on eight cores and two nodes; a VM with two pinned vCPUs and its helpers beside them. Nothing is wrong.
pub(super) fn quiet() -> Machine {
    let mut machine = Machine::default();
    for cpu in 0..8 {
        machine
            .topology
            .cpus
            .insert(cpu, Cpu { core: cpu, package: Some(cpu / 4), node: Some(cpu / 4), last_cache: None });
        machine.topology.online.insert(cpu);
        machine.cpu_use.insert(cpu, CpuUse { idle: 1.0, ..CpuUse::default() });
    }
    for node in 0..2 {
        let distances = [(node, 10), (1 - node, 21)].into();
        machine.nodes.insert(node, Node { total_bytes: Some(1 << 34), distances, ..Node::default() });
    }
    machine.threads = vec![
        thread(Role::Vcpu(0), 11, "0", 0.5, 0.0),
        thread(Role::Vcpu(1), 12, "1", 0.5, 0.0),
        thread(Role::Emulator, 10, "2-3", 0.01, 0.0),
        thread(Role::Vhost, 13, "2-3", 0.3, 0.0),
    ];
    let mut domain = Domain { name: "web".into(), vcpus: Some(2), ..Domain::default() };
    domain.vcpu_pins = [(0, fact(set("0"))), (1, fact(set("1")))].into();
    domain.emulator_pins = vec![fact(set("2-3"))];
    machine.domains = vec![domain];
    machine
}

pub(super) fn rules(machine: Machine) -> Vec<&'static str> {
    findings(machine).iter().map(|finding| finding.rule).collect()
}

/// What is found on a machine, each with something seen and something to type.
pub(super) fn findings(machine: Machine) -> Vec<Finding> {
    let model = build::model(base::Level::At(0), "L0", machine, false, &Wishes::default());
    let section = section(&[model]);
    for finding in &section.findings {
        assert!(
            !finding.evidence.is_empty() && !finding.title.is_empty() && !finding.source.is_empty(),
            "{}",
            finding.rule
        );
        assert!(!finding.fix.is_empty(), "{} says nothing to type", finding.rule);
        for command in finding.fix.iter().chain(&finding.undo) {
            assert!(!command.contains("DOMAIN"), "{}: {command}: every domain has a name", finding.rule);
        }
    }
    section.findings
}

/// What a rule finds on a machine.
pub(super) fn found(rule: &str, machine: Machine) -> Option<Finding> {
    findings(machine).into_iter().find(|finding| finding.rule == rule)
}

/// The same of a rule that has to find something.
pub(super) fn finding(rule: &str, machine: Machine) -> Finding {
    found(rule, machine).unwrap_or_else(|| panic!("no {rule}"))
}

/// What a rule's finding on a machine names to run.
pub(super) fn commands(rule: &str, machine: Machine) -> Vec<String> {
    let model = build::model(base::Level::At(0), "L0", machine, false, &Wishes::default());
    let findings = section(&[model]).findings;
    findings.into_iter().filter(|finding| finding.rule == rule).flat_map(|finding| finding.fix).collect()
}

/// The rule fires on the quiet machine after `change`, and did not before.
pub(super) fn fires(rule: &str, change: impl FnOnce(&mut Machine)) {
    assert_eq!(rules(quiet()), Vec::<&str>::new());
    let mut machine = quiet();
    change(&mut machine);
    let found = rules(machine.clone());
    assert!(found.contains(&rule), "{rule} is not among {found:?}");
    requires_what_it_names(rule, &machine);
}

/// The rule says what it has to know: without any of that it is silent on a machine on which it fires, without all else it is not.
fn requires_what_it_names(rule: &str, machine: &Machine) {
    let needs: BTreeSet<FactKind> =
        table::rules().filter(|one| one.id == rule).flat_map(|one| one.requires).copied().collect();
    let alone = |taken: &[FactKind]| ENOUGH.iter().any(|(of, known)| *of == rule && taken.contains(known));
    let differs = FORGET.iter().filter(|(taken, _)| !alone(taken)).filter(|(taken, forget)| {
        let mut machine = machine.clone();
        forget(&mut machine);
        rules(machine).contains(&rule) == taken.iter().any(|known| needs.contains(known))
    });
    let differs: Vec<_> = differs.map(|(taken, _)| taken).collect();
    assert!(differs.is_empty(), "{rule} says that it needs {needs:?}; it is otherwise without {differs:?}");
}

/// Of rules that look at several things, those of which each is enough.
const ENOUGH: &[(&str, FactKind)] = &[("PLC-PARTITION", FactKind::Settings)];

type Forget = (&'static [FactKind], fn(&mut Machine));

/// What nobody may have told, and where it stands.
const FORGET: &[Forget] = &[
    (&[FactKind::Cpus, FactKind::Cores, FactKind::Caches, FactKind::Nodes], |machine| {
        (machine.topology.cpus, machine.topology.online) = Default::default();
    }),
    (&[FactKind::Cores], |machine| {
        machine.topology.cores_unknown = true;
        machine.topology.cpus.iter_mut().for_each(|(cpu, about)| about.core = *cpu);
    }),
    (&[FactKind::Caches], |machine| machine.topology.cpus.values_mut().for_each(|cpu| cpu.last_cache = None)),
    (&[FactKind::Nodes], |machine| machine.topology.cpus.values_mut().for_each(|cpu| cpu.node = None)),
    (&[FactKind::Isolated], |machine| machine.topology.isolated = None),
    (&[FactKind::Definitions], |machine| {
        let bare = |domain: &Domain| Domain { name: domain.name.clone(), ..Domain::default() };
        machine.domains = machine.domains.iter().map(bare).collect();
    }),
    (&[FactKind::Masks], |machine| machine.threads.iter_mut().for_each(|thread| thread.affinity = None)),
    (&[FactKind::Seen], |machine| machine.threads.iter_mut().for_each(|thread| thread.last_cpu = None)),
    (&[FactKind::Ran], |machine| machine.threads.iter_mut().for_each(|thread| thread.run_share = None)),
    (&[FactKind::Waited], |machine| machine.threads.iter_mut().for_each(|thread| thread.wait_share = None)),
    (&[FactKind::Usage], |machine| machine.cpu_use.clear()),
    (&[FactKind::Groups], |machine| {
        machine.threads.iter_mut().for_each(|thread| (thread.cgroup, thread.time_group) = (None, None));
    }),
    (&[FactKind::Quotas], |machine| machine.quotas.clear()),
    (&[FactKind::GuestMemory], |machine| {
        machine.vm_memory.clear();
        machine.process_memory.clear();
    }),
    (&[FactKind::Interrupts], |machine| machine.irqs.clear()),
    (&[FactKind::Cards, FactKind::CardCounters], |machine| machine.nics.clear()),
    (&[FactKind::CardCounters], |machine| {
        machine.nics.iter_mut().for_each(|nic| nic.counters.clear());
        machine.switch.statistics.clear();
    }),
    (&[FactKind::Switch], |machine| machine.switch = Switch::default()),
    (&[FactKind::Paging, FactKind::Pressure, FactKind::Disks], |machine| machine.gauges.clear()),
    (&[FactKind::PagesMoved], |machine| machine.pages_moved_per_s = None),
    (&[FactKind::Log], |machine| machine.complaints.clear()),
    (&[FactKind::Settings, FactKind::TopClocks], |machine| machine.settings.clear()),
    (&[FactKind::Processor], |machine| machine.vendor = None),
];

/// The same for a definition: `good` is silent about the rule, `bad` is not.
pub(super) fn defined(rule: &str, good: &str, bad: &str) {
    let of = |devices: &str| {
        let mut machine = quiet();
        let xml = format!("<domain><name>web</name><cpu mode='host-model'/>{devices}</domain>");
        let [told] = &domains_of(&xml, "web.xml", 1, "").unwrap()[..] else { panic!("one domain") };
        machine.domains[0].add(told.clone());
        machine
    };
    assert!(!rules(of(good)).contains(&rule), "{rule} fires on {good}");
    assert!(rules(of(bad)).contains(&rule), "{rule} does not fire on {bad}");
    requires_what_it_names(rule, &of(bad));
}
