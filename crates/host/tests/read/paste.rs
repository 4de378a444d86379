//! Evidence as people paste it, and what it must not be taken for.

use kvmscope_host::machine::Role;
use kvmscope_host::{Machine, paste};
use std::path::Path;

fn seed() -> Machine {
    let notes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/seed-vhost/L0/notes");
    let files = [
        "1-top-before.txt",
        "2-interfaces.xml",
        "3-vcpupin.txt",
        "4-emulatorpin.txt",
        "5-lscpu.txt",
        "6-top-after.txt",
    ];
    let read = |file: &&str| ((*file).to_owned(), std::fs::read_to_string(notes.join(file)).unwrap());
    paste::read(&files.iter().map(read).collect::<Vec<_>>())
}

fn of(text: &str) -> Machine {
    paste::read(&[("ticket".to_owned(), text.to_owned())])
}

#[test]
fn the_vhost_case_is_read_whole() {
    let machine = seed();
    assert_eq!(
        (machine.topology.cpus.len(), machine.topology.cores().len(), machine.topology.nodes().len()),
        (16, 8, 2)
    );
    assert_eq!(machine.topology.of_core(machine.topology.cpus[&2].core).to_string(), "2,10");
    let [domain] = &machine.domains[..] else { panic!("one domain, not {:?}", machine.domains.len()) };
    assert_eq!((domain.name.as_str(), domain.vcpu_count(), domain.workers()), ("bigip-virtio", 10, (8, 9)));
    assert_eq!(domain.emulator_pin().unwrap().value.to_string(), "0,2,4,6,8,10,12,14");
    assert_eq!(domain.emulator_pin().unwrap().place, "4-emulatorpin.txt:4");
    let ids: Vec<Option<i32>> =
        machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_))).map(|thread| thread.tid).collect();
    let eight: Vec<Option<i32>> = (23341..=23348).map(Some).chain([None, None]).collect();
    assert_eq!(ids, eight, "vCPU k is thread 23341 + k, and vCPUs 8 and 9 are in no screen");
    let workers: Vec<f64> = machine
        .threads
        .iter()
        .filter(|thread| thread.role == Role::Vhost)
        .map(|thread| thread.run_share.as_ref().unwrap().value)
        .collect();
    assert_eq!(workers, [0.402, 0.402, 0.392, 0.402, 0.312, 0.322, 0.302, 0.316]);
    let emulator = machine.threads.iter().find(|thread| thread.role == Role::Emulator).unwrap();
    assert_eq!((emulator.tid, emulator.run_share.as_ref()), (Some(23329), None), "262.5 % is the whole process");
    assert!(machine.threads.iter().all(|thread| thread.wait_share.is_none()), "no screen of top tells waiting");
    assert_eq!(machine.screens[1].rows.last().unwrap().last_cpu, None, "a P that was cut off");
    let lost: u64 = machine.sources.iter().map(|source| source.2).sum();
    assert_eq!(lost, 0, "{:?}", machine.sources);
}

#[test]
fn an_article_with_everything_mixed_is_the_same_machine() {
    let prose = "Hello,\nas you can see: it is slow &amp; I do not know why.\n\n";
    let notes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/seed-vhost/L0/notes");
    let read = |file: &str| std::fs::read_to_string(notes.join(file)).unwrap();
    let text = ["2-interfaces.xml", "4-emulatorpin.txt", "3-vcpupin.txt", "1-top-before.txt", "5-lscpu.txt"]
        .map(read)
        .join(prose);
    let machine = of(&text);
    assert_eq!((machine.topology.cpus.len(), machine.screens.len(), machine.domains.len()), (16, 1, 1));
    assert_eq!(
        machine.domains[0].interfaces.len(),
        3,
        "elements before the domain's name belong to the one that is named"
    );
    assert_eq!(machine.sources[0].2, 8, "lines of prose are counted");
}

