//! What a hop of the switch and a packet in a VNF cost, out of the user's own trials of `kvmscope lab ovs`; what a ring costs is in
//! [`channel`].
//!
//! ```text
//! trial: cycles of a packet while the thread ran (y), share of the packets that a full ring refused (x)
//! y = x refused + (1 - x) hop   ->   hop = (y - x refused) / (1 - x)     refused: measured with the VNFs stopped
//! hops of all trials --least squares over sizes--> c0 + c1 s; the trial that is furthest off is the spread
//! ```
//! What a VNF takes for a packet comes out of the trials that the VNFs bound: cycles that their thread ran / packets that left VNFs.
//!
//! A generator that never rests fills the first ring, and the switch spends cycles on packets that go no further. Where a trial does not
//! tell what one of these costs, it is between nothing and a whole hop, and the hop between y and y / (1 - x): that range is then part of
//! the spread.

use super::model::switch::HopCost;
use super::quantity::hop_of;
use super::stated::Known;
use base::bench::NS_PER_TICK;
use base::datapath::{DatapathRun, DatapathRuns, Traffic};
use facts::Input;
use facts::ring::{ChannelCost, ChannelUse};

/// What a recording tells the planner: at least one of these.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// Of a switch, by trials of `kvmscope lab ovs`.
    pub switch: Option<OfSwitch>,
    /// What either end of a ring takes for a frame, by `kvmscope bench channel`.
    pub channel: Option<Known<ChannelCost>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OfSwitch {
    /// What a hop takes, with the spread of the trials.
    pub hop: Known<HopCost>,
    /// What testpmd takes for a packet, where it bound trials of two sizes.
    pub vnf: Option<Known<HopCost>>,
    /// The clock in whose cycles that is: the time-stamp counter's.
    pub core_hz: Known<f64>,
}

/// What trials of one pattern cost.
pub(super) struct Costs {
    pub hop: HopCost,
    /// Where VNFs bound trials of two sizes.
    pub vnf: Option<HopCost>,
    /// Trials that tell what a hop costs.
    trials: usize,
    /// Those of them that tell what a refused packet costs.
    corrected: usize,
}

/// The costs by these trials; `None` where they have one size only.
pub(super) fn costs(runs: &[&DatapathRun], hz: f64) -> Option<Costs> {
    let hops: Vec<Hop> = runs.iter().filter_map(|run| hop(run)).collect();
    let vnfs: Vec<Hop> = runs.iter().filter_map(|run| of_vnf(run, hz)).collect();
    Some(Costs {
        hop: fit(&hops)?,
        vnf: fit(&vnfs),
        trials: hops.len(),
        corrected: hops.iter().filter(|hop| hop.is_corrected).count(),
    })
}

/// Cycles a second of the time-stamp counter of a bed.
pub(super) fn tsc_hz(runs: &DatapathRuns) -> Option<f64> {
    let tick = runs.environment.get(NS_PER_TICK)?.parse::<f64>().ok()?;
    Some(1e9 / tick).filter(|hz| (1e8..=1e11).contains(hz))
}

/// The trials that tell what a hop of that pattern costs.
pub(super) fn telling(runs: &[DatapathRun], traffic: Traffic) -> Vec<&DatapathRun> {
    runs.iter().filter(|run| run.pattern == traffic && hop(run).is_some()).collect()
}

/// What the benches of a ring in a recording of this name tell of one `used` so; `None` if it has none.
pub type RingCost = fn(&Input, &ChannelUse, &str) -> Option<Result<Known<ChannelCost>, String>>;

/// What `input` measured that a plan can use, a ring `used` as it says, which `ring_cost` reads. `from` is its name.
///
/// # Errors
/// A sentence for the user: what the recording lacks, and how to measure it.
pub fn calibration(
    input: &Input,
    pattern: Traffic,
    used: &ChannelUse,
    from: &str,
    ring_cost: RingCost,
) -> Result<Calibration, String> {
    let channel = ring_cost(input, used, from).transpose()?;
    let is_of_switch = !input.datapaths.beds.is_empty() || channel.is_none();
    let switch = is_of_switch.then(|| of_switch(input, pattern, from)).transpose()?;
    Ok(Calibration { switch, channel })
}

