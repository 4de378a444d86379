//! What does a guest do that is one side of a channel? It measures one setup after the other, and writes a line for each to its disk.
//!
//! In: [`Ends`], the orders of the initramfs that both guests boot from, and which side it is, in the arguments of its kernel.
//! Out: lines of JSON on the disk.

use super::control::{Control, Role, Word};
use super::interrupts::Interrupts;
use super::{DOORBELL, PLAIN};
use crate::Plan;
use crate::peer::Cues;
use crate::rings::{self, HEAD_START, Received, Sent};
use crate::side::Span;
use base::channel::{SLICE_NS, Setup};
use channel::{Consumer, Doorbell, Halves, Header, Policy, Producer, Region, Ring, Ticks, Waiting, Window};
use lab::Error;
use labs::machine::inside::{Work, details, say};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Slots of the guest's PCI bus that the devices are in.
pub(super) const SLOTS: [(&str, u8); 2] = [(PLAIN, 0x10), (DOORBELL, 0x11)];
/// A guest may boot so much longer than the other, or be kept from running.
const PATIENCE: Duration = Duration::from_secs(120);
/// Clocks that are further apart say nothing of which slices of the other side belong to one of ours.
const MOST_SLICES_APART: u64 = 10;

/// To be one side of a channel.
pub const SIDE: Work =
    Work { name: "channel", run: |orders| details::<Ends>(orders)?.run(Path::new("/"), &mut |line| say(line)) };

/// Both sides of a channel between guests.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ends {
    pub(super) disk: String,
    /// All that is measured, in this order.
    pub(super) plan: Plan,
    /// Of the counter, in a nanosecond: an emulated counter is the host's and a constant, and the host has the better clock.
    pub(super) per_ns: f64,
}

/// What the side that sends answers.
#[derive(Serialize, Deserialize)]
pub(super) struct SentThere {
    sent: Sent,
    /// The other side began later by this much, or less.
    apart_ns: u64,
}

impl SentThere {
    /// With a slice called dirty where any that may have been at the same time as that one of the other side is.
    pub(super) fn aligned(self) -> Sent {
        let SentThere { mut sent, apart_ns } = self;
        let apart = apart_ns.div_ceil(SLICE_NS);
        let dirty = &sent.seen.dirty;
        let is_dirty = |slice: usize| dirty.get(slice).copied().unwrap_or(true);
        let around = |slice: usize| apart > MOST_SLICES_APART || (slice..=slice + apart as usize).any(is_dirty);
        sent.seen.dirty = (0..dirty.len()).map(around).collect();
        sent
    }
}

impl Ends {
    /// Measures everything on this machine, whose files lie below `root`.
    pub(crate) fn run(&self, root: &Path, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let arguments = root.join("proc/cmdline");
        let text = std::fs::read_to_string(&arguments).map_err(|error| Error::io(&arguments, error))?;
        let role = Role::of_arguments(&text)
            .ok_or_else(|| Error::Absent(format!("the guest was not told its side: {}", text.trim())))?;
        let wanted = |path: &str| self.plan.setups.iter().any(|setup| setup.path == path);
        let devices = SLOTS.into_iter().filter(|(path, _)| wanted(path));
        let devices = devices.map(|(path, slot)| Ok((path, Device::of(root, path, slot)?)));
        let devices = devices.collect::<Result<Vec<_>, Error>>()?;
        let io = |error| Error::io(&self.disk, error);
        let mut disk = File::options().write(true).open(root.join(&self.disk)).map_err(io)?;
        let all = self.plan.setups.len();
        for (number, setup) in (1..).zip(&self.plan.setups) {
            let Some((_, device)) = devices.iter().find(|(path, _)| *path == setup.path) else {
                return Err(Error::WrongUse(format!("there is no path '{}' between guests", setup.path)));
            };
            say(&format!("{role} {number} of {all}"));
            let mut line = self.answer(role, device, number, setup).map_err(|error| io(error.into()))?;
            line.push(b'\n');
            disk.write_all(&line).and_then(|()| disk.sync_data()).map_err(io)?;
        }
        Ok(())
    }

