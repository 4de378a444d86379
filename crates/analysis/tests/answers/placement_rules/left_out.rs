//! A rule fires on facts, never on their absence: a host on which nothing is wrong stays quiet whichever fact nobody told.

use super::quiet::{fact, quiet, rules, set};
use host::Machine;
use host::machine::{
    Bridge, Cgroup, CpuUse, Disk, Domain, GuestTopology, Interface, Irq, Nic, NicKind, Quota, Throttled,
};
use host::processor::Vendor;

/// The quiet machine with a whole definition, a card, interrupts, groups, limits and settings that are all as they should be.
fn told() -> Machine {
    let mut machine = quiet();
    machine.vendor = Some(fact(Vendor::Amd));
    machine.span_ns = Some(2_000_000_000);
    machine.lists_processes = true;
    machine.vm_memory.insert("web".into(), fact([(0, 4 << 30)].into()));
    let domain = &mut machine.domains[0];
    *domain = Domain {
        whole: Some("web.xml:1".into()),
        cpu_mode: Some(fact("host-passthrough".into())),
        topology: Some(fact(GuestTopology { sockets: 1, dies: 1, cores: 2, threads: 1 })),
        features: [("topoext".to_owned(), fact(true))].into(),
        memory_bytes: Some(4 << 30),
        current_memory_bytes: Some(4 << 30),
        memory_nodes: Some((set("0"), "strict".into())),
        iothreads: 1,
        iothread_pins: [(1, fact(set("2-3")))].into(),
        interfaces: vec![Interface {
            name: "net0".into(),
            kind: "bridge".into(),
            source: Some("eth0".into()),
            model: Some("virtio".into()),
            driver: Some("vhost".into()),
            queues: Some(1),
            ..Interface::default()
        }],
        disks: vec![Disk {
            target: "vda".into(),
            bus: Some("virtio".into()),
            cache: Some("none".into()),
            io: Some("native".into()),
            iothread: Some(1),
            format: Some("qcow2".into()),
            ..Disk::default()
        }],
        ..std::mem::take(domain)
    };
    machine.nics.push(Nic {
        name: "eth0".into(),
        kind: NicKind::Physical,
        node: Some(fact(0)),
        irqs: vec![24],
        channels: [("combined".into(), (fact(4), 4))].into(),
        ..Nic::default()
    });
    machine.irqs.push(Irq {
        number: 24,
        name: "eth0-rx-0".into(),
        affinity: Some(fact(set("3"))),
        effective: Some(set("3")),
        per_s: [(3, 200.0)].into(),
        counts: [(3, 1_000)].into(),
        node: Some(0),
    });
    let group = Cgroup { cpus: None, effective: Some(fact(set("0-7"))), memory_nodes: None, partition: None };
    machine.cgroups.insert("/machine.slice".into(), group);
    let since_start = Some(Throttled { periods: 1_000, throttled: 0, ns: 0, cpus: 0.0 });
    machine.quotas.insert("/machine.slice".into(), Quota { cpus: fact(8.0), since_start, measured: None });
    for thread in &mut machine.threads {
        thread.cgroup = Some("/machine.slice/web.scope".into());
        thread.time_group = Some("/machine.slice/web.scope".into());
        thread.policy = Some(0);
    }
    for (path, value) in [
        ("proc/sys/vm/swappiness", "10"),
        ("proc/sys/net/core/somaxconn", "4096"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance"),
        ("sys/kernel/mm/ksm/run", "0"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("proc/irq/default_smp_affinity", "ff"),
    ] {
        machine.settings.insert(path.into(), fact(value.into()));
    }
    machine.switch.bridges.push(Bridge { name: "br0".into(), ..Bridge::default() });
    machine
}

type Forget = (&'static str, fn(&mut Machine));

/// Every fact that nobody may have told, alone.
const FORGET: &[Forget] = &[
    ("the vendor", |machine| machine.vendor = None),
    ("all CPUs", |machine| (machine.topology.cpus, machine.topology.online) = Default::default()),
    ("cores", |machine| machine.topology.cores_unknown = true),
    ("packages", |machine| machine.topology.cpus.values_mut().for_each(|cpu| cpu.package = None)),
    ("nodes of CPUs", |machine| machine.topology.cpus.values_mut().for_each(|cpu| cpu.node = None)),
    ("nodes", |machine| machine.nodes.clear()),
    ("sizes of nodes", |machine| machine.nodes.values_mut().for_each(|node| node.total_bytes = None)),
    ("distances", |machine| machine.nodes.values_mut().for_each(|node| node.distances.clear())),
    ("processes", |machine| machine.lists_processes = false),
    ("use of CPUs", |machine| machine.cpu_use.clear()),
    ("use of some CPUs", |machine| machine.cpu_use.retain(|cpu, _: &mut CpuUse| *cpu > 2)),
    ("the span", |machine| machine.span_ns = None),
    ("shares", |machine| machine.threads.iter_mut().for_each(|one| (one.run_share, one.wait_share) = (None, None))),
    ("waiting", |machine| machine.threads.iter_mut().for_each(|thread| thread.wait_share = None)),
    ("masks in force", |machine| machine.threads.iter_mut().for_each(|thread| thread.affinity = None)),
    ("last CPUs", |machine| machine.threads.iter_mut().for_each(|thread| thread.last_cpu = None)),
    ("ids of threads", |machine| machine.threads.iter_mut().for_each(|thread| thread.tid = None)),
    ("policies", |machine| machine.threads.iter_mut().for_each(|thread| thread.policy = None)),
    ("groups of threads", |machine| {
        machine.threads.iter_mut().for_each(|one| (one.cgroup, one.time_group) = (None, None))
    }),
    ("sets of groups", |machine| machine.cgroups.clear()),
    ("quotas", |machine| machine.quotas.clear()),
    ("all threads", |machine| machine.threads.clear()),
    ("the definition", |machine| machine.domains[0].whole = None),
    ("how many vCPUs", |machine| machine.domains[0].vcpus = None),
    ("pins of vCPUs", |machine| machine.domains[0].vcpu_pins.clear()),
    ("the emulator's pin", |machine| machine.domains[0].emulator_pins.clear()),
    ("pins of iothreads", |machine| machine.domains[0].iothread_pins.clear()),
    ("the topology", |machine| machine.domains[0].topology = None),
    ("memory", |machine| (machine.domains[0].memory_bytes, machine.domains[0].current_memory_bytes) = (None, None)),
    ("numatune", |machine| machine.domains[0].memory_nodes = None),
    ("where memory lies", |machine| machine.vm_memory.clear()),
    ("interfaces", |machine| machine.domains[0].interfaces.clear()),
    ("queues", |machine| machine.domains[0].interfaces[0].queues = None),
    ("drivers", |machine| machine.domains[0].interfaces[0].driver = None),
    ("models", |machine| machine.domains[0].interfaces[0].model = None),
    ("disks", |machine| machine.domains[0].disks.clear()),
    ("formats", |machine| machine.domains[0].disks[0].format = None),
    ("cards", |machine| machine.nics.clear()),
    ("nodes of cards", |machine| machine.nics[0].node = None),
    ("channels", |machine| machine.nics[0].channels.clear()),
    ("interrupts", |machine| machine.irqs.clear()),
    ("rates of interrupts", |machine| machine.irqs[0].per_s.clear()),
    ("masks of interrupts", |machine| machine.irqs[0].affinity = None),
    ("settings", |machine| machine.settings.clear()),
    ("the switch", |machine| machine.switch = Default::default()),
];

#[test]
fn no_rule_fires_on_what_nobody_told() {
    assert_eq!(rules(told()), Vec::<&str>::new(), "nothing is wrong");
    for (what, forget) in FORGET {
        let mut machine = told();
        forget(&mut machine);
        assert_eq!(rules(machine), Vec::<&str>::new(), "nobody told {what}");
    }
}
