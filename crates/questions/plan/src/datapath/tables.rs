//! The tables of a planned datapath.

use super::break_even::Answer;
use super::compared::DESIGNS;
use super::latency::LATENCY;
use super::memory::Sized;
use super::model::stages::Resource;
use super::plan::{Assumption, Plan};
use super::predict::Predicted;
use super::sensitivity;
use super::sensitivity::Moved;
use base::{Cell, Shown, Table, TableSpec, shown, table};

pub const TABLES: &[&TableSpec] =
    &[&DESIGNS, &RATES, &BREAK_EVEN, &STAGES, &SENSITIVITY, &MEMORY, &LATENCY, &ASSUMPTIONS];

const MOST_ROWS: usize = 60;

pub(super) const RATES: TableSpec = table! {
    datapath.rates version 2:
    "What one design carries of frames of one size or mix, modelled or measured (kind): chain_pps from end to end (north-south: of each VM), \
          system_pps where VNFs send, all of them together; published costs (kind) give low_pps and high_pps, a bound high_pps alone; \
          size_bytes with the frame check sequence.";
    key design, key pattern, key_u64("count") vnfs, key_u64("") size_bytes, f64("") chain_pps, f64("") system_pps,
    f64("") gbps, text bound_by, text runner_up, f64("") runner_up_pps, count cores, flag migratable,
    f64("") window_pps, f64("") low_pps, f64("") high_pps, key mix, text kind, text nearest, key nic, text shape,
    key_u64("count") pmd_cores, text frames;
    Shown {
        whole: &["shape"],
        ..shown![
            "What each design carries, in packets per second", MOST_ROWS;
            shape: "design", vnfs: "VNFs", frames: "bytes", chain_pps: "chain", bound_by: "limit", cores,
            low_pps: "least", high_pps: "at most", system_pps: "system", gbps: "Gb/s", runner_up: "then", migratable,
        ]
    }
};

const BREAK_EVEN: TableSpec = table! {
    datapath.breakeven version 1:
    "Where one design overtakes another, modelled: pmd_cores, tie_size, longest_chain, migration_rate; smallest_batch, in which rings \
          carry the target, and batch_fills, how long a frame then waits for the others of its batch.";
    key question, key_u64("") size_bytes, f64("") value, text unit, key by, key_u64("count") vnfs,
    key_f64("cycles") hop_cycles;
    shown![
        "Break-even", MOST_ROWS;
        question, vnfs: "VNFs", size_bytes: "bytes", value, unit, by, hop_cycles: "cycles per hop",
    ]
};

const STAGES: TableSpec = table! {
    datapath.stages version 1:
    "One resource that packets of a design pass: the rate of the chain at which it is exhausted, and the share of it that is \
          used at the rate that binds.";
    key design, key_u64("count") vnfs, key_u64("") size_bytes, key stage, f64("") capacity_pps, share used, key pattern,
    key mix, key nic, key_u64("count") pmd_cores;
    Shown {
        in_terminals: false,
        ..shown![
            "Resources that packets pass", MOST_ROWS;
            design, vnfs: "VNFs", size_bytes: "bytes", mix, stage: "resource", capacity_pps: "carries", used,
        ]
    }
};

const SENSITIVITY: TableSpec = table! {
    datapath.sensitivity version 1:
    "What a calibrated design would carry after one change, modelled: gain is a share of its rate now.";
    key design, key_u64("count") vnfs, key_u64("") size_bytes, key change, f64("") chain_pps, share gain, text bound_by,
    key mix, key nic, key_u64("count") pmd_cores, text shape;
    Shown {
        whole: &["change"],
        ..shown![
            "What moves the bottleneck", MOST_ROWS;
            shape: "design", vnfs: "VNFs", size_bytes: "bytes", mix, change: "with", gain, bound_by: "then limit",
            chain_pps: "chain",
        ]
    }
};

const MEMORY: TableSpec = table! {
    datapath.memory version 1:
    "Huge pages that the packet buffers of Open vSwitch with DPDK need, by one of the ways to size them.";
    key way, u64("") mtu, u64("bytes") size, count huge_pages_2mb, text applies;
    Shown {
        whole: &["applies"],
        ..shown![
            "Memory for packet buffers of the switch", MOST_ROWS;
            way: "sized by", mtu: "MTU", size: "memory", huge_pages_2mb: "pages of 2 MB", applies,
        ]
    }
};

const ASSUMPTIONS: TableSpec = table! {
    datapath.assumptions version 1: "One value that the prediction rests on, and where it comes from.";
    key what, text value, text from;
    shown!["What the prediction rests on", MOST_ROWS; what, value, from]
};

/// Columns that tell rows apart in several tables.
struct Keys {
    design: Cell,
    vnfs: Cell,
    size_bytes: Cell,
    mix: Cell,
}

