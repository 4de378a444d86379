//! The switch between several machines: what it forwards, and what it has no room for.

use super::super::Plan;
use super::super::frames::number_of;
use super::super::machines::{Granted, cpu_of};
use super::super::peer::Link;
use super::super::rings::settle;
use super::super::side::{Seen, Span, Watch};
use super::RECEIVER_AT;
use super::worker::{Worker, work};
use base::channel::{SWITCH, Setup};
use channel::{Open, Port, Shape, Switch};
use serde::{Deserialize, Serialize};
use std::os::unix::net::UnixStream;

#[derive(Serialize, Deserialize)]
pub(super) struct Switched {
    pub(super) seen: Seen,
    /// Frames that went on, by the machine that they went to.
    pub(super) delivered: Vec<u64>,
    pub(super) dropped: u64,
}

/// The switch: forwards by what stands in a frame, until all that was sent has gone somewhere.
pub(super) fn forward(
    plan: &Plan,
    setup: &Setup,
    shape: Shape,
    socket: UnixStream,
    link: &mut Link,
) -> Result<Switched, String> {
    let cpu = cpu_of(&plan.machines.cpus, setup.vms);
    settle(plan, cpu, SWITCH).map_err(|error| error.to_string())?;
    let vms = setup.vms as usize;
    let granted = Granted::attach(&socket, 2 * vms)?;
    let ports = granted.from.into_iter().zip(granted.to).map(|((_, from), (_, to))| Port { from, to }).collect();
    let mut forwarder = Forwarder { switch: Switch::new(ports, setup.batch as usize, shape.frame_bytes()), done: 0 };
    let seen = work(plan, setup, cpu, link, &mut forwarder)?;
    let switch = forwarder.switch;
    let delivered = (0..vms).map(|port| switch.port(port).map_or(0, |port| port.to.stats().packets)).collect();
    Ok(Switched { seen, delivered, dropped: switch.forwarded().without_room })
}

struct Forwarder {
    switch: Switch<Open>,
    /// Frames that went on, or nowhere.
    done: u64,
}

impl Worker for Forwarder {
    fn done(&self) -> u64 {
        self.done
    }

    fn turn(&mut self, _: bool, _: Span, _: &mut Watch) -> Result<bool, String> {
        let lost = self.switch.turn(|_, frame| number_of(frame).map(|number| (number >> RECEIVER_AT) as u16));
        if let Some((port, fault)) = lost.first() {
            return Err(format!("machine {port} broke the rules: {fault}"));
        }
        let forwarded = self.switch.forwarded();
        let before = self.done;
        self.done = forwarded.frames + forwarded.without_room + forwarded.without_rule;
        Ok(self.done > before)
    }
}
