//! What is worth saying of a plan beside its numbers.

use super::measured;
use super::model::design::Datapath;
use super::model::stages::Resource;
use super::plan::Plan;
use super::predict::Predicted;
use base::datapath::Traffic;
use base::number::{list, many, packets_per_s};
use base::rule::Words;
use base::{Cost, CostKind, Evidence, Finding, Level, Severity};
use facts::rule::{Hit, Rule};

pub(super) struct Planned<'p> {
    pub plan: &'p Plan,
    pub rates: &'p [Predicted<'p>],
}

type Check = fn(&Planned<'_>) -> Vec<Hit>;

const FORMULAE: &str = "docs/read/plan.md";

/// All rules, in the order in which equal findings are shown.
const RULES: &[Rule<Check>] = &[
    Rule {
        id: "DTP-TARGET",
        per: "chain",
        looks_at: "The designs of each chain that keep to its constraints, against the target.",
        why: "According to the model, no design within the constraints reaches the target at this frame size. Enlarge the resource that limits \
              the best design, or shorten the chain.",
        source: FORMULAE,
        ..Rule::checked_by(target)
    },
    Rule {
        id: "DTP-CALIBRATE",
        per: "plan",
        looks_at: "Whether what a hop of Open vSwitch with DPDK costs on this host is known.",
        why: "What a hop costs differs by a factor of four between hosts, versions and sizes of frames, so the program has no \
              default for it. Until it is measured, designs with the switch have a bound and no rate.",
        fix: &[
            "kvmscope lab ovs --vnfs 1,2 --size 64,512,1518 -o bed   # measures what a hop costs on this host",
            "kvmscope plan chain --calibrate bed   # and the options of this plan",
        ],
        source: FORMULAE,
        ..Rule::checked_by(calibrate)
    },
    Rule {
        id: "DTP-NIC",
        per: "NIC",
        looks_at: "Whether the packet rate of the card is known.",
        why: "Line rate and PCIe bound the card, but its own packet rate, and its forwarding between VFs, are not in the built-in list: the rates \
              of VFs are upper bounds only.",
        source: FORMULAE,
        ..Rule::checked_by(card)
    },
    Rule {
        id: "DTP-MIGRATE",
        per: "chain",
        looks_at: "Chains whose VMs must be movable, and designs with VFs or rings.",
        why: "A VM with a VF can be migrated only if the VF is unplugged first, while net_failover sends packets through a standby virtio device \
              with the same MAC, or if the card's VFIO driver supports migration. A ring is memory that two VMs of one host share: a VM that \
              migrates alone leaves it, and its packets need another path.",
        source: "Documentation/networking/net_failover.rst, Linux 6.12",
        ..Rule::checked_by(migrate)
    },
];

/// What the rules say of themselves.
pub fn words() -> Vec<Words> {
    RULES.iter().map(Rule::words).chain(measured::rules::words()).chain(measured::judged::words()).collect()
}

pub(super) fn findings(planned: &Planned<'_>) -> Vec<Finding> {
    let of = |rule: &Rule<Check>| -> Vec<Finding> {
        (rule.check)(planned).into_iter().map(|hit| rule.finding(hit, Level::L0)).collect()
    };
    RULES.iter().flat_map(of).collect()
}

/// Whether some chain misses the target.
pub(super) fn misses_target(planned: &Planned<'_>) -> bool {
    !target(planned).is_empty()
}

/// `8 VNFs at 64 bytes`.
pub(super) fn subject(one: &Predicted<'_>) -> String {
    let size = match one.frames.mix_name() {
        Some(mix) => format!("mix {mix}"),
        None => format!("{} bytes", one.frames.bytes()),
    };
    let what = match one.chain.pattern {
        Traffic::Chain => "VNF",
        Traffic::NorthSouth => "VM",
    };
    format!("{} at {size}", many(u64::from(one.chain.vnfs), what))
}

/// Designs that may be taken, best first: those that are known, and keep to the constraints.
pub(super) fn allowed<'a>(rates: &'a [Predicted<'a>], like: &Predicted<'_>) -> Vec<&'a Predicted<'a>> {
    let is_like = |one: &&Predicted<'_>| {
        std::ptr::eq(one.chain, like.chain) && std::ptr::eq(one.frames, like.frames) && one.band.is_some()
    };
    let moves = |one: &&Predicted<'_>| !one.chain.must_migrate || one.design.is_migratable();
    let mut all: Vec<&Predicted<'_>> = rates.iter().filter(is_like).filter(moves).collect();
    let pps = |one: &Predicted<'_>| one.rate.chain_pps().unwrap_or_default();
    all.sort_by(|a, b| pps(b).total_cmp(&pps(a)).then(a.cores.cmp(&b.cores)));
    all
}

