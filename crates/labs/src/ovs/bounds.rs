//! Between which rates does a chain behind the switch begin to lose packets? Trials at rates that policers hold.
//!
//! ```text
//! still | send, warm-up ........ | ring counters | window: flows, the PMD's own counters | stop .. still |
//!       ^ books                  ^ from here on lost packets count                                       ^ books, ring counters
//! ```
//! In: the most that was offered. Out: an [`Outcome`]. What was offered is told by the polling thread, which counts packets and ticks
//! of the same time: reading flows takes the switch's main thread some milliseconds on a CPU that it shares, and a rate of 0.1 % none.
//! Packets that a policer refused were never offered; a PMD has polled and dropped them, so that bounds are those of a switch that polices too.

use super::books::books;
use super::counters::{Counters, read, when_still};
use super::edge::Edge;
use super::pace::{Ticks, policers};
use super::ports::{Source, Wiring};
use super::switch::Switch;
use super::trial::{PERFORMANCE, Trial};
use super::vnfs::Vnfs;
use super::{DESIGN, Watch};
use crate::search::bounds::{Searched, bounds, words};
use crate::search::{self, Goal, Method, Outcome, Range};
use base::datapath::{FCS_BYTES, RateBounds};
use base::number::{many, percent};
use host::polled::pmd;
use lab::{Error, clocks};

/// The lowest rate that is searched: below it a policer's steps of 1000 bits a second are more than 0.03 % of it.
const LEAST_PPS: u64 = 10_000;
/// More trials than this find nothing that fewer did not.
const MOST_TRIALS: u32 = 300;

#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Losses that are allowed.
    pub goals: Vec<Goal>,
    pub method: Method,
}

/// A search for the bounds of one chain and size.
pub(super) struct Searcher<'a> {
    pub(super) search: &'a Search,
    /// What a trial without limits was.
    pub(super) trial: &'a Trial<'a>,
    /// The rate that it offered.
    pub(super) most_pps: u64,
}

pub(super) struct Bounds {
    pub(super) bounds: Vec<RateBounds>,
    pub(super) notes: Vec<String>,
}

/// What trials of one search share.
struct Bed<'a> {
    switch: &'a mut Switch,
    vnfs: &'a mut Vnfs,
    wiring: Wiring,
    ticks: Ticks,
    /// The counters, while nothing moves.
    still: Counters,
    /// Trials whose books did not close, and what is wrong with the last of them.
    open: (u64, String),
}

impl Searcher<'_> {
    pub(super) fn run(&self, switch: &mut Switch, vnfs: &mut Vnfs, watch: &mut Watch<'_>) -> Result<Bounds, Error> {
        let Trial { size_bytes, settings, .. } = *self.trial;
        let what = self.trial.words();
        let Some(hz) = clocks::tsc_hz() else {
            let why = "this computer has no time-stamp counter that a policer could hold a rate by";
            return Ok(Bounds { bounds: Vec::new(), notes: vec![format!("{what}: no bounds were searched: {why}")] });
        };
        let each = settings.warm_up + settings.window;
        let least_s = each.as_secs() * u64::from(MOST_TRIALS);
        (watch.say)(&format!("{what}: searching in trials of {} s, {least_s} s at most", each.as_secs()));
        let wiring = Wiring { source: Source::Paced, ..self.trial.wiring };
        switch.add_generators(wiring, size_bytes.saturating_sub(FCS_BYTES))?;
        let ticks = Ticks { believed_hz: switch.believed_hz(hz), hz };
        switch.police(wiring, &policers(LEAST_PPS, size_bytes, ticks))?;
        self.trial.make_flows(switch, wiring, watch)?;
        let (still, _) = when_still(switch, vnfs, wiring, watch)?;
        let mut bed = Bed { switch, vnfs, wiring, ticks, still, open: (0, String::new()) };
        let range = Range::new(LEAST_PPS, self.most_pps, MOST_TRIALS);
        let Search { goals, method } = self.search;
        let run = |pps| {
            let trial = self.at(pps, &mut bed, watch)?;
            let (offered, lost) = (trial.sent_pps().round(), percent(trial.loss_ratio()));
            (watch.say)(&format!("  {pps} packets per second asked for, {offered} offered, {lost} lost"));
            Ok::<_, Error>(trial)
        };
        let outcome: Outcome = match method {
            Method::Mlr => search::mlr(goals, &range, run),
            Method::Binary => search::binary(goals, &range, run),
        }?;
        let (open, fault) = std::mem::take(&mut bed.open);
        switch.remove_generators(wiring)?;
        let searched = Searched { design: DESIGN, vnfs: wiring.vnfs, size_bytes, method: *method };
        let bounds: Vec<RateBounds> = outcome.found.iter().map(|found| bounds(searched, &outcome, found)).collect();
        for found in &bounds {
            (watch.say)(&format!("{what}: {}: {}", found.goal, words(found)));
        }
        let note = format!("{what}: the books of {} of its search do not close: {fault}", many(open, "trial"));
        Ok(Bounds { bounds, notes: if open > 0 { vec![note] } else { Vec::new() } })
    }

    fn at(&self, pps: u64, bed: &mut Bed<'_>, watch: &Watch<'_>) -> Result<search::Trial, Error> {
        let Trial { size_bytes, settings, .. } = *self.trial;
        let wiring = bed.wiring;
        bed.switch.police(wiring, &policers(pps, size_bytes, bed.ticks))?;
        bed.switch.send(wiring, true)?;
        watch.rest(settings.warm_up)?;
        // The buckets were full: what went out of them at once may have been too much for a ring.
        let (from, _) = read(bed.switch, bed.vnfs, wiring, watch)?;
        bed.switch.control.ask("dpif-netdev/pmd-stats-clear", &[])?;
        let begin = Edge::read(bed.switch, wiring)?;
        watch.rest(settings.window)?;
        let end = Edge::read(bed.switch, wiring)?;
        let performance = bed.switch.control.ask(PERFORMANCE, &["-nh"])?;
        bed.switch.send(wiring, false)?;
        let (after, _) = when_still(bed.switch, bed.vnfs, wiring, watch)?;
        let faults = books(wiring, &after.since(&bed.still)).faults();
        if !faults.is_empty() {
            bed.open = (bed.open.0 + 1, faults.join("; "));
        }
        bed.still = after;
        let since = bed.still.since(&from);
        let (sent, lost) = (since.offered(), since.dropped());
        let share = end.count.sent.saturating_sub(begin.count.sent) as f64
            / end.count.matched.saturating_sub(begin.count.matched).max(1) as f64;
        let polled = pmd::read(&performance).into_iter().find(|pmd| pmd.cpu == Some(self.trial.seats.pmd));
        let told = polled.and_then(|pmd| Some((pmd.packets? as f64, pmd.used_cycles?.max(1) as f64 / bed.ticks.hz)));
        let Some((packets, took_s)) = told else {
            return Err(Error::Malformed("the polling thread does not report its packets and cycles".to_owned()));
        };
        let offered_pps = packets * share / took_s;
        let took_ns = if offered_pps > 0.0 { (sent as f64 * 1e9 / offered_pps) as u64 } else { 0 };
        let steal_share = self.trial.stolen(&begin, &end).unwrap_or(0.0);
        Ok(search::Trial { intended_pps: pps, sent, received: sent.saturating_sub(lost), took_ns, steal_share })
    }
}
