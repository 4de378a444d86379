//! OSADL's "RT Dataset": histograms of cyclictest with what the machine is, in JSON.
//!
//! ```text
//! "latency": { "granularity": "microseconds", "cores": [[0, 1, 2], [0, 10, 90], [0, 20, 80]], "maxima": [2, 1] }
//!                                                        lengths    counts of the first core and of the second one
//! ```
//! `maxima` may be empty; a maximum beyond the lengths says that samples are missing there, not how many. Source:
//! src/mk-rtdataset.py and src/plot-rtdataset.py of Latencyplot, version 1.0 of the format.

use super::{Found, Samples, Source};
use serde_json::Value;
use std::io::{BufRead, Read};

/// A data set with all options of its kernel has some 400 KB.
const MOST_BYTES: u64 = 64 << 20;

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let value: Value = match serde_json::from_reader(input.take(MOST_BYTES)) {
        Ok(value) => value,
        Err(error) => {
            return found.damaged(0, "a whole object of JSON", error.to_string(), "the data set is not whole JSON");
        }
    };
    let latency = &value["latency"];
    let unit_ns = match latency["granularity"].as_str() {
        Some("nanoseconds") => 1,
        Some("microseconds") | None => 1_000,
        Some(other) => {
            return found.damaged(0, "microseconds or nanoseconds", other, format!("lengths in {other} are not read"));
        }
    };
    let numbers = |list: &Value| -> Vec<u64> {
        list.as_array().into_iter().flatten().map(|number| number.as_u64().unwrap_or(0)).collect()
    };
    let rows: Vec<Vec<u64>> = latency["cores"].as_array().into_iter().flatten().map(numbers).collect();
    let Some((lengths, cores)) = rows.split_first() else {
        return found.damaged(0, "latency.cores", "none", "the data set has no histogram");
    };
    let maxima = numbers(&latency["maxima"]);
    for (core, counts) in cores.iter().enumerate() {
        let mut samples = Samples { unit_ns, ..Samples::new(Source::Cyclictest, core.to_string()) };
        let met = || lengths.iter().zip(counts).filter(|(_, count)| **count > 0);
        met().for_each(|(length, count)| samples.add(*length, *count));
        let kept = met().map(|(length, _)| *length).max();
        samples.between(met().map(|(length, _)| *length).min(), maxima.get(core).copied().max(kept));
        if samples.count > 0 {
            let sum: u128 = met().map(|(length, count)| u128::from(*length) * u128::from(*count)).sum();
            samples.mean_ns = Some(sum as f64 / samples.count as f64 * unit_ns as f64);
        }
        if maxima.get(core).copied() > kept {
            let text = format!("core {core}: its maximum lies beyond the histogram, so samples are missing there");
            found.remark("a histogram with the maximum", "a shorter one", text);
        }
        found.samples.push(samples);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_core_has_its_histogram_and_its_maximum() {
        let text = br#"{"format":{"name":"RT Dataset"},"latency":{"granularity":"microseconds",
            "cores":[[0,1,2,3,4,5],[0,0,10,900,80,10],[0,0,20,970,10,0]],"maxima":[5,9]}}"#;
        let mut found = Found::default();
        read(&mut &text[..], &mut found);
        let told: Vec<_> =
            found.samples.iter().map(|samples| (samples.count, samples.extremes_ns(), samples.mean_ns)).collect();
        assert_eq!(told[0], (1_000, (Some(2_000), Some(5_000)), Some(3_090.0)));
        assert_eq!((told[1].0, told[1].1), (1_000, (Some(2_000), Some(9_000))));
        assert_eq!(found.problems.list().len(), 1, "the second core's maximum is not in its histogram");
    }
}
