//! What cards hand to CPUs, and queues to polling threads: a command that is judged and typed, and ones that must not be.

use super::quiet::{fact, finding as found, quiet, set, thread};
use base::Finding;
use host::machine::{Bridge, CpuUse, Irq, Nic, NicKind, Pmd, PmdQueue, Role, Steering, SwitchPort, domains_of};

/// What a finding types: no remarks, and no commands that only look.
fn typed(finding: &Finding) -> Vec<&str> {
    let looks = |line: &str| {
        ["#", "cat ", "grep ", "kvmscope ", "ethtool -l ", "ovs-appctl "].iter().any(|word| line.starts_with(word))
    };
    finding.fix.iter().map(String::as_str).filter(|line| !looks(line)).collect()
}

fn busy(busy: f64, softirq: f64) -> CpuUse {
    CpuUse { busy, softirq, idle: 1.0 - busy - softirq, ..CpuUse::default() }
}

#[test]
fn received_packets_are_steered_away_only_to_cpus_with_room() {
    let steered = |cpus: &str, rest: Option<CpuUse>| {
        let mut machine = quiet();
        machine.cpu_use.insert(0, busy(0.5, 0.3));
        for cpu in [2, 3] {
            machine.cpu_use.remove(&cpu);
            machine.cpu_use.extend(rest.map(|rest| (cpu, rest)));
        }
        if let Some(full) = rest.filter(|rest| rest.busy > 0.9) {
            machine.cpu_use.extend((4..8).map(|cpu| (cpu, full)));
        }
        let rps = vec![Steering { queue: 0, cpus: fact(set(cpus)) }];
        machine.nics.push(Nic { name: "eth0".into(), rps, ..Nic::default() });
        found("PLC-RPS", machine)
    };
    let room = steered("0-3", Some(busy(0.1, 0.0)));
    assert_eq!(typed(&room), ["echo 0c > /sys/class/net/eth0/queues/rx-0/rps_cpus"]);
    assert_eq!(room.undo, ["echo 0f > /sys/class/net/eth0/queues/rx-0/rps_cpus"]);
    let others = steered("0-1", Some(busy(0.1, 0.0)));
    assert_eq!(typed(&others), ["echo 0c > /sys/class/net/eth0/queues/rx-0/rps_cpus   # CPUs 2-3, which are idle"]);
    assert_eq!(others.undo, ["echo 03 > /sys/class/net/eth0/queues/rx-0/rps_cpus"]);
    for (finding, why) in [
        (steered("0-3", Some(busy(0.95, 0.0))), "too busy: CPU 0: 50.0 % busy"),
        (steered("0-3", None), "how busy CPUs 2-3 are was not measured"),
        (steered("0-1", Some(busy(0.95, 0.0))), "without them no CPU is left"),
    ] {
        assert_eq!((typed(&finding).len(), finding.undo.len()), (0, 0), "{:?}", finding.fix);
        assert!(
            finding.fix[0].starts_with("# no command for queue 0: ") && finding.fix[0].contains(why),
            "{:?}",
            finding.fix
        );
    }
}

/// A card of VM `web` with one of four queues, whose softirqs fill CPU 4; interrupts of further queues may come to `default`.
fn one_queue(default: Option<&str>, room: f64) -> Finding {
    let mut machine = quiet();
    let xml = "<interface type='direct'><source dev='eth0' mode='bridge'/><model type='virtio'/></interface>";
    machine.domains[0].add(domains_of(xml, "f", 1, "web").unwrap().remove(0));
    let channels = [("combined".into(), (fact(1), 4))].into();
    machine.nics.push(Nic { name: "eth0".into(), kind: NicKind::Physical, channels, ..Nic::default() });
    machine.irqs.push(Irq { number: 24, name: "eth0-0".into(), per_s: [(4, 30_000.0)].into(), ..Irq::default() });
    machine.cpu_use.insert(4, busy(0.0, 0.7));
    machine.cpu_use.extend([5, 6, 7].map(|cpu| (cpu, busy(1.0 - room, 0.0))));
    machine.settings.extend(default.map(|mask| ("proc/irq/default_smp_affinity".to_owned(), fact(mask.to_owned()))));
    found("PLC-RSS", machine)
}

