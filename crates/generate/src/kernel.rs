//! What does the KVM of a given kernel say about what it does?
//!
//! Field layouts are those of arch/x86/kvm/trace.h and include/trace/events/{kvm,sched,irq,irq_vectors,timer}.h in 3.10,
//! 4.8, 5.2, 5.10, 6.1, 6.12; those of 6.18 were read from tracefs. `immediate_exit` is upstream 6.9 and was
//! backported to 6.1, so the generation 6.1 has it.
//!
//! Decision: 3.10 describes `kvm_nested_vmexit` and `kvm_nested_vmexit_inject` for VMX as well, as RHEL 7 backported
//! them.

use trace::write::{EventSchema, Schema};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vendor {
    Vmx,
    /// AMD.
    Svm,
}

impl Vendor {
    /// The number that KVM's events carry in `isa` (KVM_ISA_VMX, KVM_ISA_SVM in arch/x86/kvm/trace.h).
    pub fn isa(self) -> u64 {
        match self {
            Vendor::Vmx => 1,
            Vendor::Svm => 2,
        }
    }
}

/// Kernels between which the events changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// 3.10 as in RHEL 7.
    V3_10,
    /// 4.8.
    V4_8,
    /// 5.2.
    V5_2,
    /// 5.10.
    V5_10,
    /// 6.1, stable releases.
    V6_1,
    /// 6.12.
    V6_12,
    /// 6.18.
    V6_18,
}

impl Generation {
    /// All of them, oldest first.
    pub const ALL: [Generation; 7] = [
        Generation::V3_10,
        Generation::V4_8,
        Generation::V5_2,
        Generation::V5_10,
        Generation::V6_1,
        Generation::V6_12,
        Generation::V6_18,
    ];

    /// The kernel called `name`: `3.10`, `6.12`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|generation| {
            let rest = generation.release().strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with('.'))
        })
    }

    /// What `uname -r` says.
    pub fn release(self) -> &'static str {
        match self {
            Generation::V3_10 => "3.10.0-1160.el7.x86_64",
            Generation::V4_8 => "4.8.17",
            Generation::V5_2 => "5.2.21",
            Generation::V5_10 => "5.10.13",
            Generation::V6_1 => "6.1.192",
            Generation::V6_12 => "6.12.117",
            Generation::V6_18 => "6.18.44",
        }
    }

    /// True if the host's own interrupts, softirqs and task switches can be recorded before `kvm_exit`, because the
    /// tracepoint sits behind the point where interrupts are on again.
    pub(crate) fn exit_is_late(self, vendor: Vendor) -> bool {
        match vendor {
            Vendor::Vmx => matches!(self, Generation::V4_8 | Generation::V5_2),
            Vendor::Svm => self < Generation::V6_12,
        }
    }

    /// How a re-entry in the fast path shows.
    pub fn fastpath(self, vendor: Vendor) -> Fastpath {
        match (vendor, self) {
            (Vendor::Vmx, Generation::V5_10) => Fastpath::ExitExit,
            (Vendor::Svm, Generation::V5_10 | Generation::V6_1) => Fastpath::EntryEntry,
            _ => Fastpath::Paired,
        }
    }

    /// True if `kvm_nested_vmenter` exists, for both vendors; before, SVM has `kvm_nested_vmrun` and VMX nothing.
    pub(crate) fn has_vmenter(self) -> bool {
        self >= Generation::V6_1
    }

    /// True if `kvm_nested_vmenter_failed` exists.
    pub(crate) fn tells_refusals(self) -> bool {
        self >= Generation::V5_10
    }

    /// True if `kvm_entry` has the guest's instruction pointer.
    pub fn entry_has_rip(self) -> bool {
        self >= Generation::V5_10
    }

    /// True if `kvm_vcpu_wakeup` exists, and with it halt polling.
    pub(crate) fn has_wakeup(self) -> bool {
        self >= Generation::V4_8
    }

    /// The bit of `prev_state` that says "switched out while running, without asking": `R+`.
    pub(crate) fn preempted_bit(self) -> u64 {
        match self {
            Generation::V3_10 => 1024,
            Generation::V4_8 => 4096,
            _ => 256,
        }
    }

    /// The events that a recording on this kernel describes.
    pub fn schema(self, vendor: Vendor) -> Schema {
        let mut events = kvm_events(self, vendor);
        events.extend(host_events(self));
        Schema { events }
    }
}

