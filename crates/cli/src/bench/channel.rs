//! `kvmscope bench channel`: what a ring in shared memory carries between two processes, what its windows cost, what disturbed it, and what
//! DPDK's own paths carry beside it.
//!
//! Only the full program has it; the slim one takes the same arguments and says how to get it.

use super::place::PlaceOptions;
use crate::arguments::{JournalPlace, length};
#[cfg(not(feature = "full"))]
use crate::exit::Exit;
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;

/// Measure how many frames per second two processes exchange through shared memory, and what protecting it costs
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope bench channel\n  \
    kvmscope bench channel --window none,pkey --batch 1,8,32,64 --size 64,1518 -o channel\n  \
    kvmscope bench channel --path ring,ring-ro --policy poll,kick,adaptive --batch 32\n  \
    sudo kvmscope bench channel --path ring,memif,vhost-user,rte-ring --window none --batch 8,32,64\n  \
    kvmscope bench channel --path ivshmem-plain,ivshmem-doorbell --window none --policy poll,kick --launches 1\n  \
    kvmscope bench channel --window model:vmfunc=196 --batch 1,8,32,64 --only rates\n  \
    kvmscope bench channel --cpus 2,3 --fifo --seconds 3 --launches 7\n  \
    kvmscope bench channel --only delays --rate 1,5,10 --batch 1,32\n  \
    kvmscope bench channel --only rates --vms 2,4,8 --path ring,switch --window none\n  \
    kvmscope bench channel --only flows,faults --changes 20000\n  \
    kvmscope bench channel --json | jq '.sections[].tables.rates'\n\n\
    Needs no root for rings of ours; with it the trace beside the bench names who took the CPUs. memif, vhost-user and rte-ring are\n\
    DPDK's: its programs (Debian package dpdk-dev) are started, get huge pages and end again. What is in their frames is not looked at,\n\
    so these rates are unverified. rte-ring moves pointers of 8 bytes and copies no frame, in batches of 8 and 32. They have no\n\
    windows, and poll.\n\
    After kill -9, `kvmscope undo` gives the huge pages back.\n\
    Two processes keep two CPUs busy for launches x setups x seconds. Each frame has a number and a checksum, which are\n\
    looked at where it arrives. Time in which either process did not run is counted apart: the rates have it (raw) and have it not (clean).\n\
    Beside rates, the rest is measured in the first launch: delays of setups without a window, a fifth of --seconds for each rate; a flow\n\
    table for twice --seconds; twelve rules that a hostile peer breaks.\n\
    Paths of ivshmem boot two emulated guests in each launch, from Debian's kernel and this program; without qemu-system-x86 or a kernel\n\
    they are left out, with the reason.\n\
    Exit status: 0 answered, 1 nothing could be measured, 2 wrong usage, 3 a finding of at least the severity of --fail-on.\n\
    With --json and without -o, no recording is kept.")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "the slim program only parses them"))]
pub struct Channel {
    /// What is measured [default: all]
    #[arg(long, value_name = "PART", value_delimiter = ',', default_value = "rates,delays,flows,faults", hide_default_value = true,
          value_parser = PossibleValuesParser::new(["rates", "delays", "flows", "faults"]))]
    only: Vec<String>,
    /// Paths: one region that both sides write, a half each that the other can only read, a switch between all machines; one of
    /// DPDK's (root); the ring between two guests that QEMU emulates, through a device's memory, without interrupts or with them
    #[arg(long, value_name = "PATH", value_delimiter = ',', default_value = "ring",
          value_parser = PossibleValuesParser::new(
              ["ring", "ring-ro", "switch", "memif", "vhost-user", "rte-ring", "ivshmem-plain", "ivshmem-doorbell"]))]
    path: Vec<String>,
    /// Machines: of two over a ring one sends and one receives; more, and those of a switch, send to all others, without a window
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2", value_parser = clap::value_parser!(u32).range(2..=8))]
    vms: Vec<u32>,
    /// Millions of frames per second that delays are measured at [default: 10, 50 and 90 % of the clean rate, and the highest without loss]
    #[arg(long, value_name = "MPPS", value_delimiter = ',', value_parser = mpps)]
    rate: Vec<f64>,
    /// Changes of the flow table per second
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    changes: u64,
    /// When a process can access the ring: always, or for one batch, by a memory protection key or mprotect; `model:NAME=NS` models a
    /// window that takes so many ns for each batch, on the rates without one
    #[arg(long, value_name = "WINDOW", value_delimiter = ',', default_value = "none,pkey,mprotect", value_parser = window)]
    window: Vec<Window>,
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
    /// Where lengths lie: in the slots, in an array of their own, or where fewer bytes move between the CPUs
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
    /// CPU that sends and CPU that receives, then those of further machines [default: the last two available ones that share no core, or no
    /// CPU; further machines have the others]
    #[arg(long, value_name = "CPU,CPU", value_delimiter = ',', num_args = 1)]
    cpus: Vec<u32>,
    /// Measure on one CPU or one core if there is no other, or more machines than there are CPUs: they then take turns
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
    /// With ivshmem: where the guests' kernel is kept [default: kvmscope in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceOptions,
}

