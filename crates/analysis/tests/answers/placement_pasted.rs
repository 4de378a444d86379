//! What is said about pasted text: of which machine it is, what it lacks, and what it cannot be.

use base::Section;
use base::figure::Drawing;
use kvmscope_analysis::placement::{Wishes, build, section::section};

const LSCPU: &str = "CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE\n0 0 0 0 0:0:0:0 yes\n1 0 0 1 1:1:1:0 yes\n\
                     2 0 0 2 2:2:2:1 yes\n3 1 1 3 3:3:3:2 yes\n4 0 0 0 0:0:0:0 yes\n5 0 0 1 1:1:1:0 yes\n6 0 0 2 2:2:2:1 yes\n\
                     7 1 1 3 3:3:3:2 yes\n";

const TOP: &str = "top - 10:22:31 up 41 days,  3:11,  2 users,  load average: 5.92, 5.81, 5.66\n\n\
                   PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ P COMMAND\n\
                   41203 qemu    20   0 9437184 8.012g  14236 R  92.3  6.4   8123:11 1 CPU 0/KVM\n\
                   41210 root    20   0       0      0      0 R  99.0  0.0   3123:02 2 vhost-41190\n";

fn of(text: &str) -> Section {
    let machine = host::paste::read(&[("ticket".to_owned(), text.to_owned())]);
    section(&[build::model(base::Level::At(0), "L0", machine, true, &Wishes::default())])
}

fn found<'s>(section: &'s Section, rule: &str) -> Option<&'s base::Finding> {
    section.findings.iter().find(|finding| finding.rule == rule)
}

#[test]
fn a_screen_of_threads_alone_has_a_vm_and_lacks_the_topology_first() {
    let section = of(&format!("Please help\n{TOP}"));
    assert!(section.about[0].contains("1 VM with 1 vCPU, 1 vhost thread"), "{:?}", section.about);
    assert!(!section.summary.contains("No VM"), "{}", section.summary);
    let lacks: Vec<&str> = section.unknown.iter().map(|unknown| unknown.what.as_str()).collect();
    assert_eq!(lacks[..2], ["topology", "not_understood"], "{:?}", section.unknown);
    assert!(section.unknown[0].text.contains("also paste `lscpu -e`"), "{}", section.unknown[0].text);
    assert_eq!(section.unknown[1].text, "ticket: 1 line not understood, the first: line 1 `Please help`");
    let nodes = of("CPU CORE\n0 0\n1 1\n").unknown;
    assert_eq!(nodes[0].what, "nodes", "{nodes:?}");
}

#[test]
fn what_siblings_take_from_each_other_is_told_apart_from_waiting() {
    let pins =
        |second: u32| format!("$ virsh vcpupin web\n VCPU   CPU Affinity\n-----\n 0      1\n 1      {second}\n\n");
    let busy =
        TOP.replace(" 92.3", " 99.0").replace("99.0  0.0   3123:02 2 vhost-41190", "99.0  6.4   8000:00 1 CPU 1/KVM");
    let short = |second: u32| {
        let section = of(&(LSCPU.to_owned() + "\n" + &pins(second) + &busy));
        let found = found(&section, "PLC-PROPOSAL").unwrap_or_else(|| panic!("{:?}", section.findings));
        found.evidence[0].what.clone()
    };
    assert!(short(5).contains("0.72 of those now are what busy siblings take from each other"), "{}", short(5));
    assert!(!short(1).contains("siblings"), "two on one CPU wait: {}", short(1));
}

#[test]
fn vcpus_that_nobody_saw_are_not_counted() {
    let rows = "top -Hp 49440\n\n   PID USER      PR  NI    VIRT    RES    SHR S %CPU %MEM     TIME+ COMMAND\n\
                \x20 49451 qemu      20   0 6428280   1.9g  21188 R 99.3  0.5 142:35.05 CPU 3/TCG\n\
                \x20 49452 qemu      20   0 6428280   1.9g  21188 R 99.3  0.5   3:58.55 CPU 4/TCG\n";
    let section = of(rows);
    assert!(
        section.about[0].ends_with("1 VM with at least 5 vCPUs")
            && section.about[1] == "1 pasted text: 4 lines used here",
        "{:?}",
        section.about
    );
    let vcpus = section.unknown.iter().find(|unknown| unknown.what == "vcpus").unwrap();
    assert_eq!(vcpus.text, "VM 1 has 5 vCPUs or more; threads were seen for these numbers alone: 3-4.");
    assert!(found(&section, "PLC-TCG").is_some());
    let all = of(&rows.replace("CPU 3/", "CPU 0/").replace("CPU 4/", "CPU 1/"));
    assert!(all.unknown.iter().all(|unknown| unknown.what != "vcpus"), "{:?}", all.unknown);
}

