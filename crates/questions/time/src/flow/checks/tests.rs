//! Every rule fires on a case made for it, and is silent on one that differs in a single thing.

mod aligned;
mod waiting;

use crate::flow::advise::advise;
use crate::flow::rules::RULES;
use facts::Given;
use facts::ledger::measure::Measures;
use facts::ledger::model::{ExitSums, Loss, PartFlow};
use facts::ledger::quiet::{add, chain, exits, host, quiet, spend, sums};
use walk::events::details::Detail;
use walk::events::reasons::{Isa, Reason};
use walk::state::{State, TracedLevel};

/// Ids of the rules that fire.
fn fired(part: &PartFlow) -> Vec<&'static str> {
    let measure = Measures::of(part, &Given::default());
    RULES.iter().filter(|rule| !(rule.check)(&measure).is_empty()).map(|rule| rule.id).collect()
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    assert_eq!(fired(&quiet(Isa::Vmx)), [""; 0]);
    assert_eq!(fired(&quiet(Isa::Svm)), [""; 0]);
}

#[test]
fn shadowing_is_missed_by_the_fields_that_chains_touch() {
    let mut part = quiet(Isa::Vmx);
    add(&mut part, 23, 800, Detail::Rip(0x1000));
    chain(&mut part, Isa::Vmx, &[23, 23, 23, 25, 25, 10, 24]);
    assert_eq!(fired(&part), ["FLW-SHADOW"]);
    let mut part = quiet(Isa::Vmx);
    add(&mut part, 25, 100, Detail::Rip(0x1000));
    chain(&mut part, Isa::Vmx, &[10, 25, 24]);
    assert_eq!(fired(&part), [""; 0], "HOST_RSP alone is what shadowing leaves");
}

#[test]
fn svm_features_are_missed_by_their_instructions() {
    let mut part = quiet(Isa::Svm);
    add(&mut part, 0x82, 600, Detail::None);
    chain(&mut part, Isa::Svm, &[0x83, 0x82, 0x80]);
    assert_eq!(fired(&part), ["FLW-VLS"]);
    let mut part = quiet(Isa::Svm);
    add(&mut part, 0x84, 600, Detail::None);
    chain(&mut part, Isa::Svm, &[0x84, 0x85, 0x80]);
    assert_eq!(fired(&part), ["FLW-VGIF"]);
    let mut part = quiet(Isa::Svm);
    chain(&mut part, Isa::Svm, &[0x72, 0x80]);
    assert_eq!(fired(&part), [""; 0]);
}

#[test]
fn apic_writes_of_the_timer_are_timers_and_others_are_apic() {
    let mut part = quiet(Isa::Vmx);
    add(&mut part, 56, 5_000, Detail::Apic(0xd0, true));
    assert_eq!(fired(&part), ["FLW-APIC"]);
    let hit = &super::apic(&Measures::of(&part, &Given::default()))[0];
    assert!(hit.evidence.iter().any(|seen| seen.what.contains("APIC registers are virtualized")), "{:?}", hit.evidence);
    let mut part = quiet(Isa::Vmx);
    add(&mut part, 32, 5_000, Detail::Msr(0x6e0, true));
    assert_eq!(fired(&part), ["FLW-TIMER"]);
    let mut part = quiet(Isa::Vmx);
    add(&mut part, 32, 500, Detail::Msr(0x6e0, true));
    assert_eq!(fired(&part), [""; 0], "one exit in twenty is no storm");
}

#[test]
fn a_flood_of_56_never_means_that_apicv_is_off() {
    let mut part = quiet(Isa::Vmx);
    add(&mut part, 56, 5_000, Detail::Apic(0x300, true));
    let hit = &super::apic(&Measures::of(&part, &Given::default()))[0];
    assert!(hit.changes.is_empty() && !hit.fix.iter().any(|line| line.contains("enable_apicv=1")), "{:?}", hit.fix);
    let mut part = quiet(Isa::Vmx);
    add(&mut part, 44, 5_000, Detail::Apic(0xb0, true));
    let hit = &super::apic(&Measures::of(&part, &Given::default()))[0];
    assert!(hit.changes[0].command().contains("enable_apicv=1"), "{:?}", hit.changes);
    sums(&mut part).states_ns[State::Halted.index()] = 99_000_000_000;
    assert_eq!(fired(&part), [""; 0], "50 a second are what an idle guest has");
}

