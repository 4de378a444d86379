//! Which processor does the machine have, and what does it offer to hypervisors?
//!
//! In: `/proc/cpuinfo` of a snapshot, first CPU. Out: vendor, model, `flags`, and on Intel `vmx flags`. Both are what this
//! level is offered: in a guest they are what the hypervisor below lets through, or imitates.
//! Names of the flags: arch/x86/include/asm/cpufeatures.h and vmxfeatures.h, Linux 6.12.

use crate::Snapshot;
use serde::Deserialize;
use std::collections::BTreeSet;

pub const CPUINFO: &str = "proc/cpuinfo";

/// Whose virtualization instructions the processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// VMX: Intel and its licensees.
    Intel,
    /// SVM: AMD and Hygon.
    Amd,
    Other,
}

/// The first processor of a machine; all are alike but on hybrid laptops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processor {
    pub vendor: Vendor,
    /// `model name`.
    pub name: String,
    /// `cpu family`, 0 where it is not stated.
    pub family: u32,
    /// `model`, 0 where it is not stated.
    pub model: u32,
    /// `flags`.
    pub flags: BTreeSet<String>,
    /// `vmx flags`, where there is such a line: Linux has it since 5.6, on processors with VMX.
    pub vmx_flags: Option<BTreeSet<String>>,
}

impl Vendor {
    /// By the name that the processor tells, or that its model has.
    pub fn named(text: &str) -> Self {
        match text {
            "GenuineIntel" | "CentaurHauls" | "Shanghai" => Vendor::Intel,
            "AuthenticAMD" | "HygonGenuine" => Vendor::Amd,
            text if text.starts_with("AMD ") => Vendor::Amd,
            text if text.starts_with("Intel") => Vendor::Intel,
            _ => Vendor::Other,
        }
    }
}

impl Processor {
    /// The processor of a snapshot; nothing if `/proc/cpuinfo` is not there or says nothing.
    pub fn of(snapshot: &Snapshot) -> Option<Self> {
        Self::from_text(&snapshot.read(CPUINFO)?)
    }

    /// Reads `/proc/cpuinfo`.
    pub fn from_text(text: &str) -> Option<Self> {
        let first: Vec<(&str, &str)> = text
            .lines()
            .skip_while(|line| line.trim().is_empty())
            .take_while(|line| !line.trim().is_empty())
            .filter_map(|line| line.split_once(':'))
            .map(|(key, value)| (key.trim(), value.trim()))
            .collect();
        let value = |wanted: &str| first.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value);
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let number = |key| value(key).and_then(|text| text.parse().ok()).unwrap_or(0);
        Some(Self {
            vendor: Vendor::named(value("vendor_id")?),
            name: value("model name").unwrap_or_default().to_owned(),
            family: number("cpu family"),
            model: number("model"),
            flags: words(value("flags")?),
            vmx_flags: value("vmx flags").map(words),
        })
    }

    /// Whether `flags` has this one.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.contains(flag)
    }

    /// Whether it offers virtualization instructions at this level.
    pub fn can_virtualize(&self) -> bool {
        self.has("vmx") || self.has("svm")
    }

    /// Whether a feature of the virtualization instructions is offered; `None` where the kernel does not list them.
    pub fn offers(&self, flag: &str) -> Option<bool> {
        match (self.vendor, &self.vmx_flags) {
            (Vendor::Amd, _) => Some(self.has(flag)),
            (_, Some(vmx)) => Some(vmx.contains(flag)),
            (_, None) if !self.has("vmx") => Some(false),
            (_, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTEL: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\nmodel name\t: Xeon\n\
        flags\t\t: fpu vmx hypervisor\nvmx flags\t: ept vpid\n\nprocessor\t: 1\nvmx flags\t: shadow_vmcs\n";

    #[test]
    fn the_first_processor_answers() {
        let cpu = Processor::from_text(INTEL).unwrap();
        assert_eq!((cpu.vendor, cpu.family, cpu.model, cpu.name.as_str()), (Vendor::Intel, 6, 106, "Xeon"));
        assert!(cpu.can_virtualize());
        assert_eq!((cpu.offers("ept"), cpu.offers("shadow_vmcs")), (Some(true), Some(false)));
    }

    #[test]
    fn a_kernel_without_the_line_leaves_it_open() {
        let old = Processor::from_text(&INTEL.replace("vmx flags", "x")).unwrap();
        assert_eq!(old.offers("ept"), None);
        let without = Processor::from_text(&INTEL.replace("vmx flags", "x").replace(" vmx ", " ")).unwrap();
        assert_eq!(without.offers("ept"), Some(false));
        assert_eq!(Processor::from_text("nothing of the kind"), None);
    }

    #[test]
    fn on_amd_everything_stands_in_flags() {
        let text = "vendor_id : AuthenticAMD\nflags : svm npt avic\n";
        let cpu = Processor::from_text(text).unwrap();
        assert_eq!((cpu.vendor, cpu.offers("avic"), cpu.offers("vgif")), (Vendor::Amd, Some(true), Some(false)));
    }
}
