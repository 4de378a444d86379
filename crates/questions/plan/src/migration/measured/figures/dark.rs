//! What was dark, by each definition and for whom it went on: bars on one axis of time.
//!
//! ```text
//! vmm_reported      2.0 ms  ███
//! vmm_checkpoints   6.1 ms  ██████████
//! net                    -                 not measured: no bar
//! source ram        150 us   ▒
//! source virtio-rng 971 us    ▓▒▒▒         worked, waited for a CPU
//! target cpu        371 us        ▒
//! ```

use super::super::downtimes::{Defined, definitions, measured_by};
use super::super::waits::{Split, Splits};
use super::{time, whose};
use base::Figure;
use base::figure::{Drawing, SpanGroup, SpanRow, Stretch};
use base::number::{duration, list, many};
use facts::migrations::Migration;
use facts::migrations::pieces::{Key, Piece, pieces};
use std::cmp::Reverse;

/// Rows of a side's devices, those that took most; the others share one more.
const MOST_DEVICES: usize = 10;

/// What a definition without a value says of it.
const NETWORK: &str = "no packets were sent";

/// `None` where nothing tells how long any guest was dark.
pub(super) fn figure(migrations: &[Migration], splits: &Splits) -> Option<Figure> {
    let runs = migrations.len();
    let groups = migrations.iter().enumerate().filter_map(|(run, migration)| group((run, runs), migration, splits));
    let groups: Vec<SpanGroup> = groups.collect();
    if groups.is_empty() {
        return None;
    }
    let is_traced = migrations.iter().any(|one| one.source.is_some() || one.target.is_some());
    Some(Figure {
        id: "dark".into(),
        title: "Where the dark time went".into(),
        caption: caption(migrations, splits),
        in_terminals: runs == 1 || is_traced,
        drawing: Drawing::Spans(groups),
    })
}

fn caption(migrations: &[Migration], splits: &Splits) -> String {
    let all = migrations.iter().flat_map(definitions);
    let known: Vec<(&str, u64)> = all.filter_map(|one| Some((one.name, one.said?.0?))).collect();
    // Least and most by each that tells, in the order of the table.
    let mut by: Vec<(&str, u64, u64)> = Vec::new();
    for (name, ns) in &known {
        match by.iter_mut().find(|(other, ..)| other == name) {
            Some((_, least, most)) => (*least, *most) = ((*least).min(*ns), (*most).max(*ns)),
            None => by.push((name, *ns, *ns)),
        }
    }
    if known.is_empty() {
        return "How long the guest was dark is not known by any definition; what one side spent its time on is."
            .to_owned();
    }
    let told = by.iter().map(|(name, least, most)| {
        let dark = if least == most {
            duration(*least as f64)
        } else {
            format!("{} to {}", duration(*least as f64), duration(*most as f64))
        };
        format!("{dark} by {}", measured_by(name))
    });
    let missing = 5 - by.len();
    let missing = match missing {
        0 => String::new(),
        1 => " (one other definition has no data)".to_owned(),
        _ => format!(" ({missing} other definitions have no data)"),
    };
    let mut caption = format!("Downtime {}{missing}.", list(&told.collect::<Vec<_>>()));
    let parted = (0..migrations.len()).any(|run| (0..2).any(|side| splits.whole(run, side).is_some()));
    if parted {
        caption.push_str(" How long a device waited is known, and not when: its work is drawn first.");
    }
    let hosts = |one: &Migration| matches!(&one.machines, [Some(source), Some(target)] if source != target);
    if migrations.iter().any(hosts) {
        caption.push_str(
            " The two sides may be shifted against each other by as much as the clocks of the two machines differ.",
        );
    }
    caption
}

fn group((run, runs): (usize, usize), migration: &Migration, splits: &Splits) -> Option<SpanGroup> {
    let defined = definitions(migration);
    let sides = [("source", &migration.source), ("target", &migration.target)];
    let pieces_of = sides.map(|(name, side)| (name, side.as_ref().map(pieces).unwrap_or_default()));
    if pieces_of.iter().all(|(_, pieces)| pieces.is_empty()) && defined.iter().all(|one| one.said.is_none()) {
        return None;
    }
    let began = defined.iter().filter_map(|one| one.began_ns);
    let zero_ns = began.chain(pieces_of.iter().flat_map(|(_, pieces)| pieces).map(|piece| piece.span.from_ns)).min();
    let axis = Place { zero_ns: zero_ns.unwrap_or_default() };
    let mut rows: Vec<SpanRow> = defined.into_iter().map(|one| definition(one, migration, axis)).collect();
    for (number, (name, pieces)) in pieces_of.iter().enumerate() {
        rows.extend(devices(name, pieces, |key| splits.of(run, number, key), axis));
    }
    let title = whose(run, runs);
    Some(SpanGroup { title, x: time("since its stop began"), rows, limits: Vec::new() })
}

/// Where instants are on the axis.
#[derive(Clone, Copy)]
struct Place {
    zero_ns: u64,
}

impl Place {
    fn of(self, at_ns: u64) -> f64 {
        at_ns.saturating_sub(self.zero_ns) as f64
    }
}

