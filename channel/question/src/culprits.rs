//! Who had the CPU of a side during each of its gaps? Named by the trace that was recorded beside the bench.
//!
//! ```text
//! gap of a side    |-- begin ---------------------- end --|      by the time-stamp counter
//! its thread         runs | ready: hog/4711 ran | runs           by the trace of the same machine
//! shares                  | hog/4711 92 %       | the rest: the thread itself had the CPU, and still did not run
//! ```
//! Where the thread had its CPU all the time and did not get on, the hypervisor below took it, if there is one: a machine cannot see
//! that. What its own system calls and page faults take looks the same. Where events were lost, nobody is named.

use super::measured::Channel;
use base::Span;
use base::channel::{Run, Setup, Side};
use base::number::percent;
use base::shell::printable;
use facts::Case;
use facts::attribution::on_axis;
use facts::attribution::pollers::{Asked, Spent, spent};
use facts::ledger::model::PartFlow;
use facts::losses::By;
use facts::samples::SampleClock;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use walk::events::host_interrupts::Handlers;

/// Who had a CPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Culprit {
    /// A thread, by its name and id.
    Thread(String, i32),
    /// An interrupt or a softirq, with its number where it is a device's.
    Interrupt(String, Option<u32>),
    /// Nobody: the thread was ready, and its CPU was idle.
    Idle,
    /// The side's own thread, below which there is a hypervisor.
    Below,
    /// The side's own thread, where no hypervisor is known.
    Itself,
    Asleep,
    Lost,
    /// The trace does not tell.
    Unknown,
}

impl Culprit {
    /// As column `by` has it.
    pub(crate) fn name(&self) -> String {
        match self {
            Culprit::Thread(name, tid) => format!("{name}/{tid}"),
            Culprit::Interrupt(name, _) => name.clone(),
            Culprit::Idle => "none: the CPU was idle".to_owned(),
            Culprit::Below => "the hypervisor below".to_owned(),
            Culprit::Itself => "firmware, or the thread itself".to_owned(),
            Culprit::Asleep => "none: the thread slept".to_owned(),
            Culprit::Lost => "unknown, events were lost".to_owned(),
            Culprit::Unknown => "unknown".to_owned(),
        }
    }

    /// In sums, where threads of one name are one.
    pub(crate) fn group(&self) -> String {
        match self {
            Culprit::Thread(name, _) => name.clone(),
            other => other.name(),
        }
    }

    /// Whether the trace names it.
    pub(crate) fn is_known(&self) -> bool {
        !matches!(self, Culprit::Lost | Culprit::Unknown)
    }
}

/// One gap, as the trace shows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Explained {
    /// Where it lies on the recording's axis.
    pub span: Span,
    /// Who had how much of it, most first; together its length.
    pub shares: Vec<(Culprit, u64)>,
}

impl Explained {
    /// Who had most of it, and which share.
    pub(crate) fn most(&self) -> Option<(&Culprit, f64)> {
        let all: u64 = self.shares.iter().map(|(_, ns)| ns).sum();
        self.shares.first().map(|(culprit, ns)| (culprit, *ns as f64 / all.max(1) as f64))
    }

    /// `hog/4711`, or `hog/4711 (92.0 %)` where others had a part.
    pub(crate) fn by(&self) -> Option<String> {
        let (culprit, share) = self.most()?;
        let name = culprit.name();
        Some(if share < WHOLE { format!("{name} ({})", percent(share)) } else { name })
    }
}

/// From this share on it is all of a gap: switching to and fro is part of it.
const WHOLE: f64 = 0.995;

/// A gap of a side: machine, setup, launch, thread, and when it began since the first look.
pub(crate) type Key<'b> = (&'b str, &'b Setup, u32, i32, u64);

/// All gaps that traces explain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Culprits<'b> {
    gaps: FxHashMap<Key<'b>, Explained>,
    /// Events that traces beside the bench have lost.
    pub lost_events: u64,
}

/// What one machine's culprits took.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sum {
    /// Time in gaps that the trace shows.
    pub gap_ns: u64,
    /// Of it, most first.
    pub groups: Vec<Group>,
}

