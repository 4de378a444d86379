//! Numbers of a recording while it is made: what a wall of gauges shows.
//!
//! ```text
//! record --live --once a second--> DIR/live.json, whole or not at all --> serve --> whoever watches
//! lab ovs --twice a second----------'
//! ```
//! The file holds the last samples: of vCPUs ([`Sample`]) or of a datapath ([`RateLook`]). What cannot be known is missing, never 0.

mod datapath;

pub use datapath::{Ceiling, Published, RateLook, TrialName};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Name of the file in a recording's directory.
pub const LIVE_FILE: &str = "live.json";

/// How many samples are kept.
pub const MOST_SAMPLES: usize = 300;

/// Version of the file.
const SCHEMA: &str = "kvmscope-live/1";

/// A longer file is none of ours: 300 samples of a thousand VMs take less. In memory it takes some ten times as much.
const MOST_BYTES: u64 = 96 << 20;

/// How much later than its rhythm a writer may be before it counts as gone: a busy host has other things to do.
const PATIENCE: Duration = Duration::from_secs(5);

/// The last samples of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gauges<S = Sample> {
    schema: String,
    /// How often the file is written.
    pub every_ns: u64,
    /// How much later than that it may be written before its writer counts as gone: a lab has nothing to tell between its trials.
    #[serde(default = "patience_ns")]
    pub(crate) patience_ns: u64,
    /// The recording has ended as it should. One that was killed never says so; the file's age does.
    pub ended: bool,
    /// The samples, the latest at the end.
    pub samples: VecDeque<S>,
}

/// A sample of either kind: what whoever passes samples on needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Look {
    /// Of vCPUs.
    Vcpus(Sample),
    /// Of a datapath.
    Rates(RateLook),
}

impl Look {
    /// Its number in the recording.
    pub fn number(&self) -> u64 {
        match self {
            Look::Vcpus(sample) => sample.number,
            Look::Rates(look) => look.number,
        }
    }
}

/// What happened between two moments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Its number in the recording, from 0.
    pub number: u64,
    /// From then, in ns since the recording's first event,
    pub from_ns: u64,
    /// until then.
    pub to_ns: u64,
    /// The share of that time that was looked at, its end: below 1 where more was recorded than could be.
    pub seen_share: f64,
    /// All events that were recorded.
    pub events_per_second: f64,
    /// `kvm_exit`; missing as long as none has fired, for there are hosts on which it never does.
    pub exits_per_second: Option<f64>,
    /// `kvm_userspace_exit`.
    pub userspace_exits_per_second: Option<f64>,
    /// Exits of nested guests that a guest hypervisor has handled.
    pub chains_per_second: Option<f64>,
    /// What such an exit multiplies into: exits of the guest hypervisor for each.
    pub exits_per_chain: Option<f64>,
    /// From being woken to running, of vCPUs: 99 % wait at most so long.
    pub wakeup_p99_ns: Option<u64>,
    /// vCPUs that did anything but sleep for another reason than a halted guest.
    pub vcpus: u64,
    /// Shares of these vCPUs' time, by state. They add up to 1.
    pub shares: Shares,
    /// The same by VM.
    pub vms: Vec<VmSample>,
    /// Events lost since the recording began, by the kernel's counters.
    pub lost_events: u64,
    /// Bytes recorded since it began.
    pub bytes: u64,
    /// Bytes of them that reached the disk too late to be in a sample.
    #[serde(default)]
    pub late_bytes: u64,
}

/// Shares of time by state, missing where nothing tells: `guest_l1`, `guest_l2` (deeper ones where seen), `guest_unknown_level`, `kvm`, `vmm`,
/// `halted`, `preempted`, `blocked`, `unknown`.
pub type Shares = BTreeMap<String, Option<f64>>;

/// One VM.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VmSample {
    /// Its name.
    pub vm: String,
    /// As of all VMs.
    pub vcpus: u64,
    /// As of all VMs.
    pub exits_per_second: Option<f64>,
    /// As of all VMs.
    pub userspace_exits_per_second: Option<f64>,
    /// As of all VMs.
    pub shares: Shares,
}

/// [`PATIENCE`].
fn patience_ns() -> u64 {
    whole_ns(PATIENCE)
}

