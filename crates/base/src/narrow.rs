//! What of an answer is wanted: a level, a VM, a vCPU, a window of time.

use crate::{Level, Span};

/// How the user narrowed what is answered and drawn; nothing said is everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Narrow {
    /// Only rows of this level.
    pub level: Option<Level>,
    /// Only this VM.
    pub vm: Option<String>,
    /// Only this vCPU.
    pub vcpu: Option<u32>,
    /// Only this window, in ns since the recording's first event.
    pub window: Option<Span>,
    /// Whose record of a thing counts where several levels saw it; `None`: the outermost one's.
    pub witness: Option<Level>,
}

impl Narrow {
    /// True if something is left out.
    pub fn is_narrowed(&self) -> bool {
        *self != Self::default()
    }

    /// Whether `level` is wanted.
    pub fn wants_level(&self, level: Level) -> bool {
        self.level.is_none_or(|wanted| wanted == level)
    }

    /// Whether the VM is wanted.
    pub fn wants_vm(&self, vm: &str) -> bool {
        self.vm.as_deref().is_none_or(|wanted| wanted == vm)
    }

    /// Whether a vCPU of the VM is wanted.
    pub fn wants_vcpu(&self, vm: &str, vcpu: u32) -> bool {
        self.wants_vm(vm) && self.vcpu.is_none_or(|wanted| wanted == vcpu)
    }
}
