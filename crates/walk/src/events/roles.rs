//! Which events matter, and what they mean to us.
//!
//! One table: a role, the names under which tracers record it, and the fields taken from it. Names change (a rename of
//! `kvm_nested_vmexit_inject` has been proposed, lore.kernel.org Z2M2VkDpAzC7bXmp@google.com); then a name is added
//! here and nowhere else. LTTng calls x86 events `kvm_x86_*` and `x86_irq_vectors_*`, and fields `tid` where the kernel
//! says `pid`. Where the fields of a row stand is in `fields.rs`.

mod fields;

pub use fields::{
    accept, apic, emulate, entry, exception, exit, hrtimer, inject, irq, msr, nested_entry, softirq, switch,
    tsc_offset, waking,
};
pub(crate) use fields::{inject_virq, set_irq};

use trace::{Event, Request, Wanted};

/// What an event means to the state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The guest is about to run.
    Entry,
    /// The guest has stopped.
    Exit,
    /// The exit just told came from a nested guest.
    NestedVmexit,
    /// The guest hypervisor gets the exit.
    Inject,
    /// The guest hypervisor asks to run its guest.
    NestedEntry,
    NestedEntryFailed,
    /// SVM: what the nested guest's hypervisor wants to intercept; stands behind a nested entry.
    NestedIntercepts,
    /// KVM_RUN returns to the VMM.
    UserspaceExit,
    /// The guest's vector registers go into the CPU, or out of it: KVM_RUN begins, or ends.
    Fpu,
    /// A CPU changes from one task to another.
    Switch,
    /// A task is made ready.
    Waking,
    /// A handler of a host interrupt begins.
    IrqEntry,
    /// A vector of the host's kernel that has no such handler begins; its row is its own, and names it.
    VectorEntry,
    IrqExit,
    SoftirqEntry,
    SoftirqExit,
    /// An NMI was served; the field tells how long it took.
    Nmi,
    /// Other host work in interrupt context: proof that no guest runs on that CPU.
    HostWork,
    VcpuWakeup,
    /// The size of the halt-polling window changed.
    HaltPollWindow,
    /// System-management mode begins or ends.
    Smm,
    /// An MSR access that KVM serves.
    Msr,
    /// A port access that KVM serves or hands on.
    Pio,
    /// A memory-mapped device access.
    Mmio,
    /// A memory-mapped write that an eventfd takes.
    FastMmio,
    /// A local-APIC register access.
    Apic,
    /// KVM does something for the guest of the running thread: proof that the thread runs a vCPU. Asked for only where no
    /// entry and no exit fires, see `facts::walk::witnesses`.
    Served,
    /// An instruction is emulated, or cannot be.
    Emulate,
    /// An exception enters the guest.
    InjectException,
    /// The address of the guest's memory that an exit is about.
    PageFault,
    /// A virtual interrupt enters the guest.
    InjectVirq,
    /// A local APIC accepts an interrupt.
    AcceptIrq,
    /// The processor will deliver an interrupt by itself: APICv, AVIC.
    PostIrq,
    /// A device's interrupt, or a line of one, is handed to KVM.
    SetIrq,
    /// KVM learns that the guest is done with an interrupt.
    Eoi,
    /// A timer of the host is set.
    HrtimerStart,
    /// A timer of the host has expired: host work too.
    HrtimerExpire,
    /// KVM has set the host's timer that stands for the guest's.
    TimerProgrammed,
    /// How late KVM enters the guest with its timer's interrupt, on the guest's counter.
    LapicExpire,
    /// KVM writes the offset of the guest's counter.
    TscOffset,
}

/// One row: role, names, fields.
pub struct Row {
    pub role: Role,
    /// Names under which they are recorded.
    pub names: &'static [&'static str],
    pub fields: &'static [&'static [&'static str]],
}

/// States that mean "ready to run": no bit of `TASK_REPORT` (include/linux/sched.h) is set. `R+` has only a bit above.
const TASK_REPORT: u64 = 0xff;