#[test]
fn x2apic_writes_on_svm_ask_for_avic_and_on_vmx_for_apicv() {
    for (isa, msr, option) in [(Isa::Svm, 0x7c, "avic=1"), (Isa::Vmx, 32, "enable_apicv=1")] {
        let mut part = quiet(isa);
        add(&mut part, msr, 5_000, Detail::Msr(0x80b, true));
        let hit = &super::apic(&Measures::of(&part, &Given::default()))[0];
        assert!(hit.changes[0].command().contains(option), "{:?}", hit.changes);
    }
}

#[test]
fn devices_in_the_vmm_are_seen_by_count_or_by_time() {
    let mut part = quiet(Isa::Vmx);
    let io = ExitSums { handled: [0, 3_000, 0], ..exits(3_000, Detail::Port(0x3f8, true)) };
    *sums(&mut part).exits.at((TracedLevel::L1, Reason { isa: Isa::Vmx, code: 30 })) = io;
    assert_eq!(fired(&part), ["FLW-USERSPACE"]);
    let mut part = quiet(Isa::Vmx);
    add(&mut part, 30, 3_000, Detail::Port(0x3f8, true));
    assert_eq!(fired(&part), [""; 0], "the kernel served them");
}

#[test]
fn a_clock_that_is_emulated_is_named_by_its_port() {
    let of = |port: u16, count: u64| {
        let mut part = quiet(Isa::Vmx);
        let mut io = exits(count, Detail::Port(port, false));
        *io.details.at(Detail::Port(port, false)) = (count, 100_000_000);
        *sums(&mut part).exits.at((TracedLevel::L1, Reason { isa: Isa::Vmx, code: 30 })) = io;
        fired(&part)
    };
    assert_eq!(of(0xb008, 5_000), ["FLW-CLOCK"]);
    assert_eq!(of(0x3f8, 5_000), [""; 0], "a serial line is no clock");
    assert_eq!(of(0xb008, 19), [""; 0], "an anecdote");
}

#[test]
fn a_boot_and_a_few_long_exits_to_the_vmm_are_no_finding() {
    let fires = |count: u64, port: u16, user_ns: u64| {
        let mut part = quiet(Isa::Vmx);
        let mut io = ExitSums { handled: [0, count, 0], ..exits(count, Detail::Port(port, true)) };
        *io.details.at(Detail::Port(port, true)) = (count, user_ns);
        *sums(&mut part).exits.at((TracedLevel::L1, Reason { isa: Isa::Vmx, code: 30 })) = io;
        spend(&mut part, State::Userspace, user_ns);
        !fired(&part).is_empty()
    };
    assert!(fires(3_000, 0xc000, 100_000_000) && fires(150, 0xc000, 100_000_000));
    assert!(!fires(3_000, 0xcf8, 100_000_000), "PCI configuration is what a boot does");
    assert!(!fires(50, 0xc000, 100_000_000), "fifty a second, however long each takes");
}

#[test]
fn an_idle_guest_whose_timer_exits_are_slow_is_no_storm() {
    let fires = |count: u64| {
        let mut part = quiet(Isa::Vmx);
        add(&mut part, 32, count, Detail::Msr(0x6e0, true));
        let timers = sums(&mut part).exits.at((TracedLevel::L1, Reason { isa: Isa::Vmx, code: 32 }));
        *timers.details.at(Detail::Msr(0x6e0, true)) = (count, 100_000_000);
        fired(&part) == ["FLW-TIMER"]
    };
    assert!(!fires(118) && !fires(999) && fires(1_100), "a tenth of the time each");
}

