//! How long were frames on their way, at which rate?
//!
//! A row is one load of one setup over all launches. Each launch has its own clean rate, so that 50 % of it is another rate in each: what
//! launches have in common is the load, their samples are counted together, and the rate is the median of theirs.

use super::measured::POLL;
use super::section::{BATCH, FRAME_BYTES};
use super::tables::{MPPS, rounded};
use base::channel::{Delays, GIVEN, LOSS_10_PPM, NO_LOSS, Setup};
use base::number::{amount, duration, packets_per_s};
use base::{Cell, Histogram, Level, Table, TableSpec, Unknown, shown, table};
use facts::benches::BenchRun;
use facts::statistics::spread;

/// What frames took at each load.
pub(crate) const DELAYS: TableSpec = table! {
    channel.delays version 1:
    "How long frames took from when they were due by the clock until they were received, at one load: a share of the clean rate, a given \
          rate, or the highest rate that lost nothing or at most 10 frames of a million in a search. Waiting for a batch to fill counts, and \
          so does time in which either side did not run. Launches are counted together, rate_mpps is the median of theirs; lost has frames that \
          found the ring full, and wrong those that arrived twice, late or changed.";
    key machine, key path, key_u64("bytes") size_bytes, key_u64("count") batch, f64(MPPS) rate_mpps, ns p50_ns,
    ns p99_ns, ns p999_ns, ns max_ns, key load, count due, count lost, count wrong, count launches, key policy;
    shown![
        "How long frames take at which rate", 40;
        path, size_bytes: "frame", batch, policy, load, rate_mpps: "rate", p50_ns: "p50", p99_ns: "p99",
        p999_ns: "p99.9", max_ns: "longest", lost,
    ]
};

/// One load of one setup on one machine.
#[derive(Debug, Clone)]
pub(crate) struct Delayed<'b> {
    pub machine: &'b str,
    pub level: Level,
    pub setup: &'b Setup,
    pub load: String,
    pub launches: Vec<&'b Delays>,
    /// All delays in ns.
    pub all: Histogram,
}

impl<'b> Delayed<'b> {
    /// All loads, in the order in which they were measured.
    pub(crate) fn of(runs: &[&'b BenchRun]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for run in runs {
            for result in &run.bench.results {
                let Some(one) = result.delays.as_deref() else { continue };
                let load = match one.rate_mpps {
                    Some(mpps) if one.load == GIVEN => amount(mpps, MPPS),
                    _ => one.load.clone(),
                };
                let is =
                    |known: &&mut Self| known.machine == run.machine && *known.setup == one.setup && known.load == load;
                let samples = result.distribution();
                match all.iter_mut().find(is) {
                    Some(known) => {
                        known.launches.push(one);
                        known.all.merge(&samples);
                    }
                    None => all.push(Self {
                        machine: &run.machine,
                        level: run.level,
                        setup: &one.setup,
                        load,
                        launches: vec![one],
                        all: samples,
                    }),
                }
            }
        }
        all
    }

    /// Frames per second that were due, in millions; `None` where no launch found a rate.
    pub(crate) fn rate_mpps(&self) -> Option<f64> {
        spread::median(&self.launches.iter().filter_map(|one| one.rate_mpps).collect::<Vec<_>>())
    }

    /// Frames that were due and did not arrive.
    pub(crate) fn lost(&self) -> u64 {
        self.sum(|one| one.dropped.saturating_add(one.lost))
    }

    fn sum(&self, of: impl Fn(&Delays) -> u64) -> u64 {
        self.launches.iter().fold(0, |sum, one| sum.saturating_add(of(one)))
    }

    /// Frames that arrived twice, late or changed.
    pub(crate) fn wrong(&self) -> u64 {
        self.sum(|one| one.wrong)
    }

    fn name(&self) -> String {
        let Setup { path, size_bytes, batch, policy, .. } = self.setup;
        let policy = if policy == POLL { String::new() } else { format!(", policy {policy}") };
        format!("{size_bytes} B and batch {batch} over {path}{policy}")
    }
}

