//! What a prediction starts from: exits with their rates and costs, given or taken from a recording.
//!
//! In: numbers of the user; tables of `flow` (rates, chains, time) and of `nesting` (bench results, features). Out: one list
//! of [`Share`]s, each the CPU that one kind of exit takes, split into what it costs at L1 and what nesting adds; and the
//! assumptions made on the way, each with where it comes from.

use super::model::{C1_OF_OTHERS, K_KERNEL, K_USERSPACE};
use base::Level;
use facts::estimate::Estimate;
use facts::traced_exits::TracedExits;

/// A rate that the user gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    /// Level that exits: 1 or 2.
    pub level: u8,
    /// Why, as table `exits` of `flow` calls it.
    pub reason: String,
    pub per_second: f64,
    /// True if it ends in the VMM.
    pub userspace: bool,
}

/// What the user gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stated {
    /// Cycles of a CPUID exit at L1.
    pub c1: Option<Estimate>,
    /// Cycles that nesting adds to an exit.
    pub d: Option<Estimate>,
    /// Cycles of other exits at L1.
    pub costs: Vec<(String, Estimate)>,
    /// Ticks of the counter in a second.
    pub hz: Option<f64>,
    /// Where c1, D and the costs come from, if a bench measured them.
    pub measured: Option<&'static str>,
    pub rates: Vec<Rate>,
    /// CPU of the guest's own code, as a share.
    pub guest: Option<f64>,
}

/// The CPU that one kind of exit takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    pub level: u8,
    pub reason: String,
    /// How often, for each vCPU.
    pub per_second: f64,
    /// Share of a CPU by what the exit costs at L1.
    pub plain: Estimate,
    /// Share of a CPU by what nesting adds.
    pub nested: Estimate,
    pub from: &'static str,
}

/// Something taken to be so.
#[derive(Debug, Clone, PartialEq)]
pub struct Assumption {
    pub what: String,
    pub value: String,
    /// Who says so: `given`, `measured`, `fitted`, `assumed`, `published`.
    pub from: &'static str,
}

/// What a prediction starts from.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// CPU of everything but these exits, as a share.
    pub rest: f64,
    pub shares: Vec<Share>,
    pub assumptions: Vec<Assumption>,
    /// What the recording's chains consist of.
    pub observed: Option<TracedExits>,
    /// What cannot be told, and what would tell it.
    pub missing: Vec<String>,
    /// Features that are on in the recording's host.
    pub on: Vec<String>,
}

impl Inputs {
    fn assume(&mut self, what: impl Into<String>, value: impl Into<String>, from: &'static str) {
        let assumption = Assumption { what: what.into(), value: value.into(), from };
        if !self.assumptions.contains(&assumption) {
            self.assumptions.push(assumption);
        }
    }

    /// CPU now.
    pub fn now(&self) -> Estimate {
        let zero = Estimate::exact(self.rest);
        self.shares.iter().fold(zero, |sum, share| sum + share.plain + share.nested)
    }

    /// From numbers that the user gave.
    pub(crate) fn of_stated(stated: &Stated) -> Self {
        let mut inputs = Self { rest: stated.guest.unwrap_or(0.0), ..Self::default() };
        match stated.guest {
            Some(share) => inputs.assume("CPU of the guest's own code", percent(share), "given"),
            None => inputs.assume(
                "CPU of the guest's own code",
                "not stated: the CPU shown is that of exits only",
                "assumed",
            ),
        }
        let nested = stated.rates.iter().any(|rate| rate.level >= 2);
        let Some(hz) = stated.hz else {
            inputs.missing.push("the TSC frequency: --ghz (lscpu, or dmesg | grep tsc)".into());
            return inputs;
        };
        let Some(c1) = stated.c1 else {
            inputs
                .missing
                .push("the cost of an exit at L1: --c1, measured by `kvmscope bench exits`, test cpuid".into());
            return inputs;
        };
        let d = match stated.d {
            Some(d) => d,
            None if nested => {
                let what = "the cost that nesting adds to an exit: --d, or --c2, measured by `kvmscope bench exits` \
                            in L1. It varies three- to fourfold between hosts, so it is never assumed";
                inputs.missing.push(what.into());
                return inputs;
            }
            None => Estimate::exact(0.0),
        };
        inputs.assume("counter", format!("{} GHz", hz / 1e9), "given");
        let from = if stated.measured.is_some() { "measured" } else { "given" };
        inputs.assume("c1, an exit at L1", cycles(c1), from);
        if nested {
            inputs.assume("D, what nesting adds", cycles(d), from);
        }
        if let Some(how) = stated.measured {
            inputs.assume("how D was determined", how, from);
        }
        for rate in &stated.rates {
            let share = inputs.given_share(rate, stated, c1, d, hz);
            inputs.shares.push(share);
        }
        inputs
    }