/// A window of [`Channel::window`].
#[derive(Clone)]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "the slim program only parses them"))]
enum Window {
    Measured(String),
    Modelled { name: String, ns: f64 },
}

fn window(text: &str) -> Result<Window, String> {
    const MEASURED: [&str; 3] = ["none", "pkey", "mprotect"];
    if MEASURED.contains(&text) {
        return Ok(Window::Measured(text.to_owned()));
    }
    let modelled = text.strip_prefix("model:").and_then(|text| text.split_once('='));
    let is_name = |name: &str| {
        (1..=32).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-_".contains(&byte))
    };
    let modelled = modelled.filter(|(name, _)| is_name(name) && !MEASURED.contains(name)).and_then(|(name, ns)| {
        let ns = ns.parse().ok().filter(|ns: &f64| *ns > 0.0 && *ns <= 1e9)?;
        Some(Window::Modelled { name: name.to_owned(), ns })
    });
    modelled.ok_or_else(|| "none, pkey, mprotect or model:NAME=NS is needed, such as model:vmfunc=196".to_owned())
}

fn slots(text: &str) -> Result<u32, String> {
    let slots: u32 = text.parse().map_err(|_| "a number is needed".to_owned())?;
    let fits = slots.is_power_of_two() && (2..=1 << 16).contains(&slots);
    if fits { Ok(slots) } else { Err("a power of two from 2 to 65536 is needed".to_owned()) }
}