fn definition(Defined { name, said, began_ns }: Defined, migration: &Migration, axis: Place) -> SpanRow {
    let (value_ns, why) = said.map_or((None, None), |(value_ns, why, _)| (value_ns, why));
    // QEMU's own account has no times: it is drawn from where the source stopped the guest.
    let from_ns = began_ns.or(migration.stopped_ns).or(Some(axis.zero_ns));
    let note = match (value_ns, why, began_ns) {
        (Some(_), _, None) => "when it began is unknown".to_owned(),
        (Some(_), ..) => String::new(),
        (None, Some(why), _) => why,
        (None, None, _) if name == "guest" => "not observed".to_owned(),
        (None, None, _) if name == "net" => NETWORK.to_owned(),
        (None, None, _) => "not known".to_owned(),
    };
    let stretch = value_ns.zip(from_ns).map(|(value_ns, from_ns)| Stretch {
        from: axis.of(from_ns),
        to: Some(axis.of(from_ns.saturating_add(value_ns))),
        what: "dark, by that definition".into(),
        hue: String::new(),
    });
    SpanRow {
        label: measured_by(name).into(),
        value: value_ns.map_or("-".into(), |ns| duration(ns as f64)),
        note,
        stretches: stretch.into_iter().collect(),
        signs: Vec::new(),
    }
}

/// What one device had of a side's time.
struct Device<'p> {
    key: &'p Key,
    pieces: Vec<&'p Piece>,
    total_ns: u64,
}

/// The devices of a side in the order in which it came to them.
fn devices(side: &str, pieces: &[Piece], split: impl Fn(&Key) -> Option<Split>, axis: Place) -> Vec<SpanRow> {
    let mut devices: Vec<Device<'_>> = Vec::new();
    for piece in pieces {
        let place = devices.iter().position(|device| *device.key == piece.key).unwrap_or_else(|| {
            devices.push(Device { key: &piece.key, pieces: Vec::new(), total_ns: 0 });
            devices.len() - 1
        });
        devices[place].pieces.push(piece);
        let device = &mut devices[place];
        device.total_ns = device.total_ns.saturating_add(piece.span.length_ns());
    }
    let mut largest: Vec<u64> = devices.iter().map(|device| device.total_ns).collect();
    largest.sort_by_key(|ns| Reverse(*ns));
    let least_ns = largest.get(MOST_DEVICES).map_or(0, |ns| ns.saturating_add(1));
    let (shown, rest): (Vec<Device<'_>>, Vec<Device<'_>>) =
        devices.into_iter().partition(|device| device.total_ns >= least_ns);
    let mut rows: Vec<SpanRow> =
        shown.iter().map(|device| row(side, &label(device.key, &shown), device, split(device.key), axis)).collect();
    if !rest.is_empty() {
        let stretches = rest.iter().flat_map(|device| stretches(device, None, axis)).collect();
        let total_ns = rest.iter().map(|device| device.total_ns).fold(0, u64::saturating_add);
        rows.push(SpanRow {
            label: format!("{side} {}", many(rest.len() as u64, "other")),
            value: duration(total_ns as f64),
            note: String::new(),
            stretches,
            signs: Vec::new(),
        });
    }
    rows
}

/// `virtio-net` of `0000:00:01.0/virtio-net`, where there is one of them; with its kind where only that tells two apart.
fn label((name, kind): &Key, all: &[Device<'_>]) -> String {
    let short = name.rsplit_once('/').map_or(name.as_str(), |(_, short)| short);
    let count = |is_alike: &dyn Fn(&str) -> bool| all.iter().filter(|device| is_alike(&device.key.0)).count();
    let named = count(&|other| other == name);
    let shown = if count(&|other| other.rsplit('/').next() == Some(short)) > named { name } else { short };
    if named > 1 { format!("{shown} ({kind})") } else { shown.to_owned() }
}

fn row(side: &str, label: &str, device: &Device<'_>, split: Option<Split>, axis: Place) -> SpanRow {
    let note = split.map_or(String::new(), |Split { work_ns, waiting_ns }| {
        format!("worked {}, waited {}", duration(work_ns as f64), duration(waiting_ns as f64))
    });
    SpanRow {
        label: format!("{side} {label}"),
        value: duration(device.total_ns as f64),
        note,
        stretches: stretches(device, split, axis),
        signs: Vec::new(),
    }
}

/// A device's pieces; where it is known how much of them was work and how much waiting, parted in that order.
fn stretches(device: &Device<'_>, split: Option<Split>, axis: Place) -> Vec<Stretch> {
    let whole = if device.key.1 == "unnamed" { ("unnamed", "unknown") } else { ("saved or loaded", "task") };
    let rest = if split.is_some() { ("slept, or not seen", "sleeping") } else { whole };
    let Split { work_ns, waiting_ns } = split.unwrap_or_default();
    let mut parts =
        [(work_ns, ("worked", "running")), (waiting_ns, ("waited for a CPU", "runnable")), (u64::MAX, rest)];
    let mut stretches = Vec::new();
    for piece in &device.pieces {
        let mut from_ns = piece.span.from_ns;
        for (left_ns, (what, hue)) in &mut parts {
            let take_ns = (*left_ns).min(piece.span.to_ns.saturating_sub(from_ns));
            if take_ns > 0 {
                let (from, to) = (axis.of(from_ns), Some(axis.of(from_ns + take_ns)));
                stretches.push(Stretch { from, to, what: (*what).into(), hue: (*hue).into() });
                from_ns += take_ns;
                *left_ns -= take_ns;
            }
        }
    }
    stretches
}
