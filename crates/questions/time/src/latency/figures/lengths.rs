//! How many samples have which length?

use super::percentiles::{title, unkept};
use super::{goals_of, kind};
use base::Figure;
use base::figure::{Axis, Bin, Drawing, Edge, Histogram, Kind};
use base::number::{counted, duration, many, thousands};
use facts::Case;
use facts::attribution::{Attributed, Sums};
use facts::budget::{Goal, exact};
use facts::losses::LostIn;
use facts::samples::{SampleFile, Samples};
use std::collections::BTreeSet;

/// Lengths that have a bin each; more of them share bins that end at round numbers.
const MOST_SINGLE: u64 = 24;

/// All threads of a result in one picture; none where no lengths were kept.
pub(super) fn figure(case: &Case, place: usize, file: &SampleFile) -> Option<Figure> {
    let all = || file.samples.iter().flat_map(|samples| samples.buckets.iter().map(move |bucket| (samples, bucket)));
    let kept = || all().filter(|(samples, bucket)| samples.is_kept(bucket));
    let lengths = || kept().map(|(samples, bucket)| samples.length_ns(bucket));
    let first = file.samples.first()?;
    let goals: Vec<&Goal> = goals_of(case, first).collect();
    let limits: Vec<u64> = goals.iter().map(|goal| goal.limit_ns).collect();
    let unkept: u64 = file.samples.iter().flat_map(unkept).sum();
    let unkept_ns = all().filter(|(samples, bucket)| !samples.is_kept(bucket)).map(|(_, bucket)| bucket.from_ns).min();
    let longest_ns = file.samples.iter().filter_map(|samples| samples.extremes_ns().1).max()?;
    let unit_ns = file.samples.iter().map(|samples| samples.unit_ns).max()?.max(1);
    let mut ends = ends(lengths().min()?, lengths().max()?, unit_ns, &limits);
    if let Some(from_ns) = unkept_ns {
        ends.retain(|end| *end < from_ns);
        ends.extend([from_ns, longest_ns.max(from_ns).saturating_add(unit_ns)]);
    }
    let bin_of = |ns: u64| ends.partition_point(|end| *end <= ns).saturating_sub(1).min(ends.len().saturating_sub(2));
    let mut bins: Vec<Bin> =
        ends.windows(2).map(|ends| Bin { from: ends[0] as f64, to: ends[1] as f64, counts: vec![0, 0] }).collect();
    for (samples, bucket) in all() {
        let (kind, at_ns) = match samples.is_kept(bucket) {
            true => (0, samples.length_ns(bucket)),
            false => (1, bucket.from_ns),
        };
        let count = &mut bins.get_mut(bin_of(at_ns))?.counts[kind];
        *count = count.saturating_add(bucket.count);
    }
    let mut kinds = vec![Kind { label: "samples".into(), hue: String::new() }];
    if unkept > 0 {
        kinds.push(Kind { label: "samples whose length the file does not tell".into(), hue: "unknown".into() });
    } else {
        bins.iter_mut().for_each(|bin| bin.counts.truncate(1));
    }
    if let Some(sums) = causes(case, file) {
        coloured(sums, bin_of, &mut kinds, &mut bins);
    }
    let total = file.samples.iter().fold(0_u64, |sum, samples| sum.saturating_add(samples.count));
    let caption = format!(
        "{} of {}, as the program rounds them: the longest {}{}.",
        many(total, "sample"),
        counted(file.samples.len() as u64, "thread", "threads"),
        duration(longest_ns as f64),
        goals.iter().map(|goal| over(goal, &file.samples)).collect::<String>()
    );
    let edge = |goal: &&Goal| Edge { label: goal.id.clone(), value: goal.limit_ns as f64 };
    Some(Figure {
        id: format!("lengths-{place}"),
        title: format!("{} by length", title(file)),
        caption,
        in_terminals: !goals.is_empty(),
        drawing: Drawing::Histogram(Histogram {
            x: Axis { title: "length".into(), unit: "ns", is_logarithmic: true },
            counted: "samples",
            kinds,
            bins,
            limits: goals.iter().map(edge).collect(),
        }),
    })
}

/// What is known of who took the time of a result's samples: of several limits by the lowest, which counts the most of them.
fn causes<'c>(case: &'c Case, file: &SampleFile) -> Option<&'c Sums> {
    let source = file.samples.first()?.source;
    let of_file = |one: &&Attributed| (&one.machine, &one.path, one.source) == (&file.machine, &file.path, source);
    case.attributed().iter().filter(of_file).min_by_key(|one| one.over.above_ns).map(|one| &one.sums)
}

