//! The audit for real time: a host on which everything is as wanted, and what one change makes of it; ordinary hosts are not asked.

mod host;

use base::recording::Recording;
use base::{Finding, Section, Severity};
use host::{BOOT, Files, QEMU, channels, interrupts, put, same, task, wanted, write};
use kvmscope_analysis::facts::budget::Budget;
use kvmscope_analysis::facts::losses::{Definition, VcpuLosses};
use kvmscope_analysis::{Answers, Case, Given};
use std::path::Path;

fn sections(files: &Files, given: Given) -> Vec<Section> {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), files);
    let case = Case::new(kvmscope_analysis::open(Recording::open(root.path()).unwrap()).unwrap(), given);
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
            "nohz_full=2-3 was set at boot, but the kernel has none",
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
fn interrupts_that_come_to_cpus_of_real_time_are_typed_away_from_there() {
    let finding = found("LAT-IRQAFFINITY", |files| {
        interrupts(files, [2_000, 2_000, 20, 30], [0; 4], [600, 0, 0, 900]);
        same(files, "proc/irq/24/smp_affinity_list", "0-3");
    });
    let typed: Vec<_> = finding.changes.iter().map(|change| (change.command(), change.undo().unwrap())).collect();
    let path = "/proc/irq/24/smp_affinity_list";
    assert_eq!(typed, [(format!("echo 0-1 > {path}"), format!("echo 0-3 > {path}"))], "and back to what was read");
    let rare = wanted_with(|files| {
        interrupts(files, [2_000, 2_000, 20, 30], [0; 4], [600, 0, 0, 1]);
        same(files, "proc/irq/24/smp_affinity_list", "0-3");
    });
    assert!(rare.findings.is_empty(), "it may come there, and does not: {:?}", rare.findings);
}

/// The audit of the wanted host after a change.
fn wanted_with(change: impl FnOnce(&mut Files)) -> Section {
    let mut files = wanted();
    change(&mut files);
    audit(&files)
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
    // What is set apart and empty stays out of it as well.
    let mut wider = wanted();
    same(&mut wider, "sys/devices/system/cpu/isolated", "1-3");
    same(&mut wider, "sys/devices/virtual/workqueue/cpumask", "f");
    let apart = audit(&wider).findings.into_iter().find(|finding| finding.rule == "LAT-WORKQUEUE").unwrap();
    assert!(apart.fix[0].starts_with("echo 1 > "), "{:?}", apart.fix);
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
    assert!(fix.starts_with("qemu-system-x86_64 -cpu host,pmu=off ..."), "nobody but QEMU is told: {fix}");
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
    same(&mut files, "etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=1");
    same(&mut files, "proc/50/task/50/comm", "sleep");
    assert!(audit(&files).findings.is_empty(), "a configuration that nobody reads");
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

/// Adds a trace of the host to the recording in `root`.
fn add_part(root: &Path, path: &str, kind: &str) {
    let manifest = root.join("recording.json");
    let mut json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&manifest).unwrap()).unwrap();
    let part = serde_json::json!({ "path": path, "machine": "L0", "kind": kind, "clock": "mono", "state": "complete" });
    json["parts"].as_array_mut().unwrap().push(part);
    std::fs::write(&manifest, json.to_string()).unwrap();
}

/// What a goal of 20 us in each millisecond, which an interrupt of a device breaks, has typed, on a host where that interrupt may come
/// to these CPUs.
fn typed_for_a_broken_goal(irq_cpus: &str) -> (Vec<(String, String)>, Vec<String>) {
    let root = tempfile::tempdir().unwrap();
    let mut files = wanted();
    same(&mut files, "proc/irq/24/smp_affinity_list", irq_cpus);
    write(root.path(), &files);
    let line = |us: u32, event: &str| format!(" CPU 0/KVM-12 [002] d..2. 1.{us:06}: {event}\n");
    let entry = "kvm_entry: vcpu 0, rip 0x1000";
    let exit = "kvm_exit: vcpu 0 reason EXTERNAL_INTERRUPT rip 0x1000 info1 0x0 info2 0x0 intr_info 0x0 error_code 0x0";
    let text = [
        line(0, entry),
        line(5_000, exit),
        line(5_010, "irq_handler_entry: irq=24 name=eth0-rx-0"),
        line(5_310, "irq_handler_exit: irq=24 ret=handled"),
        line(5_320, entry),
        line(9_000, exit),
        line(9_001, entry),
        line(9_500, exit),
    ];
    std::fs::write(root.path().join("L0/trace.txt"), format!("# tracer: nop\n#\n{}", text.concat())).unwrap();
    add_part(root.path(), "L0/trace.txt", "text");
    let text = "schema = \"kvmscope.budget/1\"\nname = \"b\"\n[[goal]]\nid = \"g\"\nmetric = \"preempt_window\"\nwindow = \"1ms\"\n\
                stat = \"sup\"\nop = \"<\"\nlimit = \"20us\"\n";
    let given = Given { budget: Some(Budget::read("b", text).unwrap()), ..Given::default() };
    let case = Case::new(kvmscope_analysis::open(Recording::open(root.path()).unwrap()).unwrap(), given);
    let sections = Answers::about(&case, &[kvmscope_analysis::About::Happened]).sections;
    let findings = sections.into_iter().find(|section| section.id == "latency").unwrap().findings;
    let goal = findings.into_iter().find(|finding| finding.rule == "LAT-GOAL").expect("300 us are more than 20");
    assert!(goal.evidence.iter().any(|seen| seen.what.contains("eth0-rx-0")), "{:?}", goal.evidence);
    (goal.changes.iter().map(|change| (change.command(), change.undo().unwrap())).collect(), goal.fix)
}

#[test]
fn an_interrupt_that_broke_a_goal_is_typed_away_from_the_vcpu_if_it_may_leave() {
    let path = "/proc/irq/24/smp_affinity_list";
    let (typed, _) = typed_for_a_broken_goal("0-3");
    assert_eq!(typed, [(format!("echo 0-1,3 > {path}"), format!("echo 0-3 > {path}"))], "the vCPU is on CPU 2");
    let (typed, fix) = typed_for_a_broken_goal("2");
    assert!(typed.is_empty() && fix[0].starts_with("kvmscope check"), "it has no other CPU: {typed:?}, {fix:?}");
}

/// The wanted host with a trace in which a program had the CPU of a vCPU.
#[test]
fn what_a_trace_lost_is_divided_among_the_knobs_that_could_remove_it() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &wanted());
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nested-vmx-shadow-off-hog/L0/trace.dat");
    std::fs::copy(trace, root.path().join("L0/trace.dat")).unwrap();
    add_part(root.path(), "L0/trace.dat", "trace.dat");
    let case_of = |budget: Option<Budget>| {
        let given = Given { budget, ..Given::default() };
        Case::new(kvmscope_analysis::open(Recording::open(root.path()).unwrap()).unwrap(), given)
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