    /// One side of one setup, as a line.
    fn answer(&self, role: Role, device: &Device, number: u64, setup: &Setup) -> serde_json::Result<Vec<u8>> {
        let said = |error: Error| error.to_string();
        match role {
            Role::Sends => serde_json::to_vec(&self.sends(device, number, setup).map_err(said)),
            Role::Receives => serde_json::to_vec(&self.receives(device, number, setup).map_err(said)),
        }
    }

    fn sends(&self, device: &Device, number: u64, setup: &Setup) -> Result<SentThere, Error> {
        let side = Side::of(self, device, number, setup, Role::Sends)?;
        let sent = match setup.window.as_str() {
            "none" => side.sends(rings::open),
            "pkey" => side.sends(rings::pkey),
            "mprotect" => side.sends(rings::mprotect),
            other => Err(Error::WrongUse(format!("there is no window '{other}'"))),
        };
        if sent.is_err() {
            side.control.fail();
        }
        // The memory becomes the next setup's.
        side.control.await_end()?;
        sent
    }

    fn receives(&self, device: &Device, number: u64, setup: &Setup) -> Result<Received, Error> {
        let side = Side::of(self, device, number, setup, Role::Receives)?;
        let received = match setup.window.as_str() {
            "none" => side.receives(rings::open),
            "pkey" => side.receives(rings::pkey),
            "mprotect" => side.receives(rings::mprotect),
            other => Err(Error::WrongUse(format!("there is no window '{other}'"))),
        };
        match received {
            Ok(_) => side.control.reach(Word::Finished),
            Err(_) => side.control.fail(),
        }
        received
    }
}

struct Device {
    directory: PathBuf,
    interrupts: Option<Interrupts>,
}

impl Device {
    fn of(root: &Path, path: &str, slot: u8) -> Result<Device, Error> {
        let directory = root.join(format!("sys/bus/pci/devices/0000:00:{slot:02x}.0"));
        let enable = directory.join("enable");
        std::fs::write(&enable, "1").map_err(|error| Error::io(enable, error))?;
        let interrupts = (path == DOORBELL).then(|| Interrupts::of(root, &directory)).transpose()?;
        if let Some(interrupts) = &interrupts {
            interrupts.try_out(&Doorbell::of_device(&directory, |own| own, 0).map_err(rings::refused)?)?;
        }
        Ok(Device { directory, interrupts })
    }

    fn memory(&self) -> PathBuf {
        self.directory.join("resource2")
    }

    /// How a side waits that does not poll.
    fn waiting(&self, policy: Policy, ticks: Ticks) -> Result<Option<Waiting>, Error> {
        if policy == Policy::Poll {
            return Ok(None);
        }
        let Some(interrupts) = &self.interrupts else {
            return Err(Error::Absent(format!("{} has no interrupts", self.directory.display())));
        };
        // There are two peers, 0 and 1.
        let doorbell = Doorbell::of_device(&self.directory, |own| u16::from(own == 0), 0).map_err(rings::refused)?;
        Ok(Some(Waiting::new(policy, ticks, interrupts.bell()?, doorbell, None)))
    }
}

struct Side<'a> {
    plan: &'a Plan,
    setup: &'a Setup,
    device: &'a Device,
    ticks: Ticks,
    number: u64,
    region: Region,
    control: Control,
}