    fn given_share(&mut self, rate: &Rate, stated: &Stated, c1: Estimate, d: Estimate, hz: f64) -> Share {
        let own = stated.costs.iter().find(|(reason, _)| *reason == rate.reason).map(|(_, cost)| *cost);
        let cost = match own {
            Some(cost) => cost,
            None if rate.reason == "CPUID" => c1,
            None => {
                let what = format!("{} at L1 is assumed to cost as much as CPUID", rate.reason);
                self.assume(
                    what,
                    format!("{}; --cost {}=CYCLES overrides it", cycles(c1 * C1_OF_OTHERS), rate.reason),
                    "assumed",
                );
                c1 * C1_OF_OTHERS
            }
        };
        let k = if rate.userspace { K_USERSPACE } else { K_KERNEL };
        match (rate.level, rate.userspace) {
            (1, _) => {}
            (_, true) => self.assume("k of exits that L1's VMM handles", "4, from 3 to 5", "fitted"),
            (_, false) => self.assume("k of exits that L1's kernel handles", "1, up to 1.2", "published"),
        }
        let busy = Estimate::exact(rate.per_second / hz);
        let nested = if rate.level >= 2 { busy * k * d } else { Estimate::exact(0.0) };
        let (reason, per_second) = (rate.reason.clone(), rate.per_second);
        Share { level: rate.level, reason, per_second, plain: busy * cost, nested, from: "given" }
    }

    /// From what a recording saw. Times are its own, so neither c1 nor D need be given; what an exit costs without nesting is
    /// the mean of L1's exits of that reason, or of all of them.
    pub(crate) fn of_recording(observed: TracedExits, on: Vec<String>) -> Self {
        let mut inputs = Self { on, ..Self::default() };
        let plain = observed.plain_exit_ns();
        inputs.assume("exits, chains and times", "from the recording", "measured");
        inputs.assume(
            "an exit without nesting",
            format!("{} ns, the mean of L1's own exits", plain.round()),
            "measured",
        );
        let mut taken = 0.0;
        let all_ns = observed.wall_ns;
        for (reason, chains) in &observed.chains {
            let nested_ns = chains.nested_ns(observed.plain_ns(reason));
            let of = |ns: f64| Estimate::exact(ns / all_ns);
            let per_second = chains.count as f64 * 1e9 / all_ns;
            let share = Share {
                level: 2,
                reason: reason.clone(),
                per_second,
                plain: of(chains.cost_ns - nested_ns),
                nested: of(nested_ns),
                from: "measured",
            };
            taken += chains.cost_ns / all_ns;
            inputs.shares.push(share);
        }
        if observed.chains.is_empty() {
            for ((_, reason), (count, total_ns)) in
                observed.by_reason.iter().filter(|((level, _), _)| *level == Level::At(1))
            {
                let (plain, per_second) = (Estimate::exact(total_ns / all_ns), *count as f64 * 1e9 / all_ns);
                let nested = Estimate::exact(0.0);
                inputs.shares.push(Share {
                    level: 1,
                    reason: reason.clone(),
                    per_second,
                    plain,
                    nested,
                    from: "measured",
                });
                taken += total_ns / all_ns;
            }
        }
        inputs.shares = split_timers(std::mem::take(&mut inputs.shares), observed.timer_share());
        inputs.rest = (observed.busy_ns / all_ns - taken).max(0.0);
        inputs.observed = Some(observed);
        inputs
    }
}

/// MSR exits that arm a timer stand by themselves: a change of timers moves them and no others.
fn split_timers(shares: Vec<Share>, timers: f64) -> Vec<Share> {
    let scaled = |share: &Share, part: f64, reason: &str| Share {
        reason: reason.to_owned(),
        per_second: share.per_second * part,
        plain: share.plain * Estimate::exact(part),
        nested: share.nested * Estimate::exact(part),
        ..share.clone()
    };
    let each = |share: Share| {
        if share.reason == "MSR" && timers > 0.0 {
            vec![scaled(&share, timers, "TSC_DEADLINE"), scaled(&share, 1.0 - timers, "MSR")]
        } else {
            vec![share]
        }
    };
    shares.into_iter().flat_map(each).collect()
}

fn percent(share: f64) -> String {
    base::number::percent(share)
}

fn cycles(cost: Estimate) -> String {
    let whole = |value: f64| base::number::thousands(value.round() as u64);
    if cost.low == cost.high {
        format!("{} cycles", whole(cost.mid))
    } else {
        format!("{} cycles, from {} to {}", whole(cost.mid), whole(cost.low), whole(cost.high))
    }
}
