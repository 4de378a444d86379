//! Asks the processor what it is.
//!
//! Ranges: basic leaves from 0, extended ones from 0x80000000, and hypervisors from 0x40000000 in steps of 0x100 (several
//! may show themselves: KVM with Hyper-V's interface has two). Beyond its last leaf Intel answers with that leaf again,
//! so the end that a range states is kept to.

use host::Cpuid;
use host::cpuid::Registers;
use std::arch::x86_64::__cpuid_count;

/// Leaves whose answer depends on ecx: caches, features, topology, extended state, monitoring, SGX, trace, clocks, tiles.
const WITH_SUBLEAVES: &[u32] =
    &[4, 7, 0xb, 0xd, 0xf, 0x10, 0x12, 0x14, 0x17, 0x18, 0x1d, 0x1f, 0x20, 0x24, 0x8000_001d, 0x8000_0020, 0x8000_0026];

/// Leaves of topology: past their end they still return their subleaf and the CPU's id in ecx and edx.
const TOPOLOGY: &[u32] = &[0xb, 0x1f, 0x8000_0026];

/// Extended state has 63 components, one a subleaf.
const MOST_SUBLEAVES: u32 = 64;

/// No range is longer; one that says so is not believed.
const MOST_LEAVES: u32 = 0x100;

/// Bit 31 of ecx of leaf 1: there is a hypervisor. Linux 6.12, arch/x86/include/asm/cpufeatures.h.
const HYPERVISOR: u32 = 1 << 31;

/// All leaves of the CPU that this runs on.
pub(crate) fn here() -> Cpuid {
    all(&|leaf, subleaf| {
        // In Rust before 1.94 the intrinsic is unsafe, for processors older than x86-64.
        #[allow(unused_unsafe)]
        // SAFETY: every x86-64 processor has CPUID.
        let found = unsafe { __cpuid_count(leaf, subleaf) };
        Registers { eax: found.eax, ebx: found.ebx, ecx: found.ecx, edx: found.edx }
    })
}

/// All leaves that `ask` answers.
fn all(ask: &dyn Fn(u32, u32) -> Registers) -> Cpuid {
    let mut cpuid = Cpuid::default();
    range(&mut cpuid, ask, 0);
    if cpuid.get(1, 0).is_some_and(|leaf| leaf.ecx & HYPERVISOR != 0) {
        (0..=0x100).for_each(|step| range(&mut cpuid, ask, 0x4000_0000 + step * 0x100));
    }
    range(&mut cpuid, ask, 0x8000_0000);
    cpuid
}

fn range(cpuid: &mut Cpuid, ask: &dyn Fn(u32, u32) -> Registers, base: u32) {
    let first = ask(base, 0);
    // KVM before 2.6.38 stated 0 for its last leaf (Documentation/virt/kvm/x86/cpuid.rst).
    let silent = first.ebx | first.ecx | first.edx == 0;
    let last = if first.eax == 0 && base != 0 && !silent { base + 1 } else { first.eax };
    if last < base || last - base >= MOST_LEAVES || (base != 0 && last == 0) {
        return;
    }
    for leaf in base..=last {
        cpuid.insert(leaf, 0, ask(leaf, 0));
        if WITH_SUBLEAVES.contains(&leaf) {
            let answers = (1..MOST_SUBLEAVES).map(|subleaf| (subleaf, ask(leaf, subleaf)));
            answers.filter(|(_, answer)| says_something(leaf, answer)).for_each(|(subleaf, answer)| {
                cpuid.insert(leaf, subleaf, answer);
            });
        }
    }
}

fn says_something(leaf: u32, answer: &Registers) -> bool {
    let own = answer.eax | answer.ebx;
    if TOPOLOGY.contains(&leaf) { own != 0 } else { own | answer.ecx | answer.edx != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_processor_is_the_one_of_cpuinfo() {
        let Ok(cpuinfo) = std::fs::read_to_string("/proc/cpuinfo") else {
            return println!("skipped: no /proc/cpuinfo");
        };
        let vendor =
            cpuinfo.lines().find(|line| line.starts_with("vendor_id")).and_then(|line| line.split(": ").nth(1));
        let here = here();
        assert_eq!(here.vendor().as_deref(), vendor);
        assert_eq!(here.hypervisors().is_empty(), !cpuinfo.contains(" hypervisor "));
    }

    #[test]
    fn a_range_ends_where_it_says() {
        let machine = |leaf: u32, subleaf: u32| match (leaf, subleaf) {
            (0, _) => Registers { eax: 0xb, ..Registers::default() },
            (1, _) => Registers { ecx: HYPERVISOR, ..Registers::default() },
            (0xb, 0..=1) => Registers { ebx: 2, ecx: subleaf, edx: 9, ..Registers::default() },
            (0xb, _) => Registers { ecx: subleaf, edx: 9, ..Registers::default() },
            (0x4000_0000, _) => Registers { eax: 0x4000_0001, ebx: 1, ..Registers::default() },
            (0x4000_0100, _) => Registers { eax: 0, ebx: 1, ..Registers::default() },
            (0x8000_0000, _) => Registers { eax: 0xffff_ffff, ..Registers::default() },
            (0x4000_0200.., _) => Registers::default(),
            _ => Registers { eax: 7, ..Registers::default() },
        };
        let cpuid = all(&machine);
        assert!(cpuid.get(0xb, 1).is_some() && cpuid.get(0xb, 2).is_none());
        assert!(cpuid.get(0x4000_0001, 0).is_some() && cpuid.get(0x4000_0002, 0).is_none());
        assert!(cpuid.get(0x4000_0101, 0).is_some());
        assert!(cpuid.get(0x8000_0001, 0).is_none() && cpuid.get(0xc, 0).is_none());
    }
}
