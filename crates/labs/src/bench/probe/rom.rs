//! What a guest of ours starts from: 64 KB of read-only memory below 4 GiB, in the place of a computer's firmware.
//!
//! ```text
//! offset in the memory, which begins at 0xffff_0000
//! 0x0000  code: real mode -> long mode -> the device -> a loop        0x2000  IDT
//! 0x1000  GDT, and where GDT and IDT lie                              0x3000  page tables: 4 GiB, each address at itself
//! 0xfff0  where a processor begins: a jump to 0
//!
//! loop   answers questions (`machine::page`) | task HALT: sleeps until an interrupt | task GAPS: notes gaps | task END: leaves
//! vector 0x40   notes the counter, counts, ends the interrupt
//! ```
//! The same bytes run on KVM and in QEMU. There the code finds QEMU's device `ivshmem-doorbell` in slot 4 and has it send its
//! interrupt as vector 0x40; on KVM there is no device, and reading where it would be gives zeros.
//! Sources: Intel SDM volume 3, 9.1.4 (first instruction), 9.8.5 (long mode), 4.5 (paging), 10.4 and 10.8.5 (APIC); PCI Local Bus
//! 3.0, 6.2.5, 6.8.2; docs/specs/ivshmem-spec.txt, QEMU 7.2.

use super::shared::{ANSWERED, ASKED, COUNT, FAULT, NOTES, PHASE, SHARED, STAMP, TASK, THRESHOLD};
use crate::machine_code::{code, label};
use lab::guest::tables::{flat_segment, identity, interrupt_gate};

/// How much there is: the least that QEMU takes.
pub(super) const BYTES: usize = 0x1_0000;
pub(crate) const BASE: u64 = 0xffff_0000;
/// The vector of the interrupt.
pub(crate) const VECTOR: u8 = 0x40;
/// A write to this port says that the guest is ready.
pub(crate) const READY_PORT: u16 = 0xf5;
pub(crate) const END_PORT: u16 = 0xf4;
/// The memory that it writes to beside what it shares: a stack.
pub(crate) const STACK_BYTES: usize = 0x1_0000;
/// The slot of the device on QEMU's first bus.
pub(crate) const SLOT: u8 = 4;

const GDT: usize = 0x1000;
const GDT_POINTER: usize = 0x1040;
const IDT_POINTER: usize = 0x1050;
const IDT: usize = 0x2000;
const PAGE_TABLES: usize = 0x3000;
const FIRST_INSTRUCTION: usize = 0xfff0;
/// What the device is given: its registers, which nobody uses, and its table of interrupts.
const REGISTERS: u64 = 0xd000_0000;
const TABLE: u64 = 0xd000_1000;

