//! Where every vCPU was, and every CPU and thread beside it, as pictures: exact shares of time, column by column.
//!
//! A lane is cut into columns of equal time. In each column the states stand on each other, as high as their exact share
//! of it, the deepest guest on top; so nothing is sampled, and the area of a colour is the time in its state. vCPUs have a
//! figure of their own, whose sums are the ledger's: what a CPU or a guest's own trace shows is that time once more.

use super::axis::Axis;
use super::escape::Safe;
use super::look;
use super::stack::{HEIGHT, Stack, TICKS};
use base::number;
use base::timeline::{COLUMNS, COLUMNS_BESIDE, Coverage, LaneKind, Overview};
use std::collections::BTreeSet;
use std::fmt::{Result, Write};
use std::ops::Range;

/// Heights of lanes on a screen, as style.css has them.
const PIXELS: u64 = 72;
const PIXELS_BESIDE: u64 = 36;

/// Lanes drawn in a figure; a machine of hundreds of vCPUs would be a page of megabytes.
const MOST_LANES: usize = 32;

/// Draws the timeline, unless there is none; with the lanes beside those of the vCPUs if they are wanted.
pub(super) fn render(drawn: &Overview, beside: bool, out: &mut String) -> Result {
    let (vcpus, lanes) = (drawn.vcpus.len(), drawn.lanes.len());
    if lanes == 0 || drawn.end_ns == 0 {
        return Ok(());
    }
    if vcpus > 0 {
        let figure = Figure::of(drawn, 0..vcpus, COLUMNS, PIXELS);
        out.push_str("<section id=\"timeline\">\n<h2>Timeline of vCPUs</h2>\n<figure>\n");
        figure.caption(out)?;
        figure.lanes(out)?;
        figure.legend(true, out)?;
        figure.left_out("vCPU", out)?;
        out.push_str("</figure>\n</section>\n");
    }
    if beside && lanes > vcpus {
        let figure = Figure::of(drawn, vcpus..lanes, COLUMNS_BESIDE, PIXELS_BESIDE);
        out.push_str(
            "<section id=\"beside\">\n<h2>Timeline of CPUs and other threads</h2>\n<figure class=\"beside\">\n",
        );
        writeln!(out, "<figcaption>{}</figcaption>", figure.what())?;
        figure.lanes(out)?;
        figure.legend(false, out)?;
        figure.left_out("lane", out)?;
        out.push_str("</figure>\n</section>\n");
    }
    drawn
        .notes
        .iter()
        .chain(&drawn.bounds)
        .try_for_each(|note| writeln!(out, "<p class=\"quiet note\">{}</p>", Safe(note)))
}

/// Some lanes, and what they show.
struct Figure<'a> {
    drawn: &'a Overview,
    /// All of its lanes; the first of them are drawn.
    range: Range<usize>,
    columns: u32,
    pixels: u64,
    cover: Vec<Coverage>,
    /// Time in each state over all of its lanes.
    totals: Vec<u64>,
    /// States that occur, in the order of a stack from the top.
    order: Vec<usize>,
}

impl<'a> Figure<'a> {
    fn of(drawn: &'a Overview, range: Range<usize>, columns: u32, pixels: u64) -> Self {
        let columns = u64::from(columns).min(drawn.end_ns) as u32;
        let cover = range.clone().take(MOST_LANES).map(|place| drawn.columns(place)).collect();
        let mut totals = vec![0; drawn.states.len()];
        for place in range.clone() {
            totals.iter_mut().zip(drawn.totals_ns(place)).for_each(|(total, ns)| *total += ns);
        }
        let mut order: Vec<usize> = (0..totals.len()).filter(|state| totals[*state] > 0).collect();
        order.sort_by_key(|state| (look::rank(&drawn.states[*state].name), *state));
        Self { drawn, range, columns, pixels, cover, totals, order }
    }

    fn caption(&self, out: &mut String) -> Result {
        let whole: u64 = self.totals.iter().sum();
        let Some(most) = (0..self.totals.len()).max_by_key(|state| self.totals[*state]) else { return Ok(()) };
        writeln!(
            out,
            "<figcaption>{} over {}: the largest part, {}, is \"{}\". Each column is {} wide and shows the exact \
             share of every state in it; a tick below it marks a state that is too short to be visible \
             there.</figcaption>",
            number::many(self.range.len() as u64, "vCPU"),
            Safe(number::duration(self.drawn.end_ns as f64)),
            number::percent(self.totals[most] as f64 / whole.max(1) as f64),
            Safe(&self.drawn.states[most].title),
            Safe(number::duration((self.drawn.end_ns / u64::from(self.columns)) as f64))
        )
    }

