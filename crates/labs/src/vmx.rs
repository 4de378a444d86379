//! What the hypervisors of ours that use VMX have in common: how they switch it on, and what they read and write at an exit.
//!
//! ```text
//! Rust  Flat::fields --table--> guest memory: controls (field, wanted, MSR), a zero; fields (field, value), all ones
//! L1    vmx_set_up!   r12: VMCS, then the VMXON area   r14: the table     9: where L1 goes when an instruction fails
//!       vmx_enter!    HOST_RSP
//!       vmx_why!      7 x VMREAD     r11: the reason   rsi: where L2 goes on
//!       vmx_go_on!    3 x VMWRITE, VMREAD, VMWRITE
//! ```
//! The accesses are those that KVM makes for an exit that it answers at once. What they change beside the results is rax,
//! rcx, rdx; the processor leaves all other registers as L2 had them.
//!
//! Encodings of fields and bits of controls: Intel SDM, volume 3, appendix B and chapter 25.

/// Switches VMX on, loads a VMCS, and fills it from the table at r14. Changes rax, rbx, rcx, rdx and r14.
macro_rules! vmx_set_up {
    () => {
        "    mov rax, cr4
    or eax, 0x2000 # VMXE
    mov cr4, rax
    mov ecx, 0x480 # IA32_VMX_BASIC: revision
    rdmsr
    and eax, 0x7fffffff
    mov [r12], eax
    mov [r12 + 0x1000], eax
    lea rbx, [r12 + 0x1000]
    push rbx
    vmxon [rsp]
    jbe 9f
    push r12
    vmclear [rsp]
    jbe 9f
    vmptrld [rsp]
    jbe 9f
2:  mov ecx, [r14 + 8] # the MSR that says which bits a control must and may have
    test ecx, ecx
    jz 3f
    rdmsr
    or eax, [r14 + 4]
    and eax, edx
    mov ebx, [r14]
    vmwrite rbx, rax
    add r14, 16
    jmp 2b
3:  add r14, 16
    mov rbx, [r14]
    mov rax, [r14 + 8]
    vmwrite rbx, rax
    cmp qword ptr [r14 + 16], -1
    jne 3b"
    };
}

/// What L1 writes before each entry.
macro_rules! vmx_enter {
    () => {
        "    mov eax, 0x6c14 # HOST_RSP
    vmwrite rax, rsp"
    };
}

/// Why L2 left: the reason in r11, and in rsi where it goes on behind the instruction that left.
macro_rules! vmx_why {
    () => {
        "    mov eax, 0x4402 # exit reason
    vmread r11, rax
    mov eax, 0x681e # RIP
    vmread rsi, rax
    mov eax, 0x440c # length of the instruction
    vmread rdx, rax
    add rsi, rdx
    mov eax, 0x6400 # exit qualification
    vmread rdx, rax
    mov eax, 0x4404 # interruption information
    vmread rdx, rax
    mov eax, 0x6820 # RFLAGS
    vmread rdx, rax
    mov eax, 0x4408 # IDT-vectoring information
    vmread rdx, rax"
    };
}

/// L2 goes on at rsi, without an interruption.
macro_rules! vmx_go_on {
    () => {
        "    mov eax, 0x681e # RIP
    vmwrite rax, rsi
    xor edx, edx
    mov eax, 0x4824 # interruptibility
    vmwrite rax, rdx
    mov eax, 0x4016 # VM-entry interruption information
    vmwrite rax, rdx
    mov eax, 0x4002 # primary controls, as they are
    vmread rdx, rax
    vmwrite rax, rdx"
    };
}

pub(crate) use {vmx_enter, vmx_go_on, vmx_set_up, vmx_why};

/// IA32_FEATURE_CONTROL, which firmware would have set: locked, VMXON allowed.
pub(crate) const FEATURE_CONTROL: (u32, u64) = (0x3a, 0x5);

/// L1 and L2 of one flat 64-bit machine, whose tables they share; code and data have selectors 0x08 and 0x10.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flat {
    /// Control registers, CR4 without VMXE.
    pub(crate) cr0: u64,
    /// See `cr0`.
    pub(crate) cr3: u64,
    /// See `cr0`.
    pub(crate) cr4: u64,
    /// Selector, base and limit of the task.
    pub task: (u64, u64, u64),
    /// Bases of GDT and IDT.
    pub tables: (u64, u64),
    /// Where L1 goes on after an exit.
    pub(crate) exit_rip: u64,
    /// Where L2 begins.
    pub rip: u64,
    /// L2's stack.
    pub(crate) rsp: u64,
}

const VMXE: u64 = 1 << 13;