/// The first prediction of each chain and size.
pub(super) fn asked<'a>(rates: &'a [Predicted<'a>]) -> impl Iterator<Item = &'a Predicted<'a>> {
    rates
        .iter()
        .enumerate()
        .filter(|(at, one)| {
            let is_same = |before: &Predicted<'_>| {
                std::ptr::eq(before.chain, one.chain) && std::ptr::eq(before.frames, one.frames)
            };
            !rates[..*at].iter().any(is_same)
        })
        .map(|(_, one)| one)
}

fn target(planned: &Planned<'_>) -> Vec<Hit> {
    let Some(target) = planned.plan.target_pps else { return Vec::new() };
    let missed = asked(planned.rates).filter_map(|one| {
        let best = allowed(planned.rates, one).first().copied();
        let pps = best.and_then(|best| best.rate.chain_pps());
        if pps.is_some_and(|pps| pps >= target) {
            return None;
        }
        let subject = subject(one);
        let Some((best, pps)) = best.zip(pps) else {
            let title = format!(
                "{subject}: nothing is known of any design that may be taken, so {} is not shown to be reached",
                packets_per_s(target)
            );
            return Some(Hit::new(subject, Severity::High, title));
        };
        let bound = best.rate.bound().map_or("", |stage| stage.resource.name());
        let title = format!(
            "{subject}: the best design, {}, carries {} of {}",
            best.design.shape(),
            packets_per_s(pps),
            packets_per_s(target)
        );
        let seen = Evidence::new(format!("bound by {bound}"), "table rates");
        let cost = Cost::of(CostKind::Modelled, target - pps, "packets per second");
        Some(Hit { cost, ..Hit::new(subject, Severity::High, title).with(seen) })
    });
    missed.collect()
}

fn calibrate(planned: &Planned<'_>) -> Vec<Hit> {
    let is_switch = |one: &Predicted<'_>| one.design.count(Datapath::OvsDpdk) > 0;
    if planned.plan.hop.is_some() || !planned.rates.iter().any(is_switch) {
        return Vec::new();
    }
    let title = "What a hop of Open vSwitch with DPDK costs on this host is not known, so its designs have bounds only";
    vec![Hit::new("ovs-dpdk", Severity::Info, title)]
}

fn card(planned: &Planned<'_>) -> Vec<Hit> {
    let unknown = planned.plan.cards.iter().filter(|card| card.nic.is_none_or(|nic| nic.packets.is_none()));
    let known: Vec<String> = super::NICS.iter().map(|nic| nic.model.to_owned()).collect();
    let hit = |card: &super::Card| {
        let title = format!("NIC limit unknown: {} has a bound by line and PCIe only", card.model);
        Hit::new(&card.model, Severity::Info, title).seen(format!("cards in the list: {}", list(&known)), FORMULAE)
    };
    unknown.map(hit).collect()
}

fn migrate(planned: &Planned<'_>) -> Vec<Hit> {
    let pinned = asked(planned.rates).filter(|one| one.chain.must_migrate).filter_map(|one| {
        let of_vfs = |other: &&Predicted<'_>| {
            std::ptr::eq(other.chain, one.chain)
                && std::ptr::eq(other.frames, one.frames)
                && !other.design.is_migratable()
        };
        let first = planned.rates.iter().find(of_vfs)?;
        let left = first.window_pps.map_or("an unknown rate".to_owned(), packets_per_s);
        let title = format!(
            "{}: {} keeps VMs where they are, and leaves {left} while one is moved",
            subject(one),
            first.design.shape()
        );
        let severity = Severity::Low;
        let bound = first.rate.bound().map_or(Resource::Line, |stage| stage.resource).name();
        Some(
            Hit::new(subject(one), severity, title)
                .seen(format!("without the move it is bound by {bound}"), "table rates"),
        )
    });
    pinned.collect()
}
