//! Hosts with one trouble whose cause is known, each beside a neighbour, one thing away, that must stay silent. As others score
//! them: the cause is named first, all that is typed together leaves no more CPUs missing, sends nothing where a vCPU is pinned,
//! and has the old value to go back to.

use super::culprits::{clean, evidence, of_vm, program, refill, second, used, waits};
use super::quiet::{fact, set, thread};
use base::{Change, CpuSet, Finding, Setting};
use host::Machine;
use host::machine::{CpuUse, Irq, Quota, Role, Thread, Throttled};
use kvmscope_analysis::placement::model::Model;
use kvmscope_analysis::placement::{Wishes, build, section::section};

fn model(machine: Machine) -> Model {
    build::model(base::Level::At(0), "L0", machine, false, &Wishes::default())
}

/// CPUs that are missing as things are.
fn missing(machine: &Machine) -> f64 {
    let model = model(machine.clone());
    model.proposal.now().map_or(0.0, |now| model.proposal.missing(now))
}

/// The machine after a change, which must be one from what was read.
fn changed(machine: &mut Machine, change: &Change) {
    let to = set(&change.to);
    let now = |from: Option<&CpuSet>| {
        assert_eq!(change.from.as_deref(), from.map(CpuSet::to_string).as_deref(), "{}", change.command())
    };
    let pinned = |machine: &mut Machine, wanted: &dyn Fn(Role) -> bool| {
        for thread in machine.threads.iter_mut().filter(|thread| thread.vm.is_some() && wanted(thread.role)) {
            thread.affinity = Some(fact(to.clone()));
            thread.last_cpu = to.first().map(fact);
        }
    };
    match &change.setting {
        Setting::TaskAffinity(id) => {
            let thread = machine.threads.iter_mut().find(|thread| thread.tid == Some(id.tid)).expect("a thread");
            now(thread.affinity.as_ref().map(|set| &set.value));
            (thread.affinity, thread.last_cpu) = (Some(fact(to.clone())), to.first().map(fact));
        }
        Setting::IrqAffinity { irq } => {
            let vcpus = machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_)));
            let pinned = vcpus.filter_map(|thread| Some(&thread.affinity.as_ref()?.value)).filter(|set| set.len() == 1);
            assert!(pinned.fold(CpuSet::default(), |all, set| all.or(set)).without(&to).len() > 1, "{to} has a vCPU");
            let irq = machine.irqs.iter_mut().find(|one| one.number == *irq).expect("an interrupt");
            now(irq.affinity.as_ref().map(|set| &set.value));
            let (from, rate) = irq.per_s.iter().next().map(|(cpu, rate)| (*cpu, *rate)).expect("it comes");
            let cpu = to.first().unwrap();
            (irq.affinity, irq.effective, irq.per_s) = (Some(fact(to.clone())), Some(to.clone()), [(cpu, rate)].into());
            let usage = std::mem::take(machine.cpu_use.get_mut(&from).unwrap());
            let (softirq, busy) = (usage.softirq, usage.busy);
            *machine.cpu_use.get_mut(&from).unwrap() = CpuUse { busy, idle: 1.0 - busy, ..CpuUse::default() };
            machine.cpu_use.get_mut(&cpu).unwrap().softirq += softirq;
        }
        Setting::VcpuPin { vcpu, .. } => pinned(machine, &|role| role == Role::Vcpu(*vcpu)),
        Setting::EmulatorPin { .. } => pinned(machine, &|role| matches!(role, Role::Emulator | Role::Vhost)),
        other => panic!("{other:?}"),
    }
}

/// The first finding, once all that findings type has been judged.
fn first(mut machine: Machine) -> Finding {
    refill(&mut machine);
    let findings = section(&[model(machine.clone())]).findings;
    let before = missing(&machine);
    let mut after = machine;
    let typed = findings.iter().filter(|finding| finding.rule != "PLC-PROPOSAL").flat_map(|finding| &finding.changes);
    let mut done: Vec<&Change> = Vec::new();
    for change in typed {
        if !done.contains(&change) {
            changed(&mut after, change);
            done.push(change);
        }
    }
    refill(&mut after);
    assert!(missing(&after) <= before + 0.05, "{before} CPUs missing before, {} after {done:?}", missing(&after));
    findings.into_iter().next().expect("something is wrong")
}

#[test]
fn a_worker_whose_cpu_has_its_cards_interrupt() {
    let host = |cpu: u32, wait: f64| {
        let mut machine = used();
        machine.span_ns = Some(2_000_000_000);
        machine.threads[3] = thread(Role::Vhost, 13, "3", 0.5, wait);
        machine.cpu_use.insert(cpu, CpuUse { softirq: 0.45, ..CpuUse::default() });
        machine.irqs.push(Irq {
            number: 24,
            name: "eth0".into(),
            affinity: Some(fact(set("0-7"))),
            effective: Some(CpuSet::one(cpu)),
            per_s: [(cpu, 20_000.0)].into(),
            counts: [(cpu, 1)].into(),
            ..Irq::default()
        });
        machine
    };
    let found = first(host(3, 0.45));
    assert_eq!(found.rule, "PLC-IRQ");
    assert!(found.title.ends_with("on CPU 3, where vhost of web (13) starved"), "{}", found.title);
    clean(host(6, 0.0), "the interrupt comes to a CPU of nobody");
}

