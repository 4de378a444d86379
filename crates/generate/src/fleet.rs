//! Recordings of many hosts, some of which are worse than the others in known ways.
//!
//! ```text
//! DIR/host-0000-0/recording.json, L0/trace.dat, L0/host/0/proc/..     a few KB each
//! DIR/truth.json                                                      what is worse, and where
//! ```
//! Hosts have one of two CPU models, of which one is faster, and one of three kernels. Worse are five hosts without VMCS shadowing, two with a
//! hog, and one kernel whose work on exits takes 1.5 times as long. Equal seeds give equal fleets.

use crate::kernel::Generation;
use crate::random::Random;
use crate::scenario::{OfFleet, of_fleet};
use crate::story::Target;
use base::parallel;
use base::recording::{Machine, Part, PartKind, PartState, Recording};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use trace::format::Endian;
use trace::write::tracedat::Compression;

#[derive(Debug, Clone, Copy)]
pub struct Fleet {
    pub recordings: usize,
    /// How many hosts; each has as many recordings as another, or one more.
    pub hosts: usize,
    /// Equal seeds give equal fleets.
    pub seed: u64,
    /// Nothing is worse anywhere.
    pub alike: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetTruth {
    /// Hosts whose VMREAD and VMWRITE exit.
    pub shadowing_off: BTreeSet<String>,
    pub hog: BTreeSet<String>,
    /// The kernel that costs more.
    pub kernel: Option<&'static str>,
}

/// Model names in /proc/cpuinfo, and how long KVM works on an exit there, in percent.
const CPUS: [(&str, u64); 2] =
    [("Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", 100), ("Intel(R) Xeon(R) Platinum 8480+", 75)];
const KERNELS: [Generation; 3] = [Generation::V6_1, Generation::V6_12, Generation::V6_18];
/// CPU models with kernels.
const CLASSES: usize = CPUS.len() * KERNELS.len();
const SHADOWING_OFF: usize = 5;
const HOGS: usize = 2;
/// How long the worse kernel works on an exit, in percent of the others.
const WORSE_PERCENT: u64 = 150;

impl Fleet {
    pub fn truth(&self) -> FleetTruth {
        if self.alike {
            return FleetTruth::default();
        }
        let mut random = Random::new(self.seed);
        // One in each class and from the next class on again, so that no class has more than two of them.
        let mut chosen = BTreeSet::new();
        let mut places = Vec::new();
        for number in 0..SHADOWING_OFF + HOGS {
            let of_class = (self.hosts + CLASSES - 1 - number % CLASSES) / CLASSES;
            let place = loop {
                let place = number % CLASSES + CLASSES * random.between(0, of_class.max(1) as u64) as usize;
                if chosen.insert(place) {
                    break place;
                }
            };
            places.push(name(place));
        }
        let hog = places.split_off(SHADOWING_OFF).into_iter().collect();
        let kernel = random.pick(&KERNELS).release();
        FleetTruth { shadowing_off: places.into_iter().collect(), hog, kernel: Some(kernel) }
    }

    /// Writes all of it below `directory`, and returns the file with the truth.
    ///
    /// # Errors
    /// If a file cannot be written, or there are too few hosts for what is worse.
    pub fn write(&self, directory: &Path) -> io::Result<PathBuf> {
        if self.hosts == 0 || self.recordings < self.hosts || (!self.alike && self.hosts < 2 * CLASSES) {
            let least = if self.alike { 1 } else { 2 * CLASSES };
            let why = format!("a fleet has {least} hosts or more, and a recording of each or more");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        fs::create_dir_all(directory)?;
        let truth = self.truth();
        let written = parallel::map(self.recordings, |number| self.recording(directory, number, &truth));
        written.into_iter().collect::<io::Result<()>>()?;
        let place = directory.join("truth.json");
        let list =
            |names: &BTreeSet<String>| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let kernel = truth.kernel.map_or_else(|| "null".to_owned(), |kernel| format!("\"{kernel}\""));
        let Self { recordings, hosts, seed, .. } = self;
        let text = format!(
            "{{\n  \"recordings\": {recordings},\n  \"hosts\": {hosts},\n  \"seed\": {seed},\n  \"shadowing_off\": [{}],\n  \
             \"hog\": [{}],\n  \"kernel\": {kernel}\n}}\n",
            list(&truth.shadowing_off),
            list(&truth.hog)
        );
        fs::write(&place, text)?;
        Ok(place)
    }

    fn recording(&self, directory: &Path, number: usize, truth: &FleetTruth) -> io::Result<()> {
        let (host, turn) = (number % self.hosts, number / self.hosts);
        let name = name(host);
        let (model, percent) = CPUS[host % CPUS.len()];
        let kernel = KERNELS[host / CPUS.len() % KERNELS.len()];
        // Two hosts of one kind differ a little.
        let own = Random::new(self.seed ^ 0xf1ee_7000 ^ host as u64).between(97, 104);
        let worse = if truth.kernel == Some(kernel.release()) { WORSE_PERCENT } else { 100 };
        let shadowing = !truth.shadowing_off.contains(&name);
        let of = OfFleet {
            shadowing,
            hog: truth.hog.contains(&name),
            handling_percent: percent * own * worse / 10_000,
            kernel,
        };
        let root = directory.join(format!("{name}-{turn}"));
        let l0 = root.join("L0");
        for (path, text) in [
            ("proc/cpuinfo", cpuinfo(model)),
            ("proc/sys/kernel/hostname", format!("{name}\n")),
            ("proc/sys/kernel/osrelease", format!("{}\n", kernel.release())),
            ("sys/module/kvm_intel/parameters/nested", "Y\n".to_owned()),
            ("sys/module/kvm_intel/parameters/enable_shadow_vmcs", if shadowing { "Y\n" } else { "N\n" }.to_owned()),
        ] {
            let place = l0.join("host/0").join(path);
            place.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(place, text)?;
        }
        let story = of_fleet(of, self.seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
        let target = Target::TraceDat7 { endian: Endian::Little, long_bytes: 8, compression: Compression::Zstd };
        fs::rename(story.write(target, &l0)?, l0.join("trace.dat"))?;
        let part = |path: &str, kind| Part {
            path: path.into(),
            machine: Machine::RECORDED.to_owned(),
            kind,
            clock: None,
            state: PartState::Complete,
        };
        let day = number * 28 / self.recordings.max(1);
        let minute = number % 1_440;
        let recording = Recording {
            root,
            machines: vec![Machine { name: Some(name), ..Machine::default() }],
            parts: vec![part("L0/trace.dat", PartKind::TraceDat), part("L0/host/0", PartKind::Host)],
            ..Recording::made(
                "kvmscope-generate",
                format!("2026-10-{:02}T{:02}:{:02}:00Z", day + 1, minute / 60, minute % 60),
            )
        };
        recording.write().map_err(io::Error::other)
    }
}

fn name(host: usize) -> String {
    format!("host-{host:04}")
}

fn cpuinfo(model: &str) -> String {
    let of = |cpu| {
        format!(
            "processor\t: {cpu}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\nmodel name\t: {model}\n\
             flags\t\t: fpu vme de pse tsc msr vmx smx ept vpid\nvmx flags\t: vnmi preemption_timer ept vpid shadow_vmcs\n\n"
        )
    };
    (0..3).map(of).collect()
}
