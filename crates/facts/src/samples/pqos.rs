//! `pqos -u csv` of intel-cmt-cat: how caches and memory were used while latencies were measured.
//!
//! ```text
//! Time,Core,IPC,LLC Misses,LLC[KB],MBL[MB/s],MBR[MB/s]        columns by their names: which there are depends on the CPU
//! 2026-11-23 16:00:01,"1-3",0.71,24,1024.0,12.5,0.0           one second each, a group of CPUs in quotes
//! ```

use super::{Found, lines};
use std::collections::BTreeMap;
use std::io::BufRead;

/// How a group of CPUs used caches and memory, over all rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CacheUse {
    /// The CPUs, as pqos names the group.
    pub cpus: String,
    pub rows: u64,
    /// Mean instructions per cycle.
    pub ipc: Option<f64>,
    /// All misses of the last-level cache.
    pub llc_misses: Option<f64>,
    /// The most of the last-level cache that they held, in bytes.
    pub llc_bytes: Option<f64>,
    /// The highest bandwidth to the memory of their own node, in bytes per second.
    pub local_bytes_per_s: Option<f64>,
    pub remote_bytes_per_s: Option<f64>,
}

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let mut columns: Vec<String> = Vec::new();
    let mut groups: BTreeMap<String, CacheUse> = BTreeMap::new();
    lines::each(input, found, |offset, line, found| {
        let fields = fields(line);
        if fields.first().is_some_and(|first| first == "Time") {
            columns = fields;
            return;
        }
        if columns.is_empty() || line.trim().is_empty() {
            return;
        }
        let value = |name: &str| columns.iter().position(|column| column == name).and_then(|place| fields.get(place));
        let (true, Some(cpus)) = (fields.len() == columns.len(), value("Core").or_else(|| value("PID"))) else {
            let text = "some lines are no rows of pqos and were ignored";
            return found.damaged(offset, "as many fields as the head has", format!("{}", fields.len()), text);
        };
        let number = |name: &str| value(name)?.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let one = groups.entry(cpus.clone()).or_insert_with(|| CacheUse { cpus: cpus.clone(), ..CacheUse::default() });
        let rows = one.rows as f64;
        let most = |known: Option<f64>, value: Option<f64>| match (known, value) {
            (Some(known), Some(value)) => Some(known.max(value)),
            (known, value) => known.or(value),
        };
        one.ipc = number("IPC").map(|ipc| (one.ipc.unwrap_or(0.0) * rows + ipc) / (rows + 1.0)).or(one.ipc);
        one.llc_misses = number("LLC Misses").map(|misses| one.llc_misses.unwrap_or(0.0) + misses).or(one.llc_misses);
        one.llc_bytes = most(one.llc_bytes, number("LLC[KB]").map(|kilobytes| kilobytes * 1024.0));
        let bandwidth = |name: &str| number(name).map(|megabytes| megabytes * 1024.0 * 1024.0);
        one.local_bytes_per_s = most(one.local_bytes_per_s, bandwidth("MBL[MB/s]"));
        one.remote_bytes_per_s = most(one.remote_bytes_per_s, bandwidth("MBR[MB/s]"));
        one.rows += 1;
    });
    found.cache_use = groups.into_values().collect();
    if columns.is_empty() {
        found.damaged(0, "a line that names the columns", "none", "the file has no line that names its columns");
    }
}

/// The fields of a line; what stands in quotes may hold commas.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    for character in line.trim().chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    fields
}