    /// Which kinds of lanes are here, in a sentence.
    fn what(&self) -> String {
        let kinds: BTreeSet<LaneKind> = self.drawn.lanes[self.range.clone()].iter().map(|of| of.lane.kind).collect();
        let has = |kind: &LaneKind| kinds.contains(kind);
        let mut what: Vec<String> = Vec::new();
        if has(&LaneKind::Cpu) {
            what.push("the CPUs of the recorded machine".into());
        }
        if [LaneKind::Vhost, LaneKind::Emulator, LaneKind::Iothread].iter().any(has) {
            what.push("threads that work for its VMs".into());
        }
        if [LaneKind::GuestVcpu, LaneKind::GuestCpu].iter().any(has) {
            what.push("guests as their own traces show them".into());
        }
        format!("The same time once more, by {}; the colours are those above.", number::list(&what))
    }

    fn lanes(&self, out: &mut String) -> Result {
        let span = self.drawn.span();
        let columns = self.columns;
        out.push_str(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Timeline\"><div class=\"timeline\">\n",
        );
        let mut group = None;
        for (of, cover) in self.drawn.lanes[self.range.clone()].iter().zip(&self.cover) {
            let lane = &of.lane;
            if group != Some(&lane.group) {
                let vm = if lane.kind == LaneKind::Vcpu { "vm " } else { "" };
                writeln!(out, "<h3 class=\"vm\">{vm}{}</h3>", Safe(&lane.group))?;
                group = Some(&lane.group);
            }
            let height = HEIGHT + TICKS;
            write!(
                out,
                "<div class=\"lane\"><span>{}</span><svg viewBox=\"0 0 {columns} {height}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
                Safe(&lane.title),
                Safe(spoken(self.drawn, cover))
            )?;
            Stack { states: &self.drawn.states, order: &self.order, cover, span, pixels: self.pixels }.render(out)?;
            for marker in self.drawn.markers.iter().filter(|marker| marker.lane.is_none()).take(100) {
                let x = u128::from(marker.at_ns.saturating_sub(span.from_ns)) * u128::from(columns)
                    / u128::from(span.length_ns());
                write!(
                    out,
                    "<path class=\"marker\" d=\"M{x} 0v{HEIGHT}\"><title>{}</title></path>",
                    Safe(&marker.label)
                )?;
            }
            out.push_str("</svg></div>\n");
        }
        out.push_str("<div class=\"lane\"><span></span>");
        Axis { from_ns: span.from_ns, lead_ns: 0, length_ns: span.length_ns() }.render(out)?;
        out.write_str("</div>\n</div></div>\n")
    }

    /// The states; with their sums, which are the ledger's, where no time stands in two lanes.
    fn legend(&self, sums: bool, out: &mut String) -> Result {
        let whole: u64 = self.totals.iter().sum();
        out.push_str("<ul class=\"legend\">\n");
        for state in &self.order {
            let (total, state) = (self.totals[*state], &self.drawn.states[*state]);
            let (fill, title) = (look::fill(&state.name), Safe(&state.title));
            let (mut data, mut sum) = (String::new(), String::new());
            if sums {
                data = format!(" data-state=\"{}\" data-v=\"{total}\"", Safe(&state.name));
                let (time, share) =
                    (number::duration(total as f64), number::percent(total as f64 / whole.max(1) as f64));
                sum = format!(" <span class=\"quiet\">{}, {share}</span>", Safe(time));
            }
            writeln!(
                out,
                "<li{data}><svg aria-hidden=\"true\"><rect width=\"100%\" height=\"100%\" fill=\"{fill}\"/></svg>{title}{sum}</li>"
            )?;
        }
        out.write_str("</ul>\n")
    }

    fn left_out(&self, what: &str, out: &mut String) -> Result {
        let (drawn, all) = (self.cover.len(), self.range.len());
        if all > drawn {
            let all = number::many(all as u64, what);
            writeln!(out, "<p class=\"quiet\">The first {drawn} of {all} are drawn.</p>")?;
        }
        Ok(())
    }
}

/// A lane in words, for those who hear the page.
fn spoken(drawn: &Overview, cover: &Coverage) -> String {
    let mut sums = vec![0u64; cover.states];
    for column in cover.time_ns.chunks(cover.states.max(1)) {
        sums.iter_mut().zip(column).for_each(|(sum, ns)| *sum += ns);
    }
    let whole: u64 = sums.iter().sum();
    let mut order: Vec<usize> = (0..sums.len()).filter(|state| sums[*state] > 0).collect();
    order.sort_by_key(|state| std::cmp::Reverse(sums[*state]));
    let words = order.iter().take(5).map(|state| {
        let share = number::percent(sums[*state] as f64 / whole.max(1) as f64);
        format!("{share} {}", drawn.states[*state].title)
    });
    words.collect::<Vec<_>>().join(", ")
}
