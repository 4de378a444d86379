//! The audit for real time: a host on which everything is as wanted, and what one change makes of it; ordinary hosts are not asked.

use base::recording::Recording;
use base::{Finding, Section, Severity};
use kvmscope_analysis::facts::budget::Budget;
use kvmscope_analysis::facts::losses::{Definition, VcpuLosses};
use kvmscope_analysis::{Answers, Case, Given, Input};
use std::collections::BTreeMap;
use std::path::Path;

/// Files of both samples; one text is that of both.
type Files = BTreeMap<String, [String; 2]>;

fn put(files: &mut Files, path: &str, first: &str, last: &str) {
    files.insert(path.to_owned(), [first.to_owned(), last.to_owned()]);
}

fn same(files: &mut Files, path: &str, text: &str) {
    put(files, path, text, text);
}

/// A thread of QEMU's process 10, or a program of its own: what it ran in 2 s, in ns.
fn task(files: &mut Files, (pid, tid): (u32, u32), comm: &str, cpu: u32, policy: u32, priority: u32, ran_ns: u64) {
    let of = |file: &str| format!("proc/{pid}/task/{tid}/{file}");
    same(files, &of("comm"), comm);
    let mut fields = vec!["0".to_owned(); 50];
    fields[0] = "S".into();
    (fields[19], fields[36], fields[37], fields[38]) =
        ("900".into(), cpu.to_string(), priority.to_string(), policy.to_string());
    same(files, &of("stat"), &format!("{tid} ({comm}) {}", fields.join(" ")));
    same(files, &of("status"), &format!("Name:\t{comm}\nTgid:\t{pid}\nCpus_allowed_list:\t{cpu}\n"));
    put(files, &of("schedstat"), "1000000000 0 100", &format!("{} 0 200", 1_000_000_000 + ran_ns));
}

/// Rows of `/proc/interrupts` with counts for four CPUs, before and after 2 s.
fn interrupts(files: &mut Files, loc: [u64; 4], nmi: [u64; 4], device: [u64; 4]) {
    let row = |name: &str, counts: [u64; 4], what: &str| {
        let counts: Vec<String> = counts.iter().map(|count| format!("{:>10}", 1_000 + count)).collect();
        format!("{name}: {} {what}\n", counts.join(" "))
    };
    let text = |of: fn(u64) -> u64| {
        let [loc, nmi, device] = [loc, nmi, device].map(|counts| counts.map(of));
        format!(
            "            CPU0       CPU1       CPU2       CPU3\n{}{}{}",
            row(" 24", device, "PCI-MSI 1-edge eth0-rx-0"),
            row("NMI", nmi, "Non-maskable interrupts"),
            row("LOC", loc, "Local timer interrupts")
        )
    };
    put(files, "proc/interrupts", &text(|_| 0), &text(|count| count));
}

const BOOT: &str = "BOOT_IMAGE=/vmlinuz-6.1.0 ro isolcpus=managed_irq,domain,2-3 nohz=on nohz_full=2-3 rcu_nocbs=2-3 \
                    irqaffinity=0-1 skew_tick=1 tsc=reliable processor.max_cstate=1 pcie_aspm=off mce=ignore_ce";

const QEMU: &str = "/usr/bin/qemu-system-x86_64\0-name\0guest=rt,debug-threads=on\0-enable-kvm\0-cpu\0";

/// What `ethtool -l eth0` prints of a card with eight channels at most.
fn channels(now: u32) -> String {
    let table = |combined: u32| format!("RX:\t\tn/a\nTX:\t\tn/a\nOther:\t\tn/a\nCombined:\t{combined}\n");
    format!("Channel parameters for eth0:\nPre-set maximums:\n{}Current hardware settings:\n{}", table(8), table(now))
}

