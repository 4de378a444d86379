//! Pairs of numbers before and after in a terminal, a line each.
//!
//! ```text
//!    Share of the vCPUs' time
//!      preempted        46.2 %   1.8 %  -44.4 points  ·●┄━━━━━━━━━━━━━━│·····
//!      host interrupts   0.3 %   1.1 %   +0.8 points  │━○┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄
//!                                               0 %                   50 %
//!    │ before   ● after, measured: changed by more than noise   ┄ 95 % interval
//! ```

use super::line::{Lines, left, right, width};
use super::paint::Role;
use base::figure::{Dumbbell, DumbbellGroup, DumbbellKey, Mark, Sure};
use base::number;

/// The longest scale, and the shortest that shows anything.
const SCALE: std::ops::RangeInclusive<usize> = 12..=48;

/// Rows of a group in a terminal; JSON has all.
const MOST_ROWS: usize = 8;

const BEFORE: char = '│';
const BETWEEN: char = '━';
const RIM: char = '┄';

/// How many columns each piece of a line gets, the same for all groups.
struct Rooms {
    label: usize,
    before: usize,
    after: usize,
    change: usize,
    scale: usize,
}

/// Groups below each other, each on a scale of its own.
pub(super) fn render(groups: &[DumbbellGroup], out: &mut Lines) {
    let rooms = rooms(groups, out.page.width);
    for group in groups {
        out.wrapped("   ", "     ", &group.title, out.page.width);
        for row in group.rows.iter().take(MOST_ROWS) {
            line(group, row, &rooms, out);
        }
        if SCALE.contains(&rooms.scale) {
            ends(group, &rooms, out);
        }
        if let Some(more) = group.rows.len().checked_sub(MOST_ROWS).filter(|more| *more > 0) {
            out.line(&format!("     + {more} more like these, see --json"));
        }
    }
    if SCALE.contains(&rooms.scale) {
        legend(groups, out);
    }
}

fn shown(groups: &[DumbbellGroup]) -> impl Iterator<Item = (&DumbbellGroup, &Dumbbell)> {
    groups.iter().flat_map(|group| group.rows.iter().take(MOST_ROWS).map(move |row| (group, row)))
}

fn rooms(groups: &[DumbbellGroup], page: usize) -> Rooms {
    let widest = |of: &dyn Fn(&DumbbellGroup, &Dumbbell) -> usize| {
        shown(groups).map(|(group, row)| of(group, row)).max().unwrap_or(0)
    };
    let label = widest(&|_, row| width(&row.label)).min(page / 3);
    let before = widest(&|group, row| width(&number::amount(row.before, group.x.unit)));
    let after = widest(&|group, row| width(&number::amount(row.after, group.x.unit)));
    let change = widest(&|_, row| width(&row.change));
    let scale = page.saturating_sub(5 + label + 2 + before + 2 + after + 2 + change + 2);
    Rooms { label, before, after, change, scale: scale.min(*SCALE.end()) }
}

fn line(group: &DumbbellGroup, row: &Dumbbell, rooms: &Rooms, out: &mut Lines) {
    // A name stays whole: on a line of its own where it is wider than its column.
    let fits = width(&row.label) <= rooms.label;
    if !fits {
        out.wrapped("     ", "       ", &row.label, out.page.width);
    }
    let label = left(if fits { &row.label } else { "" }, rooms.label);
    let [before, after] = [row.before, row.after].map(|value| number::amount(value, group.x.unit));
    let mut text = format!(
        "     {label}  {}  {}  {}",
        right(&before, rooms.before),
        right(&after, rooms.after),
        right(&row.change, rooms.change)
    );
    if SCALE.contains(&rooms.scale) {
        let role = if row.sure == Sure::Noise { Role::Quiet } else { Role::Hue(&row.hue) };
        text.push_str(&format!("  {}", out.paint.on(&drawn(group, row, rooms.scale), role)));
        out.line(&text);
        return;
    }
    // Where there is no room for a picture, words say what its shapes would.
    if width(&text) + 2 + width(&row.verdict) <= out.page.width {
        out.line(&format!("{text}  {}", row.verdict));
    } else {
        out.line(&text);
        out.wrapped("       ", "       ", &row.verdict, out.page.width);
    }
}