/// Gives samples the colour of the state that took most of them; those of which it was not asked keep theirs.
fn coloured(sums: &Sums, bin_of: impl Fn(u64) -> usize, kinds: &mut Vec<Kind>, bins: &mut [Bin]) {
    let known: BTreeSet<Option<LostIn>> = sums.by_length.keys().map(|(_, most)| *most).collect();
    let plain = kinds.len();
    bins.iter_mut().for_each(|bin| bin.counts.resize(plain + known.len(), 0));
    for ((length_ns, most), count) in &sums.by_length {
        let place = plain + known.iter().position(|one| one == most).unwrap_or(0);
        let Some(bin) = bins.get_mut(bin_of(*length_ns)) else { continue };
        let mut left = *count;
        for from in 0..plain {
            let moved = left.min(bin.counts[from]);
            bin.counts[from] -= moved;
            bin.counts[place] += moved;
            left -= moved;
        }
    }
    let taken = |state: LostIn| sums.by_state.get(&state).into_iter().flatten().map(|(name, ns)| (&**name, *ns));
    kinds.extend(known.iter().map(|most| match most {
        Some(state) => kind(*state, taken(*state)),
        None => Kind { label: "unexplained".into(), hue: "unknown".into() },
    }));
    if let Some(first) = kinds.first_mut() {
        first.label = "samples whose cause was not looked for".into();
    }
    let is_used: Vec<bool> = (0..kinds.len()).map(|kind| bins.iter().any(|bin| bin.counts[kind] > 0)).collect();
    let mut used = is_used.iter();
    kinds.retain(|_| *used.next().unwrap_or(&true));
    for bin in bins {
        let mut used = is_used.iter();
        bin.counts.retain(|_| *used.next().unwrap_or(&true));
    }
}

/// `; 5 to 54 over the limit of 15 us (timer-max)`.
fn over(goal: &Goal, samples: &[Samples]) -> String {
    let of = samples.iter().map(|samples| samples.over(goal.most_ns()));
    let (low, high) = of.fold((0_u64, 0_u64), |sum, one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)));
    let how_many = match (low, high) {
        (_, 0) => "none".to_owned(),
        (low, high) if low == high => thousands(high),
        (low, high) => format!("{} to {}", thousands(low), thousands(high)),
    };
    format!("; {how_many} over the limit of {} ({})", exact(goal.limit_ns), goal.id)
}

/// Where bins begin and end: each length has its own, or they end at 1, 2 and 5 times powers of ten; limits always lie between two.
fn ends(least_ns: u64, most_ns: u64, unit_ns: u64, limits: &[u64]) -> Vec<u64> {
    let least_ns = limits.iter().copied().fold(least_ns, u64::min);
    let most_ns = limits.iter().copied().fold(most_ns, u64::max);
    let mut ends: BTreeSet<u64> = if (most_ns - least_ns) / unit_ns < MOST_SINGLE {
        (0..=(most_ns - least_ns) / unit_ns + 1).map(|step| least_ns.saturating_add(step * unit_ns)).collect()
    } else {
        let round = (0..=19).flat_map(|power| [1, 2, 5].map(|times: u64| times.saturating_mul(10_u64.pow(power))));
        let round: Vec<u64> = std::iter::once(0).chain(round.filter(|end| *end >= unit_ns)).collect();
        let first = round.partition_point(|end| *end <= least_ns).saturating_sub(1);
        let behind = round.partition_point(|end| *end <= most_ns).min(round.len() - 1);
        round[first..=behind].iter().copied().collect()
    };
    ends.extend(limits);
    ends.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_single_lengths_or_end_at_round_ones_and_at_limits() {
        assert_eq!(ends(7_000, 9_000, 1_000, &[]), [7_000, 8_000, 9_000, 10_000]);
        assert_eq!(ends(7_000, 9_000, 1_000, &[5_000]), [5_000, 6_000, 7_000, 8_000, 9_000, 10_000]);
        assert_eq!(ends(0, 45_000, 1_000, &[15_000]), [0, 1_000, 2_000, 5_000, 10_000, 15_000, 20_000, 50_000]);
        assert_eq!(ends(3_000, 3_000, 1_000, &[]), [3_000, 4_000]);
        assert!(ends(0, u64::MAX, 1, &[]).is_sorted());
    }
}