/// By the trials that went the way of `pattern`: chains and north-south are kept apart.
fn of_switch(input: &Input, pattern: Traffic, from: &str) -> Result<OfSwitch, String> {
    let way = pattern.name();
    let how = format!("measure some: kvmscope lab ovs --pattern {way} --vnfs 1,2 --size 64,512,1518 -o DIR");
    let mut beds = input.datapaths.beds.iter().map(|bed| (&bed.runs, telling(&bed.runs.runs, pattern)));
    let Some((bed, runs)) = beds.find(|(_, runs)| !runs.is_empty()) else {
        return Err(format!("{from} has no trials of OVS-DPDK with cycles, pattern {way}; {how}"));
    };
    let Some(hz) = tsc_hz(bed) else {
        return Err(format!("{from} does not tell the length of a tick of the time-stamp counter; {how}"));
    };
    let Costs { hop, vnf, trials, corrected } = costs(&runs, hz)
        .ok_or_else(|| format!("{from} has trials of one size only, and a hop's cost needs two; {how}"))?;
    let vnf = vnf.map(|cost| {
        let from = format!("testpmd, measured, from {from}; off by a factor of {:.2} at most", cost.spread);
        Known { value: cost, from }
    });
    let from = format!(
        "measured, from {from}: {trials} trials, refused packets taken off in {corrected}; off by a factor of {:.2} at most",
        hop.spread
    );
    Ok(OfSwitch { core_hz: Known { value: hz, from: from.clone() }, hop: Known { value: hop, from }, vnf })
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Hop {
    vnfs: u32,
    bytes: f64,
    low: f64,
    high: f64,
    /// The cost of a refused packet was measured, so low and high are one.
    is_corrected: bool,
}

impl Hop {
    /// Of a range whose ends are factors away the middle is a factor too.
    fn middle(&self) -> f64 {
        (self.low * self.high).sqrt()
    }
}

/// Packets that left VNFs: each VNF of a chain, and one VNF north-south.
fn left_vnfs(run: &DatapathRun) -> f64 {
    let received = run.window_received as f64;
    match run.pattern {
        Traffic::Chain => f64::from(run.vnfs) * received,
        Traffic::NorthSouth => received,
    }
}

/// What a VNF took for a packet in a trial that the VNFs bound; their thread is the one without cycles of the switch.
fn of_vnf(run: &DatapathRun, hz: f64) -> Option<Hop> {
    if run.bound_by.as_deref() != Some("guest") || run.offered_pps.is_some() {
        return None;
    }
    let thread = run.pollers.iter().find(|poller| poller.cycles.is_none())?;
    let ran = thread.run_share.clamp(0.0, 1.0) * run.window_ns as f64 / 1e9 * hz;
    let each = ran / left_vnfs(run);
    let is_known = each.is_finite() && each >= 1.0;
    is_known.then(|| Hop {
        vnfs: run.vnfs,
        bytes: f64::from(run.size_bytes),
        low: each,
        high: each,
        is_corrected: false,
    })
}

fn hop(run: &DatapathRun) -> Option<Hop> {
    if run.offered_pps.is_some() {
        return None;
    }
    let (poller, cycles) = run.pollers.iter().find_map(|poller| Some((poller, poller.cycles.as_ref()?)))?;
    let (sent, received) = (run.window_sent as f64, run.window_received as f64);
    let refused = ((sent - received) / (sent + left_vnfs(run))).max(0.0);
    let each = cycles.busy as f64 * poller.run_share.clamp(0.0, 1.0) / cycles.packets as f64;
    let (low, high) = match cycles.refused_cycles {
        // What is refused has not cost more than what is delivered.
        Some(cost) => {
            let hop = (each - refused * cost.min(each)) / (1.0 - refused);
            (hop, hop)
        }
        None => (each, each / (1.0 - refused)),
    };
    let is_known = low.is_finite() && high.is_finite() && low >= 1.0;
    is_known.then(|| Hop {
        vnfs: run.vnfs,
        bytes: f64::from(run.size_bytes),
        low,
        high,
        is_corrected: cycles.refused_cycles.is_some(),
    })
}

/// The middle one of the trials of each length and size: a trial that somebody disturbed is no part of the line.
fn medians(hops: &[Hop]) -> Vec<Hop> {
    let mut sorted: Vec<Hop> = hops.to_vec();
    let of_kind = |hop: &Hop| (hop.vnfs, hop.bytes.to_bits());
    sorted.sort_by(|a, b| of_kind(a).cmp(&of_kind(b)).then(a.middle().total_cmp(&b.middle())));
    sorted.chunk_by(|a, b| of_kind(a) == of_kind(b)).map(|kind| kind[kind.len() / 2]).collect()
}

/// The line of least squares through the median trial of each length and size; `None` where they have one size. Cycles that fall with the size are
/// noise: no byte is then taken to cost anything, and the spread says how far off that is.
fn fit(hops: &[Hop]) -> Option<HopCost> {
    let points = medians(hops);
    let count = points.len() as f64;
    let bytes = points.iter().map(|hop| hop.bytes).sum::<f64>() / count;
    let cycles = points.iter().map(Hop::middle).sum::<f64>() / count;
    let across: f64 = points.iter().map(|hop| (hop.bytes - bytes).powi(2)).sum();
    if across <= 0.0 || !across.is_finite() {
        return None;
    }
    let rise = points.iter().map(|hop| (hop.bytes - bytes) * (hop.middle() - cycles)).sum::<f64>() / across;
    let rise = rise.clamp(0.0, (cycles - 1.0) / bytes);
    let line = hop_of((cycles - rise * bytes).max(1.0), rise)?;
    let off = |hop: &Hop| (hop.high / line.of(hop.bytes)).max(line.of(hop.bytes) / hop.low);
    Some(HopCost { spread: hops.iter().map(off).fold(1.0, f64::max), ..line })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::datapath::{Books, Poller, PollerCycles};

    /// A trial in which a hop costs 200 + 0.25 s cycles, a refused packet 60, and three of four packets sent are refused.
    fn trial(vnfs: u32, size_bytes: u32, pattern: Traffic, refused_cycles: Option<f64>) -> DatapathRun {
        let (sent, received) = (4_000_000_u64, 1_000_000_u64);
        let left = if pattern == Traffic::Chain { received * u64::from(vnfs) } else { received };
        let hop = 200.0 + 0.25 * f64::from(size_bytes);
        let busy = (sent - received) as f64 * 60.0 + (received + left) as f64 * hop;
        let cycles = PollerCycles {
            // The thread ran half of the window.
            used: 2 * busy as u64,
            busy: 2 * busy as u64,
            packets: sent + left,
            batches: None,
            queues: 2 * vnfs + 1,
            refused_cycles,
        };
        let poller = Poller {
            name: "pmd-c00/id:8".into(),
            tid: 1,
            cpu: 0,
            run_share: 0.5,
            wait_share: 0.5,
            cycles: Some(cycles),
        };
        DatapathRun {
            design: "ovs-dpdk".into(),
            pattern,
            vnfs,
            size_bytes,
            repeat: 0,
            offered_pps: None,
            begin_ns: 0,
            traced_from_ns: None,
            window_ns: 1_000_000_000,
            window_error_ns: 0,
            window_sent: sent,
            window_received: received,
            samples: Vec::new(),
            books: Books::default(),
            pollers: vec![poller],
            steal_share: None,
            interference: Vec::new(),
            bound_by: None,
            cores: Some(1),
        }
    }

    #[test]
    fn refused_packets_are_taken_off_whatever_the_length() {
        for pattern in [Traffic::Chain, Traffic::NorthSouth] {
            let hops: Vec<Hop> = [(1, 64), (1, 1518), (2, 64), (4, 1518)]
                .into_iter()
                .filter_map(|(vnfs, size)| hop(&trial(vnfs, size, pattern, Some(60.0))))
                .collect();
            let cost = fit(&hops).unwrap();
            assert!((cost.cycles - 200.0).abs() < 1e-3 && (cost.cycles_per_byte - 0.25).abs() < 1e-6, "{cost:?}");
            assert!((cost.spread - 1.0).abs() < 1e-6, "{cost:?}");
        }
    }

    #[test]
    fn vnfs_that_bound_a_trial_tell_what_a_packet_takes_them() {
        // A million packets leave each VNF of a chain in a second, in which the VNFs' thread ran 0.8 s of a clock of 2 GHz.
        let bound = |vnfs, size, by: &str| {
            let run = trial(vnfs, size, Traffic::Chain, Some(60.0));
            let thread = Poller { name: "rte-worker-1".into(), cycles: None, run_share: 0.8, ..run.pollers[0].clone() };
            let pollers = [run.pollers.clone(), vec![thread]].concat();
            DatapathRun { bound_by: Some(by.into()), pollers, ..run }
        };
        assert_eq!(of_vnf(&bound(4, 64, "guest"), 2e9).unwrap().low, 400.0);
        assert_eq!(of_vnf(&bound(4, 64, "pmd"), 2e9), None, "it had nothing to do part of the time");
        let trials = [bound(4, 64, "guest"), bound(2, 1518, "guest"), bound(1, 1518, "pmd")];
        let costs = costs(&trials.iter().collect::<Vec<_>>(), 2e9).unwrap();
        let vnf = costs.vnf.unwrap();
        assert!((vnf.of(64.0) - 400.0).abs() < 1e-6 && (vnf.of(1518.0) - 800.0).abs() < 1e-6, "{vnf:?}");
        assert_eq!((costs.trials, costs.corrected), (3, 3));
    }

    #[test]
    fn a_disturbed_trial_widens_the_band_and_does_not_move_the_line() {
        let hops: Vec<Hop> = [64, 1518, 64, 1518, 64]
            .map(|size| hop(&trial(1, size, Traffic::Chain, Some(60.0))).unwrap())
            .into_iter()
            .collect();
        let mut disturbed = hops.clone();
        disturbed[4] = Hop { low: 864.0, high: 864.0, ..hops[4] };
        let (quiet, cost) = (fit(&hops).unwrap(), fit(&disturbed).unwrap());
        assert!((quiet.cycles - cost.cycles).abs() < 1e-6 && (cost.spread - 4.0).abs() < 1e-6, "{cost:?}");
    }

    #[test]
    fn the_truth_is_within_the_spread_where_refused_packets_were_not_measured() {
        let hops: Vec<Hop> = [64, 1518].map(|size| hop(&trial(1, size, Traffic::Chain, None)).unwrap()).into();
        let cost = fit(&hops).unwrap();
        for size in [64.0, 1518.0] {
            let truth = 200.0 + 0.25 * size;
            assert!(cost.of(size) / cost.spread <= truth && truth <= cost.of(size) * cost.spread, "{cost:?}");
        }
        assert!(cost.spread > 1.2, "{cost:?}");
        assert!(!hops[0].is_corrected && hops[0].low < 216.0 && hops[0].high > 216.0);
    }

    #[test]
    fn chains_and_north_south_are_apart_and_one_size_is_none() {
        let runs = DatapathRuns {
            runs: vec![trial(1, 64, Traffic::Chain, None)],
            ..DatapathRuns::new(std::collections::BTreeMap::new())
        };
        let kept = [Traffic::Chain, Traffic::NorthSouth].map(|traffic| telling(&runs.runs, traffic).len());
        assert_eq!((kept, tsc_hz(&runs)), ([1, 0], None));
        let one = hop(&trial(1, 64, Traffic::Chain, Some(60.0))).unwrap();
        assert_eq!(fit(&[one, one]), None);
        assert_eq!(fit(&[]), None);
        let falling = [one, Hop { bytes: 1518.0, low: 150.0, high: 150.0, ..one }];
        let cost = fit(&falling).unwrap();
        assert!(cost.cycles_per_byte == 0.0 && (cost.spread - 183.0 / 150.0).abs() < 1e-3, "{cost:?}");
    }
}
