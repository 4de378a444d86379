//! Who kept a thread from running: each cause with its neighbour, one thing away, that must not be blamed.

use super::quiet::{fact, findings, quiet, set, thread};
use base::{Finding, Severity};
use host::Machine;
use host::machine::{CpuUse, Domain, Irq, Quota, Role, Thread, Throttled};

/// The quiet machine with CPU use that fits what its threads ran.
pub(super) fn used() -> Machine {
    let mut machine = quiet();
    refill(&mut machine);
    machine
}

/// Makes the use of CPUs fit what the threads ran where they were last seen.
pub(super) fn refill(machine: &mut Machine) {
    for (cpu, usage) in &mut machine.cpu_use {
        let here = machine.threads.iter().filter(|thread| thread.last_cpu.as_ref().is_some_and(|at| at.value == *cpu));
        let busy = here.map(|thread| thread.run_share.as_ref().map_or(0.0, |run| run.value)).sum::<f64>().min(1.0);
        *usage = CpuUse { busy, idle: (1.0 - busy - usage.irq - usage.softirq - usage.steal).max(0.0), ..*usage };
    }
}

pub(super) fn program(name: &str, tid: i32, cpus: &str, run: f64) -> Thread {
    Thread { vm: None, pid: Some(tid), name: name.to_owned(), ..thread(Role::Other, tid, cpus, run, 0.0) }
}

pub(super) fn of_vm(vm: &str, thread: Thread) -> Thread {
    Thread { vm: Some(vm.to_owned()), ..thread }
}

/// A second VM.
pub(super) fn second(machine: &mut Machine, name: &str, threads: Vec<Thread>) {
    machine.domains.push(Domain { name: name.into(), vcpus: Some(threads.len() as u32), ..Domain::default() });
    machine.threads.extend(threads.into_iter().map(|thread| of_vm(name, thread)));
}

/// vCPU 0 waits on CPU 0.
pub(super) fn waits(machine: &mut Machine) {
    machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, 0.45);
}

/// The worst finding on a machine whose CPUs are as busy as its threads.
pub(super) fn first(mut machine: Machine) -> Finding {
    refill(&mut machine);
    findings(machine).into_iter().next().expect("something is wrong")
}

/// Nothing on this machine is of weight.
pub(super) fn clean(mut machine: Machine, why: &str) {
    refill(&mut machine);
    let found: Vec<String> = findings(machine)
        .into_iter()
        .filter(|finding| finding.severity > Severity::Info)
        .map(|finding| format!("{:?} {}: {}", finding.severity, finding.rule, finding.title))
        .collect();
    assert!(found.is_empty(), "{why}: {found:?}");
}

pub(super) fn evidence(finding: &Finding) -> String {
    finding.evidence.iter().map(|seen| seen.what.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_program_on_the_cpu_is_named_and_one_elsewhere_is_not() {
    let mut machine = used();
    waits(&mut machine);
    machine.threads.push(program("pigz", 70, "0-7", 0.5));
    let found = first(machine.clone());
    assert_eq!((found.rule, found.severity), ("PLC-STARVED", Severity::High));
    assert_eq!(found.title, "vcpu 0 of web starved, 0.45 CPUs short: another program, pigz (70), ran on CPU 0");
    assert!(evidence(&found).contains("other candidates for vcpu 0 of web (11): "), "{}", evidence(&found));
    machine.threads[4].last_cpu = Some(fact(5));
    let found = first(machine.clone());
    assert!(found.title.ends_with("what ran meanwhile does not explain it"), "{}", found.title);
    machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, 0.0);
    clean(machine, "no thread waits");
}

#[test]
fn small_programs_are_found_by_the_time_that_no_listed_thread_used() {
    let mut machine = used();
    waits(&mut machine);
    refill(&mut machine);
    *machine.cpu_use.get_mut(&0).unwrap() = CpuUse { busy: 1.0, ..CpuUse::default() };
    let found = findings(machine);
    assert!(found[0].title.contains("too small or short-lived to be listed"), "{}", found[0].title);
}

#[test]
fn helpers_that_are_idle_are_not_blamed_for_what_a_program_took() {
    let mut machine = used();
    waits(&mut machine);
    machine.threads[2].affinity = Some(fact(set("0-1")));
    machine.threads[3] = thread(Role::Vhost, 13, "0-1", 0.02, 0.0);
    machine.threads.push(program("java", 70, "0", 0.5));
    let found = first(machine.clone());
    assert!(found.rule == "PLC-STARVED" && found.title.contains("java"), "{} {}", found.rule, found.title);
    machine.threads.pop();
    machine.threads[3] = thread(Role::Vhost, 13, "0-1", 0.5, 0.4);
    let found = first(machine.clone());
    assert_eq!((found.rule, found.severity), ("PLC-OVERLAP", Severity::High), "here they ran");
    machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, 0.003);
    machine.threads[3] = thread(Role::Vhost, 13, "0-1", 0.3, 0.002);
    refill(&mut machine);
    let found = findings(machine.clone()).into_iter().find(|finding| finding.rule == "PLC-OVERLAP").unwrap();
    assert_eq!((found.severity, found.changes.len()), (Severity::Info, 0));
    assert!(evidence(&found).contains("measured: none of 4 threads is starved"), "{}", evidence(&found));
    clean(machine.clone(), "measured, and none waits");
    machine.threads.iter_mut().for_each(|thread| thread.wait_share = None);
    let found = findings(machine).into_iter().find(|finding| finding.rule == "PLC-OVERLAP").unwrap();
    assert_eq!(found.severity, Severity::Medium, "not measured is at most medium");
    assert!(evidence(&found).contains("no waiting times"), "{}", evidence(&found));
}

