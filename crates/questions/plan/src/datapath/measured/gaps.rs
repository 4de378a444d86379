//! Who took the CPU of each polling thread while a trial's window ran? Named by the trace that was recorded meanwhile.
//!
//! In: trials with the times of their windows, and the trace of the same machine. Out: a table whose rows add up, with the time that
//! the thread itself ran, to the window; and sentences on what the trace lacks and what recording it cost.

use base::datapath::{DatapathRun, Poller};
use base::number::{list, many, percent};
use base::table::Shown;
use base::{Cell, Span, Table, TableSpec, Unknown, shown, table};
use facts::Case;
use facts::attribution::pollers::{Asked, Spent, spent};
use facts::datapaths::Bed;
use facts::ledger::model::{Flow, PartFlow};
use facts::losses::By;
use facts::samples::SampleClock;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use walk::events::host_interrupts::Handlers;

pub(super) const GAPS: TableSpec = table! {
    datapath.gaps version 1:
    "What took the CPU of one polling thread within the window of one trial, by the trace: a thread, an interrupt (irq, vector, softirq, nmi), \
     time that the thread was asleep, and what the trace does not show (unknown). With the time that the thread itself \
          ran, they add up to the window. An interrupt cuts what it interrupts in two. What the hypervisor below took is in none of them.";
    key machine, key pattern, key_u64("") vnfs, key_u64("") size_bytes, key_u64("") repeat, key thread, key_u64("") tid,
    u64("") cpu, key kind, key by, key_u64("") by_tid, count count, ns total_ns, ns max_ns, share share;
    Shown {
        largest_first: Some("total_ns"),
        rest: Some("of less time"),
        ..shown![
            "Who took most of the CPUs of polling threads, by the trace", 16;
            vnfs: "VNFs", size_bytes: "bytes", repeat: "trial", thread, cpu: "CPU", kind, by, by_tid: "its id",
            count: "times", total_ns: "total", max_ns: "longest", share: "of window",
        ]
    }
};

/// A polling thread in a trial, and what became of its window.
struct Polled<'a> {
    machine: &'a str,
    run: &'a DatapathRun,
    poller: &'a Poller,
    spent: Spent,
}

/// What traces tell of the polling threads of all beds.
#[derive(Default)]
pub(super) struct Gaps {
    /// Table [`GAPS`], if there is anything to tell.
    pub(super) table: Option<Table>,
    /// Who took most, a sentence for each CPU.
    pub(super) who: Vec<String>,
    /// What recording cost, a sentence for each trace.
    pub(super) told: Vec<String>,
    /// What the traces lack.
    pub(super) unknown: Vec<Unknown>,
}

/// Reads the traces of machines whose beds were recorded meanwhile.
pub(super) fn of(case: &Case, beds: &[Bed]) -> Gaps {
    let mut gaps = Gaps::default();
    let is_traced = |bed: &Bed| bed.runs.runs.iter().any(|run| run.traced_from_ns.is_some());
    if case.input().parts.is_empty() || !beds.iter().any(is_traced) {
        return gaps;
    }
    let flow: &Flow = case.ledger();
    let mut table = Table::new(&GAPS);
    for bed in beds.iter().filter(|bed| is_traced(bed)) {
        let is_own = |part: &PartFlow| part.machine == bed.machine && part.twin_of.is_none() && part.has_switches;
        let Some(place) = flow.parts.iter().position(is_own) else { continue };
        let part = &flow.parts[place];
        let threads: Vec<(&DatapathRun, &Poller)> = threads(bed).collect();
        let asked: Vec<Asked> = threads.iter().map(|(run, poller)| asked(run, poller)).collect();
        let hear = &mut |done, all| case.hear(done, all);
        let Some((spent, handlers)) =
            spent((case.input(), case.given(), flow), place, (&asked, SampleClock::Monotonic), hear)
        else {
            continue;
        };
        let polled = threads.into_iter().zip(spent).map(|((run, poller), spent)| Polled {
            machine: &bed.machine,
            run,
            poller,
            spent,
        });
        let polled: Vec<Polled<'_>> = polled.collect();
        let names = Names { comms: &part.comms, handlers: &handlers };
        polled.iter().for_each(|polled| rows(&mut table, polled, &names));
        gaps.who.extend(who(&polled, &names));
        gaps.told.push(cost(part, &polled, &names));
        gaps.unknown.extend(lost(part));
    }
    gaps.table = (!table.rows.is_empty()).then_some(table);
    gaps
}

