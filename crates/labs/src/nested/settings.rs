//! What varies from one run of the lab to the next?
//!
//! In: `--arch`, `--guest` and `--set key=value`. Out: [`Settings`], or a sentence that says what can be set.

use lab::Error;
use serde::{Deserialize, Serialize};
use std::fmt;

base::named! {
    /// The virtualization extension that is emulated.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Arch {
        /// AMD's, in QEMU TCG.
        Svm = "svm",
        /// Intel's, in Bochs.
        Vmx = "vmx",
    }
}

base::named! {
    /// What runs as L1 and L2.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Guest {
        /// A hypervisor of some hundred bytes, and an L2 of some ten.
        Toy = "toy",
        Linux = "linux",
        /// The guests of `bench exits`, which are timed and not traced.
        Bench = "bench",
    }
}

/// What L2 does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Workload {
    /// CPUID, which L1 handles, then a port that L1 leaves to L0.
    Cpuid,
    /// A port that L1 handles.
    Pio,
    Idle,
    Disk,
    Timer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tests {
    All,
    /// Those of a hypervisor inside the guest and of its guest, with what they are compared to.
    Nested,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub arch: Arch,
    pub guest: Guest,
    /// What L2 does.
    pub workload: Workload,
    pub loops: u32,
    /// vCPUs of L1, and CPUs of L0.
    pub cpus: u32,
    /// SVM: whether the CPU handles STGI and CLGI of L1 itself.
    pub vgif: bool,
    /// VMX: whether the CPU handles most of VMREAD and VMWRITE of L1 itself.
    pub shadow_vmcs: bool,
    pub tests: Tests,
}

impl Settings {
    /// The defaults of `arch` and `guest`, changed by each `key=value` of `sets`.
    ///
    /// # Errors
    /// If a key or a value means nothing there.
    pub fn new(arch: Arch, guest: Guest, sets: &[String]) -> Result<Self, Error> {
        let mut settings = Self {
            arch,
            guest,
            workload: if guest == Guest::Toy { Workload::Cpuid } else { Workload::Timer },
            loops: match guest {
                Guest::Toy => 300,
                Guest::Linux => 20,
                Guest::Bench => 1,
            },
            cpus: 1,
            vgif: false,
            shadow_vmcs: true,
            tests: Tests::All,
        };
        for set in sets {
            settings.set(set)?;
        }
        Ok(settings)
    }

