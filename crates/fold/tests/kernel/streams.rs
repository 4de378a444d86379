//! Streams of events that no machine would make, through the kernel's programs and through the interpreter.

use kvmscope_fold::{Bench, Event, FAILED, Fold, Hook, Kind, Taken, Word, leaves_by, off, over};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;

/// Threads of a stream.
const THREADS: u32 = 3;

#[derive(Debug, Clone)]
struct Step {
    hook: Hook,
    thread: u32,
    other: u32,
    argument: usize,
    later_ns: i64,
}

fn step() -> impl Strategy<Value = Step> {
    let hooks = prop_oneof![
        3 => Just(Hook::Switch),
        2 => Just(Hook::Waking),
        2 => Just(Hook::UserspaceExit),
        1 => Just(Hook::Fpu),
        3 => Just(Hook::Entry),
        3 => Just(Hook::Exit),
    ];
    (hooks, 0..THREADS, 0..=THREADS, 0..64_usize, -20..20_000_i64)
        .prop_map(|(hook, thread, other, argument, later_ns)| Step { hook, thread, other, argument, later_ns })
}

const STATES: [u64; 8] = [0, 1, 2, 4, 8, 0x10, 0x100, 0x80];
const REASONS: [(u64, u64); 7] = [(12, 1), (30, 1), (0x8000_000c, 1), (0x78, 2), (0x400, 2), (131_072, 3), (36, 1)];
const ERRORS: [u64; 3] = [0, 0xffff_fffc, 0];

/// The same events as the programs hear, by the interpreter: which records they are for is said here once more.
struct Model {
    fold: Fold,
    /// The process of its threads.
    vm: u32,
    by_tid: BTreeMap<u32, u16>,
}

impl Model {
    fn of_current(&mut self, now: u64, tid: u32, kind: Kind, argument: u64) {
        let index = match self.by_tid.get(&tid) {
            Some(index) => *index,
            None => {
                let index = self.fold.meet(tid, self.vm, now, off::ON).unwrap();
                self.by_tid.insert(tid, index);
                index
            }
        };
        self.fold.take(Event::new(now, kind, index, argument));
    }

    fn known(&mut self, now: u64, tid: u32, kind: Kind, argument: u64) {
        if let Some(index) = self.by_tid.get(&tid) {
            self.fold.take(Event::new(now, kind, *index, argument));
        }
    }
}

/// Runs a stream of threads whose ids begin at `first`, from `now` on; where both differ is said.
fn run(bench: &Bench, steps: &[Step], first: u32, mut now: u64) -> Result<u64, TestCaseError> {
    let mut model = Model { fold: Fold::default(), vm: first, by_tid: BTreeMap::new() };
    // What other streams have shown this kernel.
    model.fold.exits_fire = bench.session().exits_fire();
    for step in steps {
        now = now.saturating_add_signed(step.later_ns);
        let (tid, other) = (first + step.thread, first + step.other);
        let cpu = (step.argument % 2) as u32;
        let arguments = match step.hook {
            Hook::Switch => vec![u64::from(tid), STATES[step.argument % STATES.len()], u64::from(other)],
            Hook::Waking => vec![u64::from(other)],
            Hook::UserspaceExit => vec![step.argument as u64, ERRORS[step.argument % ERRORS.len()]],
            Hook::Fpu => vec![step.argument as u64 % 2],
            Hook::Entry => vec![step.argument as u64],
            Hook::Exit => {
                let (code, isa) = REASONS[step.argument % REASONS.len()];
                vec![code, isa]
            }
        };
        bench
            .run(step.hook, &arguments, (now, tid, first, cpu))
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        match step.hook {
            Hook::Switch => {
                model.fold.take(Event::new(now, Kind::Leaves, cpu as u16, u64::from(tid)));
                model.known(now, tid, Kind::SwitchOut, u64::from(cpu) << 8 | leaves_by(arguments[1]));
                model.known(now, other, Kind::SwitchIn, 0);
            }
            Hook::Waking => {
                if tid != other {
                    model.known(now, other, Kind::Woken, 0);
                }
                model.known(now, tid, Kind::Host, over::WAKES);
            }
            Hook::UserspaceExit => {
                let error = (arguments[1] as i32).unsigned_abs();
                let code = if error > 0 { u64::from(FAILED | error) } else { arguments[0] };
                model.of_current(now, tid, Kind::UserspaceExit, code);
            }
            Hook::Fpu if arguments[0] == 1 => model.of_current(now, tid, Kind::RunBegins, 0),
            Hook::Fpu => {}
            Hook::Entry => model.of_current(now, tid, Kind::Entry, arguments[0]),
            Hook::Exit => model.of_current(now, tid, Kind::Exit, arguments[1] << 32 | arguments[0]),
        }
    }
    let compared = compare(bench, &model);
    // Nobody may wait when the next stream begins.
    let idle = |tid: u32, cpu: u32| {
        let arguments = [0, 1, u64::from(tid)];
        bench.run(Hook::Switch, &arguments, (now, 0, 0, cpu)).map_err(|error| TestCaseError::fail(error.to_string()))
    };
    for thread in 0..THREADS {
        idle(first + thread, 0)?;
    }
    idle(0, 0)?;
    idle(0, 1)?;
    compared.map(|()| now)
}

