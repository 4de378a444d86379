//! A host that is as real time wants it: the files of two snapshots of it.

use std::collections::BTreeMap;
use std::path::Path;

/// Files of both samples; one text is that of both.
pub(super) type Files = BTreeMap<String, [String; 2]>;

pub(super) fn put(files: &mut Files, path: &str, first: &str, last: &str) {
    files.insert(path.to_owned(), [first.to_owned(), last.to_owned()]);
}

pub(super) fn same(files: &mut Files, path: &str, text: &str) {
    put(files, path, text, text);
}

/// A thread of QEMU's process 10, or a program of its own: what it ran in 2 s, in ns.
pub(super) fn task(
    files: &mut Files,
    (pid, tid): (u32, u32),
    comm: &str,
    cpu: u32,
    policy: u32,
    priority: u32,
    ran_ns: u64,
) {
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
pub(super) fn interrupts(files: &mut Files, loc: [u64; 4], nmi: [u64; 4], device: [u64; 4]) {
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

pub(super) const BOOT: &str = "BOOT_IMAGE=/vmlinuz-6.1.0 ro isolcpus=managed_irq,domain,2-3 nohz=on nohz_full=2-3 rcu_nocbs=2-3 \
                    irqaffinity=0-1 skew_tick=1 tsc=reliable processor.max_cstate=1 pcie_aspm=off mce=ignore_ce";

pub(super) const QEMU: &str = "/usr/bin/qemu-system-x86_64\0-name\0guest=rt,debug-threads=on\0-enable-kvm\0-cpu\0";

/// What `ethtool -l eth0` prints of a card with eight channels at most.
pub(super) fn channels(now: u32) -> String {
    let table = |combined: u32| format!("RX:\t\tn/a\nTX:\t\tn/a\nOther:\t\tn/a\nCombined:\t{combined}\n");
    format!("Channel parameters for eth0:\nPre-set maximums:\n{}Current hardware settings:\n{}", table(8), table(now))
}

/// Four CPUs, of which 2 and 3 are for the two vCPUs of a guest with a real-time policy.
pub(super) fn wanted() -> Files {
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

pub(super) fn write(root: &Path, files: &Files) {
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