/// The same trace with a snapshot of its machine that has these files.
fn with_snapshot(part: PartFlow, files: &[(&str, &str)]) -> (tempfile::TempDir, PartFlow) {
    let root = tempfile::tempdir().unwrap();
    for (file, text) in files {
        let path = root.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let snapshot = Some(host::Snapshot::open(root.path()).unwrap());
    (root, PartFlow { snapshot, ..part })
}

/// The only finding.
fn only(part: &PartFlow) -> base::Finding {
    let mut found = advise(&Measures::of(part, &Given::default()), None);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn switches_of_modules_are_typed_with_the_value_that_a_snapshot_has() {
    const CPU: (&str, &str) = ("proc/cpuinfo", "vendor_id : GenuineIntel\nflags : vmx\nvmx flags : shadow_vmcs\n");
    const FILE: &str = "sys/module/kvm_intel/parameters/enable_shadow_vmcs";
    let unshadowed = || {
        let mut part = quiet(Isa::Vmx);
        add(&mut part, 23, 800, Detail::Rip(0x1000));
        chain(&mut part, Isa::Vmx, &[23, 23, 23, 25, 25, 10, 24]);
        part
    };
    let command = "modprobe -r kvm_intel && modprobe kvm_intel enable_shadow_vmcs=";
    let alone = only(&unshadowed());
    assert!(alone.fix[0].starts_with("grep -ow shadow_vmcs /proc/cpuinfo"), "{:?}", alone.fix);
    assert!(alone.fix[1].starts_with(&format!("{command}1   # reloading the module stops all VMs")), "{:?}", alone.fix);
    assert!(alone.fix[2].starts_with("echo options kvm_intel enable_shadow_vmcs=1 > /etc/modprobe.d/"));
    assert_eq!(alone.changes[0].undo(), None, "no trace tells what it was");
    let off = only(&with_snapshot(unshadowed(), &[CPU, (FILE, "N\n")]).1);
    assert!(off.undo[0].starts_with(&format!("{command}N   # ")) && off.fix.len() == 2, "{:?} {:?}", off.fix, off.undo);
    let on = only(&with_snapshot(unshadowed(), &[CPU, (FILE, "Y\n")]).1);
    assert!(on.changes.is_empty() && on.evidence.iter().any(|seen| seen.what.ends_with("it is set already")), "{on:?}");
    let cpu = (CPU.0, "vendor_id : GenuineIntel\nflags : vmx\nvmx flags : ept\n");
    let lacks = only(&with_snapshot(unshadowed(), &[cpu, (FILE, "N\n")]).1);
    assert!(lacks.changes.is_empty() && lacks.fix.is_empty() && lacks.undo.is_empty(), "{lacks:?}");
}

#[test]
fn the_undo_of_a_file_below_sys_is_what_was_read() {
    const POLL: &str = "sys/module/kvm/parameters/halt_poll_ns";
    let polling = || {
        let mut part = quiet(Isa::Vmx);
        spend(&mut part, State::HaltPoll, 200_000_000);
        part
    };
    let read = only(&with_snapshot(polling(), &[("proc/cpuinfo", ""), (POLL, "50000\n")]).1);
    assert_eq!(read.undo, ["echo 50000 > /sys/module/kvm/parameters/halt_poll_ns"]);
    assert!(only(&polling()).undo[0].ends_with("the previous value was not read"));
    let mut faults = quiet(Isa::Vmx);
    add(&mut faults, 48, 5_000, Detail::None);
    let huge = "sys/kernel/mm/transparent_hugepage/enabled";
    let (_kept, faults) = with_snapshot(faults, &[("proc/cpuinfo", ""), (huge, "always [madvise] never\n")]);
    assert_eq!(only(&faults).undo, [format!("echo madvise > /{huge}")]);
}

#[test]
fn avic_is_proposed_where_the_guest_would_have_it() {
    let apic = |code: u32, detail: Detail, cpu: Option<&str>, kernel: &str| {
        let mut part = PartFlow { kernel: Some(kernel.to_owned()), ..quiet(Isa::Svm) };
        add(&mut part, code, 5_000, detail);
        let Some(cpu) = cpu else { return !only(&part).changes.is_empty() };
        let cpuinfo = format!("vendor_id : AuthenticAMD\n{cpu}");
        !only(&with_snapshot(part, &[("proc/cpuinfo", &cpuinfo)]).1).changes.is_empty()
    };
    let (zen_2, zen_3) = ("cpu family : 23\nflags : svm avic\n", "cpu family : 25\nflags : svm avic\n");
    let (xapic, x2apic) = ((0x400, Detail::Apic(0xb0, true)), (0x7c, Detail::Msr(0x80b, true)));
    assert!(apic(xapic.0, xapic.1, Some(zen_3), "6.12.0") && !apic(xapic.0, xapic.1, Some(zen_2), "6.12.0"));
    assert!(!apic(xapic.0, xapic.1, None, "6.12.0"), "the CPU may be one that loses IPIs");
    assert!(apic(xapic.0, xapic.1, None, "7.1.0"));
    assert!(!apic(x2apic.0, x2apic.1, Some(zen_3), "5.10.0") && !apic(x2apic.0, x2apic.1, Some(zen_3), "6.12.0"));
    let zen_4 = "cpu family : 25\nflags : svm avic x2avic\n";
    assert!(apic(x2apic.0, x2apic.1, Some(zen_4), "6.12.0"));
}

#[test]
fn page_faults_are_a_storm_by_share_and_by_rate() {
    let mut part = quiet(Isa::Vmx);
    add(&mut part, 48, 5_000, Detail::None);
    assert_eq!(fired(&part), ["FLW-EPT"]);
    let found = super::ept_storm(&Measures::of(&part, &Given::default())).remove(0);
    assert_eq!(found.changes[0].command(), "echo always > /sys/kernel/mm/transparent_hugepage/enabled");
    assert_eq!(found.changes[0].undo(), None, "no trace tells what it was");
    spend(&mut part, State::Halted, 0);
    sums(&mut part).states_ns[State::Halted.index()] = 99_000_000_000;
    assert_eq!(fired(&part), [""; 0], "50 a second are none");
    let mut part = quiet(Isa::Svm);
    add(&mut part, 0x400, 5_000, Detail::Mmio(0xfebc_0000, true));
    assert_eq!(fired(&part), [""; 0], "a device is no page");
}

#[test]
fn a_pause_storm_of_one_vm_among_many_is_found_and_the_vm_is_named() {
    let mut part = host(81);
    let pause = Reason { isa: Isa::Vmx, code: 40 };
    for vcpu in &mut part.vcpus {
        *vcpu.sums.exits.at((TracedLevel::L1, pause)) = exits(90, Detail::None);
    }
    assert_eq!(fired(&part), [""; 0], "ninety in a second on each are no storm");
    *part.vcpus[80].sums.exits.at((TracedLevel::L1, pause)) = exits(2_500, Detail::None);
    assert_eq!(fired(&part), ["FLW-PAUSE"]);
    let found = &advise(&Measures::of(&part, &Given::default()), None)[0];
    assert_eq!(found.subject, "vm80");
    assert!(found.title.contains("PAUSE exits of vm80: 2,500, 2,500 per second on vCPU 0"), "{}", found.title);
    for vcpu in &mut part.vcpus {
        *vcpu.sums.exits.at((TracedLevel::L1, pause)) = exits(2_500, Detail::None);
    }
    let found = advise(&Measures::of(&part, &Given::default()), None);
    assert_eq!((found.len(), found[0].subject.as_str()), (1, "L0"), "one finding, not one for each");
    assert!(found[0].title.ends_with("(and 80 more VMs)"), "{}", found[0].title);
    assert!(found[0].evidence.len() <= 8);
}

#[test]
fn interprocessor_interrupts_are_a_storm_by_rate() {
    let mut part = quiet(Isa::Svm);
    add(&mut part, 0x7c, 900, Detail::Msr(0x830, true));
    assert_eq!(fired(&part), [""; 0], "900 a second are not");
    add(&mut part, 0x7c, 20_000, Detail::Msr(0x830, true));
    assert!(fired(&part).contains(&"FLW-IPI"));
    let mut part = quiet(Isa::Svm);
    add(&mut part, 0x7c, 20_000, Detail::Msr(0x830, false));
    assert!(!fired(&part).contains(&"FLW-IPI"), "reading the register sends nothing");
}

#[test]
fn timers_of_a_vm_are_named_with_their_rate() {
    let mut part = host(6);
    let exit = Reason { isa: Isa::Vmx, code: 32 };
    *part.vcpus[4].sums.exits.at((TracedLevel::L1, exit)) = exits(6_000, Detail::Msr(0x6e0, true));
    let found = advise(&Measures::of(&part, &Given::default()), None);
    assert_eq!((found.len(), found[0].rule, found[0].subject.as_str()), (1, "FLW-TIMER", "vm4"));
    assert!(found[0].title.contains("6,000 per second on vCPU 0"), "{}", found[0].title);
}

#[test]
fn a_share_of_a_few_events_is_never_high() {
    use super::{Sample, by_share};
    use base::Severity::{High, Info, Low, Medium};
    let severity = |count, ns| by_share(0.9, Sample { count, ns });
    assert_eq!([severity(1, 900_000), severity(19, 9_999_999)], [Low, Low], "14 events in 3 ms are an anecdote");
    assert_eq!([severity(20, 0), severity(1, 10_000_000), severity(99, 0)], [Medium; 3]);
    assert_eq!([severity(100, 0), severity(1, 100_000_000)], [High; 2], "one wait of 100 ms is long enough");
    let often = Sample { count: 1_000_000, ns: 0 };
    assert_eq!([0.05, 0.009].map(|share| by_share(share, often)), [Low, Info], "frequent and cheap");
}

/// The severity of the only finding of `rule`.
fn severity(part: &PartFlow, rule: &str) -> base::Severity {
    let found = advise(&Measures::of(part, &Given::default()), None);
    let mut found = found.into_iter().filter(|finding| finding.rule == rule);
    let first = found.next().unwrap_or_else(|| panic!("{rule} is silent"));
    assert!(found.next().is_none());
    first.severity
}

#[test]
fn severity_follows_time_and_not_the_number_of_exits() {
    use base::Severity::{High, Info, Medium};
    let faults = |cost_ns: u64| {
        let mut part = quiet(Isa::Vmx);
        add(&mut part, 48, 5_000, Detail::None);
        let storm = sums(&mut part).exits.at((TracedLevel::L1, Reason { isa: Isa::Vmx, code: 48 }));
        (0..5_000).for_each(|_| storm.cost_ns.record(cost_ns));
        severity(&part, "FLW-EPT")
    };
    assert_eq!([1_000, 30_000, 60_000].map(faults), [Info, Medium, High], "a third of all exits, each time");
    let shadowing = |chain_ns: u64| {
        let mut part = quiet(Isa::Vmx);
        add(&mut part, 23, 5_000, Detail::Rip(0x1000));
        chain(&mut part, Isa::Vmx, &[23, 23, 23, 23, 25, 24]);
        let chains = sums(&mut part).chains.values_mut().next().unwrap();
        chains.sequences.values_mut().for_each(|count| *count += 1_000);
        (0..1_000).for_each(|_| (chains.cost_ns.record(chain_ns), chains.exits.record(6)).0);
        severity(&part, "FLW-SHADOW")
    };
    assert_eq!([1_000, 1_000_000].map(shadowing), [Info, High], "what chains cost, by the share of their exits");
}

#[test]
fn the_time_of_one_vm_is_not_hidden_by_many_idle_ones() {
    let mut part = host(50);
    let fault = Reason { isa: Isa::Vmx, code: 48 };
    *part.vcpus[7].sums.exits.at((TracedLevel::L1, fault)) = exits(200_000, Detail::None);
    let storm = part.vcpus[7].sums.exits.at((TracedLevel::L1, fault));
    (0..200_000).for_each(|_| storm.cost_ns.record(2_000));
    assert_eq!(severity(&part, "FLW-EPT"), base::Severity::High);
}

/// A vCPU over ten seconds with `storm` PAUSE exits in eight milliseconds.
fn with_storm(storm: u64) -> PartFlow {
    let mut part = quiet(Isa::Vmx);
    part.span.to_ns = 10_000_000_000;
    sums(&mut part).states_ns[State::Halted.index()] = 9_000_000_000;
    let mut pauses = exits(storm, Detail::None);
    (0..storm).for_each(|number| pauses.bursts.add(3_215_000_000 + number * 8_000_000 / storm));
    *sums(&mut part).exits.at((TracedLevel::L1, Reason { isa: Isa::Vmx, code: 40 })) = pauses;
    part
}

#[test]
fn a_short_storm_in_a_long_recording_is_found_with_its_time() {
    let found = &advise(&Measures::of(&with_storm(2_500), &Given::default()), None)[0];
    assert_eq!((found.rule, found.severity), ("FLW-PAUSE", base::Severity::Low));
    assert!(found.title.contains("2,500 within 10 ms on vCPU 0"), "{}", found.title);
    let seen: Vec<&str> = found.evidence.iter().map(|seen| seen.what.as_str()).collect();
    assert!(seen.iter().any(|what| what.contains("3.215 s after the first event")), "{seen:?}");
    assert_eq!(fired(&with_storm(499)), [""; 0], "a few are what any lock costs");
}

#[test]
fn the_recording_itself_is_judged() {
    let mut part = quiet(Isa::Svm);
    part.stale_entries = 5;
    assert_eq!(fired(&part), ["FLW-STALE"]);
    let mut part = quiet(Isa::Svm);
    part.losses.push(Loss { cpu: Some(1), kind: "overrun".into(), count: 5_000, bytes: 0 });
    part.losses.push(Loss { cpu: Some(1), kind: "missed".into(), count: 4_000, bytes: 0 });
    assert_eq!(fired(&part), ["FLW-LOST"]);
    assert_eq!(part.lost_events(), 5_000, "stated and met are the same events");
    let mut part = quiet(Isa::Svm);
    part.losses.push(Loss { cpu: None, kind: "clock_skew".into(), count: 3, bytes: 0 });
    assert_eq!(fired(&part), [""; 0]);
    part.doubts.level_conflicts = 200;
    assert_eq!(fired(&part), ["FLW-CONFLICT"]);
}
