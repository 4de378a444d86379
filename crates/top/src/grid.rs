//! A view of an interval: its columns, and a row for each VM, vCPU, reason or taker; sorted, filtered, and as lines.

use super::columns::{Cell, Column, REASONS, ReasonRow, TAKERS, TakerRow, VmRow, WIDE, cut, none, of_vms, short};
use analysis::flow::live::{Vcpu, Vm};
use base::number::duration;
use base::plain::plain;
use std::collections::BTreeMap;

/// What the rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Vms,
    Vcpus,
    Reasons,
    Takers,
}

impl View {
    pub(crate) const ALL: [View; 4] = [View::Vms, View::Vcpus, View::Reasons, View::Takers];

    pub(crate) fn name(self) -> &'static str {
        match self {
            View::Vms => "VMs",
            View::Vcpus => "vCPUs",
            View::Reasons => "reasons",
            View::Takers => "who took time",
        }
    }

    /// The column that a view is sorted by at first: ready time, time, time taken.
    pub(crate) fn default_sort(self) -> &'static str {
        match self {
            View::Vms | View::Vcpus => "RDY%",
            View::Reasons | View::Takers => "TIME%",
        }
    }
}

/// A vCPU that is ready longer than this share of its time is marked: 5 % is what users of other hypervisors begin to worry at.
pub(crate) const WORRYING_READY: f64 = 0.05;

/// Reasons named in a row of a VM where there is room.
const MOST_REASONS: usize = 3;

/// Blocks of a history.
const MOST_BLOCKS: usize = 12;
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Room for a longer name on a wide page.
const MORE_NAME: usize = 10;

pub(crate) struct Grid {
    pub heads: Vec<Head>,
    pub rows: Vec<Row>,
}

pub(crate) struct Head {
    pub text: &'static str,
    width: usize,
    is_left: bool,
}

pub(crate) struct Row {
    pub vm: String,
    /// It waits for a CPU longer than anybody likes.
    pub is_marked: bool,
    pub cells: Vec<Cell>,
}

impl Grid {
    /// The rows of `view`, of all VMs or of one, for a page of that width. `history` has the shares of time that a VM was ready before, the oldest
    /// first.
    pub(crate) fn of(
        view: View,
        vcpus: &[Vcpu],
        vm: Option<&str>,
        page_width: usize,
        history: &dyn Fn(&str) -> Vec<Option<f64>>,
    ) -> Self {
        let vcpus: Vec<Vcpu> = vcpus.iter().filter(|vcpu| vm.is_none_or(|vm| vcpu.vm == vm)).cloned().collect();
        let mut grid = match view {
            View::Vms => Self::vms(Vm::of(&vcpus), &vcpus, page_width, |vm| (vm.vcpus, history(vm.name))),
            View::Vcpus => {
                let each = vcpus.iter().map(|vcpu| {
                    let one = std::slice::from_ref(vcpu);
                    Self::vms(Vm::of(one), one, page_width, |_| (u64::from(vcpu.vcpu), Vec::new()))
                });
                each.reduce(|all, one| Self { rows: all.rows.into_iter().chain(one.rows).collect(), ..all })
                    .unwrap_or_else(|| Self::vms(Vec::new(), &[], page_width, |_| Default::default()))
            }
            View::Reasons => Self::filled(REASONS, &reasons(&vcpus), page_width, |row| (row.vm.clone(), false)),
            View::Takers => Self::filled(TAKERS, &takers(&vcpus), page_width, |row| (row.vm.clone(), false)),
        };
        grid.sort(view.default_sort(), false);
        grid
    }

