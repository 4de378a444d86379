//! Where every vCPU was, as one picture: exact shares of time, column by column.
//!
//! A lane is cut into columns of equal time. In each column the states stand on each other, as high as their exact share
//! of it, guests at the bottom; so nothing is sampled, and the area of a colour is the time in its state.
//! ```text
//! ┌──────────────────────────┐   each state is one path: the upper edge of everything up to it, drawn from the top
//! │▒▒▒▒▓▓▓▓▒▒▒▒▒▒▒▒▓▓▓▓▓▓▓▓▓▓│   state down, so that the next path covers what lies below its own edge
//! │████████████████████▇▇▇███│
//! └──────────────────────────┘
//! ```

use super::axis::Axis;
use super::escape::Safe;
use super::look;
use analysis::flow::timeline::Drawn;
use base::number;
use base::timeline::{Coverage, LaneId, Timeline};
use std::fmt::{Result, Write};

/// Columns of a lane. A page is seldom wider than this in pixels, and paper prints no more.
const COLUMNS: u32 = 1_200;

/// Units of a lane's height in its path.
const HEIGHT: u64 = 200;

/// Lanes drawn; a machine of hundreds of vCPUs would be a page of megabytes.
const MOST_LANES: usize = 32;

/// Draws the timeline, unless there is none.
pub fn render(drawn: &Drawn, out: &mut String) -> Result {
    let timeline = &drawn.timeline;
    let span = timeline.span();
    let lanes = timeline.lanes().len().min(MOST_LANES);
    if lanes == 0 || span.length_ns() == 0 {
        return Ok(());
    }
    let columns = u64::from(COLUMNS).min(span.length_ns()) as u32;
    let cover: Vec<Coverage> = (0..lanes).map(|lane| timeline.coverage(LaneId(lane as u32), span, columns)).collect();
    let totals = totals(drawn);
    let mut order: Vec<usize> = (0..totals.len()).filter(|state| totals[*state] > 0).collect();
    order.sort_by_key(|state| (look::rank(&timeline.states()[*state].name), *state));

    out.push_str("<section id=\"timeline\">\n<h2>Where every vCPU was</h2>\n<figure>\n");
    caption(drawn, &totals, columns, out)?;
    out.push_str(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Timeline\"><div class=\"timeline\">\n",
    );
    let mut group = None;
    for (lane, cover) in timeline.lanes().iter().zip(&cover) {
        if group != Some(&lane.group) {
            writeln!(out, "<h3 class=\"vm\">vm {}</h3>", Safe(&lane.group))?;
            group = Some(&lane.group);
        }
        write!(
            out,
            "<div class=\"lane\"><span>{}</span><svg viewBox=\"0 0 {columns} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
            Safe(&lane.title),
            Safe(spoken(drawn, cover))
        )?;
        paths(drawn, cover, &order, columns, out)?;
        for marker in timeline.markers().iter().filter(|marker| marker.lane.is_none()).take(100) {
            let x = u128::from(marker.at_ns.saturating_sub(span.from_ns)) * u128::from(columns)
                / u128::from(span.length_ns());
            write!(out, "<path class=\"marker\" d=\"M{x} 0v{HEIGHT}\"><title>{}</title></path>", Safe(&marker.label))?;
        }
        out.push_str("</svg></div>\n");
    }
    out.push_str("<div class=\"lane\"><span></span>");
    Axis { from_ns: span.from_ns, lead_ns: 0, length_ns: span.length_ns() }.render(out)?;
    out.push_str("</div>\n</div></div>\n");
    legend(drawn, &totals, &order, out)?;
    if timeline.lanes().len() > lanes {
        writeln!(
            out,
            "<p class=\"quiet\">The first {lanes} of {} are drawn.</p>",
            number::many(timeline.lanes().len() as u64, "vCPU")
        )?;
    }
    out.write_str("</figure>\n</section>\n")
}

/// Time in each state over all lanes.
fn totals(drawn: &Drawn) -> Vec<u64> {
    let timeline = &drawn.timeline;
    let mut totals = vec![0; timeline.states().len()];
    for lane in 0..timeline.lanes().len() {
        for (total, ns) in totals.iter_mut().zip(timeline.coverage(LaneId(lane as u32), timeline.span(), 1).time_ns) {
            *total += ns;
        }
    }
    totals
}

