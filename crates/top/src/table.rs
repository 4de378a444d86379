//! A block of text: what is said above, and a row for each VM, or for each vCPU of one. More columns where the page is wider.

use super::observe::Frame;
use analysis::flow::live::{Vcpu, Vm};
use base::number::duration;
use base::plain::plain;
use show::text::Page;

/// A vCPU that is ready longer than this share of its time is marked: 5 % is what users of other hypervisors begin to worry at.
const WORRYING_READY: f64 = 0.05;

/// One row: a VM, or a vCPU.
struct Row<'v> {
    vm: Vm<'v>,
    /// How many vCPUs, or which.
    vcpu: String,
    reasons: Vec<String>,
}

/// A column.
struct Column {
    head: &'static str,
    width: usize,
    /// Narrower pages do not have it.
    least_page: usize,
    cell: fn(&Row<'_>) -> String,
}

const fn column(head: &'static str, width: usize, least_page: usize, cell: fn(&Row<'_>) -> String) -> Column {
    Column { head, width, least_page, cell }
}

/// All columns behind the name, in their order.
const COLUMNS: &[Column] = &[
    column("vCPU", 5, 0, |row| row.vcpu.clone()),
    column("GUEST%", 7, 0, |row| percent(row.vm.guest)),
    column("KVM%", 6, 0, |row| percent(row.vm.kvm)),
    column("VMM%", 6, 0, |row| percent(row.vm.vmm)),
    column("IRQ%", 6, 120, |row| percent(row.vm.irq)),
    column("RDY%", 6, 0, |row| percent(row.vm.ready)),
    column("TORN%", 6, 100, |row| percent(row.vm.torn)),
    column("HALT%", 6, 0, |row| percent(row.vm.halted)),
    column("BLK%", 6, 0, |row| percent(row.vm.blocked)),
    column("?%", 6, 0, |row| percent(row.vm.unknown)),
    column("EXIT/s", 8, 0, |row| rate(row.vm.exits_per_second)),
    column("VMM/s", 8, 120, |row| rate(row.vm.userspace_exits_per_second)),
    column("TAKEN BY", 18, 140, taken),
    column("WAKE99", 9, 120, |row| row.vm.wakeup_p99_ns.map_or_else(none, |ns| duration(ns as f64))),
];

/// Letters of a VM's name.
const NAME: usize = 10;
/// With more room.
const LONG_NAME: usize = 20;
const WIDE: usize = 200;
/// Reasons named where there is room.
const MOST_REASONS: usize = 3;

/// Who took most of a VM's CPUs while it was ready, and how much of its time.
fn taken(row: &Row<'_>) -> String {
    let (by, share) = match &row.vm.taken {
        Some((by, share)) => (by, share),
        None => return none(),
    };
    format!("{} {:.1}", cut(&plain(by), 11), 100.0 * share)
}

fn none() -> String {
    "-".to_owned()
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(none, |share| format!("{:.1}", 100.0 * share))
}

fn rate(rate: Option<f64>) -> String {
    rate.map_or_else(none, short)
}

/// A rate in at most six letters: `950`, `44.1k`, `1.2M`.
pub(crate) fn short(rate: f64) -> String {
    match rate {
        rate if rate >= 999_950.0 => format!("{:.1}M", rate / 1e6),
        rate if rate >= 9_999.5 => format!("{:.1}k", rate / 1e3),
        rate => format!("{rate:.0}"),
    }
}

/// The text below the first line.
pub fn text(frame: &Frame, page: &Page, each_vcpu: bool) -> String {
    let floor = frame.head.floor.iter().flat_map(|line| line.lines());
    let mut said: Vec<String> = floor.flat_map(|line| wrapped(line, page.width)).collect();
    let own = said.pop();
    said.extend(lines(&frame.vcpus, page, each_vcpu));
    if frame.vcpus.is_empty() {
        said.push(" no vCPU ran or was known in this interval".to_owned());
    }
    said.extend(own);
    said.into_iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// The heads of the columns, and a line for each row.
fn lines(vcpus: &[Vcpu], page: &Page, each_vcpu: bool) -> Vec<String> {
    let name = if page.width >= WIDE { LONG_NAME } else { NAME };
    let columns: Vec<&Column> = COLUMNS.iter().filter(|column| page.width >= column.least_page).collect();
    let mut head = format!(" {:<name$}", "VM");
    columns.iter().for_each(|column| head += &format!("{:>1$}", column.head, column.width));
    let mut lines = vec![fitted(&format!("{head}  COSTLIEST"), page)];
    for row in rows(vcpus, each_vcpu) {
        let mark = if row.vm.ready.is_some_and(|ready| ready >= WORRYING_READY) { '!' } else { ' ' };
        let mut line = format!("{mark}{:<name$}", short_name(&plain(row.vm.name), name));
        columns.iter().for_each(|column| line += &format!("{:>1$}", (column.cell)(&row), column.width));
        let reasons = if page.width >= WIDE { MOST_REASONS } else { 1 };
        let most: Vec<&str> = row.reasons.iter().take(reasons).map(String::as_str).collect();
        let most = if most.is_empty() { none() } else { most.join("  ") };
        lines.push(fitted(&format!("{line}  {most}"), page));
    }
    lines
}

fn rows(vcpus: &[Vcpu], each_vcpu: bool) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = if each_vcpu {
        let each = vcpus.iter().map(|vcpu| (vcpu.vcpu.to_string(), std::slice::from_ref(vcpu)));
        each.flat_map(|(number, one)| row_of(one, Some(number))).collect()
    } else {
        row_of(vcpus, None)
    };
    // Who waits longest stands first; the order of names else.
    rows.sort_by(|a, b| b.vm.ready.unwrap_or(0.0).total_cmp(&a.vm.ready.unwrap_or(0.0)));
    rows
}