    fn vms<'v>(
        vms: Vec<Vm<'v>>,
        vcpus: &[Vcpu],
        page_width: usize,
        of: impl Fn(&Vm<'v>) -> (u64, Vec<Option<f64>>),
    ) -> Self {
        let most = if page_width >= WIDE { MOST_REASONS } else { 1 };
        let row = |vm: Vm<'v>| {
            let (vcpu, before) = of(&vm);
            let own = vcpus.iter().filter(|vcpu| vcpu.vm == vm.name);
            let told: Vec<String> = costliest(own, vm.wall_ns).into_iter().take(most).collect();
            let reasons = if told.is_empty() { none() } else { told.join("  ") };
            VmRow { vm, vcpu, reasons, history: blocks(&before) }
        };
        let rows: Vec<VmRow<'v>> = vms.into_iter().map(row).collect();
        Self::filled(&of_vms(), &rows, page_width, |row| {
            (row.vm.name.to_owned(), row.vm.ready.is_some_and(|ready| ready >= WORRYING_READY))
        })
    }

    fn filled<T>(columns: &[Column<T>], rows: &[T], page_width: usize, of: impl Fn(&T) -> (String, bool)) -> Self {
        // A column in which nothing stands is not there: histories, where none are kept.
        let says =
            |column: &&Column<T>| rows.is_empty() || rows.iter().any(|row| !(column.cell)(row).text().is_empty());
        let has_room = |column: &&Column<T>| page_width >= column.least_page;
        let columns: Vec<&Column<T>> = columns.iter().filter(has_room).filter(says).collect();
        let more = if page_width >= WIDE { MORE_NAME } else { 0 };
        let head = |(at, column): (usize, &&Column<T>)| Head {
            text: column.head,
            width: if at == 0 { column.width + more } else { column.width },
            is_left: column.is_left,
        };
        let row = |row: &T| {
            let (vm, is_marked) = of(row);
            Row { vm, is_marked, cells: columns.iter().map(|column| (column.cell)(row)).collect() }
        };
        Self { heads: columns.iter().enumerate().map(head).collect(), rows: rows.iter().map(row).collect() }
    }

    /// Sorts by the column of that name, if the page has it: the largest number first, or the other way round. Equal rows stay as they are.
    pub(crate) fn sort(&mut self, by: &str, is_reversed: bool) {
        let Some(at) = self.heads.iter().position(|head| head.text == by) else { return };
        self.rows.sort_by(|one, other| {
            let order = one.cells[at].order(&other.cells[at]);
            if is_reversed { order.reverse() } else { order }
        });
    }

    /// Keeps the rows in which that text stands, in small or large letters.
    pub(crate) fn filter(&mut self, text: &str) {
        let text = text.to_lowercase();
        self.rows.retain(|row| row.cells.iter().any(|cell| cell.text().to_lowercase().contains(&text)));
    }

    /// The heads; the column that is sorted by is marked.
    pub(crate) fn head_line(&self, sorted_by: Option<&str>) -> String {
        let text = |head: &Head| {
            let is_sorted = sorted_by == Some(head.text);
            if is_sorted { format!("{}*", head.text) } else { head.text.to_owned() }
        };
        self.line(' ', self.heads.iter().map(text))
    }

    pub(crate) fn row_line(&self, row: &Row) -> String {
        self.line(if row.is_marked { '!' } else { ' ' }, row.cells.iter().map(Cell::text))
    }

    fn line(&self, mark: char, cells: impl Iterator<Item = String>) -> String {
        let mut line = String::from(mark);
        for (at, (head, cell)) in self.heads.iter().zip(cells).enumerate() {
            if head.is_left && at > 0 {
                line.push_str("  ");
            }
            match (head.is_left, head.width) {
                (true, usize::MAX) => line.push_str(&cell),
                (true, width) => line.push_str(&format!("{:<width$}", short_name(&cell, width))),
                (false, width) => line.push_str(&format!("{cell:>width$}")),
            }
        }
        line
    }
}

/// Reasons by the time that they take; where exits are silent, returns to the VMM by how often.
fn costliest<'v>(vcpus: impl Iterator<Item = &'v Vcpu> + Clone, wall_ns: u64) -> Vec<String> {
    let mut rows = reasons_of("", vcpus, wall_ns);
    rows.sort_by(|a, b| (b.share, b.count).partial_cmp(&(a.share, a.count)).unwrap_or(std::cmp::Ordering::Equal));
    let said = |row: &ReasonRow| match (row.mean_ns, row.share) {
        (Some(mean_ns), Some(share)) => format!("{} {} {:.1}%", row.reason, duration(mean_ns), 100.0 * share),
        _ => format!("{} {}/s", row.reason, row.per_second.map_or_else(none, short)),
    };
    rows.iter().map(said).collect()
}

fn reasons(vcpus: &[Vcpu]) -> Vec<ReasonRow> {
    let of = |vm: Vm<'_>| {
        let mut rows = reasons_of(vm.name, vcpus.iter().filter(|vcpu| vcpu.vm == vm.name), vm.wall_ns);
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        rows
    };
    Vm::of(vcpus).into_iter().flat_map(of).collect()
}