impl<'a> Side<'a> {
    fn of(ends: &'a Ends, device: &'a Device, number: u64, setup: &'a Setup, role: Role) -> Result<Side<'a>, Error> {
        let plan = &ends.plan;
        let region = Region::of_device(&device.memory()).map_err(rings::refused)?;
        let patience = PATIENCE + plan.length + plan.warm_up;
        let control = Control::of(&device.memory(), region.bytes(), role, number, patience)?;
        Ok(Side { plan, setup, device, ticks: Ticks::new(ends.per_ns), number, region, control })
    }

    /// The ring that the side that sends lays, and the other expects.
    fn header(&self) -> Result<Header, Error> {
        let shape = rings::shape(self.plan, self.setup)?;
        Ok(Header { shape, generation: self.number as u32, producer: 0, consumer: 1 })
    }

    fn span(&self, begun: u64) -> Span {
        let from = begun + self.ticks.of_ns((HEAD_START + self.plan.warm_up).as_nanos() as u64);
        Span { from, until: from + self.ticks.of_ns(self.plan.length.as_nanos() as u64), per_ns: self.ticks.per_ns() }
    }

    fn is_timed(&self) -> bool {
        self.setup.window != "none"
    }

    fn sends<W: Window>(&self, over: impl Fn(Halves) -> Result<W, Error>) -> Result<SentThere, Error> {
        let ring = Ring::lay(self.header()?, self.region.clone()).map_err(rings::refused)?;
        let mut waiting = self.device.waiting(rings::policy(self.setup)?, self.ticks)?;
        let mut window = over(ring.halves())?;
        let window_ns = if self.is_timed() { rings::price(&mut window, self.ticks) } else { 0.0 };
        let producer = Producer::new(&ring, window);
        let producer = if waiting.is_none() { producer.polled() } else { producer };
        let mut producer = if self.is_timed() { producer.timed(self.ticks) } else { producer };
        self.control.reach(Word::Laid);
        self.control.await_word(Word::Ready)?;
        let (begun, apart) = self.control.begin(self.ticks)?;
        let seen = rings::send(self.plan, self.setup, &mut producer, waiting.as_mut(), self.span(begun))?;
        self.control.sent(producer.stats().packets);
        let sent = Sent { seen, window_ns, kicks: producer.stats().kicks };
        Ok(SentThere { sent, apart_ns: self.ticks.ns(apart) })
    }

    fn receives<W: Window>(&self, over: impl Fn(Halves) -> Result<W, Error>) -> Result<Received, Error> {
        self.control.await_word(Word::Laid)?;
        let ring = Ring::of(self.region.clone()).map_err(rings::refused)?;
        let expected = self.header()?;
        if ring.header() != expected {
            return Err(Error::Malformed(format!("the ring is {:?}, and not {expected:?}", ring.header())));
        }
        let waiting = self.device.waiting(rings::policy(self.setup)?, self.ticks)?;
        let consumer = Consumer::new(&ring, over(ring.halves())?);
        let consumer = if waiting.is_none() { consumer.polled() } else { consumer };
        let consumer = if self.is_timed() { consumer.timed(self.ticks) } else { consumer };
        let mut cues = ByControl { side: self, failed: None };
        let received = rings::receive(self.plan, self.setup, consumer, waiting, &mut cues, expected.shape);
        received.map_err(|why| cues.failed.unwrap_or(Error::Died(why)))
    }
}

/// The cues of the side that receives.
struct ByControl<'a> {
    side: &'a Side<'a>,
    failed: Option<Error>,
}