#[test]
fn more_queues_are_typed_where_their_interrupts_come_to_free_cpus() {
    let free = one_queue(Some("e0"), 0.9);
    assert_eq!(typed(&free), ["ethtool -L eth0 combined 3"], "CPUs 5 to 7");
    assert_eq!(free.undo, ["ethtool -L eth0 combined 1"]);
    for (finding, why) in [
        (one_queue(None, 0.9), "which CPUs would get their interrupts was not read"),
        (one_queue(Some("ff"), 0.9), "may come to CPUs 0-1 of vCPUs"),
        (one_queue(Some("e0"), 0.1), "0 CPUs that may have interrupts have room for one"),
    ] {
        assert_eq!((typed(&finding).len(), finding.undo.len()), (0, 0), "{:?}", finding.fix);
        assert!(finding.fix[0].contains(why), "{:?}", finding.fix);
    }
}

#[test]
fn masks_of_send_queues_are_not_typed() {
    let mut machine = quiet();
    let xml = "<interface type='direct'><source dev='eth0' mode='bridge'/><model type='virtio'/></interface>";
    machine.domains[0].add(domains_of(xml, "f", 1, "web").unwrap().remove(0));
    let xps = vec![Steering { queue: 0, cpus: fact(set("0-1")) }];
    machine.nics.push(Nic { name: "eth0".into(), kind: NicKind::Physical, xps, ..Nic::default() });
    let finding = found("PLC-XPS", machine);
    assert_eq!((typed(&finding).len(), finding.undo.len()), (0, 0), "{:?}", finding.fix);
    assert!(finding.fix[0].contains("which the model of CPU time does not know"), "{:?}", finding.fix);
}

/// A polling thread of node 1 that serves a card of node 0 for half of its time, and one of node 0 with such queues.
fn polled(near: Vec<PmdQueue>, usage: Option<f64>, tied: &[(u32, u32)]) -> Finding {
    let mut machine = quiet();
    for cpu in [3, 5] {
        let mut pmd = thread(Role::Pmd, 90 + cpu, &cpu.to_string(), 1.0, 0.0);
        (pmd.vm, pmd.name) = (None, format!("pmd-c{cpu:02}"));
        machine.threads.push(pmd);
    }
    machine.threads[2].affinity = Some(fact(set("2")));
    machine.threads[3].affinity = Some(fact(set("2")));
    machine.domains[0].emulator_pins = vec![fact(set("2"))];
    let rx_affinity = tied.to_vec();
    let port = SwitchPort { name: "dpdk0".into(), node: Some(fact(0)), rx_affinity, ..SwitchPort::default() };
    machine.switch.bridges.push(Bridge { name: "br0".into(), user_space: true, ports: vec![port] });
    let far = vec![PmdQueue { port: "dpdk0".into(), queue: 1, enabled: true, usage }];
    machine.switch.pmds = vec![
        Pmd { cpu: 5, queues: far, place: "test".into(), ..Pmd::default() },
        Pmd { cpu: 3, queues: near, place: "test".into(), isolated: !tied.is_empty(), ..Pmd::default() },
    ];
    found("PLC-PMDNODE", machine)
}

#[test]
fn a_queue_is_tied_to_a_polling_thread_that_has_room_for_it_alone() {
    let other = |usage: Option<f64>| vec![PmdQueue { port: "vhu0".into(), queue: 0, enabled: true, usage }];
    let free = polled(Vec::new(), Some(0.5), &[]);
    assert_eq!(typed(&free), ["ovs-vsctl set Interface dpdk0 other_config:pmd-rxq-affinity=\"1:3\""]);
    assert_eq!(free.undo, ["ovs-vsctl remove Interface dpdk0 other_config pmd-rxq-affinity"]);
    let tied = polled(other(Some(0.2)), Some(0.5), &[(0, 3)]);
    assert_eq!(typed(&tied), ["ovs-vsctl set Interface dpdk0 other_config:pmd-rxq-affinity=\"0:3,1:3\""]);
    assert_eq!(
        tied.undo,
        ["ovs-vsctl set Interface dpdk0 other_config:pmd-rxq-affinity=\"0:3\""],
        "what was tied before"
    );
    for (finding, why) in [
        (polled(other(Some(0.2)), Some(0.5), &[]), "would give up 1 other queue"),
        (polled(other(Some(0.6)), Some(0.5), &[(0, 3)]), "its polling thread would be 110.0 % busy"),
        (polled(Vec::new(), None, &[]), "how much of a CPU the queue takes is unknown"),
        (polled(other(None), Some(0.5), &[(0, 3)]), "how busy its polling thread is, is unknown"),
    ] {
        assert_eq!((typed(&finding).len(), finding.undo.len()), (0, 0), "{:?}", finding.fix);
        assert!(
            finding.fix[0].starts_with("# the queue is not tied to CPU 3: ") && finding.fix[0].contains(why),
            "{:?}",
            finding.fix
        );
    }
}
