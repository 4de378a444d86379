//! Which nested guest is it, and how deep?
//!
//! L0 runs guests of guests of guests as nested guests too. Levels form a tree over control blocks: a block entered for
//! the first time after a nested hypervisor's own entry request, which L0 reflected, is that hypervisor's guest.

use crate::state::TracedLevel;

/// A nested guest as its control block names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Address of vmcb12 or vmcs12 in the guest hypervisor's memory.
    pub vmcb: u64,
    /// 2 for a guest of L1, 3 for a guest of that, ...
    pub depth: u8,
    pub entries: u64,
}

/// The nested guests of one thread.
#[derive(Debug, Clone, Default)]
pub struct Contexts {
    /// In the order of their first entries.
    pub all: Vec<Context>,
    current: Option<usize>,
    /// The nested hypervisor whose entry request was reflected, and whose guest will run next.
    parent: Option<usize>,
}

impl Contexts {
    /// Level of the nested guest that runs or ran last; 2 where no event names it.
    #[inline]
    pub fn level(&self) -> TracedLevel {
        TracedLevel::at(self.current.map_or(2, |current| self.all[current].depth))
    }

    /// Control block of the nested guest that runs or ran last.
    #[inline]
    pub fn vmcb(&self) -> Option<u64> {
        self.current.map(|current| self.all[current].vmcb)
    }

    /// The entry request of the current nested guest was reflected: the next new one is its child.
    pub(crate) fn asks_for_child(&mut self) {
        self.parent = self.current;
    }

    /// Finds or makes the nested guest behind `vmcb`, which is about to run.
    pub fn enter(&mut self, vmcb: u64) {
        let known = self.all.iter().position(|context| context.vmcb == vmcb);
        let current = known.unwrap_or_else(|| {
            let above = self.parent.map_or(1, |parent| self.all[parent].depth);
            self.all.push(Context { vmcb, depth: above.saturating_add(1), entries: 0 });
            self.all.len() - 1
        });
        if self.parent != Some(current) {
            self.parent = None;
        }
        self.all[current].entries += 1;
        self.current = Some(current);
    }
}
