//! What the host says of itself as a whole besides its CPUs, value by value.

use super::model::Model;
use ::host::machine::{Gauge, Interface, Nic};
use base::number::{bytes, duration, many, percent, rate, thousands};
use base::{Cell, Shown, Table, TableSpec, shown, table};

pub(super) const HOST: TableSpec = table! {
    placement.host version 1:
    "One value of the host besides its CPUs: memory, swap, disks, pressure, limits, settings, as read at `place`.";
    key machine, key what, key subject, key place, f64("") value, text unit, text told;
    shown![
        "Memory, disks, pressure and limits of the host", 24;
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
        // How all CPUs were used, told last; a list of intervals has a row for each elsewhere.
        if let Some(all) = model.machine.total_use.last().filter(|_| model.pasted) {
            let shares = &all.value.shares;
            let parts = [
                ("busy", shares.busy),
                ("interrupts", shares.irq),
                ("softirqs", shares.softirq),
                ("stolen", shares.steal),
                ("idle", shares.idle),
            ];
            let parts = parts.iter().filter(|(name, share)| *share >= 0.000_5 || *name == "idle");
            let told: Vec<String> = parts.map(|(name, share)| format!("{name} {}", percent(*share))).collect();
            row("time of all CPUs", "", &all.place, Some(shares.idle), "share", told.join(", "));
        }
        for pmd in model.machine.switch.pmds.iter().filter(|_| model.pasted) {
            for queue in &pmd.queues {
                let subject = format!("queue {} of {}, polled on CPU {}", queue.queue, queue.port, pmd.cpu);
                let told = queue.usage.map_or("not measured".to_owned(), percent);
                row("a receive queue takes", &subject, &pmd.place, queue.usage, "share", told);
            }
        }
        for process in &model.machine.process_memory {
            for (node, there) in &process.bytes.value {
                let (what, value) = (format!("memory on node {node}"), *there as f64);
                let subject = format!("{} ({})", process.pid, process.name);
                row(&what, &subject, &process.bytes.place, Some(value), "B", bytes(value));
            }
        }
        // An element that was pasted alone is all that was told of its VM.
        let pieces =
            model.machine.domains.iter().filter(|domain| model.pasted && domain.whole.is_none() && !domain.by_command);
        for (domain, interface) in
            pieces.flat_map(|domain| domain.interfaces.iter().map(move |interface| (domain, interface)))
        {
            row(
                "an interface",
                &format!("{} of {}", interface.name, domain.name),
                &interface.place,
                None,
                "",
                card(interface),
            );
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

/// `bridge br0, virtio, vhost, 16 queues`.
fn card(interface: &Interface) -> String {
    let source =
        interface.source.as_ref().map_or(interface.kind.clone(), |source| format!("{} {source}", interface.kind));
    let queues = interface.queues.map(|queues| many(queues.into(), "queue"));
    let parts = [Some(source), interface.model.clone(), interface.driver.clone(), queues];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
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