/// How a re-entry in the fast path shows (brief `flow`, 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fastpath {
    /// As any other: entry, exit, entry.
    Paired,
    /// `kvm_exit`, and the next `kvm_exit` without an entry between them.
    ExitExit,
    /// `kvm_entry`, and the next `kvm_entry` without an exit between them.
    EntryEntry,
}

fn kvm_events(generation: Generation, vendor: Vendor) -> Vec<EventSchema> {
    let old = generation < Generation::V5_10;
    let new = generation >= Generation::V6_1;
    let latest = generation >= Generation::V6_18;
    let entry = match (old, new, latest) {
        (true, ..) => "unsigned int vcpu_id",
        (_, _, true) => "unsigned int vcpu_id; unsigned long rip; bool immediate_exit; u32 intr_info; u32 error_code",
        (_, true, _) => "unsigned int vcpu_id; unsigned long rip; bool immediate_exit",
        _ => "unsigned int vcpu_id; unsigned long rip",
    };
    const EXIT_OLD: &str = "unsigned int exit_reason; unsigned long guest_rip; u32 isa; u64 info1; u64 info2";
    let exit = match (old, latest) {
        (true, _) => EXIT_OLD.to_owned(),
        (_, false) => format!("{EXIT_OLD}; u32 intr_info; u32 error_code; unsigned int vcpu_id"),
        (_, true) => format!("{EXIT_OLD}; u32 intr_info; u32 error_code; unsigned int vcpu_id; u64 requests"),
    };
    const INJECT: &str = "__u32 exit_code; __u64 exit_info1; __u64 exit_info2; __u32 exit_int_info; \
                          __u32 exit_int_info_err; __u32 isa";
    let nested_vmexit = if old { format!("__u64 rip; {INJECT}") } else { exit.clone() };
    let intercepts = if old {
        "__u16 cr_read:x; __u16 cr_write:x; __u32 exceptions:x; __u64 intercept:x"
    } else {
        "__u16 cr_read:x; __u16 cr_write:x; __u32 exceptions:x; __u32 intercept1:x; __u32 intercept2:x; \
         __u32 intercept3:x"
    };
    let page_fault = if new {
        "unsigned int vcpu_id; unsigned long guest_rip; u64 fault_address; u64 error_code"
    } else {
        "unsigned long fault_address:x; unsigned int error_code:x"
    };
    let cpuid = match generation {
        Generation::V3_10 | Generation::V4_8 => {
            "unsigned int function:x; unsigned long rax:x; unsigned long rbx:x; unsigned long rcx:x; unsigned long rdx:x"
        }
        Generation::V5_2 => {
            "unsigned int function:x; unsigned long rax:x; unsigned long rbx:x; unsigned long rcx:x; unsigned long rdx:x; \
             bool found"
        }
        _ => {
            "unsigned int function:x; unsigned int index:x; unsigned long rax:x; unsigned long rbx:x; unsigned long rcx:x; \
             unsigned long rdx:x; bool found; bool used_max_basic"
        }
    };
    let inj_virq = if new { "unsigned int vector; bool soft; bool reinjected" } else { "unsigned int irq" };
    let kvm = |name: &str, fields: &str| EventSchema::declared("kvm", name, fields);
    let mut events = vec![
        kvm("kvm_entry", entry),
        kvm("kvm_exit", &exit),
        kvm("kvm_nested_vmexit", &nested_vmexit),
        kvm("kvm_nested_vmexit_inject", INJECT),
        kvm("kvm_userspace_exit", "__u32 reason; int errno"),
        kvm("kvm_pio", "unsigned int rw; unsigned int port; unsigned int size; unsigned int count; unsigned int val"),
        kvm("kvm_mmio", "u32 type; u32 len; u64 gpa; u64 val"),
        kvm("kvm_msr", "unsigned write; u32 ecx:x; u64 data; u8 exception"),
        kvm("kvm_cpuid", cpuid),
        kvm(
            "kvm_hypercall",
            "unsigned long nr; unsigned long a0; unsigned long a1; unsigned long a2; unsigned long a3",
        ),
        kvm("kvm_page_fault", page_fault),
        kvm("kvm_apic", "unsigned int rw; unsigned int reg; u64 val"),
        kvm("kvm_eoi", "__u32 apicid:x; int vector"),
        kvm("kvm_inj_virq", inj_virq),
        kvm("kvm_apic_accept_irq", "__u32 apicid:x; __u16 dm; __u16 tm; __u8 vec"),
        kvm("kvm_apicv_accept_irq", "__u32 apicid:x; __u16 dm; __u16 tm; __u8 vec"),
        kvm("kvm_msi_set_irq", "u64 address; u64 data"),
        kvm("kvm_set_irq", "unsigned int gsi; int level; int irq_source_id"),
    ];
    if generation.has_wakeup() {
        events.push(kvm("kvm_vcpu_wakeup", "__u64 ns; bool waited; bool valid"));
        events.push(kvm("kvm_hv_timer_state", "unsigned int vcpu_id; unsigned int hv_timer_in_use"));
    }
    if generation.tells_refusals() {
        events.push(kvm("kvm_nested_vmenter_failed", "__data_loc char[] msg; u32 err"));
    }
    if generation >= Generation::V5_10 {
        events.push(kvm("kvm_wait_lapic_expire", "unsigned int vcpu_id; s64 delta"));
    }
    if new {
        events.push(kvm(
            "kvm_nested_vmenter",
            "__u64 rip; __u64 vmcb; __u64 nested_rip; __u32 int_ctl; __u32 event_inj; bool tdp_enabled; \
             __u64 guest_pgd; __u32 isa",
        ));
    } else if vendor == Vendor::Svm {
        let fields = "__u64 rip; __u64 vmcb; __u64 nested_rip; __u32 int_ctl; __u32 event_inj; bool npt";
        events.push(kvm("kvm_nested_vmrun", fields));
    }
    if vendor == Vendor::Svm {
        events.push(kvm("kvm_nested_intercepts", intercepts));
        events.push(kvm("kvm_nested_intr_vmexit", "__u64 rip"));
    }
    events
}

