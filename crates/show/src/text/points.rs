//! Single numbers on a logarithmic scale, a line each: what was measured and what others published, by unlike marks.
//!
//! ```text
//!    cpuid, cycles   100 to 100,000
//!    L1?     3,279   measured   ·······├●┤··········  L0, here
//!    L1      1,350   published  ·····◆··············  fosdem18.cpuid.l1
//! ```

use super::line::{Lines, elided, left, right, width};
use super::paint::Role;
use base::figure::{Mark, PointGroup, Scale};
use base::number;

/// The longest scale, and the shortest that shows anything.
const SCALE: std::ops::RangeInclusive<usize> = 10..=40;

/// A source is not shortened below this.
const SHORTEST_SOURCE: usize = 10;

/// Columns of the longest of the words of [`Mark`].
const MARK_ROOM: usize = 9;

/// How many columns each piece of a line gets, the same for all groups.
struct Rooms {
    label: usize,
    value: usize,
    scale: usize,
    source: usize,
}

/// Groups below each other, those of one unit on one scale.
pub(super) fn render(groups: &[PointGroup], out: &mut Lines) {
    let rooms = rooms(groups, out.page.width);
    for group in groups {
        let scale = group.scale(groups);
        let ends = [scale.from, scale.to].map(|end| words(end, group.unit));
        let unit = if group.unit == "cycles" { group.unit } else { "" };
        let range = format!("{}   {} to {} {unit}", group.title, ends[0], ends[1]);
        out.wrapped("   ", "     ", range.trim_end(), out.page.width);
        for point in &group.points {
            let label = left(&elided(&point.label, rooms.label), rooms.label);
            let value = right(&words(point.value, group.unit), rooms.value);
            let mut line = format!("     {label}  {value}  {}", left(point.mark.name(), MARK_ROOM));
            if SCALE.contains(&rooms.scale) {
                let drawn = drawn(scale, point.value, point.interval, point.mark, rooms.scale);
                let hue = if point.mark == Mark::Published { Role::Quiet } else { Role::Hue(&point.label) };
                line.push_str(&format!("  {}", out.paint.on(&drawn, hue)));
            }
            out.line(&format!("{line}  {}", elided(&point.source, rooms.source)));
        }
    }
}

fn rooms(groups: &[PointGroup], page: usize) -> Rooms {
    let points = || groups.iter().flat_map(|group| group.points.iter().map(move |point| (group, point)));
    let label = points().map(|(_, point)| width(&point.label)).max().unwrap_or(0).min(page / 4);
    let value = points().map(|(group, point)| width(&words(point.value, group.unit))).max().unwrap_or(0);
    let source = points().map(|(_, point)| width(&point.source)).max().unwrap_or(0);
    let left = page.saturating_sub(5 + label + 2 + value + 2 + MARK_ROOM + 2 + 2);
    // The scale first, down to its shortest, then the whole of the source.
    let scale = left.saturating_sub(source).clamp(*SCALE.start(), *SCALE.end());
    match left.checked_sub(scale).filter(|rest| *rest >= SHORTEST_SOURCE.min(source)) {
        Some(rest) => Rooms { label, value, scale, source: rest.min(source) },
        None => Rooms { label, value, scale: 0, source: (left + 2).min(source) },
    }
}

/// A number as it stands in a line; cycles are named in the heading.
fn words(value: f64, unit: &str) -> String {
    match unit {
        "cycles" if value.abs() >= 100.0 => number::plain(value.round()),
        "cycles" => number::plain(value),
        unit => number::amount(value, unit),
    }
}

/// The scale with one mark on it, and the ends of its interval where they are not the mark's own.
fn drawn(scale: Scale, value: f64, interval: Option<(f64, f64)>, mark: Mark, columns: usize) -> String {
    let column = |value: f64| (scale.place(value) * (columns - 1) as f64).round() as usize;
    let mut line = vec!['·'; columns];
    if let Some((low, high)) = interval {
        let (low, high) = (column(low), column(high));
        line[low..=high].fill('─');
        line[low] = '├';
        line[high] = '┤';
    }
    line[column(value)] = match mark {
        Mark::Measured => '●',
        Mark::Emulated => '○',
        Mark::Published => '◆',
        Mark::Modelled => '◇',
    };
    line.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_at_its_logarithm_inside_its_interval() {
        let group = PointGroup { title: String::new(), unit: "cycles", points: Vec::new() };
        let scale = group.axis().scale([10.0, 100_000.0].into_iter());
        assert_eq!(drawn(scale, 1_000.0, None, Mark::Published, 9), "····◆····");
        assert_eq!(drawn(scale, 1_000.0, Some((100.0, 10_000.0)), Mark::Measured, 9), "··├─●─┤··");
        assert_eq!(drawn(scale, 1_000.0, Some((990.0, 1_010.0)), Mark::Emulated, 9), "····○····");
    }
}
