//! What the host waits for besides CPUs, told by what people paste: each rule fires on its case and is silent on the neighbour.

use base::Section;
use kvmscope_analysis::placement::{Wishes, build, section::section};

fn of(text: &str) -> Section {
    let machine = host::paste::read(&[("t".to_owned(), text.to_owned())]);
    section(&[build::model(base::Level::At(0), "L0", machine, true, &Wishes::default())])
}

fn rules(text: &str) -> Vec<String> {
    of(text).findings.iter().map(|finding| finding.rule.to_string()).collect()
}

/// Fires on the first text, alone, and not on the second.
fn decides(rule: &str, fires: &str, silent: &str) {
    assert_eq!(rules(fires), [rule], "{fires}");
    assert_eq!(rules(silent), Vec::<String>::new(), "{silent}");
}

#[test]
fn memory_and_disks() {
    let vmstat = |swapped: u32, wait: u32| {
        format!(
            " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n 1  3      0 100000  10000 200000 {swapped}    0     0     5  900 1200 10  5 {} {wait} 0\n",
            85 - wait
        )
    };
    decides("PLC-SWAP", &vmstat(1_024, 0), &vmstat(1_023, 0));
    decides("PLC-IOWAIT", &vmstat(0, 20), &vmstat(0, 19));
    let domstats = |delay: u32| {
        format!(
            "$ virsh domstats --vcpu app\nDomain: 'app'\n  vcpu.current=1\n  vcpu.0.state=1\n  vcpu.0.time=900\n  vcpu.0.delay={delay}\n"
        )
    };
    let group = |throttled: u32| {
        format!(
            "$ cat /sys/fs/cgroup/cpu.max\n200000 100000\n$ cat /sys/fs/cgroup/cpu.stat\nusage_usec 8\nnr_periods 1000\nnr_throttled {throttled}\nthrottled_usec 9\n"
        )
    };
    decides("PLC-THROTTLED", &group(100), &group(99));
    decides("PLC-WAITED", &domstats(100), &domstats(99));
    let iostat = |busy: &str, write: &str| {
        format!(
            "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util\nsda              1.00      4.00     0.00   0.00    1.00     4.00  100.00   4000.00     0.00   0.00   {write}    40.00    2.00  {busy}\n"
        )
    };
    decides("PLC-IOWAIT", &iostat("99.80", "121.00"), &iostat("99.80", "1.20"));
    decides("PLC-IOWAIT", &iostat("99.80", "121.00"), &iostat("60.00", "121.00"));
    let pressure =
        |some: &str| format!("# cat /proc/pressure/memory\nsome avg10={some} avg60=0.00 avg300=0.00 total=1\n");
    decides("PLC-PRESSURE", &pressure("10.00"), &pressure("9.99"));
    let sar = |queue: u32| {
        format!(
            "Linux 5.14.0 (kvm7)  11/28/2026  _x86_64_  (4 CPU)\n\n10:11:11   runq-sz  plist-sz   ldavg-1   ldavg-5  ldavg-15   blocked\n10:11:12    {queue}   900   8.00   8.00   8.00   0\n"
        )
    };
    decides("PLC-PRESSURE", &sar(8), &sar(7));
    assert_eq!(rules(&sar(8)[52..]), Vec::<String>::new(), "nobody told how many CPUs there are");
    let numastat = |here: u32, there: u32| {
        format!(
            "Per-node process memory usage (in MBs)\nPID              Node 0 Node 1 Total\n---------------  ------ ------ -----\n10587 (qemu-kvm)   {here} {there} {}\n",
            here + there
        )
    };
    decides("PLC-SPREAD", &numastat(890, 110), &numastat(900, 100));
    let other = numastat(500, 500).replace("qemu-kvm", "postgres");
    assert_eq!(rules(&other), Vec::<String>::new(), "no guest's");
}

