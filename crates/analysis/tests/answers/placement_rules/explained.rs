//! What explains what: one cause before all its victims, and hypotheses about the CPUs that matter.

use super::culprits::{clean, evidence, first, of_vm, program, refill, second, used, waits};
use super::quiet::{fact, findings, quiet, set, thread};
use base::{Finding, Severity};
use host::Machine;
use host::machine::{CpuUse, Role};
use kvmscope_analysis::placement::hypotheses::hypotheses;
use kvmscope_analysis::placement::{Wishes, build};

/// `vms` VMs of 4 vCPUs on eight CPUs.
fn crowd(vms: i32, cpus: &str, run: f64, wait: f64) -> Machine {
    let mut machine = quiet();
    (machine.threads, machine.domains) = (Vec::new(), Vec::new());
    let cpus_of: Vec<u32> = set(cpus).iter().collect();
    for vm in 0..vms {
        let threads = (0..4).map(|vcpu| {
            let mut one = thread(Role::Vcpu(vcpu), 100 * (vm + 1) + vcpu as i32, cpus, run, wait);
            one.last_cpu = Some(fact(cpus_of[(vm as usize * 4 + vcpu as usize) % cpus_of.len()]));
            one
        });
        second(&mut machine, &format!("vm{vm}"), threads.collect());
    }
    machine
}

#[test]
fn an_overcommitted_host_is_one_finding_before_its_victims() {
    let mut full = crowd(3, "0-7", 0.64, 0.3);
    full.cpu_use.values_mut().for_each(|usage| *usage = CpuUse { busy: 0.96, idle: 0.04, ..CpuUse::default() });
    let found = findings(full);
    let weighty: Vec<&Finding> = found.iter().filter(|finding| finding.severity > Severity::Info).collect();
    assert_eq!(weighty.len(), 1, "{weighty:?}");
    assert_eq!((weighty[0].rule, weighty[0].severity), ("PLC-OVERCOMMIT", Severity::High));
    assert_eq!(weighty[0].title, "the host is overcommitted: 12 vCPUs want 11.3 CPUs; it has 8");
    assert!(evidence(weighty[0]).contains("4 more threads are starved: 4 of vm2"), "{}", evidence(weighty[0]));
    clean(crowd(3, "0-7", 0.2, 0.0), "twelve vCPUs that want little");
}

#[test]
fn of_an_overcommitted_host_nobody_shrinks_the_victims_of_a_weight_and_novas_go_elsewhere() {
    let full = || {
        let mut full = crowd(3, "0-7", 0.64, 0.3);
        full.cpu_use.values_mut().for_each(|usage| *usage = CpuUse { busy: 0.96, idle: 0.04, ..CpuUse::default() });
        full
    };
    let typed = |machine: Machine| {
        let found = findings(machine).into_iter().find(|finding| finding.rule == "PLC-OVERCOMMIT").unwrap();
        (found.fix.join("\n"), found.undo.join("\n"))
    };
    let weighed = |light: u64| {
        let mut machine = full();
        for (group, weight) in [("/machine.slice/free.slice", light), ("/machine.slice/gold.slice", 10_000)] {
            machine.weights.insert(group.into(), fact(weight));
        }
        for thread in &mut machine.threads {
            let is_gold = thread.vm.as_deref() == Some("vm2");
            let (slice, wait) = if is_gold { ("gold", 0.01) } else { ("free", 0.6) };
            thread.time_group = Some(format!("/machine.slice/{slice}.slice/{}.scope", thread.vm.as_deref().unwrap()));
            thread.wait_share = Some(fact(wait));
            thread.run_share = Some(fact(if is_gold { 0.98 } else { 0.38 }));
        }
        typed(machine).0
    };
    assert!(weighed(1).contains("after PLC-WEIGHT@/machine.slice/free.slice"), "{}", weighed(1));
    assert!(!weighed(1).contains("setvcpus"), "{}", weighed(1));
    assert!(weighed(10_000).contains("virsh setvcpus vm0 N"), "{}", weighed(10_000));
    let mut novas = full();
    for domain in &mut novas.domains {
        domain.nova = Some(host::machine::Nova { server: format!("job-{}", domain.name), flavor: None });
    }
    let (fix, undo) = typed(novas);
    assert!(fix.starts_with("openstack server migrate --live-migration job-vm0   # this or others of these"), "{fix}");
    assert!(fix.contains("cpu_allocation_ratio") && !fix.contains("resize"), "{fix}");
    assert!(undo.starts_with("openstack server migrate --live-migration --host HOST job-vm0"), "{undo}");
}