impl Flat {
    /// Fields of the VMCS and their values.
    pub(crate) fn fields(&self) -> Vec<(u64, u64)> {
        let Self { cr0, cr3, task: (task, task_base, task_limit), tables: (gdt, idt), .. } = *self;
        let cr4 = self.cr4 | VMXE;
        let mut fields = vec![
            (0x2800, u64::MAX), // no linked VMCS
            (0x6004, cr0),      // what L2 reads as CR0 and CR4
            (0x6006, cr4),
            (0x6c00, cr0),
            (0x6c02, cr3),
            (0x6c04, cr4),
            (0x6c0a, task_base),
            (0x6c0c, gdt),
            (0x6c0e, idt),
            (0x6c16, self.exit_rip),
            (0x6800, cr0),
            (0x6802, cr3),
            (0x6804, cr4),
            (0x6814, task_base),
            (0x6816, gdt),
            (0x6818, idt),
            (0x4810, 0xffff), // limits of GDTR and IDTR
            (0x4812, 0xffff),
            (0x681a, 0x400), // DR7
            (0x681c, self.rsp),
            (0x681e, self.rip),
            (0x6820, 2), // RFLAGS
        ];
        // ES, CS, SS, DS, FS, GS, LDTR, TR as (selector, limit, access rights).
        let data = (0x10, 0xffff_ffff, 0xc093);
        let code = (0x08, 0xffff_ffff, 0xa09b);
        let segments = [data, code, data, data, data, data, (0, 0xffff, 0x10082), (task, task_limit, 0x8b)];
        for (at, (selector, limit, rights)) in (0..).step_by(2).zip(segments) {
            fields.extend([(0x800 + at, selector), (0x4800 + at, limit), (0x4814 + at, rights)]);
        }
        // The host's selectors, in the order ES CS SS DS FS GS TR.
        fields.extend((0xc00..).step_by(2).zip([0x10, 0x08, 0x10, 0x10, 0x10, 0x10, task]));
        fields
    }
}

/// The table that L1 copies into its VMCS; `primary` and `secondary` are bits of the processor-based controls.
pub(crate) fn table(primary: u32, secondary: u32, fields: &[(u64, u64)]) -> Vec<u8> {
    let activate = u32::from(secondary != 0) << 31;
    let secondary = (secondary != 0).then_some((0x401e, secondary, 0x48b));
    // Pin-based; processor-based; exit: 64-bit host; entry: 64-bit guest. Each with the MSR of its true capabilities.
    let controls =
        [(0x4000, 0, 0x48d), (0x4002, primary | activate, 0x48e), (0x400c, 1 << 9, 0x48f), (0x4012, 1 << 9, 0x490)];
    let controls = controls.into_iter().chain(secondary).chain([(0, 0, 0)]);
    let controls = controls.flat_map(|(field, wanted, msr): (u32, u32, u32)| [field, wanted, msr, 0]);
    let fields = fields.iter().flat_map(|(field, value)| [*field, *value]).chain([u64::MAX]);
    controls.flat_map(u32::to_le_bytes).chain(fields.flat_map(u64::to_le_bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const FLAT: Flat = Flat {
        cr0: 0x8005_0033,
        cr3: 0x3000,
        cr4: 0x20,
        task: (0x28, 0x2_0000, 0x67),
        tables: (0x1000, 0x2000),
        exit_rip: 0xc000,
        rip: 0x9000,
        rsp: 0x1_0000,
    };

    #[test]
    fn no_field_is_written_twice_and_both_sides_have_vmx_on() {
        let fields = FLAT.fields();
        let distinct: BTreeSet<_> = fields.iter().map(|(field, _)| field).collect();
        assert_eq!(distinct.len(), fields.len());
        for cr4 in [0x6804, 0x6c04] {
            assert!(fields.contains(&(cr4, 0x2020)), "{cr4:#x}: {fields:x?}");
        }
    }

    #[test]
    fn the_table_has_controls_up_to_a_zero_and_fields_up_to_all_ones() {
        let table = table(1 << 7, 0, &[(0x6820, 2)]);
        let word = |at: usize| u32::from_le_bytes(table[at..at + 4].try_into().unwrap());
        assert_eq!([word(16), word(20), word(24)], [0x4002, 1 << 7, 0x48e]);
        // L1 looks for an MSR in the third word, skips the entry without one, and writes fields until all ones.
        assert_eq!((4 * 16..).step_by(16).find(|at| word(at + 8) == 0), Some(64));
        assert_eq!((word(80), word(88)), (0x6820, 2));
        assert_eq!(table[96..], [0xff; 8]);
        let more = super::table(1 << 7, 1 << 3, &[]);
        let word = |at: usize| u32::from_le_bytes(more[at..at + 4].try_into().unwrap());
        assert_eq!([word(20), word(64), word(68), word(72)], [1 << 31 | 1 << 7, 0x401e, 1 << 3, 0x48b]);
    }
}
