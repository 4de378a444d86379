//! The columns of each view: what stands in a cell, how wide it is, and from which width of the page on it is there.

use analysis::flow::live::Vm;
use base::number::duration;
use base::plain::plain;
use std::cmp::Ordering;

/// What stands in a cell. `None` is unknown, and never 0.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    /// Of 1.
    Share(Option<f64>),
    PerSecond(Option<f64>),
    Ns(Option<f64>),
    Count(Option<u64>),
    /// Who, and which share.
    Taken(Option<(String, f64)>),
}

impl Cell {
    /// As it is shown.
    pub(crate) fn text(&self) -> String {
        let known = match self {
            Cell::Text(text) => Some(plain(text).into_owned()),
            Cell::Share(share) => share.map(percent),
            Cell::PerSecond(rate) => rate.map(short),
            Cell::Ns(ns) => ns.map(duration),
            Cell::Count(count) => count.map(|count| short(count as f64)),
            Cell::Taken(taken) => {
                taken.as_ref().map(|(by, share)| format!("{} {}", cut(&plain(by), MOST_OF_TAKER), percent(*share)))
            }
        };
        known.unwrap_or_else(none)
    }

    /// The largest number first, then those that are unknown; names in their order.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        match (self.number(), other.number()) {
            (Some(one), Some(other)) => other.total_cmp(&one),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => self.text().cmp(&other.text()),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            // A number of a vCPU is one, a name is none.
            Cell::Text(_) => None,
            Cell::Share(number) | Cell::PerSecond(number) | Cell::Ns(number) => *number,
            Cell::Count(count) => count.map(|count| count as f64),
            Cell::Taken(taken) => taken.as_ref().map(|(_, share)| *share),
        }
    }
}

/// Letters of a taker's name.
const MOST_OF_TAKER: usize = 11;

pub(crate) fn none() -> String {
    "-".to_owned()
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// A number in at most six letters: `950`, `44.1k`, `1.2M`.
pub(crate) fn short(rate: f64) -> String {
    match rate {
        rate if rate >= 999_950.0 => format!("{:.1}M", rate / 1e6),
        rate if rate >= 9_999.5 => format!("{:.1}k", rate / 1e3),
        rate => format!("{rate:.0}"),
    }
}

pub(crate) fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// A column of rows of kind `T`.
pub(crate) struct Column<T> {
    pub head: &'static str,
    /// In letters; of names at the left that of pages of less than [`WIDE`].
    pub width: usize,
    /// Narrower pages do not have it.
    pub least_page: usize,
    /// Names stand at the left, numbers at the right.
    pub is_left: bool,
    pub cell: fn(&T) -> Cell,
}

const fn right<T>(head: &'static str, width: usize, least_page: usize, cell: fn(&T) -> Cell) -> Column<T> {
    Column { head, width, least_page, is_left: false, cell }
}

const fn left<T>(head: &'static str, width: usize, least_page: usize, cell: fn(&T) -> Cell) -> Column<T> {
    Column { head, width, least_page, is_left: true, cell }
}

/// A page with room for long names and for several reasons.
pub(crate) const WIDE: usize = 200;

/// Letters of a VM's name.
const NAME: usize = 10;

/// A VM, or one of its vCPUs.
pub(crate) struct VmRow<'v> {
    pub vm: Vm<'v>,
    /// How many vCPUs, or which.
    pub vcpu: u64,
    pub reasons: String,
    /// How long it was ready in the intervals before, as blocks; empty where these are not kept.
    pub history: String,
}

/// Why guests exited, or returned to the VMM.
pub(crate) struct ReasonRow {
    pub vm: String,
    pub reason: String,
    pub per_second: Option<f64>,
    pub count: u64,
    pub mean_ns: Option<f64>,
    pub longest_ns: Option<f64>,
    pub share: Option<f64>,
}

