//! One trial: generators send, the beginning is discarded, packets are counted over a window, and the books are made once
//! nothing moves any more.
//!
//! ```text
//! still | send ...... | window: flows, cycles, who ran ........ | stop .. still |
//!       ^ counters      ^ cleared, sampled        read, sampled ^               ^ counters: books
//! ```

use super::beside::{Beside, LEAD};
use super::books::{books, bound_by};
use super::counters::when_still;
use super::edge::{Count, Edge};
use super::ports::Wiring;
use super::seats::Seats;
use super::switch::Switch;
use super::vnfs::Vnfs;
use super::{DESIGN, Gauge, Settings, Watch};
use crate::interference::interference;
use base::datapath::{DatapathRun, FCS_BYTES, Poller, PollerCycles, RateSample, Traffic};
use base::gauges::TrialName;
use host::polled::pmd::{self, PmdStatistics};
use host::sched::Load;
use host::usage;
use lab::Error;
use std::time::{Duration, Instant};

/// How long generators send for the first time: the packet that makes a flow is in no flow's count, so that flows are made
/// before anything is counted.
const FLOWS_ARE_MADE: Duration = Duration::from_millis(100);
/// Until rings of stopped VNFs are full: 1,024 packets are there within a millisecond where a CPU is free.
const RINGS_FILL: Duration = Duration::from_millis(100);
/// How long packets are refused, to tell what one costs.
const REFUSED: Duration = Duration::from_millis(500);

pub(super) struct Trial<'a> {
    pub(super) wiring: Wiring,
    pub(super) size_bytes: u32,
    pub(super) repeat: u32,
    pub(super) settings: &'a Settings,
    pub(super) seats: &'a Seats,
}

pub(super) struct Trialled {
    pub(super) run: DatapathRun,
    /// What both programs printed.
    pub(super) text: String,
}

