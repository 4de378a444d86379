//! What others published: the records of `published.toml`, typed.
//!
//! They are drawn beside measured series and never mixed into them, and models are held against them (docs/formats/validation.md).

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Records {
    nesting: Vec<ExitCost>,
    datapath: Vec<DatapathResult>,
    migration: Vec<MigrationTime>,
    interrupts: Vec<InterruptLatency>,
    sources: BTreeMap<String, Source>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub title: String,
    /// The same in a few words, beside a number.
    pub short: String,
    /// Where it can be read: an address, a commit, a file or slides.
    pub address: String,
    /// When, where its text has a year.
    pub year: Option<u16>,
    /// Processor; empty where a record names its own.
    #[serde(default)]
    pub processor: String,
    /// Kernel or hypervisor of the levels that run it.
    #[serde(default)]
    pub kernel: String,
    /// Another text that quotes it was read, not the source itself.
    #[serde(default)]
    pub quoted: bool,
}

/// What an operation costs at a level.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExitCost {
    /// Unique: `pvm23.cpuid.l2`.
    pub id: String,
    pub source: String,
    /// The operation, by the name that `bench exits` gives it where it has one.
    pub op: String,
    /// Level at which the operation ran: 0 is bare metal.
    pub level: u8,
    /// What ran it, where that is not plain KVM: `evmcs`, `pvm`.
    #[serde(default)]
    pub variant: String,
    /// Processor, where its source has several.
    #[serde(default)]
    pub processor: String,
    /// `mean`, `median`, or what its source calls it.
    #[serde(default = "mean")]
    pub statistic: String,
    cycles: Option<f64>,
    us: Option<f64>,
    ns: Option<f64>,
    s: Option<f64>,
    percent: Option<f64>,
    exits: Option<f64>,
}

fn mean() -> String {
    "mean".to_owned()
}

impl ExitCost {
    fn amounts(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = [
            ("cycles", self.cycles),
            ("us", self.us),
            ("ns", self.ns),
            ("s", self.s),
            ("percent", self.percent),
            ("exits", self.exits),
        ];
        all.into_iter().filter_map(|(unit, value)| Some((unit, value?)))
    }

    /// Its unit and its number.
    pub fn amount(&self) -> (&'static str, f64) {
        self.amounts().next().unwrap_or(("", 0.0))
    }
}

/// A rate of a datapath, a link or a card, with the arithmetic of the model for it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatapathResult {
    /// Unique: `ovs-ns-64-8`.
    pub id: String,
    pub source: String,
    /// What was published, where several rows are one number under assumptions that its source leaves open.
    pub result: Option<String>,
    /// The datapath, where one was measured.
    pub design: Option<String>,
    pub pattern: Option<String>,
    /// Bytes of a frame with its check sequence.
    pub frame_bytes: Option<u32>,
    /// Bytes of a message of a stream socket: never those of a frame.
    pub message_bytes: Option<u32>,
    pub vnfs: Option<u32>,
    mpps: Option<f64>,
    mpps_of_each_vm: Option<f64>,
    gbps: Option<f64>,
    gbps_without_fcs: Option<f64>,
    times_the_rate_of_4_vnfs: Option<f64>,
    times_the_rate_without: Option<f64>,
    cycles: Option<f64>,
    shortest_chain_vnfs: Option<f64>,
    /// The rate in bits is compared as one in packets.
    #[serde(default)]
    pub is_compared_in_mpps: bool,
    /// What the model computes; `None` where it says nothing.
    pub model: Option<Arithmetic>,
    /// What the comparison is worth; `None` where there is none.
    pub standing: Option<Standing>,
    /// What the comparison rests on, or the question that is open behind it.
    #[serde(default)]
    pub note: String,
}

base::named! {
    /// In what the rate of a datapath was published.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RateUnit {
        /// Packets of all VMs together.
        Mpps = "Mpps",
        /// Packets of each VM.
        MppsOfEachVm = "Mpps of each VM",
        /// Bits of frames with their check sequence.
        Gbps = "Gb/s",
        /// Bits of frames without it.
        GbpsWithoutFcs = "Gb/s without FCS",
        /// Against a chain of four.
        TimesTheRateOf4Vnfs = "times the rate of 4 VNFs",
        /// Against the same without what is asked of it.
        TimesTheRateWithout = "times the rate without",
        /// Of a polling thread, for a packet.
        Cycles = "cycles",
        /// The length of a chain.
        Vnfs = "VNFs",
    }
}

