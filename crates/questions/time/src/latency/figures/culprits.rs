//! Who took how much in all?

use super::super::measure::{Measured, Named};
use super::{hue, words};
use base::Figure;
use base::figure::{Bar, BarGroup, Drawing};
use base::number::{duration, many};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Bars of a VM; what is left is one more.
const MOST_BARS: usize = 8;

/// What one culprit took from one VM.
#[derive(Default)]
struct Taken {
    count: u64,
    total_ns: u64,
    max_ns: u64,
}

/// What was taken from one VM.
#[derive(Default)]
struct OfVm<'m> {
    vcpus: u64,
    taken: BTreeMap<&'m Named, Taken>,
}

/// Bars for each VM that lost anything, the one that lost most first.
pub(super) fn figure(measured: &[Measured<'_>]) -> Option<Figure> {
    let mut vms: BTreeMap<(&str, &str), OfVm<'_>> = BTreeMap::new();
    for one in measured {
        let of_vm = vms.entry((&one.part.machine, &one.vcpu.vm)).or_default();
        of_vm.vcpus += 1;
        for (named, sums) in &one.culprits {
            let sum = of_vm.taken.entry(named).or_default();
            sum.count += sums.count;
            sum.total_ns += sums.total_ns;
            sum.max_ns = sum.max_ns.max(sums.max_ns);
        }
    }
    let group = |((_, vm), OfVm { vcpus, taken }): ((&str, &str), OfVm<'_>)| {
        let title = format!("vm {vm}   {}", many(vcpus, "vCPU"));
        let total = taken.values().map(|taken| taken.total_ns).sum::<u64>() as f64;
        BarGroup { title, unit: "ns", total, bars: bars(taken), span: None }
    };
    let mut groups: Vec<BarGroup> = vms.into_iter().map(group).filter(|group| group.total > 0.0).collect();
    groups.sort_by(|a, b| b.total.total_cmp(&a.total));
    let total = groups.iter().map(|group| group.total).sum();
    let most = groups.first()?.bars.first()?;
    Some(Figure {
        id: "culprits".into(),
        title: "Who took how much in all".into(),
        caption: format!(
            "{} took {} of the {} that {} lost.",
            most.label,
            duration(most.value),
            duration(total),
            many(measured.len() as u64, "vCPU")
        ),
        in_terminals: false,
        drawing: Drawing::Bars(groups),
    })
}

fn bars(taken: BTreeMap<&Named, Taken>) -> Vec<Bar> {
    let mut taken: Vec<(&Named, Taken)> = taken.into_iter().filter(|(_, taken)| taken.total_ns > 0).collect();
    taken.sort_by_key(|(_, taken)| Reverse(taken.total_ns));
    let rest = taken.split_off(taken.len().min(MOST_BARS));
    let bar = |(named, Taken { count, total_ns, max_ns }): (&Named, Taken)| Bar {
        label: named.by.clone(),
        value: total_ns as f64,
        note: format!("{}, {}longest {}", words(named.state), began(count), duration(max_ns as f64)),
        hue: hue(named.state).into(),
    };
    let others = (!rest.is_empty()).then(|| Bar {
        label: many(rest.len() as u64, "other"),
        value: rest.iter().map(|(_, taken)| taken.total_ns).sum::<u64>() as f64,
        note: String::new(),
        hue: String::new(),
    });
    taken.into_iter().map(bar).chain(others).collect()
}

/// How many losses began with it; who only came into one that others began, began none.
fn began(count: u64) -> String {
    if count == 0 { String::new() } else { format!("{}, ", many(count, "time")) }
}
