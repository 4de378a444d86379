//! Puts the traces of guests on the time line of the machines below them.
//!
//! In: the parts of a recording whose manifest names machines and their parents. Out: for each guest's trace its
//! alignment, joined with that of the machine below where that is a guest itself. A recording of one machine costs
//! nothing; each guest's trace costs a second reading of itself and of the trace below it.

use super::model::{Aligned, PartFlow, Site};
use crate::guest_stages;
use crate::names;
use crate::{Given, Input};
use align::symbols::Symbols;
use align::{Alignment, Map};
use base::number::{counted, duration, list, many, thousands};
use base::recording::Recording;
use base::{Level, Problem, Span};
use std::collections::BTreeMap;
use walk::events::reasons::Reason;

/// Aligns every guest's trace whose lower machine was recorded too.
pub fn align(input: &Input, given: &Given, flows: &mut [PartFlow]) {
    if let Some(first) = flows.first_mut() {
        let unused = names::unused(input, given).into_iter();
        let problem = |(file, why)| Problem::at(file, None, "names of functions", "none", 0, why);
        first.problems.extend(unused.map(problem));
    }
    let lower: Vec<Option<usize>> = flows.iter().map(|flow| below(flow, flows, &input.recording)).collect();
    for (place, lower) in lower.iter().enumerate() {
        let Some(lower) = *lower else { continue };
        let vm_of = |tid: i32| {
            let vcpu = flows[lower].vcpus.iter().find(|vcpu| vcpu.tid == tid);
            vcpu.map(|vcpu| vcpu.vm.clone())
        };
        let (parts, machines) = (&input.parts, &input.recording.machines);
        let alignment = align::align(
            (&parts[lower], &flows[lower].clock),
            (&parts[place], &flows[place].clock),
            &given.traces.ignore_events,
            machines.iter().find(|machine| machine.id == flows[place].machine).and_then(|known| known.name.as_deref()),
            &vm_of,
        );
        let vms: Vec<String> = alignment.cpus.iter().map(|cpu| vm_of(cpu.vcpu.tid).unwrap_or_default()).collect();
        let symbols = names::symbols(input, given, &parts[place], &names::halts(&alignment));
        let symbols = symbols.unwrap_or_else(|sentence| {
            let path = flows[place].path.clone();
            flows[place].problems.push(Problem::at(path, None, "the kernel's KASLR offset", "none", 0, sentence));
            None
        });
        let sites = symbols.as_ref().map_or_else(Vec::new, |symbols| sites(&alignment, &vms, symbols));
        flows[place].aligned = Some(Aligned { alignment, vms, lies: None, joined: None, sites, symbols });
    }
    for (place, lower) in lower.iter().enumerate() {
        let joined = lower.and_then(|lower| {
            let (lower, upper) = (flows[lower].aligned.as_ref()?, flows[place].aligned.as_ref()?);
            Some((lower.alignment.below.clone(), joined_error_ns(&lower.alignment, &upper.alignment)?))
        });
        if let Some(aligned) = &mut flows[place].aligned {
            aligned.joined = joined;
        }
    }
}

/// Adds what guests' own traces tell of the interrupts of the machines below them to the sums of those.
pub(super) fn add_stages(input: &Input, flows: &mut [PartFlow]) {
    for place in 0..flows.len() {
        let Some(lower) = below(&flows[place], flows, &input.recording) else { continue };
        let Some(aligned) = flows[place].aligned.take() else { continue };
        let PartFlow { span, window, vcpus, .. } = &mut flows[lower];
        let own = |since_ns: u64| span.from_ns.saturating_add(since_ns);
        // A window that ends with the trace holds its last event.
        let to_ns = if own(window.to_ns) >= span.to_ns { u64::MAX } else { own(window.to_ns) };
        guest_stages::add(&aligned.alignment, vcpus, Span { from_ns: own(window.from_ns), to_ns });
        flows[place].aligned = Some(aligned);
    }
}