#[test]
fn the_kernel_and_its_threads() {
    let log = |line: &str| format!("[    2.345678] {line}\n");
    decides(
        "PLC-KERNEL",
        &log("tsc: Marking TSC unstable due to clocksource watchdog"),
        &log("clocksource: Switched to clocksource tsc"),
    );
    let top = |name: &str, share: &str| {
        format!(
            "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n     98 root      25   5       0      0      0 R  {share}   0.0   9012:11 {name}\n"
        )
    };
    decides("PLC-KTHREAD", &top("ksmd", "20.0"), &top("ksmd", "19.9"));
    decides("PLC-KTHREAD", &top("ksoftirqd/3", "93.0"), &top("ksmdx", "93.0"));
    let mpstat = |soft: &str, idle: &str| {
        format!(
            "10:11:01 AM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n10:11:02 AM    0    0.00    0.00    0.00    0.00    0.00   {soft}    0.00    0.00    0.00    {idle}\n"
        )
    };
    decides("PLC-SOFTIRQ", &mpstat("80.00", "20.00"), &mpstat("79.00", "21.00"));
}

#[test]
fn ports_that_drop() {
    let port = |dropped: u32| {
        format!(
            "# ovs-vsctl get interface vhu1 statistics\n{{ovs_tx_failure_drops={dropped}, tx_packets=999000, rx_packets=5}}\n"
        )
    };
    decides("PLC-DROPS", &port(1_000), &port(900));
    let look = |packets: u32, lost: u32| {
        format!("$ ethtool -S eth3\nNIC statistics:\n     rx_packets: {packets}\n     rx_out_of_buffer: {lost}\n")
    };
    let looks = |lost: u32| look(5, 7_000) + &look(999_005, 7_000 + lost);
    decides("PLC-DROPS", &looks(1_000), &looks(900));
    assert_eq!(rules(&look(5, 7_000)), Vec::<String>::new(), "one look does not say when it dropped them");
    let title = of(&port(1_000)).findings[0].title.clone();
    assert!(title.starts_with("vhu1 dropped 0.1 % of its packets: the guest's queue was full"), "{title}");
}

#[test]
fn what_a_paste_does_not_tell_is_said_where_it_shows_nothing() {
    let pins = "$ virsh vcpupin web\n VCPU   CPU Affinity\n-----\n 0      1\n";
    let said = of(pins).summary;
    assert_eq!(
        said,
        "Nothing here shows threads of VMs competing for a CPU; of memory, disks and interrupts it says nothing."
    );
    let memory = format!(
        "{pins}\n$ free -m\n              total        used        free      shared  buff/cache   available\nMem:         128712      127890         198          12         624         310\n"
    );
    assert!(of(&memory).summary.ends_with("of disks and interrupts it says nothing."), "{}", of(&memory).summary);
}

/// A domain of that XML on four cores of two threads each, CPUs n and n + 4.
fn defined(vendor: &str, pins: &[u32], cpu: &str) -> Section {
    let rows: String = (0..8).map(|cpu| format!("{cpu} 0 0 {}\n", cpu % 4)).collect();
    let pins: String =
        pins.iter().enumerate().map(|(vcpu, cpu)| format!("<vcpupin vcpu='{vcpu}' cpuset='{cpu}'/>")).collect();
    of(&format!(
        "$ lscpu\nArchitecture: x86_64\nCPU(s): 8\nOn-line CPU(s) list: 0-7\nThread(s) per core: 2\nCore(s) per socket: 4\nSocket(s): 1\nVendor ID: {vendor}\n\
         $ lscpu -e=CPU,NODE,SOCKET,CORE\nCPU NODE SOCKET CORE\n{rows}\n<domain type='kvm'><name>vm1</name><vcpu>4</vcpu><cputune>{pins}</cputune>{cpu}</domain>\n"
    ))
}

fn commands(section: &Section, rule: &str) -> Vec<String> {
    section.findings.iter().filter(|finding| finding.rule == rule).flat_map(|finding| finding.fix.clone()).collect()
}