/// Threads that polled in trials that were recorded.
fn threads(bed: &Bed) -> impl Iterator<Item = (&DatapathRun, &Poller)> {
    let traced = bed.runs.runs.iter().filter(|run| run.traced_from_ns.is_some());
    traced.flat_map(|run| run.pollers.iter().map(move |poller| (run, poller)))
}

fn asked(run: &DatapathRun, poller: &Poller) -> Asked {
    let window = Span { from_ns: run.begin_ns, to_ns: run.begin_ns.saturating_add(run.window_ns) };
    Asked { tid: i32::try_from(poller.tid).unwrap_or(-1), window }
}

/// What threads and interrupts are called in a trace.
struct Names<'a> {
    comms: &'a BTreeMap<i32, String>,
    handlers: &'a Handlers,
}

impl Names<'_> {
    fn of(&self, by: By) -> String {
        by.name_among(self.comms, self.handlers)
    }
}

/// What took the CPU, as column `kind` has it.
fn kind(by: By) -> &'static str {
    match by {
        By::Interrupt(interrupt) => interrupt.kind(),
        By::Task(_) => "thread",
        By::Exit(_) | By::Throttled | By::Stopped | By::Unknown => "unknown",
    }
}

fn rows(table: &mut Table, polled: &Polled<'_>, names: &Names<'_>) {
    let Polled { machine, run, poller, spent } = polled;
    let mut row =
        |kind: &str, by: Cell, by_tid: Option<i32>, (count, total_ns, max_ns): (Option<u64>, u64, Option<u64>)| {
            let cells: [Cell; 15] = [
                (*machine).into(),
                run.pattern.name().into(),
                u64::from(run.vnfs).into(),
                u64::from(run.size_bytes).into(),
                u64::from(run.repeat).into(),
                poller.name.as_str().into(),
                u64::from(poller.tid).into(),
                u64::from(poller.cpu).into(),
                kind.into(),
                by,
                by_tid.and_then(|tid| u64::try_from(tid).ok()).into(),
                count.into(),
                total_ns.into(),
                max_ns.into(),
                (total_ns as f64 / run.window_ns.max(1) as f64).into(),
            ];
            table.push(cells.into());
        };
    let mut taken: Vec<_> = spent.taken.iter().collect();
    taken.sort_by_key(|(_, part)| Reverse(part.total_ns));
    for (by, part) in taken {
        row(kind(*by), names.of(*by).into(), by.tid(), (Some(part.count), part.total_ns, Some(part.max_ns)));
    }
    for (kind, ns) in [("asleep", spent.asleep_ns), ("unknown", spent.unknown_ns)].into_iter().filter(|(_, ns)| *ns > 0)
    {
        row(kind, Cell::Missing, None, (None, ns, None));
    }
}