/// What the findings of a rule are the cause of.
fn explained_by(rule: &str, mut machine: Machine) -> Vec<String> {
    refill(&mut machine);
    findings(machine).into_iter().filter(|finding| finding.rule == rule).flat_map(|finding| finding.explains).collect()
}

#[test]
fn an_overcommitted_host_explains_what_else_is_found_about_those_that_starve_by_it() {
    let mut full = crowd(4, "0-7", 0.64, 0.3);
    full.cpu_use.values_mut().for_each(|usage| *usage = CpuUse { busy: 0.96, idle: 0.04, ..CpuUse::default() });
    for (vm, wait) in [(0, 0.3), (1, 0.0)] {
        full.threads.push(of_vm(&format!("vm{vm}"), thread(Role::Vhost, 900 + vm, "0-3", 0.3, wait)));
        let own = full.threads.iter_mut().filter(|thread| thread.vm == Some(format!("vm{vm}")));
        own.for_each(|thread| (thread.affinity, thread.wait_share) = (Some(fact(set("0-3"))), Some(fact(wait))));
    }
    let found = findings(full.clone());
    assert_eq!(found[0].rule, "PLC-OVERCOMMIT");
    // Two VMs float beside the two that are bound.
    let explained = ["PLC-OVERLAP@vm0", "PLC-WORKERS@vm0", "PLC-FLOAT@vm2", "PLC-FLOAT@vm3"];
    assert_eq!(found[0].explains, explained, "who does not starve is nobody's victim");
    let overlaps = found.iter().filter(|finding| finding.rule == "PLC-OVERLAP");
    let overlaps: Vec<(&str, Severity)> = overlaps.map(|one| (one.subject.as_str(), one.severity)).collect();
    assert_eq!(overlaps, [("vm0", Severity::Low), ("vm1", Severity::Info)]);
    full.cpu_use.values_mut().for_each(|usage| *usage = CpuUse { busy: 0.5, idle: 0.5, ..CpuUse::default() });
    let of_host = findings(full).into_iter().find(|finding| finding.id() == "PLC-OVERCOMMIT@host").unwrap();
    assert!(of_host.explains.is_empty(), "a host that idles keeps nobody waiting: {:?}", of_host.explains);
}

#[test]
fn a_program_explains_findings_about_vms_that_starve_by_it_alone() {
    let mut machine = used();
    waits(&mut machine);
    machine.threads[2].affinity = Some(fact(set("0")));
    machine.threads[3] = thread(Role::Vhost, 13, "0", 0.02, 0.0);
    second(&mut machine, "db", vec![thread(Role::Vcpu(0), 21, "5", 0.5, 0.45)]);
    machine.threads.extend([program("stress", 70, "0", 0.5), program("stress", 71, "5", 0.5)]);
    assert_eq!(explained_by("PLC-STARVED", machine.clone()), ["PLC-OVERLAP@web"]);
    machine.threads[1] = thread(Role::Vcpu(1), 12, "1", 0.5, 0.45);
    machine.threads.push(program("backup", 72, "1", 0.5));
    assert!(explained_by("PLC-STARVED", machine).is_empty(), "one of its threads starves by something else");
}