/// What was done, and how well it fits, as a person would say it.
pub fn sentence(aligned: &Aligned) -> String {
    let Alignment { below, machine, cpus, .. } = &aligned.alignment;
    let mut methods: Vec<&str> = cpus.iter().filter_map(|cpu| cpu.map.as_ref()).map(Map::in_words).collect();
    methods.sort_unstable();
    methods.dedup();
    if cpus.is_empty() {
        return format!(
            "Which vCPUs of {below} belong to {machine} is unknown, so its times stay on its own clock. Any of these \
             would resolve it: a recording.json that names the machine like the VM, exits of a nested guest, or MSR \
             accesses in both traces."
        );
    }
    if methods.is_empty() {
        return format!(
            "The clock of {machine} could not be aligned to that of {below}: record both with -C x86-tsc and -e kvm, \
             which includes kvm_write_tsc_offset."
        );
    }
    let methods: Vec<String> = methods.into_iter().map(str::to_owned).collect();
    let errors: Vec<(f64, f64)> = cpus.iter().filter_map(|cpu| aligned.alignment.errors_ns(cpu)).collect();
    let largest = |of: fn(&(f64, f64)) -> f64| errors.iter().map(of).fold(0.0, f64::max);
    let (median, most) = (largest(|errors| errors.0), largest(|errors| errors.1));
    let within = if median < most {
        format!("within {} at worst, {} in the median", duration(most), duration(median))
    } else {
        format!("within {}", duration(most))
    };
    let (own, found) = cpus.iter().fold((aligned.alignment.unpaired, 0), |(own, found), cpu| {
        (own + cpu.own.exits.len() as u64, found + cpu.common.len() as u64)
    });
    let exits = match own {
        0 => String::new(),
        _ => format!(
            "; {} of its {} found in the trace of {below}",
            thousands(found),
            counted(own, "exit was", "exits were")
        ),
    };
    let joined = aligned.joined.as_ref().map_or(String::new(), |(outer, error_ns)| {
        format!(" On the timeline of {outer} its events are accurate within {}.", duration(*error_ns))
    });
    let lies = aligned.lies.as_ref().map_or(String::new(), |(outermost, span)| {
        let second = |ns: u64| format!("{:.3} s", ns as f64 / 1e9);
        format!(" It covers {} to {} of the trace of {outermost}.", second(span.from_ns), second(span.to_ns))
    });
    let pairs = pairs(&aligned.alignment);
    format!("The clock of {machine} was aligned by {}{pairs}, {within}{exits}.{lies}{joined}", list(&methods))
}

/// How many causes and effects the clock was aligned by, in brackets.
fn pairs(alignment: &Alignment) -> String {
    let mut sums = [0; 3];
    for pairs in alignment.cpus.iter().filter_map(|cpu| cpu.pairs()) {
        sums.iter_mut().zip(pairs).for_each(|(sum, count)| *sum += count);
    }
    let kinds = [many(sums[0], "exit"), many(sums[1], "interrupt"), counted(sums[2], "MSR access", "MSR accesses")];
    let found: Vec<String> = kinds.into_iter().zip(sums).filter(|(_, sum)| *sum > 0).map(|(kind, _)| kind).collect();
    if found.is_empty() { String::new() } else { format!(" ({})", list(&found)) }
}

/// Exits by VM, reason and function, most frequent first.
fn sites(alignment: &Alignment, vms: &[String], symbols: &Symbols) -> Vec<Site> {
    let mut sums: BTreeMap<(&str, Reason, Option<String>), (u64, u64)> = BTreeMap::new();
    for (cpu, vm) in alignment.cpus.iter().zip(vms) {
        for ((reason, rip), (count, cost)) in &cpu.vcpu.sites {
            let sum = sums.entry((vm, *reason, symbols.name(*rip))).or_default();
            *sum = (sum.0 + count, sum.1 + cost);
        }
    }
    let site = |((vm, reason, symbol), (count, cost)): ((&str, Reason, Option<String>), (u64, u64))| Site {
        vm: vm.to_owned(),
        reason,
        symbol,
        count,
        total_ns: alignment.axis.length_ns(cost as f64),
    };
    let mut sites: Vec<Site> = sums.into_iter().map(site).collect();
    sites.sort_by_key(|site| std::cmp::Reverse(site.count));
    sites
}

/// The part of the machine that `flow`'s machine is a guest of: by the manifest, else the only machine one level below.
pub(super) fn below(flow: &PartFlow, flows: &[PartFlow], recording: &Recording) -> Option<usize> {
    let machine = recording.machines.iter().find(|machine| machine.id == flow.machine)?;
    if let Some(parent) = &machine.parent {
        return flows.iter().position(|other| other.machine == *parent);
    }
    let Level::At(level) = flow.level else { return None };
    let mut under = recording.machines.iter().filter(|other| other.level + 1 == level);
    match (under.next(), under.next()) {
        (Some(only), None) => flows.iter().position(|other| other.machine == only.id),
        _ => None,
    }
}

/// The largest error with which the exits and the first and last events of `upper` lie on the line below `lower`.
fn joined_error_ns(lower: &Alignment, upper: &Alignment) -> Option<f64> {
    let mut worst = None;
    for cpu in &upper.cpus {
        let ends = cpu.outside.ends.into_iter().flatten().map(|(at, _)| at);
        for at in cpu.own.exits.iter().map(|exit| exit.at).chain(ends) {
            let placed = align::compose::compose(lower, upper, cpu.cpu, at);
            worst = worst.max(placed.map(|placed| placed.error()));
        }
    }
    worst.map(|units| lower.axis.length_ns(units as f64))
}