fn caption(drawn: &Drawn, totals: &[u64], columns: u32, out: &mut String) -> Result {
    let timeline = &drawn.timeline;
    let whole: u64 = totals.iter().sum();
    let Some(most) = (0..totals.len()).max_by_key(|state| totals[*state]) else { return Ok(()) };
    writeln!(
        out,
        "<figcaption>{} over {}: most of the time, {}, is \"{}\". Each column is {} wide and shows the exact share of \
         every state in it.</figcaption>",
        number::many(timeline.lanes().len() as u64, "vCPU"),
        Safe(number::duration(timeline.span().length_ns() as f64)),
        number::percent(totals[most] as f64 / whole.max(1) as f64),
        Safe(&timeline.states()[most].title),
        Safe(number::duration((timeline.span().length_ns() / u64::from(columns)) as f64))
    )
}

/// A lane in words, for those who hear the page.
fn spoken(drawn: &Drawn, cover: &Coverage) -> String {
    let mut sums = vec![0u64; cover.states];
    for column in cover.time_ns.chunks(cover.states.max(1)) {
        sums.iter_mut().zip(column).for_each(|(sum, ns)| *sum += ns);
    }
    let whole: u64 = sums.iter().sum();
    let mut order: Vec<usize> = (0..sums.len()).filter(|state| sums[*state] > 0).collect();
    order.sort_by_key(|state| std::cmp::Reverse(sums[*state]));
    let words = order.iter().take(5).map(|state| {
        let share = number::percent(sums[*state] as f64 / whole.max(1) as f64);
        format!("{share} {}", drawn.timeline.states()[*state].title)
    });
    words.collect::<Vec<_>>().join(", ")
}

/// One path per state, the top of the stack first.
fn paths(drawn: &Drawn, cover: &Coverage, order: &[usize], columns: u32, out: &mut String) -> Result {
    let span_ns = drawn.timeline.span().length_ns();
    for top in (0..order.len()).rev() {
        let mut path = String::new();
        let (mut level, mut run) = (0u64, 0u32);
        for (column, times) in cover.time_ns.chunks(cover.states).enumerate() {
            let length_ns =
                base::timeline::pixel_start(base::Span { from_ns: 0, to_ns: span_ns }, column as u32 + 1, columns)
                    - base::timeline::pixel_start(base::Span { from_ns: 0, to_ns: span_ns }, column as u32, columns);
            let below: u64 = order[..=top].iter().map(|state| times[*state]).sum();
            let height = ((u128::from(below) * u128::from(HEIGHT) + u128::from(length_ns / 2))
                / u128::from(length_ns.max(1))) as u64;
            if height != level {
                if run > 0 {
                    write!(path, "h{run}")?;
                }
                write!(path, "v{}", level as i64 - height as i64)?;
                (level, run) = (height, 0);
            }
            run += 1;
        }
        if !path.is_empty() {
            let state = &drawn.timeline.states()[order[top]];
            write!(
                out,
                "<path fill=\"{}\" d=\"M0 {HEIGHT}{path}h{run}V{HEIGHT}z\"><title>{}</title></path>",
                look::fill(&state.name),
                Safe(&state.title)
            )?;
        }
    }
    Ok(())
}

fn legend(drawn: &Drawn, totals: &[u64], order: &[usize], out: &mut String) -> Result {
    let whole: u64 = totals.iter().sum();
    out.push_str("<ul class=\"legend\">\n");
    for state in order.iter().rev() {
        let (total, state) = (totals[*state], &drawn.timeline.states()[*state]);
        writeln!(
            out,
            "<li data-state=\"{}\" data-v=\"{total}\"><svg aria-hidden=\"true\"><rect width=\"100%\" height=\"100%\" fill=\"{}\"/></svg>{} <span class=\"quiet\">{}, {}</span></li>",
            Safe(&state.name),
            look::fill(&state.name),
            Safe(&state.title),
            Safe(number::duration(total as f64)),
            number::percent(total as f64 / whole.max(1) as f64)
        )?;
    }
    out.write_str("</ul>\n")
}