/// True if the task that a `sched_switch` takes off its CPU is still ready to run.
#[inline]
pub fn stays_ready(event: &Event<'_>) -> bool {
    match event.get(switch::PREV_STATE) {
        Some(state) => state & TASK_REPORT == 0,
        None => event.content(switch::PREV_STATE_TEXT).is_some_and(|text| text.starts_with(b"R")),
    }
}

/// __TASK_STOPPED and __TASK_TRACED (include/linux/sched.h, Linux 3.10 to 6.12).
const TASK_STOPS: u64 = 0xc;

/// True if a signal or a debugger stopped the task that a `sched_switch` takes off its CPU.
#[inline]
pub fn stops(event: &Event<'_>) -> bool {
    match event.get(switch::PREV_STATE) {
        Some(state) => state & TASK_STOPS != 0,
        None => event
            .content(switch::PREV_STATE_TEXT)
            .is_some_and(|text| text.first().is_some_and(|one| b"Tt".contains(one))),
    }
}

/// EXIT_DEAD and EXIT_ZOMBIE (include/linux/sched.h, Linux 3.10 to 6.12, which differ in which is which).
const TASK_ENDS: u64 = 0x30;

/// True if the task that a `sched_switch` takes off its CPU has ended.
#[inline]
pub fn ends(event: &Event<'_>) -> bool {
    match event.get(switch::PREV_STATE) {
        Some(state) => state & TASK_ENDS != 0,
        None => {
            event.content(switch::PREV_STATE_TEXT).is_some_and(|text| matches!(text.first(), Some(b'X' | b'Z' | b'x')))
        }
    }
}

