//! What a wall of gauges shows of trials: their samples, the ceiling that earlier trials predict, and what others published.
//!
//! ```text
//! trials before this one --calibration, model--> ceiling     (modelled; none where they are of one size)
//! published  --same pattern and size--> diamonds             (published)
//! samples of the window --> needles                          (measured)
//! ```
//! While a lab runs, `lab ovs` asks for the same, so that a wall that is played back shows what stood on it.

use super::foretold::Asked;
use crate::datapath::calibrate::{telling, tsc_hz};
use crate::datapath::published::points;
use base::datapath::{DatapathRun, DatapathRuns, gbps};
use base::gauges::{Ceiling, Published, RateLook, TrialName};
use base::number::{counted, plain};
use base::{Cell, Table, TableSpec, table};
use facts::datapaths::Bed;

/// What carries packets in the trials that the model knows.
const MODELLED: &str = "ovs-dpdk";

pub(super) const SAMPLES: TableSpec = table! {
    datapath.samples version 1:
    "Packets between two readings of the counters within a trial's window, measured. counted: `sent` by the senders, `received` at the \
          ends of all chains, `all VNFs` sent (the system rate), `VNF k` sent. Times are since the first trial's window began; gbps counts \
          frames with FCS. The packets of a trial add up to those of its window.";
    key machine, key design, key pattern, key_u64("") vnfs, key_u64("") size_bytes, key_u64("") repeat, ns from_ns,
    ns to_ns, ns read_ns, key counted, count packets, f64("") pps, f64("") gbps;
};

pub(super) const MARKS: TableSpec = table! {
    datapath.marks version 1:
    "A rate to compare with a trial's rate of all VNFs together. kind modelled: the maximum that earlier trials imply, and \
          name is the resource that binds; kind published: a result of docs/formats/validation.md with the same pattern and size.";
    key machine, key design, key pattern, key_u64("") vnfs, key_u64("") size_bytes, key_u64("") repeat, key kind,
    key name, text of_design, u64("") of_vnfs, f64("") system_pps, text source;
};

/// What the trials of `before` say that a trial can carry at most; `None` where they tell too little.
pub fn ceiling(before: &DatapathRuns, trial: &TrialName) -> Option<Ceiling> {
    let asked = Asked { pattern: trial.pattern, vnfs: trial.vnfs, size_bytes: trial.size_bytes };
    by(&telling(&before.runs, trial.pattern), tsc_hz(before)?, asked, trial)
}

fn by(trials: &[&DatapathRun], hz: f64, asked: Asked, trial: &TrialName) -> Option<Ceiling> {
    let foretold = (trial.design == MODELLED).then(|| asked.foretold(trials, hz)).flatten()?;
    let vnfs = f64::from(trial.vnfs);
    let mpps = |pps: f64| plain(pps * vnfs / 1e6);
    let (low, high) = (mpps(foretold.low_pps), mpps(foretold.high_pps));
    let from = counted(trials.len() as u64, "earlier trial", "earlier trials");
    Some(Ceiling {
        resource: foretold.bound_by.to_owned(),
        system_pps: foretold.chain_pps * vnfs,
        from: format!("from {from}, {low} to {high} Mpps"),
    })
}

/// What others published of the trial's pattern and size, each number once.
pub fn published(trial: &TrialName) -> Vec<Published> {
    let mut found: Vec<Published> = Vec::new();
    for point in points() {
        let (Some((path, of)), Some(bytes), Some(vnfs)) = (point.of, point.frame_bytes(), point.vnfs) else { continue };
        let Some(mpps) = point.system_mpps().filter(|_| of == trial.pattern) else { continue };
        let design = path.name();
        let is_there = |it: &Published| it.design == design && it.vnfs == vnfs && it.system_pps == mpps * 1e6;
        if bytes == f64::from(trial.size_bytes) && !found.iter().any(is_there) {
            found.push(Published {
                point: point.id.to_owned(),
                design: design.to_owned(),
                vnfs,
                system_pps: mpps * 1e6,
                source: point.source.to_owned(),
            });
        }
    }
    found
}