/// The sums of a VM's reasons: exits of the guest, or, where these are silent, returns to the VMM, which have no time of their own.
fn reasons_of<'v>(vm: &str, vcpus: impl Iterator<Item = &'v Vcpu> + Clone, wall_ns: u64) -> Vec<ReasonRow> {
    let length_ns = vcpus.clone().map(|vcpu| vcpu.wall_ns).max().unwrap_or(0);
    let per_second = |count: u64| (length_ns > 0).then(|| count as f64 * 1e9 / length_ns as f64);
    /// Count, those with a cost, their cost, the longest.
    type Sums = (u64, u64, u64, Option<u64>);
    let mut sums: BTreeMap<&str, Sums> = BTreeMap::new();
    for exits in vcpus.clone().flat_map(|vcpu| vcpu.exits.iter().flatten()) {
        let sum = sums.entry(&exits.reason).or_default();
        sum.0 += exits.count;
        sum.1 += exits.count - exits.clipped;
        sum.2 += exits.total_ns;
        sum.3 = sum.3.max(exits.max_ns);
    }
    if !sums.is_empty() {
        let row = |(reason, (count, timed, total_ns, max_ns)): (&str, Sums)| ReasonRow {
            vm: vm.to_owned(),
            reason: reason.to_owned(),
            per_second: per_second(count),
            count,
            mean_ns: (timed > 0).then(|| total_ns as f64 / timed as f64),
            longest_ns: max_ns.map(|ns| ns as f64),
            share: (timed > 0 && wall_ns > 0).then(|| total_ns as f64 / wall_ns as f64),
        };
        return sums.into_iter().map(row).collect();
    }
    let mut returns: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, count) in vcpus.flat_map(|vcpu| vcpu.userspace_exits.iter().flatten()) {
        *returns.entry(reason).or_default() += count;
    }
    let row = |(reason, count): (&str, u64)| ReasonRow {
        vm: vm.to_owned(),
        reason: format!("VMM:{reason}"),
        per_second: per_second(count),
        count,
        mean_ns: None,
        longest_ns: None,
        share: None,
    };
    returns.into_iter().map(row).collect()
}

fn takers(vcpus: &[Vcpu]) -> Vec<TakerRow> {
    let of = |vm: Vm<'_>| {
        let mut rows: Vec<TakerRow> = Vec::new();
        let own = vcpus.iter().filter(|vcpu| vcpu.vm == vm.name);
        for by in own.flat_map(|vcpu| vcpu.preemptors.iter().flatten()) {
            let longest_ns = by.max_ns.map(|ns| ns as f64);
            match rows.iter_mut().find(|row| row.tid == by.tid) {
                Some(row) => {
                    (row.count, row.total_ns) = (row.count + by.count, row.total_ns + by.total_ns);
                    row.longest_ns = row.longest_ns.into_iter().chain(longest_ns).reduce(f64::max);
                }
                None => rows.push(TakerRow {
                    vm: vm.name.to_owned(),
                    by: by.by.clone(),
                    tid: by.tid,
                    count: by.count,
                    total_ns: by.total_ns,
                    longest_ns,
                    share: None,
                }),
            }
        }
        rows.iter_mut()
            .filter(|_| vm.wall_ns > 0)
            .for_each(|row| row.share = Some(row.total_ns as f64 / vm.wall_ns as f64));
        rows
    };
    Vm::of(vcpus).into_iter().flat_map(of).collect()
}

/// A block for each interval, higher the longer the VM was ready; a full one is [`WORRYING_READY`] four times.
fn blocks(shares: &[Option<f64>]) -> String {
    let block = |share: &Option<f64>| match share {
        Some(share) => BLOCKS[((share / (4.0 * WORRYING_READY) * 8.0) as usize).min(7)],
        None => ' ',
    };
    shares[shares.len().saturating_sub(MOST_BLOCKS)..].iter().map(block).collect()
}

/// A name with its beginning and its end, which tells processes apart.
fn short_name(name: &str, most: usize) -> String {
    let letters: Vec<char> = plain(name).chars().collect();
    if letters.len() <= most {
        return letters.into_iter().collect();
    }
    let end = (most - 1) / 2;
    let begin = most - 1 - end;
    letters[..begin].iter().chain(&['~']).chain(&letters[letters.len() - end..]).collect()
}

/// No longer than the page is wide, and nothing in it that a terminal obeys.
pub(crate) fn fitted(line: &str, width: usize) -> String {
    cut(&plain(line), width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_ends() {
        assert_eq!([short_name("process-24558", 10), short_name("web", 10)], ["proce~4558", "web"]);
    }

    #[test]
    fn a_history_ends_with_the_latest_and_what_is_unknown_is_a_gap() {
        assert_eq!(blocks(&[Some(0.0), None, Some(0.1), Some(0.9)]), "▁ ▅█");
        assert_eq!(blocks(&vec![Some(1.0); 40]).chars().count(), MOST_BLOCKS);
    }
}