/// Four CPUs, of which 2 and 3 are for the two vCPUs of a guest with a real-time policy.
fn wanted() -> Files {
    let mut files = Files::new();
    let all = &mut files;
    same(all, "proc/version", "Linux version 6.1.0-rt (x@y) #1 SMP PREEMPT_RT");
    same(all, "proc/cmdline", BOOT);
    same(
        all,
        "proc/cpuinfo",
        "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: vmx tsc constant_tsc nonstop_tsc\n\n",
    );
    let cpus = "sys/devices/system/cpu";
    for (file, text) in [("online", "0-3"), ("possible", "0-3"), ("isolated", "2-3"), ("nohz_full", "2-3")] {
        same(all, &format!("{cpus}/{file}"), text);
    }
    for cpu in 0..4 {
        let of = |file: &str| format!("{cpus}/cpu{cpu}/{file}");
        same(all, &of("topology/thread_siblings_list"), &cpu.to_string());
        same(all, &of("topology/core_id"), &cpu.to_string());
        same(all, &of("topology/physical_package_id"), "0");
        same(all, &of("cpufreq/scaling_governor"), "performance");
        put(all, &of("cpufreq/scaling_cur_freq"), "3000000", "3010000");
        same(all, &of("power/energy_perf_bias"), "0");
        same(all, &of("cpuidle/state2/name"), "C6");
        same(all, &of("cpuidle/state2/latency"), "133");
        put(all, &of("cpuidle/state2/usage"), "500", if cpu < 2 { "2500" } else { "500" });
    }
    let busy = |sample: u64| {
        let row = |cpu: u64| {
            let (user, idle) = if cpu < 2 { (10 * sample, 190 * sample) } else { (190 * sample, 10 * sample) };
            format!("cpu{cpu} {user} 0 0 {idle} 0 0 0 0 0 0\n")
        };
        format!("cpu 0 0 0 0 0 0 0 0 0 0\n{}", (0..4).map(row).collect::<String>())
    };
    put(all, "proc/stat", &busy(1), &busy(2));
    interrupts(all, [2_000, 2_000, 20, 30], [0; 4], [600, 0, 0, 0]);
    for (path, text) in [
        ("proc/irq/default_smp_affinity", "3"),
        ("proc/irq/24/smp_affinity_list", "0-1"),
        ("proc/sys/kernel/sched_rt_runtime_us", "-1"),
        ("proc/sys/kernel/sched_rt_period_us", "1000000"),
        ("proc/sys/kernel/numa_balancing", "0"),
        ("proc/sys/kernel/hung_task_timeout_secs", "600"),
        ("proc/sys/kernel/watchdog", "0"),
        ("proc/sys/kernel/nmi_watchdog", "0"),
        ("proc/sys/kernel/timer_migration", "0"),
        ("proc/sys/vm/stat_interval", "10"),
        ("proc/sys/vm/swappiness", "10"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
        ("sys/devices/virtual/workqueue/cpumask", "3"),
        ("sys/devices/virtual/workqueue/writeback/cpumask", "3"),
        ("sys/kernel/mm/ksm/run", "2"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]"),
        ("sys/kernel/realtime", "1"),
        ("sys/module/kvm/parameters/kvmclock_periodic_sync", "N"),
        ("sys/module/kvm/parameters/halt_poll_ns", "0"),
        ("sys/module/kvm/parameters/lapic_timer_advance", "Y"),
        ("sys/module/kvm/parameters/nx_huge_pages", "N"),
        ("sys/module/kvm_intel/parameters/enable_apicv", "Y"),
        ("sys/module/kvm_intel/parameters/ple_gap", "0"),
        ("sys/module/kvm_intel/parameters/preemption_timer", "Y"),
        ("sys/module/rcupdate/parameters/rcu_normal_after_boot", "1"),
    ] {
        same(all, path, text);
    }
    task(all, (1, 1), "systemd", 0, 0, 0, 0);
    same(all, "proc/1/task/1/status", "Name:\tsystemd\nCpus_allowed_list:\t0-1\n");
    task(all, (2, 2), "kthreadd", 0, 0, 0, 0);
    task(all, (31, 31), "rcuop/2", 0, 0, 0, 0);
    task(all, (32, 32), "rcuop/3", 0, 0, 0, 0);
    task(all, (41, 41), "ksoftirqd/2", 2, 1, 2, 0);
    same(all, "proc/10/cmdline", &format!("{QEMU}host,pmu=off,migratable=off\0"));
    task(all, (50, 50), "irqbalance", 0, 0, 0, 0);
    same(all, "etc/default/irqbalance", "IRQBALANCE_ARGS=");
    same(all, "sys/class/net/eth0/type", "1");
    same(all, "commands/ethtool_-l_eth0", &channels(2));
    task(all, (10, 10), "qemu-system-x86", 0, 0, 0, 10_000_000);
    task(all, (10, 12), "CPU 0/KVM", 2, 1, 1, 1_900_000_000);
    task(all, (10, 13), "CPU 1/KVM", 3, 1, 1, 1_900_000_000);
    files
}

fn write(root: &Path, files: &Files) {
    for sample in [0, 1] {
        let tree = root.join(format!("L0/host/{sample}"));
        let mut times = serde_json::Map::new();
        for (path, texts) in files {
            let file = tree.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, format!("{}\n", texts[sample])).unwrap();
            times.insert(path.clone(), (1_000_000_000_000_u64 + 2_000_000_000 * sample as u64).into());
        }
        let times = serde_json::json!({ "clock": "monotonic", "files": times });
        std::fs::write(tree.join("times.json"), times.to_string()).unwrap();
        let links = serde_json::json!({ "sys/class/net/eth0/device": "../../../0000:04:00.0" });
        std::fs::write(tree.join("links.json"), links.to_string()).unwrap();
    }
    let part = |sample: u32| {
        let path = format!("L0/host/{sample}");
        serde_json::json!({ "path": path, "machine": "L0", "kind": "host", "clock": "monotonic", "state": "complete" })
    };
    let manifest = serde_json::json!({
        "schema": "kvmscope-recording/1", "created": "2026-11-22T23:42:08Z", "tool": "kvmscope snapshot 0.1.0", "emulated": null,
        "machines": [{ "id": "L0", "level": 0, "parent": null, "name": null }], "parts": [part(0), part(1)]
    });
    std::fs::write(root.join("recording.json"), manifest.to_string()).unwrap();
}