impl Trial<'_> {
    pub(super) fn words(&self) -> String {
        let what = match self.wiring.pattern {
            Traffic::Chain => "chain of",
            Traffic::NorthSouth => "north-south,",
        };
        let vnfs = base::number::many(u64::from(self.wiring.vnfs), "VNF");
        let of = self.settings.repeats;
        format!("{what} {vnfs}, {} bytes, trial {} of {of}", self.size_bytes, self.repeat + 1)
    }

    pub(super) fn name(&self) -> String {
        let pattern = self.wiring.pattern.name();
        format!("{pattern}-{}-vnfs-{}-bytes-{}", self.wiring.vnfs, self.size_bytes, self.repeat)
    }

    pub(super) fn run(
        &self,
        switch: &mut Switch,
        vnfs: &mut Vnfs,
        beside: &mut Beside,
        watch: &Watch<'_>,
        gauge: &mut Gauge<'_>,
    ) -> Result<Trialled, Error> {
        switch.add_generators(self.wiring, self.size_bytes.saturating_sub(FCS_BYTES))?;
        let trialled = self.measured(switch, vnfs, beside, watch, gauge)?;
        switch.remove_generators(self.wiring)?;
        Ok(trialled)
    }

    fn measured(
        &self,
        switch: &mut Switch,
        vnfs: &mut Vnfs,
        beside: &mut Beside,
        watch: &Watch<'_>,
        gauge: &mut Gauge<'_>,
    ) -> Result<Trialled, Error> {
        self.make_flows(switch, self.wiring, watch)?;
        let (before, _) = when_still(switch, vnfs, self.wiring, watch)?;
        switch.send(self.wiring, true)?;
        watch.rest(self.settings.warm_up.saturating_sub(LEAD))?;
        let traced_from_ns = beside.go_on()?;
        watch.rest(LEAD.min(self.settings.warm_up))?;
        switch.control.ask("dpif-netdev/pmd-stats-clear", &[])?;
        let begin = Edge::read(switch, self.wiring)?;
        let (mut samples, last) = self.sampled(switch, &begin.count, watch, gauge)?;
        let end = Edge::read(switch, self.wiring)?;
        beside.pause()?;
        let whole = end.count.since(&begin.count);
        let (last, from_ns) =
            last.map_or((whole.clone(), begin.count.at_ns), |last| (end.count.since(&last), last.at_ns));
        gauge(self.named(), from_ns, &last)?;
        samples.push(last);
        let performance = switch.control.ask(PERFORMANCE, &["-nh"]);
        let statistics = switch.control.ask("dpif-netdev/pmd-stats-show", &[]);
        // Either of them: versions before 2.10 have no `pmd-perf-show`, 4.0 has no `pmd-stats-show`.
        let performance = performance.or_else(|_| statistics.as_ref().map(Clone::clone).map_err(told))?;
        let queues = switch.control.ask("dpif-netdev/pmd-rxq-show", &[])?;
        let refused_cycles = self.refused_cycles(switch, vnfs, watch)?;
        switch.send(self.wiring, false)?;
        let (after, counted) = when_still(switch, vnfs, self.wiring, watch)?;
        let books = books(self.wiring, &after.since(&before));
        let loads = begin.threads.until(&end.threads);
        let cycles = pmd::read(&performance);
        let mut pollers = self.pollers(switch.pid(), vnfs.pid(), &loads);
        // A queue of each port: the switch polls those that lead into VNFs as well.
        let ports = self.wiring.of_vnfs().chain(self.wiring.generators());
        let polled = ports.count() as u32;
        for poller in &mut pollers {
            let own = cycles.iter().find(|pmd| pmd.cpu == Some(poller.cpu) && poller.name.starts_with(PMD));
            poller.cycles = own.and_then(|pmd| account(pmd, polled));
            poller.cycles.iter_mut().for_each(|cycles| cycles.refused_cycles = refused_cycles);
        }
        let steal_share = self.stolen(&begin, &end);
        let run = DatapathRun {
            design: DESIGN.to_owned(),
            pattern: self.wiring.pattern,
            vnfs: self.wiring.vnfs,
            size_bytes: self.size_bytes,
            repeat: self.repeat,
            offered_pps: None,
            begin_ns: begin.count.at_ns,
            traced_from_ns,
            window_ns: end.count.at_ns.saturating_sub(begin.count.at_ns),
            window_error_ns: begin.count.error_ns + end.count.error_ns,
            window_sent: whole.sent,
            window_received: whole.received,
            samples,
            bound_by: Some(bound_by(&books).to_owned()),
            books,
            interference: interference(&pollers, &loads, steal_share),
            pollers,
            steal_share,
            cores: Some(1),
        };
        // What is printed last of a thread counts, and this says most.
        let text = [statistics.unwrap_or_default(), performance, queues, counted].join("\n");
        Ok(Trialled { run, text })
    }

    /// Has generators send for a moment.
    pub(super) fn make_flows(&self, switch: &Switch, wiring: Wiring, watch: &Watch<'_>) -> Result<(), Error> {
        switch.send(wiring, true)?;
        watch.rest(FLOWS_ARE_MADE)?;
        switch.send(wiring, false)
    }

    /// The most that the machine below took of a poller's CPU between two edges.
    pub(super) fn stolen(&self, begin: &Edge, end: &Edge) -> Option<f64> {
        steal(&begin.stat, &end.stat, self.seats)
    }

    /// Cycles of a packet that a full ring refuses, those during which the polling thread ran: once the VNFs are stopped and rings are
    /// full, every packet is one. Older switches without `pmd-perf-show` do not tell.
    fn refused_cycles(&self, switch: &mut Switch, vnfs: &Vnfs, watch: &Watch<'_>) -> Result<Option<f64>, Error> {
        let stopped = vnfs.stop()?;
        watch.rest(RINGS_FILL)?;
        switch.control.ask("dpif-netdev/pmd-stats-clear", &[])?;
        let begin = Edge::read(switch, self.wiring)?;
        watch.rest(REFUSED)?;
        let end = Edge::read(switch, self.wiring)?;
        let performance = switch.control.ask(PERFORMANCE, &["-nh"]);
        drop(stopped);
        let Ok(performance) = performance else { return Ok(None) };
        let loads = begin.threads.until(&end.threads);
        let pollers = self.pollers(switch.pid(), vnfs.pid(), &loads);
        let of = |poller: &Poller| pmd::read(&performance).into_iter().find(|pmd| pmd.cpu == Some(poller.cpu));
        let told = pollers.iter().find_map(|poller| Some((poller.run_share, account(&of(poller)?, 0)?)));
        Ok(told.and_then(|(run_share, cycles)| each_on_cpu(&cycles, run_share)))
    }

    /// Waits for the window to end, and counts meanwhile: the samples, and the count at the last of them. The daemon's main thread
    /// answers, on a CPU of its own where the machine has three; polling threads are not asked.
    fn sampled(
        &self,
        switch: &mut Switch,
        begin: &Count,
        watch: &Watch<'_>,
        gauge: &mut Gauge<'_>,
    ) -> Result<(Vec<RateSample>, Option<Count>), Error> {
        let until = Instant::now() + self.settings.window;
        let every = self.settings.sampled_every();
        let (mut samples, mut last): (_, Option<Count>) = (Vec::new(), None);
        // What is left is not cut into a piece too short to tell a rate.
        while until.saturating_duration_since(Instant::now()) > every + every / 2 {
            watch.rest(every)?;
            let count = Count::read(switch, self.wiring)?;
            let before = last.as_ref().unwrap_or(begin);
            let sample = count.since(before);
            gauge(self.named(), before.at_ns, &sample)?;
            samples.push(sample);
            last = Some(count);
        }
        watch.rest(until.saturating_duration_since(Instant::now()))?;
        Ok((samples, last))
    }

    fn named(&self) -> TrialName {
        TrialName {
            design: DESIGN.to_owned(),
            pattern: self.wiring.pattern,
            vnfs: self.wiring.vnfs,
            size_bytes: self.size_bytes,
            repeat: self.repeat,
            repeats: self.settings.repeats,
        }
    }

    /// The polling thread of the switch, and the thread of testpmd that forwards.
    fn pollers(&self, switch: u32, vnfs: u32, loads: &[Load]) -> Vec<Poller> {
        let is_pmd = |load: &&Load| load.id.pid == switch && load.name.starts_with(PMD);
        // `rte-worker-1`, before DPDK 22.11 `lcore-worker-1` and `lcore-slave-1`.
        let is_vnf =
            |load: &&Load| load.id.pid == vnfs && ["rte-w", "lcore-"].iter().any(|own| load.name.starts_with(own));
        let poller = |load: &Load, cpu| Poller {
            name: load.name.clone(),
            tid: load.id.tid,
            cpu,
            run_share: load.run,
            wait_share: load.wait,
            cycles: None,
        };
        let pmds = loads.iter().filter(is_pmd).map(|load| poller(load, self.seats.pmd));
        pmds.chain(loads.iter().filter(is_vnf).map(|load| poller(load, self.seats.vnfs))).collect()
    }
}