fn host_events(generation: Generation) -> Vec<EventSchema> {
    let mut switch = EventSchema::declared(
        "sched",
        "sched_switch",
        "char prev_comm[16]; pid_t prev_pid; int prev_prio; long prev_state; char next_comm[16]; pid_t next_pid; \
         int next_prio",
    );
    let bit = generation.preempted_bit();
    switch.print_fmt = Some(format!(
        "\"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d\", \
         REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & ({bit:#x} - 1)) ? \
         __print_flags(REC->prev_state & ({bit:#x} - 1), \"|\", {{ 0x1, \"S\" }}, {{ 0x2, \"D\" }}, \
         {{ 0x4, \"T\" }}, {{ 0x8, \"t\" }}, {{ 0x10, \"X\" }}, {{ 0x20, \"Z\" }}, {{ 0x40, \"P\" }}, \
         {{ 0x80, \"I\" }}) : \"R\", REC->prev_state & {bit:#x} ? \"+\" : \"\", REC->next_comm, REC->next_pid, \
         REC->next_prio"
    ));
    let event = EventSchema::declared;
    vec![
        switch,
        event("sched", "sched_waking", "char comm[16]; pid_t pid; int prio; int target_cpu"),
        event("irq", "irq_handler_entry", "int irq; __data_loc char[] name"),
        event("irq", "irq_handler_exit", "int irq; int ret"),
        event("irq", "softirq_entry", "unsigned int vec"),
        event("irq", "softirq_exit", "unsigned int vec"),
        event("irq_vectors", "local_timer_entry", "int vector"),
        event("irq_vectors", "local_timer_exit", "int vector"),
        event("timer", "hrtimer_start", "void * hrtimer; void * function; s64 expires; s64 softexpires; int mode"),
        event("timer", "hrtimer_expire_entry", "void * hrtimer; s64 now; void * function"),
    ]
}