/// All events that matter.
pub const ROWS: &[Row] = &[
    Row {
        role: Role::Exit,
        names: &["kvm_exit", "kvm_x86_exit"],
        // arm64 has the exception class, and in `ret` whether it was a trap at all.
        fields: &[
            &["exit_reason", "esr_ec"],
            &["guest_rip", "vcpu_pc"],
            &["isa", "ret"],
            &["info1"],
            &["vcpu_id"],
            &["exit_reason_name"],
            &["intr_info"],
        ],
    },
    Row { role: Role::Entry, names: &["kvm_entry", "kvm_x86_entry"], fields: &[&["vcpu_id"], &["rip", "vcpu_pc"]] },
    Row { role: Role::NestedVmexit, names: &["kvm_nested_vmexit", "kvm_x86_nested_vmexit"], fields: &[] },
    Row {
        role: Role::Inject,
        names: &["kvm_nested_vmexit_inject", "kvm_x86_nested_vmexit_inject"],
        fields: &[&["exit_code"], &["isa"], &["exit_code_name"]],
    },
    Row {
        role: Role::NestedEntry,
        names: &["kvm_nested_vmenter", "kvm_nested_vmrun", "kvm_x86_nested_vmrun", "kvm_x86_nested_vmenter"],
        fields: &[&["nested_rip"], &["vmcb"]],
    },
    Row {
        role: Role::NestedEntryFailed,
        names: &["kvm_nested_vmenter_failed", "kvm_x86_nested_vmenter_failed"],
        fields: &[],
    },
    Row { role: Role::NestedIntercepts, names: &["kvm_nested_intercepts", "kvm_x86_nested_intercepts"], fields: &[] },
    Row { role: Role::Fpu, names: &["kvm_fpu"], fields: &[&["load"]] },
    Row { role: Role::UserspaceExit, names: &["kvm_userspace_exit"], fields: &[&["reason"], &["errno"]] },
    Row {
        role: Role::Switch,
        names: &["sched_switch"],
        fields: &[
            &["prev_pid", "prev_tid"],
            &["prev_state"],
            &["next_pid", "next_tid"],
            &["next_comm"],
            &["prev_comm"],
            &["prev_state_text"],
        ],
    },
    Row { role: Role::Waking, names: &["sched_waking"], fields: &[&["pid", "tid"], &["target_cpu"]] },
    Row { role: Role::IrqEntry, names: &["irq_handler_entry"], fields: &[&["irq"], &["name"]] },
    vector(&["local_timer_entry", "x86_irq_vectors_local_timer_entry"]),
    vector(&["reschedule_entry", "x86_irq_vectors_reschedule_entry"]),
    vector(&["call_function_entry", "x86_irq_vectors_call_function_entry"]),
    vector(&["call_function_single_entry", "x86_irq_vectors_call_function_single_entry"]),
    vector(&["irq_work_entry", "x86_irq_vectors_irq_work_entry"]),
    vector(&["x86_platform_ipi_entry", "x86_irq_vectors_x86_platform_ipi_entry"]),
    vector(&["thermal_apic_entry", "x86_irq_vectors_thermal_apic_entry"]),
    vector(&["threshold_apic_entry", "x86_irq_vectors_threshold_apic_entry"]),
    vector(&["deferred_error_apic_entry", "x86_irq_vectors_deferred_error_apic_entry"]),
    vector(&["error_apic_entry", "x86_irq_vectors_error_apic_entry"]),
    vector(&["spurious_apic_entry", "x86_irq_vectors_spurious_apic_entry"]),
    Row {
        role: Role::IrqExit,
        names: &[
            "irq_handler_exit",
            "local_timer_exit",
            "reschedule_exit",
            "call_function_exit",
            "call_function_single_exit",
            "irq_work_exit",
            "x86_platform_ipi_exit",
            "thermal_apic_exit",
            "threshold_apic_exit",
            "deferred_error_apic_exit",
            "error_apic_exit",
            "spurious_apic_exit",
            "x86_irq_vectors_local_timer_exit",
            "x86_irq_vectors_reschedule_exit",
            "x86_irq_vectors_call_function_exit",
            "x86_irq_vectors_call_function_single_exit",
            "x86_irq_vectors_irq_work_exit",
            "x86_irq_vectors_x86_platform_ipi_exit",
            "x86_irq_vectors_thermal_apic_exit",
            "x86_irq_vectors_threshold_apic_exit",
            "x86_irq_vectors_deferred_error_apic_exit",
            "x86_irq_vectors_error_apic_exit",
            "x86_irq_vectors_spurious_apic_exit",
        ],
        fields: &[],
    },
    Row { role: Role::SoftirqEntry, names: &["softirq_entry", "irq_softirq_entry"], fields: &[&["vec"]] },
    Row { role: Role::SoftirqExit, names: &["softirq_exit", "irq_softirq_exit"], fields: &[] },
    Row { role: Role::Nmi, names: &["nmi_handler"], fields: &[&["delta_ns"]] },
    Row { role: Role::HostWork, names: &["softirq_raise", "irq_softirq_raise", "sched_wakeup"], fields: &[] },
    Row { role: Role::VcpuWakeup, names: &["kvm_vcpu_wakeup"], fields: &[&["ns"], &["waited"]] },
    Row { role: Role::HaltPollWindow, names: &["kvm_halt_poll_ns"], fields: &[&["new"]] },
    Row { role: Role::Smm, names: &["kvm_smm_transition", "kvm_enter_smm"], fields: &[] },
    Row { role: Role::Msr, names: &["kvm_msr", "kvm_x86_msr"], fields: &[&["ecx"], &["write"], &["data"]] },
    Row { role: Role::Pio, names: &["kvm_pio", "kvm_x86_pio"], fields: &[&["port"], &["rw"]] },
    Row { role: Role::Mmio, names: &["kvm_mmio"], fields: &[&["gpa"], &["type"]] },
    Row { role: Role::FastMmio, names: &["kvm_fast_mmio"], fields: &[&["gpa"]] },
    Row { role: Role::Apic, names: &["kvm_apic", "kvm_x86_apic"], fields: &[&["reg"], &["rw"], &["reg_name"]] },
    // LTTng's kvm_x86_apic_accept_irq is stale since 5.10 and is not asked for.
    Row { role: Role::AcceptIrq, names: &["kvm_apic_accept_irq"], fields: &[&["apicid"], &["vec"]] },
    Row {
        role: Role::InjectVirq,
        names: &["kvm_inj_virq", "kvm_x86_inj_virq"],
        fields: &[&["vector", "irq"], &["reinjected"]],
    },
    Row { role: Role::PostIrq, names: &["kvm_apicv_accept_irq"], fields: &[&["apicid"], &["vec"]] },
    Row { role: Role::SetIrq, names: &["kvm_set_irq", "kvm_msi_set_irq"], fields: &[&["level"], &["data"], &["vec"]] },
    // An end that the guest told by its memory alone is both, `kvm_eoi` and `kvm_pv_eoi`, at once.
    Row { role: Role::Eoi, names: EOI, fields: &[&["vector"]] },
    Row {
        role: Role::HrtimerStart,
        names: &["hrtimer_start", "timer_hrtimer_start"],
        fields: &[&["hrtimer"], &["expires"]],
    },
    Row {
        role: Role::HrtimerExpire,
        names: &["hrtimer_expire_entry", "timer_hrtimer_expire_entry"],
        fields: &[&["hrtimer"], &["now"]],
    },
    Row { role: Role::TimerProgrammed, names: &["kvm_hv_timer_state"], fields: &[] },
    Row { role: Role::LapicExpire, names: &["kvm_wait_lapic_expire"], fields: &[&["delta"]] },
    Row {
        role: Role::TscOffset,
        names: &["kvm_write_tsc_offset", "kvm_x86_write_tsc_offset"],
        fields: &[&["vcpu_id"], &["previous_tsc_offset"], &["next_tsc_offset"]],
    },
    // All of them are emitted in KVM_RUN (arch/x86/kvm/trace.h and its users, Linux 6.12).
    Row {
        role: Role::Served,
        names: &["kvm_cpuid", "kvm_hypercall", "kvm_cr", "kvm_x86_cpuid", "kvm_x86_hypercall", "kvm_x86_cr"],
        fields: &[],
    },
    // The same, and what went wrong.
    Row {
        role: Role::Emulate,
        names: &["kvm_emulate_insn", "kvm_x86_emulate_insn"],
        fields: &[&["failed"], &["rip"], &["insn_text"]],
    },
    Row {
        role: Role::InjectException,
        names: &["kvm_inj_exception", "kvm_x86_inj_exception"],
        fields: &[&["exception"], &["exception_name"]],
    },
    Row { role: Role::PageFault, names: &["kvm_page_fault", "kvm_x86_page_fault"], fields: &[&["fault_address"]] },
];

