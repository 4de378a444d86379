//! Rules about memory, cards, polling threads and channels.

use super::quiet::{defined, fact, fires, quiet, rules, set, thread};
use host::Machine;
use host::machine::{
    Bridge, Cgroup, Channel, CpuUse, Irq, Nic, NicKind, Pmd, PmdQueue, Role, Steering, SwitchPort, domains_of,
};

/// Gives VM `web` a card.
fn with_card(machine: &mut Machine, nic: Nic) {
    let xml = "<interface type='direct'><source dev='eth0' mode='bridge'/><model type='virtio'/>\
               <driver name='vhost' queues='2'/></interface>";
    machine.domains[0].add(domains_of(xml, "f", 1, "web").unwrap().remove(0));
    machine.nics.push(Nic { name: "eth0".into(), kind: NicKind::Physical, ..nic });
}

/// The rule fires with this card and stays silent with the other.
fn card(rule: &str, good: Nic, bad: Nic, change: impl Fn(&mut Machine)) {
    let of = |nic: Nic| {
        let mut machine = quiet();
        with_card(&mut machine, nic);
        change(&mut machine);
        rules(machine)
    };
    assert!(!of(good).contains(&rule), "{rule} fires without a cause");
    let found = of(bad);
    assert!(found.contains(&rule), "{rule} is not among {found:?}");
}

#[test]
fn memory_away_from_its_vcpus() {
    let of = |here: u64, there: u64| {
        let mut machine = quiet();
        machine.vm_memory.insert("web".into(), fact([(0, here), (1, there)].into()));
        rules(machine)
    };
    assert_eq!(of(95, 5), Vec::<&str>::new());
    assert_eq!(of(80, 20), ["PLC-MEMORY"]);
}

#[test]
fn a_cgroup_that_cuts_a_pin() {
    let of = |cpus: &str| {
        let mut machine = quiet();
        machine.threads[2].cgroup = Some("/machine.slice/web/emulator".into());
        let group = Cgroup { effective: Some(fact(set(cpus))), ..Cgroup::default() };
        machine.cgroups.insert("/machine.slice/web".into(), group);
        rules(machine)
    };
    assert_eq!(of("0-5"), Vec::<&str>::new());
    assert_eq!(of("0-2"), ["PLC-CPUSET"], "the emulator is pinned to 2-3");
}

/// A polling thread on a CPU, with a queue of a card on node 0.
fn polling(machine: &mut Machine, cpu: u32, usage: f64) {
    let mut pmd = thread(Role::Pmd, 90, &cpu.to_string(), 1.0, 0.0);
    (pmd.vm, pmd.name) = (None, format!("pmd-c{cpu:02}"));
    machine.threads.push(pmd);
    let port = SwitchPort { name: "dpdk0".into(), node: Some(fact(0)), ..SwitchPort::default() };
    machine.switch.bridges.push(Bridge { name: "br0".into(), user_space: true, ports: vec![port] });
    let queues = vec![PmdQueue { port: "dpdk0".into(), queue: 0, enabled: true, usage: Some(usage) }];
    machine.switch.pmds.push(Pmd { cpu, queues, place: "test".into(), ..Pmd::default() });
}

#[test]
fn polling_threads_need_cores_of_their_own() {
    let mut apart = quiet();
    polling(&mut apart, 3, 0.5);
    apart.threads[2].affinity = Some(fact(set("2")));
    apart.threads[3].affinity = Some(fact(set("2")));
    apart.domains[0].emulator_pins = vec![fact(set("2"))];
    assert_eq!(rules(apart.clone()), Vec::<&str>::new());
    fires("PLC-PMD", |machine| polling(machine, 1, 0.5));
    apart.topology.cpus.get_mut(&3).unwrap().core = 1;
    assert!(rules(apart).contains(&"PLC-PMD"), "the sibling counts too");
}

#[test]
fn polling_across_nodes_counts_for_queues_that_carry_something() {
    fires("PLC-PMDNODE", |machine| polling(machine, 5, 0.5));
    let mut idle = quiet();
    polling(&mut idle, 5, 0.0);
    assert!(!rules(idle).contains(&"PLC-PMDNODE"));
}