/// Cycles of each packet during which the thread ran; `None` if there were none.
fn each_on_cpu(cycles: &PollerCycles, run_share: f64) -> Option<f64> {
    (cycles.packets > 0).then(|| cycles.busy as f64 * run_share.clamp(0.0, 1.0) / cycles.packets as f64)
}

/// Where a polling thread tells of its cycles.
pub(super) const PERFORMANCE: &str = "dpif-netdev/pmd-perf-show";
/// What the names of polling threads begin with (`pmd_thread_main` of lib/dpif-netdev.c, Open vSwitch 3.1).
const PMD: &str = "pmd-c";

fn told(error: &Error) -> Error {
    Error::Malformed(error.to_string())
}

fn account(pmd: &PmdStatistics, queues: u32) -> Option<PollerCycles> {
    let (used, busy, packets) = (pmd.used_cycles?, pmd.busy_cycles?, pmd.packets?);
    Some(PollerCycles { used, busy, packets, batches: pmd.tx_batches, queues, refused_cycles: None })
}

/// The most that the machine below took of a poller's CPU.
fn steal(first: &str, last: &str, seats: &Seats) -> Option<f64> {
    let used = usage::between(first, last);
    [seats.pmd, seats.vnfs].iter().filter_map(|cpu| used.get(cpu)).map(|cpu| cpu.steal).reduce(f64::max)
}
