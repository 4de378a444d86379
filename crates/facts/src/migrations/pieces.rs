//! What did each device take while the guest stood still?
//!
//! ```text
//! src-downtime-start --stop--> src-vm-stopped --ram, cpu, .. saved--> src-downtime-end
//! first load ..... cpu, .. loaded ..... dst-precopy-loadvm-completed --start--> dst-precopy-bh-vm-started
//! all pieces of a side = its last line - its first; what lies between two lines and was taken by no device is `unnamed`
//! ```

use base::Span;
use host::migrated::Side;
use host::migrated::downtime_log::What;
use std::collections::BTreeMap;

/// Device or place, and kind.
pub type Key = (String, &'static str);

/// What one thread did with a stretch of a side's time, CLOCK_REALTIME.
pub struct Piece {
    pub key: Key,
    /// The thread, where the log names it.
    pub tid: Option<i32>,
    pub span: Span,
}

pub fn pieces(side: &Side) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut before_ns: Option<u64> = None;
    for step in &side.steps {
        let (key, took_ns) = match &step.what {
            What::Device { name, is_iterable, took_ns, .. } => {
                ((name.clone(), if *is_iterable { "iterable" } else { "non-iterable" }), *took_ns)
            }
            What::Checkpoint(name) => {
                let since_ns = before_ns.map_or(0, |before_ns| step.at_ns.saturating_sub(before_ns));
                ((name.clone(), "checkpoint"), since_ns)
            }
        };
        // A device of which the first line tells took its time before that line.
        let since_ns = before_ns.map_or(took_ns, |before_ns| step.at_ns.saturating_sub(before_ns));
        let own_from_ns = step.at_ns.saturating_sub(took_ns.min(since_ns));
        let gap = Span { from_ns: step.at_ns.saturating_sub(since_ns), to_ns: own_from_ns };
        let between = ("between the lines".to_owned(), "unnamed");
        let own = Span { from_ns: own_from_ns, to_ns: step.at_ns };
        let both = [(between, gap), (key, own)].into_iter().filter(|(_, span)| span.from_ns < span.to_ns);
        pieces.extend(both.map(|(key, span)| Piece { key, tid: step.tid, span }));
        // A line with an earlier time than the one before, damaged or of another thread, takes none.
        before_ns = before_ns.max(Some(step.at_ns));
    }
    pieces
}

/// What a side spent its time on; the sum is that of the whole side.
pub fn taken(side: &Side) -> BTreeMap<Key, u64> {
    let mut taken: BTreeMap<Key, u64> = BTreeMap::new();
    for piece in pieces(side) {
        *taken.entry(piece.key).or_default() += piece.span.length_ns();
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::migrated::downtime_log::read;

    #[test]
    fn a_time_that_jumps_ahead_and_back_is_counted_once() {
        let log = "1@5.000100:vmstate_downtime_save type=non-iterable idstr=apic instance_id=0 downtime=90\n\
                   1@15000000000.000000:vmstate_downtime_save type=non-iterable idstr=nic instance_id=0 downtime=5\n\
                   1@5.000200:vmstate_downtime_save type=non-iterable idstr=cpu instance_id=0 downtime=50\n\
                   1@15000000000.000100:vmstate_downtime_save type=non-iterable idstr=rtc instance_id=0 downtime=100\n";
        let side = &read(log)[0];
        let spans: Vec<Span> = pieces(side).iter().map(|piece| piece.span).collect();
        assert!(spans.windows(2).all(|two| two[0].to_ns <= two[1].from_ns), "one behind the other: {spans:?}");
        assert_eq!(taken(side).values().sum::<u64>(), 15_000_000_000_000_100_000 - 5_000_010_000);
    }

    #[test]
    fn all_rows_of_a_side_are_its_time_and_a_gap_is_unnamed() {
        let log = "1@5.000100:vmstate_downtime_checkpoint src-downtime-start\n\
            1@5.000150:vmstate_downtime_checkpoint src-vm-stopped\n\
            1@5.000400:vmstate_downtime_save type=iterable idstr=ram instance_id=0 downtime=200\n\
            1@5.000450:vmstate_downtime_save type=non-iterable idstr=cpu instance_id=0 downtime=50\n\
            1@5.000460:vmstate_downtime_save type=non-iterable idstr=cpu instance_id=1 downtime=11\n\
            1@5.000500:vmstate_downtime_checkpoint src-downtime-end\n";
        let taken = taken(&read(log)[0]);
        let us = |device: &str, kind| taken.get(&(device.to_owned(), kind)).map(|ns| ns / 1_000);
        assert_eq!([us("ram", "iterable"), us("cpu", "non-iterable")], [Some(200), Some(60)]);
        assert_eq!([us("src-vm-stopped", "checkpoint"), us("src-downtime-end", "checkpoint")], [Some(50), Some(40)]);
        assert_eq!((us("between the lines", "unnamed"), us("src-downtime-start", "checkpoint")), (Some(50), None));
        assert_eq!(taken.values().sum::<u64>(), 400_000);
    }
}
