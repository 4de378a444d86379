//! The placements that are shown, as findings whose changes can be made: `kvmscope apply PLC-PROPOSAL@1`.

use crate::placement::model::Model;
use crate::placement::solver::{Goal, Kind, Plan, Unit};
use base::number::{counted, list, many, percent};
use base::{About, Change, Cost, CostKind, CpuSet, Evidence, Setting, Severity};
use facts::rule::Hit;
use host::machine::{Domain, Manager};

/// So many CPUs that siblings take from each other are told: our own limit, below which the model's ripple lies.
const WORTH_A_WORD: f64 = 0.05;

/// One finding for each placement that scores better than what holds now; its subject is the rank in table `proposal`.
pub(crate) fn proposed(model: &Model) -> Vec<Hit> {
    let Some(now) = model.proposal.now() else { return Vec::new() };
    let better = model.proposal.better().into_iter().enumerate();
    better.map(|(index, plan)| finding(model, now, index + 1, plan)).collect()
}

fn finding(model: &Model, now: &Plan, rank: usize, plan: &Plan) -> Hit {
    let changes = model.proposal.all_changes(plan);
    let (before, after) = (model.proposal.missing(now), model.proposal.missing(plan));
    let commands = many(changes.len() as u64, "command");
    let [had, gets] = [before, after].map(|short| format!("{short:.2}"));
    let short = if had == gets { format!("{had} CPUs short as now") } else { format!("CPUs short {had} to {gets}") };
    let near = match (near_memory(model, now), near_memory(model, plan)) {
        (Some(had), Some(gets)) if (gets - had).abs() >= NEARER => {
            format!(", memory on the nodes of the vCPUs {} to {}", percent(had), percent(gets))
        }
        _ => String::new(),
    };
    let title = format!("placement {rank}, {}: {commands}, {short}{near}", plan.idea);
    let mut short = match had == gets {
        true => format!("CPUs short: {had}, now and with it (modelled)"),
        false => format!("CPUs short: {had} now, {gets} with it (modelled)"),
    };
    let siblings = model.proposal.beside_siblings(now);
    if siblings > WORTH_A_WORD {
        short += &format!(
            "; {siblings:.2} of those now are what busy siblings take from each other: no thread waits for them"
        );
    }
    let is_new = |unit: &&Unit| unit.kind == Kind::Pmd && unit.now.is_none();
    let new = model.proposal.task.units.iter().filter(is_new).count() as u64;
    if new > 0 {
        let new =
            counted(new, "polling thread that has no CPU yet counts", "polling threads that have no CPU yet count");
        short += &format!("; now, {new} as bound to none");
    }
    if let Some(waited) = model.unexplained() {
        short += &format!("; threads waited {waited:.2} CPUs (measured), more than the model explains");
    }
    let mut hit = Hit::new(rank.to_string(), Severity::Info, title)
        .with(
            Evidence::new(short, "tables plans and proposal")
                .about([About::rows("placement.plans"), About::rows("placement.proposal")]),
        )
        .with(Evidence::in_table(
            format!(
                "the score is {:.0} points lower (lower is better), {:.0} per command; {}",
                now.score.total - plan.score.total,
                plan.effect,
                what(&changes)
            ),
            "placement.plans",
        ));
    if let Some(still) = remaining(model, plan) {
        hit = hit.with(Evidence::in_table(still, "placement.proposal"));
    }
    let fewer = before - after;
    if fewer > 0.005 {
        hit.cost = Cost::of(CostKind::Modelled, fewer, "CPUs that threads are short of now and would get");
    }
    if changes.iter().any(|change| matches!(change.setting, Setting::IrqAffinity { .. })) {
        super::place::keep_irqbalance_away(model, &mut hit);
    }
    hit.fix.extend(hints(model, plan));
    // Those of other managers are written by these.
    let is_libvirts = |domain: &Domain| match model.machine.manager_of(domain) {
        Manager::Libvirt => true,
        Manager::Qemu => !domain.by_command,
        _ => false,
    };
    if model.machine.domains.iter().any(is_libvirts) {
        hit.fix.push(format!("kvmscope check --xml {rank}   # the same as elements of each domain's definition"));
    }
    hit.changes = changes;
    hit
}

