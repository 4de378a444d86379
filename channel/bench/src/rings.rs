//! One setup: a ring, a window on each side, a process on each CPU.

use super::Plan;
use super::frames::{Arrived, Batch};
use super::gauges::Gauges;
use super::peer::{Cues, Peer};
use super::side::{Counted, Look, Seen, Span, Watch, now};
use base::CpuSet;
use base::channel::{RECEIVER, Run, SENDER, SLICE_NS, Setup};
use channel::{
    Access, Bell, Consumer, FrameBuf, Halves, Header, Lengths, Mprotect, Open, PeerFault, Pkey, Policy, Producer,
    Region, Ring, Shape, Ticks, Waiting, Window,
};
use lab::Error;
use lab::setting::thread;
use labs::bench::launch::ns_per_tick;
use labs::bench::priority;
use rustix::thread::set_name;
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::time::Duration;

/// An adaptive side spins for so long before it sleeps: some ten wake-ups.
const SPIN_NS: u64 = 50_000;
/// Between the last word to the other side and the first frame.
pub(super) const HEAD_START: Duration = Duration::from_millis(2);
/// Frames on their way have so long to arrive after the last was sent.
const DRAINS_WITHIN_NS: u64 = 2_000_000_000;
/// Beyond that, the side that sends has so long to say how many they were: it may have lost its CPU.
pub(super) const SAYS_WITHIN: Duration = Duration::from_secs(20);
/// It did not: how many were lost is unknown then.
pub(super) const NEVER_SAID: &str = "the side that sends never said how many frames it had sent";
/// A side that sleeps looks at the time at least this often.
const IDLE: Duration = Duration::from_millis(20);
/// Windows that are timed with nothing inside, in groups of so many.
const WINDOWS: u32 = 100;
const GROUPS: usize = 31;

/// What the side that sends answers.
#[derive(Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) seen: Seen,
    pub(super) window_ns: f64,
    pub(super) kicks: u64,
}

/// What the side that receives answers.
#[derive(Serialize, Deserialize)]
pub(super) struct Received {
    seen: Seen,
    in_time: u64,
    lost: u64,
    duplicated: u64,
    reordered: u64,
    torn: u64,
    kicks: u64,
}

/// Measures one setup.
///
/// # Errors
/// [`Error::Absent`] if this machine lacks the window; otherwise if a process or a ring cannot be made.
pub(crate) fn carry(plan: &Plan, setup: &Setup) -> Result<Run, Error> {
    match setup.window.as_str() {
        "none" => both(plan, setup, open),
        "pkey" => both(plan, setup, pkey),
        "mprotect" => both(plan, setup, mprotect),
        other => Err(Error::WrongUse(format!("there is no window '{other}'"))),
    }
}

/// The window `none`.
pub(super) fn open(halves: Halves) -> Result<Open, Error> {
    Ok(Open::over(halves))
}

/// The window `pkey`.
pub(super) fn pkey(halves: Halves) -> Result<Pkey, Error> {
    Pkey::over(halves).map_err(|error| Error::Absent(format!("no window of a protection key: {error}")))
}

/// The window `mprotect`.
pub(super) fn mprotect(halves: Halves) -> Result<Mprotect, Error> {
    Mprotect::over(halves).map_err(refused)
}

pub(super) fn refused(error: channel::Error) -> Error {
    Error::Died(error.to_string())
}

/// The ring as each side maps it.
pub(super) struct Ends {
    pub(super) ours: Ring,
    pub(super) theirs: Ring,
    pub(super) shape: Shape,
}

pub(super) fn shape(plan: &Plan, setup: &Setup) -> Result<Shape, Error> {
    let shape = match plan.apart {
        None => Shape::moving_least(plan.slots, setup.size_bytes, setup.batch),
        Some(true) => Shape::for_frames(plan.slots, setup.size_bytes, Lengths::Apart),
        Some(false) => Shape::for_frames(plan.slots, setup.size_bytes, Lengths::InSlot),
    };
    shape.map_err(|error| Error::WrongUse(format!("{}: {error}", setup.path)))
}