fn whole_ns(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

impl<S: Serialize + DeserializeOwned> Gauges<S> {
    /// No sample yet.
    pub fn new(every: Duration) -> Self {
        let (schema, every_ns) = (SCHEMA.to_owned(), whole_ns(every));
        Self { schema, every_ns, patience_ns: patience_ns(), ended: false, samples: VecDeque::new() }
    }

    /// The same by a writer that may have nothing to tell for so long.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience_ns: whole_ns(patience), ..self }
    }

    /// Adds a sample; the oldest goes when there are too many.
    pub fn push(&mut self, sample: S) {
        if self.samples.len() == MOST_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// Writes the file of the recording at `root`, whole or not at all.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn write(&self, root: &Path) -> io::Result<()> {
        let beside = root.join(format!("{LIVE_FILE}.new"));
        std::fs::write(&beside, serde_json::to_vec(self)?)?;
        std::fs::rename(&beside, root.join(LIVE_FILE))
    }

    /// Reads the file of the recording at `root`.
    ///
    /// # Errors
    /// If it is not there, or holds something else.
    pub fn read(root: &Path) -> io::Result<Self> {
        let path = root.join(LIVE_FILE);
        let mut gauges: Self = serde_json::from_slice(&crate::files::read(&path, MOST_BYTES)?)?;
        let older = gauges.samples.len().saturating_sub(MOST_SAMPLES);
        gauges.samples.drain(..older);
        if gauges.schema != SCHEMA {
            return Err(io::Error::other(format!("{LIVE_FILE} is of version {}, not {SCHEMA}", gauges.schema)));
        }
        Ok(gauges)
    }

    /// True if whoever writes the file is still at it; `age` is how long ago it was written.
    pub fn is_live(&self, age: Duration) -> bool {
        let patience = Duration::from_nanos(self.patience_ns);
        !self.ended && age < Duration::from_nanos(self.every_ns).saturating_mul(3).saturating_add(patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(number: u64) -> Sample {
        Sample {
            number,
            from_ns: number * 10,
            to_ns: number * 10 + 10,
            seen_share: 1.0,
            events_per_second: 5.0,
            exits_per_second: None,
            userspace_exits_per_second: Some(0.0),
            chains_per_second: None,
            exits_per_chain: None,
            wakeup_p99_ns: None,
            vcpus: 1,
            shares: BTreeMap::from([("unknown".to_owned(), Some(1.0)), ("kvm".to_owned(), None)]),
            vms: Vec::new(),
            lost_events: 0,
            bytes: 0,
            late_bytes: 0,
        }
    }

    #[test]
    fn the_last_samples_are_kept_and_what_is_missing_stays_missing() {
        let place = tempfile::tempdir().unwrap();
        let mut gauges = Gauges::new(Duration::from_secs(1));
        (0..MOST_SAMPLES as u64 + 2).for_each(|number| gauges.push(sample(number)));
        gauges.write(place.path()).unwrap();
        assert_eq!(Gauges::read(place.path()).unwrap(), gauges);
        assert_eq!((gauges.samples.len(), gauges.samples[0].number), (MOST_SAMPLES, 2));
        let text = std::fs::read_to_string(place.path().join(LIVE_FILE)).unwrap();
        assert!(text.contains("\"exits_per_second\":null") && text.contains("\"kvm\":null"), "{text}");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_writer_that_is_silent_for_long_is_gone() {
        let mut gauges = Gauges::<Sample>::new(Duration::from_secs(1));
        assert!(gauges.is_live(Duration::from_secs(2)) && !gauges.is_live(Duration::from_secs(9)));
        let patient = gauges.clone().with_patience(Duration::from_secs(60));
        assert!(patient.is_live(Duration::from_secs(50)) && !patient.is_live(Duration::from_secs(70)));
        gauges.ended = true;
        assert!(!gauges.is_live(Duration::ZERO));
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join(LIVE_FILE), r#"{"schema":"x/9","every_ns":1,"ended":true,"samples":[]}"#)
            .unwrap();
        assert!(Gauges::<Look>::read(place.path()).unwrap_err().to_string().contains("x/9"));
    }

    #[test]
    fn whoever_passes_samples_on_reads_both_kinds_and_loses_nothing() {
        let trial = TrialName {
            design: "ovs-dpdk".into(),
            pattern: crate::datapath::Traffic::Chain,
            vnfs: 2,
            size_bytes: 64,
            repeat: 0,
            repeats: 3,
        };
        let look = RateLook {
            number: 7,
            from_ns: 10,
            to_ns: 20,
            read_ns: 1,
            trial,
            sent_pps: 3e6,
            received_pps: 1e6,
            system_pps: 2.5e6,
            vnfs_pps: vec![1.5e6, 1e6],
            ceiling: None,
            published: Vec::new(),
        };
        let place = tempfile::tempdir().unwrap();
        let mut rates = Gauges::new(Duration::from_millis(500));
        rates.push(look.clone());
        rates.write(place.path()).unwrap();
        let read = Gauges::<Look>::read(place.path()).unwrap();
        assert_eq!((read.samples[0].number(), &read.samples[0]), (7, &Look::Rates(look)));
        let mut vcpus = Gauges::new(Duration::from_secs(1));
        vcpus.push(sample(9));
        vcpus.write(place.path()).unwrap();
        assert_eq!(Gauges::<Look>::read(place.path()).unwrap().samples, [Look::Vcpus(sample(9))]);
    }
}