/// Table [`DELAYS`].
pub(crate) fn table(all: &[Delayed<'_>]) -> Table {
    let mut table = Table::new(&DELAYS);
    for one in all {
        let [p50, p99, p999] = match one.all.quantiles([0.5, 0.99, 0.999]) {
            Some(quantiles) => quantiles.map(Cell::from),
            None => [Cell::Missing, Cell::Missing, Cell::Missing],
        };
        let max = if one.all.count() > 0 { one.all.max().into() } else { Cell::Missing };
        let found = one.launches.iter().any(|launch| launch.rate_mpps.is_some());
        table.push(vec![
            one.machine.into(),
            one.setup.path.as_str().into(),
            u64::from(one.setup.size_bytes).into(),
            u64::from(one.setup.batch).into(),
            rounded(one.rate_mpps(), 1e4),
            p50,
            p99,
            p999,
            max,
            one.load.as_str().into(),
            if found { one.sum(|one| one.due).into() } else { Cell::Missing },
            if found { one.lost().into() } else { Cell::Missing },
            if found { one.wrong().into() } else { Cell::Missing },
            (one.launches.len() as u64).into(),
            one.setup.policy.as_str().into(),
        ]);
    }
    table
}

/// The setup that sentences and pictures are about, with all of its loads.
pub(crate) fn main<'d, 'b>(all: &'d [Delayed<'b>], machine: &str) -> Vec<&'d Delayed<'b>> {
    let own = || all.iter().filter(|one| one.machine == machine);
    let far = |one: &&Delayed<'_>| {
        let Setup { size_bytes, batch, policy, .. } = one.setup;
        (policy != POLL, size_bytes.abs_diff(FRAME_BYTES), batch.abs_diff(BATCH))
    };
    let Some(nearest) = own().min_by_key(far) else { return Vec::new() };
    own().filter(|one| one.setup == nearest.setup).collect()
}

/// The same frames over the same path by every policy, at the load that is given; the polling one first.
pub(crate) fn by_policy<'d, 'b>(all: &'d [Delayed<'b>], main: &Delayed<'b>) -> Vec<&'d Delayed<'b>> {
    let is_like = |one: &&Delayed<'_>| {
        let like = Setup { policy: one.setup.policy.clone(), ..main.setup.clone() };
        one.machine == main.machine && one.load == main.load && *one.setup == like
    };
    let mut policies: Vec<_> = all.iter().filter(is_like).collect();
    policies.sort_by_key(|one| one.setup.policy != POLL);
    policies
}