std::arch::global_asm!(
    ".pushsection .rodata.kvmscope_rom, \"a\", @progbits",
    ".globl kvmscope_rom, kvmscope_rom_interrupt, kvmscope_rom_fault, kvmscope_rom_end",
    ".hidden kvmscope_rom, kvmscope_rom_interrupt, kvmscope_rom_fault, kvmscope_rom_end",
    "kvmscope_rom:",
    ".code16",
    "    cli",
    "    .byte 0x2e, 0x66, 0x0f, 0x01, 0x16", // lgdt cs:[..], with an address of 32 bits
    "    .short {gdt_pointer}",
    "    mov eax, 0x11", // ET, PE
    "    mov cr0, eax",
    "    .byte 0x66, 0xea", // far jump to a segment of 32 bits
    "    .long 7f - kvmscope_rom + {base}",
    "    .short 0x08",
    ".code32",
    "7:  mov eax, 0x10",
    "    mov ds, ax",
    "    mov es, ax",
    "    mov ss, ax",
    "    mov eax, 0x20", // PAE
    "    mov cr4, eax",
    "    mov eax, {page_tables}",
    "    mov cr3, eax",
    "    mov ecx, 0xc0000080", // EFER
    "    rdmsr",
    "    or eax, 0x100", // LME
    "    wrmsr",
    "    mov eax, 0x80000011", // PG, ET, PE
    "    mov cr0, eax",
    "    .byte 0xea", // far jump to a segment of 64 bits
    "    .long 8f - kvmscope_rom + {base}",
    "    .short 0x18",
    ".code64",
    "8:  mov esp, 0x8000",
    "    mov eax, {idt_pointer}",
    "    lidt [rax]",
    // The old interrupt controllers: nothing.
    "    mov al, 0xff",
    "    out 0x21, al",
    "    out 0xa1, al",
    // The device: addresses of its three regions, then memory and bus mastering (command register).
    ".macro configure at, value",
    "    mov eax, {device} + \\at",
    "    mov edx, 0xcf8",
    "    out dx, eax",
    "    mov eax, \\value",
    "    mov edx, 0xcfc",
    "    out dx, eax",
    ".endm",
    "    configure 0x10, {registers}",
    "    configure 0x14, {table}",
    "    configure 0x18, {shared}",
    "    configure 0x1c, 0",
    "    configure 0x04, 6",
    ".purgem configure",
    // Its list of capabilities, up to MSI-X.
    "    mov esi, 0x34",
    "    call 6f",
    "    movzx esi, al",
    "3:  test esi, esi",
    "    jz 5f",
    "    call 6f",
    "    cmp al, 0x11",
    "    je 4f",
    "    movzx esi, ah",
    "    jmp 3b",
    // The first entry of its table: to this processor's APIC, our vector, not masked. Then MSI-X is on.
    "4:  or eax, 0x80000000",
    "    mov ecx, {table}",
    "    mov dword ptr [rcx], 0xfee00000",
    "    mov dword ptr [rcx + 4], 0",
    "    mov dword ptr [rcx + 8], {vector}",
    "    mov dword ptr [rcx + 12], 0",
    "    out dx, eax", // esi is still selected
    "    jmp 5f",
    // Reads register esi of the device.
    "6:  mov eax, esi",
    "    and eax, 0xfc",
    "    or eax, {device}",
    "    mov edx, 0xcf8",
    "    out dx, eax",
    "    mov edx, 0xcfc",
    "    in eax, dx",
    "    ret",
    // APIC on, spurious vector 0xff.
    "5:  mov ecx, 0xfee000f0",
    "    mov dword ptr [rcx], 0x1ff",
    "    mov ebx, {shared}",
    "    mov qword ptr [rbx + {phase}], 1",
    "    out {ready_port}, al",
    "    xor r12d, r12d",
    "    sti",
    "2:  mov rax, [rbx + {asked}]",
    "    cmp rax, r12",
    "    je 3f",
    "    mov r12, rax",
    "    rdtsc",
    "    shl rdx, 32",
    "    or rax, rdx",
    "    mov [rbx + {stamp}], rax",
    "    mov [rbx + {answered}], r12",
    "3:  mov rax, [rbx + {task}]",
    "    test rax, rax",
    "    jz 2b",
    "    cmp rax, {halt}",
    "    jne 4f",
    "    hlt",
    "    jmp 2b",
    "4:  cmp rax, {gaps}",
    "    jne 9f",
    "    rdtsc",
    "    shl rdx, 32",
    "    or rax, rdx",
    "5:  mov r8, rax",
    "    cmp qword ptr [rbx + {task}], {gaps}",
    "    jne 2b",
    "    rdtsc",
    "    shl rdx, 32",
    "    or rax, rdx",
    "    mov rcx, rax",
    "    sub rcx, r8",
    "    cmp rcx, [rbx + {threshold}]",
    "    jb 5b",
    "    mov rcx, [rbx + {count}]",
    "    movzx edx, cx",
    "    mov [rbx + 8 * rdx + {notes}], r8",
    "    mov [rbx + 8 * rdx + {notes} + 8], rax",
    "    add rcx, 2",
    "    mov [rbx + {count}], rcx",
    "    jmp 5b",
    "9:  out {end_port}, al",
    "    cli",
    "    hlt",
    "    jmp 9b",
    // The interrupt. One aligned store for the counter, and the count behind it: whoever reads along never sees half of one.
    "    .balign 16",
    "kvmscope_rom_interrupt:",
    "    push rax",
    "    push rdx",
    "    rdtsc",
    "    shl rdx, 32",
    "    or rax, rdx",
    "    push rcx",
    "    mov rcx, [rbx + {count}]",
    "    movzx edx, cx",
    "    mov [rbx + 8 * rdx + {notes}], rax",
    "    inc rcx",
    "    mov [rbx + {count}], rcx",
    "    mov edx, 0xfee000b0", // end of interrupt
    "    mov dword ptr [rdx], 0",
    "    pop rcx",
    "    pop rdx",
    "    pop rax",
    "    iretq",
    // Any other vector: nothing should have come.
    "    .balign 16",
    "kvmscope_rom_fault:",
    "    mov qword ptr [rbx + {fault}], 1",
    "    jmp 9b",
    "kvmscope_rom_end:",
    ".popsection",
    base = const BASE,
    gdt_pointer = const GDT_POINTER,
    idt_pointer = const BASE as usize + IDT_POINTER,
    page_tables = const BASE as usize + PAGE_TABLES,
    device = const 0x8000_0000_u32 | (SLOT as u32) << 11,
    registers = const REGISTERS,
    table = const TABLE,
    shared = const SHARED,
    vector = const VECTOR,
    ready_port = const READY_PORT,
    end_port = const END_PORT,
    phase = const PHASE,
    asked = const ASKED,
    stamp = const STAMP,
    answered = const ANSWERED,
    task = const TASK,
    threshold = const THRESHOLD,
    count = const COUNT,
    fault = const FAULT,
    notes = const NOTES,
    halt = const super::Task::Halt as u64,
    gaps = const super::Task::Gaps as u64,
);

