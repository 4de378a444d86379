//! Each rule: a machine that fires it, and the same with one thing changed that does not.

use super::tree::{Tree, answer};
use base::{CostKind, Needs, Severity};

const CLOCK: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
const VULNERABLE: &str = "sys/devices/system/cpu/vulnerabilities";

fn intel() -> Tree {
    Tree::of("hosts-intel", 0)
}

fn guest() -> Tree {
    Tree::of("hosts-intel", 1)
}

/// `fires` has the rule, `silent` has not.
fn decides(rule: &str, fires: &Tree, silent: &Tree) {
    assert!(fires.finding(rule).is_some(), "{rule} does not fire: {:?}", fires.findings());
    assert!(silent.finding(rule).is_none(), "{rule} fires without cause");
}

#[test]
fn shadowing_off_at_the_host_is_the_first_thing_to_change() {
    let off = intel().with("kvm_intel.enable_shadow_vmcs", "N");
    decides("NST-SHADOW", &off, &intel());
    let finding = off.finding("NST-SHADOW").unwrap();
    assert_eq!(
        (finding.severity, finding.needs, finding.cost.kind),
        (Severity::High, Needs::Reload, CostKind::Published)
    );
    let command = |value: u8| {
        let reload = format!("modprobe -r kvm_intel && modprobe kvm_intel enable_shadow_vmcs={value}");
        reload + "   # reloading the module stops all VMs: shut them down first"
    };
    assert_eq!((finding.fix[0].clone(), finding.undo[0].clone()), (command(1), command(0)));
    let file = "/etc/modprobe.d/kvmscope-enable_shadow_vmcs.conf";
    assert!(finding.fix[1].starts_with(&format!("echo options kvm_intel enable_shadow_vmcs=1 > {file}")));
    assert_eq!(finding.undo[1], format!("rm -f {file}"));
    assert_eq!(finding.evidence[0].what, "kvm_intel.enable_shadow_vmcs = N");
    // A host whose guests have no guests does not pay for it; a file that is missing is no answer.
    assert!(off.with("kvm_intel.nested", "N").finding("NST-SHADOW").is_none());
    let unknown = intel()
        .without("kvm_intel.enable_shadow_vmcs")
        .with("unreadable.txt", "sys/module/kvm_intel/parameters/enable_shadow_vmcs: denied");
    assert!(unknown.finding("NST-SHADOW").is_none());
}

#[test]
fn emulation_is_said_first() {
    let emulated =
        guest().replacing("cpuid.json", "0x4b4d564b", "0x54474354").replacing("cpuid.json", "0x564b4d56", "0x43544743");
    let emulated = emulated.replacing("cpuid.json", "0x0000004d", "0x47435447");
    decides("NST-TCG", &emulated, &guest());
    assert_eq!(emulated.findings()[0].rule, "NST-TCG");
}

#[test]
fn switches_that_are_off() {
    decides("NST-PAGING", &intel().with("kvm_intel.ept", "N"), &intel());
    decides("NST-PAGING", &Tree::of("hosts-amd", 0).with("kvm_amd.npt", "0"), &Tree::of("hosts-amd", 0));
    decides("NST-SVM", &Tree::of("hosts-amd", 0).with("kvm_amd.vls", "0"), &Tree::of("hosts-amd", 0));
    decides("NST-APIC", &intel().with("kvm_intel.enable_apicv", "N"), &intel());
    decides("NST-OFF", &intel().with("kvm.tdp_mmu", "N"), &intel());
    decides("NST-NESTED", &intel().with("kvm_intel.nested", "N"), &intel());
    // What the CPU lacks is absent, not off: there is nothing to switch on.
    let lacks = intel().with("kvm_intel.enable_apicv", "N").replacing("proc/cpuinfo", " apicv", "");
    assert!(lacks.finding("NST-APIC").is_none());
}

