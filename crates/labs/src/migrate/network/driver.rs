//! The driver of the guest's network card, polled: an Intel 82540EM, as QEMU's `e1000` is one.
//!
//! ```text
//! 0x7e00  begin, poll: addresses that the boot sector calls       0x100008  frames of ours received, card, next to receive, next to send
//! 0x110000  256 descriptors to receive with     0x111000  256 to send with     0x120000  256 buffers of 256 bytes
//! ```
//! Each frame of ours (UDP over IPv4, with the word [`super::frame::MAGIC`]) goes back from the buffer that it came in: addresses and ports
//! change places, which leaves all checksums as they are, and the count of those received so far is put into it. Others are dropped.
//! No interrupts: the boot sector looks here while it waits for its next write.
//! Sources: PCI Local Bus Specification 3.0, 3.2.2.3.2 (CONFIG_ADDRESS); Intel PCI/PCI-X Family of Gigabit Ethernet Controllers Software
//! Developer's Manual (317453), 3.2 (receiving), 3.3 (sending), 13.4 (registers).

use super::super::sector::{DRIVER_AT, HEARTBEAT_AT};
use super::frame::MAGIC;
use crate::machine_code::code;

/// Behind the heartbeat and the sweeps: what it has received, modulo 2^32.
const COUNT_AT: u32 = HEARTBEAT_AT + 8;
const CARD_AT: u32 = HEARTBEAT_AT + 12;
const NEXT_IN_AT: u32 = HEARTBEAT_AT + 16;
const NEXT_OUT_AT: u32 = HEARTBEAT_AT + 20;
const IN_RING: u32 = 0x11_0000;
const OUT_RING: u32 = 0x11_1000;
const BUFFERS: u32 = 0x12_0000;
/// What card and driver write to: from here to there.
pub(crate) const RINGS: (u64, u64) = (IN_RING as u64, BUFFERS as u64 + 256 * 256);

