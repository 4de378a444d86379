//! `kvmscope report` of hosts on which no entry and no exit fires, as under kvm_pvm: what shows a vCPU is used, and what is
//! missing is named.

use assert_cmd::Command;

/// Ten milliseconds on the CPU, twenty without it, ten on it; `works` is what KVM does for the guest meanwhile.
fn trace(works: &str) -> String {
    let vcpu = |at_ms: u64, event: &str| format!(" CPU 0/KVM-100 [000] d..2. 10.{at_ms:03}000: {event}\n");
    let switch = |at_ms: u64, from: (&str, u32), to: (&str, u32)| {
        format!(
            " {}-{} [000] d..2. 10.{at_ms:03}000: sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state=R ==> \
             next_comm={} next_pid={} next_prio=120\n",
            from.0, from.1, from.0, from.1, to.0, to.1
        )
    };
    let (hog, guest) = (("hog", 7), ("CPU 0/KVM", 100));
    ["# tracer: nop\n".to_owned(), switch(0, hog, guest), vcpu(1, works), vcpu(2, works), switch(10, guest, hog)]
        .into_iter()
        .chain([switch(30, hog, guest), vcpu(40, works)])
        .collect()
}

/// The text of a report, on one line.
fn report(trace: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.txt");
    std::fs::write(&path, trace).unwrap();
    let mut command = Command::cargo_bin("kvmscope").unwrap();
    let output = command.arg("report").arg(path).env("COLUMNS", "200").env("LANG", "C.UTF-8").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn whatever_kvm_does_for_a_guest_shows_its_vcpu() {
    for works in ["kvm_emulate_insn: 0:fff0: 66 (real)", "kvm_msr: msr_read 1b = 0x0", "kvm_cpuid: func 0 idx 0 rax 0"]
    {
        let text = report(&trace(works));
        assert!(text.contains("waited 50.0 % of its time for a CPU, mostly for hog"), "{works}: {text}");
        assert!(text.contains("in KVM_RUN: guest or KVM"), "{works}: {text}");
    }
}

#[test]
fn events_that_show_no_vcpu_are_named_and_so_is_what_is_missing() {
    // A thread called as one of a vCPU is one.
    let unmaps = trace("kvm_unmap_hva_range: mmu notifier unmap range: 0x1 -- 0x2");
    assert!(report(&unmaps).contains("waited 50.0 % of its time for a CPU, mostly for hog"));
    let text = report(&unmaps.replace("CPU 0/KVM", "worker"));
    assert!(text.contains("such as kvm_exit or kvm_entry (KVM events: 3 kvm_unmap_hva_range)"), "{text}");
    assert!(text.contains("If a guest ran, record the events of group kvm on its host"), "{text}");
    let moves = trace("sched_migrate_task: comm=hog pid=7 prio=120 orig_cpu=0 dest_cpu=1");
    let without = report(&moves.replace("CPU 0/KVM", "worker"));
    assert!(without.contains("but no KVM event, so vCPU times are unknown"), "{without}");
}
