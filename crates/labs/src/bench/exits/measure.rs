//! One test, from a fresh guest to a distribution.
//!
//! ```text
//! touch the samples' pages -> a few samples -> how many? -> as many empty operations -> the test itself
//!                             sizing                       control: what to subtract    samples, KVM's counters
//! ```

use super::catalogue;
use super::layout::{MOST_SAMPLES, NEW_BYTES};
use super::machine::{Machine, Stop, Turn};
use super::test::{RING_0, Test};
use super::{Plan, here as native, payload};
use crate::bench::audit::Audit;
use crate::bench::priority;
use crate::bench::sizing::{FIRST, Run, median, warm};
use base::bench::{Measured, Params};
use lab::Error;
use lab::guest::{self, watchdog::watched};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// Samples of the control: its middle is all that is used.
const CONTROL_SAMPLES: u64 = 2_000;

/// Turns of the loop that shows whether ring 0 is interpreted.
const PROBE_TURNS: u64 = 500;
/// So often, and short, so that the least is not disturbed even on a busy machine.
const PROBES: u32 = 40;
/// A turn that takes more cycles is.
const INTERPRETED: u64 = 100;

/// What a run gave.
struct Taken {
    run: Run,
    control: u64,
    samples: Vec<u64>,
    counters: BTreeMap<String, u64>,
    interference: Vec<String>,
}

/// The names of all tests, those of this process first, as `here` or `guest`.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let here = native::NAMES.iter().map(|name| ("here", *name));
    here.chain(catalogue::TESTS.iter().map(|test| ("guest", test.name)))
}

/// Measures `name` in this process.
pub fn here(name: &str, plan: &Plan) -> Measured {
    let params = params("here", 3, plan);
    let Some(test) = catalogue::named(name).filter(|test| native::NAMES.contains(&test.name)) else {
        return skipped(name, params, "possible only in a guest".to_owned());
    };
    let audit = Audit::begin(&plan.root, plan.cpu);
    let timer = median(&native::run(payload::empty(), FIRST));
    let one = median(&native::run((test.body)(), FIRST));
    let run = Run::sized(timer, one, plan.ns_per_tick, plan.target);
    let control = Run { samples: run.samples.min(CONTROL_SAMPLES), ..run };
    let control = median(&native::run(payload::empty(), control));
    let samples = native::run((test.body)(), run);
    let taken = Taken { run, control, samples, counters: BTreeMap::new(), interference: audit.end() };
    measured(name, params, taken)
}

/// Measures `test` in a guest of its own. What the guest cannot do, or that there can be none, is the result then.
pub fn guest(test: &'static Test, plan: &Plan) -> Measured {
    let params = Params { expected_exits: Some(test.exits), ..params("guest", test.ring, plan) };
    let own = plan.clone();
    let done = guest::open(&plan.device).and_then(|kvm| {
        watched(plan.limit, move |stop| -> Result<Result<Taken, Stop>, Error> {
            if own.fifo {
                priority::fifo(priority::GUEST)?;
            }
            let mut machine = Machine::new(&kvm, test, own.other_cpu)?;
            Ok(take(&mut machine, test, &own, stop))
        })
    });
    let limit = plan.limit.as_secs_f64();
    let why = match done {
        Ok(Some(Ok(Ok(taken)))) => return measured(test.name, params, taken),
        Ok(Some(Ok(Err(Stop::Failed(why))))) => why,
        Ok(Some(Err(error))) | Err(error) => error.to_string(),
        Ok(Some(Ok(Err(Stop::Stuck)))) => format!("it did not end within {limit} s and was stopped by the watchdog"),
        Ok(None) => format!("it did not end within {limit} s, and KVM could not be stopped in it"),
    };
    skipped(test.name, params, why)
}