/// Both tables, as far as they have rows.
pub(super) fn tables(beds: &[Bed]) -> Vec<Table> {
    let (mut samples, mut marks) = (Table::new(&SAMPLES), Table::new(&MARKS));
    for bed in beds {
        let hz = tsc_hz(&bed.runs);
        let origin_ns = bed.runs.runs.first().map_or(0, |run| run.begin_ns);
        for (place, run) in bed.runs.runs.iter().enumerate().filter(|(_, run)| !run.samples.is_empty()) {
            let trial = TrialName::of(run, 0);
            let keys = || -> [Cell; 6] {
                [
                    bed.machine.as_str().into(),
                    run.design.as_str().into(),
                    run.pattern.name().into(),
                    u64::from(run.vnfs).into(),
                    u64::from(run.size_bytes).into(),
                    u64::from(run.repeat).into(),
                ]
            };
            for (from_ns, sample) in run.sampled() {
                let look = RateLook::of(trial.clone(), from_ns, sample, origin_ns);
                let of_all = [
                    ("sent".to_owned(), sample.sent, look.sent_pps),
                    ("received".to_owned(), sample.received, look.received_pps),
                    ("all VNFs".to_owned(), sample.of_system(), look.system_pps),
                ];
                let of_each = sample.vnfs.iter().zip(&look.vnfs_pps).enumerate();
                let of_each = of_each.map(|(vnf, (packets, pps))| (format!("VNF {}", vnf + 1), *packets, *pps));
                for (counted, packets, pps) in of_all.into_iter().chain(of_each) {
                    let times = [look.from_ns, look.to_ns, look.read_ns].map(Cell::from);
                    let rates = [packets.into(), pps.into(), gbps(pps, run.size_bytes).into()];
                    samples.push([keys().as_slice(), &times, &[counted.into()], &rates].concat());
                }
            }
            let before = telling(&bed.runs.runs[..place], run.pattern);
            let asked = Asked { pattern: run.pattern, vnfs: run.vnfs, size_bytes: run.size_bytes };
            let modelled = hz.and_then(|hz| by(&before, hz, asked, &trial)).map(|it| {
                let design = run.design.as_str();
                ("modelled", it.resource, (design.to_owned(), run.vnfs), it.system_pps, it.from)
            });
            let others = published(&trial);
            let others =
                others.into_iter().map(|it| ("published", it.point, (it.design, it.vnfs), it.system_pps, it.source));
            for (kind, name, (design, vnfs), pps, source) in modelled.into_iter().chain(others) {
                let mark: [Cell; 6] =
                    [kind.into(), name.into(), design.into(), u64::from(vnfs).into(), pps.into(), source.into()];
                marks.push([keys(), mark].concat());
            }
        }
    }
    [samples, marks].into_iter().filter(|table| !table.rows.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Level;
    use base::bench::NS_PER_TICK;
    use base::datapath::{Books, Poller, PollerCycles, RateSample, Traffic};
    use std::collections::BTreeMap;

    /// A trial of a chain on a clock of 2 GHz in which a hop takes 200 cycles, whatever the size, and nothing is refused.
    fn trial(vnfs: u32, size_bytes: u32, begin_ns: u64) -> DatapathRun {
        let sample = |to_ns, packets: u64| RateSample {
            to_ns: begin_ns + to_ns,
            read_ns: 9,
            sent: 2 * packets,
            received: packets,
            vnfs: vec![packets; vnfs as usize],
        };
        let samples = vec![sample(500_000_000, 1_000_000), sample(1_000_000_000, 500_000)];
        let packets = 1_500_000 * u64::from(vnfs + 1);
        let cycles = PollerCycles { used: 200 * packets, busy: 200 * packets, packets, ..PollerCycles::default() };
        let poller = Poller {
            name: "pmd-c00/id:8".into(),
            tid: 1,
            cpu: 0,
            run_share: 1.0,
            wait_share: 0.0,
            cycles: Some(PollerCycles { refused_cycles: Some(0.0), ..cycles }),
        };
        DatapathRun {
            design: MODELLED.into(),
            pattern: Traffic::Chain,
            vnfs,
            size_bytes,
            repeat: 0,
            offered_pps: None,
            begin_ns,
            traced_from_ns: None,
            window_ns: 1_000_000_000,
            window_error_ns: 0,
            window_sent: 1_500_000,
            window_received: 1_500_000,
            samples,
            books: Books::default(),
            pollers: vec![poller],
            steal_share: None,
            interference: Vec::new(),
            bound_by: Some("pmd".into()),
            cores: Some(1),
        }
    }

    fn bed(runs: Vec<DatapathRun>) -> Bed {
        let environment = BTreeMap::from([(NS_PER_TICK.to_owned(), "0.5".to_owned())]);
        Bed { machine: "L0".into(), level: Level::L0, runs: DatapathRuns { runs, ..DatapathRuns::new(environment) } }
    }

    #[test]
    fn samples_add_up_to_their_window_and_rates_are_those_of_their_time() {
        let bed = bed(vec![trial(1, 64, 70), trial(2, 64, 5_000_000_070)]);
        let samples = &tables(&[bed])[0];
        let of = |vnfs: f64, counted: &str| -> Vec<_> {
            let is_of =
                |row: &base::table::Row<'_>| row.number("vnfs") == Some(vnfs) && row.text("counted") == Some(counted);
            samples
                .rows()
                .filter(is_of)
                .map(|row| (row.number("packets").unwrap(), row.number("pps").unwrap()))
                .collect()
        };
        assert_eq!(of(1.0, "received"), [(1e6, 2e6), (5e5, 1e6)]);
        assert_eq!(of(2.0, "all VNFs"), [(2e6, 4e6), (1e6, 2e6)]);
        assert_eq!((of(2.0, "VNF 2").len(), of(2.0, "VNF 3").len(), samples.rows.len()), (2, 0, 2 * 4 + 2 * 5));
        let last = samples.rows().last().unwrap();
        assert_eq!((last.number("from_ns"), last.number("to_ns")), (Some(5.5e9), Some(6e9)));
        assert_eq!(last.number("gbps"), Some(1e6 * 64.0 * 8.0 / 1e9));
    }

    #[test]
    fn a_ceiling_needs_earlier_trials_of_two_sizes_and_names_what_binds() {
        let all = [trial(1, 64, 0), trial(1, 1518, 1), trial(4, 512, 2)];
        let trials = all.to_vec();
        let marks = tables(&[bed(trials)]).remove(1);
        let modelled: Vec<_> = marks.rows().filter(|row| row.text("kind") == Some("modelled")).collect();
        assert_eq!(modelled.len(), 1, "the first two have none");
        // 2 GHz / 200 cycles are 10 million hops, a packet of the chain takes 5, and 4 VNFs send each.
        let ceiling = modelled[0].number("system_pps").unwrap();
        assert!((ceiling - 8e6).abs() < 1.0 && modelled[0].text("name") == Some("pmd"), "{ceiling}");
        let live = super::ceiling(&bed(all[..2].to_vec()).runs, &TrialName::of(&all[2], 1)).unwrap();
        assert_eq!((live.system_pps, live.from.as_str()), (ceiling, modelled[0].text("source").unwrap()));
        let other = TrialName { design: "veth".into(), ..TrialName::of(&all[2], 1) };
        assert_eq!(super::ceiling(&bed(all[..2].to_vec()).runs, &other), None);
    }

    #[test]
    fn published_points_are_of_the_same_pattern_and_size_and_stand_once() {
        let name = |pattern, size_bytes| TrialName { pattern, size_bytes, ..TrialName::of(&trial(8, 64, 0), 1) };
        let chain = published(&name(Traffic::Chain, 64));
        let of =
            |design: &str| chain.iter().filter(|it| it.design == design).map(|it| it.system_pps).collect::<Vec<_>>();
        assert!(of("ovs-dpdk").contains(&40e6) && of("sriov").contains(&18.5e6), "{chain:?}");
        let north = published(&name(Traffic::NorthSouth, 64));
        assert_eq!(north.iter().filter(|it| it.system_pps == 32.5e6).count(), 1, "one number, two models: {north:?}");
        assert!(north.iter().any(|it| it.system_pps == 0.04e6), "{north:?}");
        assert!(published(&name(Traffic::Chain, 65)).is_empty());
    }
}