/// So much of the memory that is near its vCPUs, or no longer, is told: our own limit.
const NEARER: f64 = 0.1;

/// The part of VMs' memory that is on the node of the vCPU that asks for it, by what vCPUs want to run; `None` where nobody told where it is.
fn near_memory(model: &Model, plan: &Plan) -> Option<f64> {
    let topology = &model.machine.topology;
    let units = model.proposal.task.units.iter().zip(&model.proposal.subjects).zip(&plan.places);
    let (mut near, mut all) = (0.0, 0.0);
    for ((unit, of), place) in units.filter(|((unit, _), _)| unit.kind == Kind::Vcpu) {
        let Some(memory) = model.machine.vm_memory.get(&of.vm) else { continue };
        let total = memory.value.values().sum::<u64>() as f64;
        let nodes: Vec<u32> = place.iter().flat_map(|cpu| topology.nodes_of(&[cpu].into_iter().collect())).collect();
        if total > 0.0 && !nodes.is_empty() {
            let there: f64 = nodes.iter().filter_map(|node| memory.value.get(node)).map(|bytes| *bytes as f64).sum();
            near += unit.demand * there / total / nodes.len() as f64;
            all += unit.demand;
        }
    }
    (all > 0.0).then(|| near / all)
}

/// `2 vCPUs, 1 emulator, 3 interrupts and the polling threads`.
fn what(changes: &[Change]) -> String {
    const NOUNS: [&str; 6] = ["vCPU", "emulator", "iothread", "thread", "interrupt", "other setting"];
    let (mut counts, mut polling, mut work) = ([0; NOUNS.len()], false, false);
    for change in changes {
        match change.setting {
            Setting::VcpuPin { .. } => counts[0] += 1,
            Setting::EmulatorPin { .. } => counts[1] += 1,
            Setting::IothreadPin { .. } => counts[2] += 1,
            Setting::TaskAffinity(_) => counts[3] += 1,
            Setting::IrqAffinity { .. } => counts[4] += 1,
            Setting::ModuleOption { .. } | Setting::Sysctl { .. } | Setting::TaskPolicy(_) => counts[5] += 1,
            Setting::PmdMask => polling = true,
            Setting::SysfsWrite { .. } => work = true,
        }
    }
    let counted = NOUNS.iter().zip(counts).filter(|(_, count)| *count > 0);
    let mut parts: Vec<String> = counted.map(|(noun, count)| many(count, noun)).collect();
    parts.extend(polling.then(|| "the polling threads".to_owned()));
    parts.extend(work.then(|| "kernel work".to_owned()));
    format!("moves {}", list(&parts))
}

/// vCPUs that would still share a CPU, named, because a placement with fewer commands leaves some.
fn remaining(model: &Model, plan: &Plan) -> Option<String> {
    let proposal = &model.proposal;
    let units = || (0..plan.places.len()).filter(|unit| proposal.task.units[*unit].kind != Kind::Housekeeping);
    let shares = |unit: &usize| {
        proposal.task.units[*unit].kind.is_pinned()
            && units().any(|other| other != *unit && plan.places[other].meets(&plan.places[*unit]))
    };
    let count = units().filter(shares).count() as u64;
    (count > 0).then(|| {
        format!("{} would still share a CPU", counted(count, "vCPU or polling thread", "vCPUs or polling threads"))
    })
}

/// What only a person can do for the CPUs that goal latency keeps free of everything else.
fn hints(model: &Model, plan: &Plan) -> Vec<String> {
    let units = model.proposal.task.units.iter().zip(&plan.places).zip(&plan.exclusive);
    let own = units
        .filter(|((unit, _), exclusive)| **exclusive && unit.kind == Kind::Vcpu)
        .fold(CpuSet::default(), |all, ((_, place), _)| all.or(place));
    if model.proposal.task.goal != Goal::Latency || own.is_empty() {
        return Vec::new();
    }
    let rest = model.machine.topology.online.without(&own);
    vec![
        format!("# at the next boot: isolcpus=managed_irq,domain,{own} nohz_full={own} rcu_nocbs={own}"),
        format!(
            "# or tuned-adm profile cpu-partitioning, with isolated_cores={own} in its variables; {rest} do \
             housekeeping"
        ),
    ]
}
