//! What was measured: the launches of each setup, and setups that differ in their batch alone.
//!
//! A launch is one number. What stands for a setup is the median of its launches, and how far they lie apart is their range.

use super::culprits::Culprits;
use super::delays::Delayed;
use super::faults::Broken;
use super::flows::Changed;
use super::machines::Host;
use base::Level;
use base::channel::{BENCH, LEAST_CLEAN, Run, Setup, Side};
use facts::benches::{BenchRun, Benches};
use facts::machines::Machines;
use facts::ring::{Model, Refused};
use facts::statistics::spread;

/// Windows in the order in which they are shown; others come behind.
const ORDER: &[&str] = &[NONE, PKEY, MPROTECT];
pub(crate) const NONE: &str = "none";
pub(crate) const PKEY: &str = "pkey";
/// Pages that are taken away and given back.
pub(crate) const MPROTECT: &str = "mprotect";
/// Both sides look for frames all the time.
pub(crate) const POLL: &str = "poll";

/// All that benches of the channel measured.
#[derive(Debug, Clone)]
pub(crate) struct Channel<'b> {
    /// The machines, in the order of their files.
    pub hosts: Vec<Host>,
    /// By machine, path, size, policy, number of machines and window.
    pub series: Vec<Series<'b>>,
    /// How long frames took, by setup and load.
    pub delays: Vec<Delayed<'b>>,
    /// What became of them while a flow table changed.
    pub flows: Vec<Changed<'b>>,
    /// What a hostile peer did.
    pub faults: Vec<Broken<'b>>,
    /// What was not measured and why, each once.
    pub skipped: Vec<(&'b str, &'b str)>,
    /// Results that cannot be: a batch of nothing, a time below 0.
    pub damaged: u64,
    pub is_emulated: bool,
    /// Who had the CPUs during gaps, where something was recorded beside.
    pub culprits: Culprits<'b>,
}

/// Setups that differ in their batch alone.
#[derive(Debug, Clone)]
pub(crate) struct Series<'b> {
    /// Each batch, the smallest first; at least one.
    pub measured: Vec<Measured<'b>>,
    /// The line through their clean rates, or why there is none.
    pub model: Result<Model, Refused>,
}

/// One setup on one machine.
#[derive(Debug, Clone)]
pub(crate) struct Measured<'b> {
    pub machine: &'b str,
    pub level: Level,
    pub setup: &'b Setup,
    pub launches: Vec<(u32, &'b Run)>,
}

impl<'b> Channel<'b> {
    pub(crate) fn of(benches: &'b Benches, machines: &Machines) -> Self {
        let runs: Vec<&BenchRun> = benches.runs.iter().filter(|run| run.bench.bench == BENCH).collect();
        let mut channel = Self {
            hosts: Vec::new(),
            series: Vec::new(),
            delays: Delayed::of(&runs),
            flows: Changed::of(&runs),
            faults: Broken::of(&runs),
            skipped: Vec::new(),
            damaged: 0,
            is_emulated: benches.emulated.is_some(),
            culprits: Culprits::default(),
        };
        let mut all: Vec<Measured<'b>> = Vec::new();
        for run in &runs {
            for result in &run.bench.results {
                if result.delays.is_some() || result.flows.is_some() || result.faults.is_some() {
                    continue;
                }
                let Some(one) = result.channel.as_deref() else {
                    let why = result.skipped.as_deref().unwrap_or("no reason is given");
                    let skipped = (result.name.as_str(), why);
                    if !channel.skipped.contains(&skipped) {
                        channel.skipped.push(skipped);
                    }
                    continue;
                };
                if one.setup.batch == 0 || one.ns == 0 || one.window_ns < 0.0 || !one.window_ns.is_finite() {
                    channel.damaged += 1;
                    continue;
                }
                let launch = (result.params.launch, one);
                match all.iter_mut().find(|known| known.machine == run.machine && *known.setup == one.setup) {
                    Some(known) => known.launches.push(launch),
                    None => all.push(Measured {
                        machine: &run.machine,
                        level: run.level,
                        setup: &one.setup,
                        launches: vec![launch],
                    }),
                }
            }
        }
        for run in &runs {
            if channel.hosts.iter().any(|host| host.machine == run.machine) {
                continue;
            }
            let own = all.iter().filter(|one| one.machine == run.machine).flat_map(|one| &one.launches);
            let cpus = own.flat_map(|(_, run)| run.sides().map(|side| side.cpu));
            channel.hosts.push(Host::of(run, cpus, machines));
        }
        all.iter_mut().for_each(|one| one.launches.sort_by_key(|launch| launch.0));
        let machine = |one: &Measured<'_>| channel.hosts.iter().position(|host| host.machine == one.machine);
        all.sort_by(|a, b| (machine(a), a.rank()).cmp(&(machine(b), b.rank())));
        channel.series = all.chunk_by(Measured::is_one_series).map(|chunk| Series::of(chunk.to_vec())).collect();
        channel
    }

