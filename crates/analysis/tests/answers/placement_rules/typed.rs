//! What findings type, and how it is undone: one case for each way in which a command could harm.

use super::quiet::{fact, finding as found, findings, quiet, set, thread};
use host::Machine;
use host::machine::{Cgroup, CpuUse, Irq, Nic, Pmd, Quota, Role, Switch};
use kvmscope_analysis::placement::solver::Kind;
use kvmscope_analysis::placement::{Wishes, build};

#[test]
fn memory_is_moved_back_only_as_a_whole_and_huge_pages_not_at_all() {
    let away = |memory: &[(u32, u64)], huge: bool, busy: f64| {
        let mut machine = quiet();
        for cpu in 4..8 {
            machine.cpu_use.insert(cpu, CpuUse { busy, idle: 1.0 - busy, ..CpuUse::default() });
        }
        machine.vm_memory.insert("web".into(), fact(memory.iter().copied().collect()));
        machine.domains[0].huge_pages = huge;
        machine.domains[0].memory_bytes = Some(1 << 30);
        for (node, count) in [(0, 0), (1, 512)] {
            machine.nodes.get_mut(&node).unwrap().huge_pages = vec![(2_048, count, 0)];
        }
        found("PLC-MEMORY", machine)
    };
    let whole = away(&[(1, 1 << 30)], false, 1.0);
    assert!(whole.fix[0].starts_with("migratepages 10 1 0 "), "{:?}", whole.fix);
    assert_eq!(whole.undo, ["migratepages 10 0 1"]);
    let part = away(&[(0, 1 << 30), (1, 1 << 29)], false, 1.0);
    assert!(part.undo[0].starts_with("# no undo for `migratepages 10 1 0`"), "{:?}", part.undo);
    let free = away(&[(1, 1 << 30)], false, 0.0);
    assert!(
        free.fix.iter().all(|line| line.starts_with("virsh vcpupin web ")),
        "the vCPUs go to their memory: {:?}",
        free.fix
    );
    let huge = away(&[(1, 1 << 30)], true, 1.0);
    assert!(!huge.fix.iter().any(|line| line.starts_with("migratepages")), "{:?}", huge.fix);
    assert!(huge.evidence.iter().any(|seen| seen.what == "node 0 has no huge pages at all"), "{:?}", huge.evidence);
}

/// An interrupt of a card of node 1 on the first vCPU's CPU.
fn interrupted(name: &str) -> Machine {
    let mut machine = quiet();
    machine.span_ns = Some(2_000_000_000);
    machine.nics.push(Nic { name: "eth0".into(), node: Some(fact(1)), ..Nic::default() });
    machine.cpu_use.insert(0, CpuUse { softirq: 0.3, busy: 0.5, idle: 0.2, ..CpuUse::default() });
    machine.irqs.push(Irq {
        number: 24,
        name: name.into(),
        affinity: Some(fact(set("0-7"))),
        effective: Some(set("0")),
        per_s: [(0, 9_000.0)].into(),
        counts: [(0, 1)].into(),
        ..Irq::default()
    });
    machine
}

#[test]
fn an_interrupt_goes_to_one_cpu_near_its_card_and_a_managed_one_stays() {
    let moved = found("PLC-IRQ", interrupted("eth0"));
    let [change] = &moved.changes[..] else { panic!("{:?}", moved.fix) };
    assert!(set(&change.to).is_within(&set("4-7")) && set(&change.to).len() == 1, "{change:?}");
    assert_eq!(moved.undo, ["echo 0-7 > /proc/irq/24/smp_affinity_list"], "irqbalance was not seen");
    let managed = found("PLC-IRQ", interrupted("nvme0q1"));
    assert!(managed.changes.is_empty() && managed.fix[0].starts_with("cat /proc/irq/24/"), "{:?}", managed.fix);
}

#[test]
fn polling_threads_stay_where_their_mask_was_not_read() {
    let shared = |mask: Option<&str>| {
        let mut machine = quiet();
        let mut pmd = thread(Role::Pmd, 20, "1", 1.0, 0.0);
        pmd.vm = None;
        machine.threads.push(pmd);
        let pmds = vec![Pmd { cpu: 1, ..Pmd::default() }];
        machine.switch = Switch { pmd_mask: mask.map(|mask| fact(set(mask))), pmds, ..Switch::default() };
        found("PLC-PMD", machine)
    };
    let told = shared(Some("1"));
    assert!(told.undo.contains(&"ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask=0x2".to_owned()), "{told:?}");
    let unread = shared(None);
    assert!(!unread.fix.iter().any(|line| line.contains("pmd-cpu-mask=")), "{:?}", unread.fix);
    assert!(unread.changes.iter().all(|change| change.from.is_some()) && !unread.changes.is_empty(), "{unread:?}");
}

#[test]
fn each_vcpu_gets_one_isolated_cpu_and_never_several() {
    let mut machine = quiet();
    machine.topology.isolated = Some(set("0-1,4-5"));
    for thread in &mut machine.threads[..2] {
        thread.affinity = Some(fact(set("0-1")));
        thread.last_cpu = Some(fact(0));
        (thread.run_share, thread.wait_share) = (Some(fact(0.5)), Some(fact(0.45)));
    }
    let model = build::model(base::Level::At(0), "L0", machine.clone(), false, &Wishes::default());
    let missing = model.proposal.missing(model.proposal.now().unwrap());
    assert!(missing > 0.8, "both stay on CPU 0, which one of them could leave: {missing}");
    let finding = found("PLC-ISOL", machine);
    let places: Vec<_> = finding.changes.iter().map(|change| set(&change.to)).collect();
    assert!(!places.is_empty() && places.iter().all(|cpus| cpus.len() == 1), "{places:?}");
}

#[test]
fn a_quota_caps_what_its_threads_are_taken_to_want() {
    let mut machine = quiet();
    for thread in &mut machine.threads[..2] {
        (thread.run_share, thread.wait_share) = (Some(fact(0.25)), Some(fact(0.7)));
        thread.time_group = Some("/web/vcpus".into());
    }
    machine.cgroups.insert("/web".into(), Cgroup::default());
    machine.quotas.insert("/web".into(), Quota { cpus: fact(0.5), since_start: None, measured: None });
    let model = build::model(base::Level::At(0), "L0", machine, false, &Wishes::default());
    let units = model.proposal.task.units.iter().filter(|unit| unit.kind == Kind::Vcpu);
    let wanted: f64 = units.map(|unit| unit.demand).sum();
    assert!((wanted - 0.5).abs() < 1e-9, "{wanted}");
}

#[test]
fn what_was_waited_beyond_the_model_is_said() {
    let mut machine = quiet();
    machine.threads[3] = thread(Role::Vhost, 13, "2-3", 0.4, 0.5);
    machine.threads.push(thread(Role::Vhost, 14, "0-1", 0.4, 0.02));
    let finding = findings(machine).into_iter().find(|finding| finding.rule == "PLC-PROPOSAL").unwrap();
    let said = &finding.evidence[0].what;
    assert!(said.contains("threads waited 0.50 CPUs (measured), more than the model explains"), "{said}");
}