/// Why tests of ring 0 would say nothing here, if so: a hypervisor without VMX and SVM interprets it.
///
/// # Errors
/// If there is no KVM, or no thread for the guest.
pub(crate) fn interpreted(plan: &Plan) -> Result<Option<String>, Error> {
    let kvm = guest::open(&plan.device)?;
    let took = watched(plan.limit, move |stop| -> Result<Result<u64, Stop>, Error> {
        let mut machine = Machine::new(&kvm, &RING_0, None)?;
        let mut least = |turns: u64| {
            let turn = Turn { entry: payload::turns(), samples: turns, ..Turn::default() };
            let once = |machine: &mut Machine| {
                let began = ticks();
                machine.go(&turn, stop).map(|_| ticks().wrapping_sub(began))
            };
            (0..PROBES).try_fold(u64::MAX, |least, _| Ok(least.min(once(&mut machine)?)))
        };
        // What entering and leaving takes is not the loop's.
        Ok(least(1).and_then(|none| Ok(least(PROBE_TURNS)?.saturating_sub(none))))
    })?;
    let each = match took {
        Some(took) => match took? {
            Ok(took) => took / PROBE_TURNS,
            Err(Stop::Failed(why)) => {
                return Ok(Some(format!("emulated: this KVM interprets ring 0, and fails: {why}")));
            }
            Err(Stop::Stuck) => return Ok(Some("emulated: this KVM interprets ring 0, and does not end".to_owned())),
        },
        None => return Ok(Some("emulated: this KVM interprets ring 0, and hangs in it".to_owned())),
    };
    let slow = || {
        format!(
            "emulated: this KVM interprets ring 0, a turn of an empty loop takes {} cycles",
            base::number::thousands(each)
        )
    };
    Ok((each > INTERPRETED).then(slow))
}

fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has RDTSC, which touches no memory.
    unsafe { std::arch::x86_64::_rdtsc() }
}

fn take(machine: &mut Machine, test: &Test, plan: &Plan, stop: &AtomicBool) -> Result<Taken, Stop> {
    let audit = Audit::begin(&plan.root, plan.cpu);
    if let Some(entry) = machine.l1() {
        // L1 gets ready; if it starts an L2, that one's port write comes straight here, and whatever is run then, L2 runs.
        machine.go(&Turn { entry, samples: 1, ..Turn::default() }, stop)?;
    }
    let pages = MOST_SAMPLES * 8 / 4096;
    machine.go(&Turn { entry: payload::touch_pages(), samples: pages, ..Turn::default() }, stop)?;
    let of = |body: u64, run: Run| Turn {
        entry: payload::begin(),
        body,
        samples: run.samples,
        operations: run.operations,
        r15: test.r15,
        rbx: test.rbx,
    };
    let body = (test.body)();
    let run = if let Some(samples) = (NEW_BYTES as u64).checked_div(test.takes_bytes) {
        // Each operation needs memory of its own: there is none to spare for trying, and one is dear enough.
        Run { samples, operations: 1 }
    } else {
        machine.go(&of(payload::empty(), FIRST), stop)?;
        let timer = median(&machine.samples(FIRST.samples));
        machine.go(&of(body, FIRST), stop)?;
        Run::sized(timer, median(&machine.samples(FIRST.samples)), plan.ns_per_tick, plan.target)
    };
    let control = Run { samples: run.samples.min(CONTROL_SAMPLES), ..run };
    machine.go(&of(payload::empty(), control), stop)?;
    let control = median(&machine.samples(control.samples));
    let before = machine.interrupts();
    let went = machine.go(&of(body, run), stop)?;
    let interrupts = machine.interrupts() - before;
    if test.interrupts && interrupts != run.all() {
        return Err(Stop::Failed(format!("{} operations took {interrupts} interrupts, not as many", run.all())));
    }
    let mut counters = went.counted.unwrap_or_default();
    // The write that ends the run is not the test's.
    for name in ["exits", "io_exits"] {
        counters.entry(name.to_owned()).and_modify(|count| *count -= 1);
    }
    if !counters.is_empty() {
        counters.insert("userspace".to_owned(), went.userspace);
    }
    Ok(Taken { run, control, samples: machine.samples(run.samples), counters, interference: audit.end() })
}

fn measured(name: &str, params: Params, taken: Taken) -> Measured {
    let params = Params {
        operations: Some(taken.run.operations),
        control: Some(taken.control as f64),
        counted: (!taken.counters.is_empty()).then(|| taken.run.all()),
        ..params
    };
    Measured {
        name: name.to_owned(),
        params,
        hdr: warm(&taken.samples).buckets(),
        counters: taken.counters,
        interference: taken.interference,
        ..empty()
    }
}

/// How a test is run.
pub(super) fn params(place: &str, ring: u8, plan: &Plan) -> Params {
    Params { place: place.to_owned(), ring: Some(ring), launch: plan.launch, ..Params::default() }
}

/// A test without samples, and why.
pub(super) fn skipped(name: &str, params: Params, why: String) -> Measured {
    Measured { name: name.to_owned(), params, skipped: Some(why), ..empty() }
}

fn empty() -> Measured {
    Measured { unit: "cycles".to_owned(), ..Measured::default() }
}
