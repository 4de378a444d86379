//! Rates in a terminal: of all and of each in both units, as a bar up to what could be, and what others published.
//!
//! ```text
//!    4 VNFs at 64 bytes
//!      ovs-dpdk
//!        all 4 VMs   17.23 Mpps  8.82 Gb/s  ███▌                          ┤
//!        each VM      4.31 Mpps  2.21 Gb/s
//!        ceiling    144.41 Mpps  pcie
//!        published      21 Mpps
//! ```

use super::line::{Lines, bar, left, right, width};
use super::paint::Role;
use base::figure::{Gauge, GaugeGroup, Reading};
use base::number;
use base::plain::plain;

/// Groups drawn one below the other; a sweep of lengths and sizes would fill pages.
const MOST_GROUPS: usize = 8;

/// The longest bar, and the shortest that shows anything.
const BAR: std::ops::RangeInclusive<usize> = 6..=30;

pub(super) fn render(groups: &[GaugeGroup], out: &mut Lines) {
    for group in groups.iter().take(MOST_GROUPS) {
        out.gap();
        out.wrapped("   ", "     ", &group.title, out.page.width);
        group.gauges.iter().for_each(|gauge| one(gauge, out));
    }
    if let Some(more) = groups.len().checked_sub(MOST_GROUPS).filter(|more| *more > 0) {
        out.gap();
        out.line(&format!("   + {more} more like these, see --json"));
    }
}

fn one(gauge: &Gauge, out: &mut Lines) {
    out.wrapped("     ", "       ", &gauge.label, out.page.width);
    let lines = lines(gauge);
    let room = |at: usize| lines.iter().map(|line| width(&line[at])).max().unwrap_or(0);
    let rooms = [0, 1, 2].map(room);
    let left_over = out.page.width.saturating_sub(7 + rooms.iter().sum::<usize>() + 7);
    for (nth, [of, packets, more]) in lines.iter().enumerate() {
        let mut line = format!("       {}  {}  {}", left(of, rooms[0]), right(packets, rooms[1]), left(more, rooms[2]));
        if nth == 0 && left_over >= *BAR.start() {
            let columns = left_over.min(*BAR.end());
            let drawn = bar(gauge.place(gauge.all.pps), columns);
            line.push_str(&format!("  {}", out.paint.on(&format!("{}┤", left(&drawn, columns)), Role::Hue(""))));
        }
        out.line(&line);
    }
}

/// Whose rate, in packets, and what else is said of it.
fn lines(gauge: &Gauge) -> Vec<[String; 3]> {
    let of = |one: &Reading| [one.of.clone(), number::packets_per_s(one.pps), number::bits_per_s(one.bits_per_s)];
    let ceiling = &gauge.ceiling;
    let mut lines = vec![of(&gauge.all)];
    lines.extend(gauge.each.as_ref().map(of));
    lines.push(["ceiling".to_owned(), number::packets_per_s(ceiling.pps), ceiling.resource.clone()]);
    // As it was published: more digits would claim more.
    let others = gauge.published_pps.iter().map(|pps| format!("{} Mpps", number::plain(pps / 1e6)));
    lines.extend(others.map(|published| ["published".to_owned(), published, String::new()]));
    lines.into_iter().map(|line| line.map(|words| plain(&words).into_owned())).collect()
}
