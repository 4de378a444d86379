//! Rules that contradict each other on this host: both sides are shown with what decides, and neither is proposed by itself.

use super::{cards, knobs};
use crate::placement::model::Model;
use base::number::list;
use base::shell::quoted;
use base::{Evidence, Severity};
use facts::rule::Hit;
use host::machine::Domain;

/// Setting of transparent huge pages.
pub(crate) const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";
/// Setting of automatic balancing between nodes.
pub(crate) const BALANCING: &str = "proc/sys/kernel/numa_balancing";

fn named(model: &Model, wanted: impl Fn(&Domain) -> bool) -> Vec<String> {
    model.machine.domains.iter().filter(|domain| wanted(domain)).map(|domain| domain.name.clone()).collect()
}

/// Huge pages by themselves: off for isolated CPUs, on for guests that have no huge pages of their own.
pub(crate) fn huge_pages(model: &Model) -> Vec<Hit> {
    let Some(setting) = model.machine.settings.get(THP).filter(|_| knobs::is_partitioned(model)) else {
        return Vec::new();
    };
    let on_them = named(model, |domain| domain.whole.is_some() && !domain.huge_pages);
    if on_them.is_empty() {
        return Vec::new();
    }
    let title = "two rules disagree on transparent huge pages";
    let mut hit = Hit::new("thp", Severity::Info, title);
    hit.fix =
        vec!["kvmscope compare A B   # measure the same load with each setting; no rule can decide it".to_owned()];
    hit.fix.extend(on_them.iter().map(|name| {
        format!("virsh edit {}   # <memoryBacking><hugepages/></memoryBacking> ends the conflict", quoted(name))
    }));
    vec![
        hit.seen(
            format!("CPUs are isolated: profile network-latency sets never; it is {}", setting.value.trim()),
            &setting.place,
        )
        .seen(
            format!("{} without <hugepages/>: only transparent huge pages back their memory", list(&on_them)),
            "libvirt",
        ),
    ]
}

/// Balancing between nodes: off for pinned guests, on for those that float over nodes.
pub(crate) fn balancing(model: &Model) -> Vec<Hit> {
    let Some(setting) = model.machine.settings.get(BALANCING).filter(|_| knobs::is_partitioned(model)) else {
        return Vec::new();
    };
    let online = &model.machine.topology.online;
    let floats = |domain: &Domain| {
        let mut vcpus = model.vcpus(domain).peekable();
        vcpus.peek().is_some()
            && vcpus.all(|thread| thread.affinity.as_ref().is_some_and(|set| online.is_within(&set.value)))
    };
    let floating = named(model, floats);
    let pinned = named(model, |domain| !floats(domain));
    if model.machine.topology.nodes().len() < 2 || floating.is_empty() || pinned.is_empty() {
        return Vec::new();
    }
    let title = "two rules disagree on automatic NUMA balancing";
    let mut hit = Hit::new("numa_balancing", Severity::Info, title);
    hit.fix =
        vec!["kvmscope compare A B   # measure the same load with each setting; no rule can decide it".to_owned()];
    hit.fix.extend(floating.iter().map(|name| {
        let name = quoted(name);
        format!("virsh vcpupin {name} VCPU CPU --live   # pinned to one node it needs no balancing either")
    }));
    vec![
        hit.seen(
            format!("{} pinned: profile network-latency sets 0; it is {}", list(&pinned), setting.value.trim()),
            &setting.place,
        )
        .with(Evidence::in_table(
            format!(
                "{} may run on every node: without balancing, memory stays on the node where it was first touched",
                list(&floating)
            ),
            "placement.threads",
        )),
    ]
}

/// More queues for many vCPUs, but no CPU for more workers.
pub(crate) fn queues(model: &Model) -> Vec<Hit> {
    let crowded = super::overlap::workers(model);
    let both = cards::few_queues(model)
        .into_iter()
        .filter(|hit| crowded.iter().any(|other| hit.subject.starts_with(&format!("{}-", other.subject))));
    let hits = both.map(|mut hit| {
        hit.title = format!("two rules disagree on queues: {}", hit.title);
        hit.severity = Severity::Info;
        let what = "no CPU without a vCPU is left for its workers: PLC-WORKERS asks for fewer";
        hit.with(Evidence::in_table(what, "placement.threads"))
    });
    hits.collect()
}
