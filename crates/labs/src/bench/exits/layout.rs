//! Where things lie in the bench's guest, and what stands there before it starts.
//!
//! ```text
//! 0x0_1000  GDT   0x0_2000  IDT   0x0_3000  page tables: 4 GiB, each address at itself
//! 0x0_9000  code  0x0_a000  stubs that tell of exceptions  0x0_b000  code of ring 0  0x0_c000  a hypervisor
//! 0x1_0000, 0x1_4000, 0x1_8000  ends of stacks                                             0x4_0000  what L1 needs
//! 0x2_0000  TSS, with a map of ports that allows all      0x3_0000  what the interrupt handler tells
//! 0x10_0000 .. 0x40_0000   samples                                 0x4000_0000  pages that nobody has touched
//! 0xd000_0000 ..           no memory: devices
//! ```
//! Segments, TSS and gates: Intel SDM volume 3, 3.4.5, 6.14.1 and 7.7; page tables: 4.5.

use super::{payload, privileged};
use kvm_bindings::{kvm_dtable, kvm_segment, kvm_sregs};
use lab::Error;
use lab::guest::memory::Memory;
use lab::guest::tables::{flat_segment, identity, interrupt_gate};

/// Memory from address 0 on.
pub(crate) const MEMORY_BYTES: usize = 4 << 20;
pub(crate) const CODE: u64 = 0x9000;
/// Code that only ring 0 runs.
pub(crate) const PRIVILEGED: u64 = 0xb000;
/// Code of a hypervisor inside the guest.
pub(crate) const HYPERVISOR: u64 = 0xc000;
/// The end of its stack.
pub(crate) const HYPERVISOR_STACK: u64 = 0x1_4000;
/// What it tells the processor of its guests, control block by control block, and what the processor keeps there.
pub(crate) const CONTROL: u64 = 0x4_0000;
/// Which MSRs of its guests exit, by its will: none, all bits are zero.
pub(crate) const NO_MSRS: u64 = 0x4_4000;
/// 1 once the interrupt handler ran.
pub(crate) const INTERRUPTED: u64 = 0x3_0000;
/// A word that two vCPUs hand each other, and its neighbour in the same cache line.
pub(crate) const TOKEN: u64 = 0x3_0040;
/// How often it ran.
pub(crate) const INTERRUPTS: u64 = 0x3_0008;
/// The vector of the interrupt that tests wait for.
pub(crate) const VECTOR: u64 = 0x40;
pub(crate) const SAMPLES: u64 = 0x10_0000;
/// So many have room.
pub(crate) const MOST_SAMPLES: u64 = (MEMORY_BYTES as u64 - SAMPLES) / 8;
/// Pages that nobody has touched.
pub(crate) const NEW_PAGES: u64 = 0x4000_0000;
pub(crate) const NEW_BYTES: usize = 64 << 20;
/// A device that the VMM answers.
pub(crate) const DEVICE: u64 = 0xd000_0000;
/// A device whose writes signal an eventfd.
pub(crate) const DEVICE_WILDCARD: u64 = 0xd000_1000;
/// The same for the value 0 alone.
pub(crate) const DEVICE_DATAMATCH: u64 = 0xd000_2000;
/// A device whose writes KVM collects.
pub(crate) const COALESCED: u64 = 0xd000_3000;
/// A write to this port ends a run.
pub(crate) const END_PORT: u16 = 0xf4;
/// A write to this port ends it too: it tells an exception that nothing expected.
pub(crate) const EXCEPTION_PORT: u16 = 0xf5;
/// The same from a hypervisor inside the guest: the reason of its guest's exit, which nothing expected.
pub(crate) const REASON_PORT: u16 = 0xf6;
/// The same: the error of a VMX instruction.
pub(crate) const ERROR_PORT: u16 = 0xf7;

const GDT: u64 = 0x1000;
const IDT: u64 = 0x2000;
const PAGE_TABLES: u64 = 0x3000;
/// IOPL 3 would do, but `kvm_pvm` (Linux 6.18) loses it and asks the map.
const TSS: u64 = 0x2_0000;
const TSS_BYTES: u64 = 0x68;
const PORT_MAP_BYTES: u64 = 0x2000;
const STUBS: u64 = 0xa000;
/// The end of the second vCPU's stack.
pub(crate) const SECOND_STACK: u64 = 0x1_2000;
/// Ends of stacks: of the measured code, and of ring 0 when ring 3 leaves to it.
pub(crate) const STACK: u64 = 0x1_0000;
const KERNEL_STACK: u64 = 0x1_8000;

/// Selectors of flat segments: code and data of ring 0, code and data of ring 3, the task's.
const CODE_0: u16 = 0x08;
const DATA_0: u16 = 0x10;
const CODE_3: u16 = 0x18 | 3;
const DATA_3: u16 = 0x20 | 3;
const TASK: u16 = 0x28;