#[test]
fn both_forms_of_virsh_are_read() {
    let machine =
        of("$ virsh vcpupin web\n VCPU   CPU Affinity\n----------------------\n 0      0-7\n 1      0-7,^3\n\n\
        $ virsh emulatorpin web\n emulator: CPU Affinity\n-----\n       *: 0-1\n");
    let domain = &machine.domains[0];
    assert_eq!((domain.name.as_str(), domain.vcpu_count()), ("web", 2));
    assert_eq!(domain.vcpu_pins[&1].value.to_string(), "0-2,4-7");
    assert_eq!(domain.emulator_pin().unwrap().value.to_string(), "0-1");
}

#[test]
fn counters_nodes_and_channels_are_read() {
    let machine = of(
        "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 100 MB\nnode 0 free: 50 MB\nnode 1 cpus: 2 3\n\
        node 1 size: 100 MB\nnode 1 free: 60 MB\nnode distances:\nnode   0   1\n  0:  10  21\n  1:  21  10\n\n\
        \x20          CPU0       CPU2\n 24:        100          7   IR-PCI-MSI 524288-edge      eth0-TxRx-0\nNMI:   0   0   Non-maskable\n\n\
        11:00:01  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %idle\n\
        11:00:02    0   10.00    0.00    5.00    0.00    1.00   30.00    2.00    0.00  52.00\n\n\
        VMBUS ID 14: Class_ID = {f8615163} - [Synthetic network adapter]\n\tDevice_ID = {a}\n\tRel_ID=14, target_cpu=3\n",
    );
    assert_eq!(machine.topology.cpus[&3].node, Some(1));
    assert_eq!(machine.nodes[&0].distances[&1], 21);
    assert_eq!(machine.nodes[&1].free_bytes, Some(60 << 20));
    assert_eq!((machine.irqs[0].name.as_str(), machine.irqs[0].counts[&2]), ("eth0-TxRx-0", 7), "CPU 1 is off");
    let channel = &machine.channels[0];
    assert_eq!((channel.device.as_str(), channel.kind.as_str()), ("a", "Synthetic network adapter"));
    assert_eq!((channel.number, channel.cpu.as_ref().unwrap().value), (14, 3));
    assert_eq!(machine.irqs.len(), 1, "a channel is no interrupt of the kernel");
    let first = machine.cpu_use[&0];
    assert!((first.softirq - 0.3).abs() < 1e-9 && (first.busy - 0.15).abs() < 1e-9, "{first:?}");
    assert_eq!(machine.sources[0].2, 0);
}

#[test]
fn damage_is_said_and_survived() {
    let machine = of("<interface type='direct'>\n<source dev='eth0'/>\n");
    assert_eq!(machine.unread.len(), 1);
    let machine =
        of("<interface type='direct'>\n<source dev='eth0'>\n</interface>\n# Node,Core,CPU\n0,0\n,,\n99999999999,1,1\n");
    assert_eq!((machine.topology.cpus.len(), machine.unread.len()), (1, 1), "{:?}", machine.unread);
    assert_eq!(machine.topology.cpus[&1].node, None, "a node that is no number is not told");
    assert!(of("PID USER %CPU COMMAND\n").screens.is_empty());
    assert!(of("").is_empty());
}

#[test]
fn what_the_programs_of_this_machine_print_is_understood_whole() {
    let own = std::process::id().to_string();
    let commands: [&[&str]; 6] = [
        &["ps", "-eLo", "pid,tid,psr,pcpu,comm"],
        &["ps", "-elfL"],
        &["ps", "aux"],
        &["lscpu", "-ae"],
        &["taskset", "-pc", &own],
        &["taskset", "-p", &own],
    ];
    for command in commands {
        let output = std::process::Command::new(command[0]).args(&command[1..]).env("LC_ALL", "C").output();
        let Ok(output) = output else {
            println!("skipped: {}: it is not installed", command.join(" "));
            continue;
        };
        let machine = of(&String::from_utf8_lossy(&output.stdout));
        let (_, understood, lost) = machine.sources[0];
        assert!(understood > 0 && lost == 0, "{}: {understood} lines understood, {lost} not", command.join(" "));
    }
}
