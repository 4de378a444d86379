//! How long is the longest of so many samples?

use super::Samples;

/// Points of a curve are this far apart: 0.5 % along the page, less than a pixel.
const APART: f64 = 1.005;

/// Of the samples of all `threads` together: one in so many is as long as that, or longer. Ascending; each holds up to the next one,
/// and the last one is the longest sample. Samples whose length the program did not keep have the least that it can be.
pub fn by_percentile(threads: &[&Samples]) -> Vec<(f64, f64)> {
    let buckets = threads.iter().flat_map(|samples| samples.buckets.iter().map(|bucket| (*samples, bucket)));
    let mut lengths: Vec<(u64, u64)> =
        buckets.map(|(samples, bucket)| (samples.length_ns(bucket), bucket.count)).collect();
    lengths.sort_unstable();
    let count = threads.iter().fold(0_u64, |sum, samples| sum.saturating_add(samples.count));
    let (mut before, mut last, mut points) = (0_u64, 0.0, Vec::new());
    for (length_ns, alike) in lengths {
        let one_in = count as f64 / count.saturating_sub(before).max(1) as f64;
        if one_in >= last * APART {
            points.push((one_in, length_ns as f64));
            last = one_in;
        }
        before = before.saturating_add(alike);
    }
    let longest_ns = threads.iter().filter_map(|samples| samples.extremes_ns().1).max();
    points.extend(longest_ns.map(|longest_ns| (count as f64, longest_ns as f64)));
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Source;

    #[test]
    fn threads_are_one_distribution() {
        let thread = |us: &[u64]| {
            let mut samples = Samples::new(Source::Cyclictest, "0");
            samples.between(us.first().copied(), us.last().copied());
            us.iter().for_each(|us| samples.add(*us, 1));
            samples
        };
        let (one, two) = (thread(&[1, 3]), thread(&[2, 9]));
        let points = [(1.0, 1e3), (4.0 / 3.0, 2e3), (2.0, 3e3), (4.0, 9e3), (4.0, 9e3)];
        assert_eq!(by_percentile(&[&one, &two]), points);
        assert_eq!(by_percentile(&[&two, &one]), points);
        assert!(by_percentile(&[]).is_empty());
    }
}