    pub(crate) fn measured(&self) -> impl Iterator<Item = &Measured<'b>> {
        self.series.iter().flat_map(|series| &series.measured)
    }

    pub(crate) fn host(&self, one: &Measured<'_>) -> Option<&Host> {
        self.hosts.iter().find(|host| host.machine == one.machine)
    }

    /// The same series with something changed.
    pub(crate) fn like(&self, one: &Measured<'_>, change: impl Fn(&mut Setup)) -> Option<&Series<'b>> {
        let mut wanted = one.setup.clone();
        change(&mut wanted);
        let is = |series: &&Series<'b>| {
            let other = series.first();
            other.machine == one.machine && Setup { batch: wanted.batch, ..other.setup.clone() } == wanted
        };
        self.series.iter().find(is)
    }
}

impl<'b> Series<'b> {
    fn of(measured: Vec<Measured<'b>>) -> Self {
        let points: Vec<(u32, f64)> =
            measured.iter().filter_map(|one| Some((one.setup.batch, one.batch_ns()?))).collect();
        let windows: Vec<f64> = measured.iter().filter_map(Measured::window_ns).collect();
        let model = Model::fit(&points, spread::median(&windows).unwrap_or_default());
        Self { measured, model }
    }

    /// Its smallest batch, which has all else that the others have as well.
    pub(crate) fn first(&self) -> &Measured<'b> {
        &self.measured[0]
    }

    /// The setup of that batch.
    pub(crate) fn at(&self, batch: u32) -> Option<&Measured<'b>> {
        self.measured.iter().find(|one| one.setup.batch == batch)
    }
}

