//! What the kernel prints of its own events: the bodies of `trace_pipe`.
//!
//! Print formats of arch/x86/kvm/trace.h in three generations (before 5.10, from 5.10, 6.18), of
//! include/trace/events/kvm.h and of the scheduler and interrupt events. They were written down from those sources; no
//! program here prints them from a generated file, so they are held against nothing but the recordings of such kernels.

use crate::kernel::{Generation, Vendor};
use crate::reason::{svm, vmx};
use trace::write::{Record, Schema};

/// Renders records of one kernel.
pub(crate) struct Printer {
    pub generation: Generation,
    pub schema: Schema,
}

/// One record with its fields by name.
struct Fields<'a> {
    schema: &'a Schema,
    record: &'a Record,
}

impl Fields<'_> {
    fn at(&self, name: &str) -> Option<usize> {
        self.schema.events[self.record.event].fields.iter().position(|field| field.name == name)
    }

    fn has(&self, name: &str) -> bool {
        self.at(name).is_some()
    }

    fn int(&self, name: &str) -> u64 {
        self.at(name).map_or(0, |at| self.record.value(at).integer())
    }

    fn text(&self, name: &str) -> String {
        self.at(name)
            .map_or_else(String::new, |at| String::from_utf8_lossy(self.record.value(at).content()).into_owned())
    }

    fn yes_no(&self, name: &str) -> &'static str {
        if self.int(name) != 0 { "y" } else { "n" }
    }
}

impl Printer {
    /// The text behind the event's name; `None` for a record whose event is not in the schema.
    pub(crate) fn body(&self, record: &Record) -> Option<String> {
        let name = self.schema.events.get(record.event)?.name.as_str();
        let fields = Fields { schema: &self.schema, record };
        Some(self.nested(name, &fields).or_else(|| self.kvm(name, &fields)).unwrap_or_else(|| self.host(name, &fields)))
    }

    fn nested(&self, name: &str, f: &Fields<'_>) -> Option<String> {
        Some(match name {
            "kvm_nested_vmexit" if !f.has("vcpu_id") => format!("rip: {:#018x} {}", f.int("rip"), legacy_exit(f)),
            "kvm_nested_vmexit_inject" => legacy_exit(f),
            "kvm_nested_vmenter" => format!(
                "rip: {:#018x} {}: {:#018x} nested_rip: {:#018x} int_ctl: {:#010x} event_inj: {:#010x} nested_{}={} {}: \
                 {:#018x}",
                f.int("rip"),
                if f.int("isa") == 1 { "vmcs" } else { "vmcb" },
                f.int("vmcb"),
                f.int("nested_rip"),
                f.int("int_ctl"),
                f.int("event_inj"),
                if f.int("isa") == 1 { "ept" } else { "npt" },
                f.yes_no("tdp_enabled"),
                if f.int("isa") == 1 { "nested_eptp" } else { "nested_cr3" },
                f.int("guest_pgd"),
            ),
            "kvm_nested_vmrun" => format!(
                "rip: {:#018x} vmcb: {:#018x} nrip: {:#018x} int_ctl: {:#010x} event_inj: {:#010x} npt: {}",
                f.int("rip"),
                f.int("vmcb"),
                f.int("nested_rip"),
                f.int("int_ctl"),
                f.int("event_inj"),
                if f.int("npt") != 0 { "on" } else { "off" },
            ),
            "kvm_nested_vmenter_failed" if f.int("err") == 0 => f.text("msg"),
            "kvm_nested_vmenter_failed" => format!("{}VMENTRY_INVALID_CONTROL_FIELD", f.text("msg")),
            "kvm_nested_intercepts" => {
                let rest = if f.has("intercept") {
                    format!("{:016x}", f.int("intercept"))
                } else {
                    format!("{:08x} {:08x} {:08x}", f.int("intercept1"), f.int("intercept2"), f.int("intercept3"))
                };
                format!(
                    "cr_read: {:04x} cr_write: {:04x} excp: {:08x} intercepts: {rest}",
                    f.int("cr_read"),
                    f.int("cr_write"),
                    f.int("exceptions")
                )
            }
            "kvm_nested_intr_vmexit" => format!("rip: {:#018x}", f.int("rip")),
            _ => return None,
        })
    }

