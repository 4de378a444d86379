//! Machines out of snapshots: trees made here, and this machine against `lscpu`.

use kvmscope_host::machine::{GaugeKind, Quota, Role};
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
    put("proc/vmstat", &format!("allocstall_normal {ticks}\nallocstall_movable {}\n", ticks * 3));
    let disk = |name: &str| format!("8 0 {name} 0 0 0 0 {ticks} 0 0 {} 0 {} 0\n", ticks * 20, ticks * 20);
    put("proc/diskstats", &(disk("sda") + &disk("sda1") + &disk("dm-0")));
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
        "proc/vmstat",
        "proc/diskstats",
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
    let gauges: Vec<_> = machine.gauges.iter().map(|told| (told.kind, told.subject.as_str(), told.value)).collect();
    let disk = [(GaugeKind::DiskBusy, "sda", 0.5), (GaugeKind::DiskWrite, "sda", 20e6)];
    assert_eq!(gauges, [&[(GaugeKind::ReclaimStalls, "", 100.0)], &disk[..]].concat());
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

fn of_files(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let machine = Machine::of_snapshots(&[Snapshot::open(root.path()).unwrap()]);
    (root, machine)
}

const STAT: &str = "11 (x) R 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 7 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 2 0 0 0\n";

#[test]
fn workers_of_one_vm_may_be_of_both_kinds() {
    // Selectable for each device since Linux 6.17 (VHOST_SET_FORK_FROM_OWNER): the threads tell, not the version.
    let (_root, machine) = of_files(&[
        ("proc/10/cmdline", QEMU),
        ("proc/10/task/10/comm", "qemu-system-x86\n"),
        ("proc/10/task/10/stat", STAT),
        ("proc/10/task/11/comm", "CPU 0/KVM\n"),
        ("proc/10/task/11/stat", STAT),
        ("proc/10/task/12/comm", "vhost-10\n"),
        ("proc/10/task/12/stat", STAT),
        ("proc/50/cmdline", ""),
        ("proc/50/task/50/comm", "vhost-10\n"),
        ("proc/50/task/50/stat", STAT),
        ("proc/60/cmdline", ""),
        ("proc/60/task/60/comm", "vhost-9999\n"),
        ("proc/60/task/60/stat", STAT),
    ]);
    let workers: Vec<_> = machine
        .threads
        .iter()
        .filter(|thread| thread.role == Role::Vhost)
        .map(|thread| (thread.pid, thread.tid))
        .collect();
    assert_eq!(
        workers,
        [(Some(10), Some(12)), (Some(50), Some(50))],
        "the worker of a process that is no VM is nobody's"
    );
}