/// The events of ends of interrupts, and those of paravirtual ends alone.
const EOI: &[&str] = &["kvm_eoi", "kvm_x86_eoi"];
const PV_EOI: &[&str] = &["kvm_pv_eoi", "kvm_x86_pv_eoi"];

/// A vector of the kernel's own: what it is called is the first of its `names`, without what follows the last underscore.
const fn vector(names: &'static [&'static str]) -> Row {
    Row { role: Role::VectorEntry, names, fields: &[] }
}

/// The role of each row: a table small enough to stay at hand for every event.
pub const ROLES: [Role; ROWS.len()] = {
    let mut roles = [Role::HostWork; ROWS.len()];
    let mut row = 0;
    while row < ROWS.len() {
        roles[row] = ROWS[row].role;
        row += 1;
    }
    roles
};

/// The request for all rows but the ignored events; kind `i` has role `ROWS[i].role`.
///
/// Where a kernel has no `sched_waking` (before 4.3), `sched_wakeup` takes its place; where ends of interrupts were not
/// recorded, the paravirtual ones do.
pub fn request(ignore: &[String], has: impl Fn(&str) -> bool) -> Request {
    let no_waking = !has("sched_waking");
    let wanted = |row: &Row| {
        let mut names: Vec<String> = row.names.iter().map(|name| (*name).to_owned()).collect();
        if no_waking && row.role == Role::Waking {
            names.push("sched_wakeup".into());
        }
        if row.role == Role::Eoi && !EOI.iter().any(|name| has(name)) {
            names.extend(PV_EOI.iter().map(|name| (*name).to_owned()));
        }
        names.retain(|name| !ignore.contains(name));
        let stands_in = no_waking && row.role == Role::Waking;
        let known = if stands_in { &row.fields[..=waking::TID] } else { row.fields };
        let fields = known.iter().map(|names| names.iter().map(|name| (*name).to_owned()).collect()).collect();
        Wanted { names, fields }
    };
    Request { events: ROWS.iter().map(wanted).collect() }
}
