//! What a bench measured: one shape for exits, clocks and whole programs.
//!
//! ```text
//! <machine>/bench/<name>.json   { schema, bench, environment, results: [Measured, ..] }
//! Measured                      one test in one launch of the process: name, params, unit, hdr or samples,
//!                               counters, interference
//! ```
//! `lab` writes it, `analysis` reads it. What the results of a file share stands once, in `environment`. Nothing here is
//! averaged: each launch keeps its distribution, because the spread between launches is what an interval comes from.

use crate::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The schema this version reads and writes.
pub const SCHEMA: &str = "kvmscope-bench/1";

/// Where [`Bench::environment`] tells how long a tick of the time-stamp counter is, in ns.
pub const NS_PER_TICK: &str = "tsc ns per tick";

/// Where it tells who runs below the machine, by name.
pub const HYPERVISOR: &str = "hypervisor";
/// Where it tells the scheduling policy of the bench.
pub const POLICY: &str = "policy";
/// Where it tells whether tests ran that the whole host may feel.
pub const DISTURBING: &str = "disturbing tests";

/// Where it tells whose memory was looked at.
pub const VM: &str = "VM";

/// What a test of `zeropages` is called that reads memory and looks for nothing.
pub const READ: &str = "read";

/// Names of the results of `memory`: pages by what they are, a result for each GiB.
pub const PAGES: &str = "pages";
/// Bytes that were made of groups of pages.
pub const COMPRESSED: &str = "compressed";
/// What that took of a CPU, a group.
pub const COMPRESS_NS: &str = "compress_time";
/// Pages that were dirtied in a window.
pub const DIRTIED: &str = "dirtied";
/// What the process had of memory, before and after.
pub const RESIDENT: &str = "resident";
/// What the files behind the guest's memory took, before and after.
pub const ALLOCATED: &str = "allocated";
/// What looking took of a CPU.
pub const COST: &str = "cost";

/// What groups were compressed by.
pub const ZSTD: &str = "zstd-1";
/// How it is known which pages were dirtied: they were read twice.
pub const BY_CONTENTS: &str = "page contents, sampled";
/// QEMU says so.
pub const BY_QEMU: &str = "calc-dirty-rate, page-sampling";
/// Memory of no file.
pub const ANONYMOUS: &str = "anonymous";
/// Memory that other processes may have as well.
pub const SHARED: &str = "shared";

/// A bench's file is some 100 KB; one this long is something else.
const MOST_BYTES: u64 = 32 << 20;

/// A bench's results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bench {
    /// [`SCHEMA`].
    pub schema: String,
    /// `exits`, `clock`, `macro`, `zeropages`, `memory` or `channel`.
    pub bench: String,
    /// What the machine was, by name: CPU, kernel, clocksource, mitigations, parameters.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// What was said of the run as a whole: why something is missing.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The results, in the order in which they were measured.
    pub results: Vec<Measured>,
}

/// One test in one launch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The test.
    pub name: String,
    /// How it was run.
    #[serde(default)]
    pub params: Params,
    /// Unit of samples: `cycles` of the time-stamp counter, `ns`, `bytes`, `count`.
    pub unit: String,
    /// All samples as value and count, ascending, in HdrHistogram's buckets; a sample is `params.operations` in a row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hdr: Vec<(u64, u64)>,
    /// All samples in their order, where there are few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<f64>,
    /// By how much KVM's own counters grew, those that did; of `memory`, what was counted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// What disturbed it: one sentence each; none if nothing was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interference: Vec<String>,
    /// Why there are no samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// What a path between two machines carried, of bench `channel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Box<crate::channel::Run>>,
    /// How long its frames took at one rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<Box<crate::channel::Delays>>,
    /// What became of frames while a flow table changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<Box<crate::channel::FlowRun>>,
    /// What a hostile peer did, and what was seen of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<Box<crate::channel::Faults>>,
}

/// How a test was run. What does not apply is not there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Params {
    /// `here`, in this process, or `guest`, in a guest of ours.
    #[serde(rename = "where", skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// Privilege level of the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring: Option<u8>,
    /// Which launch of the process, from 0.
    pub launch: u32,
    /// Operations in one sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// What a sample of as many empty operations took, to be subtracted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<f64>,
    /// All operations of the run whose counters are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<u64>,
    /// Fewest and most exits an operation should take where the hypervisor of this level handles it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_exits: Option<(u32, u32)>,
    /// The clock that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// The clocksource behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Where the memory is that was looked at: `cache` or `memory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// What its pages hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// How much of it there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How long pages were watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// The command that was timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
}

/// Why a file of results could not be read, as a sentence.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The refusal.
        source: std::io::Error,
    },
    /// It is not what it should be.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl Bench {
    /// A bench of that name without results yet.
    pub fn new(bench: &str, environment: BTreeMap<String, String>) -> Self {
        let (schema, bench) = (SCHEMA.to_owned(), bench.to_owned());
        Self { schema, bench, environment, notes: Vec::new(), results: Vec::new() }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, is no bench's file, or one of another schema.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let damaged = |reason| Error::Damaged { path: path.to_owned(), reason };
        let bytes = crate::files::read(path, MOST_BYTES).map_err(io)?;
        let bench: Self = serde_json::from_slice(&bytes)
            .map_err(|error| damaged(format!("this is not the result of a bench ({error})")))?;
        match bench.schema.as_str() {
            SCHEMA => Ok(bench),
            other => Err(damaged(format!("its schema is `{other}`; this version reads `{SCHEMA}`"))),
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        crate::json_line::write(self, path).map_err(|source| Error::Io { path: path.to_owned(), source })
    }
}

impl Measured {
    /// The samples as a distribution; those of `samples` are rounded.
    pub fn distribution(&self) -> Histogram {
        let mut histogram = Histogram::new();
        self.hdr.iter().for_each(|(value, count)| histogram.record_many(*value, *count));
        self.samples.iter().for_each(|value| histogram.record(value.round() as u64));
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_outlives_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("L0/bench/exits.json");
        let mut all = Histogram::new();
        (0..5_000_u64).for_each(|value| all.record(value * value));
        let params = Params { place: "guest".into(), ring: Some(3), operations: Some(8), ..Params::default() };
        let one = Measured { name: "cpuid".into(), params, unit: "cycles".into(), ..Measured::default() };
        let mut bench = Bench::new("exits", BTreeMap::from([("kernel".to_owned(), "6.12".to_owned())]));
        bench.results.push(Measured { hdr: all.buckets(), ..one });
        bench.write(&path).unwrap();
        let read = Bench::read(&path).unwrap();
        assert_eq!(read, bench);
        let again = read.results[0].distribution();
        for share in [0.0, 0.1, 0.5, 0.99, 0.999, 1.0] {
            assert_eq!(again.quantile(share), all.quantile(share), "{share}");
        }
        assert_eq!(again.count(), 5_000);
    }

    #[test]
    fn what_is_no_bench_is_refused_with_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("exits.json");
        for text in ["", "[]", r#"{"schema":"kvmscope-bench/9","bench":"exits","results":[]}"#] {
            std::fs::write(&path, text).unwrap();
            let error = Bench::read(&path).unwrap_err().to_string();
            assert!(error.contains("exits.json"), "{error}");
        }
    }
}