fn sections(files: &Files, given: Given) -> Vec<Section> {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), files);
    let case = Case::new(Input::open(Recording::open(root.path()).unwrap()).unwrap(), given);
    Answers::about(&case, &[kvmscope_analysis::About::Setup]).sections
}

fn audit(files: &Files) -> Section {
    let sections = sections(files, Given::default());
    sections.into_iter().find(|section| section.id == "realtime").expect("real time is asked for")
}

/// The finding of a rule after one change of the wanted host, on which there is none.
fn found(rule: &str, change: impl FnOnce(&mut Files)) -> Finding {
    let mut files = wanted();
    change(&mut files);
    let findings = audit(&files).findings;
    let found: Vec<&str> = findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(found, [rule], "one change, one finding");
    findings.into_iter().next().unwrap()
}

#[test]
fn a_host_that_is_as_wanted_has_no_finding_and_a_row_for_each_knob() {
    let section = audit(&wanted());
    assert!(section.findings.is_empty(), "{:#?}", section.findings);
    assert_eq!(
        section.about,
        [
            "L0: real time is asked for: 2 vCPUs on isolated or tickless CPUs, 2 vCPUs with a real-time policy and a PREEMPT_RT kernel; the CPUs of real time are 2-3"
        ]
    );
    let knobs = section.table("knobs").unwrap();
    for row in &knobs.rows {
        assert!(row.iter().zip(knobs.spec.columns).all(|(cell, column)| column.kind.takes(cell)), "{row:?}");
    }
    let state = |id: &str| {
        let row = knobs.rows().find(|row| row.text("id") == Some(id)).unwrap_or_else(|| panic!("{id}"));
        (row.text("state").unwrap().to_owned(), row.text("effect").map(str::to_owned))
    };
    assert_eq!(state("LAT-SMI").0, "unknown", "no file tells of them");
    let (set, effect) = state("LAT-NOHZ");
    assert_eq!(
        (set.as_str(), effect.as_deref()),
        ("as wanted", Some("at most 15 local timer interrupts per second on a busy CPU of 2-3"))
    );
    for id in ["LAT-ISOLCPUS", "LAT-RCU", "LAT-GOVERNOR", "LAT-CSTATE", "LAT-IRQAFFINITY", "LAT-WORKQUEUE", "LAT-NMI"] {
        let (set, effect) = state(id);
        assert!(set == "as wanted" && effect.is_some(), "{id}: {set} {effect:?}");
    }
    let unknown: Vec<_> = knobs.rows().filter(|row| row.text("state") == Some("unknown")).collect();
    assert_eq!(section.unknown[0].amount, Some(unknown.len() as f64));
    assert!(unknown.len() < 9, "{}", section.unknown[0].text);
}

