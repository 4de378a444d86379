//! Settings of the host by tuned's profiles, and rules that contradict each other.

use super::quiet::{fact, fires, quiet, rules, set, thread};
use host::Machine;
use host::machine::{Domain, Role, domains_of};

fn setting(machine: &mut Machine, path: &str, value: &str) {
    machine.settings.insert(path.into(), fact(value.into()));
}

fn isolated(machine: &mut Machine) {
    machine.topology.isolated = Some(set("0"));
}

#[test]
fn a_profile_is_asked_where_its_purpose_is_seen() {
    let mut machine = quiet();
    setting(&mut machine, "proc/sys/kernel/nmi_watchdog", "1");
    setting(&mut machine, "proc/sys/kernel/sched_rt_runtime_us", "950000");
    setting(&mut machine, "sys/kernel/mm/ksm/run", "1");
    assert_eq!(rules(machine.clone()), Vec::<&str>::new(), "neither isolated CPUs nor real-time vCPUs");
    isolated(&mut machine);
    assert_eq!(rules(machine.clone()), ["PLC-PARTITION", "PLC-PARTITION"]);
    machine.threads[0].policy = Some(1);
    let found = rules(machine);
    let count = |rule: &str| found.iter().filter(|other| **other == rule).count();
    assert_eq!((count("PLC-PARTITION"), count("PLC-REALTIME")), (1, 2), "of two wishes for KSM the stronger counts");
}

#[test]
fn kernel_work_and_ticks_on_isolated_cpus() {
    fires("PLC-PARTITION", |machine| {
        isolated(machine);
        setting(machine, "sys/devices/virtual/workqueue/cpumask", "ff");
    });
    fires("PLC-PARTITION", |machine| {
        isolated(machine);
        machine.topology.nohz_full = Some(set("1"));
    });
    let mut kept = quiet();
    isolated(&mut kept);
    kept.topology.nohz_full = Some(set("0"));
    setting(&mut kept, "sys/devices/virtual/workqueue/cpumask", "fe");
    assert_eq!(rules(kept), Vec::<&str>::new());
}

#[test]
fn huge_pages_by_themselves_are_disputed_where_guests_live_on_them() {
    let of = |backing: &str| {
        let mut machine = quiet();
        isolated(&mut machine);
        setting(&mut machine, "sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never");
        let xml = format!("<domain><name>web</name><cpu mode='host-model'/>{backing}</domain>");
        machine.domains[0].add(domains_of(&xml, "web.xml", 1, "").unwrap().remove(0));
        rules(machine)
    };
    assert_eq!(of(""), ["PLC-THP"], "the conflict, and neither side alone");
    assert_eq!(of("<memoryBacking><hugepages/></memoryBacking>"), ["PLC-PARTITION"]);
}

#[test]
fn balancing_is_disputed_where_some_float_and_some_are_pinned() {
    let of = |floating: bool| {
        let mut machine = quiet();
        isolated(&mut machine);
        setting(&mut machine, "proc/sys/kernel/numa_balancing", "1");
        let mut other = thread(Role::Vcpu(0), 31, if floating { "0-7" } else { "5" }, 0.1, 0.0);
        other.vm = Some("db".into());
        machine.threads.push(other);
        machine.domains.push(Domain { name: "db".into(), vcpus: Some(1), ..Domain::default() });
        rules(machine)
    };
    let (floating, pinned) = (of(true), of(false));
    assert!(floating.contains(&"PLC-BALANCE") && !floating.contains(&"PLC-PARTITION"), "{floating:?}");
    assert!(pinned.contains(&"PLC-PARTITION") && !pinned.contains(&"PLC-BALANCE"), "{pinned:?}");
}

#[test]
fn more_queues_are_disputed_where_no_cpu_is_left() {
    let of = |cpus: &str| {
        let mut machine = quiet();
        machine.domains[0].vcpus = Some(4);
        let xml =
            "<interface type='bridge'><source bridge='br0'/><model type='virtio'/><driver name='vhost'/></interface>";
        machine.domains[0].add(domains_of(xml, "f", 1, "web").unwrap().remove(0));
        machine.threads[3] = thread(Role::Vhost, 13, cpus, 0.9, 0.0);
        rules(machine)
    };
    let (free, full) = (of("2-3"), of("0-1"));
    assert!(free.contains(&"PLC-MQ") && !free.contains(&"PLC-QUEUES"), "{free:?}");
    assert!(full.contains(&"PLC-QUEUES") && !full.contains(&"PLC-MQ"), "{full:?}");
}

#[test]
fn a_disk_of_the_host_that_turns() {
    let of = |turns: &str| {
        let mut machine = quiet();
        setting(&mut machine, "sys/block/sda/queue/rotational", turns);
        let xml = "<disk type='file' device='disk'><target dev='vda' bus='virtio'/></disk>";
        machine.domains[0].add(domains_of(xml, "f", 1, "web").unwrap().remove(0));
        rules(machine)
    };
    assert!(of("1").contains(&"PLC-SPINNING") && !of("0").contains(&"PLC-SPINNING"));
}