fn row_of(vcpus: &[Vcpu], number: Option<String>) -> Vec<Row<'_>> {
    let of = |vm: Vm<'_>| reasons(vcpus.iter().filter(|vcpu| vcpu.vm == vm.name), vm.wall_ns);
    let vms = Vm::of(vcpus);
    vms.into_iter()
        .map(|vm| Row { reasons: of(vm.clone()), vcpu: number.clone().unwrap_or_else(|| vm.vcpus.to_string()), vm })
        .collect()
}

/// Reasons by the time that they take; where exits are silent, returns to the VMM by how often.
fn reasons<'v>(vcpus: impl Iterator<Item = &'v Vcpu> + Clone, wall_ns: u64) -> Vec<String> {
    let mut sums: Vec<(&str, u64, u64)> = Vec::new();
    let mut add =
        |reason: &'v str, count: u64, total_ns: u64| match sums.iter_mut().find(|(known, ..)| *known == reason) {
            Some(sum) => *sum = (sum.0, sum.1 + count, sum.2 + total_ns),
            None => sums.push((reason, count, total_ns)),
        };
    let exits = vcpus.clone().flat_map(|vcpu| vcpu.exits.iter().flatten());
    exits.for_each(|exits| add(&exits.reason, exits.count - exits.clipped, exits.total_ns));
    if sums.is_empty() {
        let longest_ns = vcpus.clone().map(|vcpu| vcpu.wall_ns).max().unwrap_or(0).max(1);
        let returns = vcpus.flat_map(|vcpu| vcpu.userspace_exits.iter().flatten());
        let mut add = |reason: &'v str, count: u64| match sums.iter_mut().find(|(known, ..)| *known == reason) {
            Some(sum) => sum.1 += count,
            None => sums.push((reason, count, 0)),
        };
        returns.for_each(|(reason, count)| add(reason, *count));
        sums.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
        return sums
            .iter()
            .map(|(reason, count, _)| format!("VMM:{reason} {}/s", short(*count as f64 * 1e9 / longest_ns as f64)))
            .collect();
    }
    sums.sort_by_key(|(.., total_ns)| std::cmp::Reverse(*total_ns));
    let said = |(reason, count, total_ns): &(&str, u64, u64)| {
        let mean = if *count > 0 { duration(*total_ns as f64 / *count as f64) } else { none() };
        format!("{reason} {mean} {:.1}%", 100.0 * *total_ns as f64 / wall_ns.max(1) as f64)
    };
    sums.iter().map(said).collect()
}

/// Lines no longer than that, broken between words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in plain(text).split_whitespace() {
        let line = lines.len() - 1;
        if lines[line].is_empty() {
            lines[line] = cut(word, width);
        } else if lines[line].chars().count() + 1 + word.chars().count() <= width {
            lines[line] += &format!(" {word}");
        } else {
            lines.push(cut(&format!("  {word}"), width));
        }
    }
    lines
}

/// A name with its beginning and its end, which tells processes apart.
fn short_name(name: &str, most: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= most {
        return name.to_owned();
    }
    let end = (most - 1) / 2;
    let begin = most - 1 - end;
    letters[..begin].iter().chain(&['~']).chain(&letters[letters.len() - end..]).collect()
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// No longer than the page is wide.
pub fn fitted(line: &str, page: &Page) -> String {
    cut(&plain(line), page.width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vcpu(vm: &str, number: u32, ready_ns: u64) -> Vcpu {
        Vcpu {
            vm: vm.to_owned(),
            vcpu: number,
            wall_ns: 1_000_000_000,
            guest_ns: Some(700_000_000 - ready_ns),
            ready_ns: Some(ready_ns),
            unknown_ns: Some(0),
            userspace_exits: Some(vec![("IO".to_owned(), 44_100)]),
            ..Vcpu::default()
        }
    }

    #[test]
    fn each_width_has_its_columns_and_who_waits_stands_first() {
        let vcpus = [vcpu("db", 0, 0), vcpu("a-name-that-is-too-long", 0, 100_000_000), vcpu("we\x1bb", 1, 1_000_000)];
        for width in [50, 80, 120, 200] {
            let page = Page { width, ..Page::default() };
            let text = lines(&vcpus, &page, false);
            assert!(text.iter().all(|line| line.chars().count() <= width), "{text:#?}");
            assert_eq!(text[0].contains("WAKE99"), width >= 120);
        }
        let text = lines(&vcpus, &Page { width: 100, ..Page::default() }, false);
        assert!(text[1].starts_with("!a-nam~long    1   60.0     -"), "{text:#?}");
        assert!(text[1].contains(" 10.0 ") && text[1].ends_with("VMM:IO 44.1k/s"), "{text:#?}");
        assert!(text[2].starts_with(" we") && !text[2].contains('\x1b') && text[3].starts_with(" db"), "{text:#?}");
    }

    #[test]
    fn of_one_vm_each_vcpu_has_a_row() {
        let vcpus = [vcpu("web", 0, 0), vcpu("web", 3, 60_000_000)];
        let text = lines(&vcpus, &Page::default(), true);
        assert!(text[1].starts_with("!web           3") && text[2].starts_with(" web           0"), "{text:#?}");
    }

    #[test]
    fn rates_and_lines_stay_short() {
        assert_eq!([0.4, 950.0, 44_100.0, 1_234_567.0].map(short), ["0", "950", "44.1k", "1.2M"]);
        assert_eq!(wrapped("one two three", 9), ["one two", "  three"]);
        assert_eq!([short_name("process-24558", 10), short_name("web", 10)], ["proce~4558", "web"]);
    }
}
