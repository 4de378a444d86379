//! How many frames does our ring carry against DPDK's `rte_ring`, between the same two threads, with the same frames copied in, copied out
//! and looked at?
//!
//! In: the CPU that sends, the CPU that receives, bytes of a frame (a multiple of 8, 16 at least), frames of a batch, slots, turns. Out: Mpps
//! of our ring and of DPDK's for each turn, one turn a line. Exit status 1 if a frame did not arrive as it was sent.
//!
//! ```text
//! receiver   turn N, ring N modulo 2 --.                 time is over --.            frames are all there, turn N + 1
//! sender                               '--> batch, batch, batch ..      '--> so many were sent
//! ```
//! A host changes its speed from one second to the next (another core, another cache below the vCPU), so a turn is 6 ms long and both rings
//! have one in 12: what the host does meets both.

use channel::{Access, Consumer, FrameBuf, Header, Lengths, Open, Producer, Region, Ring, Shape};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Of a turn, and of that the part that does not count: caches and branches are those of the other ring.
const TURN: Duration = Duration::from_millis(6);
const WARM_UP: Duration = Duration::from_millis(1);

unsafe extern "C" {
    fn rte_make(slots: u32, bytes: u32) -> i32;
    fn rte_push(frames: *const u8, count: u32) -> u32;
    fn rte_pop(frames: *mut u8, count: u32) -> u32;
}

/// What receiver and sender tell each other, each word on a line of its own.
#[repr(align(128))]
struct Word(AtomicU64);

static TURN_NUMBER: Word = Word(AtomicU64::new(0));
static OVER: Word = Word(AtomicU64::new(0));
static DONE: Word = Word(AtomicU64::new(0));
static SENT: Word = Word(AtomicU64::new(0));

/// After the last turn.
const LAST: u64 = u64::MAX;

fn bind(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).expect("the CPU is available");
}

/// Writes a number and, at the end, what makes the exclusive or of all words 0.
fn number(frame: &mut [u8], number: u64, pattern: u64) {
    let end = frame.len() - 8;
    frame[..8].copy_from_slice(&number.to_le_bytes());
    frame[end..].copy_from_slice(&(pattern ^ number).to_le_bytes());
}

/// Whether it is the frame of that number, whole.
fn is_whole(frame: &[u8], number: u64) -> bool {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let sum = frame.chunks_exact(8).fold(0, |sum, bytes| sum ^ word(bytes));
    sum == 0 && word(&frame[..8]) == number
}

fn send(cpu: usize, ring: &Ring, bytes: usize, batch: usize) {
    bind(cpu);
    let mut producer = Producer::new(ring, Open::over(ring.halves())).polled();
    let mut ours = vec![vec![0x5a; bytes]; batch];
    let mut theirs = vec![0x5a_u8; bytes * batch];
    let pattern = ours[0][8..bytes - 8].chunks_exact(8).fold(0, |sum, _| sum ^ 0x5a5a_5a5a_5a5a_5a5a);
    let mut turn = 0;
    loop {
        let next = TURN_NUMBER.0.load(Ordering::Acquire);
        if next == turn {
            std::hint::spin_loop();
            continue;
        }
        if next == LAST {
            return;
        }
        turn = next;
        let (mut count, mut done) = (0, batch);
        while OVER.0.load(Ordering::Relaxed) != turn {
            let is_full = done == batch;
            done = if is_full { 0 } else { done };
            done += if turn.is_multiple_of(2) {
                for frame in ours.iter_mut().filter(|_| is_full) {
                    number(frame, count, pattern);
                    count += 1;
                }
                producer.push_batch(&ours[done..]).map_or(0, |pushed| pushed.frames)
            } else {
                for frame in theirs.chunks_exact_mut(bytes).filter(|_| is_full) {
                    number(frame, count, pattern);
                    count += 1;
                }
                // SAFETY: so many frames lie there.
                unsafe { rte_push(theirs.as_ptr().add(bytes * done), (batch - done) as u32) as usize }
            };
        }
        SENT.0.store(count - (batch - done) as u64, Ordering::Relaxed);
        DONE.0.store(turn, Ordering::Release);
    }
}

