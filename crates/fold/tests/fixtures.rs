//! The rules over all bundled recordings, event by event, give what the walk of a trace gives: for those events that both know.

use analysis::Part;
use analysis::facts::events::reasons::Isa;
use analysis::facts::events::roles::{ROLES, ROWS, Role, ends, stays_ready, stops, switch, waking};
use analysis::facts::state::State as Walked;
use analysis::facts::thread::{Chain, Exit};
use analysis::facts::walk::replay::{ExtraEvents, WalkObserver, walked};
use analysis::facts::{Preemptor, Sink, Walk};
use base::recording::Recording;
use kvmscope_fold::{Event as Heard, FAILED, Fold, Kind, STATES, State, ThreadReading, Word, leaves, off, over};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trace::Event;

/// Roles of the events that the fold hears.
const HEARD: [Role; 6] = [Role::Entry, Role::Exit, Role::UserspaceExit, Role::Fpu, Role::Switch, Role::Waking];

/// What the walk says of threads.
#[derive(Default)]
struct Sums {
    states_ns: BTreeMap<usize, [u64; STATES.len()]>,
    /// By thread and code: count, cost, longest.
    exits: BTreeMap<(usize, u32), (u64, u64, u64)>,
}

fn state(state: Walked) -> State {
    match state {
        Walked::Guest(_) => State::Guest,
        Walked::Handling(_) | Walked::HaltPoll => State::Handling,
        Walked::Userspace => State::Userspace,
        Walked::Irq => State::Irq,
        Walked::Softirq => State::Softirq,
        Walked::Nmi => State::Nmi,
        Walked::Halted => State::Halted,
        Walked::WakeDelay => State::WakeDelay,
        Walked::Preempted => State::Preempted,
        Walked::Blocked => State::Blocked,
        Walked::Unknown => State::Unknown,
    }
}

impl Sink for Sums {
    fn interval(&mut self, thread: usize, walked: Walked, from_ns: u64, to_ns: u64) {
        self.states_ns.entry(thread).or_default()[state(walked) as usize] += to_ns - from_ns;
    }

    fn exit(&mut self, thread: usize, exit: &Exit) {
        let sums = self.exits.entry((thread, exit.reason.code)).or_default();
        *sums = (sums.0 + 1, sums.1 + exit.cost_ns.unwrap_or(0), sums.2.max(exit.cost_ns.unwrap_or(0)));
    }

    fn chain(&mut self, _: usize, _: &Chain) {}

    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}
}

/// The fold beside the walk.
#[derive(Default)]
struct Beside {
    fold: Fold,
    by_tid: BTreeMap<i32, u16>,
    /// Threads that run vCPUs, known from a first pass.
    vcpus: Vec<i32>,
    isa: u8,
    end_ns: u64,
    /// Events that do not say whose they are.
    untold: u64,
    origin_ns: u64,
}

impl Beside {
    fn tell(&mut self, tid: i32, now: u64, kind: Kind, argument: u64) {
        if let Some(index) = self.by_tid.get(&tid) {
            self.fold.take(Heard::new(now, kind, *index, argument));
        }
    }
}

impl WalkObserver<Sums> for Beside {
    fn start(&mut self, _: &mut Walk<Sums>, origin_ns: u64) {
        self.origin_ns = origin_ns;
        for tid in self.vcpus.clone() {
            let index = self.fold.meet(tid as u32, 0, origin_ns, off::UNSEEN).unwrap();
            self.by_tid.insert(tid, index);
        }
    }

    fn event(&mut self, walk: &mut Walk<Sums>, event: &Event<'_>) {
        walk.event(event);
        let Some(role) = ROLES.get(usize::from(event.kind)).copied() else {
            return;
        };
        let (now, tid) = (event.time_ns, event.tid);
        self.untold += u64::from(tid == trace::batch::NO_TID);
        self.end_ns = self.end_ns.max(now);
        match role {
            Role::Entry => self.tell(tid, now, Kind::Entry, event.or_zero(0)),
            Role::Exit => {
                let isa = event.get(2).unwrap_or(u64::from(self.isa)) & 0xff;
                self.tell(tid, now, Kind::Exit, isa << 32 | event.or_zero(0) & 0xffff_ffff);
            }
            Role::UserspaceExit => {
                let error = event.or_zero(1) as i32;
                let code = if error < 0 { u64::from(FAILED | error.unsigned_abs()) } else { event.or_zero(0) };
                self.tell(tid, now, Kind::UserspaceExit, code);
            }
            Role::Fpu if event.or_zero(0) == 1 => self.tell(tid, now, Kind::RunBegins, 0),
            Role::Switch => {
                let leaves = leaving(event);
                self.tell(event.or_zero(switch::PREV_TID) as i32, now, Kind::SwitchOut, leaves);
                self.tell(event.or_zero(switch::NEXT_TID) as i32, now, Kind::SwitchIn, 0);
            }
            Role::Waking => {
                let woken = event.or_zero(waking::TID) as i32;
                if woken != tid {
                    self.tell(woken, now, Kind::Woken, 0);
                }
                self.tell(tid, now, Kind::Host, over::WAKES);
            }
            _ => {}
        }
    }
}