std::arch::global_asm!(
    ".pushsection .rodata",
    ".globl kvmscope_driver, kvmscope_driver_end",
    ".hidden kvmscope_driver, kvmscope_driver_end",
    "kvmscope_driver:",
    ".code32",
    ".long {at} + 2f - kvmscope_driver",
    ".long {at} + 5f - kvmscope_driver",
    // Begin: which device of bus 0 is it? Without one the guest never beats.
    "2:",
    "pushad",
    "mov ecx, 0x80000000",
    "3:",
    "mov eax, ecx",
    "mov edx, 0xcf8",
    "out dx, eax",
    "mov edx, 0xcfc",
    "in eax, dx",
    "cmp eax, 0x100e8086",
    "je 4f",
    "add ecx, 0x800",
    "jmp 3b",
    // It may answer at its address, and read and write memory itself.
    "4:",
    "lea eax, [ecx + 4]",
    "mov edx, 0xcf8",
    "out dx, eax",
    "mov edx, 0xcfc",
    "in eax, dx",
    "movzx eax, ax",
    "or eax, 6",
    "out dx, eax",
    "lea eax, [ecx + 0x10]",
    "mov edx, 0xcf8",
    "out dx, eax",
    "mov edx, 0xcfc",
    "in eax, dx",
    "and eax, 0xfffffff0",
    "mov ebp, eax",
    "mov [{card}], eax",
    "mov edi, {in_ring}",
    "mov eax, {buffers}",
    "mov ecx, 256",
    "3:",
    "mov [edi], eax",
    "mov dword ptr [edi + 4], 0",
    "mov dword ptr [edi + 8], 0",
    "mov dword ptr [edi + 12], 0",
    "add edi, 16",
    "add eax, 256",
    "dec ecx",
    "jnz 3b",
    // IMC: no interrupts.
    "mov dword ptr [ebp + 0xd8], 0xffffffff",
    // RDBAL, RDBAH, RDLEN, RDH, RDT.
    "mov dword ptr [ebp + 0x2800], {in_ring}",
    "mov dword ptr [ebp + 0x2804], 0",
    "mov dword ptr [ebp + 0x2808], 4096",
    "mov dword ptr [ebp + 0x2810], 0",
    "mov dword ptr [ebp + 0x2818], 255",
    // TDBAL, TDBAH, TDLEN, TDH, TDT.
    "mov dword ptr [ebp + 0x3800], {out_ring}",
    "mov dword ptr [ebp + 0x3804], 0",
    "mov dword ptr [ebp + 0x3808], 4096",
    "mov dword ptr [ebp + 0x3810], 0",
    "mov dword ptr [ebp + 0x3818], 0",
    // RCTL: on, broadcasts too, buffers of 256 bytes, without the checksum; TCTL: on, short frames are filled up.
    "mov dword ptr [ebp + 0x100], 0x04038002",
    "mov dword ptr [ebp + 0x400], 0x0000000a",
    "popad",
    "ret",
    // Poll: EAX is all that the caller does not need.
    "5:",
    "mov eax, [{next_in}]",
    "shl eax, 4",
    "test byte ptr [eax + {in_ring} + 12], 1",
    "jnz 6f",
    "ret",
    "6:",
    "pushad",
    "mov ebp, [{card}]",
    "mov ebx, [{next_in}]",
    "mov esi, ebx",
    "shl esi, 4",
    "add esi, {in_ring}",
    "mov edi, ebx",
    "shl edi, 8",
    "add edi, {buffers}",
    "cmp word ptr [edi + 12], 0x0008",
    "jne 8f",
    "cmp byte ptr [edi + 23], 17",
    "jne 8f",
    "cmp dword ptr [edi + 42], {magic}",
    "jne 8f",
    "mov eax, [edi]",
    "mov dx, [edi + 4]",
    "mov ecx, [edi + 6]",
    "mov [edi], ecx",
    "mov cx, [edi + 10]",
    "mov [edi + 4], cx",
    "mov [edi + 6], eax",
    "mov [edi + 10], dx",
    "mov eax, [edi + 26]",
    "mov ecx, [edi + 30]",
    "mov [edi + 26], ecx",
    "mov [edi + 30], eax",
    "rol dword ptr [edi + 34], 16",
    "inc dword ptr [{count}]",
    "mov eax, [{count}]",
    "mov [edi + 50], eax",
    // The whole frame in one descriptor, with its checksum; the card says when it is out.
    "mov ecx, [{next_out}]",
    "mov edx, ecx",
    "shl edx, 4",
    "add edx, {out_ring}",
    "mov [edx], edi",
    "mov dword ptr [edx + 4], 0",
    "movzx eax, word ptr [esi + 8]",
    "or eax, 0x0b000000",
    "mov [edx + 8], eax",
    "mov dword ptr [edx + 12], 0",
    "inc ecx",
    "and ecx, 255",
    "mov [{next_out}], ecx",
    "mov [ebp + 0x3818], ecx",
    "7:",
    "pause",
    "test byte ptr [edx + 12], 1",
    "jz 7b",
    // The buffer is the card's again.
    "8:",
    "mov dword ptr [esi + 8], 0",
    "mov dword ptr [esi + 12], 0",
    "mov [ebp + 0x2818], ebx",
    "inc ebx",
    "and ebx, 255",
    "mov [{next_in}], ebx",
    "popad",
    "ret",
    "kvmscope_driver_end:",
    ".code64",
    ".popsection",
    at = const DRIVER_AT,
    count = const COUNT_AT,
    card = const CARD_AT,
    next_in = const NEXT_IN_AT,
    next_out = const NEXT_OUT_AT,
    in_ring = const IN_RING,
    out_ring = const OUT_RING,
    buffers = const BUFFERS,
    magic = const MAGIC,
);

/// Its code, for [`DRIVER_AT`].
pub(crate) fn code() -> &'static [u8] {
    code!(kvmscope_driver..kvmscope_driver_end)
}
