//! When was how much lost?

use super::super::measure::Measured;
use super::super::tables::parts;
use super::{name, whom};
use base::figure::{Axis, Drawing, Heat, HeatRow};
use base::number::{duration, percent};
use base::{Figure, Span};
use facts::ledger::model::PartFlow;
use facts::losses::{Stretches, VcpuLosses};
use std::cmp::Reverse;

/// Pieces that a recording is cut into: a terminal has a column for each.
const CELLS: u64 = 60;

/// Rows of a picture.
const MOST_ROWS: usize = 16;

/// What one vCPU lost in nearly equal pieces of the recording.
pub(crate) struct OverTime {
    /// Where the pieces begin and end, on the recording's axis.
    ends: Span,
    /// What was lost in each.
    lost_ns: Box<[u64]>,
    /// A bit for each of which enough is known to tell.
    known: u64,
}

impl OverTime {
    pub(crate) fn of(losses: &VcpuLosses, lost: &Stretches, on_axis: impl Fn(u64) -> u64) -> Self {
        let span = losses.span;
        let unknown = Stretches::of(losses.unknown.iter().copied());
        let at =
            |cell: u64| span.from_ns + (u128::from(span.length_ns()) * u128::from(cell) / u128::from(CELLS)) as u64;
        let cell = |cell: u64| {
            let own = Span { from_ns: at(cell), to_ns: at(cell + 1) };
            known(lost.within(own), unknown.within(own), own.length_ns())
        };
        let ends = Span { from_ns: on_axis(span.from_ns), to_ns: on_axis(span.to_ns) };
        let mut over_time = Self { ends, lost_ns: vec![0; CELLS as usize].into(), known: 0 };
        for (number, ns) in (0..CELLS).filter_map(|number| Some((number, cell(number)?))) {
            over_time.lost_ns[number as usize] = ns;
            over_time.known |= 1 << number;
        }
        over_time
    }

    /// What was lost in each piece; `None` where too little is known to tell.
    fn cells(&self) -> impl Iterator<Item = Option<u64>> {
        let is_known = |number: usize| self.known >> number & 1 == 1;
        self.lost_ns.iter().enumerate().map(move |(number, ns)| is_known(number).then_some(*ns))
    }

    fn total_ns(&self) -> u64 {
        self.lost_ns.iter().sum()
    }
}

/// What was lost is seen, whatever else is unknown. That nothing was lost takes a piece of which more than half is known.
fn known(lost_ns: u64, unknown_ns: u64, length_ns: u64) -> Option<u64> {
    (lost_ns > 0 || unknown_ns < length_ns.div_ceil(2)).then_some(lost_ns)
}

/// A picture for each machine whose vCPUs lost anything.
pub(super) fn figures(measured: &[Measured<'_>]) -> Vec<Figure> {
    parts(measured).into_iter().filter_map(|part| figure(measured, part)).collect()
}

fn figure(measured: &[Measured<'_>], part: &PartFlow) -> Option<Figure> {
    let mut rows: Vec<&Measured<'_>> = measured.iter().filter(|one| std::ptr::eq(one.part, part)).collect();
    let of = rows.len();
    let worst = rows.iter().flat_map(|one| one.over_time.lost_ns.iter()).max().copied()?;
    if worst == 0 {
        return None;
    }
    if of > MOST_ROWS {
        rows.sort_by_key(|one| Reverse(one.over_time.total_ns()));
        rows.truncate(MOST_ROWS);
        rows.sort_by_key(|one| (&one.vcpu.vm, one.vcpu.vcpu));
    }
    let ends = rows.first()?.over_time.ends;
    let length_ns = ends.length_ns() as f64 / CELLS as f64;
    let shown: &[Measured<'_>] = if let [one] = rows[..] { std::slice::from_ref(one) } else { measured };
    let caption = format!(
        "Each cell is {} of {}; most was lost in one with {}, {} of it.",
        duration(length_ns),
        if of == measured.len() || of == 1 { whom(rows.len(), shown) } else { format!("{} of {of} vCPUs", rows.len()) },
        duration(worst as f64),
        percent(worst as f64 / length_ns.max(1.0))
    );
    let row = |one: &&Measured<'_>| HeatRow {
        label: name(one),
        cells: one.over_time.cells().map(|cell| cell.map(|ns| ns as f64)).collect(),
    };
    Some(Figure {
        id: format!("over-time-{}", part.machine),
        title: "When vCPUs lost time".into(),
        caption,
        in_terminals: false,
        drawing: Drawing::Heat(Heat {
            x: Axis { title: "time".into(), unit: "ns", is_logarithmic: false },
            ends: (ends.from_ns as f64, ends.to_ns as f64),
            what: format!("lost in {}", duration(length_ns)),
            unit: "ns",
            most: worst as f64,
            rows: rows.iter().map(row).collect(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_drawn_as_nothing() {
        assert_eq!(known(0, 0, 100), Some(0));
        assert_eq!(known(0, 49, 100), Some(0));
        assert_eq!([50, 51, 100].map(|unknown_ns| known(0, unknown_ns, 100)), [None; 3]);
        assert_eq!(known(3, 97, 100), Some(3), "what was lost was lost");
        assert_eq!(known(0, 0, 0), None, "an empty piece shows nothing");
    }
}