/// The scale with both numbers on it.
fn drawn(group: &DumbbellGroup, row: &Dumbbell, columns: usize) -> String {
    let scale = group.scale();
    let column = |value: f64| (scale.place(value) * (columns - 1) as f64).round() as usize;
    let mut line = vec!['·'; columns];
    if let Some((low, high)) = row.interval {
        line[column(low)..=column(high)].fill(RIM);
    }
    let (from, to) = row.ends();
    line[column(from)..=column(to)].fill(BETWEEN);
    line[column(row.before)] = BEFORE;
    // On top: where both are one column the number after is the news.
    line[column(row.after)] = glyph((row.mark, row.sure));
    line.into_iter().collect()
}

/// Fill says how sure, shape where from.
fn glyph((mark, sure): DumbbellKey) -> char {
    let [full, half, hollow] = match mark {
        Mark::Measured => ['●', '◐', '○'],
        Mark::Emulated => ['■', '◧', '□'],
        Mark::Modelled | Mark::Published => ['◆', '◈', '◇'],
    };
    match sure {
        Sure::Changed => full,
        Sure::TwoRuns => half,
        Sure::Noise | Sure::Unknown => hollow,
        Sure::Void => '×',
    }
}

/// The values at both ends of the scale.
fn ends(group: &DumbbellGroup, rooms: &Rooms, out: &mut Lines) {
    let scale = group.scale();
    let [from, to] = [scale.from, scale.to].map(|value| number::amount(value, group.x.unit));
    let between = rooms.scale.saturating_sub(width(&from) + width(&to));
    let fitting = [group.x.title.as_str(), "logarithmic"].into_iter().find(|words| width(words) + 2 <= between);
    let words = fitting.filter(|_| group.x.is_logarithmic).unwrap_or_default();
    let before = between.saturating_sub(width(words)) / 2;
    let middle = left(&format!("{}{words}", " ".repeat(before)), between);
    let blanks = " ".repeat(5 + rooms.label + 2 + rooms.before + 2 + rooms.after + 2 + rooms.change + 2);
    out.line(&out.paint.on(&format!("{blanks}{from}{middle}{to}"), Role::Quiet));
}

fn legend(groups: &[DumbbellGroup], out: &mut Lines) {
    let mut words = vec![format!("{BEFORE} before")];
    let mut keys: Vec<DumbbellKey> = Vec::new();
    for (_, row) in shown(groups) {
        if !keys.contains(&(row.mark, row.sure)) {
            keys.push((row.mark, row.sure));
        }
    }
    keys.sort_by_key(|(mark, sure)| (*sure, mark.name()));
    words.extend(keys.into_iter().map(|key| format!("{} {}", glyph(key), DumbbellGroup::say(key))));
    let has_rims = shown(groups).any(|(_, row)| row.interval.is_some());
    words.extend(has_rims.then(|| format!("{RIM} 95 % interval of the number after")));
    out.wrapped("   ", "     ", &words.join("   "), out.page.width);
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::figure::Axis;

    #[test]
    fn fill_says_how_sure_and_shape_where_from() {
        let row = |before, after, interval, sure, mark| {
            let (label, change, verdict, hue) = Default::default();
            Dumbbell { label, before, after, interval, change, verdict, sure, mark, hue }
        };
        let rows = vec![
            row(10.0, 2.0, Some((1.0, 4.0)), Sure::Changed, Mark::Measured),
            row(2.0, 4.0, Some((0.1, 90.0)), Sure::Noise, Mark::Emulated),
            row(3.0, 3.0, None, Sure::TwoRuns, Mark::Modelled),
            row(3.0, 0.0, None, Sure::Void, Mark::Measured),
        ];
        let x = Axis { title: String::new(), unit: "count", is_logarithmic: false };
        let group = DumbbellGroup { title: String::new(), x, rows };
        let shown: Vec<String> = group.rows.iter().map(|row| drawn(&group, row, 21)).collect();
        assert_eq!(
            shown,
            ["·┄●━━━━━━━│··········", "┄┄│━□┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄", "···◈·················", "×━━│·················"]
        );
    }
}
