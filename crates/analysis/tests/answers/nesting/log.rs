//! The kernel's log as a second witness, and the time of CPUID as a hint.

use super::tree::{Tree, answer};
use base::figure::Standing;

const LOG: &str = "sos_commands/kernel/dmesg";

fn state(tree: &Tree, feature: &str) -> (Standing, String) {
    let machine = tree.machine();
    let row = machine.row(feature).unwrap();
    (row.state, row.evidence.clone())
}

#[test]
fn a_line_agrees_or_decides_what_nothing_else_tells_or_is_told_beside_it() {
    let amd = || Tree::of("hosts-amd", 0);
    let said = "[    3.1] kvm_amd: Nested Virtualization enabled\n[    3.2] SVM: AVIC enabled\n";
    let agrees = state(&amd().with(LOG, said), "nested");
    assert!(
        agrees.0 == Standing::On && agrees.1.contains("parameters") | agrees.1.contains("kvm_amd.nested"),
        "{agrees:?}"
    );
    assert!(agrees.1.ends_with("dmesg: \"kvm_amd: Nested Virtualization enabled\""), "{agrees:?}");
    let differs = state(&amd().with(LOG, said), "avic");
    assert!(differs.0 == Standing::Off && differs.1.contains("earlier in this boot"), "{differs:?}");
    // A report without the module's parameters: nothing but the log tells.
    let alone = Tree::of("hosts-amd", 0);
    std::fs::remove_dir_all(alone.root().join("sys/module/kvm_amd/parameters")).unwrap();
    assert_eq!(state(&alone, "nested").0, Standing::Unknown);
    let alone = alone.with(LOG, said);
    assert_eq!(state(&alone, "nested"), (Standing::On, format!("{LOG}: \"kvm_amd: Nested Virtualization enabled\"")));
    assert_eq!(state(&alone, "virtual_gif").0, Standing::Unknown, "a line that is not there says nothing");
}

#[test]
fn firmware_that_forbids_is_not_a_processor_that_cannot() {
    let cpuinfo = "proc/cpuinfo";
    let cannot = Tree::of("hosts-intel", 0).replacing(cpuinfo, " vmx ", " ");
    assert_eq!(state(&cannot, "virtualization").0, Standing::Absent);
    assert!(cannot.finding("NST-FIRMWARE").is_none());
    let forbids = cannot.with(LOG, "[    0.34] x86/cpu: VMX (outside TXT) disabled by BIOS\n");
    assert_eq!(state(&forbids, "virtualization").0, Standing::Off);
    let finding = forbids.finding("NST-FIRMWARE").unwrap();
    assert!(finding.evidence[0].what.contains("VMX (outside TXT)"), "{finding:?}");
}

#[test]
fn hyperv_tells_by_its_log_what_cpuid_would() {
    let words = "[ 0.0] Hypervisor detected: Microsoft Hyper-V\n\
                 [ 0.0] Hyper-V: privilege flags low 0xae7f, high 0x3b8030, hints 0x64e24, misc 0xe0bed7b2\n";
    let nested = "[ 0.0] Hyper-V: Nested features: 0xa0101\n";
    let without = Tree::of("hosts-hyperv-evmcs", 1).without("cpuid.json");
    assert!(without.machine().row("hyperv_evmcs_offered").is_none());
    let told = without.with(LOG, &format!("{words}{nested}"));
    let by_cpuid = Tree::of("hosts-hyperv-evmcs", 1);
    for feature in ["hyperv_evmcs_offered", "hyperv_msr_bitmap", "hyperv_direct_flush", "hyperv_tsc_page"] {
        assert_eq!(state(&told, feature).0, state(&by_cpuid, feature).0, "{feature}");
    }
    assert_eq!(told.machine().facts.below.names(), ["Hyper-V"]);
    // An older kernel does not write the nested features.
    let fewer = told.with(LOG, words);
    assert_eq!(state(&fewer, "hyperv_msr_bitmap").0, Standing::Unknown);
    assert_eq!(state(&fewer, "hyperv_evmcs_offered").0, Standing::Unknown);
}

#[test]
fn a_counter_that_was_given_up_explains_a_slow_clock() {
    let slow = Tree::of("hosts-hyperv", 1).with(LOG, "[ 9.1] tsc: Marking TSC unstable due to clocksource watchdog\n");
    let finding = slow.finding("NST-CLOCK").unwrap();
    assert!(finding.evidence.iter().any(|seen| seen.what.contains("due to clocksource watchdog")), "{finding:?}");
}

#[test]
fn a_guest_tells_of_the_level_below_what_cannot_be_imitated() {
    let told = |tree: &Tree| -> Vec<String> {
        let section = answer(&[tree]);
        let table = section.table("inferred").unwrap();
        (0..table.rows.len())
            .map(|row| format!("{:?} {:?}", table.cell(row, "level"), table.cell(row, "from")))
            .collect()
    };
    let guest = || Tree::of("hosts-intel", 1);
    assert!(told(&guest()).is_empty());
    let timed = guest().with("timing.json", "{\"cpuid_cycles\": 1350, \"additions_cycles\": 64}");
    assert!(told(&timed)[0].contains("L0") && told(&timed)[0].contains("1,350"), "{:?}", told(&timed));
    let vmx = std::fs::read_to_string(guest().root().join("proc/cpuinfo")).unwrap();
    let line = vmx.lines().find(|line| line.starts_with("vmx flags")).unwrap();
    let more = guest().replacing("proc/cpuinfo", line, &format!("{line} posted_intr shadow_vmcs"));
    let all = told(&more);
    assert!(all.iter().any(|line| line.contains("flag posted_intr")), "{all:?}");
    assert!(all.iter().all(|line| !line.contains("shadow_vmcs")), "the KVM below imitates it: {all:?}");
    assert!(told(&Tree::of("hosts-intel", 0)).is_empty());
}

#[test]
fn the_time_of_cpuid_hints_at_somebody_below() {
    let timed = |tree: Tree, cpuid: u64| {
        tree.with("timing.json", &format!("{{\"cpuid_cycles\": {cpuid}, \"additions_cycles\": 64}}"))
    };
    let intel = || Tree::of("hosts-intel", 0);
    assert!(intel().machine().row("cpuid_answered_below").is_none());
    for (cycles, seen, like) in [
        (180, Standing::Off, "as on bare metal"),
        (500, Standing::Unknown, "between bare metal"),
        (1_350, Standing::On, "as at L1"),
        (4_000, Standing::On, "between L1 and L2"),
        (20_700, Standing::On, "as at L2"),
    ] {
        let (state, evidence) = state(&timed(intel(), cycles), "cpuid_answered_below");
        assert!(state == seen && evidence.contains(like), "{cycles}: {evidence}");
    }
    assert!(
        timed(intel(), 180).finding("NST-HIDDEN").is_none() && timed(intel(), 1_350).finding("NST-HIDDEN").is_some()
    );
    assert!(timed(Tree::of("hosts-intel", 1), 1_350).finding("NST-HIDDEN").is_none());
}
