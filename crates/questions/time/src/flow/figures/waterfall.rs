//! What used up the time of vCPUs, step by step, and which finding would give which step back.

use super::{Spent, spent};
use base::figure::{Drawing, Removed, Step, Waterfall};
use base::number::{many, percent};
use base::{Figure, Finding, Level};
use facts::ledger::levels::{level_of, name, title};
use facts::ledger::measure::Measures;
use facts::ledger::model::Vcpu;
use walk::state::{State, TracedLevel};

/// VMs, and vCPUs, that get a waterfall of their own: those that lose most.
const MOST_OF_A_KIND: usize = 8;

/// Waterfalls of all vCPUs together, of each VM and of each vCPU, where these are not the same.
pub(super) fn used_up(measure: &Measures<'_>, findings: &[Finding]) -> Figure {
    let overhead_ns = |vcpus: &[&Vcpu]| vcpus.iter().map(|vcpu| vcpu.sums.ns_where(State::is_overhead)).sum::<u64>();
    let of = |title: String, vcpus: &[&Vcpu]| waterfall(measure, findings, title, vcpus);
    let mut vms: Vec<(&str, Vec<&Vcpu>)> = measure.by_vm().into_iter().collect();
    vms.sort_by_key(|(vm, vcpus)| (std::cmp::Reverse(overhead_ns(vcpus)), *vm));
    let mut vcpus = measure.vcpus.clone();
    vcpus.sort_by_key(|vcpu| (std::cmp::Reverse(overhead_ns(&[*vcpu])), vcpu.tid));
    let name = |vcpu: &Vcpu| format!("vCPU {} of {}", vcpu.vcpu, vcpu.vm);
    let all = match measure.vcpus.as_slice() {
        [only] => name(only),
        several => format!("all {} vCPUs", several.len()),
    };
    let mut drawn = vec![of(all, &measure.vcpus)];
    if vms.len() > 1 {
        drawn.extend(vms.iter().take(MOST_OF_A_KIND).map(|(vm, vcpus)| of((*vm).to_owned(), vcpus)));
    }
    if vcpus.len() > 1 {
        drawn.extend(vcpus.iter().take(MOST_OF_A_KIND).map(|vcpu| of(name(vcpu), &[*vcpu])));
    }
    Figure {
        id: format!("waterfall-{}", measure.part.machine),
        title: "What used up the vCPU time, and what would come back".into(),
        caption: format!("{}{}", caption(measure, &drawn[0], vcpus.len()), super::seen_from_above(measure)),
        in_terminals: false,
        drawing: Drawing::Waterfall(drawn),
    }
}

fn waterfall(measure: &Measures<'_>, findings: &[Finding], title: String, vcpus: &[&Vcpu]) -> Waterfall {
    let wall_ns: u64 = vcpus.iter().map(|vcpu| vcpu.sums.wall_ns()).sum();
    let share = |ns: u64| ns as f64 / wall_ns.max(1) as f64;
    let step = |label: String, hue: String, state: State, ns: u64| {
        let removed = removed(&name(measure.part.level, state), share(ns), findings, vcpus, share);
        Step { label, hue, share: share(ns), removed }
    };
    let mut steps = Vec::new();
    for Spent { state, label, hue, ns } in spent(measure, vcpus) {
        let reflected_ns =
            if state == State::Guest(TracedLevel::L1) { reflected_ns(measure, vcpus).min(ns) } else { 0 };
        if reflected_ns < ns {
            steps.push(step(label, hue.clone(), state, ns - reflected_ns));
        }
        if reflected_ns > 0 {
            let [outer, nested] = [1, 2].map(|depth| measure.level_above(depth));
            // As timelines draw it: the hypervisor of a guest at work for that.
            let at_work = if measure.part.level == Level::L0 { "handling_l2_by_l1".to_owned() } else { hue };
            steps.push(Step {
                label: format!("{outer} handling exits of {nested}"),
                hue: at_work,
                share: share(reflected_ns),
                removed: Vec::new(),
            });
        }
    }
    Waterfall { title, steps }
}

/// Time of L1's own code between an exit of L2 that it handles and the next entry of L2.
fn reflected_ns(measure: &Measures<'_>, vcpus: &[&Vcpu]) -> u64 {
    vcpus.iter().flat_map(|vcpu| measure.chains_of(vcpu)).map(|(_, sums)| sums.guest_ns).sum()
}

/// Which findings would give back which part of a step.
fn removed(
    state: &str,
    of_step: f64,
    findings: &[Finding],
    vcpus: &[&Vcpu],
    share: impl Fn(u64) -> f64,
) -> Vec<Removed> {
    let is_here = |vm: &str, number: u32| vcpus.iter().any(|vcpu| vcpu.vm == vm && vcpu.vcpu == number);
    let of_finding = |finding: &Finding| {
        let gives_back = finding.gives_back.as_ref().filter(|gives_back| gives_back.state == state)?;
        let own = gives_back.of_vcpus.iter().filter(|(vm, number, _)| is_here(vm, *number));
        let ns: u64 = own.map(|(.., ns)| ns).sum();
        // The ends lie as far from what is most likely as those of all vCPUs.
        let back = share(ns).min(of_step);
        let end = |of_all: f64| (back * of_all / gives_back.share).min(of_step);
        let (low, high) = (end(gives_back.low), end(gives_back.high));
        (back > 0.0).then(|| Removed { finding: finding.id(), rule: finding.rule.to_owned(), share: back, low, high })
    };
    let mut removed: Vec<Removed> = findings.iter().filter_map(of_finding).collect();
    removed.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.finding.cmp(&b.finding)));
    removed
}

fn caption(measure: &Measures<'_>, all: &Waterfall, vcpus: usize) -> String {
    let host = measure.part.level;
    let is_guest = |step: &&Step| step.hue.starts_with("guest_");
    let own: f64 = all.steps.iter().filter(is_guest).map(|step| step.share).sum();
    let guests = if measure.nested {
        format!("{} and {}", level_of(host, TracedLevel::L1), level_of(host, TracedLevel::L2))
    } else {
        title(host, State::Guest(TracedLevel::L1)).replace(" guest", "")
    };
    let whose = if measure.nested { "their" } else { "its" };
    // A part of which nothing may come back makes the sum a bound.
    let is_bound = all.steps.iter().flat_map(|step| &step.removed).any(|removed| removed.low <= 0.0);
    let highest = |step: &Step| step.removed.iter().map(|removed| removed.high).sum::<f64>().min(step.share);
    let back: f64 = all.steps.iter().map(if is_bound { highest } else { Step::given_back }).sum();
    let back = if back > 0.0 {
        let how = if is_bound { "up to" } else { "some" };
        format!("the findings' changes would give back {how} {}", percent(back))
    } else {
        "no finding names a part that would come back".to_owned()
    };
    let most = MOST_OF_A_KIND as u64;
    let fewer = if vcpus as u64 > most {
        format!(" The {} that lose most have one each.", many(most, "vCPU"))
    } else {
        String::new()
    };
    format!("{guests} ran {whose} own code for {} of the vCPU time; {back}.{fewer}", percent(own))
}
