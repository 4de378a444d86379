//! Evidence made to take long or to fill the memory: each is read in one go, and what was left out is said.
//!
//! Sizes are such that work growing with the square of them would not end in the patience of anybody.

use kvmscope_host::{Machine, Snapshot, budget, machine::domains_of, paste};
use std::path::Path;

/// Lines of each text.
const LINES: usize = 40_000;

/// The same of texts that are one line over and over: there are many, and each reader looks at each line.
const REPEATED: usize = 10_000;

fn of(text: String) -> Machine {
    paste::read(&[("ticket".to_owned(), text)])
}

fn numbered(head: &str, line: impl Fn(usize) -> String) -> String {
    std::iter::once(head.to_owned()).chain((0..LINES).map(line)).collect()
}

#[test]
fn beginnings_without_an_end_are_looked_for_once() {
    for line in [
        "<domain>\n",
        "<domain type='kvm'>\n<name>a</name>\n",
        "{\n\"start\":\n",
        "{\n\"cpus\": [\n}\n",
        "{\n",
        "<interface>\n",
    ] {
        let machine = of(line.repeat(LINES));
        assert!(machine.domains.iter().all(|domain| domain.whole.is_none()), "{line}");
        assert!(machine.unread.len() <= budget::UNREAD_SENTENCES + 10, "{line}: {}", machine.unread.len());
    }
    // Of each of the elements one end is there, behind all beginnings.
    let machine = of("<domain>\n".repeat(LINES) + "</domain>\n");
    assert!(machine.unread.iter().any(|line| line.contains("nests more than")), "{:?}", machine.unread);
}

#[test]
fn headers_without_rows_and_rows_without_end() {
    for header in [
        "VCPU: CPU Affinity\n",
        " CPU0 CPU1\n",
        "available: 2 nodes (0-1)\n",
        "CPU NODE SOCKET CORE\n",
        "# CPU,Core,Socket,Node,,L1d\n",
        "_uuid : aaaa\n",
        "$ virsh vcpupin a\n",
        "09:00:01  UID  TGID  TID  %usr  %wait  %CPU  CPU  Command\n",
        "PID USER PR NI S %CPU COMMAND\n",
        "CPU(s): 4\n",
        "VCPU: 0\n",
        "$ lscpu -p=cpu,node\n",
        "%Cpu0 : 1.0 us, 99.0 id\n",
        "09:00:03 107 - 12 0.00 1.00 0.00 4.00 1.00 2 |__vhost-10\n",
        "usage_usec 1\n",
        "# cat cpu.max cpu.stat; cat /sys/fs/cgroup/a/cpu.stat\n",
        "# ethtool -S eth0; ethtool -S eth1\nrx_missed: 1\n",
        "1741687331\n",
        "node 0 free: 1 MB\n",
        "free -m of the host\n",
        "CPU 0/KVM 90000000000 1 2\n",
        "| Field | Value |\n| | a |\n",
    ] {
        of(header.repeat(REPEATED));
    }
    let cut = |machine: &Machine, what: &str| {
        assert!(machine.unread.iter().any(|line| line.contains(what)), "{what}: {:?}", machine.unread);
    };
    let screen = of(numbered("  PID   TID PSR COMMAND\n", |at| format!("{at} {at} 0 CPU {at}/KVM\n")).repeat(6));
    cut(&screen, "rows of screens");
    cut(&screen, "VMs were named");
    assert!(screen.threads.len() <= budget::DOMAIN_THREADS);
    // Threads without processes: every second one begins another VM, each with a worker.
    let rows = numbered("PID S %CPU COMMAND\n", |at| match at % 3 {
        0 => format!("{at} R 90.0 CPU 0/KVM\n"),
        1 => format!("{at} R 90.0 CPU 1/KVM\n"),
        _ => format!("{at} S 1.0 vhost-{}\n", at + 1),
    });
    cut(&of((0..2_000).map(|at| format!("$ virsh vcpupin vm{at}\n")).collect::<String>() + &rows), "VMs were named");
    let masks = of(numbered("", |at| format!("pid {at}'s current affinity list: 0-3\n")));
    assert_eq!(masks.threads.len(), LINES);
    let cards = of(numbered("", |at| format!("Features for eth{at}:\nrx-checksumming: on\n\n")));
    assert_eq!(cards.nics.len(), LINES);
    cut(&of(numbered("", |at| format!("$ virsh vcpupin vm{at}\n"))), "facts of domains");
    cut(&of(numbered("", |at| format!("Bridge br{at}\n\n"))), "bridges");
    cut(&of("x".repeat(budget::LINE_BYTES + 1)), "lines of more than");
    let header: String = (0..8_000).map(|cpu| format!(" CPU{cpu}")).collect();
    let row = format!("7: {} IR-PCI eth0\n", "1 ".repeat(8_000));
    cut(&of(format!("{header}\n{}", row.repeat(budget::IRQ_COUNTERS / 8_000 + 2))), "interrupts behind");
}