#[test]
fn the_enlightened_vmcs() {
    let (off, on) = (Tree::of("hosts-hyperv", 1), Tree::of("hosts-hyperv-evmcs", 1));
    decides("NST-EVMCS", &off, &on);
    let cost = off.finding("NST-EVMCS").unwrap().cost;
    assert_eq!((cost.value, cost.low, cost.kind), (Some(11_800.0), Some(10_586.0), CostKind::Published));
    decides("NST-EVMCSON", &on, &off);
    let compared = on.finding("NST-EVMCSON").unwrap();
    let reloads =
        |lines: &[String]| lines.last().is_some_and(|line| line.contains("   # reloading the module stops all VMs"));
    assert!(reloads(&compared.fix) && reloads(&compared.undo), "{:?} {:?}", compared.fix, compared.undo);
    // Not recommended: bit 14 of 0x40000004.
    let never = Tree::of("hosts-hyperv", 1).replacing("cpuid.json", "0x00064e24", "0x00060e24");
    decides("NST-EVMCSNONE", &never, &off);
    assert!(never.finding("NST-EVMCS").is_none());
    assert_eq!(never.finding("NST-EVMCSNONE").unwrap().needs, Needs::OuterLevel);
    decides("NST-MSRBITMAP", &off, &on);
    let without_flush = Tree::of("hosts-hyperv-evmcs", 1).replacing("cpuid.json", "0x000a0101", "0x00080101");
    decides("NST-FLUSH", &without_flush, &on);
}

#[test]
fn clocks() {
    decides("NST-CLOCK", &guest().with(CLOCK, "acpi_pm\n"), &guest());
    let finding = guest().with(CLOCK, "acpi_pm\n").finding("NST-CLOCK").unwrap();
    assert_eq!(finding.fix[0], format!("echo tsc > /{CLOCK}"));
    assert_eq!(finding.undo[0], format!("echo acpi_pm > /{CLOCK}"));
    // On bare metal such a clock is slow and no exit.
    assert!(intel().with(CLOCK, "acpi_pm\n").finding("NST-CLOCK").is_none());
    decides("NST-CLOCKGUESTS", &guest(), &guest().with(CLOCK, "tsc\n"));
    // The same on bare metal, with the parameter that would bring it back.
    const AVAILABLE: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";
    let of = |line: &str, available: &str| {
        let host = intel().with(CLOCK, "hpet\n").with(AVAILABLE, available).with("proc/cmdline", line);
        host.finding("NST-CLOCKGUESTS").unwrap()
    };
    let booted = of("quiet clocksource=hpet\n", "tsc hpet acpi_pm\n");
    assert_eq!(booted.fix[0], format!("echo tsc > /{CLOCK}"));
    assert!(
        booted.fix[1].starts_with("grubby --update-kernel=ALL --remove-args=\"clocksource=hpet\""),
        "{:?}",
        booted.fix
    );
    assert_eq!(booted.undo[1], "grubby --update-kernel=ALL --args=\"clocksource=hpet\"");
    assert_eq!(of("quiet\n", "tsc hpet acpi_pm\n").fix.len(), 1);
    let rejected = of("quiet\n", "hpet acpi_pm\n");
    assert!(rejected.changes.is_empty() && rejected.fix[0].starts_with("dmesg | grep -iE 'tsc"), "{:?}", rejected.fix);
    let unstable = guest().replacing("cpuid.json", "0x01007efb", "0x00007efb");
    decides("NST-KVMCLOCK", &unstable, &guest());
}

#[test]
fn kernels_that_lack_a_change() {
    let older = intel().with("proc/sys/kernel/osrelease", "6.1.121-amd64\n");
    let newer = intel().with("proc/sys/kernel/osrelease", "6.1.122-amd64\n");
    let cached = |tree: &Tree| tree.findings().into_iter().find(|finding| finding.subject == "L0.1201f226c863");
    assert!(cached(&newer).is_none());
    let finding = cached(&older).unwrap();
    assert!(finding.title.contains("older than 6.1.122"), "{}", finding.title);
    // Who runs no guest that runs guests pays nothing for it; an enterprise kernel's number stays, so its age says less.
    assert_eq!(finding.severity, Severity::Info);
    let nesting = |tree: &Tree| {
        let section = answer(&[tree, &guest()]);
        section.findings.into_iter().find(|finding| finding.subject == "L0.1201f226c863").unwrap()
    };
    assert_eq!(nesting(&older).severity, Severity::Medium);
    let frozen = |release: &str| intel().with("proc/sys/kernel/osrelease", release);
    let redhats = nesting(&frozen("5.14.0-503.el9.x86_64\n"));
    assert!(redhats.severity == Severity::Low && redhats.fix[0].starts_with("rpm -q --changelog"), "{redhats:?}");
    let proxmox = nesting(&frozen("6.8.12-4-pve\n"));
    assert!(proxmox.severity == Severity::Low && proxmox.fix[0].starts_with("apt search"), "{proxmox:?}");
}

