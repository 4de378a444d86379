//! Causes that stood behind others or were not named at all, and waiting whose part says little of its harm.

use super::culprits::{first, program, refill, second, used, waits};
use super::quiet::{defined, fact, findings, found, quiet, set, thread};
use base::{Finding, Severity};
use host::Machine;
use host::machine::{Cgroup, CpuUse, Gauge, GaugeKind, Role};

fn setting(machine: &mut Machine, path: &str, value: &str) {
    machine.settings.insert(path.into(), fact(value.into()));
}

fn gauge(kind: GaugeKind, subject: &str, value: f64) -> Gauge {
    Gauge { kind, subject: subject.into(), value, place: "proc/x".into() }
}

#[test]
fn who_is_bound_there_is_named_before_who_may_be_anywhere() {
    let of = |name: &str, cpus: &str| {
        let mut machine = used();
        waits(&mut machine);
        let mut floating = thread(Role::Vcpu(0), 21, "0-7", 0.5, 0.0);
        floating.last_cpu = Some(fact(0));
        second(&mut machine, "db", vec![floating]);
        machine.threads.push(program(name, 70, cpus, 0.4));
        first(machine)
    };
    let found = of("irq/9-acpi", "0");
    assert!(found.title.contains("irq/9-acpi (70), which handles an interrupt, ran on CPU 0"), "{}", found.title);
    assert!(of("kworker/0:1", "0").title.contains("a worker of the kernel, kworker/0:1 (70), ran"));
    assert!(of("make", "0-7").title.contains("db"), "who may be elsewhere as well is no more certain");
}

#[test]
fn a_program_goes_where_helpers_are_as_long_as_they_hardly_run() {
    let of = |helpers: f64| {
        let mut machine = used();
        waits(&mut machine);
        machine.threads[1] = thread(Role::Vcpu(1), 12, "1", 0.97, 0.0);
        machine.threads[3] = thread(Role::Vhost, 13, "3", helpers, 0.0);
        let others = (0..4).map(|vcpu| thread(Role::Vcpu(vcpu), 21 + vcpu as i32, &(vcpu + 4).to_string(), 0.97, 0.0));
        second(&mut machine, "db", others.collect());
        machine.threads.push(program("pigz", 70, "0-7", 0.5));
        machine.threads.last_mut().unwrap().last_cpu = Some(fact(0));
        first(machine).fix
    };
    let onto_theirs = |fix: &[String]| {
        fix.iter().any(|line| line.starts_with("taskset -cp 3 70") || line.starts_with("taskset -cp 2-3 70"))
    };
    assert!(onto_theirs(&of(0.01)), "{:?}", of(0.01));
    assert!(!onto_theirs(&of(0.6)), "{:?}", of(0.6));
}

#[test]
fn little_waiting_of_many_counts_and_much_of_hardly_anything_does_not() {
    let of = |wait: f64| {
        let mut machine = used();
        machine.threads = (0..6)
            .map(|vcpu| thread(Role::Vcpu(vcpu), 11 + vcpu as i32, &vcpu.to_string(), 1.0 - wait, wait))
            .collect();
        machine.threads.extend((0..6).map(|cpu| program("make", 70 + cpu, &cpu.to_string(), wait)));
        machine.domains[0].vcpus = Some(6);
        refill(&mut machine);
        findings(machine).into_iter().map(|finding| finding.severity).max()
    };
    assert_eq!((of(0.19), of(0.04).filter(|severity| *severity > Severity::Info)), (Some(Severity::High), None));
    let manager = |run: f64, wait: f64| {
        let mut machine = used();
        machine.threads[2] = thread(Role::Emulator, 10, "2", run, wait);
        machine.threads.push(program("make", 70, "2", 0.8));
        refill(&mut machine);
        found("PLC-STARVED", machine).map(|finding| finding.severity)
    };
    assert_eq!((manager(0.02, 0.04), manager(0.2, 0.4)), (Some(Severity::Low), Some(Severity::High)));
}