    fn kvm(&self, name: &str, f: &Fields<'_>) -> Option<String> {
        Some(match name {
            "kvm_entry" => {
                let mut text = format!("vcpu {}", f.int("vcpu_id"));
                if f.has("rip") {
                    text.push_str(&format!(", rip {:#x}", f.int("rip")));
                }
                if f.has("intr_info") {
                    text.push_str(&format!(" intr_info {:#010x} error_code {:#010x}", f.int("intr_info"), 0));
                }
                text
            }
            "kvm_exit" | "kvm_nested_vmexit" => exit(f),
            "kvm_userspace_exit" => {
                let (reason, error) = (f.int("reason"), f.int("errno") as i64);
                let name = match (error, reason) {
                    (-4, _) => "restart",
                    (..0, _) => "error",
                    (_, 2) => "KVM_EXIT_IO",
                    (_, 6) => "KVM_EXIT_MMIO",
                    _ => "KVM_EXIT_UNKNOWN",
                };
                format!("reason {name} ({})", if error < 0 { error.unsigned_abs() } else { reason })
            }
            "kvm_pio" => format!(
                "pio_{} at {:#x} size {} count {} val {:#x} ",
                if f.int("rw") != 0 { "write" } else { "read" },
                f.int("port"),
                f.int("size"),
                f.int("count"),
                f.int("val")
            ),
            "kvm_mmio" => {
                let kind = ["unsatisfied-read", "read", "write"][f.int("type").min(2) as usize];
                format!("mmio {kind} len {} gpa {:#x} val {:#x}", f.int("len"), f.int("gpa"), f.int("val"))
            }
            "kvm_msr" => {
                let access = if f.int("write") != 0 { "write" } else { "read" };
                format!("msr_{access} {:x} = {:#x}", f.int("ecx"), f.int("data"))
            }
            "kvm_hypercall" => {
                let [nr, a0, a1, a2, a3] = ["nr", "a0", "a1", "a2", "a3"].map(|register| f.int(register));
                format!("nr {nr:#x} a0 {a0:#x} a1 {a1:#x} a2 {a2:#x} a3 {a3:#x}")
            }
            "kvm_cpuid" => {
                let index = if f.has("index") { format!(" idx {:x}", f.int("index")) } else { String::new() };
                let found = if f.has("found") { ", cpuid entry found" } else { "" };
                let [a, b, c, d] = ["rax", "rbx", "rcx", "rdx"].map(|register| f.int(register));
                format!("func {:x}{index} rax {a:x} rbx {b:x} rcx {c:x} rdx {d:x}{found}", f.int("function"))
            }
            "kvm_page_fault" if f.has("vcpu_id") => format!(
                "vcpu {} rip {:#x} address {:#018x} error_code {:#x}",
                f.int("vcpu_id"),
                f.int("guest_rip"),
                f.int("fault_address"),
                f.int("error_code")
            ),
            "kvm_page_fault" => format!("address {:x} error_code {:x}", f.int("fault_address"), f.int("error_code")),
            "kvm_apic" => {
                let register = match f.int("reg") {
                    0x380 => "APIC_TMICT",
                    0x300 => "APIC_ICR",
                    0x320 => "APIC_LVTT",
                    _ => "APIC_EOI",
                };
                let access = if f.int("rw") != 0 { "write" } else { "read" };
                format!("apic_{access} {register} = {:#x}", f.int("val"))
            }
            "kvm_eoi" => format!("apicid {:x} vector {}", f.int("apicid"), f.int("vector")),
            "kvm_inj_virq" if f.has("vector") => {
                let again = if f.int("reinjected") != 0 { " [reinjected]" } else { "" };
                format!("IRQ {:#x}{again}", f.int("vector"))
            }
            "kvm_inj_virq" => format!("irq {}", f.int("irq")),
            "kvm_set_irq" => {
                format!("gsi {} level {} source {}", f.int("gsi"), f.int("level"), f.int("irq_source_id"))
            }
            "kvm_msi_set_irq" => {
                format!("dst {:x} vec {} (Fixed|physical|edge)", f.int("address") >> 12 & 0xff, f.int("data") & 0xff)
            }
            "kvm_hv_timer_state" => format!("vcpu_id {:x} hv_timer {:x}", f.int("vcpu_id"), f.int("hv_timer_in_use")),
            "kvm_apic_accept_irq" | "kvm_apicv_accept_irq" => {
                format!("apicid {:x} vec {} (Fixed|edge)", f.int("apicid"), f.int("vec"))
            }
            "kvm_vcpu_wakeup" => format!(
                "{} time {} ns, polling {}",
                if f.int("waited") != 0 { "wait" } else { "poll" },
                f.int("ns"),
                if f.int("valid") != 0 { "valid" } else { "invalid" }
            ),
            "kvm_wait_lapic_expire" => format!("vcpu {}: delta {} (late)", f.int("vcpu_id"), f.int("delta")),
            _ => return None,
        })
    }

