//! The machine with its VMs' threads on it, now and as proposed.

use super::model::Model;
use super::solver::{Kind, Plan};
use base::Figure;
use base::figure::{CpuBox, Drawing, NodeBox, Panel};
use std::collections::BTreeMap;

/// What is drawn of each machine: now, and the best placement.
pub fn topology(model: &Model) -> Option<Figure> {
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
            "CPUs that a vCPU or a polling thread shares with others: {}. No better placement was found.",
            contended(&panels[0])
        ),
    };
    let title = format!("what runs where on {}", model.id);
    Some(Figure { id: format!("topology-{}", model.id), title, caption, drawing: Drawing::Topology(panels) })
}

fn panel(model: &Model, title: &str, plan: &Plan) -> Panel {
    let topology = &model.machine.topology;
    let mut nodes: BTreeMap<Option<u32>, BTreeMap<u32, Vec<CpuBox>>> = BTreeMap::new();
    for (cpu, about) in &topology.cpus {
        let kind = |unit: &usize| model.proposal.task.units[*unit].kind;
        let here: Vec<usize> = (0..plan.places.len())
            .filter(|unit| plan.places[*unit].contains(*cpu) && kind(unit) != Kind::Housekeeping)
            .collect();
        let pinned = here.iter().any(|unit| kind(unit).is_pinned());
        let chips = here.iter().map(|unit| model.proposal.name(*unit)).collect();
        let cpu = CpuBox { cpu: *cpu, chips, contended: pinned && here.len() > 1 };
        nodes.entry(about.node).or_default().entry(about.core).or_default().push(cpu);
    }
    let boxes = nodes.into_iter().map(|(node, cores)| {
        let title = node.map_or("node unknown".to_owned(), |node| format!("node {node}"));
        NodeBox { title, cores: cores.into_values().collect() }
    });
    Panel { title: title.to_owned(), nodes: boxes.collect(), links: links(model, plan) }
}

/// Units that run away from their memory, per VM and node.
fn links(model: &Model, plan: &Plan) -> Vec<String> {
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
    let line = |((whose, what, home, node), names): ((String, &str, u32, u32), Vec<String>)| {
        format!("{whose}: {} on node {node}, {what} on node {home}", base::number::list(&names))
    };
    away.into_iter().map(line).collect()
}
