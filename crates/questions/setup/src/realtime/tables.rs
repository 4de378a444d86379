//! The table of the answer: every knob.

use super::knobs::Place;
use super::section::Audit;
use base::{Cell, Table, TableSpec, shown, table};

/// All tables of this question, in reading order.
pub const TABLES: &[&TableSpec] = &[&RANKING, &KNOBS];

/// Every knob of every machine that was asked.
const KNOBS: TableSpec = table! {
    realtime.knobs version 1:
    "One setting that real time depends on: how it is set, what is wanted, and what was seen of its effect.";
    key machine, key id, text group, text knob, text value, text want, text state, text effect_metric, text effect,
    text place;
    shown![
        "Knobs", 48;
        group, knob, value: "is", want: "wanted", state, effect: "effect, measured",
    ]
};

/// What a trace says that knobs could bring.
const RANKING: TableSpec = table! {
    realtime.ranking version 1:
    "What the vCPUs of the traces lost to causes that one knob is about, which is the most that it could have removed; with a \
          budget, how much of it while one of its goals was broken, which then ranks them. The last row is what no knob is about. The totals are all that was lost.";
    key machine, key_u64("") rank, key id, text knob, text state, count count, ns total_ns, ns max_ns, share lost_share,
    text by, ns in_breaches_ns;
    shown![
        "What knobs could remove, at most", 12;
        knob, state, in_breaches_ns: "in breaches", total_ns: "lost", lost_share: "of all", max_ns: "longest",
        by: "to",
    ]
};

/// What each knob could have removed, the largest amount first.
pub(super) fn ranking(audits: &[Audit<'_>]) -> Table {
    let mut table = Table::new(&RANKING);
    for audit in audits {
        let ranked = audit.lost.ranked();
        let all: u64 = ranked.iter().map(|(_, sums)| sums.total_ns).sum();
        for (rank, (id, sums)) in (1_u64..).zip(ranked) {
            let judged = audit.judged.iter().find(|judged| Some(judged.rule.id) == id);
            table.push(vec![
                audit.host.id.into(),
                Cell::U64(rank),
                id.map(str::to_owned).into(),
                judged.map(|judged| judged.rule.check.name.to_owned()).into(),
                judged.map(|judged| judged.state.name().to_owned()).into(),
                Cell::U64(sums.count),
                Cell::U64(sums.total_ns),
                Cell::U64(sums.max_ns),
                Cell::F64(sums.total_ns as f64 / all.max(1) as f64),
                sums.names().into(),
                audit.budget.map(|_| sums.in_breaches_ns).into(),
            ]);
        }
    }
    table
}

pub(super) fn knobs(audits: &[Audit<'_>]) -> Table {
    let mut table = Table::new(&KNOBS);
    for audit in audits {
        for judged in &audit.judged {
            let (rule, knob) = (judged.rule, &judged.rule.check);
            let told = judged.told.as_ref();
            table.push(vec![
                audit.host.id.into(),
                rule.id.into(),
                knob.group.name().into(),
                knob.name.into(),
                told.map(|told| told.value.clone()).into(),
                told.map(|told| told.want.clone()).into(),
                judged.state.name().into(),
                knob.effect.as_ref().map(|effect| effect.metric.to_owned()).into(),
                judged.seen.as_ref().map(|seen| seen.evidence.what.clone()).into(),
                told.map_or_else(|| place(&knob.place), |told| Some(told.place.clone())).into(),
            ]);
        }
    }
    table
}

/// Where a knob would be set that was not read.
fn place(place: &Place) -> Option<String> {
    match place {
        Place::File(path, _) | Place::Holds { file: path, .. } | Place::Spares { file: path, .. } => {
            Some((*path).to_owned())
        }
        Place::EachCpu(file, _) => Some(format!("sys/devices/system/cpu/cpu*/{file}")),
        Place::Boot(_) => Some("proc/cmdline".to_owned()),
        Place::Told(_) => None,
    }
}
