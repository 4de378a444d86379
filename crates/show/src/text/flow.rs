//! The way of packets in a terminal: a line for each hop, hops that are alike in one, and the load of each.
//!
//! ```text
//!    sriov, 4 VNFs at 64 bytes: 8 crossings of PCIe
//!      wire -> card =PCIe=> VNF 1                sriov   4.63 Mpps  2.37 Gb/s  nic 100 %
//!      VNF 1 =PCIe=> card =PCIe=> VNF 2          sriov   4.63 Mpps  2.37 Gb/s  nic 100 %
//!        2 more alike, to VNF 4
//! ```

use super::line::{Lines, left, right, width};
use super::paint::Role;
use base::Severity;
use base::figure::{Flow, Fullness, Hop};
use base::number;
use base::plain::plain;

/// Ways drawn one below the other; a sweep of lengths and sizes would fill pages.
const MOST_FLOWS: usize = 8;

pub(super) fn render(flows: &[Flow], out: &mut Lines) {
    for flow in flows.iter().take(MOST_FLOWS) {
        out.gap();
        let crossed = number::counted(u64::from(flow.crossings()), "crossing", "crossings");
        out.wrapped("   ", "     ", &format!("{}: {crossed} of {}", flow.title, flow.boundary), out.page.width);
        one(flow, out);
    }
    if let Some(more) = flows.len().checked_sub(MOST_FLOWS).filter(|more| *more > 0) {
        out.gap();
        out.line(&format!("   + {more} more like these, see --json"));
    }
}

fn one(flow: &Flow, out: &mut Lines) {
    let runs: Vec<&[Hop]> = flow.hops.chunk_by(Hop::is_like).collect();
    let firsts: Vec<(&Hop, [String; 5])> =
        runs.iter().filter_map(|run| run.first()).map(|hop| (hop, columns(flow, hop))).collect();
    let room = |at: usize| firsts.iter().map(|(_, columns)| width(&columns[at])).max().unwrap_or(0);
    let rooms = [0, 1, 2, 3, 4].map(room);
    let loads = rooms[1..].iter().sum::<usize>() + 6;
    for (run, (hop, [way, path, packets, bits, full])) in runs.iter().zip(&firsts) {
        let role = match hop.fullness() {
            Fullness::Full => Role::Severity(Severity::High),
            Fullness::Near => Role::Severity(Severity::Medium),
            Fullness::Free => Role::Quiet,
        };
        let load = format!("{}  {}  {}", left(path, rooms[1]), right(packets, rooms[2]), right(bits, rooms[3]));
        let painted = out.paint.on(full, role);
        if 5 + rooms[0] + 2 + loads <= out.page.width {
            out.line(&format!("     {}  {load}  {painted}", left(way, rooms[0])));
        } else {
            out.wrapped("     ", "       ", way, out.page.width);
            if 7 + loads <= out.page.width {
                out.line(&format!("       {load}  {painted}"));
            } else {
                out.wrapped("       ", "       ", &format!("{load}  {full}"), out.page.width);
            }
        }
        let alike = run.iter().fold(0, |sum: u32, hop| sum.saturating_add(hop.count)).saturating_sub(1);
        if let Some(last) = run.last().filter(|_| alike > 0) {
            let alike = format!("{} alike, to {}", number::many(u64::from(alike), "more hop"), last.to.label);
            out.wrapped("       ", "       ", &alike, out.page.width);
        }
    }
}

fn columns(flow: &Flow, hop: &Hop) -> [String; 5] {
    let mut way = hop.from.label.clone();
    let mut side = hop.from.side;
    let ends = hop.between().into_iter().chain([(hop.to.label.as_str(), hop.to.side)]);
    for (label, of) in ends {
        let arrow = if of == side { "->".to_owned() } else { format!("={}=>", flow.boundary) };
        way.push_str(&format!(" {arrow} {label}"));
        side = of;
    }
    let full = hop.fullest.as_ref().map(|fullest| format!("{} {}", fullest.resource, number::percent(fullest.share)));
    let columns = [
        way,
        hop.path.clone(),
        number::packets_per_s(hop.pps),
        number::bits_per_s(hop.bits_per_s),
        full.unwrap_or_default(),
    ];
    columns.map(|column| plain(&column).into_owned())
}
