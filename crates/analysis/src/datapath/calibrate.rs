//! What a hop of the switch costs, out of the user's own trials of `kvmscope lab ovs`.
//!
//! ```text
//! trial: cycles of a packet while the thread ran (y), share of the packets that a full ring refused (x)
//! y = x refused + (1 - x) hop   ->   hop = (y - x refused) / (1 - x)     refused: measured with the VNFs stopped
//! hops of all trials --least squares over sizes--> c0 + c1 s; the trial that is furthest off is the spread
//! ```
//! A generator that never rests fills the first ring, and the switch spends cycles on packets that go no further. Where a trial does not
//! tell what one of these costs, it is between nothing and a whole hop, and the hop between y and y / (1 - x): that range is then part of
//! the spread.

use super::model::design::Pattern;
use super::model::switch::HopCost;
use super::quantity::hop_of;
use super::stated::Known;
use crate::Input;
use base::bench::NS_PER_TICK;
use base::datapath::{DatapathRun, Traffic};

/// What a recording tells the planner.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// What a hop takes, with the spread of the trials.
    pub hop: Known<HopCost>,
    /// The clock in whose cycles that is: the time-stamp counter's.
    pub core_hz: Known<f64>,
}

/// The calibration by the trials of `input` that went the way of `pattern`: chains and north-south are kept apart. `from` is its name.
///
/// # Errors
/// A sentence for the user: what the recording lacks, and how to measure it.
pub fn calibration(input: &Input, pattern: Pattern, from: &str) -> Result<Calibration, String> {
    let traffic = match pattern {
        Pattern::Chain => Traffic::Chain,
        Pattern::NorthSouth => Traffic::NorthSouth,
    };
    let how =
        format!("measure some: kvmscope lab ovs --pattern {} --vnfs 1,2 --size 64,512,1518 -o DIR", traffic.name());
    let beds = input.datapaths.beds.iter();
    let bed = beds.into_iter().find(|bed| bed.runs.runs.iter().any(|run| hop(run, traffic).is_some()));
    let Some(bed) = bed else {
        return Err(format!("{from} has no trials of OVS-DPDK with cycles, pattern {}; {how}", traffic.name()));
    };
    let hz = bed.runs.environment.get(NS_PER_TICK).and_then(|text| text.parse::<f64>().ok()).map(|tick| 1e9 / tick);
    let Some(hz) = hz.filter(|hz| (1e8..=1e11).contains(hz)) else {
        return Err(format!("{from} does not tell the length of a tick of the time-stamp counter; {how}"));
    };
    let hops: Vec<Hop> = bed.runs.runs.iter().filter_map(|run| hop(run, traffic)).collect();
    let cost =
        fit(&hops).ok_or_else(|| format!("{from} has trials of one size only, and a hop's cost needs two; {how}"))?;
    let count = hops.len();
    let corrected = hops.iter().filter(|hop| hop.is_corrected).count();
    let from = format!(
        "measured, from {from}: {count} trials, refused packets taken off in {corrected}; off by a factor of {:.2} at most",
        cost.spread
    );
    Ok(Calibration { core_hz: Known { value: hz, from: from.clone() }, hop: Known { value: cost, from } })
}

/// What a hop took in one trial.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Hop {
    bytes: f64,
    low: f64,
    high: f64,
    /// The cost of a refused packet was measured, so low and high are one.
    is_corrected: bool,
}

fn hop(run: &DatapathRun, traffic: Traffic) -> Option<Hop> {
    if run.pattern != traffic || run.offered_pps.is_some() {
        return None;
    }
    let (poller, cycles) = run.pollers.iter().find_map(|poller| Some((poller, poller.cycles.as_ref()?)))?;
    // Packets come out of each VNF of a chain, and out of one VNF north-south.
    let left_vnfs = match traffic {
        Traffic::Chain => f64::from(run.vnfs) * run.window_received as f64,
        Traffic::NorthSouth => run.window_received as f64,
    };
    let (sent, received) = (run.window_sent as f64, run.window_received as f64);
    let refused = ((sent - received) / (sent + left_vnfs)).max(0.0);
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
    is_known.then(|| Hop { bytes: f64::from(run.size_bytes), low, high, is_corrected: cycles.refused_cycles.is_some() })
}

/// The line of least squares through the middle of each trial; `None` where they have one size. Cycles that fall with the size are
/// noise: no byte is then taken to cost anything, and the spread says how far off that is.
fn fit(hops: &[Hop]) -> Option<HopCost> {
    let count = hops.len() as f64;
    // Of a range whose ends are factors away the middle is a factor too.
    let middle = |hop: &Hop| (hop.low * hop.high).sqrt();
    let bytes = hops.iter().map(|hop| hop.bytes).sum::<f64>() / count;
    let cycles = hops.iter().map(middle).sum::<f64>() / count;
    let across: f64 = hops.iter().map(|hop| (hop.bytes - bytes).powi(2)).sum();
    if across <= 0.0 || !across.is_finite() {
        return None;
    }
    let rise = hops.iter().map(|hop| (hop.bytes - bytes) * (middle(hop) - cycles)).sum::<f64>() / across;
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
            window_ns: 1_000_000_000,
            window_error_ns: 0,
            window_sent: sent,
            window_received: received,
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
                .filter_map(|(vnfs, size)| hop(&trial(vnfs, size, pattern, Some(60.0)), pattern))
                .collect();
            let cost = fit(&hops).unwrap();
            assert!((cost.cycles - 200.0).abs() < 1e-3 && (cost.cycles_per_byte - 0.25).abs() < 1e-6, "{cost:?}");
            assert!((cost.spread - 1.0).abs() < 1e-6, "{cost:?}");
        }
    }

    #[test]
    fn the_truth_is_within_the_spread_where_refused_packets_were_not_measured() {
        let hops: Vec<Hop> =
            [64, 1518].map(|size| hop(&trial(1, size, Traffic::Chain, None), Traffic::Chain).unwrap()).into();
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
        assert_eq!(hop(&trial(1, 64, Traffic::Chain, None), Traffic::NorthSouth), None);
        let one = hop(&trial(1, 64, Traffic::Chain, Some(60.0)), Traffic::Chain).unwrap();
        assert_eq!(fit(&[one, one]), None);
        assert_eq!(fit(&[]), None);
        let falling = [one, Hop { bytes: 1518.0, low: 150.0, high: 150.0, ..one }];
        let cost = fit(&falling).unwrap();
        assert!(cost.cycles_per_byte == 0.0 && (cost.spread - 183.0 / 150.0).abs() < 1e-3, "{cost:?}");
    }
}
