//! What others published of live migrations, and what the model predicts of the same.
//!
//! How much of the guest was zeros was not published, and that decides: the band reaches from a guest of nothing else to one without any.

use super::model::memory::{Memory, PAGE_BYTES, PAGE_MEMORY_BYTES};
use super::model::passes::Setting;
use super::model::working_set::{Hot, WorkingSet};
use super::predict::{Asked, Order, Prediction};
use base::number::percent;
use facts::published::{MigrationQuantity, MigrationTime, migrations};
use facts::validation::{Band, Comparison, Worth, chapter};

/// The one that gave the most that one core looks at in a second.
const GAVE_SCAN: &str = "kvm4nfv.total.idle.after";
const GIB: f64 = 1_073_741_824.0;

/// The least time until a guest that writes nothing runs on the target, if so much of it is zeros.
fn total_ms(record: &MigrationTime, zero_share: f64) -> Option<f64> {
    let bytes_per_s = record.link_gbps * 1e9 / 8.0;
    let setting = Setting {
        memory: Memory { pages: record.memory_gib * GIB / PAGE_MEMORY_BYTES, zero_share },
        working_set: WorkingSet::Cyclic(Hot { pages: 0.0, pages_per_s: 0.0 }),
        bytes_per_s,
        limit_s: record.limit_ms / 1e3,
        throttle: 0.0,
    };
    let asked = Asked {
        setting,
        order: Order::Unknown,
        link_bytes_per_s: bytes_per_s,
        senders: Vec::new(),
        devices_s: [0.0; 2],
        setup_s: 0.0,
        scan_bytes_per_s: None,
    };
    Some(Prediction::of(&asked).total_s.low? * 1e3)
}

/// What of the guest must have been zeros, as the port carries no more in the time that was published.
fn least_zero_share(record: &MigrationTime) -> f64 {
    let carried = record.link_gbps * 1e9 / 8.0 * record.ms / 1e3;
    1.0 - carried / (record.memory_gib * GIB / PAGE_MEMORY_BYTES * PAGE_BYTES)
}

fn comparison(record: &'static MigrationTime) -> Comparison {
    let MigrationTime { id, source, memory_gib, link_gbps, limit_ms, ms, .. } = record;
    let (predicted, worth, note) = match record.quantity {
        MigrationQuantity::Total => {
            let ends = total_ms(record, 1.0).zip(total_ms(record, 0.0));
            let least = percent(least_zero_share(record));
            let note = format!("the port carries no more: at least {least} of the guest were zeros");
            (
                ends.map(|(low, high)| Band { low, likely: high, high }),
                if id == GAVE_SCAN { Worth::Fitted } else { Worth::Held },
                note,
            )
        }
        MigrationQuantity::Dark => {
            let note =
                "the limit is all that a plan knows: it is 100 ms by the command and 10 ms by the text".to_owned();
            (Some(Band::up_to(*limit_ms)), Worth::Ceiling, note)
        }
    };
    Comparison {
        id: id.clone(),
        result: id.clone(),
        source,
        inputs: format!(
            "{memory_gib} GiB, {link_gbps} Gb/s, limit {limit_ms} ms, {}; zeros from none to all",
            record.guest
        ),
        unit: "ms",
        published: *ms,
        predicted,
        worth,
        note,
    }
}

/// What the model predicts of each published migration.
pub(super) fn comparisons() -> Vec<Comparison> {
    migrations().iter().map(comparison).collect()
}

/// The chapter of docs/formats/validation.md about migrations.
pub fn validation() -> (String, Vec<Comparison>) {
    const ABOUT: &str = "OPNFV moved a guest of 8 GiB over a port of 10 Gb/s before and after its changes. Neither how much of it was zeros nor \
        what it dirtied was published, so the band is that of a guest that writes nothing, from all zeros to none, which is what a plan takes where \
        nothing is stated: it is met easily, and proves little. Run `lab migrate` or `record --migration --prediction` to compare a plan with a \
        migration of your own.";
    let rows = comparisons();
    (chapter("Live migration: `plan migration`", ABOUT, &rows), rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_without_zeros_takes_what_its_memory_takes_on_the_wire() {
        let record = &migrations()[0];
        // 8 GiB in pages of 4,104 bytes at 1.25 GB/s, and the fastest look at as many zeros.
        assert_eq!(total_ms(record, 0.0).map(f64::round), Some(6_885.0));
        assert_eq!(total_ms(record, 1.0).map(f64::round), Some(401.0));
    }

    #[test]
    fn nine_tenths_of_the_guest_that_moved_in_654_ms_were_zeros() {
        let record = migrations().iter().find(|record| record.ms == 654.0).unwrap();
        assert!((0.90..0.91).contains(&least_zero_share(record)), "{}", least_zero_share(record));
    }
}
