//! Where memory lies and who has it: cells against their vCPUs, a full node beside an empty one, a program of no VM; and devices that QEMU
//! emulates.

use super::culprits::{evidence, used};
use super::quiet::{fact, findings, found, quiet, set, thread};
use base::Finding;
use host::Machine;
use host::machine::{CpuUse, Disk, Domain, Gauge, GaugeKind, GuestCell, Holder, Interface, Irq, Role};

/// A guest of two cells with two vCPUs each on nodes 0 and 1, their memory on these nodes.
fn celled(nodes: [&str; 2]) -> Machine {
    let mut machine = quiet();
    machine.threads = [(0, "0"), (1, "1"), (2, "4"), (3, "5")]
        .map(|(vcpu, cpu)| thread(Role::Vcpu(vcpu), 11 + vcpu as i32, cpu, 0.9, 0.0))
        .into();
    machine.threads.push(thread(Role::Emulator, 10, "3", 0.01, 0.0));
    let mut domain = Domain { name: "web".into(), vcpus: Some(4), guest_nodes: 2, ..Domain::default() };
    domain.vcpu_pins = [(0, "0"), (1, "1"), (2, "4"), (3, "5")].map(|(vcpu, cpu)| (vcpu, fact(set(cpu)))).into();
    domain.emulator_pins = vec![fact(set("3"))];
    let cell = |vcpus: &str, node: &str| GuestCell {
        vcpus: set(vcpus),
        memory_bytes: Some(4 << 30),
        nodes: (!node.is_empty()).then(|| fact(set(node))),
    };
    domain.cells = [(0, cell("0-1", nodes[0])), (1, cell("2-3", nodes[1]))].into();
    machine.domains = vec![domain];
    machine
}

#[test]
fn each_cell_runs_where_its_memory_is() {
    let told = found("PLC-CELLMEMORY", celled(["1", "0"])).expect("PLC-CELLMEMORY");
    assert!(
        told.title.ends_with(
            "cell 0 runs on node 0 and has its memory on node 1; cell 1 runs on node 1 and has its memory on node 0"
        ),
        "{}",
        told.title
    );
    let pin = |vcpu: u32, cpu: u32| format!("virsh vcpupin web {vcpu} {cpu} --live --config");
    assert_eq!(told.fix, [pin(0, 4), pin(1, 5), pin(2, 0), pin(3, 1)]);
    assert_eq!(told.undo, [pin(0, 0), pin(1, 1), pin(2, 4), pin(3, 5)]);
    assert!(found("PLC-CELLMEMORY", celled(["0", "1"])).is_none());
    assert!(found("PLC-CELLMEMORY", celled(["", ""])).is_none(), "nobody told where it is");
    let parts = |found: &[Finding]| {
        let pins = |finding: &Finding| finding.fix.iter().filter(|line| line.contains("vcpupin web")).count();
        found.iter().any(|finding| pins(finding) % 2 == 1)
    };
    assert!(!parts(&findings(celled(["1", "1"]))), "a cell goes as a whole");
    let one = found("PLC-CELLMEMORY", celled(["1", "1"])).expect("PLC-CELLMEMORY");
    assert!(
        one.changes.is_empty() && one.fix[0].contains("<memnode cellid='0' mode='strict' nodeset='0'/>"),
        "{:?}",
        one.fix
    );
}

#[test]
fn more_memory_on_a_node_than_its_cells_have_is_of_others() {
    let of = |here: u64, there: u64| {
        let mut machine = celled(["", ""]);
        machine.vm_memory.insert("web".into(), fact([(0, here << 30), (1, there << 30)].into()));
        found("PLC-CELLMEMORY", machine)
    };
    assert!(of(1, 7).expect("PLC-CELLMEMORY").title.starts_with("web has 3.2 GB more memory on node 1"));
    assert!(of(4, 4).is_none() && of(0, 4).is_none(), "what one cell has not touched yet is no fault");
}

fn swapping(machine: &mut Machine) {
    let gauge = |kind, value| Gauge { kind, subject: String::new(), value, place: "proc/vmstat".into() };
    machine.gauges.extend([
        gauge(GaugeKind::SwappedIn, 2e7),
        gauge(GaugeKind::MemoryTotal, (64_u64 << 30) as f64),
        gauge(GaugeKind::SwapUsed, (13_u64 << 30) as f64),
        gauge(GaugeKind::MemoryAvailable, 4e8),
    ]);
}