#[test]
fn a_slice_that_caps_two_vms_together() {
    let host = |throttled: u64, wait: f64| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, wait);
        machine.threads[0].time_group = Some("/tenant.slice/web/vcpu0".into());
        let mut other = of_vm("db", thread(Role::Vcpu(0), 21, "5", 0.5, wait));
        other.time_group = Some("/tenant.slice/db/vcpu0".into());
        second(&mut machine, "db", vec![other]);
        let counted = Throttled { periods: 20, throttled, ns: 0, cpus: throttled as f64 / 40.0 };
        let quota = Quota { cpus: fact(1.0), since_start: Some(counted), measured: Some(fact(counted)) };
        machine.quotas.insert("/tenant.slice".into(), quota);
        machine
    };
    let found = first(host(18, 0.4));
    assert_eq!((found.rule, found.subject.as_str()), ("PLC-QUOTA", "/tenant.slice"));
    assert!(
        evidence(&found).contains("vcpu 0 of web") && evidence(&found).contains("vcpu 0 of db"),
        "{}",
        evidence(&found)
    );
    clean(host(0, 0.0), "a limit that is never reached");
}

#[test]
fn the_emulator_of_another_vm_on_a_pinned_cpu() {
    let host = |run: f64, wait: f64| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, wait);
        let threads = vec![thread(Role::Vcpu(0), 21, "5", 0.3, 0.0), thread(Role::Emulator, 20, "0", run, 0.0)];
        second(&mut machine, "db", threads);
        machine
    };
    let found = first(host(0.5, 0.45));
    assert_eq!(found.rule, "PLC-STARVED");
    assert!(found.title.contains(": emulator of db (20) ran on CPU 0"), "{}", found.title);
    clean(host(0.01, 0.0), "it sleeps, and nobody waits");
}

#[test]
fn the_iothread_of_another_vm_on_a_pinned_cpu() {
    let host = |cpu: &str, wait: f64| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, wait);
        let threads = vec![thread(Role::Vcpu(0), 21, "5", 0.3, 0.0), thread(Role::IoThread(1), 22, cpu, 0.48, wait)];
        second(&mut machine, "db", threads);
        machine
    };
    let found = first(host("0", 0.5));
    assert!(found.title.contains("iothread 1 of db (22) ran on CPU 0"), "{}", found.title);
    clean(host("6", 0.0), "it has a CPU of its own");
}

#[test]
fn threads_of_qemu_for_disks_on_the_cpu_of_their_own_vcpu() {
    let host = |run: f64, wait: f64| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, wait);
        machine.threads.push(Thread { name: "worker".to_owned(), ..thread(Role::Other, 61, "0", run, wait) });
        machine
    };
    let found = first(host(0.48, 0.45));
    assert!(found.title.contains("worker of web (61) ran on CPU 0"), "{}", found.title);
    assert!(evidence(&found).contains("worker (61) ran 48.0 %"), "{}", evidence(&found));
    clean(host(0.01, 0.0), "they sleep");
}

/// The CPU of a pinned vCPU is taken by softirqs, and its neighbour's is the one with the least other work on it: a free CPU, not
/// the neighbour's, is what it gets.
#[test]
fn a_vcpu_that_has_to_move_leaves_its_neighbour_alone() {
    let mut machine = used();
    waits(&mut machine);
    machine.threads[1] = thread(Role::Vcpu(1), 12, "1", 0.9, 0.0);
    for cpu in [2, 3] {
        machine.threads.push(program("cron", 70 + cpu, &cpu.to_string(), 0.02));
    }
    machine.cpu_use.insert(0, CpuUse { softirq: 0.45, ..CpuUse::default() });
    let found = first(machine);
    let moved: Vec<&Change> = found.changes.iter().collect();
    assert!(matches!(moved[..], [Change { setting: Setting::VcpuPin { vcpu: 0, .. }, .. }]), "{moved:?}");
}

#[test]
fn a_placement_that_wins_no_cpu_says_so() {
    let mut machine = used();
    machine.threads[2] = thread(Role::Emulator, 10, "0-1", 0.01, 0.0);
    machine.threads[3] = thread(Role::Vhost, 13, "0-1", 0.3, 0.0);
    refill(&mut machine);
    let found = section(&[model(machine)]).findings;
    let placement = found.iter().find(|finding| finding.rule == "PLC-PROPOSAL").expect("helpers can be moved");
    assert!(placement.title.ends_with("1 command, 0.00 CPUs short as now"), "{}", placement.title);
    assert!(evidence(placement).contains("CPUs short: 0.00, now and with it (modelled)"), "{}", evidence(placement));
}