#[test]
fn siblings_in_another_order_are_put_in_order_while_the_vm_runs() {
    let cpu = |threads: u32| {
        format!("<cpu mode='host-model'><topology sockets='1' cores='{}' threads='{threads}'/></cpu>", 4 / threads)
    };
    let wrong = defined("GenuineIntel", &[0, 1, 4, 5], &cpu(2));
    assert_eq!(
        commands(&wrong, "PLC-FALSESMT"),
        ["virsh vcpupin vm1 1 4 --live --config", "virsh vcpupin vm1 2 1 --live --config"]
    );
    let typed = defined("GenuineIntel", &[0, 4, 1, 5], &cpu(2));
    assert!(
        commands(&typed, "PLC-FALSESMT").is_empty() && commands(&typed, "PLC-SMT").is_empty(),
        "typed, nothing asks for the reverse"
    );
    // Two siblings and two cores: no topology fits, and none is typed.
    for threads in [1, 2] {
        let hybrid = defined("GenuineIntel", &[0, 4, 1, 2], &cpu(threads));
        assert!(commands(&hybrid, "PLC-SMT").iter().all(|command| command.starts_with("kvmscope check")));
        assert!(commands(&hybrid, "PLC-FALSESMT").iter().all(|command| command.contains("threads='1'")));
    }
}

#[test]
fn amd_shows_threads_only_where_it_is_asked_for_them() {
    let cpu = |mode: &str, feature: &str| {
        format!("<cpu mode='{mode}'><topology sockets='1' cores='2' threads='2'/>{feature}</cpu>")
    };
    let require = "<feature policy='require' name='topoext'/>";
    let has = |vendor: &str, cpu: &str| !commands(&defined(vendor, &[0, 4, 1, 5], cpu), "PLC-TOPOEXT").is_empty();
    assert!(has("AuthenticAMD", &cpu("host-passthrough", "")));
    assert!(!has("AuthenticAMD", &cpu("host-passthrough", require)));
    assert!(!has("GenuineIntel", &cpu("host-passthrough", "")));
    let disabled = "<feature policy='disable' name='topoext'/>";
    assert!(has("AuthenticAMD", &cpu("custom", disabled)) && !has("AuthenticAMD", &cpu("custom", "")));
    let flat = defined(
        "AuthenticAMD",
        &[0, 4, 1, 5],
        "<cpu mode='host-passthrough'><topology sockets='1' cores='4' threads='1'/></cpu>",
    );
    assert!(commands(&flat, "PLC-SMT")[0].contains(require), "{:?}", commands(&flat, "PLC-SMT"));
}

#[test]
fn windows_and_guests_without_kvm() {
    let windows = |hyperv: &str, clock: &str| {
        rules(&format!(
            "<domain type='kvm'><name>w</name><vcpu>1</vcpu><cpu mode='host-model'/><features><hyperv>{hyperv}</hyperv></features><clock offset='localtime'>{clock}</clock></domain>\n"
        ))
    };
    let all = ["relaxed", "vapic", "spinlocks", "vpindex", "synic", "stimer"]
        .map(|name| format!("<{name} state='on'/>"))
        .concat();
    let clock = "<timer name='hypervclock' present='yes'/>";
    assert_eq!(windows(&all, clock), Vec::<String>::new());
    assert_eq!(windows(&all, ""), ["PLC-HYPERV"]);
    assert_eq!(windows(&all.replace("<stimer state='on'/>", ""), clock), ["PLC-HYPERV"]);
    let linux = rules(
        "<domain type='kvm'><name>w</name><vcpu>1</vcpu><cpu mode='host-model'/><clock offset='utc'/></domain>\n",
    );
    assert_eq!(linux, Vec::<String>::new());
    let translated = rules("<domain type='qemu'><name>w</name><vcpu>1</vcpu><cpu mode='host-model'/></domain>\n");
    assert_eq!(translated, ["PLC-TCG"]);
    let typed = "$ ps -ef\nlibvirt+    4242       1 399 10:00 ?        01:13:22 /usr/bin/qemu-system-x86_64 -name guest=vm1 -accel tcg -m 4096 -smp 4\n";
    assert_eq!(rules(typed), ["PLC-TCG"]);
    assert_eq!(rules(&typed.replace("-accel tcg", "-accel kvm")), Vec::<String>::new());
}

