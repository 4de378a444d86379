//! What the host says of itself as a whole besides its CPUs, value by value.

use super::model::Model;
use ::host::machine::{Gauge, Nic};
use base::number::{bytes, duration, percent, rate, thousands};
use base::{Cell, Shown, Table, TableSpec, shown, table};

pub(super) const HOST: TableSpec = table! {
    placement.host version 1:
    "One value that the host says of itself besides its CPUs: memory, swap, disks, pressure, limits, settings, as it stands at `place`.";
    key machine, key what, key subject, key place, f64("") value, text unit, text told;
    shown![
        "What the machine says of itself", 24;
        what, subject: "of", told: "value",
    ]
};

/// The same of several machines.
const OF_SEVERAL: &[(&str, &str)] = &[("machine", "machine"), ("what", "what"), ("subject", "of"), ("told", "value")];

/// Of all machines, in the order of the texts.
pub(super) fn table(models: &[Model]) -> Table {
    let mut table = Table::new(&HOST);
    if models.len() > 1 {
        table.shown = table.shown.map(|shown| Shown { columns: OF_SEVERAL, ..shown });
    }
    for model in models {
        let mut row = |what: &str, subject: &str, place: &str, value: Option<f64>, unit: &str, told: String| {
            let names = [model.id.as_str(), what, subject, place];
            let mut cells: Vec<Cell> = names.into_iter().map(Into::into).collect();
            cells.extend([value.into(), (!unit.is_empty()).then(|| unit.to_owned()).into(), told.into()]);
            table.push(cells);
        };
        for gauge in &model.machine.gauges {
            let (what, unit) = gauge.kind.words();
            row(what, &gauge.subject, &gauge.place, Some(gauge.value), unit, told(gauge));
        }
        for process in &model.machine.process_memory {
            for (node, there) in &process.bytes.value {
                let (what, value) = (format!("memory on node {node}"), *there as f64);
                let subject = format!("{} ({})", process.pid, process.name);
                row(&what, &subject, &process.bytes.place, Some(value), "B", bytes(value));
            }
        }
        for nic in model.machine.nics.iter().filter(|_| model.pasted) {
            for (what, limits) in [("queues", &nic.channels), ("ring", &nic.rings)] {
                for (name, (now, most)) in limits {
                    let told = format!("{} of at most {most}", now.value);
                    row(&format!("{what} {name}"), &nic.name, &now.place, Some(f64::from(now.value)), "", told);
                }
            }
            for (name, count, more) in counters(nic) {
                let each = |more: u64| match nic.counters_apart_s {
                    Some(seconds) => format!(", {} a second", rate(more as f64 / seconds)),
                    None => String::new(),
                };
                let more =
                    more.map_or(String::new(), |more| format!(", {} more than before{}", thousands(more), each(more)));
                let place = nic.counters.last().map_or("", |look| look.place.as_str());
                row(name, &nic.name, place, Some(count as f64), "", format!("{}{more}", thousands(count)));
            }
        }
        for quoted in &model.machine.quoted {
            let value = quoted.value.parse().ok();
            row(&quoted.what, &quoted.subject, &quoted.place, value, "", quoted.value.clone());
        }
        if model.pasted {
            for (path, setting) in &model.machine.settings {
                let value = setting.value.trim().parse().ok();
                row("setting", &format!("/{path}"), &setting.place, value, "", setting.value.clone());
            }
        }
        if model.machine.kernel_lines > 0 {
            let count = model.machine.kernel_lines as f64;
            row("lines of the kernel's log", "others, not judged", "", Some(count), "lines", rate(count));
        }
    }
    table
}

/// What a card counted: those of lost packets first, and none that never counted; with what it counted since the first look.
fn counters(nic: &Nic) -> Vec<(&str, u64, Option<u64>)> {
    let lost = ["drop", "discard", "miss", "err", "out_of_buffer", "no_buffer", "timeout", "fifo"];
    let (first, last) = (nic.counters.first(), nic.counters.last());
    let before = first.filter(|_| nic.counters.len() > 1);
    let all = last.into_iter().flat_map(|look| &look.value).filter(|(_, count)| **count > 0);
    let more = |name: &String, count: u64| count.checked_sub(*before?.value.get(name)?);
    let mut all: Vec<_> = all.map(|(name, count)| (name.as_str(), *count, more(name, *count))).collect();
    all.sort_by_key(|(name, ..)| !lost.iter().any(|word| name.contains(word)));
    all
}

fn told(gauge: &Gauge) -> String {
    match gauge.kind.words().1 {
        "B" => bytes(gauge.value),
        "B/s" => format!("{}/s", bytes(gauge.value)),
        "share" => percent(gauge.value),
        "ns" => duration(gauge.value),
        "CPUs" => format!("{:.2} CPUs", gauge.value),
        unit => format!("{} {unit}", rate(gauge.value)),
    }
}