#[test]
fn knobs_that_are_set_and_have_no_effect_are_worse_than_others() {
    type Change = Box<dyn FnOnce(&mut Files)>;
    let cases: [(&str, &str, Change); 9] = [
        (
            "LAT-NOHZ",
            "nohz_full is set and has no effect: the tick runs on CPUs 3: up to 250 local timer interrupts per second",
            Box::new(|files| interrupts(files, [2_000, 2_000, 20, 500], [0; 4], [600, 0, 0, 0])),
        ),
        (
            "LAT-ISOLCPUS",
            "isolcpus is set and has no effect: other tasks ran on CPUs 2-3: backupd on CPU 3 (10.0 %)",
            Box::new(|files| task(files, (70, 70), "backupd", 3, 0, 0, 200_000_000)),
        ),
        (
            "LAT-RCU",
            "rcu_nocbs is set and has no effect: no thread rcuo for CPUs 3",
            Box::new(|files| files.retain(|path, _| !path.starts_with("proc/32/"))),
        ),
        (
            "LAT-IRQAFFINITY",
            "default_smp_affinity is set and has no effect: device interrupts came to CPUs 2-3: eth0-rx-0 (interrupt 24) 450 times per second",
            Box::new(|files| interrupts(files, [2_000, 2_000, 20, 30], [0; 4], [600, 0, 0, 900])),
        ),
        (
            "LAT-GOVERNOR",
            "scaling_governor is set and has no effect: CPU 2 ran at 3000 MHz at first and 1200 MHz at last",
            Box::new(|files| put(files, "sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "3000000", "1200000")),
        ),
        (
            "LAT-CSTATE",
            "processor.max_cstate is set and has no effect: CPU 3 entered C6 100 times per second, which takes 133 us to leave",
            Box::new(|files| put(files, "sys/devices/system/cpu/cpu3/cpuidle/state2/usage", "500", "700")),
        ),
        (
            "LAT-NMI",
            "nmi_watchdog is set and has no effect: up to 5.0 NMIs per second, on CPU 2",
            Box::new(|files| interrupts(files, [2_000, 2_000, 20, 30], [0, 0, 10, 0], [600, 0, 0, 0])),
        ),
        (
            "LAT-TYPO",
            "pcie_asmp on the kernel's command line sets nothing: pcie_aspm was meant",
            Box::new(|files| {
                same(files, "proc/cmdline", &BOOT.replace("pcie_aspm", "pcie_asmp"));
                same(files, "sys/module/pcie_aspm/parameters/policy", "default [performance] powersave");
            }),
        ),
        (
            "LAT-NOHZ",
            "nohz_full=2-3 was asked for at boot, and the kernel has none",
            Box::new(|files| same(files, "sys/devices/system/cpu/nohz_full", "(null)")),
        ),
    ];
    for (rule, title, change) in cases {
        let finding = found(rule, change);
        assert_eq!((finding.title.as_str(), finding.severity), (title, Severity::Medium));
        assert!(!finding.fix.is_empty() && finding.evidence.iter().any(|seen| seen.place == "table knobs"), "{rule}");
    }
}

#[test]
fn what_is_not_set_is_typed_with_the_way_back() {
    let set = |rule: &str, path: &str, text: &str| {
        let finding = found(rule, |files| same(files, path, text));
        assert_eq!(finding.severity, Severity::Info, "{}: a profile's recommendation", finding.title);
        (finding.fix[0].clone(), finding.undo.join("\n"))
    };
    let (fix, undo) = set("LAT-BALANCING", "proc/sys/kernel/numa_balancing", "1");
    assert!(fix.contains("numa_balancing") && undo.contains('1'), "{fix} / {undo}");
    let (fix, undo) = set("LAT-WORKQUEUE", "sys/devices/virtual/workqueue/cpumask", "f");
    assert!(fix.starts_with("echo 3 > ") && undo.starts_with("echo f > "), "{fix} / {undo}");
    let (fix, undo) = set("LAT-PLE", "sys/module/kvm_intel/parameters/ple_gap", "128");
    assert!(fix.starts_with("echo options kvm_intel ple_gap=0 > ") && undo.starts_with("rm "), "{fix} / {undo}");
    let (fix, undo) = set("LAT-SKEWTICK", "proc/cmdline", &BOOT.replace(" skew_tick=1", ""));
    assert!(fix.starts_with("grubby --update-kernel=ALL --args=\"skew_tick=1\""), "{fix}");
    assert!(undo.starts_with("grubby --update-kernel=ALL --remove-args=\"skew_tick=1\""), "{undo}");
    let (fix, undo) = set("LAT-TSC", "proc/cmdline", &BOOT.replace("tsc=reliable", "tsc=unstable"));
    assert!(fix.contains("--args=\"tsc=reliable\"") && undo.contains("--args=\"tsc=unstable\""), "{fix} / {undo}");
    let (fix, _) = set("LAT-MANAGED", "proc/cmdline", &BOOT.replace("managed_irq,", ""));
    assert!(fix.contains("isolcpus=managed_irq,domain,2-3"), "{fix}");
    let (fix, undo) = set("LAT-IRQAFFINITY", "proc/irq/default_smp_affinity", "f");
    assert!(
        fix.starts_with("echo 3 > /proc/irq/default_smp_affinity") && undo.starts_with("echo f > "),
        "{fix} / {undo}"
    );
    let (fix, undo) = set("LAT-ENERGYBIAS", "sys/devices/system/cpu/cpu2/power/energy_perf_bias", "6");
    assert!(fix.contains("cpu2/power/energy_perf_bias") && undo.contains("echo 6 "), "{fix} / {undo}");
    let (fix, undo) = set("LAT-HALTPOLL", "sys/module/kvm/parameters/halt_poll_ns", "200000");
    assert!(fix.starts_with("echo 0 > ") && undo.starts_with("echo 200000 > "), "{fix} / {undo}");
    let (fix, undo) = set("LAT-CHANNELS", "commands/ethtool_-l_eth0", &channels(8));
    assert_eq!((fix.as_str(), undo.as_str()), ("ethtool -L eth0 combined 2", "ethtool -L eth0 combined 8"));
    let (fix, undo) = set("LAT-IRQBALANCE", "etc/default/irqbalance", "IRQBALANCE_BANNED_CPUS=8");
    assert!(fix.starts_with("echo IRQBALANCE_BANNED_CPULIST=2-3 >> /etc/default/irqbalance"), "{fix}");
    assert!(undo.contains("/^IRQBALANCE_BANNED_CPULIST=2-3$/d"), "{undo}");
    let (fix, _) = set("LAT-GUESTPMU", "proc/10/cmdline", &format!("{QEMU}host,migratable=off\0"));
    assert!(fix.starts_with("virsh edit rt ") && fix.contains("<pmu state='off'/>"), "{fix}");
    let (fix, _) = set("LAT-MIGRATABLE", "proc/10/cmdline", &format!("{QEMU}host,pmu=off\0"));
    assert!(fix.contains("migratable=off"), "{fix}");
    let smi = |last: &str| {
        let mut files = wanted();
        put(&mut files, "smi.json", "{\"0\":7,\"2\":7}", last);
        audit(&files).findings
    };
    assert!(smi("{\"0\":7,\"2\":7}").is_empty(), "none came");
    let finding = &smi("{\"0\":8,\"2\":10}")[..];
    assert!(finding.len() == 1 && finding[0].rule == "LAT-SMI", "{finding:?}");
    assert!(finding[0].title.contains("3 on CPU 2"), "{}", finding[0].title);
    let finding = found("LAT-KTHREADS", |files| task(files, (41, 41), "ksoftirqd/2", 2, 0, 0, 0));
    assert_eq!(
        (finding.fix[0].as_str(), finding.undo[0].as_str()),
        ("chrt -f -p 2 41   # ksoftirqd/2", "chrt -o -p 0 41")
    );
    let finding = found("LAT-FIFO", |files| task(files, (10, 13), "CPU 1/KVM", 3, 0, 0, 1_900_000_000));
    assert!(finding.title.starts_with("vcpusched is 1 vCPU of normal policy"), "{}", finding.title);
}

#[test]
fn a_limit_that_was_reached_counts_more_than_one_that_was_not() {
    let limited = |ran_ns: u64| {
        found("LAT-RTRUNTIME", |files| {
            same(files, "proc/sys/kernel/sched_rt_runtime_us", "950000");
            task(files, (10, 12), "CPU 0/KVM", 2, 1, 1, ran_ns);
            task(files, (10, 13), "CPU 1/KVM", 3, 1, 1, 1_000_000_000);
        })
    };
    let reached = limited(1_900_000_000);
    assert_eq!(reached.severity, Severity::Low);
    assert!(
        reached.title.ends_with("real-time threads ran 95.0 % of CPU 2; their limit is 95.0 %"),
        "{}",
        reached.title
    );
    assert_eq!(limited(1_200_000_000).severity, Severity::Info);
}

#[test]
fn another_way_to_the_same_effect_is_as_good() {
    let mut files = wanted();
    same(&mut files, "proc/cmdline", &BOOT.replace("processor.max_cstate=1 ", ""));
    assert!(audit(&files).findings.is_empty(), "somebody holds /dev/cpu_dma_latency, or the states are off");
    for (path, text) in [
        // A guest whose counter is shown as invariant, one that sleeps, cards and CPUs that nobody asks.
        ("proc/10/cmdline", format!("{QEMU}host,pmu=off,+invtsc\0")),
        ("etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=1-3".to_owned()),
        ("commands/ethtool_-l_eth0", channels(1)),
    ] {
        same(&mut files, path, &text);
    }
    assert!(audit(&files).findings.is_empty());
    task(&mut files, (10, 13), "CPU 1/KVM", 3, 1, 1, 200_000_000);
    same(&mut files, "sys/module/kvm/parameters/halt_poll_ns", "200000");
    assert!(audit(&files).findings.is_empty(), "a guest that sleeps is woken sooner");
    put(&mut files, "sys/devices/system/cpu/cpu3/cpuidle/state2/usage", "500", "700");
    let finding = audit(&files).findings.remove(0);
    assert_eq!((finding.rule, finding.severity), ("LAT-CSTATE", Severity::Low));
}

#[test]
fn ordinary_hosts_are_not_asked() {
    let mut files = wanted();
    same(&mut files, "proc/version", "Linux version 6.1.0 (x@y) #1 SMP PREEMPT_DYNAMIC");
    same(&mut files, "sys/kernel/realtime", "0");
    for file in ["isolated", "nohz_full"] {
        same(&mut files, &format!("sys/devices/system/cpu/{file}"), "");
    }
    task(&mut files, (10, 12), "CPU 0/KVM", 2, 0, 0, 1_900_000_000);
    task(&mut files, (10, 13), "CPU 1/KVM", 3, 0, 0, 1_900_000_000);
    let asked = |given: Given| sections(&files, given).iter().any(|section| section.id == "realtime");
    assert!(!asked(Given::default()), "no CPU is isolated, no vCPU is of real-time policy");
    assert!(asked(Given { realtime: true, ..Given::default() }));
    let budget = kvmscope_analysis::facts::budget::built_in("kvm4nfv-2015");
    assert!(asked(Given { budget, ..Given::default() }), "who has a budget for latencies asks about real time");
}

/// The wanted host with a trace in which a program had the CPU of a vCPU.
#[test]
fn what_a_trace_lost_is_divided_among_the_knobs_that_could_remove_it() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &wanted());
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nested-vmx-shadow-off-hog/L0/trace.dat");
    std::fs::copy(trace, root.path().join("L0/trace.dat")).unwrap();
    let manifest = root.path().join("recording.json");
    let mut json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&manifest).unwrap()).unwrap();
    let part = serde_json::json!({
        "path": "L0/trace.dat", "machine": "L0", "kind": "trace.dat", "clock": "mono", "state": "complete"
    });
    json["parts"].as_array_mut().unwrap().push(part);
    std::fs::write(&manifest, json.to_string()).unwrap();
    let case_of = |budget: Option<Budget>| {
        let given = Given { budget, ..Given::default() };
        Case::new(Input::open(Recording::open(root.path()).unwrap()).unwrap(), given)
    };
    let audit_of = |case: &Case| {
        let sections = Answers::about(case, &[kvmscope_analysis::About::Setup]).sections;
        sections.into_iter().find(|section| section.id == "realtime").unwrap()
    };
    let case = case_of(None);
    let section = audit_of(&case);
    let ranking = section.table("ranking").expect("there is a trace");
    let total: f64 = ranking.rows().filter_map(|row| row.number("total_ns")).sum();
    let lost: u64 = case.losses().iter().flat_map(|part| &part.vcpus).map(|vcpu| vcpu.lost.total_ns()).sum();
    assert!(lost > 0 && total == lost as f64, "{total} of {lost} ns");
    let hog = ranking.rows().find(|row| row.text("id") == Some("LAT-ISOLCPUS")).expect("a program took the CPU");
    assert!(hog.text("by").unwrap().contains("busybox"), "{:?}", hog.text("by"));
    assert_eq!(hog.number("rank"), Some(1.0), "nothing took more");
    let last = ranking.rows().last().unwrap();
    assert!(last.text("id").is_none(), "what no knob is about is not spread over others");
    assert!(ranking.rows().all(|row| row.number("in_breaches_ns").is_none()), "there is no budget");
    // With a budget: only what was lost in one of the long losses, by knob; together all of these.
    let text = "schema = \"kvmscope.budget/1\"\nname = \"b\"\n[[goal]]\nid = \"long\"\nmetric = \"preempt_period\"\nstat = \"max\"\n\
                op = \"<=\"\nlimit = \"3ms\"\n";
    let case = case_of(Some(Budget::read("b", text).unwrap()));
    let section = audit_of(&case);
    let ranking = section.table("ranking").unwrap();
    let sum = |column: &str| ranking.rows().filter_map(|row| row.number(column)).sum::<f64>();
    let long = |vcpu: &VcpuLosses| -> u64 {
        let spans = vcpu.stretches(Definition::Involuntary);
        spans.spans().iter().map(base::Span::length_ns).filter(|ns| *ns > 3_000_000).sum()
    };
    let expected: u64 = case.losses().iter().flat_map(|part| &part.vcpus).map(long).sum();
    assert!(
        expected > 0 && sum("in_breaches_ns") == expected as f64 && sum("total_ns") > expected as f64,
        "{expected}"
    );
    let finding = section.findings.iter().find(|finding| finding.cost.value.is_some());
    let evidence = finding.map(|finding| format!("{:?}", finding.evidence)).unwrap_or_default();
    assert!(evidence.is_empty() || evidence.contains("while a goal of budget b was broken"), "{evidence}");
    assert!(section.about[0].contains("there is a latency budget (b)"), "{:?}", section.about);
}

#[test]
fn the_same_setting_is_one_finding_on_the_first_page() {
    let mut files = wanted();
    same(&mut files, "proc/sys/vm/stat_interval", "1");
    let all = sections(&files, Given::default());
    let findings: Vec<&Finding> = all.iter().flat_map(|section| &section.findings).collect();
    let other =
        findings.iter().find(|finding| finding.rule == "PLC-PARTITION").expect("profile cpu-partitioning asks too");
    let own = findings.iter().find(|finding| finding.rule == "LAT-VMSTAT").expect("so does real time");
    assert!(own.explains.contains(&other.id()), "{:?} {}", own.explains, other.id());
}