#[test]
fn a_full_set_of_cpus_is_overcommitted_and_a_roomy_one_is_not() {
    let found = first(crowd(2, "0-3", 0.5, 0.4));
    assert_eq!((found.rule, found.subject.as_str()), ("PLC-OVERCOMMIT", "cpus-0-3"));
    assert_eq!(found.title, "CPUs 0-3 are overcommitted: 8 vCPUs of vm0 and vm1 want 7.2 CPUs; these are 4");
    // Only half of it is busy: more is not wanted than there is.
    let found = first(crowd(1, "0-3", 0.5, 0.4));
    assert_ne!(found.rule, "PLC-OVERCOMMIT", "{}", found.title);
}

#[test]
fn one_program_that_starves_several_vms_is_one_finding() {
    let mut machine = used();
    waits(&mut machine);
    second(&mut machine, "db", vec![thread(Role::Vcpu(0), 21, "5", 0.5, 0.45)]);
    machine.threads.extend([program("stress", 70, "0", 0.5), program("stress", 71, "5", 0.5)]);
    let found = first(machine.clone());
    assert_eq!((found.rule, found.subject.as_str()), ("PLC-STARVED", "host"));
    assert!(found.title.starts_with("2 threads of 2 VMs starved, 0.90 CPUs short: "), "{}", found.title);
    assert_eq!(found.evidence[0].what.matches("stress").count(), 1);
    let moves =
        |machine: &Machine| first(machine.clone()).fix.iter().any(|line| line.starts_with("taskset -cp CPUS 7"));
    assert!(moves(&machine), "{:?}", found.fix);
    let mut measured = machine.clone();
    measured.threads.iter_mut().rev().take(2).for_each(|thread| thread.name = "kvmscope".to_owned());
    assert!(!moves(&measured), "a recorder of ours will be gone");
    machine.threads.last_mut().unwrap().name = "backup".into();
    refill(&mut machine);
    let starved = findings(machine).into_iter().filter(|finding| finding.rule == "PLC-STARVED");
    let mut subjects: Vec<String> = starved.map(|finding| finding.subject).collect();
    subjects.sort_unstable();
    assert_eq!(subjects, ["db", "web"], "two programs are two causes");
}

/// What is said so far of an explanation about the workers of the VM.
fn so_far(mut machine: Machine, id: &str) -> String {
    refill(&mut machine);
    let model = build::model(base::Level::At(0), "L0", machine, false, &Wishes::default());
    let found = hypotheses(&model).into_iter().find(|one| one.id == id);
    found.expect("workers share CPUs with vCPUs").so_far
}

#[test]
fn explanations_are_about_the_cpus_of_the_workers() {
    let crowded = |softirqs: u32, programs: &str| {
        let mut machine = used();
        machine.threads[2].affinity = Some(fact(set("0-1")));
        machine.threads[3] = thread(Role::Vhost, 13, "0-1", 0.3, 0.6);
        machine.cpu_use.get_mut(&softirqs).unwrap().softirq = 0.6;
        machine.threads.push(program("java", 70, programs, 0.6));
        machine
    };
    assert!(so_far(crowded(7, "7"), "H2").starts_with("not supported"), "CPU 7 is of no worker");
    assert!(so_far(crowded(7, "7"), "H6").starts_with("not supported"), "neither is java's");
    assert!(so_far(crowded(7, "7"), "H1").starts_with("supported"));
    assert!(so_far(crowded(1, "7"), "H2").starts_with("supported: on CPU 1"));
    let said = so_far(crowded(7, "0"), "H6");
    assert!(
        said.starts_with("supported: on CPU 0") && said.ends_with("60 % of the time, most of it java (70)"),
        "{said}"
    );
    let said = so_far(crowded(7, "0"), "H1");
    assert!(
        said.starts_with("not supported: a worker waited") && said.contains("another program, java (70), ran"),
        "{said}"
    );
}
