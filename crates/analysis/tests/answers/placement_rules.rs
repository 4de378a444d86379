//! Each rule about placement: a case that fires it, and one, a single thing away, that stays silent.

mod by_hand;
mod caches;
mod cases;
mod containers;
mod culprits;
mod devices;
mod evidence;
mod explained;
mod fixed_point;
mod host_settings;
mod left_out;
mod limits;
mod one_plan;
mod own_cpus;
mod owners;
mod programs;
mod quiet;
mod rivals;
mod steering;
mod strain;
mod typed;
mod unblamed;
mod where_memory_lies;
mod whole_host;

use host::machine::{CpuUse, Domain, Irq, Nic, NicKind, Role, Steering, domains_of};
use kvmscope_analysis::placement::rules as table;
use quiet::{commands, defined, fact, fires, quiet, rules, set, thread};

#[test]
fn threads_in_each_others_way() {
    fires("PLC-OVERLAP", |machine| {
        machine.threads[2].affinity = Some(fact(set("0-1")));
        machine.threads[3].affinity = Some(fact(set("0-1")));
    });
    fires("PLC-STARVED", |machine| machine.threads[3] = thread(Role::Vhost, 13, "2-3", 0.1, 0.5));
    fires("PLC-STACKED", |machine| machine.threads[1] = thread(Role::Vcpu(1), 12, "0", 0.5, 0.0));
    fires("PLC-WORKERS", |machine| {
        machine.threads.extend([14, 15].map(|tid| thread(Role::Vhost, tid, "2-3", 0.3, 0.0)));
    });
    fires("PLC-SMT", |machine| machine.topology.cpus.get_mut(&1).unwrap().core = 0);
    fires("PLC-OVERCOMMIT", |machine| {
        machine.threads.extend((2..12).map(|vcpu| thread(Role::Vcpu(vcpu), 20 + vcpu as i32, "4-7", 0.4, 0.5)));
    });
}

#[test]
fn commands_hold_what_is_known() {
    let mut machine = quiet();
    machine.topology.cpus.get_mut(&1).unwrap().core = 0;
    let commands = commands("PLC-SMT", machine);
    assert_eq!(
        commands,
        ["virsh edit web   # <cpu><topology sockets='1' cores='1' threads='2'/></cpu>, or pin to separate cores"]
    );
}

#[test]
fn a_vm_that_may_run_anywhere_is_no_fault_until_it_waits() {
    let mut machine = quiet();
    machine.domains[0] = Domain { name: "web".into(), vcpus: Some(2), ..Domain::default() };
    machine.threads.iter_mut().for_each(|thread| thread.affinity = Some(fact(set("0-7"))));
    assert_eq!(rules(machine.clone()), Vec::<&str>::new());
    machine.threads[3].wait_share = Some(fact(0.6));
    assert!(rules(machine).contains(&"PLC-OVERLAP"));
}

#[test]
fn waiting_that_another_rule_explains_is_told_once() {
    let mut machine = quiet();
    machine.threads[2].affinity = Some(fact(set("0-1")));
    machine.threads[3] = thread(Role::Vhost, 13, "0-1", 0.2, 0.6);
    machine.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, 0.4);
    machine.domains[0].emulator_pins = vec![fact(set("0-1"))];
    let found = rules(machine.clone());
    assert!(found.contains(&"PLC-OVERLAP") && !found.contains(&"PLC-STARVED"), "{found:?}");
    machine.threads[1] = thread(Role::Vcpu(1), 12, "5", 0.5, 0.4);
    assert!(rules(machine).contains(&"PLC-STARVED"), "nobody explains that a vCPU waits on CPU 5");
    let mut stacked = quiet();
    stacked.threads[0] = thread(Role::Vcpu(0), 11, "0", 0.5, 0.5);
    stacked.threads[1] = thread(Role::Vcpu(1), 12, "0", 0.5, 0.5);
    let found = rules(stacked);
    assert!(found.contains(&"PLC-STACKED") && !found.contains(&"PLC-STARVED"), "{found:?}");
}

#[test]
fn a_stacked_vcpu_that_sleeps_is_no_fault() {
    let mut machine = quiet();
    machine.threads[1] = thread(Role::Vcpu(1), 12, "0", 0.01, 0.0);
    assert_eq!(rules(machine), Vec::<&str>::new());
}

#[test]
fn pins_that_do_not_fit_the_machine() {
    fires("PLC-OFFLINE", |machine| machine.domains[0].emulator_pins = vec![fact(set("2-3,12"))]);
    fires("PLC-ISOL", |machine| machine.topology.isolated = Some(set("2-3")));
    fires("PLC-HOUSEKEEPING", |machine| machine.topology.isolated = Some(set("4-5")));
    let mut used = quiet();
    used.topology.isolated = Some(set("0-1"));
    assert_eq!(rules(used), Vec::<&str>::new(), "the vCPUs are on the isolated CPUs");
    fires("PLC-FLOAT", |machine| machine.threads[2].affinity = Some(fact(set("0-7"))));
    fires("PLC-LATE", |machine| machine.threads[3].affinity = Some(fact(set("4-5"))));
    let mut by_hand = quiet();
    by_hand.threads[3].affinity = Some(fact(set("2")));
    assert_eq!(rules(by_hand), Vec::<&str>::new(), "a worker that is pinned within the emulator's set keeps to it");
    fires("PLC-ESCAPE", |machine| {
        machine.threads[0].cgroup = Some("/machine.slice/web".into());
        machine.threads[3].cgroup = Some("/".into());
    });
    fires("EVD-PINS", |machine| machine.domains[0].emulator_pins.insert(0, fact(set("0"))));
}

