//! The bundled hosts: what each feature is there, and which findings there are.

use super::tree::{Tree, answer};
use base::figure::Standing;

fn states(fixture: &str, level: u8, features: &[&str]) -> Vec<Standing> {
    let machine = Tree::of(fixture, level).machine();
    features.iter().map(|feature| machine.row(feature).unwrap_or_else(|| panic!("no row {feature}")).state).collect()
}

fn ids(fixture: &str, level: u8) -> Vec<String> {
    Tree::of(fixture, level).findings().iter().map(|finding| finding.id()).collect()
}

use Standing::{Absent, Off, On, Unknown};

#[test]
fn an_intel_host_has_everything_on() {
    let features =
        ["hypervisor_below", "virtualization", "nested", "vmcs_shadowing", "ept", "apicv", "pmu", "trace_kvm_exit"];
    assert_eq!(states("hosts-intel", 0, &features), [Off, On, On, On, On, On, On, On]);
    assert_eq!(
        states("hosts-intel", 0, &["ipi_virtualization", "l1d_flush", "enlightened_vmcs"]),
        [Absent, Off, Absent]
    );
    assert_eq!(ids("hosts-intel", 0), ["NST-KERNEL@L0.93da6af3ae56", "NST-MITIGATION@L0"]);
}

#[test]
fn its_guest_does_not_claim_what_only_the_host_can_tell() {
    assert_eq!(
        states("hosts-intel", 1, &["hypervisor_below", "vmcs_shadowing", "apicv", "pmu"]),
        [On, Absent, Absent, Absent]
    );
    let section = answer(&[&Tree::of("hosts-intel", 1)]);
    let table = section.table("features").unwrap();
    let of_host = table.rows().filter(|row| row.text("level") == Some("L0"));
    let told: Vec<_> = of_host.map(|row| (row.text("feature"), row.text("state"))).collect();
    assert!(told.contains(&(Some("vmcs_shadowing"), Some("unknown"))), "{told:?}");
    assert!(told.iter().all(|(_, state)| *state == Some("unknown")));
    assert_eq!(section.unknown[0].what, "outer_level");
    // With the host's own snapshot nothing of it is left open; rules about the kernel's log and the time of CPUID are.
    let both = answer(&[&Tree::of("hosts-intel", 0), &Tree::of("hosts-intel", 1)]);
    let open: Vec<_> = both.unknown.iter().map(|unknown| (unknown.what.as_str(), unknown.amount)).collect();
    assert_eq!(open, [("rules_not_judged", Some(2.0))]);
}

#[test]
fn what_is_lost_on_the_way_is_named_and_what_kvm_never_passes_on_is_not() {
    let both = answer(&[&Tree::of("hosts-intel", 0), &Tree::of("hosts-intel", 1)]);
    let lost = both.findings.iter().find(|finding| finding.rule == "NST-LOST").unwrap();
    assert_eq!(lost.needs.name(), "outer level");
    let what = &lost.evidence[0].what;
    assert!(["shadow_vmcs", "vid", "posted_intr", "pml"].iter().all(|flag| what.contains(flag)), "{what}");
    assert!(!what.contains("ple,") && !what.contains("ept_mode_based_exec"), "{what}");
    let same = answer(&[&Tree::of("hosts-intel", 0), &Tree::of("hosts-intel", 0)]);
    assert!(same.findings.iter().all(|finding| finding.rule != "NST-LOST"));
}

#[test]
fn the_two_amd_hosts_differ_in_avic_alone() {
    let features = ["virtualization", "npt", "virtual_vmload_vmsave", "virtual_gif", "virtual_nmi", "avic"];
    assert_eq!(states("hosts-amd-avic", 0, &features), [On, On, On, On, Absent, On]);
    assert_eq!(states("hosts-amd", 0, &features), [On, On, On, On, Absent, Off]);
    let without = ids("hosts-amd", 0);
    assert_eq!(without[0], "NST-APIC@L0.avic");
    assert!(ids("hosts-amd-avic", 0).iter().all(|id| !id.contains("APIC") && !id.contains("ca2967de5a5b")));
}