#[test]
fn that_there_is_no_vm_says_only_who_saw_all_processes() {
    let pasted = of(LSCPU);
    assert!(
        pasted
            .summary
            .starts_with("Which threads of VMs run where is unknown. If this is of a host with VMs, also paste"),
        "{}",
        pasted.summary
    );
    let of_files = |lists_processes| {
        let machine = host::Machine { lists_processes, ..host::paste::read(&[("t".to_owned(), LSCPU.to_owned())]) };
        section(&[build::model(base::Level::At(0), "L0", machine, false, &Wishes::default())]).summary
    };
    assert!(of_files(true).starts_with("No VM was found"));
    assert_eq!(of_files(false), "No process was read, so whether VMs run here is unknown.");
}

#[test]
fn a_guest_that_qemu_emulates_does_not_use_kvm() {
    let section = of(&TOP.replace("/KVM", "/TCG"));
    let finding = found(&section, "PLC-TCG").expect("the thread's name tells it");
    assert_eq!(finding.title, "process-41190 does not use KVM: QEMU emulates its vCPUs");
    assert!(section.summary.starts_with(&finding.title), "{}", section.summary);
    assert!(found(&of(TOP), "PLC-TCG").is_none());
}

#[test]
fn cpus_that_the_topology_lacks_are_of_another_host() {
    let pins = |cpu: u32| format!("$ virsh vcpupin web\n VCPU   CPU Affinity\n-----\n 0      {cpu}\n 1      1\n\n");
    let two = of(&format!("{LSCPU}\n{}{TOP}", pins(40)));
    assert!(found(&two, "EVD-HOSTS").is_some(), "CPUs end at 7");
    assert!(found(&two, "PLC-OFFLINE").is_none(), "they are not off, they are elsewhere");
    assert!(found(&of(&format!("{LSCPU}\n{}{TOP}", pins(3))), "EVD-HOSTS").is_none());
    let off =
        of(&format!("{}\n{}", LSCPU.replace("3 1 1 3 3:3:3:2 yes", "3 - - - - no"), pins(3).replace(" 3", " 2-3")));
    assert!(found(&off, "PLC-OFFLINE").is_some() && found(&off, "EVD-HOSTS").is_none());
}

#[test]
fn a_thread_at_two_moments_is_no_crowd() {
    let row = "09:00:03      107         -     41210    0.00   99.00    0.00    1.00   99.00     2  |__vhost-41190\n";
    let other = row.replace("41210", "41211");
    assert!(found(&of(&format!("{row}{other}{}", row.replace(":03", ":04"))), "EVD-CPU").is_none());
    assert!(found(&of(&TOP.replace("1 CPU 0", "2 CPU 0")), "EVD-CPU").is_some(), "two threads of one moment");
}

#[test]
fn packages_and_caches_are_in_figure_and_table() {
    let pins = "$ virsh vcpupin web\n VCPU   CPU Affinity\n-----\n 0      0\n 1      1\n\n";
    let section = of(&format!("{LSCPU}\n{pins}"));
    let about = "L0: 8 CPUs on 4 cores, 2 packages, 3 last-level caches and 2 nodes; 1 VM with 2 vCPUs";
    assert_eq!(section.about[0], about);
    let Drawing::Topology(panels) = &section.figures[0].drawing else { panic!("a topology") };
    let titles: Vec<&str> = panels[0].nodes.iter().map(|node| node.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "package 0, node 0, cache of CPUs 0-1,4-5",
            "package 0, node 0, cache of CPUs 2,6",
            "package 1, node 1, cache of CPUs 3,7"
        ]
    );
    let cpus = section.table("cpus").unwrap();
    let last = cpus.rows().last().unwrap();
    assert_eq!(
        (last.number("cpu"), last.number("package"), last.number("last_cache")),
        (Some(7.0), Some(1.0), Some(3.0))
    );
    // With one package and one cache on each node there is nothing more to say than the node.
    let plain = of(&format!("CPU NODE SOCKET CORE\n0 0 0 0\n1 1 0 1\n\n{pins}"));
    let Drawing::Topology(panels) = &plain.figures[0].drawing else { panic!("a topology") };
    assert_eq!(panels[0].nodes[0].title, "node 0");
}