#[test]
fn places_of_devices_and_interrupts() {
    fires("PLC-NODE", |machine| {
        machine.threads[1] = thread(Role::Vcpu(1), 12, "5", 0.5, 0.0);
    });
    fires("PLC-NIC", |machine| {
        let xml = "<interface type='direct'><source dev='eth0' mode='bridge'/><model type='virtio'/></interface>";
        machine.domains[0].add(domains_of(xml, "f", 1, "web").unwrap().remove(0));
        machine.nics.push(Nic { name: "eth0".into(), node: Some(fact(1)), kind: NicKind::Physical, ..Nic::default() });
    });
    let irq = |rate: f64| Irq {
        number: 24,
        name: "eth0".into(),
        affinity: Some(fact(set("0"))),
        per_s: [(0, rate)].into(),
        ..Irq::default()
    };
    fires("PLC-IRQ", |machine| {
        machine.irqs.push(irq(9_000.0));
        machine.cpu_use.insert(0, CpuUse { softirq: 0.3, busy: 0.5, idle: 0.2, ..CpuUse::default() });
    });
    let mut rare = quiet();
    rare.irqs.push(irq(90.0));
    assert_eq!(rules(rare), Vec::<&str>::new(), "an interrupt now and then is no fault");
    let looked_once = |cpus: &str| {
        let mut machine = quiet();
        machine.nics.push(Nic { name: "eth0".into(), ..Nic::default() });
        machine.irqs.push(Irq { affinity: Some(fact(set(cpus))), per_s: [].into(), ..irq(0.0) });
        rules(machine)
    };
    assert_eq!((looked_once("0-1"), looked_once("0-2")), (vec!["PLC-IRQ"], vec![]), "it can go elsewhere");
    fires("PLC-RPS", |machine| {
        machine.nics.push(Nic {
            name: "eth0".into(),
            rps: vec![Steering { queue: 0, cpus: fact(set("0-3")) }],
            ..Nic::default()
        })
    });
    fires("PLC-BED", |machine| machine.cpu_use.get_mut(&4).unwrap().steal = 0.06);
}

#[test]
fn definitions_of_guests() {
    let disk = |attributes: &str, bus: &str| {
        format!(
            "<devices><disk type='file' device='disk'><driver name='qemu' {attributes}/><target dev='vda' bus='{bus}'/></disk></devices>"
        )
    };
    let net = |inside: &str| {
        format!("<devices><interface type='bridge'><source bridge='br0'/>{inside}</interface></devices>")
    };
    defined(
        "PLC-UNUSED",
        "<devices><input type='mouse'/></devices>",
        "<devices><input type='tablet' bus='usb'/></devices>",
    );
    defined("PLC-CPUMODE", "", "<cpu mode='custom'/>");
    defined("PLC-NET", &net("<model type='virtio'/>"), &net("<model type='e1000'/>"));
    defined(
        "PLC-DISK",
        &disk("type='raw' cache='none' io='native' iothread='1'", "virtio"),
        &disk("type='raw' cache='none' io='native' iothread='1'", "ide"),
    );
    defined("PLC-UNSAFE", &disk("cache='none'", "virtio"), &disk("cache='unsafe'", "virtio"));
    defined(
        "PLC-IOTUNE",
        &disk("cache='none'", "virtio"),
        "<devices><disk type='file' device='disk'><target dev='vda' bus='virtio'/><iotune/></disk></devices>",
    );
    defined(
        "PLC-HUGE",
        "<memoryBacking><hugepages/></memoryBacking><devices><hostdev/></devices>",
        "<devices><hostdev/></devices>",
    );
}

#[test]
fn queues_and_topology_and_settings() {
    let one_queue =
        "<interface type='bridge'><source bridge='br0'/><model type='virtio'/><driver name='vhost'/></interface>";
    let busy = |vcpus: u32| {
        let mut machine = quiet();
        machine.domains[0].vcpus = Some(vcpus);
        machine.domains[0].add(domains_of(one_queue, "f", 1, "web").unwrap().remove(0));
        machine.threads[3] = thread(Role::Vhost, 13, "2-3", 0.9, 0.0);
        rules(machine)
    };
    assert!(busy(4).contains(&"PLC-MQ") && !busy(2).contains(&"PLC-MQ"));
    let shown = |threads: u32| {
        let mut machine = quiet();
        machine.topology.cpus.get_mut(&1).unwrap().core = 0;
        let xml = format!("<cpu mode='host-model'><topology sockets='1' cores='2' threads='{threads}'/></cpu>");
        machine.domains[0].add(domains_of(&xml, "f", 1, "web").unwrap().remove(0));
        rules(machine)
    };
    assert!(
        shown(1).contains(&"PLC-TOPO") && !shown(2).contains(&"PLC-TOPO"),
        "a conflict only where both rules speak"
    );
    fires("PLC-TUNED", |machine| {
        machine.settings.insert("proc/sys/vm/swappiness".into(), fact("60".into()));
    });
    fires("PLC-VEPA", |machine| {
        let xml = "<interface type='direct'><source dev='eth0' mode='vepa'/></interface>";
        machine.domains[0].add(domains_of(xml, "f", 1, "web").unwrap().remove(0));
        let mut other = domains_of(xml, "g", 1, "db").unwrap().remove(0);
        other.name = "db".into();
        machine.domains.push(other);
    });
}

#[test]
fn each_rule_says_what_being_wrong_about_it_costs() {
    for rule in table::rules() {
        let (_, wrong) = rule.why.split_once(" Caveat: ").unwrap_or_else(|| panic!("{}: {}", rule.id, rule.why));
        assert!(wrong.ends_with('.') && wrong.len() > 20, "{}: {wrong}", rule.id);
    }
}
