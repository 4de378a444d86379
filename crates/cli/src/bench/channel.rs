//! `kvmscope bench channel`: what a ring in shared memory carries between two processes, what its windows cost, and what disturbed it.
//!
//! Only the full program has it; the slim one takes the same arguments and says how to get it.

use super::place::PlaceOptions;
use crate::arguments::{JournalPlace, length};
#[cfg(not(feature = "full"))]
use crate::exit::Exit;
use clap::Args;
use clap::builder::PossibleValuesParser;

/// Measure how many frames per second two processes exchange through shared memory, and what protecting it costs
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope bench channel\n  \
    kvmscope bench channel --window none,pkey --batch 1,8,32,64 --size 64,1518 -o channel\n  \
    kvmscope bench channel --path ring,ring-ro --policy poll,kick,adaptive --batch 32\n  \
    kvmscope bench channel --cpus 2,3 --fifo --seconds 3 --launches 7\n  \
    kvmscope bench channel --json | jq '.sections[].tables.rates'\n\n\
    Needs no root; with it the trace beside the bench names who took the CPUs. Two processes keep two CPUs busy for launches x setups x seconds. Each frame has a number and a checksum, which are\n\
    looked at where it arrives. Time in which either process did not run is counted apart: the rates have it (raw) and have it not (clean).\n\
    Exit status: 0 answered, 1 nothing could be measured, 2 wrong usage, 3 a finding of at least the severity of --fail-on.\n\
    With --json and without -o, no recording is kept.")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "the slim program only parses them"))]
pub struct Channel {
    /// Paths: one region that both sides write, or a half each that the other can only read
    #[arg(long, value_name = "PATH", value_delimiter = ',', default_value = "ring",
          value_parser = PossibleValuesParser::new(["ring", "ring-ro"]))]
    path: Vec<String>,
    /// When a process can access the ring: always, or for one batch, by a memory protection key or mprotect
    #[arg(long, value_name = "WINDOW", value_delimiter = ',', default_value = "none,pkey,mprotect",
          value_parser = PossibleValuesParser::new(["none", "pkey", "mprotect"]))]
    window: Vec<String>,
    /// Frames that go at once
    #[arg(long, value_name = "FRAMES", value_delimiter = ',', default_value = "1,8,32,64",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    batch: Vec<u32>,
    /// Bytes of a frame
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "64",
          value_parser = clap::value_parser!(u32).range(16..=9216))]
    size: Vec<u32>,
    /// What a side does while it waits: poll, sleep until it is kicked, or poll for 50 us and then sleep
    #[arg(long, value_name = "POLICY", value_delimiter = ',', default_value = "poll",
          value_parser = PossibleValuesParser::new(["poll", "kick", "adaptive"]))]
    policy: Vec<String>,
    /// Slots of the ring, a power of two
    #[arg(long, value_name = "N", default_value = "1024", value_parser = slots)]
    slots: u32,
    /// Where lengths lie: before each frame, in an array of their own, or where fewer bytes move between the CPUs
    #[arg(long, value_name = "WHERE", default_value = "fewest",
          value_parser = PossibleValuesParser::new(["fewest", "in-slot", "apart"]))]
    lengths: String,
    /// Do not look at numbers and checksums where frames arrive; the rates are marked as unverified
    #[arg(long)]
    no_verify: bool,
    /// Seconds of each setup in each launch
    #[arg(long, value_name = "SECONDS", value_parser = length, default_value = "0.5")]
    seconds: u64,
    /// Number of times that all setups are measured, in an order that is drawn; the rates have the range of them
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    launches: u32,
    /// CPU that sends and CPU that receives [default: the last two available ones that share no core, or no CPU]
    #[arg(long, value_name = "CPU,CPU", value_delimiter = ',', num_args = 1)]
    cpus: Vec<u32>,
    /// Measure on one CPU or one core if there is no other: the two sides then take turns
    #[arg(long)]
    same_core: bool,
    /// Measure with SCHED_FIFO, which ordinary threads cannot preempt (root)
    #[arg(long)]
    fifo: bool,
    /// Do not record who has the two CPUs meanwhile (root): gaps then have no culprits
    #[arg(long)]
    no_record: bool,
    #[command(flatten)]
    journal: JournalPlace,
    #[command(flatten)]
    place: PlaceOptions,
}

fn slots(text: &str) -> Result<u32, String> {
    let slots: u32 = text.parse().map_err(|_| "a number is needed".to_owned())?;
    let fits = slots.is_power_of_two() && (2..=1 << 16).contains(&slots);
    if fits { Ok(slots) } else { Err("a power of two from 2 to 65536 is needed".to_owned()) }
}

impl Channel {
    /// Says that this program has no rings.
    #[cfg(not(feature = "full"))]
    pub fn run(&self) -> anyhow::Result<Exit> {
        anyhow::bail!("this is the slim build, without the ring; `make full` builds the full one")
    }
}

#[cfg(feature = "full")]
mod measured {
    use super::super::beside::{self, Task};
    use super::super::launches::Work;
    use super::Channel;
    use crate::exit::{Exit, WrongUse};
    use crate::interrupt::Interrupt;
    use anyhow::bail;
    use base::channel::{BENCH, PAIRS, Setup};
    use base::{Bench, CpuSet};
    use lab::bench::channel::{Plan, ground, relation};
    use lab::bench::environment::{self, How};
    use lab::bench::launch;
    use lab::setting::thread;
    use std::path::Path;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    /// The ring fills, and branches are learned, before anything is measured.
    const WARM_UP: Duration = Duration::from_millis(50);

