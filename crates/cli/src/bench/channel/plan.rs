//! What is measured, by the options: setups, CPUs, parts.

use super::{Channel, Window};
use anyhow::bail;
use base::channel::{DPDK_PATHS, PAIRS, POINTER_BYTES, RTE_RING, Setup};
use channel_bench::delays::Offered;
use channel_bench::flows::Changes;
use channel_bench::{Machines, Plan, ivshmem, relation};
use lab::setting::thread;
use labs::machine::default_cache;
use process::exit::WrongUse;
use std::path::Path;
use std::time::Duration;

/// The ring fills, and branches are learned, before anything is measured.
const WARM_UP: Duration = Duration::from_millis(50);
const SWITCH: &str = "switch";
const NO_WINDOW: &str = "none";
const POLL: &str = "poll";
/// Of the time of a setup, that of a rate whose delays are measured, and that of a rate that is tried in a search.
const OF_A_RATE: u32 = 5;
const OF_A_TRIAL: u32 = 20;

impl Channel {
    pub(super) fn plan(&self) -> anyhow::Result<Plan> {
        let (cpus, pair) = self.pair(Path::new("/"))?;
        if self.fifo {
            labs::bench::priority::allowed()?;
        }
        let length = Duration::from_nanos(self.seconds);
        let (setups, has) = (self.setups(), |part: &str| self.only.iter().any(|only| only == part));
        if has("rates") && setups.is_empty() {
            bail!(WrongUse(
                "more than two machines, or a switch, need --path ring,switch with --window none and \
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
            gauges: None,
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
                "{needs} machines, the switch included, need a CPU each, but there are {}; measure fewer with --vms, name more CPUs with \
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
    pub(super) fn given(&self) -> Option<String> {
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
            for (window, &size_bytes) in windows.iter().flat_map(|window| sizes.iter().map(move |size| (window, size)))
            {
                let batches = self.batch.iter().flat_map(|batch| policies.iter().map(move |policy| (batch, policy)));
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
