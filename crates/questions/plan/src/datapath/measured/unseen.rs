//! Does the model foretell a chain that was not measured? Each length and size is predicted from the trials of all others.

use super::foretold::{Asked, Foretold};
use super::kinds::{Kind, Spread};
use super::tables::MOST_ROWS;
use crate::datapath::calibrate::{telling, tsc_hz};
use base::{Cell, Table, TableSpec, shown, table};
use facts::datapaths::Bed as Measured;

pub(super) const PREDICTED: TableSpec = table! {
    datapath.predicted version 1:
    "A chain of one length and size on OVS-DPDK, predicted from the trials of other lengths and other sizes alone, with the measured median. \
     inside: between low_pps and high_pps; error: how much more was predicted.";
    key machine, key pattern, key_u64("") vnfs, key_u64("") size_bytes, count trials, f64("") low_pps,
    f64("") chain_pps, f64("") high_pps, text bound_by, f64("") measured_pps, share error, flag inside;
    shown![
        "Chains as the trials of others predict them", MOST_ROWS;
        pattern, vnfs: "VNFs", size_bytes: "bytes", trials: "from trials", low_pps: "at least",
        chain_pps: "per second", high_pps: "at most", bound_by: "bound by", measured_pps: "measured", error, inside,
    ]
};

/// One line of [`PREDICTED`].
struct Unseen {
    trials: usize,
    foretold: Foretold,
    measured_pps: f64,
}

/// Table [`PREDICTED`]; `None` where no trials are of another length and another size.
pub(super) fn table(beds: &[Measured], kinds: &[Kind<'_>]) -> Option<Table> {
    let mut table = Table::new(&PREDICTED);
    for bed in beds {
        for kind in kinds {
            let Some(run) = kind.first().filter(|run| bed.runs.runs.iter().any(|other| std::ptr::eq(*run, other)))
            else {
                continue;
            };
            let Some(foretold) = kind.chain_pps().and_then(|pps| foretold(bed, kind, pps)) else { continue };
            let Unseen { trials, foretold: Foretold { low_pps, chain_pps, high_pps, bound_by }, measured_pps } =
                foretold;
            let cells: [Cell; 12] = [
                bed.machine.as_str().into(),
                run.pattern.name().into(),
                u64::from(run.vnfs).into(),
                u64::from(run.size_bytes).into(),
                (trials as u64).into(),
                low_pps.into(),
                chain_pps.into(),
                high_pps.into(),
                bound_by.into(),
                measured_pps.into(),
                (chain_pps / measured_pps - 1.0).into(),
                (low_pps..=high_pps).contains(&measured_pps).into(),
            ];
            table.push(cells.into());
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What the trials of other lengths and sizes say of this kind.
fn foretold(measured: &Measured, kind: &Kind<'_>, pps: Spread) -> Option<Unseen> {
    let run = kind.first()?;
    let hz = tsc_hz(&measured.runs)?;
    let mut others = telling(&measured.runs.runs, run.pattern);
    others.retain(|other| other.vnfs != run.vnfs && other.size_bytes != run.size_bytes && other.design == run.design);
    let asked = Asked { pattern: run.pattern, vnfs: run.vnfs, size_bytes: run.size_bytes };
    Some(Unseen { trials: others.len(), foretold: asked.foretold(&others, hz)?, measured_pps: pps.median })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Level;
    use base::bench::NS_PER_TICK;
    use base::datapath::{Books, DatapathRun, DatapathRuns, Poller, PollerCycles, Traffic};
    use std::collections::BTreeMap;

    /// A trial of a chain on a clock of 2 GHz: a hop takes 100 + 0.1 s cycles, a refused packet 60, a VNF 300 + 0.3 s.
    fn trial(vnfs: u32, size_bytes: u32) -> DatapathRun {
        let hop = 100.0 + 0.1 * f64::from(size_bytes);
        let received = 2e9 / (3.0 * hop * f64::from(vnfs));
        let (sent, left) = (2.0 * received, received * f64::from(vnfs));
        let thread =
            |cycles| Poller { name: "rte-worker-1".into(), tid: 1, cpu: 0, run_share: 1.0, wait_share: 0.0, cycles };
        let busy = (sent - received) * 60.0 + (received + left) * hop;
        let cycles = PollerCycles {
            used: busy as u64,
            busy: busy as u64,
            packets: (sent + left) as u64,
            batches: None,
            queues: 2 * vnfs + 1,
            refused_cycles: Some(60.0),
        };
        DatapathRun {
            design: "ovs-dpdk".into(),
            pattern: Traffic::Chain,
            vnfs,
            size_bytes,
            repeat: 0,
            offered_pps: None,
            begin_ns: 0,
            traced_from_ns: None,
            window_ns: 1_000_000_000,
            window_error_ns: 0,
            window_sent: sent as u64,
            window_received: received as u64,
            samples: Vec::new(),
            books: Books::default(),
            pollers: vec![thread(Some(cycles)), thread(None)],
            steal_share: None,
            interference: Vec::new(),
            bound_by: Some("guest".into()),
            cores: Some(1),
        }
    }

    fn predicted(runs: Vec<DatapathRun>) -> Option<Table> {
        let environment = BTreeMap::from([(NS_PER_TICK.to_owned(), "0.5".to_owned())]);
        let runs = DatapathRuns { runs, ..DatapathRuns::new(environment) };
        let beds = [Measured { machine: "L0".into(), level: Level::L0, runs }];
        table(&beds, &super::super::kinds::of(&beds))
    }

    #[test]
    fn chains_that_keep_to_the_model_are_foretold_by_all_others_and_one_that_does_not_is_outside() {
        let all: Vec<DatapathRun> =
            [1, 2, 4].into_iter().flat_map(|vnfs| [64, 512, 1518].map(|size| trial(vnfs, size))).collect();
        let table = predicted(all.clone()).unwrap();
        assert_eq!(table.rows.len(), 9);
        for row in table.rows() {
            let error = row.number("error").unwrap();
            assert!(error.abs() < 1e-3 && row.text("bound_by") == Some("guest"), "{row:?}");
            assert_eq!((row.cell("inside"), row.number("trials")), (Some(&Cell::Bool(true)), Some(4.0)));
        }
        let mut odd = all;
        odd[8].window_received /= 2;
        let table = predicted(odd).unwrap();
        let last = table.rows().last().unwrap();
        assert_eq!((last.cell("inside"), last.number("vnfs")), (Some(&Cell::Bool(false)), Some(4.0)));
        assert!((last.number("error").unwrap() - 1.0).abs() < 0.01, "twice as much was foretold");
    }

    #[test]
    fn two_sizes_leave_one_for_the_others_which_tells_nothing() {
        let few = [1, 2].into_iter().flat_map(|vnfs| [64, 1518].map(|size| trial(vnfs, size))).collect();
        assert!(predicted(few).is_none());
    }
}