#[test]
fn interrupts_of_its_cpu_starve_a_thread_and_those_of_another_do_not() {
    let on = |cpu: u32, wait: f64| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, wait);
        machine.cpu_use.insert(cpu, CpuUse { softirq: 0.4, irq: 0.05, ..CpuUse::default() });
        let affinity = Some(fact(set("0-7")));
        let irq =
            Irq { number: 24, name: "nvme0q1".into(), affinity, per_s: [(cpu, 9_000.0)].into(), ..Irq::default() };
        machine.irqs.push(irq);
        machine
    };
    let found = first(on(0, 0.4));
    assert_eq!((found.rule, found.severity), ("PLC-IRQ", Severity::High));
    assert!(found.title.ends_with("on CPU 0, where vcpu 0 of web (11) starved"), "{}", found.title);
    let found = first(on(5, 0.4));
    assert!(found.rule == "PLC-STARVED" && !found.title.contains("interrupt"), "{}", found.title);
    clean(on(5, 0.0), "a CPU of no vCPU");
    // No single interrupt is frequent: softirqs alone.
    let mut softirqs = on(0, 0.4);
    softirqs.irqs.clear();
    let found = first(softirqs);
    assert!(
        found.rule == "PLC-STARVED" && found.title.contains("interrupts and softirqs ran on CPU 0"),
        "{}",
        found.title
    );
}

#[test]
fn steal_that_explains_a_wait_has_the_victims() {
    let stolen = |steal: f64, wait: f64| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, wait);
        machine.cpu_use.values_mut().for_each(|usage| usage.steal = steal);
        machine
    };
    let found = first(stolen(0.3, 0.3));
    assert_eq!((found.rule, found.severity), ("PLC-BED", Severity::High));
    assert!(evidence(&found).contains("the hypervisor took time away (steal) on CPU 0"), "{}", evidence(&found));
    assert_eq!(first(stolen(0.1, 0.0)).severity, Severity::Medium, "no thread is starved by it");
    assert_eq!(
        first(stolen(0.3, 0.0)).severity,
        Severity::High,
        "all CPUs together lose 2.4: none is stolen that nobody wants"
    );
    clean(stolen(0.02, 0.0), "little");
}

#[test]
fn a_quota_that_throttles_is_named_and_one_that_does_not_is_silent() {
    let limited = |throttled: u64, wait: f64| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, wait);
        machine.threads[0].time_group = Some("/machine.slice/web/vcpu0".into());
        let counted = Throttled { periods: 20, throttled, ns: 0, cpus: throttled as f64 / 40.0 };
        let quota = Quota { cpus: fact(0.5), since_start: Some(counted), measured: Some(fact(counted)) };
        machine.quotas.insert("/machine.slice/web".into(), quota);
        machine
    };
    let found = first(limited(20, 0.0));
    assert_eq!((found.rule, found.severity), ("PLC-QUOTA", Severity::High));
    assert_eq!(found.title, "a CPU quota throttles 1 thread of web in 100 % of the periods");
    let found = first(limited(20, 0.45));
    assert!(found.rule == "PLC-QUOTA" && evidence(&found).contains("waited 45.0 %"), "its waiting is the quota's");
    clean(limited(0, 0.0), "a limit that was not reached");
    let mut unmeasured = limited(20, 0.0);
    unmeasured.quotas.values_mut().for_each(|quota| quota.measured = None);
    assert_eq!(first(unmeasured).severity, Severity::Medium, "since its start, which may be long ago");
    let mut elsewhere = limited(20, 0.0);
    elsewhere.threads[0].time_group = Some("/machine.slice/web2".into());
    clean(elsewhere, "no thread of a VM is in that group");
}

