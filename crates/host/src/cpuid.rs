//! What did the processor say of itself, leaf by leaf?
//!
//! `cpuid.json` of a snapshot: CPUID of the CPU on which it was taken. Leaves and bits: Intel SDM volume 2 (CPUID), AMD
//! APM volume 3 appendix E, and for 0x40000000 to 0x4000ffff the hypervisor's own specification.

use crate::Snapshot;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the file in a snapshot.
pub const CPUID_FILE: &str = "cpuid.json";

/// Registers by leaf and subleaf.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpuid {
    leaves: BTreeMap<(u32, u32), Registers>,
}

/// What CPUID returns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
}

/// A leaf as it stands in the file, in hexadecimal as in the manuals.
#[derive(Serialize, Deserialize)]
struct Written {
    leaf: String,
    subleaf: u32,
    eax: String,
    ebx: String,
    ecx: String,
    edx: String,
}

#[derive(Serialize, Deserialize)]
struct File {
    leaves: Vec<Written>,
}

impl Cpuid {
    /// What the snapshot holds; nothing if it was not taken, or is damaged.
    pub fn of(snapshot: &Snapshot) -> Option<Self> {
        Self::from_json(&snapshot.read(CPUID_FILE)?)
    }

    /// Reads the file's text; `None` if it is something else.
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        let number = |text: &str| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let file: File = serde_json::from_str(text).ok()?;
        let leaf = |written: Written| {
            let registers = Registers {
                eax: number(&written.eax)?,
                ebx: number(&written.ebx)?,
                ecx: number(&written.ecx)?,
                edx: number(&written.edx)?,
            };
            Some(((number(&written.leaf)?, written.subleaf), registers))
        };
        Some(Self { leaves: file.leaves.into_iter().map(leaf).collect::<Option<_>>()? })
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        let hex = |number: u32| format!("{number:#010x}");
        let leaf = |(&(leaf, subleaf), registers): (&(u32, u32), &Registers)| Written {
            leaf: hex(leaf),
            subleaf,
            eax: hex(registers.eax),
            ebx: hex(registers.ebx),
            ecx: hex(registers.ecx),
            edx: hex(registers.edx),
        };
        let file = File { leaves: self.leaves.iter().map(leaf).collect() };
        serde_json::to_string_pretty(&file).unwrap_or_default()
    }

    /// Keeps what a leaf returned.
    pub fn insert(&mut self, leaf: u32, subleaf: u32, registers: Registers) {
        self.leaves.insert((leaf, subleaf), registers);
    }

    /// What a leaf returned; `None` if the processor does not have it.
    pub fn get(&self, leaf: u32, subleaf: u32) -> Option<Registers> {
        self.leaves.get(&(leaf, subleaf)).copied()
    }

    /// The processor's vendor: `GenuineIntel`, `AuthenticAMD`.
    pub fn vendor(&self) -> Option<String> {
        let Registers { ebx, ecx, edx, .. } = self.get(0, 0)?;
        Some(text(&[ebx, edx, ecx]))
    }

    /// The hypervisors that show themselves, with the leaf at which each does: `KVMKVMKVM`, `Microsoft Hv`.
    pub fn hypervisors(&self) -> Vec<(u32, String)> {
        let bases = self.leaves.range((0x4000_0000, 0)..(0x4001_0000, 0)).filter(|((leaf, _), _)| leaf & 0xff == 0);
        let named = bases.map(|((leaf, _), named)| (*leaf, text(&[named.ebx, named.ecx, named.edx])));
        // Processors answer leaves that they do not have with what they like, such as those of their highest leaf.
        named.filter(|(_, name)| !name.is_empty() && name.bytes().all(|byte| matches!(byte, b' '..=b'~'))).collect()
    }
}

/// The text that registers hold, four bytes each, up to its zero bytes.
fn text(registers: &[u32]) -> String {
    let bytes: Vec<u8> = registers.iter().flat_map(|register| register.to_le_bytes()).collect();
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut cpuid = Cpuid::default();
        let amd = Registers { eax: 0x10, ebx: 0x6874_7541, ecx: 0x444d_4163, edx: 0x6974_6e65 };
        cpuid.insert(0, 0, amd);
        cpuid.insert(0x4000_0200, 0, Registers { eax: 0, ebx: 0x0007_0001, ecx: 0, edx: 0 });
        let kvm = Registers { eax: 0x4000_0001, ebx: 0x4b4d_564b, ecx: 0x564b_4d56, edx: 0x4d };
        cpuid.insert(0x4000_0000, 0, kvm);
        cpuid.insert(0xd, 2, Registers::default());
        let read = Cpuid::from_json(&cpuid.to_json()).unwrap();
        assert_eq!(read, cpuid);
        assert_eq!(read.vendor().as_deref(), Some("AuthenticAMD"));
        assert_eq!(read.hypervisors(), [(0x4000_0000, "KVMKVMKVM".to_owned())]);
        assert_eq!((read.get(0xd, 2), read.get(0xd, 3)), (Some(Registers::default()), None));
    }

    #[test]
    fn something_else_is_nothing() {
        assert_eq!(Cpuid::from_json("[]"), None);
        let odd = r#"{"leaves":[{"leaf":"zero","subleaf":0,"eax":"0x0","ebx":"0x0","ecx":"0x0","edx":"0x0"}]}"#;
        assert_eq!(Cpuid::from_json(odd), None);
    }
}