#[test]
fn domains_by_thousands_have_no_more_threads_than_a_host() {
    let domain = |at: usize| format!("<domain>\n<name>vm{at}</name>\n<vcpu>8192</vcpu>\n</domain>\n");
    let machine = of((0..3_000).map(domain).collect());
    assert!(machine.threads.len() <= budget::DOMAIN_THREADS, "{}", machine.threads.len());
    assert!(machine.domains.len() <= budget::DOMAINS, "{}", machine.domains.len());
}

#[test]
fn all_texts_together_have_a_size() {
    let text = |name: &str| (name.to_owned(), "x".repeat(budget::TEXT_BYTES - 8_192));
    let machine = paste::read(&[text("a"), text("b")]);
    assert!(machine.unread.iter().any(|line| line.starts_with("b: 8192 of ")), "{:?}", machine.unread);
    let machine = of("\n".repeat(budget::LINES) + "top\n");
    assert!(machine.unread.iter().any(|line| line.contains("lines after the first")), "{:?}", machine.unread);
}

#[test]
fn xml_goes_neither_deep_nor_wide() {
    let domain = |inner: String| format!("<domain><name>a</name>{inner}</domain>");
    let refused = |inner: String, why: &str| {
        let error = domains_of(&domain(inner), "f", 1, "").unwrap_err();
        assert!(error.contains(why), "{why}: {error}");
    };
    refused("<a>".repeat(50_000) + &"</a>".repeat(50_000), "nests more than");
    refused("<a>\n".repeat(50_000), "nests more than");
    let attributes = |name: &str| (0..100_000).map(|at| format!(" {name}{at}='u{at}'")).collect::<String>();
    refused(format!("<vcpu{}/>", attributes("a")), "attributes");
    refused(format!("<vcpu{}/>", attributes("xmlns:a")), "namespaces");
    refused("<a/>".repeat(300_000), "nodes limit");
    refused(" ".repeat(budget::XML_BYTES), "bytes");
    // As deep as a chain of backing files may be, with every line counted.
    let chain = "<backingStore>\n".repeat(200) + &"</backingStore>\n".repeat(200);
    let devices = format!("<devices>{}</devices>", "<hostdev type='pci'/>\n".repeat(90_000));
    let domains = domains_of(&domain(chain + &devices), "f", 1, "").unwrap();
    assert_eq!(domains[0].host_devices.last().unwrap().place, "f:90400");
}

#[test]
fn a_tree_with_long_lists_and_many_processes() {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let long = "0-8191,".repeat(2 << 20);
    for list in ["online", "cpu0/topology/thread_siblings_list", "isolated"] {
        write(&format!("sys/devices/system/cpu/{list}"), &long);
    }
    write("proc/cmdline", &format!("isolcpus={long}"));
    write("sys/devices/system/node/node0/cpulist", &long);
    for pid in 1..5_000 {
        write(&format!("proc/{pid}/status"), &format!("Name:\tvhost-1\nPid:\t{pid}\nCpus_allowed_list:\t0-3\n"));
    }
    let affinities: Vec<String> =
        (0..50_000).map(|at| format!(r#"{{"pid":{at},"tid":{at},"thread":"CPU 0/KVM","affinity":[0]}}"#)).collect();
    write("cpu_affinities.json", &format!("[{}]", affinities.join(",")));
    write("etc/openvswitch/conf.db", &"OVSDB JSON 1 a\n{}\n".repeat(LINES));
    let machine = Machine::of_snapshots(&[Snapshot::open(Path::new(root.path())).unwrap()]);
    assert!(machine.topology.cpus.is_empty(), "lists of 14 MB are none");
    assert!(machine.domains.len() <= budget::DOMAINS);
}
