//! What oslat prints.
//!
//! ```text
//!         Core:   0 1
//!     001 (us):   67900104 52206056
//!     ...                                       buckets without samples, with -z
//!     032 (us):   194 261 (including overflows)
//!      Maximum:   12034 19765 (us)
//! ```

use super::Found;
use super::lines::{self, numbers};
use super::oslat::Said;
use std::collections::BTreeMap;
use std::io::BufRead;

#[derive(Default)]
struct Told {
    cores: Vec<u64>,
    rows: BTreeMap<u64, Vec<u64>>,
    min: Vec<u64>,
    max: Vec<u64>,
    mean: Vec<f64>,
}

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let mut told = Told::default();
    lines::each(input, found, |_, line, _| told.hear(line));
    let threads = told.rows.values().map(Vec::len).max().unwrap_or(0);
    for thread in 0..threads {
        let of = |list: &[u64]| list.get(thread).copied();
        let column = |(length, row): (&u64, &Vec<u64>)| Some((*length, of(row)?));
        let histogram = told.rows.iter().filter_map(column).collect();
        let (min, max, mean) = (of(&told.min), of(&told.max), told.mean.get(thread).copied());
        let cpu = of(&told.cores).and_then(|core| u32::try_from(core).ok());
        found.samples.push(Said { histogram: &histogram, min, max, mean }.samples(&thread.to_string(), cpu));
    }
    if told.max.is_empty() {
        let text = "the text was cut off: the maximum is missing, and with it what lies behind the last bucket";
        found.damaged(0, "a line `Maximum`", "none", text);
    }
}

impl Told {
    fn hear(&mut self, line: &str) {
        let Some((name, rest)) = line.split_once(':') else { return };
        match name.trim() {
            "Core" => self.cores = numbers(rest),
            "Minimum" => self.min = numbers(rest),
            "Maximum" => self.max = numbers(rest),
            "Average" => self.mean = rest.split_whitespace().map_while(|word| word.parse().ok()).collect(),
            bucket => {
                let length = bucket.strip_suffix("(us)").and_then(|length| length.trim().parse().ok());
                if let Some(length) = length {
                    self.rows.insert(length, numbers(rest));
                }
            }
        }
    }
}