impl Cues for ByControl<'_> {
    fn ready(&mut self) -> Option<Span> {
        self.side.control.reach(Word::Ready);
        match self.side.control.begun() {
            Ok(begun) => Some(self.side.span(begun)),
            Err(error) => {
                self.failed = Some(error);
                None
            }
        }
    }

    fn sent(&mut self) -> Option<u64> {
        self.side.control.frames()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use labs::bench::launch::ns_per_tick;
    use std::process::Command;

    /// The variable that tells the process of the other side where the device is.
    const DEVICE: &str = "KVMSCOPE_TEST_DEVICE";
    const BYTES: u64 = 1 << 20;

    /// Three setups, of which the second cannot be.
    fn ends() -> Ends {
        let setup = |window: &str, size_bytes, batch| Setup {
            path: PLAIN.to_owned(),
            window: window.to_owned(),
            size_bytes,
            batch,
            policy: "poll".to_owned(),
            vms: 2,
        };
        let plan = Plan {
            cpus: (0, 0),
            pair: "same CPU".to_owned(),
            setups: vec![setup("none", 64, 32), setup("no such", 64, 1), setup("mprotect", 1518, 8)],
            ..super::super::super::tests::plan()
        };
        Ends { disk: String::new(), plan, per_ns: 1.0 / ns_per_tick() }
    }

    fn all(role: Role, directory: &Path) -> Vec<Vec<u8>> {
        let (ends, device) = (ends(), Device { directory: directory.to_owned(), interrupts: None });
        let setups = (1..).zip(&ends.plan.setups);
        setups.map(|(number, setup)| ends.answer(role, &device, number, setup).unwrap()).collect()
    }

    /// Run as a test it does nothing; [`two_processes_measure_one_setup_after_the_other`] starts it with a device.
    #[test]
    fn the_side_that_receives() {
        let Some(directory) = std::env::var_os(DEVICE).map(PathBuf::from) else { return };
        let lines = all(Role::Receives, &directory).join(&b'\n');
        std::fs::write(directory.join("answers"), lines).unwrap();
    }

    #[test]
    fn two_processes_measure_one_setup_after_the_other() {
        let directory = tempfile::tempdir().unwrap();
        let file = File::create(directory.path().join("resource2")).unwrap();
        file.set_len(BYTES).unwrap();
        let name = format!("{}::the_side_that_receives", module_path!().split_once("::").unwrap().1);
        let mut other = Command::new(std::env::current_exe().unwrap());
        let mut other = other.args(["--exact", &name]).env(DEVICE, directory.path()).spawn().unwrap();
        let sent = all(Role::Sends, directory.path());
        assert!(other.wait().unwrap().success());
        let received = std::fs::read(directory.path().join("answers")).unwrap();
        let received: Vec<_> = received.split(|byte| *byte == b'\n').collect();
        assert_eq!((sent.len(), received.len()), (3, 3));
        for setup in [0, 2] {
            let there: Result<SentThere, String> = serde_json::from_slice(&sent[setup]).unwrap();
            let there = there.unwrap();
            assert_eq!((there.sent.seen.frames.len(), there.sent.window_ns > 0.0), (5_000, setup == 2));
            let received: serde_json::Value = serde_json::from_slice(received[setup]).unwrap();
            for wrong in ["lost", "duplicated", "reordered", "torn"] {
                assert_eq!(received["Ok"][wrong], 0, "setup {setup}: {received}");
            }
            assert!(received["Ok"]["in_time"].as_u64().unwrap() > 0, "setup {setup}");
        }
        for line in [&sent[1], received[1]] {
            let failed: Result<(), String> = serde_json::from_slice(line).unwrap();
            assert!(failed.unwrap_err().contains("no window"), "each side fails by itself, and goes on");
        }
    }

    #[test]
    fn slices_that_may_have_been_at_the_same_time_are_dirty_together() {
        let seen = |dirty: &[bool]| crate::side::Seen {
            side: base::channel::Side::default(),
            frames: vec![0; dirty.len()],
            dirty: dirty.to_vec(),
        };
        let aligned = |apart_ns| {
            let sent = Sent { seen: seen(&[false, false, true, false, false]), window_ns: 0.0, kicks: 0 };
            let dirty = SentThere { sent, apart_ns }.aligned().seen.dirty;
            (0..5).filter(|&slice| dirty[slice]).collect::<Vec<_>>()
        };
        assert_eq!(aligned(0), [2]);
        assert_eq!(aligned(20_000), [1, 2, 4], "what came after the last slice nobody saw");
        assert_eq!(aligned(SLICE_NS + 1), [0, 1, 2, 3, 4]);
        assert_eq!(aligned(1_000 * SLICE_NS), [0, 1, 2, 3, 4]);
    }
}
