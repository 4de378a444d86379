//! The machine with its VMs' threads on it, now and as proposed.

use super::model::Model;
use super::solver::{Kind, Plan};
use base::figure::{CpuBox, Drawing, Link, NodeBox, Panel};
use base::{CpuSet, Figure};
use host::machine::{Cpu, Topology};
use std::collections::BTreeMap;

/// What is drawn of each machine: now, and the best placement.
pub(crate) fn topology(model: &Model) -> Option<Figure> {
    let proposal = &model.proposal;
    let now = proposal.now()?;
    let mut panels = vec![panel(model, "now", now)];
    panels.extend(proposal.better().first().map(|best| panel(model, "proposal 1", best)));
    let contended = |panel: &Panel| {
        let cpus = panel.nodes.iter().flat_map(|node| node.cores.iter().flatten());
        cpus.filter(|cpu| cpu.contended).count()
    };
    let caption = match &panels[..] {
        [now, best] => format!(
            "CPUs that a vCPU or a polling thread shares with others: {} now, {} with proposal 1.",
            contended(now),
            contended(best)
        ),
        _ => format!(
            "CPUs that a vCPU or a polling thread shares with others: {}. {}",
            contended(&panels[0]),
            match model.machine.threads.iter().any(|thread| thread.run_share.is_some()) {
                true => "No better placement was found.",
                false => "What the threads run is unknown, so no placement is known to be better.",
            }
        ),
    };
    let title = format!("What runs where on {}", model.id);
    Some(Figure {
        id: format!("topology-{}", model.id),
        title,
        caption,
        in_terminals: true,
        drawing: Drawing::Topology(panels),
    })
}

/// A CPU's node, package and last-level cache: what its box stands for.
type Place = (Option<u32>, Option<u32>, Option<u32>);

fn place_of(about: &Cpu) -> Place {
    (about.node, about.package, about.last_cache)
}

/// `package 1, node 4, cache of CPUs 24-26,72-74`: the node, and of the others what divides the machine further.
fn title_of(topology: &Topology, (node, package, last_cache): Place) -> String {
    let mut words = Vec::new();
    if let Some(package) = package.filter(|_| topology.package_count() > 1) {
        words.push(format!("package {package}"));
    }
    words.push(node.map_or("node unknown".to_owned(), |node| format!("node {node}")));
    if let Some(cache) = last_cache.filter(|_| topology.last_cache_count() > topology.package_count().max(1)) {
        let sharers = topology.cpus.iter().filter(|(_, about)| about.last_cache == Some(cache)).map(|(cpu, _)| *cpu);
        words.push(format!("cache of CPUs {}", sharers.collect::<CpuSet>()));
    }
    words.join(", ")
}

fn panel(model: &Model, title: &str, plan: &Plan) -> Panel {
    let topology = &model.machine.topology;
    let mut boxes: BTreeMap<Place, BTreeMap<u32, Vec<CpuBox>>> = BTreeMap::new();
    for (cpu, about) in &topology.cpus {
        let kind = |unit: &usize| model.proposal.task.units[*unit].kind;
        let here: Vec<usize> = (0..plan.places.len())
            .filter(|unit| plan.places[*unit].contains(*cpu) && kind(unit) != Kind::Housekeeping)
            .collect();
        let pinned = here.iter().any(|unit| kind(unit).is_pinned());
        let chips = here.iter().map(|unit| model.proposal.name(*unit)).collect();
        let hues = here.iter().map(|unit| hue(kind(unit))).collect();
        let cpu = CpuBox { cpu: *cpu, chips, hues, contended: pinned && here.len() > 1 };
        boxes.entry(place_of(about)).or_default().entry(about.core).or_default().push(cpu);
    }
    let places: Vec<Place> = boxes.keys().copied().collect();
    let boxes = boxes
        .into_iter()
        .map(|(place, cores)| NodeBox { title: title_of(topology, place), cores: cores.into_values().collect() });
    Panel { title: title.to_owned(), nodes: boxes.collect(), links: links(model, plan, &places) }
}

/// A vCPU looks like its guest, what works for it like the VMM, all else like what else runs on a host.
fn hue(kind: Kind) -> &'static str {
    match kind {
        Kind::Vcpu => "guest_l1",
        Kind::Helpers | Kind::Worker => "userspace",
        Kind::Irq => "irq",
        Kind::Pmd | Kind::Housekeeping => "task",
    }
}

/// Units that run away from their memory, per VM and node.
fn links(model: &Model, plan: &Plan, places: &[Place]) -> Vec<Link> {
    let mut away: BTreeMap<(String, &str, u32, u32), Vec<String>> = BTreeMap::new();
    for (unit, place) in plan.places.iter().enumerate() {
        let (about, subject) = (&model.proposal.task.units[unit], &model.proposal.subjects[unit]);
        let nodes = model.machine.topology.nodes_of(place);
        if let (Some(home), [node]) = (about.home, &nodes[..])
            && home != *node
        {
            let whose = if subject.vm.is_empty() { "the host" } else { &subject.vm };
            let what = match about.kind {
                Kind::Irq => "its device",
                Kind::Pmd => "its ports",
                _ => "memory",
            };
            away.entry((whose.to_owned(), what, home, *node)).or_default().push(subject.name.clone());
        }
    }
    let box_of = |node: u32| places.iter().position(|place| place.0 == Some(node));
    let link = |((whose, what, home, node), names): ((String, &str, u32, u32), Vec<String>)| Link {
        text: format!("{whose}: {} on node {node}, {what} on node {home}", base::number::list(&names)),
        from: box_of(node),
        to: box_of(home),
    };
    away.into_iter().map(link).collect()
}
