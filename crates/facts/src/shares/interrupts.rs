//! Where would interrupts be better off?
//!
//! In: how each CPU was used, the CPUs that an interrupt comes from and those it may go to. Out: how busy both are with
//! other things, and a direction.
//! ```text
//! from   the CPU that spent most time in interrupts      others there = busy - interrupts, softirqs
//! to     the idlest CPU of the destination                others there = busy
//! ```
//! The kernel counts interrupts by number and their time by CPU, so how much of that time moves along is not known: the
//! direction rests on what else runs on the two CPUs. A handler does not wait for threads, they wait for it.

use super::Direction;
use crate::starvation::FLOOR;
use base::CpuSet;
use base::number::percent;
use host::machine::CpuUse;
use std::collections::BTreeMap;
use std::fmt;

/// The two CPUs, and what else they do.
#[derive(Debug, Clone, PartialEq)]
pub struct Interrupts {
    /// The CPU that has them, with the share of the time that it does other things.
    pub from: (u32, f64),
    /// The CPU that would have them.
    pub to: (u32, f64),
    /// Share of the time that the first spends in interrupts and softirqs: the most that can move.
    pub(crate) most_moved: f64,
}

impl Interrupts {
    /// Moving from `from` to `to`; `None` if it stays on a CPU, or if a side's use is not known.
    pub fn moved(usage: &BTreeMap<u32, CpuUse>, from: &CpuSet, to: &CpuSet) -> Option<Self> {
        let side = |cpus: &CpuSet| -> Vec<(u32, CpuUse)> {
            cpus.iter().filter_map(|cpu| Some((cpu, *usage.get(&cpu)?))).collect()
        };
        let handled = |usage: &CpuUse| usage.irq + usage.softirq;
        let (from, had) = side(from).into_iter().max_by(|(_, a), (_, b)| handled(a).total_cmp(&handled(b)))?;
        let (to, gets) = side(to).into_iter().max_by(|(_, a), (_, b)| a.idle.total_cmp(&b.idle))?;
        let (had_others, gets_others) = (1.0 - had.idle - handled(&had), 1.0 - gets.idle);
        let most_moved = handled(&had);
        (from != to).then_some(Self { from: (from, had_others.max(0.0)), to: (to, gets_others.max(0.0)), most_moved })
    }

    /// Better where the destination does clearly less else.
    pub fn direction(&self) -> Direction {
        match self.to.1 - self.from.1 {
            more if more > FLOOR => Direction::Worse,
            more if more < -FLOOR => Direction::Better,
            _ => Direction::Same,
        }
    }
}

impl fmt::Display for Interrupts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((from, had), (to, gets)) = (self.from, self.to);
        write!(
            out,
            "CPU {from}: {} busy with other work, {} handling interrupts; CPU {to}: {} busy",
            percent(had),
            percent(self.most_moved),
            percent(gets)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(busy: f64, softirq: f64) -> CpuUse {
        CpuUse { busy, softirq, idle: 1.0 - busy - softirq, ..CpuUse::default() }
    }

    #[test]
    fn interrupts_are_better_off_where_less_else_runs() {
        let usage = BTreeMap::from([(0, cpu(0.6, 0.3)), (1, cpu(0.1, 0.0)), (2, cpu(0.9, 0.05))]);
        let set = |text: &str| CpuSet::parse(text).unwrap();
        let moved = |to: &str| Interrupts::moved(&usage, &set("0"), &set(to)).unwrap();
        assert_eq!((moved("1").direction(), moved("2").direction()), (Direction::Better, Direction::Worse));
        assert_eq!(moved("1-2").to.0, 1, "the idlest of several");
        let said = moved("2").to_string();
        assert_eq!(said, "CPU 0: 60.0 % busy with other work, 30.0 % handling interrupts; CPU 2: 95.0 % busy");
        assert_eq!(Interrupts::moved(&usage, &set("0"), &set("0")), None);
        assert_eq!(Interrupts::moved(&usage, &set("0"), &set("7")), None);
        // Their own time does not make the CPU they come from worse than the one they go to.
        let alone = BTreeMap::from([(0, cpu(0.0, 0.9)), (1, cpu(0.5, 0.0))]);
        assert_eq!(Interrupts::moved(&alone, &set("0"), &set("1")).unwrap().direction(), Direction::Worse);
    }
}
