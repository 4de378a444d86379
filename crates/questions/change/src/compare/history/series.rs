//! The same numbers of each recording of a series: what is compared of two, over many.

use super::super::{benches, datapaths, metrics};
use facts::statistics::spread::median;
use facts::{Case, Error};
use std::collections::BTreeMap;

/// One number, recording by recording; `None` where one of them has it not.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub what: String,
    pub values: Vec<Option<f64>>,
}

impl Series {
    /// The values that are there, with the places of their recordings.
    pub(super) fn known(&self) -> (Vec<usize>, Vec<f64>) {
        self.values.iter().enumerate().filter_map(|(place, value)| Some((place, (*value)?))).unzip()
    }
}

/// All of them, by their names. What a recording never saw happened 0 times there, unless it is a median or has a unit of its own.
pub(super) fn of(cases: &[&Case]) -> Result<Vec<Series>, Error> {
    let mut all: BTreeMap<String, (bool, Vec<Option<f64>>)> = BTreeMap::new();
    for (place, case) in cases.iter().enumerate() {
        for (what, is_zero_unseen, value) in numbers(case)? {
            let (_, values) = all.entry(what).or_insert_with(|| (is_zero_unseen, vec![None; cases.len()]));
            values[place] = Some(value);
        }
    }
    let series = |(what, (is_zero_unseen, values)): (String, (bool, Vec<Option<f64>>))| {
        let values = values.into_iter().map(|value| value.or(is_zero_unseen.then_some(0.0))).collect();
        Series { what, values }
    };
    Ok(all.into_iter().map(series).collect())
}

/// What one recording has: metrics of its traces, medians of its tests over their launches, of its datapaths over their repeats.
fn numbers(case: &Case) -> Result<Vec<(String, bool, f64)>, Error> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let of_traces = match metrics::of(case) {
        Ok(metrics) => metrics,
        Err(error) if error.is_of_what_was_asked() => return Err(error),
        // One that broke has no number; the others have theirs.
        Err(_) => BTreeMap::new(),
    };
    let of_traces = of_traces
        .into_iter()
        .filter(|(_, values)| !values.is_empty())
        .map(|(metric, values)| (metric.to_string(), metric.is_zero_unseen(), mean(&values)));
    let of_benches = benches::Side::of(std::iter::once(case.benches())).medians();
    let of_benches = of_benches.into_iter().map(|(key, value)| (key, false, value));
    let of_datapaths = datapaths::medians(case.datapaths().beds.as_slice());
    let of_datapaths = of_datapaths.into_iter().map(|(kind, value)| (kind, false, value));
    Ok(of_traces.chain(of_benches).chain(of_datapaths).collect())
}

/// The middle of the values between two places.
pub(super) fn level(values: &[f64]) -> f64 {
    median(values).unwrap_or_default()
}