/// Receives one turn: millions of frames per second, and frames that were wrong.
fn receive(turn: u64, mut pop: impl FnMut(u64) -> (u64, u64)) -> (f64, u64) {
    TURN_NUMBER.0.store(turn, Ordering::Release);
    let begun = Instant::now();
    let (mut frames, mut wrong, mut counted_from, mut rate) = (0, 0, None, None);
    loop {
        let (more, bad) = pop(frames);
        frames += more;
        wrong += bad;
        let at = begun.elapsed();
        if counted_from.is_none() && at >= WARM_UP {
            counted_from = Some((frames, at));
        }
        if let (None, Some((before, from))) = (rate, counted_from.filter(|_| at >= TURN)) {
            rate = Some((frames - before) as f64 / (at - from).as_secs_f64() / 1e6);
            OVER.0.store(turn, Ordering::Relaxed);
        }
        if rate.is_some() && DONE.0.load(Ordering::Acquire) == turn && frames >= SENT.0.load(Ordering::Relaxed) {
            return (rate.unwrap_or_default(), wrong);
        }
    }
}

fn main() -> ExitCode {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let &[sends, receives, bytes, batch, slots, turns] = &given[..] else {
        eprintln!("usage: rings CPU CPU BYTES BATCH SLOTS TURNS");
        return ExitCode::from(2);
    };
    if bytes < 16 || !bytes.is_multiple_of(8) || batch == 0 {
        eprintln!("a frame has a number and a checksum, of 8 bytes each, and a batch has a frame");
        return ExitCode::from(2);
    }
    // SAFETY: it is called once, before the other thread is there.
    if unsafe { rte_make(slots as u32, bytes as u32) } != 0 {
        eprintln!("DPDK makes no ring");
        return ExitCode::FAILURE;
    }
    let shape = Shape::for_frames(slots as u32, bytes as u32, Lengths::Apart).expect("such a ring exists");
    let ours = Ring::shared(Header { shape, generation: 1, producer: 0, consumer: 1 }).expect("a ring is made");
    let file = ours.region().file().try_clone_to_owned().expect("its file has a second descriptor");
    let again = Region::received(file, Access::ReadWrite).and_then(Ring::of).expect("it is mapped once more");
    let sender = std::thread::spawn(move || send(sends, &ours, bytes, batch));
    bind(receives);
    let mut consumer = Consumer::new(&again, Open::over(again.halves())).polled();
    let (mut out, mut flat) = (FrameBuf::new(batch, shape.frame_bytes()), vec![0_u8; bytes * batch]);
    let mut wrong = 0;
    for turn in 1..=turns as u64 {
        let (ring, bad) = receive(2 * turn, |from| {
            let popped = consumer.pop_batch(&mut out, batch).unwrap_or(0) as u64;
            let bad = out.iter().zip(from..).filter(|(frame, number)| !is_whole(frame, *number)).count();
            (popped, bad as u64)
        });
        let (theirs, worse) = receive(2 * turn + 1, |from| {
            // SAFETY: there is room for so many frames.
            let popped = unsafe { rte_pop(flat.as_mut_ptr(), batch as u32) } as usize;
            let frames = flat[..bytes * popped].chunks_exact(bytes).zip(from..);
            let bad = frames.filter(|(frame, number)| !is_whole(frame, *number)).count();
            (popped as u64, bad as u64)
        });
        wrong += bad + worse;
        println!("{ring:.2} {theirs:.2}");
    }
    TURN_NUMBER.0.store(LAST, Ordering::Release);
    let ended = sender.join().is_ok();
    if wrong > 0 || !ended {
        eprintln!("{wrong} frames did not arrive as they were sent");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