    fn set(&mut self, set: &str) -> Result<(), Error> {
        let (key, value) = set.split_once('=').unwrap_or((set, ""));
        let wrong = |can: &str| Error::WrongUse(format!("--set {set}: {key} must be {can}"));
        match (key, self.arch, self.guest) {
            ("loops", ..) => {
                let loops = value.parse().ok().filter(|loops| (1..=1_000_000).contains(loops));
                self.loops = loops.ok_or_else(|| wrong("1 to 1000000"))?;
            }
            ("cpus", Arch::Svm, Guest::Toy | Guest::Linux) => {
                let cpus = value.parse().ok().filter(|cpus| (1..=8).contains(cpus));
                self.cpus = cpus.ok_or_else(|| wrong("1 to 8"))?;
            }
            ("vgif", Arch::Svm, _) => self.vgif = switch(value).ok_or_else(|| wrong("on or off"))?,
            ("shadow_vmcs", Arch::Vmx, _) => self.shadow_vmcs = switch(value).ok_or_else(|| wrong("on or off"))?,
            ("tests", _, Guest::Bench) => {
                self.tests = match value {
                    "all" => Tests::All,
                    "nested" => Tests::Nested,
                    _ => return Err(wrong("all or nested")),
                };
            }
            ("workload", arch, guest @ (Guest::Toy | Guest::Linux)) => {
                let all = [
                    ("cpuid", Workload::Cpuid),
                    ("pio", Workload::Pio),
                    ("idle", Workload::Idle),
                    ("timer", Workload::Timer),
                    ("disk", Workload::Disk),
                ];
                let can = match (guest, arch) {
                    (Guest::Toy, _) => &all[..2],
                    // The PC that is L2 there has no disk.
                    (_, Arch::Vmx) => &all[..4],
                    (_, Arch::Svm) => &all[..],
                };
                let names: Vec<_> = can.iter().map(|(name, _)| *name).collect();
                let found = can.iter().find(|(name, _)| *name == value);
                self.workload = found.ok_or_else(|| wrong(&names.join(", ")))?.1;
            }
            _ => {
                let keys = match (self.arch, self.guest) {
                    (Arch::Svm, Guest::Bench) => "loops, tests and vgif",
                    (Arch::Vmx, Guest::Bench) => "loops, shadow_vmcs and tests",
                    (Arch::Svm, _) => "loops, cpus, vgif and workload",
                    (Arch::Vmx, _) => "loops, shadow_vmcs and workload",
                };
                return Err(Error::WrongUse(format!("--set {set}: {keys} can be set here")));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Settings {
    /// The command's own words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (arch, guest) = (format!("{:?}", self.arch).to_lowercase(), format!("{:?}", self.guest).to_lowercase());
        write!(f, "--arch {arch} --guest {guest} --set loops={}", self.loops)?;
        if self.guest == Guest::Bench {
            write!(f, " --set tests={}", format!("{:?}", self.tests).to_lowercase())?;
        } else {
            write!(f, " --set workload={}", format!("{:?}", self.workload).to_lowercase())?;
        }
        let on = |on| if on { "on" } else { "off" };
        match self.arch {
            Arch::Svm if self.guest == Guest::Bench => write!(f, " --set vgif={}", on(self.vgif)),
            Arch::Svm => write!(f, " --set cpus={} --set vgif={}", self.cpus, on(self.vgif)),
            Arch::Vmx => write!(f, " --set shadow_vmcs={}", on(self.shadow_vmcs)),
        }
    }
}

fn switch(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toy(arch: Arch, sets: &[&str]) -> Result<Settings, String> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Settings::new(arch, Guest::Toy, &sets).map_err(|error| error.to_string())
    }

    #[test]
    fn each_key_changes_its_setting() {
        let set = toy(Arch::Svm, &["loops=7", "cpus=2", "vgif=on", "workload=pio"]).unwrap();
        assert_eq!((set.loops, set.cpus, set.vgif, set.workload), (7, 2, true, Workload::Pio));
        assert!(!toy(Arch::Vmx, &["shadow_vmcs=off"]).unwrap().shadow_vmcs);
    }

    #[test]
    fn a_bench_can_be_narrowed_to_its_nested_tests() {
        let bench = |set: &str| Settings::new(Arch::Vmx, Guest::Bench, &[set.to_owned()]);
        let words = bench("tests=nested").unwrap().to_string();
        assert!(words.contains("--guest bench") && words.contains("--set tests=nested"), "{words}");
        assert_eq!(bench("tests=all").unwrap().tests, Tests::All);
        assert!(bench("tests=some").unwrap_err().to_string().contains("all or nested"));
        assert!(toy(Arch::Vmx, &["tests=nested"]).is_err());
    }

    #[test]
    fn what_means_nothing_is_refused_with_what_can_be() {
        for (arch, set, said) in [
            (Arch::Svm, "loops=0", "loops must be 1 to 1000000"),
            (Arch::Svm, "cpus=x", "cpus must be 1 to 8"),
            (Arch::Svm, "shadow_vmcs=on", "vgif"),
            (Arch::Vmx, "vgif=on", "shadow_vmcs"),
            (Arch::Svm, "vgif", "on or off"),
            (Arch::Svm, "workload=disk", "cpuid, pio"),
            (Arch::Svm, "colour=blue", "can be set"),
        ] {
            let error = toy(arch, &[set]).unwrap_err();
            assert!(error.contains(said) && error.contains(set), "{error}");
        }
        let no_disk = Settings::new(Arch::Vmx, Guest::Linux, &["workload=disk".to_owned()]).unwrap_err().to_string();
        assert!(no_disk.ends_with("cpuid, pio, idle, timer"), "{no_disk}");
    }
}
