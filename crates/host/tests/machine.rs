//! Machines out of snapshots: trees made here, and this machine against `lscpu`.

use kvmscope_host::machine::Role;
use kvmscope_host::{Machine, Snapshot, paste};
use std::fs;
use std::path::Path;
use std::process::Command;

const QEMU: &str = "qemu-system-x86_64\0-name\0guest=web,debug-threads=on\0";

/// A tree of two cores with two threads each, numbered as on no simple machine: 0 and 3 are siblings.
fn tree(at: &Path, read_at_ns: u64, ran_ns: u64, waited_ns: u64, inside: bool) {
    let put = |path: &str, text: &str| {
        let path = at.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for (cpu, siblings, node) in [(0, "0,3", 0), (1, "1-2", 1), (2, "1-2", 1), (3, "0,3", 0)] {
        put(&format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), siblings);
        put(&format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"), &node.to_string());
    }
    put("sys/devices/system/cpu/online", "0-3\n");
    put("sys/devices/system/cpu/isolated", "\n");
    put("sys/devices/system/node/node0/cpulist", "0,3\n");
    put("sys/devices/system/node/node1/cpulist", "1-2\n");
    put("sys/devices/system/node/node0/distance", "10 21\n");
    put("sys/devices/system/node/node1/distance", "21 10\n");
    put("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:   1024 kB\nNode 0 MemFree:    512 kB\n");
    let ticks = ran_ns / 10_000_000;
    put("proc/stat", &format!("cpu  0 0 0 0 0 0 0 0\ncpu0 {ticks} 0 0 0 0 0 {} 0 0 0\n", ticks));
    put("proc/interrupts", &format!("     CPU0  CPU1\n 24:   {}   5   IR-PCI-MSI 1-edge   eth0-rx-0\n", ticks * 10));
    put("proc/irq/24/smp_affinity_list", "0\n");
    put("sys/class/net/eth0/device/numa_node", "-1\n");
    put("sys/class/net/eth0/queues/rx-0/rps_cpus", "3\n");
    let task = |pid: i32, tid: i32, comm: &str, cpus: &str| {
        let of = |file: &str| format!("proc/{pid}/task/{tid}/{file}");
        put(&of("comm"), &format!("{comm}\n"));
        let middle = ["0"; 35].join(" ").replacen(
            "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
            "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 77",
            1,
        );
        put(&of("stat"), &format!("{tid} ({comm} ) x) R {middle} 3 0 0 0\n"));
        put(&of("status"), &format!("Name:\t{comm}\nCpus_allowed_list:\t{cpus}\nMems_allowed_list:\t0\n"));
        put(&of("schedstat"), &format!("{ran_ns} {waited_ns} 7\n"));
    };
    task(10, 10, "qemu-system-x86", "0-3");
    task(10, 11, "CPU 0/KVM", "0");
    let vhost = if inside { (10, 12) } else { (12, 12) };
    task(vhost.0, vhost.1, "vhost-10", "0");
    put("proc/10/cmdline", QEMU);
    put("proc/10/cgroup", "0::/machine.slice/web\n");
    put("proc/12/cgroup", "0::/\n");
    put("libvirt/web.xml", "<domain><name>web</name><vcpu cpuset='0'>1</vcpu></domain>");
    let files = [
        "proc/stat",
        "proc/interrupts",
        "proc/10/task/10/schedstat",
        "proc/10/task/11/schedstat",
        "proc/10/task/12/schedstat",
        "proc/12/task/12/schedstat",
    ];
    let files: Vec<String> = files.iter().map(|file| format!("\"{file}\": {read_at_ns}")).collect();
    put("times.json", &format!("{{\"clock\": \"monotonic\", \"files\": {{{}}}}}", files.join(", ")));
}

fn of_two(inside: bool) -> Machine {
    let root = tempfile::tempdir().unwrap();
    let (first, last) = (root.path().join("0"), root.path().join("1"));
    tree(&first, 1_000_000_000, 0, 0, inside);
    tree(&last, 3_000_000_000, 500_000_000, 1_000_000_000, inside);
    Machine::of_snapshots(&[Snapshot::open(&first).unwrap(), Snapshot::open(&last).unwrap()])
}

#[test]
fn two_samples_give_shares_and_waiting() {
    let machine = of_two(true);
    assert_eq!(machine.span_ns, Some(2_000_000_000));
    let roles: Vec<Role> = machine.threads.iter().map(|thread| thread.role).collect();
    assert_eq!(roles, [Role::Vcpu(0), Role::Vhost, Role::Emulator]);
    let vhost = &machine.threads[1];
    assert_eq!((vhost.vm.as_deref(), vhost.pid, vhost.tid), (Some("web"), Some(10), Some(12)));
    assert_eq!(vhost.run_share.as_ref().unwrap().value, 0.25);
    assert_eq!(vhost.wait_share.as_ref().unwrap().value, 0.5);
    assert!((vhost.starvation().unwrap() - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!(vhost.last_cpu.as_ref().unwrap().value, 3, "the name holds brackets and blanks");
    assert_eq!(vhost.affinity.as_ref().unwrap().value.to_string(), "0");
    assert_eq!(machine.cpu_use[&0].softirq, 0.5);
    assert_eq!(machine.irqs[0].per_s[&0], 250.0);
    assert_eq!((machine.domains.len(), machine.domains[0].whole.as_deref()), (1, Some("libvirt/web.xml:1")));
    assert_eq!(machine.domains[0].emulator_pin().unwrap().value.to_string(), "0", "no emulatorpin: the vCPUs' set");
}

#[test]
fn a_vhost_of_the_kernel_belongs_to_its_owner() {
    let machine = of_two(false);
    let vhost = machine.threads.iter().find(|thread| thread.role == Role::Vhost).unwrap();
    assert_eq!((vhost.vm.as_deref(), vhost.pid), (Some("web"), Some(12)));
    assert_eq!(vhost.cgroup.as_deref(), Some("/"));
}

#[test]
fn one_sample_gives_no_rates() {
    let root = tempfile::tempdir().unwrap();
    tree(root.path(), 1_000_000_000, 5, 5, true);
    let machine = Machine::of_snapshots(&[Snapshot::open(root.path()).unwrap()]);
    assert!(machine.threads.iter().all(|thread| thread.run_share.is_none() && thread.wait_share.is_none()));
    assert!(machine.cpu_use.is_empty() && machine.irqs[0].per_s.is_empty() && machine.span_ns.is_none());
    let topology = &machine.topology;
    assert_eq!(topology.of_core(topology.cpus[&0].core).to_string(), "0,3");
    assert_eq!((topology.cpus[&1].node, machine.nodes[&0].distances[&1]), (Some(1), 21));
    assert_eq!(machine.nodes[&0].free_bytes, Some(512 << 10));
    assert_eq!(machine.nics[0].node, None, "-1 is unknown, not node 0");
    assert_eq!(machine.nics[0].rps_cpus().to_string(), "0-1");
}

#[test]
fn this_machine_is_what_lscpu_says() {
    let Ok(output) = Command::new("lscpu").args(["--parse=CPU,Core,Socket,Node", "--online"]).output() else {
        return println!("skipped: topology against lscpu: no lscpu (package util-linux)");
    };
    let theirs = paste::read(&[("lscpu".to_owned(), String::from_utf8_lossy(&output.stdout).into_owned())]).topology;
    let ours = Machine::of_snapshots(&[Snapshot::open(Path::new("/")).unwrap()]).topology;
    if ours.cpus.is_empty() {
        return println!("skipped: topology against lscpu: no topology in /sys here");
    }
    assert_eq!(ours.online, theirs.online);
    let mut mine: Vec<_> = ours.cores().into_values().collect();
    let mut other: Vec<_> = theirs.cores().into_values().collect();
    mine.sort();
    other.sort();
    assert_eq!(mine, other, "who shares a core");
}