impl DatapathResult {
    fn amounts(&self) -> impl Iterator<Item = (RateUnit, f64)> {
        let all = [
            (RateUnit::Mpps, self.mpps),
            (RateUnit::MppsOfEachVm, self.mpps_of_each_vm),
            (RateUnit::Gbps, self.gbps),
            (RateUnit::GbpsWithoutFcs, self.gbps_without_fcs),
            (RateUnit::TimesTheRateOf4Vnfs, self.times_the_rate_of_4_vnfs),
            (RateUnit::TimesTheRateWithout, self.times_the_rate_without),
            (RateUnit::Cycles, self.cycles),
            (RateUnit::Vnfs, self.shortest_chain_vnfs),
        ];
        all.into_iter().filter_map(|(unit, value)| Some((unit, value?)))
    }

    /// Its unit and its number, as they were published.
    pub fn amount(&self) -> (RateUnit, f64) {
        self.amounts().next().unwrap_or((RateUnit::Mpps, 0.0))
    }
}

/// What the model of datapaths computes for a result, with what its source leaves out.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arithmetic {
    /// The number of a record is the level of a calibration.
    LevelOf {
        id: String,
    },
    /// VFs of the talk's card.
    Vfs {
        /// Largest payload of its link.
        mps_bytes: u32,
    },
    /// VFs in a chain over the talk's card, whatever the record is of.
    ChainOfVfs {
        /// Length of the chain.
        vnfs: u32,
        frame_bytes: u32,
        /// Largest payload of its link.
        mps_bytes: u32,
    },
    /// The first chain of VFs that does not carry so much.
    FirstBelow {
        /// What it would have to carry.
        gbps: f64,
        frame_bytes: u32,
        /// Largest payload of its link.
        mps_bytes: u32,
    },
    /// The talk's switch north to south: the level of 64 bytes, and the slope of its chains.
    SwitchSlope {
        /// The steeper of the two slopes that its numbers allow.
        is_steep: bool,
    },
    AgainstFourVnfs {
        threads: u32,
    },
    /// A chain whose hops share what one of them could carry.
    SharedHops {
        /// What one hop would carry.
        mpps: f64,
        /// Length of the chain.
        vnfs: u32,
    },
    /// In and out of a VM over a switch of two threads that poll, behind a port of 10 Gb/s.
    InAndOut {
        /// Of a hop, and more for each byte.
        cycles: f64,
        cycles_per_byte: f64,
        hz: f64,
        /// A rule for each.
        flows: f64,
    },
    /// What many flows leave of the rate of few, in a number of megaflows that is not known.
    ManyFlows {
        flows: f64,
    },
    /// What VMs on another node leave.
    OtherNode,
    /// What tracking leaves of a hop that is as dear as was published.
    Tracked {
        hz: f64,
    },
    /// Published hops, so often.
    Passes {
        passes: f64,
    },
    /// What is left where nothing may be lost.
    LossFree,
    /// The bits of the talk's link.
    Link {
        mps_bytes: u32,
    },
    /// Packets over that link, in and out at once.
    LinkPackets {
        mps_bytes: u32,
    },
    /// Writes over that link.
    Writes {
        mps_bytes: u32,
    },
    /// Reads and writes over that link at once.
    ReadsAndWrites {
        mps_bytes: u32,
    },
}

/// What comparing a result with the model is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// A constant of the model was taken from this very number, or from its bed.
    Fitted,
    /// The model did not know it, and comes near.
    Validated,
    /// The model did not know it, and does not come near.
    Fails,
    /// The model is a ceiling.
    Bound,
    /// A wrong assumption, to show that the right one matters.
    Control,
}

/// How long a live migration took, or how long its guest was dark.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigrationTime {
    /// Unique: `kvm4nfv.total.idle.after`.
    pub id: String,
    pub source: String,
    /// Until the guest ran on the target, or while it stood still.
    pub quantity: MigrationQuantity,
    /// What the guest did: `l2fwd`, `idle`.
    pub guest: String,
    pub memory_gib: f64,
    /// The port that it went through.
    pub link_gbps: f64,
    /// The limit of the time that the guest stands still.
    pub limit_ms: f64,
    pub ms: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MigrationQuantity {
    /// Until the guest ran on the target.
    Total,
    /// While the guest stood still.
    Dark,
}

/// How long interrupts took from outside a guest to its handler.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptLatency {
    pub id: String,
    pub source: String,
    /// What tables call it.
    pub name: String,
    pub min_ns: u64,
    pub mean_ns: u64,
    pub max_ns: u64,
}

fn records() -> &'static Records {
    static RECORDS: OnceLock<Records> = OnceLock::new();
    RECORDS.get_or_init(|| match toml::from_str(include_str!("published.toml")) {
        Ok(records) => records,
        Err(error) => panic!("published.toml: {error}"),
    })
}

/// What operations cost at their levels.
pub fn exit_costs() -> &'static [ExitCost] {
    &records().nesting
}