pub(super) fn ends(plan: &Plan, setup: &Setup) -> Result<Ends, Error> {
    let shape = shape(plan, setup)?;
    let header = Header { shape, generation: 1, producer: 0, consumer: 1 };
    let again = |region: &Region, access| {
        let file = region.file().try_clone_to_owned().map_err(|error| Error::refused("a ring's descriptor", error))?;
        Region::received(file, access).map_err(refused)
    };
    let (ours, theirs) = match setup.path.as_str() {
        "ring" => {
            let ours = Ring::shared(header).map_err(refused)?;
            let theirs = Ring::of(again(ours.region(), Access::ReadWrite)?).map_err(refused)?;
            (ours, theirs)
        }
        "ring-ro" => {
            let front = Ring::producers_half(header).map_err(refused)?;
            let back = Ring::consumers_half(header).map_err(refused)?;
            let ours = Ring::of_halves(front.clone(), again(&back, Access::Read)?).map_err(refused)?;
            (ours, Ring::of_halves(again(&front, Access::Read)?, back).map_err(refused)?)
        }
        other => return Err(Error::WrongUse(format!("there is no path '{other}'"))),
    };
    Ok(Ends { ours, theirs, shape })
}

fn both<W: Window>(plan: &Plan, setup: &Setup, over: impl Fn(Halves) -> Result<W, Error>) -> Result<Run, Error> {
    let per_ns = 1.0 / ns_per_tick();
    let ticks = Ticks::new(per_ns);
    let policy = policy(setup)?;
    let Ends { ours, theirs, shape } = ends(plan, setup)?;
    let Bells { of_sender: mut waiting, of_receiver } = Bells::new(policy, ticks)?;
    let timed = setup.window != "none";
    let mut window = over(ours.halves())?;
    let window_ns = if timed { price(&mut window, ticks) } else { 0.0 };

    let mut peer = Peer::start(|link| {
        settle(plan, plan.cpus.1, RECEIVER).map_err(|error| error.to_string())?;
        let window = over(theirs.halves()).map_err(|error| error.to_string())?;
        let consumer = Consumer::new(&theirs, window);
        let consumer = if policy == Policy::Poll { consumer.polled() } else { consumer };
        let consumer = if timed { consumer.timed(ticks) } else { consumer };
        receive(plan, setup, consumer, (policy != Policy::Poll).then_some(of_receiver), link, shape)
    })?;
    settle(plan, plan.cpus.0, SENDER)?;
    let producer = Producer::new(&ours, window);
    let producer = if policy == Policy::Poll { producer.polled() } else { producer };
    let mut producer = if timed { producer.timed(ticks) } else { producer };
    let span = peer.begin(|| {
        let from = now() + ticks.of_ns((HEAD_START + plan.warm_up).as_nanos() as u64);
        Span { from, until: from + ticks.of_ns(plan.length.as_nanos() as u64), per_ns }
    })?;
    let sender = (policy != Policy::Poll).then_some(&mut waiting);
    let seen = send(plan, setup, &mut producer, sender, span)?;
    let received: Received = peer.end(producer.stats().packets)?;

    let sent = Sent { seen, window_ns, kicks: producer.stats().kicks };
    Ok(outcome(plan, setup, shape, sent, received))
}

/// How each side waits for the other.
pub(super) struct Bells {
    pub(super) of_sender: Waiting,
    pub(super) of_receiver: Waiting,
}

impl Bells {
    pub(super) fn new(policy: Policy, ticks: Ticks) -> Result<Bells, Error> {
        let (senders, receivers) = (Bell::new().map_err(refused)?, Bell::new().map_err(refused)?);
        let share = |bell: &Bell| {
            let file = bell.file().try_clone_to_owned().map_err(|error| Error::refused("an eventfd", error))?;
            Bell::received(file).map_err(refused)
        };
        Ok(Bells {
            of_sender: Waiting::new(policy, ticks, share(&senders)?, share(&receivers)?, None),
            of_receiver: Waiting::new(policy, ticks, receivers, senders, None),
        })
    }
}