/// Culprits of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub name: String,
    pub ns: u64,
    /// The one of them that took most.
    pub most: Culprit,
    pub members: u64,
}

impl Group {
    /// In a sentence: `hog/4711`, or `cc1 (12 threads)`.
    pub(crate) fn words(&self) -> String {
        match (&self.most, self.members) {
            (Culprit::Thread(name, _), 2..) => format!("{name} ({} threads)", self.members),
            (most, _) => most.name(),
        }
    }
}

impl<'b> Culprits<'b> {
    /// Reads the traces of the machines that measured.
    pub(crate) fn of(case: &Case, channel: &Channel<'b>) -> Self {
        let mut culprits = Self::default();
        if case.input().parts.is_empty() {
            return culprits;
        }
        let flow = case.ledger();
        for host in &channel.hosts {
            let is_own = |part: &PartFlow| part.machine == host.machine && part.twin_of.is_none() && part.has_switches;
            let Some(place) = flow.parts.iter().position(is_own) else { continue };
            let Some(wall) = case.input().recording.wall_clock(&host.machine) else { continue };
            let mut keys: Vec<Key<'b>> = Vec::new();
            let mut asked: Vec<Asked> = Vec::new();
            for (key, run, side, length_ns) in gaps(channel, &host.machine) {
                let at = |at_ns| Some(wall.monotonic_at(run.tsc_at(side, at_ns)?)?.0);
                let at_ns = key.4;
                let (Some(from_ns), Some(to_ns)) = (at(at_ns), at(at_ns.saturating_add(length_ns))) else { continue };
                keys.push(key);
                asked.push(Asked { tid: side.tid, window: Span { from_ns, to_ns } });
            }
            if asked.is_empty() {
                continue;
            }
            let part = &flow.parts[place];
            let hear = &mut |done, all| case.hear(done, all);
            let of_trace = (case.input(), case.given(), flow);
            let Some((spent, handlers)) = spent(of_trace, place, (&asked, SampleClock::Monotonic), hear) else {
                continue;
            };
            let Some(on_axis) = on_axis((case.input(), flow), place, SampleClock::Monotonic) else { continue };
            let lost_events = part.lost_events();
            culprits.lost_events += lost_events;
            let names = Names { comms: &part.comms, handlers: &handlers, below: host.is_guest, lost: lost_events > 0 };
            for ((key, asked), spent) in keys.into_iter().zip(&asked).zip(spent) {
                let span =
                    |window: Span| Some(Span { from_ns: on_axis(window.from_ns)?, to_ns: on_axis(window.to_ns)? });
                let Some(span) = span(asked.window) else { continue };
                culprits.gaps.insert(key, Explained { span, shares: names.shares(&spent) });
            }
        }
        culprits
    }

    pub(crate) fn of_gap(&self, key: &Key<'b>) -> Option<&Explained> {
        self.gaps.get(key)
    }

    /// True if no trace explains any gap.
    pub(crate) fn is_empty(&self) -> bool {
        self.gaps.is_empty()
    }

    /// For how long the traces name nobody.
    pub(crate) fn unnamed_ns(&self) -> u64 {
        let shares = self.gaps.values().flat_map(|explained| &explained.shares);
        shares.filter(|(culprit, _)| !culprit.is_known()).map(|(_, ns)| ns).sum()
    }