#[test]
fn cards_bridges_taps_and_functions_are_told_apart() {
    let links = r#"{"sys/class/net/eth0/device": "../../../0000:04:00.0", "sys/class/net/eth0/master": "../br0",
        "sys/class/net/eth0/device/virtfn0": "../0000:04:10.0", "sys/class/net/eth0/device/virtfn1": "../0000:04:10.2",
        "sys/class/net/eth1/device": "../../../0000:04:10.0", "sys/class/net/eth1/device/physfn": "../0000:04:00.0",
        "sys/class/net/eth2/device": "../../../virtio3", "sys/class/net/macvtap0/lower_eth0": "../eth0",
        "sys/class/net/vnet0/master": "../br0"}"#;
    let (_root, machine) = of_files(&[
        ("links.json", links),
        ("sys/class/net/eth0/device/numa_node", "1\n"),
        ("sys/class/net/eth0/device/sriov_numvfs", "2\n"),
        ("sys/class/net/eth0/device/sriov_totalvfs", "63\n"),
        ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n"),
        ("sys/class/net/eth0/queues/rx-1/rps_cpus", "00000001,00000000\n"),
        ("sys/class/net/eth0/queues/tx-0/xps_cpus", "3\n"),
        ("sys/class/net/eth0/queues/tx-1/xps_cpus", "c\n"),
        ("sys/class/net/br0/bridge/stp_state", "0\n"),
        ("sys/class/net/vnet0/tun_flags", "0x5002\n"),
        ("sys/class/net/macvtap0/macvtap/tap9/dev", "240:1\n"),
        (
            "libvirt/web.xml",
            "<domain id='1'><name>web</name><vcpu>1</vcpu><devices><interface type='bridge'><source bridge='br0'/>\
            </interface><interface type='direct'><source dev='macvtap0'/></interface></devices></domain>",
        ),
    ]);
    let kind = |name: &str| machine.nics.iter().find(|nic| nic.name == name).unwrap().kind;
    use kvmscope_host::machine::NicKind::{Bridge, Macvtap, Paravirtual, Physical, Tap};
    assert_eq!(
        ["eth0", "eth1", "eth2", "br0", "vnet0", "macvtap0"].map(kind),
        [Physical, Physical, Paravirtual, Bridge, Tap, Macvtap]
    );
    let card = machine.nics.iter().find(|nic| nic.name == "eth0").unwrap();
    assert_eq!((card.address.as_deref(), card.master.as_deref()), (Some("0000:04:00.0"), Some("br0")));
    assert_eq!(
        (card.virtual_functions, card.functions.as_slice()),
        (Some((2, 63)), &["0000:04:10.0".to_owned(), "0000:04:10.2".to_owned()][..])
    );
    assert_eq!(
        machine.nics.iter().find(|nic| nic.name == "eth1").unwrap().physical_function.as_deref(),
        Some("0000:04:00.0")
    );
    let queues: Vec<_> = card.rps.iter().map(|queue| (queue.queue, queue.cpus.value.to_string())).collect();
    assert_eq!((card.rx_queues, queues), (2, vec![(1, "32".to_owned())]));
    assert_eq!((card.tx_queues, card.xps_cpus().to_string()), (2, "0-3".to_owned()));
    for interface in &machine.domains[0].interfaces {
        let cards: Vec<&str> = machine.cards_of(interface).iter().map(|nic| nic.name.as_str()).collect();
        assert_eq!(cards, ["eth0"], "behind {:?}", interface.source);
    }
}

#[test]
fn cgroups_of_both_versions_leave_cpus() {
    let vm = [("proc/10/cmdline", QEMU), ("proc/10/task/10/comm", "CPU 0/KVM\n"), ("proc/10/task/10/stat", STAT)];
    let left = |files: &[(&str, &str)]| {
        let (_root, machine) = of_files(&[&vm[..], files].concat());
        let cpus = machine.cgroup_cpus(&machine.threads[0]).map(|cpus| (cpus.value.to_string(), cpus.place.clone()));
        (cpus, machine.cgroups.values().filter_map(|group| group.partition.clone()).next())
    };
    let (cpus, partition) = left(&[
        ("proc/10/cgroup", "0::/machine.slice/web/libvirt/emulator\n"),
        ("proc/10/task/10/cgroup", "0::/machine.slice/web/libvirt/vcpu0\n"),
        ("sys/fs/cgroup/machine.slice/web/libvirt/vcpu0/cpuset.cpus", "\n"),
        ("sys/fs/cgroup/machine.slice/web/cpuset.cpus", "0-5\n"),
        ("sys/fs/cgroup/machine.slice/web/cpuset.cpus.effective", "0-3\n"),
        ("sys/fs/cgroup/machine.slice/web/cpuset.cpus.partition", "isolated\n"),
    ]);
    let place = "sys/fs/cgroup/machine.slice/web/cpuset.cpus.effective".to_owned();
    assert_eq!(cpus, Some(("0-3".to_owned(), place)), "an empty set is that of the group above");
    assert_eq!(partition.as_deref(), Some("isolated"));
    let (cpus, _) = left(&[
        ("proc/10/cgroup", "4:cpuset:/machine/web\n1:name=systemd:/x\n0::/y\n"),
        ("sys/fs/cgroup/cpuset/machine/web/cpuset.cpus", "2\n"),
    ]);
    assert_eq!(cpus, Some(("2".to_owned(), "sys/fs/cgroup/cpuset/machine/web/cpuset.cpus".to_owned())));
}