/// Of each polling thread, by its name and CPU, who took most of its windows.
fn who(polled: &[Polled<'_>], names: &Names<'_>) -> Vec<String> {
    let mut by_cpu: BTreeMap<u32, Vec<&Polled<'_>>> = BTreeMap::new();
    polled.iter().for_each(|polled| by_cpu.entry(polled.poller.cpu).or_default().push(polled));
    let sentence = |(cpu, all): (u32, Vec<&Polled<'_>>)| {
        let windows_ns: u64 = all.iter().map(|polled| polled.run.window_ns).sum();
        let share = |ns: u64| ns as f64 / windows_ns.max(1) as f64;
        let mut takers: BTreeMap<String, u64> = BTreeMap::new();
        for (by, part) in all.iter().flat_map(|polled| &polled.spent.taken) {
            *takers.entry(names.of(*by)).or_default() += part.total_ns;
        }
        let mut takers: Vec<(String, u64)> = takers.into_iter().collect();
        takers.sort_by_key(|(name, ns)| (Reverse(*ns), name.clone()));
        let taken = percent(share(takers.iter().map(|(_, ns)| ns).sum()));
        let most = takers.iter().take(NAMED).map(|(name, ns)| format!("{name} {}", percent(share(*ns))));
        let most = most.collect::<Vec<_>>().join(", ");
        let threads: BTreeSet<&str> = all.iter().map(|polled| polled.poller.name.as_str()).collect();
        let whose = if threads.len() > 1 { "their" } else { "its" };
        let threads = list(&threads.into_iter().map(str::to_owned).collect::<Vec<_>>());
        let named = if most.is_empty() { String::new() } else { format!(": {most}") };
        format!("{threads} lost {taken} of {whose} windows on CPU {cpu} to others, by the trace{named}")
    };
    by_cpu.into_iter().map(sentence).collect()
}

const NAMED: usize = 3;

/// What the trace itself took: its events, and the time of its program on the pollers' CPUs.
fn cost(part: &PartFlow, polled: &[Polled<'_>], names: &Names<'_>) -> String {
    let own = |by: By| by.tid().is_some() && names.of(by).starts_with(OWN);
    let took_ns: u64 = polled
        .iter()
        .flat_map(|polled| &polled.spent.taken)
        .filter(|(by, _)| own(**by))
        .map(|(_, part)| part.total_ns)
        .sum();
    let windows_ns: u64 = polled.iter().map(|polled| polled.run.window_ns).sum();
    let took = percent(took_ns as f64 / windows_ns.max(1) as f64);
    format!("recording wrote {}; the threads of kvmscope took {took} of the windows", many(part.events, "event"))
}

/// What the names of this program's threads begin with.
const OWN: &str = "kvmscope";

/// Events that the trace has lost. Switches that it does not show because it was paused between windows are none.
fn lost(part: &PartFlow) -> Option<Unknown> {
    let events = part.lost_events();
    (events > 0).then(|| Unknown {
        what: "lost_events".to_owned(),
        amount: Some(events as f64),
        unit: "events".to_owned(),
        text: format!(
            "{} lost {}: who had the CPUs of polling threads is unknown there.",
            part.path,
            many(events, "event")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::datapath::{Books, Traffic};
    use facts::attribution::sums::Part;

    fn polled<'a>(run: &'a DatapathRun, poller: &'a Poller, taken: &[(By, u64)]) -> Polled<'a> {
        let part = |ns| Part { count: 2, total_ns: ns, max_ns: ns / 2 };
        let taken: BTreeMap<By, Part> = taken.iter().map(|(by, ns)| (*by, part(*ns))).collect();
        let spent = Spent { ran_ns: 600, asleep_ns: 0, taken, unknown_ns: 100 };
        Polled { machine: "L0", run, poller, spent }
    }

    #[test]
    fn who_took_a_cpu_has_a_row_and_who_took_most_is_said_first() {
        let poller =
            Poller { name: "pmd-c00/id:9".into(), tid: 9, cpu: 0, run_share: 0.6, wait_share: 0.3, cycles: None };
        let run = DatapathRun {
            design: "ovs-dpdk".into(),
            pattern: Traffic::Chain,
            vnfs: 1,
            size_bytes: 64,
            repeat: 0,
            offered_pps: None,
            begin_ns: 5_000,
            traced_from_ns: Some(4_000),
            window_ns: 1_000,
            window_error_ns: 0,
            window_sent: 0,
            window_received: 0,
            samples: Vec::new(),
            books: Books::default(),
            pollers: vec![poller.clone()],
            steal_share: None,
            interference: Vec::new(),
            bound_by: None,
            cores: None,
        };
        assert_eq!(asked(&run, &poller), Asked { tid: 9, window: Span { from_ns: 5_000, to_ns: 6_000 } });
        let comms = BTreeMap::from([(5, "cc1".to_owned()), (6, "kvmscope-drain".to_owned())]);
        let handlers = Handlers::default();
        let names = Names { comms: &comms, handlers: &handlers };
        let polled = [polled(&run, &poller, &[(By::Task(6), 50), (By::Task(5), 250)])];
        let mut table = Table::new(&GAPS);
        rows(&mut table, &polled[0], &names);
        let told: Vec<_> =
            table.rows().map(|row| (row.text("by").map(str::to_owned), row.number("total_ns"))).collect();
        let row = |by: &str, ns| (Some(by.to_owned()), Some(ns));
        assert_eq!(told, [row("cc1", 250.0), row("kvmscope-drain", 50.0), (None, Some(100.0))]);
        let first = table.rows().next().unwrap();
        assert_eq!(
            (first.number("by_tid"), first.number("share"), first.text("kind")),
            (Some(5.0), Some(0.25), Some("thread"))
        );
        assert_eq!(
            super::who(&polled, &names),
            [
                "pmd-c00/id:9 lost 30.0 % of its windows on CPU 0 to others, by the trace: cc1 25.0 %, kvmscope-drain 5.0 %"
            ]
        );
    }
}
