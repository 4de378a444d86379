//! Checks of what nesting multiplies: exits that a CPU feature would keep inside the guest hypervisor.

use super::{
    Sample, by_share, exits_ns, gives_back, gives_back_between, handling, hit, of_vm, reasons, seen, switched_on,
    worst_vm,
};
use base::number::{duration, many, percent, thousands};
use base::{About, Cost, CostKind, Evidence, GivesBack};
use facts::ledger::measure::Measures;
use facts::ledger::model::Vcpu;
use facts::rule::Hit;
use facts::traced_exits::TracedExits;
use walk::events::details::Detail;
use walk::events::reasons::{Class, Isa, Reason};

/// VMREAD and VMWRITE of L1 in most chains. Real hypervisors touch ten and more fields per exit without shadowing
/// (intel/haxm PR 130 has 6-10 VMREAD and 2-6 VMWRITE for KVM on average), and one or two with it.
pub(in crate::flow) const VMCS_PER_CHAIN: f64 = 4.0;

/// Share of all exits from which on VMREAD and VMWRITE count where no chain is complete.
pub(in crate::flow) const VMCS_WITHOUT_CHAINS: f64 = 0.3;

/// And so many of them: an excerpt of a few lines may be the beginning of a chain.
const VMCS_LEAST: u64 = 10;

/// Share of all exits from which on two instructions of SVM are worth a finding.
pub(in crate::flow) const SVM_SHARE: f64 = 0.01;

/// What exits without shadowing, as table `flow.exits` calls it.
const VMCS_ACCESSES: &[&str] = &["VMREAD", "VMWRITE"];

/// VMWRITEs per chain that shadowing does not remove: HOST_RSP is not in KVM's list of shadowed fields.
const UNSHADOWED_PER_CHAIN: f64 = 1.0;

/// What vCPUs would get back without these exits of L1, the share of the VM that would get most, and a sentence about it. Such
/// an exit costs more than L0's work on it: both switches, and L1's caches. So where there are chains, it is what `plan nested`
/// predicts of them; else at most L0's own work.
fn saving(
    measure: &Measures<'_>,
    names: &[&str],
    wanted: impl Fn(Reason) -> bool,
) -> (Option<GivesBack>, f64, Evidence) {
    let about = reasons(measure, |total| wanted(total.reason));
    let exits = TracedExits::of_trace(measure);
    let own_ns = |vcpu: &Vcpu| exits_ns(measure, vcpu, &wanted);
    let (busiest, own) = worst_vm(measure, own_ns);
    let takes = |vm: &str, own: f64| format!("L0's work on them takes {} of the vCPU time of {vm}", percent(own));
    let seen = |what: String, vm: &str| Evidence::in_table(what, "flow.exits").key("vm", vm).about(about.clone());
    let state = handling(measure, |total| wanted(total.reason));
    let Some(remains) = exits.remains_without(names) else {
        let back = state.and_then(|state| gives_back(measure, state, |vcpu| exits_ns(measure, vcpu, &wanted)));
        return (back, own, seen(takes(busiest, own), busiest));
    };
    let back =
        state.and_then(|state| gives_back_between(measure, state, |vcpu| exits.saved_ns(measure, vcpu, remains)));
    let (vm, share) = worst_vm(measure, |vcpu| exits.saved_ns(measure, vcpu, remains).mid as u64);
    let takes = takes(vm, of_vm(measure, vm, own_ns));
    let what = format!("{takes}; with the switches of each, it would get back some {}", percent(share));
    (back, share.max(own), seen(what, vm))
}

