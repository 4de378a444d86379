//! A machine that forwards between others: more machines than pairs are worth a ring each, or a policy that no guest may see.
//!
//! N machines with a ring for each ordered pair have N(N-1) of them, and nothing in between. Through a switch there are 2N, and each
//! frame is copied twice.

use crate::consumer::Consumer;
use crate::fault::PeerFault;
use crate::frames::FrameBuf;
use crate::producer::{Producer, Rest};
use crate::window::Window;

/// One machine's two rings, seen from the switch.
#[derive(Debug)]
pub struct Port<W> {
    /// What it sends.
    pub from: Consumer<W>,
    /// What it gets.
    pub to: Producer<W>,
}

/// What became of the frames that a switch has looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// Went on.
    pub frames: u64,
    /// No rule for them.
    pub without_rule: u64,
    /// Their machine's ring was full, or its slots too short: the switch waits for nobody.
    pub without_room: u64,
}

/// Forwards batches between its ports.
#[derive(Debug)]
pub struct Switch<W> {
    ports: Vec<Option<Port<W>>>,
    frames: FrameBuf,
    routes: Vec<u16>,
    forwarded: Forwarded,
}

impl<W: Window> Switch<W> {
    /// Over all ports, for batches of up to `batch` frames of up to `frame_bytes`.
    pub fn new(ports: Vec<Port<W>>, batch: usize, frame_bytes: usize) -> Switch<W> {
        let ports: Vec<_> = ports.into_iter().map(Some).collect();
        Switch {
            ports,
            frames: FrameBuf::new(batch, frame_bytes),
            routes: Vec::with_capacity(batch),
            forwarded: Forwarded::default(),
        }
    }

    /// One batch of each port. `route` reads a private copy of a frame: the port where it goes. A peer that breaks the rules loses its
    /// port, the others keep theirs: the ports that were lost, and why.
    pub fn turn(&mut self, mut route: impl FnMut(usize, &[u8]) -> Option<u16>) -> Vec<(usize, PeerFault)> {
        let mut lost = Vec::new();
        for at in 0..self.ports.len() {
            let Some(port) = &mut self.ports[at] else { continue };
            let most = self.frames.most();
            if let Err(fault) = port.from.pop_batch(&mut self.frames, most) {
                lost.push((at, fault));
                self.ports[at] = None;
                continue;
            }
            // Frames that go to one port in a row go on as one batch.
            self.routes.clear();
            const NOWHERE: u16 = u16::MAX;
            self.routes.extend(self.frames.iter().map(|frame| route(at, frame).unwrap_or(NOWHERE)));
            let mut frames = self.frames.iter();
            for run in self.routes.chunk_by(|a, b| a == b) {
                let batch: Vec<&[u8]> = frames.by_ref().take(run.len()).collect();
                let to = usize::from(run[0]);
                let Some(Some(port)) = self.ports.get_mut(to) else {
                    self.forwarded.without_rule += batch.len() as u64;
                    continue;
                };
                let mut rest = &batch[..];
                while !rest.is_empty() {
                    match port.to.push_batch(rest) {
                        Ok(pushed) => {
                            self.forwarded.frames += pushed.frames as u64;
                            let skipped = match pushed.rest {
                                Rest::None => 0,
                                Rest::TooLong => 1,
                                Rest::Full => rest.len() - pushed.frames,
                            };
                            self.forwarded.without_room += skipped as u64;
                            rest = &rest[pushed.frames + skipped..];
                        }
                        Err(fault) => {
                            self.forwarded.without_room += rest.len() as u64;
                            lost.push((to, fault));
                            self.ports[to] = None;
                            break;
                        }
                    }
                }
            }
        }
        lost
    }

    /// Since it was made.
    pub fn forwarded(&self) -> Forwarded {
        self.forwarded
    }

    /// A port that is still connected.
    pub fn port(&self, at: usize) -> Option<&Port<W>> {
        self.ports.get(at)?.as_ref()
    }
}
