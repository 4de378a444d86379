//! Steps being emitted: what is known of the present position.

use crate::ctf::program::Op;

/// Steps being emitted.
pub(super) struct Body {
    pub(super) ops: Vec<Op>,
    /// Bits since the base.
    pub(super) at: u64,
    /// The base is a multiple of so many bits.
    pub(super) base: u32,
}

impl Body {
    pub(super) fn new(base: u32) -> Self {
        Self { ops: Vec::new(), at: 0, base }
    }

    /// Moves to the next multiple of `bits`.
    pub(super) fn align(&mut self, bits: u32) {
        if bits <= self.base {
            self.at = self.at.next_multiple_of(u64::from(bits.max(1)));
            return;
        }
        self.rebase();
        if bits > self.base {
            self.ops.push(Op::Align(bits));
            self.base = bits;
        }
    }

    /// Makes the present position the base.
    pub(super) fn rebase(&mut self) {
        if self.at > 0 {
            self.ops.push(Op::Advance(self.at));
            self.base = self.base.min(1 << self.at.trailing_zeros().min(16));
            self.at = 0;
        }
    }

    /// Position of the next fixed-size step, near enough to the base.
    pub(super) fn place(&mut self) -> u32 {
        if u32::try_from(self.at).is_err() {
            self.rebase();
        }
        self.at as u32
    }
}
