//! Descriptors that go from one process to another over a Unix socket, with a word on what they are.
//!
//! Whoever has no descriptor has no access: a memfd has no name, and `/proc/PID/fd` of another user's process cannot be opened. What is
//! received is checked as everything else of a peer is: one message, one descriptor, a known kind.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

use crate::fault::Refused;
use crate::region::{Error, kernel};

/// What a descriptor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// A ring in one region, to send by.
    ToSend,
    /// To receive by.
    ToReceive,
    /// The producer's half of a ring in two regions.
    ProducersHalf,
    /// The consumer's half.
    ConsumersHalf,
    /// A flow table.
    Flows,
    /// A bell that wakes whoever sends.
    ProducersBell,
    /// One that wakes whoever receives.
    ConsumersBell,
    /// Where a guest says which epoch of the flow table it has read.
    Acknowledged,
}

const KINDS: [Grant; 8] = [
    Grant::ToSend,
    Grant::ToReceive,
    Grant::ProducersHalf,
    Grant::ConsumersHalf,
    Grant::Flows,
    Grant::ProducersBell,
    Grant::ConsumersBell,
    Grant::Acknowledged,
];
const MAGIC: [u8; 4] = *b"kvmc";
const MESSAGE_BYTES: usize = 8;

/// Hands a descriptor over; `with` is the number of the machine at the other end of what it is for.
pub fn send(socket: impl AsFd, grant: Grant, with: u16, file: BorrowedFd<'_>) -> Result<(), Error> {
    let mut message = [0; MESSAGE_BYTES];
    message[..4].copy_from_slice(&MAGIC);
    message[4] = KINDS.iter().position(|&kind| kind == grant).unwrap_or(0) as u8;
    message[6..].copy_from_slice(&with.to_le_bytes());
    let files = [file];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(socket, &[IoSlice::new(&message)], &mut control, SendFlags::NOSIGNAL)
        .map_err(|error| kernel("handing a descriptor over")(error.into()))?;
    Ok(())
}

/// Takes the next one. None: the other side has ended.
pub fn receive(socket: impl AsFd) -> Result<Option<(Grant, u16, OwnedFd)>, Error> {
    let mut message = [0; MESSAGE_BYTES];
    // Room for more than one, so that more than one is seen, and closed.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut message)], &mut control, RecvFlags::CMSG_CLOEXEC)
        .map_err(|error| kernel("receiving a descriptor")(error.into()))?;
    let mut files: Vec<OwnedFd> = Vec::new();
    for ancillary in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = ancillary {
            files.extend(more);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    let kind = KINDS.get(usize::from(message[4]));
    match (kind, files.pop()) {
        (Some(&grant), Some(file))
            if files.is_empty() && received.bytes == MESSAGE_BYTES && message[..4] == MAGIC && message[5] == 0 =>
        {
            Ok(Some((grant, u16::from_le_bytes([message[6], message[7]]), file)))
        }
        _ => Err(Refused::NoGrant.into()),
    }
}