#[test]
fn cpus_that_are_off_are_named_where_threads_wait_for_some() {
    let of = |wait: f64, present: &str, booted: &str| {
        let mut machine = used();
        machine.threads = (0..10).map(|vcpu| thread(Role::Vcpu(vcpu), 11 + vcpu as i32, "0-7", 0.78, wait)).collect();
        machine.domains[0].vcpus = Some(10);
        machine.domains[0].vcpu_pins.clear();
        machine.cpu_use.values_mut().for_each(|usage| *usage = CpuUse { busy: 1.0, ..CpuUse::default() });
        setting(&mut machine, "sys/devices/system/cpu/present", present);
        setting(&mut machine, "proc/cmdline", booted);
        findings(machine).into_iter().find(|finding| finding.id() == "PLC-OFFLINE@host")
    };
    let off = of(0.22, "0-11", "ro maxcpus=8").expect("CPUs are off");
    assert_eq!(
        (off.severity, off.title.as_str()),
        (Severity::High, "CPUs 8-11 are offline: 10 threads are 2.20 CPUs short")
    );
    assert!(
        off.fix[0].starts_with("chcpu -e 8-11") && off.fix[1].contains("--remove-args=\"maxcpus=8\""),
        "{:?}",
        off.fix
    );
    assert_eq!((off.undo.len(), off.undo[0].as_str()), (2, "chcpu -d 8-11"));
    assert_eq!(of(0.22, "0-7", "nr_cpus=8").map(|found| found.severity), Some(Severity::Medium));
    assert!(of(0.01, "0-11", "").is_none() && of(0.22, "0-7", "nr_cpus=64").is_none());
}

#[test]
fn memory_and_disks_that_tasks_wait_for_are_told_with_what_sets_or_holds_them() {
    let of = |stalls: f64, kept: &str| -> Option<Finding> {
        let mut machine = used();
        machine.gauges = vec![gauge(GaugeKind::ReclaimStalls, "", stalls), gauge(GaugeKind::MemoryTotal, "", 64e9)];
        setting(&mut machine, "proc/sys/vm/min_free_kbytes", kept);
        setting(&mut machine, "proc/sys/vm/watermark_scale_factor", "10");
        found("PLC-PRESSURE", machine)
    };
    assert_eq!(of(400.0, "67584").unwrap().fix[0], "echo 200 > /proc/sys/vm/watermark_scale_factor");
    let kept = of(400.0, "8000000").unwrap();
    assert_eq!(
        (kept.fix[0].as_str(), kept.undo[0].as_str()),
        ("echo 262144 > /proc/sys/vm/min_free_kbytes", "echo 8000000 > /proc/sys/vm/min_free_kbytes")
    );
    assert!(of(99.0, "8000000").is_none());
    let disks = |kind, subject: &str, value: f64, busy: f64| {
        let mut machine = used();
        machine.gauges = vec![gauge(kind, subject, value), gauge(GaugeKind::DiskBusy, "sdb", busy)];
        findings(machine).first().map_or(String::new(), |finding| finding.title.clone())
    };
    assert!(disks(GaugeKind::DiskWait, "", 0.3, 0.99).ends_with("sdb is busy 99.0 % of the time"));
    assert!(disks(GaugeKind::PressureSome, "io, 10 s", 0.3, 0.99).ends_with("sdb is busy 99.0 % of the time"));
    assert!(!disks(GaugeKind::PressureSome, "io, 10 s", 0.3, 0.1).contains("sdb"));
    assert_eq!(disks(GaugeKind::DiskWait, "", 0.1, 0.99), "");
}

#[test]
fn turbo_that_is_off_is_told_of_busy_cpus() {
    let of = |busy: f64, boost: &str| {
        let mut machine = quiet();
        machine.cpu_use.insert(0, CpuUse { busy, idle: 1.0 - busy, ..CpuUse::default() });
        setting(&mut machine, "sys/devices/system/cpu/cpufreq/boost", boost);
        found("PLC-TUNED", machine)
    };
    let off = of(0.95, "0").expect("PLC-TUNED");
    assert_eq!((off.severity, off.fix[0].as_str()), (Severity::Low, "echo 1 > /sys/devices/system/cpu/cpufreq/boost"));
    assert!(of(0.95, "1").is_none() && of(0.5, "0").is_none());
}

#[test]
fn a_guest_that_is_not_shown_kvm() {
    let hidden = |state: &str| format!("<features><kvm><hidden state='{state}'/></kvm></features>");
    defined("PLC-CLOCKS", &hidden("off"), &hidden("on"));
}

#[test]
fn an_invalid_partition_gets_what_its_reason_asks_for() {
    let of = |why: &str| {
        let mut machine = used();
        machine.threads.iter_mut().for_each(|thread| thread.cgroup = Some("/machine.slice/rt.scope".into()));
        let (effective, partition) = (Some(fact(set("0-7"))), Some(format!("isolated invalid ({why})")));
        let group = Cgroup { cpus: None, effective, memory_nodes: None, partition };
        machine.cgroups.insert("/machine.slice/rt.scope".into(), group);
        found("PLC-SLICE", machine).expect("it is invalid").fix[0].clone()
    };
    assert!(of("Parent is not a partition root").contains("PARENT of rt.scope has to be a partition"));
    assert!(of("No cpu available due to hotplug").starts_with("chcpu -e CPUS"));
    assert!(of("").starts_with("grep . /sys/fs/cgroup"));
}