/// What datapaths, links and cards carried.
pub fn datapaths() -> &'static [DatapathResult] {
    &records().datapath
}

pub fn migrations() -> &'static [MigrationTime] {
    &records().migration
}

/// The periodic interrupt from outside that KVM4NFV measured.
pub fn interrupt() -> &'static InterruptLatency {
    &records().interrupts[0]
}

pub fn sources() -> impl Iterator<Item = (&'static str, &'static Source)> {
    records().sources.iter().map(|(key, source)| (key.as_str(), source))
}

/// The source with that key.
///
/// # Panics
/// If there is none: keys are written in this program.
pub fn source(key: &str) -> &'static Source {
    records().sources.get(key).unwrap_or_else(|| panic!("no source {key}"))
}

/// The number of the cost called `id`, in its own unit.
///
/// # Panics
/// If there is none: ids are written in this program.
pub fn value(id: &str) -> f64 {
    let record = exit_costs().iter().find(|record| record.id == id);
    record.unwrap_or_else(|| panic!("no published record {id}")).amount().1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_record_has_an_id_of_its_own_a_source_and_one_number() {
        let all = records();
        let mut ids = Vec::new();
        let mut named = BTreeSet::new();
        let mut record = |id: &'static str, source: &'static str, amounts: &[f64]| {
            ids.push(id);
            named.insert(source);
            assert!(all.sources.contains_key(source), "{id}: no source {source}");
            assert!(amounts.len() == 1 && amounts[0] > 0.0, "{id}: {amounts:?}");
        };
        for cost in &all.nesting {
            record(&cost.id, &cost.source, &cost.amounts().map(|(_, value)| value).collect::<Vec<_>>());
            assert!(cost.level <= 3 && !cost.op.is_empty() && !cost.statistic.is_empty(), "{}", cost.id);
        }
        for rate in &all.datapath {
            record(&rate.id, &rate.source, &rate.amounts().map(|(_, value)| value).collect::<Vec<_>>());
            assert_eq!(rate.design.is_some(), rate.pattern.is_some(), "{}", rate.id);
        }
        for time in &all.migration {
            record(&time.id, &time.source, &[time.ms]);
        }
        for latency in &all.interrupts {
            record(&latency.id, &latency.source, &[latency.mean_ns as f64]);
            assert!(latency.min_ns <= latency.mean_ns && latency.mean_ns <= latency.max_ns);
        }
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(unique.len(), ids.len(), "an id is given twice");
        for (key, source) in &all.sources {
            assert!(named.contains(key.as_str()), "nothing is from {key}");
            assert!([&source.title, &source.short, &source.address].iter().all(|text| !text.is_empty()), "{key}");
            assert!(source.year.is_none_or(|year| year >= 2010), "{key}");
        }
    }

    #[test]
    fn a_key_that_nobody_reads_is_refused() {
        let text = include_str!("published.toml");
        let refused = |from: &str, to: &str, key: &str| {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text);
            let error = toml::from_str::<Records>(&changed).unwrap_err();
            assert!(error.message().contains(key), "{error}");
        };
        refused("op = \"cpuid\"", "op = \"cpuid\", colour = \"red\"", "colour");
        refused("mpps = 0.04", "mpps = 0.04, kpps = 40.0", "kpps");
        refused("{ mps_bytes = 128 }", "{ mps_bytes = 128, lanes = 8 }", "lanes");
        refused("\nyear = 2018", "\nyear = 2018\npage = 7", "page");
    }

    #[test]
    fn well_known_numbers_are_there_as_they_were_published() {
        assert_eq!(value("fosdem18.cpuid.l2"), 20_700.0);
        assert_eq!(value("fosdem18.cpuid.l2.evmcs"), 8_900.0);
        let forks = ["fork.l1", "fork32.l1", "fork32.l2"].map(|op| value(&format!("pvm23.{op}")));
        assert_eq!(forks, [82.13, 513.5, 812.5]);
        let bitmap = source("bitmap18");
        assert_eq!((bitmap.year, bitmap.kernel.as_str()), (Some(2018), "L0 Hyper-V; L1 Linux 4.18, under development"));
        let haxm = exit_costs().iter().filter(|record| record.source == "haxm18");
        assert!(haxm.into_iter().all(|record| record.statistic.ends_with("mean")), "its counts are averages");
        assert_eq!(value("fosdem18.build.l1"), 26.0 * 60.0 + 42.187);
        let of_dvh = exit_costs().iter().filter(|record| record.op == "vmcall" && record.source == "dvh20");
        assert_eq!(of_dvh.map(|record| record.level).collect::<Vec<_>>(), [1, 2, 3]);
    }
}