    impl Channel {
        /// Measures, and says what came of it.
        pub fn run(&self) -> anyhow::Result<Exit> {
            let plan = self.plan()?;
            let mut environment = environment::here(How { fifo: plan.fifo, ..How::default() });
            environment.insert(base::bench::NS_PER_TICK.to_owned(), launch::ns_per_tick().to_string());
            environment.extend(ground(Path::new("/"), plan.cpus.1));
            let mut bench = Bench::new(BENCH, environment);
            if cfg!(debug_assertions) {
                bench.notes.push(
                    "This program was built without optimization: its ring is slower than it could be.".to_owned(),
                );
            }
            let work = Work { results: plan.results(), rounds: 1, job: &|number, _| Ok(plan.launch(number)) };
            if self.no_record {
                return work.run(self.launches, bench, &self.place, Interrupt::watch()?);
            }
            self.recorded(&plan, &work, bench)
        }

        /// Measures while the host is recorded.
        fn recorded(&self, plan: &Plan, work: &Work<'_>, mut bench: Bench) -> anyhow::Result<Exit> {
            let cpus = CpuSet::from_iter([plan.cpus.0, plan.cpus.1]);
            let others = thread::affinity(thread::own())?.without(&cpus);
            // What records stays off the CPUs of the two sides where it can.
            if !others.is_empty() {
                thread::set_affinity(thread::own(), &others)?;
            }
            let mut place = self.place.begin(&bench.bench, None, Interrupt::watch()?)?;
            // From here on a signal ends the launches, and then the recorder.
            let stop = place.interrupt.hold();
            let mut notes = Vec::new();
            let unexplained = "no gap has a culprit";
            let task = Task { name: "the bench", unexplained, notes: &mut notes };
            let (failed, parts) = beside::along(&mut place, &self.journal, cpus, task, |place, _| {
                work.measure(self.launches, &mut bench, place, !self.place.no_progress)
            })?;
            bench.notes.append(&mut notes);
            place.add(parts);
            let failed = failed?;
            let ended = Work::end(place, bench, failed, &self.place);
            if stop.load(Ordering::Relaxed) { Ok(Exit::Interrupted) } else { ended }
        }

        fn plan(&self) -> anyhow::Result<Plan> {
            let (cpus, pair) = self.pair(Path::new("/"))?;
            if self.fifo {
                lab::bench::priority::allowed()?;
            }
            Ok(Plan {
                cpus,
                pair: pair.to_owned(),
                setups: self.setups(),
                slots: self.slots,
                apart: match self.lengths.as_str() {
                    "apart" => Some(true),
                    "in-slot" => Some(false),
                    _ => None,
                },
                verify: !self.no_verify,
                length: Duration::from_nanos(self.seconds),
                warm_up: WARM_UP,
                fifo: self.fifo,
                launch: 0,
            })
        }

        fn setups(&self) -> Vec<Setup> {
            let mut setups = Vec::new();
            for (path, window) in self.path.iter().flat_map(|path| self.window.iter().map(move |window| (path, window)))
            {
                for (&size_bytes, &batch) in
                    self.size.iter().flat_map(|size| self.batch.iter().map(move |batch| (size, batch)))
                {
                    setups.extend(self.policy.iter().map(|policy| Setup {
                        path: path.clone(),
                        window: window.clone(),
                        size_bytes,
                        batch,
                        policy: policy.clone(),
                        vms: 2,
                    }));
                }
            }
            setups
        }

        /// The two CPUs, and how they are related.
        fn pair(&self, root: &Path) -> anyhow::Result<((u32, u32), &'static str)> {
            let ours: Vec<u32> = thread::affinity(thread::own())?.iter().collect();
            let related = |a: u32, b: u32| relation(root, a, b).unwrap_or("unknown");
            let [_, core, ..] = PAIRS;
            let apart = |a: u32, b: u32| a != b && related(a, b) != core;
            let (a, b) = match self.cpus[..] {
                [a, b] => match [a, b].into_iter().find(|cpu| !ours.contains(cpu)) {
                    Some(cpu) => bail!(WrongUse(format!("CPU {cpu} is not available to this process"))),
                    None => (a, b),
                },
                [] => {
                    let pairs = ours.iter().rev().flat_map(|&b| ours.iter().rev().map(move |&a| (a, b)));
                    let found = pairs.clone().find(|&(a, b)| a < b && apart(a, b));
                    let last = *ours.last().unwrap_or(&0);
                    found.or(pairs.clone().find(|(a, b)| a < b)).unwrap_or((last, last))
                }
                _ => {
                    bail!(WrongUse("--cpus takes the CPU that sends and the one that receives: --cpus 2,3".to_owned()))
                }
            };
            if !self.same_core && !apart(a, b) {
                let where_to = if a == b { format!("on CPU {a}") } else { format!("on one core, CPUs {a} and {b}") };
                bail!(WrongUse(format!(
                    "both sides would run {where_to}, and wait for each other; name two CPUs of different cores with --cpus, or \
                     measure that with --same-core"
                )));
            }
            Ok(((a, b), related(a, b)))
        }
    }
}
