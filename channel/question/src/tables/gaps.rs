//! Table `gaps`: when a side lost its CPU, for how long, and to whom.

use super::super::culprits::Explained;
use super::super::measured::{Channel, Measured};
use base::channel::{Setup, Side};
use base::{Shown, Table, TableSpec, shown, table};

/// The path that goes through a machine that forwards.
const SWITCH: &str = "switch";
/// Gaps that are listed of each run, the longest.
const GAPS_OF_RUN: usize = 50;
const MOST_GAPS: usize = 500;

/// When a side lost its CPU.
pub(super) const GAPS: TableSpec = table! {
    channel.gaps version 1:
    "One gap that a side saw: between two polls of the ring its CPU did something else. at_ns counts from its first poll; `by` is who had \
          the CPU for most of it, where a trace was recorded with it, with the share of the gap where others had a part. timeline_from_ns and \
          timeline_to_ns are its times in the recording, cpu is that of the side. The 50 longest of each run, 500 in all.";
    key machine, key thread, key path, key window, key_u64("bytes") size_bytes, key_u64("count") batch, key policy,
    key_u64("count") vms, key_u64("") launch, key_u64("ns") at_ns, ns length_ns, text by, ns timeline_from_ns,
    ns timeline_to_ns, u64("") cpu;
    Shown {
        largest_first: Some("length_ns"),
        rest: Some("shorter gaps"),
        ..shown![
            "When a side lost its CPU", 10;
            thread, cpu: "CPU", path, window, size_bytes: "frame", batch, launch, at_ns: "at", length_ns: "for", by,
        ]
    }
};

#[derive(Clone, Copy)]
struct Gap<'c, 'b> {
    one: &'c Measured<'b>,
    launch: u32,
    tid: i32,
    cpu: u32,
    side: usize,
    at_ns: u64,
    length_ns: u64,
}

/// Table [`GAPS`].
pub(crate) fn gaps<'c>(channel: &'c Channel<'_>) -> Table {
    let mut all: Vec<Gap<'_, '_>> = Vec::new();
    for one in channel.measured() {
        for (launch, run) in &one.launches {
            let of = |(number, side): (usize, &'c Side)| {
                side.gaps.iter().map(move |&(at_ns, length_ns)| Gap {
                    one,
                    launch: *launch,
                    tid: side.tid,
                    cpu: side.cpu,
                    side: number,
                    at_ns,
                    length_ns,
                })
            };
            let mut own: Vec<Gap<'_, '_>> = run.sides().enumerate().flat_map(of).collect();
            longest(&mut own, GAPS_OF_RUN);
            all.append(&mut own);
        }
    }
    longest(&mut all, MOST_GAPS);
    let mut table = Table::new(&GAPS);
    for Gap { one, launch, side, tid, cpu, at_ns, length_ns } in all {
        let explained = channel.culprits.of_gap(&(one.machine, one.setup, launch, tid, at_ns));
        let Setup { path, window, size_bytes, batch, policy, vms } = one.setup;
        table.push(vec![
            one.machine.into(),
            thread(one.setup, side).into(),
            path.as_str().into(),
            window.as_str().into(),
            u64::from(*size_bytes).into(),
            u64::from(*batch).into(),
            policy.as_str().into(),
            u64::from(*vms).into(),
            u64::from(launch).into(),
            at_ns.into(),
            length_ns.into(),
            explained.and_then(Explained::by).into(),
            explained.map(|explained| explained.span.from_ns).into(),
            explained.map(|explained| explained.span.to_ns).into(),
            u64::from(cpu).into(),
        ]);
    }
    table
}

/// What a side is called: two over a ring have one direction, more have all.
pub(crate) fn thread(setup: &Setup, side: usize) -> String {
    match side {
        0 if setup.vms == 2 && setup.path != SWITCH => "producer".to_owned(),
        1 if setup.vms == 2 && setup.path != SWITCH => "consumer".to_owned(),
        side if side == setup.vms as usize => SWITCH.to_owned(),
        side => format!("VM {side}"),
    }
}

/// Keeps the longest ones, in the order of length.
fn longest(gaps: &mut Vec<Gap<'_, '_>>, most: usize) {
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.length_ns));
    gaps.truncate(most);
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{Made, benches};
    use super::*;
    use facts::machines::Machines;

    fn table_of(made: &[Made]) -> Table {
        let benches = benches(made);
        gaps(&Channel::of(&benches, &Machines::default()))
    }

    #[test]
    fn the_longest_gaps_are_listed_and_no_more_than_fit() {
        let gaps_of = |count: u64| Side { gaps: (0..count).map(|at| (at, 5_000 + at)).collect(), ..Side::default() };
        let made = |launch| Made { launch, producer: gaps_of(40), consumer: gaps_of(60), ..Made::default() };
        let gaps = table_of(&[made(0)]);
        assert_eq!((gaps.rows.len(), gaps.cell(0, "thread")), (50, Some(&"consumer".into())));
        assert_eq!(gaps.rows().map(|row| row.number("length_ns").unwrap()).reduce(f64::min), Some(5_025.0));
        let gaps = table_of(&(0..12).map(made).collect::<Vec<_>>());
        assert_eq!(gaps.rows.len(), 500);
        assert!(gaps.rows().all(|row| row.text("by").is_none()));
    }
}