    fn host(&self, name: &str, f: &Fields<'_>) -> String {
        match name {
            "sched_switch" => format!(
                "prev_comm={} prev_pid={} prev_prio={} prev_state={} ==> next_comm={} next_pid={} next_prio={}",
                f.text("prev_comm"),
                f.int("prev_pid"),
                f.int("prev_prio"),
                self.task_state(f.int("prev_state")),
                f.text("next_comm"),
                f.int("next_pid"),
                f.int("next_prio")
            ),
            "sched_waking" => format!(
                "comm={} pid={} prio={} target_cpu={:03}",
                f.text("comm"),
                f.int("pid"),
                f.int("prio"),
                f.int("target_cpu")
            ),
            "irq_handler_entry" => format!("irq={} name={}", f.int("irq"), f.text("name")),
            "irq_handler_exit" => format!("irq={} ret=handled", f.int("irq")),
            "softirq_entry" | "softirq_exit" => format!("vec={} [action=NET_RX]", f.int("vec")),
            "hrtimer_start" => format!(
                "hrtimer={:016x} function=apic_timer_fn expires={} softexpires={} mode=ABS|PINNED|HARD",
                f.int("hrtimer"),
                f.int("expires"),
                f.int("softexpires")
            ),
            "hrtimer_expire_entry" => {
                format!("hrtimer={:016x} function=apic_timer_fn now={}", f.int("hrtimer"), f.int("now"))
            }
            _ => format!("vector={}", f.int("vector")),
        }
    }

    fn task_state(&self, state: u64) -> String {
        let bit = self.generation.preempted_bit();
        let letter = match state & (bit - 1) {
            0 => "R",
            1 => "S",
            2 => "D",
            _ => "I",
        };
        format!("{letter}{}", if state & bit != 0 { "+" } else { "" })
    }
}

/// `kvm_exit`, and `kvm_nested_vmexit` since it has the same layout.
fn exit(f: &Fields<'_>) -> String {
    let reason = reason_name(f.int("isa"), f.int("exit_reason") as u32);
    let (rip, info1, info2) = (f.int("guest_rip"), f.int("info1"), f.int("info2"));
    if !f.has("vcpu_id") {
        return format!("reason {reason} rip {rip:#x} info {info1:x} {info2:x}");
    }
    let requests = if f.has("requests") { format!(" requests {:#018x}", f.int("requests")) } else { String::new() };
    format!(
        "vcpu {} reason {reason} rip {rip:#x} info1 {info1:#018x} info2 {info2:#018x} intr_info {:#010x} error_code \
         {:#010x}{requests}",
        f.int("vcpu_id"),
        f.int("intr_info"),
        f.int("error_code"),
    )
}