/// Takes frames as soon as some are there; none after [`IDLE`], so that who waits looks at the time now and then.
pub(super) fn pop_until_idle<W: Window>(
    consumer: &mut Consumer<W>,
    frames: &mut FrameBuf,
    batch: usize,
    waiting: &mut Waiting,
) -> Result<usize, PeerFault> {
    match consumer.pop_some(frames, batch, waiting, IDLE) {
        Err(PeerFault::Stalled { .. }) => Ok(0),
        other => other,
    }
}

/// What both sides saw of one setup, slices of one side beside those of the other.
pub(super) fn outcome(plan: &Plan, setup: &Setup, shape: Shape, sent: Sent, received: Received) -> Run {
    let Sent { seen, window_ns, kicks } = sent;
    let clean: Vec<usize> =
        (0..seen.dirty.len()).filter(|&slice| !seen.dirty[slice] && !received.seen.dirty[slice]).collect();
    let clean_packets = clean.iter().map(|&slice| u64::from(received.seen.frames[slice])).sum();
    Run {
        setup: setup.clone(),
        slots: shape.slots(),
        moved_bytes: shape.bytes_moved(setup.size_bytes as usize, setup.batch) as u32,
        ring_bytes: shape.region_bytes() as u64,
        ns: plan.length.as_nanos() as u64,
        packets: received.in_time,
        slices: seen.dirty.len() as u64,
        slice_ns: SLICE_NS,
        clean_slices: clean.len() as u64,
        clean_packets,
        verified: plan.verify,
        counted: false,
        lost: received.lost,
        duplicated: received.duplicated,
        reordered: received.reordered,
        torn: received.torn,
        dropped: 0,
        window_ns,
        kicks: received.kicks + kicks,
        setup_ns: None,
        setup_parts: Vec::new(),
        pair: plan.pair.clone(),
        producer: seen.side,
        consumer: received.seen.side,
        others: Vec::new(),
        emulated: false,
    }
}

pub(super) fn policy(setup: &Setup) -> Result<Policy, Error> {
    match setup.policy.as_str() {
        "poll" => Ok(Policy::Poll),
        "kick" => Ok(Policy::Kick),
        "adaptive" => Ok(Policy::Adaptive { spin_ns: SPIN_NS }),
        other => Err(Error::WrongUse(format!("there is no policy '{other}'"))),
    }
}

/// This process on its CPU, by a name that people find.
pub(super) fn settle(plan: &Plan, cpu: u32, name: &str) -> Result<(), Error> {
    let name = CString::new(name).unwrap_or_default();
    set_name(&name).map_err(|error| Error::refused("a side of the channel gets no name", error))?;
    thread::set_affinity(thread::own(), &CpuSet::one(cpu))?;
    if plan.fifo { priority::fifo(priority::GUEST) } else { Ok(()) }
}

/// What opening and closing a window takes with nothing inside: the median of groups.
pub(super) fn price(window: &mut impl Window, ticks: Ticks) -> f64 {
    let mut groups: Vec<f64> = (0..GROUPS)
        .map(|_| {
            let begun = now();
            for _ in 0..WINDOWS {
                window.with(|raw| {
                    std::hint::black_box(raw);
                });
            }
            (now() - begun) as f64 / ticks.per_ns() / f64::from(WINDOWS)
        })
        .collect();
    groups.sort_by(f64::total_cmp);
    groups[GROUPS / 2]
}

/// The longest wait of a side that sleeps: beyond the end nobody may be left.
fn limit(plan: &Plan) -> Duration {
    plan.length + plan.warm_up + Duration::from_secs(5)
}