#[test]
fn a_guest_of_hyperv_with_and_without_its_enlightenments() {
    let features = [
        "hyperv_evmcs_offered",
        "enlightened_vmcs",
        "hyperv_msr_bitmap",
        "hyperv_direct_flush",
        "hyperv_tsc_page",
        "hyperv_reenlightenment",
        "clock_without_exit",
        "stable_clock_for_guests",
    ];
    assert_eq!(states("hosts-hyperv-evmcs", 1, &features), [On; 8]);
    assert_eq!(states("hosts-hyperv", 1, &features), [On, Off, Absent, On, Absent, Absent, Off, Off]);
    let with = ids("hosts-hyperv-evmcs", 1);
    assert!(
        with.contains(&"NST-EVMCSON@L1".to_owned()) && with.iter().all(|id| !id.starts_with("NST-CLOCK")),
        "{with:?}"
    );
    let without = ids("hosts-hyperv", 1);
    for rule in ["NST-EVMCS@L1", "NST-CLOCK@L1", "NST-CLOCKGUESTS@L1", "NST-MSRBITMAP@L1"] {
        assert!(without.contains(&rule.to_owned()), "{rule} in {without:?}");
    }
}

#[test]
fn a_guest_with_kvm_pvm_has_no_vmx_and_its_exits_may_be_silent() {
    let features = ["kvm_pvm", "virtualization", "ept", "vmcs_shadowing", "trace_kvm_exit", "kvm_clock_stable"];
    assert_eq!(states("hosts-pvm", 1, &features), [On, Absent, Absent, Absent, Unknown, On]);
    assert_eq!(states("hosts-pvm", 1, &["kvm_nested_state", "kvm_stats_fd", "kvm_dirty_ring"]), [Absent, On, On]);
    assert_eq!(ids("hosts-pvm", 1), ["NST-PMU@L1", "NST-TRACE@L1"]);
}

#[test]
fn every_row_has_its_evidence_and_every_finding_its_way() {
    for (fixture, level) in
        [("hosts-intel", 1), ("hosts-amd", 0), ("hosts-hyperv", 1), ("hosts-hyperv-evmcs", 1), ("hosts-pvm", 1)]
    {
        let tree = Tree::of(fixture, level);
        assert!(tree.machine().features.iter().all(|row| !row.evidence.is_empty()));
        for finding in tree.findings() {
            assert!(
                !finding.evidence.is_empty() && !finding.why.is_empty() && !finding.source.is_empty(),
                "{}",
                finding.id()
            );
            assert!(finding.changes.iter().all(|change| finding.fix.contains(&change.command())), "{}", finding.id());
            let undone = finding.changes.iter().all(|change| finding.undo.contains(&change.undo().unwrap()));
            assert!(undone, "{}: {:?}", finding.id(), finding.undo);
        }
    }
}

#[test]
fn a_line_that_tells_two_mitigations_is_evidence_once() {
    let path = "sys/devices/system/cpu/vulnerabilities/spectre_v2";
    let text = "Mitigation: Retpolines; STIBP: disabled; RSB filling; PBRSB-eIBRS: Not affected; BHI: Retpoline\n";
    let findings = Tree::of("hosts-intel", 0).with(path, text).findings();
    let paid = findings.iter().find(|finding| finding.rule == "NST-MITIGATION").unwrap();
    let lines = paid.evidence.iter().filter(|seen| seen.what.contains("spectre_v2")).count();
    assert_eq!(lines, 1, "{:?}", paid.evidence);
}

#[test]
fn one_reason_that_many_features_are_absent_for_takes_one_line() {
    use kvmscope_analysis::nesting::{model::Model, section::section};
    use kvmscope_analysis::{Given, Listing};
    let model = Model { machines: vec![Tree::of("hosts-pvm", 1).machine()], traced_nested: false };
    let section =
        section(&model, &Given { listing: Listing { all_features: true, ..Listing::default() }, ..Given::default() });
    let features = section.tables.iter().find(|table| table.spec.name == "features").unwrap();
    let shown = features.shown.as_ref().unwrap();
    let absent = |rows: &[base::table::Row<'_>]| -> Vec<(String, String)> {
        let text = |row: &base::table::Row<'_>, column: &str| row.text(column).unwrap().to_owned();
        let absent = rows.iter().filter(|row| row.text("state") == Some("absent"));
        absent.map(|row| (text(row, "feature"), text(row, "evidence"))).collect()
    };
    let rows: Vec<_> = features.rows().collect();
    let (printed, rest) = rows.split_at(shown.most_rows);
    let printed = absent(printed);
    assert!(printed.iter().any(|(feature, _)| feature == "virtualization"));
    assert!(rest.len() > 12 && absent(rest).len() == rest.len() && shown.rest.is_some());
    for (feature, reason) in absent(rest) {
        let is_given = printed.iter().any(|(_, given)| *given == reason);
        assert!(is_given || reason.ends_with("Not affected"), "{feature}: {reason}");
    }
}