#[test]
fn a_polling_thread_and_a_vcpu_on_one_cpu_starve_each_other() {
    let polled = |cpu: &str, run: f64, wait: f64| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", run, wait);
        let pmd = Thread { name: "pmd-c00/id:1".into(), vm: None, ..thread(Role::Pmd, 90, cpu, 0.5, wait) };
        machine.threads.push(pmd);
        machine
    };
    let found = first(polled("0", 0.5, 0.45));
    assert_eq!((found.rule, found.severity), ("PLC-PMD", Severity::High));
    assert!(!findings(polled("0", 0.5, 0.45)).iter().any(|finding| finding.rule == "PLC-STARVED"));
    clean(polled("0", 0.1, 0.0), "an idle vCPU, and neither waits");
    clean(polled("5", 0.5, 0.0), "a CPU of its own");
}

#[test]
fn a_vm_that_floats_over_pinned_vcpus_is_blamed_once_they_wait() {
    let floating = |wait: f64| {
        let mut machine = used();
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, wait);
        second(&mut machine, "db", vec![thread(Role::Vcpu(0), 21, "0-7", 0.5, wait)]);
        refill(&mut machine);
        machine
    };
    let found = first(floating(0.45));
    assert_eq!((found.rule, found.subject.as_str(), found.severity), ("PLC-FLOAT", "db", Severity::High));
    assert_eq!(found.title, "1 thread of db may run anywhere, and ran on CPU 0, where 1 pinned vCPU starved");
    assert!(!findings(floating(0.45)).iter().any(|finding| finding.rule == "PLC-STARVED"), "both are told there");
    clean(floating(0.0), "it found room");
}

#[test]
fn isolated_cpus_that_nothing_balances_are_the_cause_where_the_others_idle() {
    let isolated = |idle: bool| {
        let mut machine = used();
        machine.topology.isolated = Some(set("0-3"));
        for (index, tid) in [(0, 11), (1, 12)] {
            machine.threads[index] = thread(Role::Vcpu(index as u32), tid, "0-3", 0.45, 0.45);
        }
        machine.threads[2] = thread(Role::Emulator, 10, "4", 0.01, 0.0);
        machine.threads[3] = thread(Role::Vhost, 13, "4", 0.1, 0.0);
        machine.domains[0].emulator_pins = vec![fact(set("4"))];
        if !idle {
            let busy = (1..4).map(|cpu| program("stress", 70 + cpu, &cpu.to_string(), 1.0));
            machine.threads.extend(busy);
        }
        machine
    };
    let found = first(isolated(true));
    assert_eq!((found.rule, found.severity), ("PLC-ISOL", Severity::High), "{}", found.title);
    assert!(evidence(&found).contains("the idle CPUs 1-3 of its set are isolated"), "{}", evidence(&found));
    assert_ne!(first(isolated(false)).rule, "PLC-ISOL", "no balancing would help where all CPUs are busy");
    let mut alone = isolated(true);
    for (index, cpu) in [(0, 0), (1, 1)] {
        alone.threads[index] = thread(Role::Vcpu(index as u32), 11 + cpu, "0-3", 0.45, 0.0);
        alone.threads[index].last_cpu = Some(fact(cpu as u32));
    }
    clean(alone, "each happens to be alone");
}

#[test]
fn busy_vcpus_of_two_vms_share_a_core_only_where_cores_are_empty() {
    let strangers = |run: f64| {
        let mut machine = used();
        // CPUs 0 and 4 are one core, 1 and 5, and so on.
        machine.topology.cpus.iter_mut().for_each(|(cpu, about)| (about.core, about.node) = (cpu % 4, Some(0)));
        machine.threads[0] = thread(Role::Vcpu(0), 11, "0", run, 0.0);
        machine.threads[1] = thread(Role::Vcpu(1), 12, "1", 0.1, 0.0);
        machine.threads[2] = thread(Role::Emulator, 10, "2", 0.01, 0.0);
        machine.threads[3] = thread(Role::Vhost, 13, "2", 0.1, 0.0);
        machine.domains[0].emulator_pins = vec![fact(set("2"))];
        second(&mut machine, "db", vec![thread(Role::Vcpu(0), 21, "4", run, 0.0)]);
        machine
    };
    let found = first(strangers(0.95));
    assert_eq!((found.rule, found.severity), ("PLC-CORE", Severity::Medium));
    assert_eq!(found.title, "busy vCPUs of db and web are on sibling threads of 1 core, and 1 core is idle");
    clean(strangers(0.3), "a core gives both what they want");
    let mut full = strangers(0.95);
    full.threads.push(program("stress", 70, "3", 0.9));
    clean(full, "no core is idle");
}

