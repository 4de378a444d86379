//! Where does everything lie in the memory of a Linux guest, and how does its CPU begin?
//!
//! ```text
//! 0x00500 GDT   0x07000 boot parameters   0x09000 page tables: the first GiB, each address at itself   0x20000 words
//! 16 MiB  the kernel, and room for its zeros      96 MiB  store: not RAM, to be written as one likes
//! 128 MiB the initramfs, and RAM to the end
//! ```
//! Source: Documentation/arch/x86/boot.rst (protocol 2.15, "64-bit Boot Protocol") and zero-page.rst (Linux 6.12).

use super::Pc;
use crate::machine::vmlinux;
use kvm_bindings::{kvm_regs, kvm_segment};
use kvm_ioctls::VcpuFd;
use lab::Error;
use lab::guest::memory::Memory;

/// Where the store lies. Linux lets nobody write to RAM through /dev/mem, and nothing above the last RAM.
pub(crate) const STORE: u64 = 96 << 20;
/// Through which the guest writes to it.
pub(crate) const STORE_DEVICE: &str = "/dev/mem";
pub(crate) const STORE_BYTES: u64 = 32 << 20;

const GDT: usize = 0x500;
const PARAMETERS: usize = 0x7000;
const PAGE_TABLES: u64 = 0x9000;
const ARGUMENTS: usize = 0x20000;
const INITRAMFS: u64 = STORE + STORE_BYTES;
const LOW_RAM_BYTES: u64 = 0x9_fc00;
const HIGH_RAM: u64 = 1 << 20;

const CODE: u16 = 0x10;
const DATA: u16 = 0x18;

/// Puts everything in its place.
///
/// # Errors
/// If it does not fit.
pub(super) fn load(pc: &Pc<'_>, memory: &mut Memory) -> Result<(), Error> {
    if vmlinux::START + pc.kernel.len() as u64 > STORE {
        return Err(Error::Malformed(format!("a kernel of {} bytes is too large for the lab", pc.kernel.len())));
    }
    memory.load(vmlinux::START as usize, pc.kernel)?;
    memory.load(INITRAMFS as usize, pc.initramfs)?;
    memory.load(ARGUMENTS, pc.arguments.as_bytes())?;
    memory.load(PARAMETERS, &parameters(pc))?;
    // The descriptors that the protocol asks for: flat, 64-bit code and data.
    let gdt = [0, 0, 0x00af_9b00_0000_ffff_u64, 0x00cf_9300_0000_ffff];
    memory.load(GDT, &gdt.map(u64::to_le_bytes).concat())?;
    const PRESENT_WRITABLE: u64 = 0x3;
    const LARGE: u64 = 0x80;
    let tables = PAGE_TABLES as usize;
    memory.load(tables, &((PAGE_TABLES + 0x1000) | PRESENT_WRITABLE).to_le_bytes())?;
    memory.load(tables + 0x1000, &((PAGE_TABLES + 0x2000) | PRESENT_WRITABLE).to_le_bytes())?;
    let pages: Vec<u8> = (0..512_u64).flat_map(|page| (page << 21 | LARGE | PRESENT_WRITABLE).to_le_bytes()).collect();
    memory.load(tables + 0x2000, &pages)
}

/// The page of parameters: what a boot loader tells.
fn parameters(pc: &Pc<'_>) -> Vec<u8> {
    const RAM: u32 = 1;
    const RESERVED: u32 = 2;
    let mut page = vec![0; 4096];
    let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x1fe, &0xaa55_u16.to_le_bytes()); // boot_flag
    put(0x202, b"HdrS");
    put(0x206, &0x20f_u16.to_le_bytes()); // version
    put(0x210, &[0xff]); // type_of_loader: none of those that have a number
    put(0x211, &[1]); // loadflags: loaded high
    put(0x218, &(INITRAMFS as u32).to_le_bytes());
    put(0x21c, &(pc.initramfs.len() as u32).to_le_bytes());
    put(0x228, &(ARGUMENTS as u32).to_le_bytes());
    put(0x238, &(pc.arguments.len() as u32).to_le_bytes());
    let ranges = [
        (0, LOW_RAM_BYTES, RAM),
        (HIGH_RAM, STORE - HIGH_RAM, RAM),
        (STORE, STORE_BYTES, RESERVED),
        (INITRAMFS, pc.memory_bytes - INITRAMFS, RAM),
    ];
    put(0x1e8, &[ranges.len() as u8]); // e820_entries
    for (at, (start, bytes, kind)) in (0x2d0..).step_by(20).zip(ranges) {
        put(at, &start.to_le_bytes());
        put(at + 8, &bytes.to_le_bytes());
        put(at + 16, &kind.to_le_bytes());
    }
    page
}

/// The CPU at the kernel's first instruction.
///
/// # Errors
/// If KVM refuses.
pub(super) fn start(vcpu: &VcpuFd) -> Result<(), Error> {
    let refused = |error| super::refused("setting registers", error);
    let mut special = vcpu.get_sregs().map_err(refused)?;
    let flat = kvm_segment { limit: u32::MAX, present: 1, s: 1, g: 1, ..Default::default() };
    special.cs = kvm_segment { selector: CODE, type_: 11, l: 1, ..flat };
    let data = kvm_segment { selector: DATA, type_: 3, db: 1, ..flat };
    (special.ds, special.es, special.fs, special.gs, special.ss) = (data, data, data, data, data);
    (special.gdt.base, special.gdt.limit) = (GDT as u64, 31);
    special.cr0 = 0x8000_0011; // PG, ET, PE
    special.cr3 = PAGE_TABLES;
    special.cr4 = 0x20; // PAE
    special.efer = 0x500; // LME, LMA
    vcpu.set_sregs(&special).map_err(refused)?;
    let general = kvm_regs { rip: vmlinux::START, rsi: PARAMETERS as u64, rflags: 2, ..Default::default() };
    vcpu.set_regs(&general).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_name_all_memory_once() {
        let pc = Pc { kernel: &[], initramfs: &[1, 2, 3], arguments: "quiet", memory_bytes: 256 << 20, limit: None };
        let page = parameters(&pc);
        let number = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().unwrap());
        let ranges: Vec<_> = (0..usize::from(page[0x1e8])).map(|index| 0x2d0 + 20 * index).collect();
        let ranges: Vec<_> =
            ranges.into_iter().map(|at| (number(at), number(at) + number(at + 8), page[at + 16])).collect();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ranges:x?}");
        assert_eq!(ranges.last(), Some(&(INITRAMFS, 256 << 20, 1)), "RAM above the store");
        assert_eq!(page[0x218..0x220], [0, 0, 0, 8, 3, 0, 0, 0], "where the initramfs lies, and its size");
    }
}