#[test]
fn a_full_polling_thread_beside_one_with_room() {
    let queue = |queue: u32, usage: f64| PmdQueue { port: "dpdk0".into(), queue, enabled: true, usage: Some(usage) };
    let of = |first: f64, second: f64| {
        let mut machine = quiet();
        machine.switch.pmds = vec![
            Pmd { cpu: 2, queues: vec![queue(0, 0.4), queue(1, first)], ..Pmd::default() },
            Pmd { cpu: 3, queues: vec![queue(2, second)], ..Pmd::default() },
        ];
        rules(machine)
    };
    assert!(of(0.58, 0.1).contains(&"PLC-PMDLOAD"));
    assert!(!of(0.3, 0.1).contains(&"PLC-PMDLOAD") && !of(0.58, 0.9).contains(&"PLC-PMDLOAD"));
}

#[test]
fn a_mask_that_does_not_fit_the_list_is_about_the_evidence() {
    let of = |mask: &str| {
        let mut machine = quiet();
        machine.switch.pmds = vec![Pmd { cpu: 6, ..Pmd::default() }];
        machine.switch.pmd_mask = Some(fact(set(mask)));
        rules(machine)
    };
    assert_eq!((of("6"), of("6-7")), (vec![], vec!["EVD-PMD"]));
}

#[test]
fn devices_that_were_given_to_a_vm_have_nodes() {
    let of = |node: u32| {
        let mut machine = quiet();
        let xml = "<hostdev mode='subsystem' type='pci'><source>\
                   <address domain='0x0000' bus='0x04' slot='0x10' function='0x1'/></source></hostdev>";
        machine.domains[0].add(domains_of(xml, "f", 1, "web").unwrap().remove(0));
        machine.pci_nodes.insert("0000:04:10.1".into(), fact(node));
        rules(machine)
    };
    assert!(of(1).contains(&"PLC-NIC") && !of(0).contains(&"PLC-NIC"));
}

#[test]
fn queues_of_cards() {
    let tied = |cpus: &str| Nic { xps: vec![Steering { queue: 0, cpus: fact(set(cpus)) }], ..Nic::default() };
    card("PLC-XPS", tied("0-3"), tied("0-1"), |_| {});
    let gro = |on: bool| Nic { offloads: [("generic-receive-offload".into(), fact(on))].into(), ..Nic::default() };
    card("PLC-OFFLOAD", gro(true), gro(false), |_| {});
    let often = |machine: &mut Machine| {
        machine.irqs.push(Irq { number: 24, name: "eth0-0".into(), per_s: [(4, 30_000.0)].into(), ..Irq::default() });
        machine.cpu_use.insert(4, CpuUse { softirq: 0.7, idle: 0.3, ..CpuUse::default() });
    };
    let waits = |us: &str| Nic { coalescing: [("rx-usecs".into(), fact(us.into()))].into(), ..Nic::default() };
    card("PLC-COALESCE", waits("50"), waits("0"), often);
    let queues = |now: u32| Nic { channels: [("combined".into(), (fact(now), 4))].into(), ..Nic::default() };
    card("PLC-RSS", queues(4), queues(1), often);
}

#[test]
fn one_worker_carries_everything() {
    let of = |second: f64| {
        let mut machine = quiet();
        with_card(&mut machine, Nic::default());
        machine.threads[3] = thread(Role::Vhost, 13, "2-3", 0.9, 0.0);
        machine.threads.push(thread(Role::Vhost, 14, "2-3", second, 0.0));
        rules(machine)
    };
    assert!(of(0.001).contains(&"PLC-ONEQUEUE") && !of(0.4).contains(&"PLC-ONEQUEUE"));
}

#[test]
fn channels_of_hyper_v() {
    let of = |second: u32| {
        let mut machine = quiet();
        machine.channels = [(14, 0), (15, second)]
            .map(|(number, cpu)| Channel { device: "a-b".into(), number, cpu: Some(fact(cpu)), ..Channel::default() })
            .into();
        rules(machine)
    };
    assert!(of(0).contains(&"PLC-VMBUS") && !of(1).contains(&"PLC-VMBUS"));
}

#[test]
fn siblings_that_are_none() {
    let shown =
        |threads: u32| format!("<cpu mode='host-model'><topology sockets='1' cores='1' threads='{threads}'/></cpu>");
    defined("PLC-FALSESMT", &shown(1), &shown(2));
}