#[test]
fn the_enlightened_msr_bitmap_is_in_linux_4_18() {
    let with = |release: &str| Tree::of("hosts-hyperv", 1).with("proc/sys/kernel/osrelease", release);
    let lacks = |release: &str| with(release).findings().iter().any(|finding| finding.subject == "L1.ceef7d10dfb6");
    assert!(lacks("4.17.19\n"));
    assert_eq!(["4.18.0\n", "5.4.0-1109\n", "5.10.0\n"].map(lacks), [false; 3]);
}

#[test]
fn avic_is_switched_on_only_where_it_works_and_does_no_harm() {
    const CPUINFO: &str = "proc/cpuinfo";
    let amd = |release: &str| Tree::of("hosts-amd", 0).with("proc/sys/kernel/osrelease", release);
    let zen_2 = |release: &str| amd(release).replacing(CPUINFO, "cpu family\t: 25", "cpu family\t: 23");
    let found = |tree: Tree| tree.finding("NST-APIC").unwrap();
    let proposed = found(amd("6.12.117\n"));
    assert_eq!((proposed.severity, proposed.changes.len()), (Severity::Medium, 1));
    for (tree, against) in [
        (zen_2("6.12.117\n"), "#1235"),
        (amd("5.18.19\n"), "before Linux 5.19"),
        (amd("5.19.17\n"), "before Linux 6.0"),
    ] {
        let finding = found(tree);
        assert_eq!((finding.severity, finding.changes.len(), finding.needs), (Severity::Info, 0, Needs::Nothing));
        assert!(finding.fix.is_empty() && finding.undo.is_empty(), "{finding:?}");
        assert!(finding.evidence.iter().any(|seen| seen.what.contains(against)), "{against}: {:?}", finding.evidence);
    }
    assert_eq!(found(zen_2("6.17.0\n")).changes.len(), 1, "the kernel avoids the erratum");
    assert_eq!(found(zen_2("6.12.117\n").with("kvm_amd.enable_ipiv", "N\n")).changes.len(), 1, "a backport does");
    // The release that enables it does so on Zen 4 and later alone.
    let newer = |tree: Tree| tree.findings().iter().any(|finding| finding.subject == "L0.ca2967de5a5b");
    assert!(newer(amd("6.12.117\n").replacing(CPUINFO, " avic", " avic x2avic")) && !newer(amd("6.12.117\n")));
}

#[test]
fn retpolines_are_read_as_every_kernel_spells_them() {
    let file = format!("{VULNERABLE}/spectre_v2");
    let state = |text: &str| intel().with(&file, text).machine().state("mitigation_spectre_v2").name();
    for text in [
        "Mitigation: Full generic retpoline, IBPB: conditional, IBRS_FW, STIBP: conditional, RSB filling",
        "Mitigation: Full AMD retpoline, IBPB: conditional, STIBP: disabled, RSB filling",
        "Mitigation: Full retpoline",
        "Mitigation: Retpolines; IBPB: conditional; RSB filling; BHI: Not affected",
        "Mitigation: Enhanced IBRS + LFENCE",
        "Mitigation: IBRS; IBPB: conditional",
        "Vulnerable: Minimal generic ASM retpoline",
    ] {
        assert_eq!(state(text), "on", "{text}");
    }
    for text in ["Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; RSB filling; BHI: Retpoline", "Vulnerable"]
    {
        assert_eq!(state(text), "off", "{text}");
    }
    assert_eq!(state("Not affected"), "absent");
}

#[test]
fn a_vm_with_some_of_hypervs_interface() {
    let vm = |cpu: &str| {
        let command = format!("/usr/bin/qemu-system-x86_64\0-name\0guest=win\0-cpu\0{cpu}\0");
        intel().with("proc/4711/cmdline", &command)
    };
    decides("NST-HVGUEST", &vm("host,hv-time,hv-stimer"), &vm("host"));
    let finding = vm("host,hv-time,hv-stimer").finding("NST-HVGUEST").unwrap();
    assert!(finding.title.contains("VM win") && finding.evidence[0].what.contains("hv-reenlightenment"), "{finding:?}");
}