fn mpps(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "a number is needed".to_owned())?;
    let can_be = (0.0001..=1_000.0).contains(&rate);
    if can_be { Ok(rate) } else { Err("millions of frames per second from 0.0001 to 1000 are needed".to_owned()) }
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
    use super::{Channel, Window};
    use crate::exit::{Exit, WrongUse, complain};
    use crate::interrupt::Interrupt;
    use anyhow::bail;
    use base::channel::{BENCH, DPDK_PATHS, GIVEN_WINDOWS, PAIRS, POINTER_BYTES, RTE_RING, Setup};
    use base::{Bench, CpuSet};
    use lab::bench::channel::delays::Offered;
    use lab::bench::channel::dpdk::{Memory, Prepared};
    use lab::bench::channel::flows::Changes;
    use lab::bench::channel::{Machines, Plan, ground, ivshmem, relation};
    use lab::bench::environment::{self, How};
    use lab::bench::launch;
    use lab::nested::default_cache;
    use lab::setting::thread;
    use std::path::Path;
    use std::sync::atomic::Ordering;
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::Duration;

    /// What DPDK's programs have, until somebody has put it back.
    type Shared = Arc<Mutex<Option<Prepared>>>;

    /// The ring fills, and branches are learned, before anything is measured.
    const WARM_UP: Duration = Duration::from_millis(50);
    const SWITCH: &str = "switch";
    const NO_WINDOW: &str = "none";
    const POLL: &str = "poll";
    /// Of the time of a setup, that of a rate whose delays are measured, and that of a rate that is tried in a search.
    const OF_A_RATE: u32 = 5;
    /// See there.
    const OF_A_TRIAL: u32 = 20;

    impl Channel {
        /// Measures, and says what came of it.
        pub fn run(&self) -> anyhow::Result<Exit> {
            let mut plan = self.plan()?;
            let mut environment = environment::here(How { fifo: plan.fifo, ..How::default() });
            environment.insert(base::bench::NS_PER_TICK.to_owned(), launch::ns_per_tick().to_string());
            environment.extend(ground(Path::new("/"), plan.cpus.1));
            environment.extend(self.given().map(|given| (GIVEN_WINDOWS.to_owned(), given)));
            let interrupt = Interrupt::watch()?;
            let prepared = self.prepare(&mut plan, &interrupt)?;
            if let Ok(bed) = &plan.dpdk {
                environment.insert("memory of DPDK".to_owned(), bed.memory.name().to_owned());
            }
            let mut bench = Bench::new(BENCH, environment);
            if cfg!(debug_assertions) {
                bench.notes.push(
                    "This program was built without optimization: its ring is slower than it could be.".to_owned(),
                );
            }
            if plan.dpdk.as_ref().is_ok_and(|bed| bed.memory == Memory::Ordinary) {
                bench.notes.push(
                    "The kernel gave no huge pages, so DPDK's programs ran with --no-huge, which is slower.".to_owned(),
                );
            }
            let work = Work { results: plan.results(), rounds: 1, job: &|number, _| Ok(plan.launch(number)) };
            let answered = if self.no_record {
                work.run(self.launches, bench, &self.place, interrupt)
            } else {
                self.recorded(&plan, &work, bench, interrupt)
            };
            back(&prepared)?;
            answered
        }

        /// Measures while the host is recorded.
        fn recorded(
            &self,
            plan: &Plan,
            work: &Work<'_>,
            mut bench: Bench,
            interrupt: Interrupt,
        ) -> anyhow::Result<Exit> {
            let cpus = CpuSet::from_iter([plan.cpus.0, plan.cpus.1]);
            let others = thread::affinity(thread::own())?.without(&cpus);
            // What records stays off the CPUs of the two sides where it can.
            if !others.is_empty() {
                thread::set_affinity(thread::own(), &others)?;
            }
            let mut place = self.place.begin(&bench.bench, None, interrupt)?;
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

        /// Makes what DPDK's programs need, if any of them is wanted; a signal puts it back.
        fn prepare(&self, plan: &mut Plan, interrupt: &Interrupt) -> anyhow::Result<Shared> {
            let is_wanted = plan.setups.iter().any(|setup| DPDK_PATHS.contains(&setup.path.as_str()));
            if !is_wanted || plan.fifo {
                return Ok(Shared::default());
            }
            let mut told = Err(String::new());
            let shared = interrupt.making(
                || {
                    let made = Prepared::begin(&self.journal.journal(), plan.cpus);
                    told = made.as_ref().map(|made| made.bed().clone()).map_err(ToString::to_string);
                    Ok::<Shared, anyhow::Error>(Arc::new(Mutex::new(made.ok())))
                },
                |shared| {
                    let shared = Arc::clone(shared);
                    move || {
                        if let Err(error) = back(&shared) {
                            complain(&error.into());
                        }
                    }
                },
            )?;
            plan.dpdk = told;
            Ok(shared)
        }

        fn plan(&self) -> anyhow::Result<Plan> {
            let (cpus, pair) = self.pair(Path::new("/"))?;
            if self.fifo {
                lab::bench::priority::allowed()?;
            }
            let length = Duration::from_nanos(self.seconds);
            let (setups, has) = (self.setups(), |part: &str| self.only.iter().any(|only| only == part));
            if has("rates") && setups.is_empty() {
                bail!(WrongUse(
                    "more than two machines, and those of a switch, are measured over --path ring,switch with --window none and \
                     --policy poll"
                        .to_owned()
                ));
            }
            let wants_delays_alone = has("delays") && !has("rates") && !has("flows") && !has("faults");
            if wants_delays_alone && self.delayed().is_empty() {
                bail!(WrongUse("delays are measured over --path ring and ring-ro, and over no other".to_owned()));
            }
            let offered = Offered { mpps: self.rate.clone(), length: length / OF_A_RATE, trial: length / OF_A_TRIAL };
            let changes = Changes { per_s: self.changes, vms: self.vms.clone(), length: 2 * length };
            let plan = Plan {
                cpus,
                pair: pair.to_owned(),
                machines: Machines::default(),
                delays: has("delays").then(|| (offered, self.delayed())).filter(|(_, setups)| !setups.is_empty()),
                flows: has("flows").then_some(changes),
                faults: has("faults"),
                setups: if has("rates") { setups } else { Vec::new() },
                slots: self.slots,
                apart: match self.lengths.as_str() {
                    "apart" => Some(true),
                    "in-slot" => Some(false),
                    _ => None,
                },
                verify: !self.no_verify,
                length,
                warm_up: WARM_UP,
                fifo: self.fifo,
                dpdk: Err("nothing was prepared for programs of DPDK".to_owned()),
                guests: ivshmem::Places {
                    program: std::env::current_exe()?,
                    cache: self.cache.clone().or_else(|| default_cache(|name| std::env::var_os(name))),
                },
                launch: 0,
            };
            Ok(Plan { machines: self.machines(Path::new("/"), &plan)?, ..plan })
        }

        /// Setups whose delays are measured: those of two machines and a ring, without a window, by each policy.
        fn delayed(&self) -> Vec<Setup> {
            let rings = self.path.iter().filter(|path| *path == "ring" || *path == "ring-ro");
            let frames = self.size.iter().flat_map(|size| self.batch.iter().map(move |batch| (*size, *batch)));
            let setup = |path: &String, policy: &String, (size_bytes, batch)| Setup {
                path: path.clone(),
                window: NO_WINDOW.to_owned(),
                size_bytes,
                batch,
                policy: policy.clone(),
                vms: 2,
            };
            let ways = rings.flat_map(|path| self.policy.iter().map(move |policy| (path, policy)));
            ways.flat_map(|(path, policy)| frames.clone().map(move |frame| setup(path, policy, frame))).collect()
        }

        /// The CPUs of several machines, the switch last.
        fn machines(&self, root: &Path, plan: &Plan) -> anyhow::Result<Machines> {
            let ours: Vec<u32> = thread::affinity(thread::own())?.iter().collect();
            let mut cpus = if self.cpus.is_empty() { vec![plan.cpus.0, plan.cpus.1] } else { self.cpus.clone() };
            if self.cpus.is_empty() {
                cpus.extend(ours.iter().rev().filter(|cpu| ![plan.cpus.0, plan.cpus.1].contains(*cpu)));
            }
            cpus.retain(|cpu| ours.contains(cpu));
            let mut seen = std::collections::BTreeSet::new();
            cpus.retain(|cpu| seen.insert(*cpu));
            let several = plan.setups.iter().filter(|setup| setup.vms > 2 || setup.path == SWITCH);
            let needs = several.map(|setup| setup.vms + u32::from(setup.path == SWITCH)).max().unwrap_or(0);
            let most = plan.flows.iter().flat_map(|flows| &flows.vms).copied().filter(|vms| *vms > 2).max();
            let needs = needs.max(most.map_or(0, |vms| vms + 1)) as usize;
            if needs > cpus.len() && !self.same_core {
                bail!(WrongUse(format!(
                    "{needs} machines, the switch counted, need a CPU each, and {} are there; measure fewer with --vms, name more CPUs with \
                     --cpus, or let machines take turns with --same-core",
                    cpus.len()
                )));
            }
            let pairs = cpus.iter().flat_map(|&a| cpus.iter().map(move |&b| (a, b))).filter(|(a, b)| a < b);
            let farness = |pair: &str| PAIRS.iter().position(|known| *known == pair);
            let farthest = pairs.filter_map(|(a, b)| relation(root, a, b)).max_by_key(|pair| farness(pair));
            Ok(Machines { pair: farthest.unwrap_or("unknown").to_owned(), cpus })
        }

        fn setups(&self) -> Vec<Setup> {
            let mut setups = Vec::new();
            for vms in &self.vms {
                setups.extend(self.setups_of(*vms));
            }
            setups
        }

        /// Windows that are measured: none at least, for those that are modelled.
        fn windows(&self) -> Vec<String> {
            let mut windows: Vec<String> = Vec::new();
            for window in &self.window {
                let name = match window {
                    Window::Measured(name) => name.as_str(),
                    Window::Modelled { .. } => NO_WINDOW,
                };
                if !windows.iter().any(|known| known == name) {
                    windows.push(name.to_owned());
                }
            }
            windows
        }

        /// Windows that are modelled, as the bench's environment names them.
        fn given(&self) -> Option<String> {
            let given = self.window.iter().filter_map(|window| match window {
                Window::Modelled { name, ns } => Some(format!("{name}={ns}")),
                Window::Measured(_) => None,
            });
            Some(given.collect::<Vec<_>>().join(", ")).filter(|given| !given.is_empty())
        }

        /// More than two machines, and those of a switch, have no window and poll; DPDK's paths have two machines.
        fn setups_of(&self, vms: u32) -> Vec<Setup> {
            let none = [NO_WINDOW.to_owned()];
            let poll = [POLL.to_owned()];
            let own = self.windows();
            let mut setups = Vec::new();
            for path in &self.path {
                // DPDK's paths have no windows, and poll; its ring knows no frames.
                let is_ours = !DPDK_PATHS.contains(&path.as_str());
                let (windows, policies) = if is_ours { (&own[..], &self.policy[..]) } else { (&none[..], &poll[..]) };
                let sizes = if path == RTE_RING { &[POINTER_BYTES][..] } else { &self.size };
                for (window, &size_bytes) in
                    windows.iter().flat_map(|window| sizes.iter().map(move |size| (window, size)))
                {
                    let batches =
                        self.batch.iter().flat_map(|batch| policies.iter().map(move |policy| (batch, policy)));
                    setups.extend(batches.map(|(&batch, policy)| Setup {
                        path: path.clone(),
                        window: window.clone(),
                        size_bytes,
                        batch,
                        policy: policy.clone(),
                        vms,
                    }));
                }
            }
            let is_measured = |setup: &Setup| {
                let is_pair = setup.vms == 2 && setup.path != SWITCH;
                let is_several = setup.path == SWITCH || setup.path == "ring";
                is_pair || (is_several && setup.window == NO_WINDOW && setup.policy == POLL)
            };
            setups.retain(is_measured);
            setups
        }

        /// The two CPUs, and how they are related.
        fn pair(&self, root: &Path) -> anyhow::Result<((u32, u32), &'static str)> {
            let ours: Vec<u32> = thread::affinity(thread::own())?.iter().collect();
            let related = |a: u32, b: u32| relation(root, a, b).unwrap_or("unknown");
            let [_, core, ..] = PAIRS;
            let apart = |a: u32, b: u32| a != b && related(a, b) != core;
            let (a, b) = match self.cpus[..] {
                [a, b, ..] => match self.cpus.iter().find(|cpu| !ours.contains(cpu)) {
                    Some(cpu) => bail!(WrongUse(format!("CPU {cpu} is not available to this process"))),
                    None => (a, b),
                },
                [] => {
                    let pairs = ours.iter().rev().flat_map(|&b| ours.iter().rev().map(move |&a| (a, b)));
                    let found = pairs.clone().find(|&(a, b)| a < b && apart(a, b));
                    let last = *ours.last().unwrap_or(&0);
                    found.or(pairs.clone().find(|(a, b)| a < b)).unwrap_or((last, last))
                }
                [_] => {
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

    fn back(prepared: &Shared) -> Result<(), lab::Error> {
        match prepared.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(prepared) => prepared.back(),
            None => Ok(()),
        }
    }
}