/// Who had a CPU that a VM was ready for.
pub(crate) struct TakerRow {
    pub vm: String,
    pub by: String,
    pub tid: Option<i32>,
    pub count: u64,
    pub total_ns: u64,
    pub longest_ns: Option<f64>,
    pub share: Option<f64>,
}

/// Of VMs and vCPUs.
pub(crate) fn of_vms<'v>() -> Vec<Column<VmRow<'v>>> {
    vec![
        left("VM", NAME, 0, |row| Cell::Text(row.vm.name.to_owned())),
        right("vCPU", 5, 0, |row| Cell::Count(Some(row.vcpu))),
        right("GUEST%", 7, 0, |row| Cell::Share(row.vm.guest)),
        right("KVM%", 6, 0, |row| Cell::Share(row.vm.kvm)),
        right("VMM%", 6, 0, |row| Cell::Share(row.vm.vmm)),
        right("IRQ%", 6, 120, |row| Cell::Share(row.vm.irq)),
        right("RDY%", 6, 0, |row| Cell::Share(row.vm.ready)),
        right("TORN%", 6, 100, |row| Cell::Share(row.vm.torn)),
        right("HALT%", 6, 0, |row| Cell::Share(row.vm.halted)),
        right("BLK%", 6, 0, |row| Cell::Share(row.vm.blocked)),
        right("?%", 6, 0, |row| Cell::Share(row.vm.unknown)),
        right("EXIT/s", 8, 0, |row| Cell::PerSecond(row.vm.exits_per_second)),
        right("VMM/s", 8, 120, |row| Cell::PerSecond(row.vm.userspace_exits_per_second)),
        right("TAKEN BY", 18, 140, |row| Cell::Taken(row.vm.taken.clone())),
        right("WAKE99", 9, 120, |row| Cell::Ns(row.vm.wakeup_p99_ns.map(|ns| ns as f64))),
        left("READY BEFORE", 12, 160, |row| Cell::Text(row.history.clone())),
        left("COSTLIEST", usize::MAX, 0, |row| Cell::Text(row.reasons.clone())),
    ]
}

pub(crate) const REASONS: &[Column<ReasonRow>] = &[
    left("VM", NAME, 0, |row| Cell::Text(row.vm.clone())),
    left("REASON", 24, 0, |row| Cell::Text(row.reason.clone())),
    right("PER s", 9, 0, |row| Cell::PerSecond(row.per_second)),
    right("COUNT", 9, 0, |row| Cell::Count(Some(row.count))),
    right("MEAN", 10, 0, |row| Cell::Ns(row.mean_ns)),
    right("LONGEST", 10, 0, |row| Cell::Ns(row.longest_ns)),
    right("TIME%", 7, 0, |row| Cell::Share(row.share)),
];

pub(crate) const TAKERS: &[Column<TakerRow>] = &[
    left("VM", NAME, 0, |row| Cell::Text(row.vm.clone())),
    left("TAKEN BY", 18, 0, |row| Cell::Text(row.by.clone())),
    right("TID", 9, 0, |row| Cell::Text(row.tid.map_or_else(none, |tid| tid.to_string()))),
    right("TIMES", 9, 0, |row| Cell::Count(Some(row.count))),
    right("TOOK", 10, 0, |row| Cell::Ns(Some(row.total_ns as f64))),
    right("LONGEST", 10, 0, |row| Cell::Ns(row.longest_ns)),
    right("TIME%", 7, 0, |row| Cell::Share(row.share)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_short_and_unknown_ones_come_last() {
        assert_eq!([0.4, 950.0, 44_100.0, 1_234_567.0].map(short), ["0", "950", "44.1k", "1.2M"]);
        let mut cells = [None, Some(0.1), Some(0.5)].map(Cell::Share);
        cells.sort_by(Cell::order);
        assert_eq!(cells.map(|cell| cell.text()), ["50.0", "10.0", "-"]);
        assert_eq!(Cell::Taken(Some(("ksoftirqd\u{1b}/11111".to_owned(), 0.091))).text(), "ksoftirqd\u{fffd}/ 9.1");
    }
}