/// The byte behind the map belongs to it, and must be all ones.
const TASK_LIMIT: u64 = TSS_BYTES + PORT_MAP_BYTES;

/// Vector of an undefined instruction.
const UD: u64 = 6;

pub(crate) fn fill(memory: &mut Memory) -> Result<(), Error> {
    let mut words = |at: u64, values: &[u64]| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        memory.load(at as usize, &bytes)
    };
    let task = TASK_LIMIT & 0xffff | (TSS & 0xff_ffff) << 16 | 0x8b << 40;
    words(
        GDT,
        &[
            0,
            flat_segment(0x9b, 0xa),
            flat_segment(0x93, 0xc),
            flat_segment(0xfb, 0xa),
            flat_segment(0xf3, 0xc),
            task,
            0,
        ],
    )?;
    // RSP0 stands at byte 4, where the map of ports begins at byte 102.
    words(TSS, &[KERNEL_STACK << 32, KERNEL_STACK >> 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, TSS_BYTES << 48])?;
    words(TSS + TASK_LIMIT, &[u64::MAX])?;
    const PRESENT_WRITABLE_USER: u64 = 0x7;
    words(PAGE_TABLES, &[(PAGE_TABLES + 0x1000) | PRESENT_WRITABLE_USER])?;
    for gigabyte in 0..4 {
        let directory = PAGE_TABLES + 0x2000 + gigabyte * 0x1000;
        words(PAGE_TABLES + 0x1000 + 8 * gigabyte, &[directory | PRESENT_WRITABLE_USER])?;
        words(directory, &identity(gigabyte, PRESENT_WRITABLE_USER))?;
    }
    for vector in 0..256 {
        let handler = match vector {
            UD => payload::skip_ud2(),
            VECTOR => privileged::interrupt(),
            _ => stub(vector),
        };
        words(IDT + 16 * vector, &interrupt_gate(handler, CODE_0))?;
    }
    for vector in 0..256_u64 {
        // mov al, VECTOR; out PORT, al; jmp to itself
        let code = [0xb0, vector as u8, 0xe6, EXCEPTION_PORT as u8, 0xeb, 0xfe];
        memory.load(stub(vector) as usize, &code)?;
    }
    memory.load(CODE as usize, payload::code())?;
    memory.load(PRIVILEGED as usize, privileged::code())
}

fn stub(vector: u64) -> u64 {
    STUBS + 8 * vector
}

/// Puts a vCPU into long mode at privilege level `ring`.
pub(crate) fn long_mode(registers: &mut kvm_sregs, ring: u8) {
    let flat = kvm_segment { limit: u32::MAX, present: 1, s: 1, g: 1, dpl: ring, ..Default::default() };
    let (code, data) = if ring == 0 { (CODE_0, DATA_0) } else { (CODE_3, DATA_3) };
    registers.cs = kvm_segment { selector: code, type_: 11, l: 1, ..flat };
    let data = kvm_segment { selector: data, type_: 3, db: 1, ..flat };
    (registers.ds, registers.es, registers.fs, registers.gs, registers.ss) = (data, data, data, data, data);
    registers.tr = kvm_segment {
        selector: TASK,
        type_: 11,
        present: 1,
        limit: TASK_LIMIT as u32,
        base: TSS,
        ..Default::default()
    };
    registers.gdt = kvm_dtable { base: GDT, limit: 0x37, ..Default::default() };
    registers.idt = kvm_dtable { base: IDT, limit: 0xfff, ..Default::default() };
    registers.cr0 = 0x8005_0033; // PG, AM, WP, NE, ET, MP, PE
    registers.cr3 = PAGE_TABLES;
    registers.cr4 = 0x6a0; // OSXMMEXCPT, OSFXSR, PGE, PAE
    registers.efer = 0xd01; // NXE, LMA, LME, SCE
    registers.apic_base |= 0xc00; // x2APIC
}

/// What the local APIC needs for interrupts: switched on, all priorities, the timer one-shot at a time of the counter.
pub(crate) fn interrupt_registers() -> [(u32, u64); 3] {
    const TSC_DEADLINE_MODE: u64 = 2 << 17;
    [(0x80f, 0x1ff), (0x808, 0), (0x832, TSC_DEADLINE_MODE | VECTOR)]
}

/// What SYSCALL needs: segments and the entry (STAR, LSTAR, SFMASK).
pub(crate) fn system_call_registers() -> [(u32, u64); 3] {
    let star = u64::from(CODE_0) << 48 | u64::from(CODE_0) << 32;
    [(0xc000_0081, star), (0xc000_0082, payload::system_call()), (0xc000_0084, 0)]
}