/// VMCS shadowing off or absent.
pub(crate) fn shadow(measure: &Measures<'_>) -> Vec<Hit> {
    let per_chain = measure.chains.per_chain(Class::VmcsAccess);
    let (exits, total_ns) = measure.exits_where(|total| total.reason.class() == Class::VmcsAccess);
    let is_many = exits >= VMCS_LEAST && measure.share(exits) > VMCS_WITHOUT_CHAINS;
    let without_chains = measure.chains.undisturbed == 0 && is_many;
    if exits == 0 || (per_chain < VMCS_PER_CHAIN && !without_chains) {
        return Vec::new();
    }
    let share = measure.share(exits);
    let mut evidence = Vec::new();
    for name in VMCS_ACCESSES {
        let totals = measure.reasons.iter().filter(|total| total.reason.known_name() == Some(*name));
        for total in totals {
            let sites = total.details.iter().filter(|(detail, ..)| matches!(detail, Detail::Rip(_))).count();
            let busiest = total.details.first().map_or(0, |(_, count, _)| *count);
            let what = format!(
                "{} {name} at {} in {}, up to {} each",
                thousands(total.count),
                many(sites as u64, "place"),
                total.level,
                thousands(busiest)
            );
            let row = seen(measure, what, "flow.exit_details").key("level", total.level.to_string());
            evidence.push(row.key("reason", *name).about([About::reason(*name)]));
        }
    }
    let cost = if measure.chains.undisturbed > 0 {
        let all = measure.chains.exits.mean().unwrap_or(0.0);
        let what = format!(
            "{per_chain:.1} of {all:.1} exits per chain are VMREAD or VMWRITE, over {}",
            many(measure.chains.undisturbed, "chain")
        );
        let accesses = reasons(measure, |total| total.reason.class() == Class::VmcsAccess);
        evidence.push(seen(measure, what, "flow.chains").about(accesses));
        let saved = per_chain - UNSHADOWED_PER_CHAIN;
        let unit = format!("of {all:.0} exits per chain");
        Cost::of(CostKind::Modelled, saved.round(), unit).between((saved - 2.0).max(0.0).round(), per_chain.round())
    } else {
        Cost::of(CostKind::Measured, share, format!("share of {}", measure.all_exits()))
    };
    let (back, time_share, takes) = saving(measure, VMCS_ACCESSES, |reason| reason.class() == Class::VmcsAccess);
    evidence.push(takes);
    let title = format!(
        "VMCS shadowing is off or absent: {} of {} are VMREAD and VMWRITE",
        percent(share),
        measure.all_exits()
    );
    let sample = Sample { count: exits, ns: total_ns };
    let mut hits = hit(measure, by_share(time_share, sample), title, evidence, cost);
    hits[0].gives_back = back;
    switched_on("kvm_intel", "enable_shadow_vmcs", hits)
}

/// Two SVM instructions of L1 that a CPU feature, which a parameter of KVM's module switches on, would keep in the guest.
fn svm_pair(measure: &Measures<'_>, names: [&str; 2], feature: &str, parameter: &str) -> Vec<Hit> {
    let is_one =
        |reason: Reason| reason.isa == Isa::Svm && reason.known_name().is_some_and(|name| names.contains(&name));
    let (exits, total_ns) = measure.exits_where(|total| is_one(total.reason));
    let share = measure.share(exits);
    if share < SVM_SHARE || measure.chains.undisturbed == 0 {
        return Vec::new();
    }
    let each: Vec<String> = measure
        .reasons
        .iter()
        .filter(|total| is_one(total.reason))
        .map(|total| many(total.count, &format!("{} exit", total.reason.name())))
        .collect();
    let in_chain: u64 =
        measure.chains.per_reason.iter().filter(|(reason, _)| is_one(**reason)).map(|(_, exits)| exits).sum();
    let per_chain = in_chain as f64 / measure.chains.undisturbed.max(1) as f64;
    let (back, time_share, takes) = saving(measure, &names, is_one);
    let pair = reasons(measure, |total| is_one(total.reason));
    let of_chain = format!("{per_chain:.1} of {:.1} exits per chain", measure.chains.exits.mean().unwrap_or(0.0));
    let evidence = vec![
        seen(measure, format!("{} of L1", each.join(" and ")), "flow.exits").about(pair.clone()),
        seen(measure, of_chain, "flow.chains").about(pair.clone()),
        seen(measure, format!("they take {} of L0's time", duration(total_ns as f64)), "flow.exits").about(pair),
        takes,
    ];
    let title = format!(
        "{feature} is off or absent: {} of {} are {} and {}",
        percent(share),
        measure.all_exits(),
        names[0],
        names[1]
    );
    let cost = Cost::of(CostKind::Modelled, per_chain, "exits per chain").between(0.0, per_chain);
    let sample = Sample { count: exits, ns: total_ns };
    let mut hits = hit(measure, by_share(time_share, sample), title, evidence, cost);
    hits[0].gives_back = back;
    switched_on("kvm_amd", parameter, hits)
}

/// VMLOAD and VMSAVE leave the guest.
pub(crate) fn vls(measure: &Measures<'_>) -> Vec<Hit> {
    svm_pair(measure, ["VMLOAD", "VMSAVE"], "Virtual VMLOAD/VMSAVE (vls)", "vls")
}

/// STGI and CLGI leave the guest.
pub(crate) fn vgif(measure: &Measures<'_>) -> Vec<Hit> {
    svm_pair(measure, ["STGI", "CLGI"], "Virtual GIF (vgif)", "vgif")
}