impl Measured<'_> {
    fn rank(&self) -> (&str, u32, &str, u32, usize, &str, u32) {
        let Setup { path, window, size_bytes, batch, policy, vms } = self.setup;
        let order = ORDER.iter().position(|known| known == window).unwrap_or(ORDER.len());
        (path, *size_bytes, policy, *vms, order, window, *batch)
    }

    fn is_one_series(&self, other: &Self) -> bool {
        self.machine == other.machine && Setup { batch: self.setup.batch, ..other.setup.clone() } == *self.setup
    }

    pub(crate) fn median(&self, of: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        spread::median(&self.values(of))
    }

    fn values(&self, of: impl Fn(&Run) -> Option<f64>) -> Vec<f64> {
        self.launches.iter().filter_map(|(_, run)| of(run)).collect()
    }

    pub(crate) fn sum(&self, of: impl Fn(&Run) -> u64) -> u64 {
        self.launches.iter().fold(0, |sum, (_, run)| sum.saturating_add(of(run)))
    }

    /// Millions of frames per second over all of the time, of the launches in which frames moved: in others a side never had its CPU.
    pub(crate) fn raw_mpps(&self) -> Option<f64> {
        self.median(|run| (run.packets > 0).then(|| run.raw_mpps()))
    }

    /// The share of slices that nobody disturbed, of all launches; none of one in which no frame moved.
    pub(crate) fn clean_share(&self) -> f64 {
        let clean = self.sum(|run| if run.packets > 0 { run.clean_slices } else { 0 });
        clean as f64 / self.sum(|run| run.slices).max(1) as f64
    }

    /// Launches in which no frame moved.
    pub(crate) fn idle_launches(&self) -> u64 {
        self.sum(|run| u64::from(run.packets == 0))
    }

    /// Of each launch that was clean enough, if all of them together were: millions of frames per second.
    fn clean(&self) -> Vec<f64> {
        if self.clean_share() < LEAST_CLEAN {
            return Vec::new();
        }
        self.values(|run| run.clean_mpps().filter(|mpps| *mpps > 0.0))
    }

    /// Millions of frames per second in slices that nobody disturbed; `None` where too few of them were.
    pub(crate) fn clean_mpps(&self) -> Option<f64> {
        spread::median(&self.clean())
    }

    /// The least and the largest of these among launches; one launch has no range.
    pub(crate) fn range_mpps(&self) -> Option<(f64, f64)> {
        let mut clean = self.clean();
        clean.sort_by(f64::total_cmp);
        (clean.len() > 1).then(|| (clean[0], clean[clean.len() - 1]))
    }

    /// How much of the clean rate was lost to whoever disturbed the run.
    pub(crate) fn lost_share(&self) -> Option<f64> {
        Some((1.0 - self.raw_mpps()? / self.clean_mpps()?).max(0.0))
    }

    /// The time of a batch at the clean rate.
    pub(crate) fn batch_ns(&self) -> Option<f64> {
        Some(f64::from(self.setup.batch) * 1_000.0 / self.clean_mpps()?)
    }

    /// Opening and closing the window with nothing inside.
    pub(crate) fn window_ns(&self) -> Option<f64> {
        self.median(|run| Some(run.window_ns))
    }

    /// The share of the time that the window was open, of the side where it was open for longer; `None` without a window.
    pub(crate) fn open_share(&self) -> Option<f64> {
        let of = |side: &Side| (side.windows > 0 && side.ns > 0).then(|| side.open_ns as f64 / side.ns as f64);
        self.median(|run| run.sides().filter_map(of).reduce(f64::max))
    }

    /// CPU seconds of all sides for a million frames.
    pub(crate) fn cpu_s_per_mpkt(&self) -> Option<f64> {
        self.median(|run| {
            let cpus = run.sides().map(ran).sum::<Option<f64>>()?;
            (cpus > 0.0 && run.packets > 0).then(|| cpus * run.ns as f64 / run.packets as f64 / 1e3)
        })
    }

    pub(crate) fn kicks_per_packet(&self) -> Option<f64> {
        self.median(|run| (run.packets > 0).then(|| run.kicks as f64 / run.packets as f64))
    }

    /// The share of the time that the less busy side ran.
    pub(crate) fn busy_share(&self) -> Option<f64> {
        self.median(|run| run.sides().map(ran).reduce(|least, one| Some(least?.min(one?))).flatten())
    }

    /// Times that either side's CPU was taken.
    pub(crate) fn involuntary(&self) -> u64 {
        self.sum(|run| run.sides().fold(0, |sum, side| sum.saturating_add(side.involuntary)))
    }

    /// True if it ran between guests that were emulated.
    pub(crate) fn is_emulated(&self) -> bool {
        self.launches.iter().any(|(_, run)| run.emulated)
    }

    /// True if the frames of each launch were looked at.
    pub(crate) fn is_verified(&self) -> bool {
        self.launches.iter().all(|(_, run)| run.verified)
    }

    /// What was wrong with frames, by name, of the launches that looked; `None` where none did. What is missing is known where both ends
    /// counted their frames, too.
    pub(crate) fn wrong(&self) -> [(&'static str, Option<u64>); 4] {
        let of = |looked: fn(&Run) -> bool, count: fn(&Run) -> u64| {
            let runs = self.launches.iter().any(|(_, run)| looked(run));
            runs.then(|| self.sum(|run| if looked(run) { count(run) } else { 0 }))
        };
        let verified = |run: &Run| run.verified;
        [
            ("lost", of(|run| run.verified || run.counted, |run| run.lost)),
            ("duplicated", of(verified, |run| run.duplicated)),
            ("reordered", of(verified, |run| run.reordered)),
            ("torn", of(verified, |run| run.torn)),
        ]
    }

    /// How it is named in sentences: `ring without a window`, `ring with pkey`, `ivshmem-plain with pkey, emulated`.
    pub(crate) fn name(&self) -> String {
        let Setup { path, window, policy, vms, .. } = self.setup;
        let window = if window == NONE { "without a window".to_owned() } else { format!("with {window}") };
        let policy = if policy == POLL { String::new() } else { format!(", policy {policy}") };
        let vms = if *vms > 2 { format!(", {vms} machines") } else { String::new() };
        let emulated = if self.is_emulated() { ", emulated" } else { "" };
        format!("{path} {window}{policy}{vms}{emulated}")
    }
}

/// The share of its time that a side ran.
fn ran(side: &Side) -> Option<f64> {
    (side.ns > 0).then(|| side.cpu_ns as f64 / side.ns as f64)
}