fn code() -> &'static [u8] {
    code!(kvmscope_rom..kvmscope_rom_end)
}

pub(super) fn bytes() -> Vec<u8> {
    let mut rom = vec![0; BYTES];
    let mut words = |at: usize, values: &[u64]| {
        values.iter().enumerate().for_each(|(number, value)| {
            rom[at + 8 * number..][..8].copy_from_slice(&value.to_le_bytes());
        });
    };
    // Flat segments: code of 32 bits, data, code of 64 bits. All bits that a processor would set are set: it cannot write here.
    words(GDT, &[0, flat_segment(0x9b, 0xc), flat_segment(0x93, 0xc), flat_segment(0x9b, 0xa)]);
    let pointer = |limit: u64, at: usize| [limit | (BASE + at as u64) << 16, (BASE + at as u64) >> 48];
    words(GDT_POINTER, &pointer(0x1f, GDT));
    words(IDT_POINTER, &pointer(0xfff, IDT));
    let begins = label!(kvmscope_rom).addr();
    let of = |label: *const u8| BASE + (label.addr() - begins) as u64;
    let (interrupt, fault) = (of(label!(kvmscope_rom_interrupt)), of(label!(kvmscope_rom_fault)));
    for vector in 0..=u8::MAX {
        let handler = if vector == VECTOR { interrupt } else { fault };
        // To the code segment of 64 bits.
        words(IDT + 16 * usize::from(vector), &interrupt_gate(handler, 0x18));
    }
    /// Present, writable, accessed, dirty.
    const PAGE: u64 = 0x63;
    let table = |number: usize| BASE + (PAGE_TABLES + 0x1000 * number) as u64;
    words(PAGE_TABLES, &[table(1) | PAGE]);
    for gigabyte in 0..4 {
        words(PAGE_TABLES + 0x1000 + 8 * gigabyte, &[table(2 + gigabyte) | PAGE]);
        words(PAGE_TABLES + 0x1000 * (2 + gigabyte), &identity(gigabyte as u64, PAGE));
    }
    rom[..code().len()].copy_from_slice(code());
    // A near jump: its distance counts from the instruction behind it, and wraps at 64 KB.
    let distance = (BYTES - FIRST_INSTRUCTION - 3) as u16;
    rom[FIRST_INSTRUCTION] = 0xe9;
    rom[FIRST_INSTRUCTION + 1..][..2].copy_from_slice(&distance.to_le_bytes());
    rom
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_begins_with_a_jump_to_the_code_which_ends_before_the_tables() {
        let rom = bytes();
        assert_eq!(rom[..6], [0xfa, 0x2e, 0x66, 0x0f, 0x01, 0x16], "cli, and the GDT of 32 bits");
        assert!(code().len() < GDT, "{}", code().len());
        let distance = u16::from_le_bytes([rom[FIRST_INSTRUCTION + 1], rom[FIRST_INSTRUCTION + 2]]);
        assert_eq!((rom[FIRST_INSTRUCTION], (FIRST_INSTRUCTION as u16 + 3).wrapping_add(distance)), (0xe9, 0));
    }

    #[test]
    fn every_vector_has_a_handler_inside_the_code() {
        let rom = bytes();
        let word = |at: usize| u64::from_le_bytes(rom[at..at + 8].try_into().unwrap());
        for vector in 0..256 {
            let (low, high) = (word(IDT + 16 * vector), word(IDT + 16 * vector + 8));
            let handler = low & 0xffff | (low >> 48) << 16 | high << 32;
            assert!((BASE..BASE + code().len() as u64).contains(&handler), "{vector}: {handler:#x}");
        }
    }
}