#[test]
fn a_disk_is_told_as_it_must_read() {
    let disk = |format: &str, bus: &str, iothreads: &str| {
        of(&format!(
            "<domain type='kvm'><name>w</name><vcpu>1</vcpu>{iothreads}<cpu mode='host-model'/><devices><disk type='file' device='disk'><driver name='qemu' type='{format}' io='native'/><target dev='sda' bus='{bus}'/></disk></devices></domain>\n"
        ))
    };
    let qcow2 = commands(&disk("qcow2", "virtio", "<iothreads>1</iothreads>"), "PLC-DISK");
    assert_eq!(qcow2, ["virsh edit w   # <driver name='qemu' type='qcow2' cache='none' io='native' iothread='1'/>"]);
    let sata = commands(&disk("raw", "sata", ""), "PLC-DISK");
    assert!(sata[0].contains("<iothreads>1</iothreads>") && sata[1].contains("virtio driver"), "{sata:?}");
    assert!(sata[2].contains("type='raw'") && sata[2].contains("<target dev='vda' bus='virtio'/>"), "{sata:?}");
}

#[test]
fn elements_of_definitions() {
    let domain = |inside: &str| {
        rules(&format!("<domain type='kvm'><name>w</name><vcpu>2</vcpu><cpu mode='host-model'/>{inside}</domain>\n"))
    };
    let decides = |rule: &str, fires: &str, silent: &str| {
        assert_eq!((domain(fires), domain(silent)), (vec![rule.to_owned()], Vec::new()), "{fires}");
    };
    let timer =
        |name: &str, present: &str| format!("<clock offset='utc'><timer name='{name}' present='{present}'/></clock>");
    decides("PLC-CLOCKS", &timer("kvmclock", "no"), &timer("kvmclock", "yes"));
    decides("PLC-CLOCKS", &timer("hpet", "yes"), &timer("hpet", "no"));
    let quota = |quota: i32| format!("<cputune><period>100000</period><quota>{quota}</quota></cputune>");
    decides("PLC-LIMIT", &quota(50_000), &quota(-1));
    decides("PLC-LIMIT", "<cputune><shares>2</shares></cputune>", "<cputune><shares>1024</shares></cputune>");
    let sched = |vcpus: &str, priority: u32| {
        format!("<cputune><vcpusched vcpus='{vcpus}' scheduler='fifo' priority='{priority}'/></cputune>")
    };
    decides("PLC-FIFO", &sched("0-1", 1), &sched("1", 1));
    decides("PLC-FIFO", &sched("1", 99), &sched("1", 98));
    decides(
        "PLC-NOVCPU",
        "<cputune><vcpupin vcpu='2' cpuset='3'/></cputune>",
        "<cputune><vcpupin vcpu='1' cpuset='3'/></cputune>",
    );
    let memory = |all: u64, now: u64| {
        format!("<memory unit='GiB'>{all}</memory><currentMemory unit='GiB'>{now}</currentMemory>")
    };
    decides("PLC-RAM", &memory(16, 7), &memory(16, 8));
    decides("PLC-RAM", &memory(32, 32), &memory(31, 31));
    let switch = |backing: &str| {
        format!(
            "<memoryBacking><hugepages/>{backing}</memoryBacking><devices><interface type='vhostuser'><source type='unix' path='/a'/><model type='virtio'/></interface></devices>"
        )
    };
    decides("PLC-RAM", &switch(""), &switch("<access mode='shared'/>"));
}