/// `kvm_nested_vmexit_inject`, and the end of the old `kvm_nested_vmexit`.
fn legacy_exit(f: &Fields<'_>) -> String {
    format!(
        "reason: {} ext_inf1: {:#018x} ext_inf2: {:#018x} ext_int: {:#010x} ext_int_err: {:#010x}",
        reason_name(f.int("isa"), f.int("exit_code") as u32),
        f.int("exit_info1"),
        f.int("exit_info2"),
        f.int("exit_int_info"),
        f.int("exit_int_info_err")
    )
}

/// The kernel's name of a reason: VMX_EXIT_REASONS and SVM_EXIT_REASONS in arch/x86/include/uapi/asm.
pub fn reason_name(isa: u64, reason: u32) -> String {
    let names: &[(u32, &str)] = if isa == Vendor::Vmx.isa() { VMX_NAMES } else { SVM_NAMES };
    let basic = if isa == Vendor::Vmx.isa() { reason & 0xffff } else { reason };
    let name = names.iter().find(|(number, _)| *number == basic);
    let name = name.map_or_else(|| format!("{basic:#x}"), |(_, name)| (*name).to_owned());
    let failed = isa == Vendor::Vmx.isa() && reason & vmx::FAILED_ENTRY != 0;
    if failed { format!("{name} FAILED_VMENTRY") } else { name }
}

const VMX_NAMES: &[(u32, &str)] = &[
    (vmx::EXTERNAL_INTERRUPT, "EXTERNAL_INTERRUPT"),
    (vmx::INTERRUPT_WINDOW, "INTERRUPT_WINDOW"),
    (vmx::CPUID, "CPUID"),
    (vmx::HLT, "HLT"),
    (vmx::VMCALL, "VMCALL"),
    (vmx::VMLAUNCH, "VMLAUNCH"),
    (vmx::VMPTRLD, "VMPTRLD"),
    (vmx::VMREAD, "VMREAD"),
    (vmx::VMRESUME, "VMRESUME"),
    (vmx::VMWRITE, "VMWRITE"),
    (vmx::CR_ACCESS, "CR_ACCESS"),
    (vmx::IO_INSTRUCTION, "IO_INSTRUCTION"),
    (vmx::MSR_READ, "MSR_READ"),
    (vmx::MSR_WRITE, "MSR_WRITE"),
    (vmx::INVALID_STATE, "INVALID_STATE"),
    (vmx::APIC_ACCESS, "APIC_ACCESS"),
    (vmx::EOI_INDUCED, "EOI_INDUCED"),
    (vmx::EPT_VIOLATION, "EPT_VIOLATION"),
    (vmx::EPT_MISCONFIG, "EPT_MISCONFIG"),
    (vmx::INVEPT, "INVEPT"),
    (vmx::PREEMPTION_TIMER, "PREEMPTION_TIMER"),
    (vmx::INVVPID, "INVVPID"),
    (vmx::APIC_WRITE, "APIC_WRITE"),
];

const SVM_NAMES: &[(u32, &str)] = &[
    (svm::INTR, "interrupt"),
    (svm::VINTR, "vintr"),
    (svm::CPUID, "cpuid"),
    (svm::HLT, "hlt"),
    (svm::IOIO, "io"),
    (svm::MSR, "msr"),
    (svm::VMRUN, "vmrun"),
    (svm::VMMCALL, "hypercall"),
    (svm::VMLOAD, "vmload"),
    (svm::VMSAVE, "vmsave"),
    (svm::STGI, "stgi"),
    (svm::CLGI, "clgi"),
    (svm::NPF, "npf"),
    (svm::AVIC_NOACCEL, "avic_unaccelerated_access"),
    (svm::INVALID, "invalid_guest_state"),
];
