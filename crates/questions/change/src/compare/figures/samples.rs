//! How long were the samples that programs measured, before and after?

use super::{SIDES, curve, figure};
use base::Figure;
use base::figure::{Form, On};
use base::number::{duration, many};
use facts::Case;
use facts::samples::{Samples, Source, by_percentile};
use std::collections::BTreeMap;

/// A program on a machine.
type Who<'c> = (&'c str, Source);

/// A picture for each program that measured on the same machine on both sides and kept lengths; all of its threads are one curve.
pub(super) fn figures(sides: [&[&Case]; 2]) -> Vec<Figure> {
    let budget = sides[1].first().and_then(|case| case.budget());
    let [before, after] = sides.map(measured);
    let both = before.iter().filter_map(|(who, one)| Some((who, [one, after.get(who)?])));
    let drawn = both.enumerate().map(|(place, ((machine, source), sides))| {
        let name = format!("Samples of {} on {machine}", source.name());
        let said = SIDES.into_iter().zip(sides).map(|(side, threads)| {
            let count = threads.iter().fold(0_u64, |sum, samples| sum.saturating_add(samples.count));
            let longest = threads.iter().filter_map(|samples| samples.extremes_ns().1).max();
            let longest = longest.map_or(String::new(), |ns| format!(", the longest {}", duration(ns as f64)));
            format!("{side} {}{longest}", many(count, "sample"))
        });
        let caption = format!("As the program rounds them: {}.", said.collect::<Vec<_>>().join("; "));
        let limits = budget.into_iter().flat_map(|budget| budget.on_longest(source.measures()));
        figure(
            (format!("samples-{place}"), format!("{name}, before and after"), caption),
            [("1 in N samples is this long or longer", "count"), ("length", "ns")],
            sides
                .into_iter()
                .enumerate()
                .map(|(side, threads)| curve("", side, Form::Steps, by_percentile(threads)))
                .collect(),
            limits.map(|goal| goal.drawn(On::Y)).collect(),
        )
    });
    drawn.collect()
}

/// The threads of each program that kept the lengths of its samples.
fn measured<'c>(side: &[&'c Case]) -> BTreeMap<Who<'c>, Vec<&'c Samples>> {
    let mut found: BTreeMap<Who<'c>, Vec<&'c Samples>> = BTreeMap::new();
    for (file, samples) in side.iter().flat_map(|case| case.results().each()) {
        if samples.buckets.len() > 1 {
            found.entry((file.machine.as_str(), samples.source)).or_default().push(samples);
        }
    }
    found
}