/// What the kernel has of these threads against what the interpreter has.
fn compare(bench: &Bench, model: &Model) -> Result<(), TestCaseError> {
    let reading = bench.session().read();
    for (tid, own) in &model.by_tid {
        let thread = reading.threads.iter().find(|thread| thread.tid == *tid);
        let index = thread.ok_or_else(|| TestCaseError::fail("the kernel has no record"))?.index;
        let (record, rows) = bench.session().raw(index).ok_or_else(|| TestCaseError::fail("it never rests"))?;
        // Numbers of VMs are the kernel's alone.
        let aside = [Word::Seq, Word::Vm].map(|word| word as usize);
        let words = |record: [u64; kvmscope_fold::RECORD_WORDS]| {
            (0..record.len()).filter(|at| !aside.contains(at)).map(|at| record[at]).collect::<Vec<_>>()
        };
        let (theirs, ours) = (words(record), words(model.fold.record(*own)));
        prop_assert_eq!(theirs, ours, "thread {}", tid);
        // Numbers of records are not the same on both sides.
        let bare = |mut row: [u64; kvmscope_fold::ROW_WORDS]| {
            row[0] = 0;
            row
        };
        let takers = thread.map(|thread| thread.totals.takers.clone()).unwrap_or_default();
        // The look charges who has the CPU now.
        let closed = takers.iter().filter(|_| record[Word::Off as usize] != off::PREEMPTED);
        let theirs: BTreeMap<u32, Taken> = closed
            .map(|taker| (taker.tid, Taken { count: taker.count, total_ns: taker.total_ns, max_ns: taker.max_ns }))
            .collect();
        let of_own = model
            .fold
            .takers()
            .iter()
            .filter(|((index, _), _)| *index == *own && record[Word::Off as usize] != off::PREEMPTED);
        prop_assert_eq!(
            theirs,
            of_own.map(|((_, task), taken)| (*task, *taken)).collect::<BTreeMap<_, _>>(),
            "takers of {}",
            tid
        );
        let own = model.fold.rows().iter().filter(|row| row[0] == u64::from(*own)).copied().map(bare);
        prop_assert_eq!(super::sorted(rows.into_iter().map(bare)), super::sorted(own), "rows of thread {}", tid);
    }
    Ok(())
}

#[test]
fn programs_do_what_the_interpreter_does_whatever_comes() {
    if super::cannot() {
        return;
    }
    let bench = match Bench::new() {
        Ok(bench) => bench,
        Err(error) => return println!("skipped: programs run by hand: {error}"),
    };
    let (mut first, mut now) = (100, 1_000_000);
    // Each stream has threads of its own, and there are no more than a thousand records.
    let config = Config { cases: 200, max_shrink_iters: 60, failure_persistence: None, ..Config::default() };
    let state = std::cell::RefCell::new((&mut first, &mut now));
    let run = |steps: Vec<Step>| {
        let mut state = state.borrow_mut();
        *state.0 += THREADS + 1;
        let until = run(&bench, &steps, *state.0, *state.1)?;
        *state.1 = until + 1_000;
        Ok(())
    };
    TestRunner::new(config).run(&prop::collection::vec(step(), 1..60), run).unwrap();
}
