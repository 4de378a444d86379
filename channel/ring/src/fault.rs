//! What can be wrong: with a region before it is used, and with a peer while it is.

use thiserror::Error;

/// Why a region is not used.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refused {
    /// Masks need a power of two.
    #[error("{slots} slots: a power of two from 1 to 1,048,576 is needed")]
    Slots {
        /// Asked for.
        slots: u32,
    },
    /// Slots begin cache lines.
    #[error("slots of {slot_bytes} bytes: a multiple of 64 up to 65,536 is needed")]
    SlotBytes {
        /// Asked for.
        slot_bytes: u32,
    },
    /// Its first bytes are not ours.
    #[error("the region does not begin with a ring's header")]
    NoRing,
    /// Of another kvmscope.
    #[error("the ring has layout {version}, this program knows layout {}", crate::layout::VERSION)]
    Version {
        /// That it has.
        version: u32,
    },
    /// Its header promises more than there is.
    #[error("the region has {has} bytes, its ring needs {needs}")]
    Size {
        /// Of the file.
        has: usize,
        /// By its header.
        needs: usize,
    },
    /// Whoever holds it could shrink it, and every access beyond its end would end this process.
    #[error(
        "the region can still be resized by whoever holds it: it lacks the seals F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_SEAL"
    )]
    Unsealed,
    /// Its pages can be taken away though it keeps its size: every access would end this process.
    #[error(
        "the region is no memory of tmpfs: a peer can punch holes into huge pages, and a read of one that cannot come back ends the reader"
    )]
    Pages,
    /// A poll of it may wait for its maker.
    #[error("the bell is no eventfd")]
    Bell,
    /// What came by a socket is none of ours.
    #[error("the message is not one descriptor with a word on what it is")]
    NoGrant,
    /// Both halves of a ring must describe the same ring.
    #[error("the two halves describe different rings")]
    Halves,
}

/// What the peer did, or did not do. After all but [`PeerFault::Stalled`] the channel is closed and its memory is not looked at
/// any more.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum PeerFault {
    /// It published an index that cannot be.
    #[error("the peer's index is {seen}, ours is {local}: it cannot be")]
    Index {
        /// What it wrote.
        seen: u64,
        /// What it must fit.
        local: u64,
    },
    /// A frame longer than its slot.
    #[error("slot {slot} claims {len} bytes, more than it has")]
    Length {
        /// Free-running number.
        slot: u64,
        /// What stood there.
        len: u16,
    },
    /// A frame of a connection that never was.
    #[error("a frame claims generation {seen}, which has not begun")]
    Generation {
        /// The low 8 bits that stood there.
        seen: u32,
    },
    /// It made no room, or sent nothing, for as long as the caller wanted to wait.
    #[error("the peer did nothing for {ns} ns")]
    Stalled {
        /// How long that was.
        ns: u64,
    },
    /// It ended, or revoked what it had granted.
    #[error("the peer is gone")]
    Gone,
}

impl PeerFault {
    /// Kinds of faults, in the order in which [`crate::ChannelStats`] counts them.
    pub const KINDS: [&str; 5] = ["index", "length", "generation", "stalled", "gone"];

    pub(crate) fn kind(self) -> usize {
        match self {
            PeerFault::Index { .. } => 0,
            PeerFault::Length { .. } => 1,
            PeerFault::Generation { .. } => 2,
            PeerFault::Stalled { .. } => 3,
            PeerFault::Gone => 4,
        }
    }

    pub(crate) fn closes(self) -> bool {
        !matches!(self, PeerFault::Stalled { .. })
    }
}