/// What two samples say of the quotas above the first thread.
fn quotas(files: [&[(&str, &str)]; 2]) -> Vec<Quota> {
    let root = tempfile::tempdir().unwrap();
    let samples = [0, 1].map(|sample| {
        let at = root.path().join(sample.to_string());
        let vm = [("proc/10/cmdline", QEMU), ("proc/10/task/10/comm", "CPU 0/KVM\n"), ("proc/10/task/10/stat", STAT)];
        let mut times = Vec::new();
        for (path, text) in vm.iter().chain(files[sample]) {
            let path_at = at.join(path);
            fs::create_dir_all(path_at.parent().unwrap()).unwrap();
            fs::write(path_at, text).unwrap();
            times.push(format!("{path:?}: {}", (sample as u64 + 1) * 2_000_000_000));
        }
        fs::write(at.join("times.json"), format!("{{\"clock\": \"monotonic\", \"files\": {{{}}}}}", times.join(", ")))
            .unwrap();
        Snapshot::open(&at).unwrap()
    });
    let machine = Machine::of_snapshots(&samples);
    machine.quotas_of(&machine.threads[0]).map(|(_, quota)| quota.clone()).collect()
}

/// Of the first of them: CPUs, the throttled part of the periods, CPUs' worth lost.
fn quota(files: [&[(&str, &str)]; 2]) -> Option<(f64, Option<(f64, f64)>)> {
    let quota = quotas(files).into_iter().next()?;
    Some((quota.cpus.value, quota.measured.map(|measured| (measured.value.share(), measured.value.cpus))))
}

#[test]
fn quotas_of_both_versions_and_what_they_took() {
    let group = ("proc/10/task/10/cgroup", "0::/machine.slice/web/libvirt/vcpu0\n");
    let max = |text| ("sys/fs/cgroup/machine.slice/web/cpu.max", text);
    let stat = |text| ("sys/fs/cgroup/machine.slice/web/cpu.stat", text);
    let before = stat("usage_usec 7\nnr_periods 100\nnr_throttled 10\nthrottled_usec 1000\n");
    let after = stat("usage_usec 9\nnr_periods 120\nnr_throttled 15\nthrottled_usec 1001000\n");
    let limit = max("50000 100000\n");
    let looks = [&[group, limit, before][..], &[group, limit, after]];
    assert_eq!(quota(looks), Some((0.5, Some((0.25, 0.5)))), "of a group above the thread's own");
    assert_eq!(quota([&[group, max("max 100000\n"), before], &[group, max("max 100000\n"), after]]), None);
    let other = ("sys/fs/cgroup/machine.slice/we/cpu.max", "50000 100000\n");
    assert_eq!(quota([&[group, other], &[group, other]]), None, "a name that begins alike is another group");
    // Version 1: the CPU controller has a path of its own, and counts nanoseconds.
    let group = ("proc/10/task/10/cgroup", "4:cpuset:/elsewhere\n3:cpu,cpuacct:/machine/web\n0::/y\n");
    let counts = [
        "nr_periods 1\nnr_throttled 1\nthrottled_time 5\n",
        "nr_periods 5\nnr_throttled 3\nthrottled_time 2000000005\n",
    ];
    // The controller is mounted under each of these names, by itself or with the one that counts time.
    for mount in ["cpu", "cpu,cpuacct", "cpuacct,cpu"] {
        let at = |file: &str| format!("sys/fs/cgroup/{mount}/machine/web/{file}");
        let (allowed, period, stat) = (at("cpu.cfs_quota_us"), at("cpu.cfs_period_us"), at("cpu.stat"));
        let looks = |allowed_us, period_us| {
            let of = |text| [group, (&allowed, allowed_us), (&period, period_us), (&stat, text)];
            quotas([&of(counts[0]), &of(counts[1])])
        };
        let [quota] = &looks("150000\n", "100000\n")[..] else { panic!("one below {mount}") };
        let measured = quota.measured.as_ref().unwrap();
        assert_eq!((quota.cpus.value, measured.value.share(), measured.value.cpus), (1.5, 0.5, 1.0), "{mount}");
        assert_eq!((&quota.cpus.place, &measured.place), (&allowed, &stat), "{mount}");
        let since_start = quota.since_start.unwrap();
        assert_eq!((since_start.periods, since_start.throttled, since_start.ns), (5, 3, 2_000_000_005), "{mount}");
        assert!(looks("-1\n", "100000\n").is_empty(), "-1 is no limit");
        assert!(looks("150000\n", "0\n").is_empty(), "no period is no limit");
    }
}