    /// What each culprit took of the gaps that `wanted` is true of; `None` where no trace shows any of them.
    pub(crate) fn sum(&self, wanted: impl Fn(&Key<'b>) -> bool) -> Option<Sum> {
        let mut each: BTreeMap<&Culprit, u64> = BTreeMap::new();
        let own = self.gaps.iter().filter(|(key, _)| wanted(key));
        for (culprit, ns) in own.flat_map(|(_, explained)| &explained.shares) {
            *each.entry(culprit).or_default() += ns;
        }
        let mut groups: BTreeMap<String, (Group, u64)> = BTreeMap::new();
        for (culprit, ns) in each {
            let name = culprit.group();
            let first = || (Group { name: name.clone(), ns: 0, most: culprit.clone(), members: 0 }, 0);
            let (group, most_ns) = groups.entry(name.clone()).or_insert_with(first);
            (group.ns, group.members) = (group.ns + ns, group.members + 1);
            if ns > *most_ns {
                (group.most, *most_ns) = (culprit.clone(), ns);
            }
        }
        let mut groups: Vec<Group> = groups.into_values().map(|(group, _)| group).collect();
        groups.sort_by(|a, b| (Reverse(a.ns), &a.name).cmp(&(Reverse(b.ns), &b.name)));
        let gap_ns = groups.iter().map(|group| group.ns).sum();
        (gap_ns > 0).then_some(Sum { gap_ns, groups })
    }

    /// The longest gap, with who had the CPU, of those that `wanted` is true of.
    pub(crate) fn longest(&self, wanted: impl Fn(&Key<'b>) -> bool) -> Option<(&Key<'b>, &Explained)> {
        let own = self.gaps.iter().filter(|(key, _)| wanted(key));
        own.max_by_key(|(key, explained)| (explained.span.length_ns(), Reverse(*key)))
    }
}

impl Sum {
    /// Which share of the time in gaps a group took.
    pub(crate) fn share(&self, ns: u64) -> f64 {
        ns as f64 / self.gap_ns.max(1) as f64
    }

    /// The one that took most, if the trace names any.
    pub(crate) fn worst(&self) -> Option<&Group> {
        self.groups.iter().find(|group| group.most.is_known())
    }
}

/// All gaps of a machine that are listed in its results: with their key, run, side and length.
fn gaps<'c, 'b>(
    channel: &'c Channel<'b>,
    machine: &'c str,
) -> impl Iterator<Item = (Key<'b>, &'b Run, &'b Side, u64)> + 'c {
    // Clocks and threads of emulated guests are not those of the trace.
    let own = channel.measured().filter(move |one| one.machine == machine && !one.is_emulated());
    own.flat_map(|one| one.launches.iter().map(move |launch| (one, *launch))).flat_map(|(one, (launch, run))| {
        run.sides().flat_map(move |side| {
            side.gaps.iter().map(move |(at_ns, length_ns)| {
                ((one.machine, one.setup, launch, side.tid, *at_ns), run, side, *length_ns)
            })
        })
    })
}

/// What threads and interrupts are called in a trace, and what is known beside it.
struct Names<'a> {
    comms: &'a BTreeMap<i32, String>,
    handlers: &'a Handlers,
    /// There is a hypervisor below the machine; `None`: nobody told.
    below: Option<bool>,
    /// The trace has lost events.
    lost: bool,
}

impl Names<'_> {
    fn of(&self, by: By) -> Culprit {
        match by {
            By::Task(0) => Culprit::Idle,
            By::Task(tid) => match self.comms.get(&tid) {
                // A program may name its threads as it likes.
                Some(name) => Culprit::Thread(printable(name.trim()).into_owned(), tid),
                None => Culprit::Thread("unknown".to_owned(), tid),
            },
            By::Interrupt(interrupt) => {
                let (kind, name) = (interrupt.kind(), self.handlers.name(interrupt));
                let number = self.handlers.number(interrupt).filter(|_| kind == "irq");
                let kind = if matches!(kind, "irq" | "vector") { "interrupt" } else { kind };
                Culprit::Interrupt(name.map_or(kind.to_owned(), |name| format!("{kind} {name}")), number)
            }
            By::Exit(_) | By::Throttled | By::Stopped | By::Unknown => self.unknown(),
        }
    }

    fn unknown(&self) -> Culprit {
        if self.lost { Culprit::Lost } else { Culprit::Unknown }
    }

    /// Who had how much of a gap, most first.
    fn shares(&self, spent: &Spent) -> Vec<(Culprit, u64)> {
        let ran = if self.below == Some(true) { Culprit::Below } else { Culprit::Itself };
        let rest = [(ran, spent.ran_ns), (Culprit::Asleep, spent.asleep_ns), (self.unknown(), spent.unknown_ns)];
        let taken = spent.taken.iter().map(|(by, part)| (self.of(*by), part.total_ns));
        let mut shares: BTreeMap<Culprit, u64> = BTreeMap::new();
        taken.chain(rest).filter(|(_, ns)| *ns > 0).for_each(|(culprit, ns)| *shares.entry(culprit).or_default() += ns);
        let mut shares: Vec<(Culprit, u64)> = shares.into_iter().collect();
        shares.sort_by_key(|(_, ns)| Reverse(*ns));
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::attribution::Part;

    fn spent(taken: &[(By, u64)], ran_ns: u64, unknown_ns: u64) -> Spent {
        let part = |ns| Part { count: 1, total_ns: ns, max_ns: ns };
        Spent { ran_ns, asleep_ns: 0, taken: taken.iter().map(|(by, ns)| (*by, part(*ns))).collect(), unknown_ns }
    }

    #[test]
    fn the_longest_is_named_with_its_share_and_nobody_behind_lost_events() {
        let comms = BTreeMap::from([(4_711, "stress-ng".to_owned()), (5, "kworker/0:1".to_owned())]);
        let handlers = Handlers::default();
        let by = |below, lost, spent: &Spent| {
            let shares = Names { comms: &comms, handlers: &handlers, below, lost }.shares(spent);
            let all = shares.iter().map(|(_, ns)| ns).sum::<u64>();
            assert_eq!(all, 1_000, "together its length: {shares:?}");
            Explained { span: Span { from_ns: 0, to_ns: 1_000 }, shares }.by().unwrap()
        };
        let hog = spent(&[(By::Task(4_711), 920), (By::Task(5), 50)], 30, 0);
        assert_eq!(by(Some(true), false, &hog), "stress-ng/4711 (92.0 %)");
        assert_eq!(by(Some(true), false, &spent(&[(By::Task(4_711), 998)], 2, 0)), "stress-ng/4711");
        let on_its_cpu = spent(&[], 1_000, 0);
        assert_eq!(by(Some(true), false, &on_its_cpu), "the hypervisor below");
        assert_eq!(by(Some(false), false, &on_its_cpu), "firmware, or the thread itself");
        let in_the_dark = spent(&[(By::Task(4_711), 300)], 0, 700);
        assert_eq!(by(None, true, &in_the_dark), "unknown, events were lost (70.0 %)");
        assert_eq!(by(None, false, &spent(&[(By::Task(0), 1_000)], 0, 0)), "none: the CPU was idle");
    }

    #[test]
    fn threads_of_one_name_are_one_culprit_and_who_of_them_took_most_is_kept() {
        let setups = [1, 2].map(|batch| Setup {
            path: "ring".into(),
            window: "none".into(),
            size_bytes: 64,
            batch,
            policy: "poll".into(),
            vms: 2,
        });
        let mut culprits = Culprits::default();
        let thread = |tid| Culprit::Thread("cc1".to_owned(), tid);
        for (setup, at_ns, shares) in [
            (&setups[0], 0, vec![(thread(7), 30), (Culprit::Below, 5)]),
            (&setups[0], 9, vec![(thread(8), 40)]),
            (&setups[1], 0, vec![(Culprit::Below, 500)]),
        ] {
            let span = Span { from_ns: at_ns, to_ns: at_ns + 50 };
            culprits.gaps.insert(("L0", setup, 0, 1, at_ns), Explained { span, shares });
        }
        let sum = culprits.sum(|(_, setup, ..)| setup.batch == 1).unwrap();
        assert_eq!((sum.gap_ns, sum.worst()), (75, Some(&sum.groups[0])));
        assert_eq!(sum.groups[0], Group { name: "cc1".to_owned(), ns: 70, most: thread(8), members: 2 });
        assert_eq!(sum.groups[0].words(), "cc1 (2 threads)");
        assert_eq!(culprits.sum(|_| true).unwrap().groups[0].name, "the hypervisor below");
        assert!(culprits.sum(|(machine, ..)| *machine == "L1").is_none());
    }
}