#[test]
fn kernels_with_faults_that_guest_hypervisors_meet() {
    let with = |release: &str| intel().with("proc/sys/kernel/osrelease", release);
    decides("NST-FAULT", &with("6.12.109\n"), &with("6.12.110\n"));
    decides("NST-FAULT", &with("4.19.78\n"), &with("7.3.0\n"));
    let finding = with("6.12.94\n").finding("NST-FAULT").unwrap();
    assert!(finding.title.contains("lacks 3 fixes"), "{}", finding.title);
    let told: Vec<&str> = finding.evidence.iter().map(|seen| seen.place.as_str()).collect();
    assert!(told[0].contains("CVE-2026-53359") && finding.evidence[0].what.contains("6.12.95"), "{told:?}");
    // What happens to shadowed VMCSs happens to nobody who has none, and a host of no hypervisors has no such fault.
    let fewer = with("6.12.94\n").with("kvm_intel.enable_shadow_vmcs", "N").finding("NST-FAULT").unwrap();
    assert!(fewer.title.contains("lacks 2 fixes"), "{}", fewer.title);
    assert!(with("6.12.94\n").with("kvm_intel.nested", "N").finding("NST-FAULT").is_none());
}

#[test]
fn mitigations() {
    let split = intel().with("kvm.nx_huge_pages", "Y");
    decides("NST-NXHUGE", &split, &intel());
    let affected = intel()
        .with("kvm.nx_huge_pages", "Y")
        .with(&format!("{VULNERABLE}/itlb_multihit"), "KVM: Mitigation: Split huge pages");
    assert!(affected.finding("NST-NXHUGE").is_none());
    decides("NST-L1D", &intel().with("kvm_intel.vmentry_l1d_flush", "cond"), &intel());
    let quiet = ["mmio_stale_data", "spectre_v2"];
    let unprotected =
        quiet.iter().fold(intel(), |tree, file| tree.with(&format!("{VULNERABLE}/{file}"), "Not affected"));
    decides("NST-MITIGATION", &intel(), &unprotected);
}

#[test]
fn a_test_guest_decides_whether_an_event_fires() {
    let pvm = || Tree::of("hosts-pvm", 1);
    let silent = pvm().with("fired.txt", "20 kvm_pio\n0 kvm_exit\n");
    assert_eq!(silent.machine().state("trace_kvm_exit").name(), "off");
    assert!(silent.finding("NST-TRACE").unwrap().evidence[0].what.contains("does not fire"));
    decides("NST-TRACE", &pvm(), &pvm().with("fired.txt", "20 kvm_exit\n"));
}

#[test]
fn what_can_be_measured() {
    let counters = guest().with("sys/bus/event_source/devices/cpu/type", "4");
    decides("NST-PMU", &guest(), &counters);
    let silent = intel().with("sys/kernel/tracing/available_events", "sched:sched_switch\n");
    decides("NST-TRACE", &silent, &intel());
    let locked = intel().with("sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
    decides("NST-TRACE", &locked, &intel().with("sys/kernel/security/lockdown", "none [integrity] confidentiality\n"));
}

#[test]
fn a_guest_without_vmx_under_a_host_that_has_it() {
    let plain = guest().replacing("proc/cpuinfo", " vmx ", " ").replacing("proc/cpuinfo", "vmx flags", "x");
    let both = answer(&[&intel(), &plain]);
    let lost = both.findings.iter().find(|finding| finding.rule == "NST-LOST").unwrap();
    assert!(lost.title.starts_with("L1 has no VMX or SVM"), "{}", lost.title);
    // What KVM shows whatever its hardware has is no loss and no gain.
    let imitated = guest().replacing("proc/cpuinfo", "unrestricted_guest", "unrestricted_guest shadow_vmcs");
    let table = answer(&[&intel().replacing("proc/cpuinfo", " shadow_vmcs", ""), &imitated]);
    let flags = table.table("flags").unwrap();
    let row = flags.rows.iter().find(|row| row[2] == "shadow_vmcs".into()).unwrap();
    assert_eq!(row[5], "offered, and emulated by KVM where the hardware lacks it".into());
}