impl Keys {
    fn of(one: &Predicted<'_>) -> Self {
        Self {
            design: one.design.to_string().into(),
            vnfs: u64::from(one.chain.vnfs).into(),
            size_bytes: one.frames.size_bytes().into(),
            mix: one.frames.mix_name().into(),
        }
    }
}

/// What each design carries.
pub(super) fn rates(rates: &[(Predicted<'_>, &str)]) -> Table {
    let mut table = Table::new(&RATES);
    for (one, nic) in rates {
        let Keys { design, vnfs, size_bytes, mix } = Keys::of(one);
        // What line and PCIe let through is no rate of a design that something unknown binds.
        let [chain_pps, system_pps] =
            [one.rate.chain_pps(), one.rate.system_pps()].map(|pps| pps.filter(|_| one.band.is_some()));
        let runner_up = one.rate.runner_up().filter(|_| one.published.is_none());
        let published = one.published.as_ref().map(|published| &published.chain_pps);
        table.push(vec![
            design,
            one.chain.pattern.name().into(),
            vnfs,
            size_bytes,
            chain_pps.into(),
            system_pps.into(),
            system_pps.map(|pps| pps * one.frames.bytes() * 8.0 / 1e9).into(),
            match &one.published {
                Some(published) => published.bound_by,
                None => one.rate.bound().map(|stage| stage.resource),
            }
            .map(Resource::name)
            .into(),
            runner_up.map(|stage| stage.resource.name()).into(),
            runner_up.map(|stage| stage.capacity_pps).into(),
            u64::from(one.cores).into(),
            one.design.is_migratable().into(),
            one.window_pps.into(),
            one.band.map(|band| band.low_pps).or(published.map(|range| range.least)).into(),
            one.band.map(|band| band.high_pps).or(published.map(|range| range.most)).or(one.rate.chain_pps()).into(),
            mix,
            match (one.band, published) {
                (Some(_), _) => "modelled",
                (None, Some(_)) => "published costs, not calibrated",
                (None, None) => "bound, not calibrated",
            }
            .into(),
            Some(one.nearest.join(" ")).filter(|ids| !ids.is_empty()).into(),
            (*nic).into(),
            one.design.shape().into(),
            one.pmd_cores.map(u64::from).into(),
            one.frames.to_string().into(),
        ]);
    }
    table
}

/// What each resource carries.
pub(super) fn stages(rates: &[(Predicted<'_>, &str)]) -> Table {
    let mut table = Table::new(&STAGES);
    for (one, nic) in rates {
        let bound = one.rate.chain_pps().unwrap_or_default();
        for stage in &one.rate.stages {
            let Keys { design, vnfs, size_bytes, mix } = Keys::of(one);
            table.push(vec![
                design,
                vnfs,
                size_bytes,
                stage.resource.name().into(),
                stage.capacity_pps.into(),
                (bound / stage.capacity_pps).into(),
                one.chain.pattern.name().into(),
                mix,
                (*nic).into(),
                one.pmd_cores.map(u64::from).into(),
            ]);
        }
    }
    table
}

pub(super) fn break_even(answers: &[Answer]) -> Table {
    let mut table = Table::new(&BREAK_EVEN);
    for one in answers {
        table.push(vec![
            one.question.into(),
            one.size_bytes.into(),
            one.value.into(),
            one.unit.into(),
            one.by.as_str().into(),
            u64::from(one.vnfs).into(),
            one.hop_cycles.into(),
        ]);
    }
    table
}

/// What moves the bottleneck.
pub(super) fn sensitivity(rates: &[(Predicted<'_>, &str)], plan: &Plan) -> Table {
    let mut table = Table::new(&SENSITIVITY);
    for (one, nic) in rates {
        for Moved { change, chain_pps, gain, bound_by } in sensitivity::of(plan, one) {
            let Keys { design, vnfs, size_bytes, mix } = Keys::of(one);
            table.push(vec![
                design,
                vnfs,
                size_bytes,
                change.into(),
                chain_pps.into(),
                gain.into(),
                bound_by.into(),
                mix,
                (*nic).into(),
                one.pmd_cores.map(u64::from).into(),
                one.design.shape().into(),
            ]);
        }
    }
    table
}

/// What buffers of packets take.
pub(super) fn memory(sizes: &[Sized]) -> Table {
    let mut table = Table::new(&MEMORY);
    for one in sizes {
        table.push(vec![
            one.way.into(),
            one.mtu.into(),
            one.bytes.into(),
            one.bytes.div_ceil(2 << 20).into(),
            one.applies.into(),
        ]);
    }
    table
}

pub(super) fn assumptions(all: &[Assumption]) -> Table {
    let mut table = Table::new(&ASSUMPTIONS);
    for one in all {
        table.push(vec![one.what.as_str().into(), one.value.as_str().into(), one.from.as_str().into()]);
    }
    table
}