/// How a thread leaves, from a number or the letters of a text.
fn leaving(event: &Event<'_>) -> u64 {
    match event {
        event if stays_ready(event) => leaves::READY,
        event if ends(event) => leaves::ENDED,
        event if stops(event) => leaves::STOPPED,
        _ => leaves::ASLEEP,
    }
}

/// The names of all events that are not heard.
fn ignored() -> Vec<String> {
    let others = ROWS.iter().filter(|row| !HEARD.contains(&row.role));
    others.flat_map(|row| row.names).map(|name| (*name).to_owned()).collect()
}

fn both(part: &Part, vcpus: Vec<i32>) -> (Walk<Sums>, Beside) {
    let mut beside = Beside { vcpus, ..Beside::default() };
    let besides = ExtraEvents { fitted: None, events: None };
    beside.fold.exits_fire = true;
    let (walk, totals) = walked(part, &ignored(), besides, Sums::default(), &mut beside);
    beside.end_ns = totals.span_ns.map_or(beside.end_ns, |(_, last)| last);
    (walk, beside)
}

/// Compares a part; how many exits were compared, if it has what it takes.
fn compare(path: &Path, part: &Part) -> Option<u64> {
    let facts = part.trace.facts();
    let has = |name: &str| facts.event_types.iter().any(|event| event.name == name);
    // Without threads in events, or switches and wakings, the walk follows rules that the fold never needs.
    if !has("sched_switch") || !has("sched_waking") || !(has("kvm_exit") || has("kvm_userspace_exit")) {
        return None;
    }
    let (first, _) = both(part, Vec::new());
    let vcpus: Vec<i32> = first.threads.iter().filter(|thread| thread.is_vcpu).map(|thread| thread.tid).collect();
    if !first.losses.is_empty() || !first.pauses.is_empty() || vcpus.is_empty() || first.isa == Isa::Arm64 {
        return None;
    }
    let (walk, beside) = both(part, vcpus);
    if beside.untold > 0 {
        return None;
    }
    let mut exits = 0;
    for (number, thread) in walk.threads.iter().enumerate().filter(|(_, thread)| thread.is_vcpu) {
        let index = beside.by_tid[&thread.tid];
        let record = beside.fold.record(index);
        let rows: Vec<_> = beside.fold.rows().iter().filter(|row| row[0] == u64::from(index)).copied().collect();
        let thread = ThreadReading::new(index, &record, &rows, beside.end_ns, 0).unwrap();
        let place = format!("{} {} thread {}", path.display(), part.machine, thread.tid);
        let theirs = walk.sink.states_ns.get(&number).copied().unwrap_or_default();
        assert_eq!(thread.totals.states_ns, theirs, "{place}: {STATES:?}");
        for reason in thread.totals.reasons.iter().filter(|reason| reason.isa.is_some()) {
            // The walk's end censors what is open; the fold goes on.
            let is_open = record[Word::ExitOpen as usize] == 1 && record[Word::ExitKey as usize] as u32 == reason.code;
            let sums = walk.sink.exits.get(&(number, reason.code)).copied().unwrap_or_default();
            let ours = (reason.count + u64::from(is_open), reason.cost.sum_ns, reason.cost.max_ns);
            assert_eq!(ours, sums, "{place}: reason {}", reason.code);
            exits += reason.count;
        }
        let known = thread.totals.reasons.iter().filter(|reason| reason.isa.is_some()).count();
        let walked = walk.sink.exits.keys().filter(|(thread, _)| *thread == number).count();
        assert!(walked - known <= 1, "{place}: {walked} and {known} reasons");
    }
    Some(exits)
}

#[test]
fn the_rules_give_what_the_walk_gives_of_all_recordings() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(&fixtures).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let (mut parts, mut exits) = (0, 0);
    for folder in folders.iter().filter(|folder| folder.join("recording.json").is_file()) {
        let Ok(recording) = Recording::open(folder) else { continue };
        let Ok(input) = analysis::open(recording) else { continue };
        for part in &input.parts {
            if let Some(compared) = compare(folder, part) {
                println!("{}: {compared} exits", folder.display());
                (parts, exits) = (parts + 1, exits + compared);
            }
        }
    }
    assert!(parts >= 10 && exits > 40_000, "{parts} traces, {exits} exits");
}