#[test]
fn of_a_full_node_beside_an_empty_one_the_binding_is_named() {
    let of = |mode: &str, free: u64| {
        let mut machine = used();
        swapping(&mut machine);
        machine.domains[0].memory_nodes = Some((set("0"), mode.to_owned()));
        machine.domains[0].memory_bytes = Some(4 << 30);
        machine.nodes.get_mut(&0).unwrap().free_bytes = Some(1 << 27);
        machine.nodes.get_mut(&1).unwrap().free_bytes = Some(free);
        found("PLC-SWAP", machine).expect("PLC-SWAP")
    };
    let told = of("strict", 8 << 30);
    assert!(
        told.title.ends_with("node 0 is full and web may have memory of no other, while node 1 has 8.6 GB free"),
        "{}",
        told.title
    );
    let lines =
        |lines: &[String]| lines.iter().map(|line| line.split("   #").next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(
        lines(&told.fix)[..4],
        [
            "virsh numatune web --mode strict --nodeset 1 --config",
            "virsh vcpupin web 0 4 --config",
            "virsh vcpupin web 1 5 --config",
            "virsh emulatorpin web 6-7 --config"
        ]
    );
    assert_eq!(
        told.undo,
        [
            "virsh numatune web --mode strict --nodeset 0 --config",
            "virsh vcpupin web 0 0 --config",
            "virsh vcpupin web 1 1 --config",
            "virsh emulatorpin web 2-3 --config"
        ]
    );
    for silent in [of("preferred", 8 << 30), of("strict", 1 << 30)] {
        assert!(!silent.title.contains("node 0 is full"), "{}", silent.title);
    }
}

#[test]
fn who_has_the_memory_that_vms_swap_for_is_named_with_its_owners_limit() {
    let of = |gib: u64, group: &str, limit: Option<(&str, &str)>| {
        let mut machine = used();
        swapping(&mut machine);
        machine.holders =
            vec![Holder { pid: 700, name: "python3".into(), resident: fact(gib << 30), group: Some(group.to_owned()) }];
        if let Some((file, value)) = limit {
            machine.settings.insert(format!("sys/fs/cgroup{file}"), fact(value.to_owned()));
        }
        found("PLC-SWAP", machine).expect("PLC-SWAP")
    };
    let payload = "/lxc.payload.etl/system.slice/etl.service";
    let container = of(46, payload, Some(("/lxc.payload.etl/memory.max", "max")));
    assert!(container.title.ends_with("; python3 (700) of container etl has 49.4 GB"), "{}", container.title);
    assert!(container.fix[1].starts_with("incus config set etl limits.memory=33GiB"), "{:?}", container.fix);
    assert_eq!(container.undo, ["incus config unset etl limits.memory"]);
    let limited = of(46, payload, Some(("/lxc.payload.etl/memory.max", "60000000000")));
    assert_eq!(limited.undo, ["incus config set etl limits.memory=60000000000"]);
    let unit = of(46, "/system.slice/etl.service", Some(("/system.slice/etl.service/memory.high", "max")));
    assert!(unit.fix[1].starts_with("systemctl set-property --runtime etl.service MemoryHigh=33G"), "{:?}", unit.fix);
    assert_eq!(unit.undo, ["systemctl set-property --runtime etl.service MemoryHigh=infinity"]);
    assert!(!of(8, payload, None).title.contains("python3"), "others have more");
}

/// A VM whose main loop runs so much, with a card and a disk.
fn looping(run: f64, model: &str, bus: &str) -> Vec<Finding> {
    let mut machine = used();
    machine.threads[2].run_share = Some(fact(run));
    let model = Some(model.to_owned());
    machine.domains[0].interfaces = vec![Interface {
        name: "tap0".into(),
        kind: "ethernet".into(),
        model,
        place: "t".into(),
        ..Interface::default()
    }];
    machine.domains[0].disks = vec![Disk { target: "hda".into(), bus: Some(bus.to_owned()), ..Disk::default() }];
    findings(machine)
}

#[test]
fn a_full_main_loop_names_what_it_emulates() {
    let of = |run: f64, model: &str, bus: &str| {
        looping(run, model, bus).into_iter().find(|finding| finding.rule == "PLC-MAINLOOP")
    };
    let told = of(0.97, "e1000", "ide").expect("PLC-MAINLOOP");
    assert!(told.title.ends_with("it emulates card tap0 (e1000) and disk hda (ide)"), "{}", told.title);
    assert_eq!(told.explains, ["PLC-NET@web-tap0", "PLC-DISK@web-hda"]);
    assert!(!of(0.97, "virtio", "virtio").expect("PLC-MAINLOOP").title.contains("emulates"));
    assert!(of(0.5, "e1000", "ide").is_none());
}

#[test]
fn a_list_of_the_boot_loader_that_brings_interrupts_back_is_changed_as_well() {
    let of = |line: &str| {
        let mut machine = used();
        machine.settings.insert("proc/cmdline".into(), fact(line.to_owned()));
        machine.irqs.push(Irq {
            number: 24,
            name: "eth0".into(),
            affinity: Some(fact(set("0-1"))),
            per_s: [(0, 9_000.0)].into(),
            ..Irq::default()
        });
        machine.cpu_use.insert(0, CpuUse { softirq: 0.3, busy: 0.5, idle: 0.2, ..CpuUse::default() });
        found("PLC-IRQ", machine).expect("PLC-IRQ")
    };
    let told = of("quiet irqaffinity=0-1");
    let args = |remove: &str, add: &str| {
        format!("grubby --update-kernel=ALL --remove-args=\"irqaffinity={remove}\" --args=\"irqaffinity={add}\"")
    };
    assert!(told.fix.iter().any(|line| line.starts_with(&args("0-1", "2-7"))), "{:?}", told.fix);
    assert_eq!(told.undo.last(), Some(&args("2-7", "0-1")));
    assert!(evidence(&told).contains("irqaffinity=0-1"));
    for line in ["quiet", "quiet irqaffinity=2-7"] {
        assert!(of(line).fix.iter().all(|line| !line.contains("grubby")), "{line}");
    }
}