pub(super) fn send<W: Window>(
    plan: &Plan,
    setup: &Setup,
    producer: &mut Producer<W>,
    mut waiting: Option<&mut Waiting>,
    span: Span,
) -> Result<Seen, Error> {
    let mut batch = Batch::new(setup.batch as usize, setup.size_bytes as usize);
    let (mut next, mut done) = (0, 0);
    let mut watch = Watch::new(span).showing(Gauges::of(plan));
    let mut since = Counted::now(producer.stats());
    batch.number(next);
    loop {
        match watch.look(now()) {
            Look::Goes => {}
            Look::Begins => {
                since = Counted::now(producer.stats());
                watch.rested(now());
            }
            Look::Ends => break,
        }
        let frames = &batch.frames()[done..];
        let pushed = match &mut waiting {
            None => producer.push_batch(frames),
            Some(waiting) => {
                let pushed = producer.push_all(frames, waiting, limit(plan));
                watch.rested(now());
                pushed
            }
        };
        let pushed = pushed.map_err(faulty)?.frames;
        if pushed > 0 {
            watch.moved();
        }
        done += pushed;
        if done == setup.batch as usize {
            next += u64::from(setup.batch);
            done = 0;
            if plan.verify {
                batch.number(next);
            }
        }
    }
    Ok(watch.seen(plan.cpus.0, &since, &Counted::now(producer.stats())))
}

fn faulty(fault: PeerFault) -> Error {
    Error::Died(format!("the other side of the channel broke its rules: {fault}"))
}

pub(super) fn receive<W: Window>(
    plan: &Plan,
    setup: &Setup,
    mut consumer: Consumer<W>,
    mut waiting: Option<Waiting>,
    link: &mut impl Cues,
    shape: Shape,
) -> Result<Received, String> {
    let batch = setup.batch as usize;
    let mut frames = FrameBuf::new(batch, shape.frame_bytes());
    let span = link.ready().ok_or("the producer has ended")?;
    let mut watch = Watch::new(span).showing(Gauges::of(plan));
    let (mut since, mut until) = (Counted::now(consumer.stats()), None);
    let mut arrived = Arrived::default();
    let mut in_time = 0;
    let mut sent = None;
    let give_up = span.until + (DRAINS_WITHIN_NS as f64 * span.per_ns) as u64;
    loop {
        let at = now();
        let look = watch.look(at);
        if look == Look::Begins {
            since = Counted::now(consumer.stats());
            watch.rested(now());
        }
        let ends = look == Look::Ends;
        if ends && until.is_none() {
            until = Some(Counted::now(consumer.stats()));
        }
        if ends && sent.is_none() {
            sent = link.sent();
        }
        let is_over = sent.is_some_and(|sent| at > give_up || arrived.frames >= sent);
        if is_over || at > give_up + (SAYS_WITHIN.as_nanos() as f64 * span.per_ns) as u64 {
            break;
        }
        let popped = match &mut waiting {
            Some(waiting) if !ends => {
                let popped = pop_until_idle(&mut consumer, &mut frames, batch, waiting);
                watch.rested(now());
                popped
            }
            _ => consumer.pop_batch(&mut frames, batch),
        };
        let popped = popped.map_err(|fault| fault.to_string())? as u64;
        if popped == 0 {
            continue;
        }
        watch.moved();
        let at = now();
        if plan.verify {
            frames.iter().for_each(|frame| arrived.take(frame));
        } else {
            arrived.take_unseen(popped);
        }
        if (span.from..span.until).contains(&at) {
            in_time += popped;
            watch.count(at, popped);
        }
    }
    let sent = sent.ok_or(NEVER_SAID)?;
    Ok(Received {
        in_time,
        lost: arrived.lost(sent),
        duplicated: arrived.duplicated,
        reordered: arrived.reordered,
        torn: arrived.torn,
        kicks: consumer.stats().kicks,
        seen: watch.seen(plan.cpus.1, &since, &until.unwrap_or_else(|| Counted::now(consumer.stats()))),
    })
}
