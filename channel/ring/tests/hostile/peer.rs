//! The other side of a region, without any of our rules; and processes to be it in.

use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use kvmscope_channel::{Access, Consumer, Header, Lengths, Open, Producer, Region, Ring, Shape};
use rustix::mm::{MapFlags, ProtFlags, mmap};

pub(crate) const HEAD: usize = 4096;
pub(crate) const TAIL: usize = 4224;
pub(crate) const CONSUMER_WANTS: usize = 4352;
pub(crate) const SLOTS: usize = 8192;

/// All bytes of a region, to write as one likes. It is never unmapped: tests are short.
#[derive(Clone, Copy)]
pub(crate) struct Bytes {
    base: *mut u8,
    pub len: usize,
}

// SAFETY: it is shared memory that a peer writes at any time; all accesses are volatile or atomic.
unsafe impl Send for Bytes {}

impl Bytes {
    pub(crate) fn of(file: impl AsFd) -> Bytes {
        let len = rustix::fs::fstat(&file).unwrap().st_size as usize;
        let both = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel likes.
        let base = unsafe { mmap(ptr::null_mut(), len, both, MapFlags::SHARED, file, 0).unwrap() };
        Bytes { base: base.cast(), len }
    }

    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.len);
        // SAFETY: inside the mapping, and aligned.
        unsafe { AtomicU64::from_ptr(self.base.add(at).cast()) }
    }

    pub(crate) fn set(&self, at: usize, value: u64) {
        self.word(at).store(value, Ordering::SeqCst);
    }

    pub(crate) fn get(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::SeqCst)
    }

    pub(crate) fn set_byte(&self, at: usize, value: u8) {
        assert!(at < self.len);
        // SAFETY: inside the mapping.
        unsafe { self.base.add(at).write_volatile(value) };
    }

    pub(crate) fn byte(&self, at: usize) -> u8 {
        assert!(at < self.len);
        // SAFETY: inside the mapping.
        unsafe { self.base.add(at).read_volatile() }
    }
}

pub(crate) fn header(slots: u32) -> Header {
    let shape = Shape::for_frames(slots, 100, Lengths::InSlot).unwrap();
    Header { shape, generation: 1, producer: 7, consumer: 8 }
}

pub(crate) fn again(ring: &Ring) -> Ring {
    let file = ring.region().file().try_clone_to_owned().unwrap();
    Ring::of(Region::received(file, Access::ReadWrite).unwrap()).unwrap()
}

/// Both honest ends of a ring in one region, and the peer's hand in it.
pub(crate) fn pair(slots: u32) -> (Producer<Open>, Consumer<Open>, Bytes, Ring) {
    let ring = Ring::shared(header(slots)).unwrap();
    let (ours, theirs) = (again(&ring), again(&ring));
    let bytes = Bytes::of(ring.region().file());
    let producer = Producer::new(&ours, Open::over(ours.halves()));
    (producer, Consumer::new(&theirs, Open::over(theirs.halves())), bytes, ring)
}

/// This test program once more, running `test` alone with `role` in its environment; it inherits the file, whose number is in the
/// environment too.
pub(crate) fn start(test: &str, role: &str, file: Option<impl AsFd>) -> (Child, Option<OwnedFd>) {
    // A copy without the flag that closes it in children.
    let file = file.map(|file| rustix::io::dup(file).unwrap());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env("CHANNEL_ROLE", role);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(file) = &file {
        command.env("CHANNEL_FILE", file.as_raw_fd().to_string());
    }
    (command.spawn().unwrap(), file)
}

pub(crate) fn role() -> Option<String> {
    std::env::var("CHANNEL_ROLE").ok()
}

/// The file that this process inherited.
pub(crate) fn inherited() -> OwnedFd {
    let number = std::env::var("CHANNEL_FILE").unwrap();
    std::fs::File::options().read(true).write(true).open(format!("/proc/self/fd/{number}")).unwrap().into()
}

/// Both outputs of a child that has ended.
pub(crate) fn said(child: &mut Child) -> String {
    let mut all = String::new();
    child.stdout.take().unwrap().read_to_string(&mut all).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut all).unwrap();
    all
}
