//! How do two virtual machines of one host exchange packets without a switch in between, and without giving each other the keys?
//!
//! In: memory that both can map, and frames. Out: the frames on the other side, what it cost, and what the peer did wrong.
//!
//! ```text
//!   one machine                            shared                            the other
//!   Producer --[window opens]--> copy in, publish the head |
//!                                                          | head ->  copy out, check, give back  <--[window opens]-- Consumer
//! ```
//! The peer is another tenant. It may write any byte of the region at any time, never answer, or die; nothing that it writes is used
//! before it was copied and checked, and nothing waits for it without a bound.
//!
//! | what | where |
//! |---|---|
//! | memory that both map and nobody can resize | [`Region`] |
//! | how it is laid out | [`layout`] |
//! | made, taken, revoked | [`Ring`] |
//! | sends, receives | [`Producer`], [`Consumer`] with [`FrameBuf`] |
//! | when our own process can access it | [`Window`]: [`Open`], [`Pkey`], [`Mprotect`] |
//! | what the peer did wrong | [`PeerFault`], counted in [`ChannelStats`] |
//! | who may send what to whom, in epochs | [`Flows`] of the vSwitch, [`FlowView`] of each machine |
//! | which epoch each machine decides by | [`Acknowledger`] of the machine, [`Acknowledged`] of the vSwitch |
//! | hands descriptors over | [`grant`] |
//! | forwards between many | [`Switch`] |
//! | waits, wakes | [`Waiting`] by a [`Policy`]; [`Bell`], [`Doorbell`] |
//!
//! ```
//! use kvmscope_channel::{Access, Consumer, FrameBuf, Header, Lengths, Open, Producer, Region, Ring, Shape};
//!
//! let shape = Shape::for_frames(256, 1518, Lengths::InSlot)?;
//! let ours = Ring::shared(Header { shape, generation: 1, producer: 0, consumer: 1 })?;
//! // The descriptor goes to the peer by a socket; here it stays in this process.
//! let theirs = Ring::of(Region::received(ours.region().file().try_clone_to_owned()?, Access::ReadWrite)?)?;
//!
//! let mut producer = Producer::new(&ours, Open::over(ours.halves()));
//! let mut consumer = Consumer::new(&theirs, Open::over(theirs.halves()));
//! producer.push_batch(&[b"one", b"two"])?;
//!
//! let mut frames = FrameBuf::new(32, shape.frame_bytes());
//! assert_eq!(consumer.pop_batch(&mut frames, 32)?, 2);
//! assert_eq!(frames.iter().collect::<Vec<_>>(), [b"one", b"two"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Everybody builds on it: what it offers is documented, item by item.
#![deny(missing_docs)]

mod acks;
mod consumer;
mod doorbell;
mod fault;
mod flows;
mod frames;
pub mod grant;
pub mod hostile;
pub mod layout;
mod memory;
mod peer;
mod producer;
pub mod protocol;
mod region;
mod ring;
mod stats;
mod switch;
mod wait;
mod window;

pub use acks::{AckFault, Acknowledged, Acknowledger};
pub use consumer::Consumer;
pub use doorbell::Doorbell;
pub use fault::{PeerFault, Refused};
pub use flows::{Busy, FlowView, Flows, Full, Verdict};
pub use frames::FrameBuf;
pub use layout::{Header, Lengths, Shape};
pub use memory::{Access, Ticks};
pub use peer::Peer;
pub use producer::{Producer, Pushed, Rest};
pub use region::{Error, Region};
pub use ring::Ring;
pub use stats::{ChannelStats, INTERRUPTED_NS};
pub use switch::{Forwarded, Port, Switch};
pub use wait::{Bell, KICK_EVERY, Kicks, NAP, Policy, Waiting};
pub use window::{Halves, Mprotect, Open, Pkey, Raw, Window, WindowKind};
