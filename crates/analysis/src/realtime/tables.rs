//! The table of the answer: every knob.

use super::knobs::Place;
use super::section::Audit;
use base::table::{Shown, TableSpec};
use base::{Column, Table};

/// All tables of this question, in reading order.
pub const TABLES: &[&TableSpec] = &[&KNOBS];

/// Every knob of every machine that was asked.
const KNOBS: TableSpec = TableSpec {
    section: "realtime",
    name: "knobs",
    version: 1,
    row: "One setting that real time depends on: how it is set, what is wanted, and what was seen of its effect.",
    columns: &[
        Column::key("machine"),
        Column::key("id"),
        Column::text("group"),
        Column::text("knob"),
        Column::text("value"),
        Column::text("want"),
        Column::text("state"),
        Column::text("effect_metric"),
        Column::text("effect"),
        Column::text("place"),
    ],
    shown: Some(Shown::of(
        "Knobs",
        &[
            ("group", "group"),
            ("knob", "knob"),
            ("value", "is"),
            ("want", "wanted"),
            ("state", "state"),
            ("effect", "effect, measured"),
        ],
        48,
    )),
};

/// The table of these machines.
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