/// What frames take at the middle load, and which rate is carried without loss.
pub(crate) fn said(loads: &[&Delayed<'_>]) -> Option<String> {
    let with_rate: Vec<_> = loads.iter().filter(|one| one.rate_mpps().is_some() && one.all.count() > 0).collect();
    let of_clean = |one: &&&&Delayed<'_>| one.load.ends_with('%');
    let shares: Vec<_> = with_rate.iter().filter(of_clean).collect();
    let middle = shares.get(shares.len() / 2).copied().or(with_rate.first())?;
    let [p50, p99, p999] = middle.all.quantiles([0.5, 0.99, 0.999])?.map(|ns| duration(ns as f64));
    let rate = packets_per_s(middle.rate_mpps()? * 1e6);
    let load = if of_clean(&middle) { format!(" ({} of the clean rate)", middle.load) } else { String::new() };
    let mut text =
        format!("At {rate}{load} frames of {} took {p50} (p50), {p99} (p99) and {p999} (p99.9).", middle.name());
    let highest = |load: &str| loads.iter().find(|one| one.load == load).map(|one| one.rate_mpps());
    let words = |mpps: Option<f64>, what: &str| match mpps {
        Some(mpps) => format!("{} {what}", packets_per_s(mpps * 1e6)),
        None => format!("no rate {what}"),
    };
    if let (Some(none), Some(few)) = (highest(NO_LOSS), highest(LOSS_10_PPM)) {
        text += &format!(
            " The search found {} and {}.",
            words(none, "without loss"),
            words(few, "with a loss of at most 10 ppm")
        );
    }
    Some(text)
}

/// Searches that found no rate.
pub(crate) fn unknown(all: &[Delayed<'_>]) -> impl Iterator<Item = Unknown> {
    [without_rate(all), not_held(all)].into_iter().flatten()
}

/// Rates that the sender fell behind of: frames were due by them, and sent later.
fn not_held(all: &[Delayed<'_>]) -> Option<Unknown> {
    let behind = |one: &&Delayed<'_>| one.launches.iter().map(|launch| launch.behind_ns).max().unwrap_or(0);
    let late: Vec<_> = all.iter().filter(|one| behind(one) > 0).collect();
    let worst = late.iter().copied().max_by_key(behind)?;
    Some(Unknown {
        what: "rates_not_held".into(),
        amount: Some(late.len() as f64),
        unit: "loads".into(),
        text: format!(
            "{} not held: the sender was behind its clock at the end, by {} at most ({} of {}). What frames take there has its delay in it.",
            base::number::counted(late.len() as u64, "rate was", "rates were"),
            duration(behind(&worst) as f64),
            worst.load,
            worst.name()
        ),
    })
}

fn without_rate(all: &[Delayed<'_>]) -> Option<Unknown> {
    let without: Vec<_> = all.iter().filter(|one| one.rate_mpps().is_none()).collect();
    let first = without.first()?;
    let why = first.launches.iter().find_map(|one| one.search.as_ref()).map_or("", |search| search.ended.as_str());
    Some(Unknown {
        what: "no_rate".into(),
        amount: Some(without.len() as f64),
        unit: "searches".into(),
        text: format!(
            "{} found no rate, first that for {} of {}: {why}. What takes a CPU for longer than a ring holds loses frames at any rate: free the \
             CPUs of other work, or make the ring larger with --slots.",
            base::number::counted(without.len() as u64, "search", "searches"),
            first.load,
            first.name()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Made, benches};
    use super::*;
    use base::bench::{Measured, Params};

    fn measured(launch: u32, load: &str, rate_mpps: Option<f64>, hdr: &[(u64, u64)]) -> Measured {
        let delays = Delays {
            setup: Made::default().run().setup,
            load: load.into(),
            rate_mpps,
            behind_ns: 0,
            clean_mpps: Some(20.0),
            ns: 1_000,
            due: 100,
            dropped: 2,
            lost: 1,
            wrong: 0,
            max_ns: 0,
            search: None,
        };
        let params = Params { launch, ..Params::default() };
        Measured { params, unit: "ns".into(), hdr: hdr.to_vec(), delays: Some(Box::new(delays)), ..Measured::default() }
    }

    #[test]
    fn launches_of_a_load_are_counted_together_and_their_rate_is_the_median() {
        let mut benches = benches(&[]);
        benches.runs[0].bench.results = vec![
            measured(0, "50 %", Some(10.0), &[(100, 99)]),
            measured(1, "50 %", Some(14.0), &[(100, 98), (5_000, 1)]),
            measured(2, "50 %", Some(11.0), &[(300, 99)]),
            measured(0, GIVEN, Some(5.0), &[(200, 10)]),
            measured(0, GIVEN, Some(6.0), &[(200, 10)]),
            measured(0, NO_LOSS, None, &[]),
        ];
        let all = Delayed::of(&benches.runs.iter().collect::<Vec<_>>());
        let table = table(&all);
        let loads: Vec<_> = table.rows().map(|row| row.text("load").unwrap()).collect();
        assert_eq!(loads, ["50 %", "5 Mpps", "6 Mpps", NO_LOSS], "rates that were given are rows of their own");
        let number = |row: usize, name: &str| table.rows().nth(row).unwrap().number(name);
        let of_first = ["rate_mpps", "due", "lost", "launches", "max_ns"].map(|name| number(0, name).unwrap());
        assert_eq!(of_first, [11.0, 300.0, 9.0, 3.0, 5_000.0]);
        assert!(number(0, "p50_ns").unwrap() < 105.0 && number(0, "p99_ns").unwrap() > 290.0);
        for missing in ["rate_mpps", "p50_ns", "max_ns", "due", "lost"] {
            assert_eq!(number(3, missing), None, "{missing}");
        }
        assert!(
            unknown(&all).next().unwrap().text.starts_with("1 search found no rate, first that for no loss of 64 B")
        );
        let said = said(&main(&all, "L0")).unwrap();
        assert!(
            said.starts_with("At 11.00 Mpps (50 % of the clean rate) frames of 64 B and batch 32 over ring took"),
            "{said}"
        );
    }
}
