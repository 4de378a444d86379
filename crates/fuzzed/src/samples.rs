//! Any bytes as the result of a program that measures latencies.

use crate::room::Room;
use base::recording::{Named, Recording};

/// Panics where a promise is broken by these bytes.
pub fn samples(room: &Room, bytes: &[u8]) {
    let path = room.write("result", bytes);
    let Ok(recording) = Recording::of_files(&[Named::at_l0(path)], None) else { return };
    let Ok(input) = analysis::open(recording) else { return };
    for (_, samples) in input.results.each() {
        let in_buckets = samples.buckets.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket.count));
        assert_eq!(in_buckets, samples.count, "samples outside the buckets: {samples:?}");
        for limit_ns in [0, 15_000, 1_000_000, u64::MAX] {
            let (low, high) = samples.over(limit_ns);
            assert!(low <= high && high <= samples.count, "{low} to {high} over {limit_ns}: {samples:?}");
        }
        for share in [0.0, 0.5, 0.99, 1.0] {
            samples.quantile_ns(share);
        }
    }
}