#[test]
fn every_quota_above_a_thread_counts_and_says_as_much_as_was_read() {
    let group = ("proc/10/task/10/cgroup", "0::/machine.slice/web/libvirt/vcpu0\n");
    let own = ("sys/fs/cgroup/machine.slice/web/libvirt/vcpu0/cpu.max", "20000 100000\n");
    let above = ("sys/fs/cgroup/machine.slice/cpu.max", "400000 100000\n");
    let both = [group, own, above];
    let found = quotas([&both, &both]);
    assert_eq!(found.iter().map(|quota| quota.cpus.value).collect::<Vec<_>>(), [4.0, 0.2]);
    assert!(found.iter().all(|quota| quota.measured.is_none() && quota.since_start.is_none()), "no cpu.stat was read");
    // A kernel whose controller is off tells of the time alone.
    let stat = |text| ("sys/fs/cgroup/machine.slice/web/libvirt/vcpu0/cpu.stat", text);
    let idle = [group, own, stat("usage_usec 7\nuser_usec 3\n")];
    assert!(quotas([&idle, &idle])[0].since_start.is_none());
    // A group that was made anew counts from nothing: what was counted since then is all that is known.
    let first = [group, own, stat("nr_periods 90\nnr_throttled 80\nthrottled_usec 5000000\n")];
    let last = [group, own, stat("nr_periods 4\nnr_throttled 1\nthrottled_usec 1000\n")];
    for first in [&first[..], &[group]] {
        let quota = quotas([first, &last]).remove(0);
        assert_eq!((quota.measured, quota.since_start.unwrap().throttled), (None, 1));
    }
}

#[test]
fn channels_of_hyper_v_have_cpus() {
    let at = "sys/bus/vmbus/devices/0d74d2a5-1111-2222-3333-444455556666";
    let files = [
        (format!("{at}/class_id"), "{f8615163-df3e-46c5-913f-f2d2f965ed0e}\n"),
        (format!("{at}/channels/14/cpu"), "3\n"),
        (format!("{at}/channels/14/interrupts"), "77\n"),
        (format!("{at}/channels/15/cpu"), "0\n"),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let (_root, machine) = of_files(&files);
    let told: Vec<_> =
        machine.channels.iter().map(|channel| (channel.number, channel.cpu.as_ref().unwrap().value)).collect();
    assert_eq!(told, [(14, 3), (15, 0)]);
    assert_eq!(
        (machine.channels[0].kind.as_str(), machine.channels[0].interrupts),
        ("Synthetic network adapter", Some(77))
    );
}

#[test]
fn polling_threads_are_where_their_names_say_and_the_switch_is_read_from_its_database() {
    let database = "OVSDB JSON 1 0\n{}\nOVSDB JSON 1 0\n{\"Open_vSwitch\":{\"o\":{\"other_config\":\
        [\"map\",[[\"pmd-cpu-mask\",\"0x6\"]]]}},\"Bridge\":{\"b\":{\"name\":\"br0\",\"datapath_type\":\"netdev\",\
        \"ports\":[\"uuid\",\"p\"]}},\"Port\":{\"p\":{\"name\":\"d0\",\"interfaces\":[\"uuid\",\"i\"]}},\"Interface\":{\"i\":\
        {\"name\":\"d0\",\"type\":\"dpdk\",\"options\":[\"map\",[[\"dpdk-devargs\",\"0000:3b:00.0\"]]]}}}\n";
    let (_root, machine) = of_files(&[
        ("etc/openvswitch/conf.db", database),
        ("sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n"),
        ("proc/20/cmdline", "ovs-vswitchd\0"),
        ("proc/20/task/21/comm", "pmd-c02/id:8\n"),
        ("proc/20/task/21/stat", STAT),
    ]);
    assert_eq!(machine.switch.pmd_cpus().to_string(), "1-2");
    assert_eq!(machine.switch.port("d0").unwrap().node.as_ref().unwrap().value, 1);
    let [pmd] = &machine.threads[..] else { panic!("{:?}", machine.threads) };
    assert_eq!((pmd.role, pmd.affinity.as_ref().unwrap().value.to_string()), (Role::Pmd, "2".to_owned()));
}