#[test]
fn helpers_far_from_their_vcpus_are_told_while_there_is_room_near_them() {
    let far = |busy: bool| {
        let mut machine = used();
        machine.threads[2] = thread(Role::Emulator, 10, "4-5", 0.01, 0.0);
        machine.threads[3] = thread(Role::Vhost, 13, "4-5", 0.6, 0.0);
        machine.domains[0].emulator_pins = vec![fact(set("4-5"))];
        if busy {
            machine.threads.extend([program("stress", 70, "2", 0.9), program("stress", 71, "3", 0.9)]);
        }
        machine
    };
    let found = first(far(false));
    assert_eq!(found.rule, "PLC-HELPERNODE");
    assert_eq!(found.title, "2 helper threads of web run on node 1, its vCPUs on node 0");
    let mut full = far(true);
    refill(&mut full);
    assert!(!findings(full).iter().any(|finding| finding.rule == "PLC-HELPERNODE"), "their own node is busy");
}

#[test]
fn a_guest_that_is_shown_nodes_is_spread_on_purpose() {
    let spread = |guest_nodes: u32| {
        let mut machine = used();
        machine.threads[1] = thread(Role::Vcpu(1), 12, "5", 0.5, 0.0);
        machine.domains[0].vcpu_pins.insert(1, fact(set("5")));
        machine.domains[0].guest_nodes = guest_nodes;
        refill(&mut machine);
        findings(machine).iter().any(|finding| finding.rule == "PLC-NODE")
    };
    assert!(spread(0) && spread(1) && !spread(2));
}

/// Whatever is mixed: what is high has a victim that was measured, and each victim is told in one finding.
#[test]
fn high_needs_a_measured_victim_and_each_victim_is_told_once() {
    let mut seed = 7_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    const SETS: [&str; 8] = ["0", "1", "2", "0-1", "2-3", "0-7", "4-7", "5"];
    const WAITS: [f64; 4] = [0.0, 0.0, 0.3, 0.6];
    let (mut high, mut victims) = (0, 0);
    for _ in 0..60 {
        let mut machine = used();
        let mut any = |role: Role, tid: i32| {
            let (cpus, run) = (SETS[random(8) as usize], [0.01, 0.1, 0.3][random(3) as usize]);
            thread(role, tid, cpus, run, WAITS[random(4) as usize])
        };
        machine.threads = vec![
            any(Role::Vcpu(0), 11),
            any(Role::Vcpu(1), 12),
            any(Role::Emulator, 10),
            any(Role::Vhost, 13),
            Thread { vm: None, name: "java".into(), ..any(Role::Other, 70) },
            Thread { vm: None, name: "pmd-c01".into(), ..any(Role::Pmd, 90) },
        ];
        let other = vec![any(Role::Vcpu(0), 21), any(Role::Vcpu(1), 22)];
        second(&mut machine, "db", other);
        for thread in &mut machine.threads {
            thread.last_cpu = thread.affinity.as_ref().and_then(|set| set.value.first()).map(fact);
        }
        if random(3) == 0 {
            machine.topology.isolated = Some(set("0-3"));
        }
        if random(3) == 0 {
            machine.cpu_use.get_mut(&0).unwrap().softirq = 0.4;
        }
        refill(&mut machine);
        let starved = |thread: &&Thread| {
            let share = |fact: &Option<host::machine::Fact<f64>>| fact.as_ref().unwrap().value;
            let (run, wait) = (share(&thread.run_share), share(&thread.wait_share));
            (thread.vm.is_some() || thread.role == Role::Pmd) && run + wait > 0.05 && wait > 0.2 * (run + wait)
        };
        let starved: Vec<i32> = machine.threads.iter().filter(starved).filter_map(|thread| thread.tid).collect();
        let found = findings(machine.clone());
        for tid in &starved {
            let told = |what: &str| {
                what.split_once(" ran ")
                    .is_some_and(|(who, ran)| who.ends_with(&format!("({tid})")) && ran.contains("of the span"))
            };
            let by = found.iter().filter(|finding| finding.evidence.iter().any(|seen| told(&seen.what)));
            let by: Vec<&str> = by.map(|finding| finding.rule).collect();
            assert_eq!(by.len(), 1, "thread {tid} is told by {by:?}: {:?}", machine.threads);
            victims += 1;
        }
        for finding in found.iter().filter(|finding| finding.severity == Severity::High) {
            assert!(
                finding.evidence.iter().any(|seen| seen.what.contains("of the span")),
                "{}: {}",
                finding.rule,
                finding.title
            );
            high += 1;
        }
        assert!(found.iter().all(|finding| finding.severity < Severity::High) == starved.is_empty(), "{starved:?}");
    }
    assert!(high > 30 && victims > 60, "{high} {victims}");
}
