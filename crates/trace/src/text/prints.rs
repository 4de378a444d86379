//! How do kernels and trace-cmd print KVM's and the scheduler's events?
//!
//! Per event the patterns (see `body.rs`), those with more fields first. Sources: the `TP_printk` of
//! arch/x86/kvm/trace.h, include/trace/events/{kvm,sched,irq,timer}.h in Linux 3.10, 4.8, 5.2, 5.10, 6.1, 6.12, 6.18, and
//! plugins/plugin_{kvm,sched_switch}.c of libtraceevent 1.7, which trace-cmd prints by.
//!
//! Names stand beside the numbers they were printed for, because a text does not always tell the number:
//! | field | holds |
//! |---|---|
//! | `exit_reason_name`, `exit_code_name` | the exit reason as printed: `EPT_VIOLATION`, `EXIT_NPF`, `npf`, `HLT FAILED_VMENTRY` |
//! | `reason_name` | `KVM_EXIT_IO`; `reason` has its number, absent where KVM_RUN returned an `errno` |
//! | `prev_state_text` | `R`, `R+`, `S`, `D`, ..; `prev_state` is there only where the text is a number (`trace-cmd report -R`) |
//! | `reg_name`, `dm_name`, `tm_name`, `action` | an APIC register, a delivery mode, a trigger mode (`edge`, `level`), a softirq |
//! | `insn_text`, `flags_name` | the bytes of an instruction, and in which mode it was emulated |
//! | `exception_name` | `UD`, printed as `#UD`; `exception` is there only where the text is a number (`trace-cmd report -R`) |
//! | `guest_pgd_name` | what `guest_pgd` is: `guest_cr3`, `nested_cr3`, `nested_eptp` |
//! | `dst`, `vec` of `kvm_msi_set_irq` | what the kernel computes from `address` and `data` before it prints them |

/// Fields that hold a name, with the field that holds its number where the printer knew no name.
pub(super) const NUMBER_OF_NAME: &[(&str, &str)] = &[
    ("exit_reason_name", "exit_reason"),
    ("exit_code_name", "exit_code"),
    ("reg_name", "reg"),
    ("prev_state_text", "prev_state"),
];

/// True for a field that the kernel prints in hexadecimal without 0x; `trace-cmd report -R` follows it in that.
pub(super) fn is_bare_hex(event: &str, field: &str) -> bool {
    BARE_HEX.iter().any(|(name, fields)| *name == event && fields.contains(&field))
}

const BARE_HEX: &[(&str, &[&str])] = &[
    ("kvm_msr", &["ecx"]),
    ("kvm_cpuid", &["function", "index", "rax", "rbx", "rcx", "rdx"]),
    ("kvm_page_fault", &["fault_address", "error_code"]),
    (
        "kvm_nested_intercepts",
        &["cr_read", "cr_write", "exceptions", "intercept", "intercept1", "intercept2", "intercept3"],
    ),
    ("kvm_apic_accept_irq", &["apicid"]),
    ("kvm_apicv_accept_irq", &["apicid"]),
    ("kvm_eoi", &["apicid"]),
    ("kvm_pv_eoi", &["apicid"]),
    ("kvm_emulate_insn", &["rip", "csbase"]),
];

/// The group of an event that a text names without its group; empty if it is none of ours.
pub(super) fn system(event: &str) -> &'static str {
    PRINTS.iter().find(|(name, _, _)| *name == event).map_or("", |(_, system, _)| system)
}

/// The patterns of an event, to be tried in this order.
pub(super) fn patterns(event: &str) -> &'static [&'static str] {
    PRINTS.iter().find(|(name, _, _)| *name == event).map_or(&[], |(_, _, patterns)| patterns)
}

const APICID_VECTOR: &[&str] = &["apicid {apicid:x} vector {vector}"];

const ACCEPT_IRQ: &[&str] = &["apicid {apicid:x} vec {vec} ({dm_name:s}|{tm_name:s})"];

const WAKEUP: &[&str] = &[
    "comm={comm:s} pid={pid} prio={prio}< success={success}> target_cpu={target_cpu}",
    "{comm:s}:{pid} [{prio}]< success={success}> CPU:{target_cpu}",
    "{comm:s}:{pid} [{prio}]",
];

const SOFTIRQ: &[&str] = &["vec={vec} [action={action:s}]"];

/// Event, group, patterns.
const PRINTS: &[(&str, &str, &[&str])] = &[
    (
        "kvm_exit",
        "kvm",
        &[
            "<vcpu {vcpu_id} >reason {exit_reason_name:s} rip {guest_rip:x} info1 {info1:x} info2 {info2:x}< intr_info {intr_info:x} error_code {error_code:x}>< requests {requests:x}>",
            "<[vcpu {vcpu_id}] ><vcpu {vcpu_id} >reason {exit_reason_name:s} rip {guest_rip:x}< info {info1:x} {info2:x}>",
            // Shortened, as in commit messages.
            "<vcpu {vcpu_id} >reason {exit_reason_name:s} info1 {info1:x}< info2 {info2:x}>",
            "<vcpu {vcpu_id} >reason {exit_reason_name:s} info {info1:x} {info2:x}",
            "<vcpu {vcpu_id} >reason {exit_reason_name:s}",
            // arch/arm64/kvm/trace_arm.h, Linux 6.12: the class of a trap, or what else it was.
            "TRAP: HSR_EC: {esr_ec:x} ({exit_reason_name:s}), PC: {vcpu_pc:x}",
            "{exit_reason_name:s}: HSR_EC: {esr_ec:x} ({esr_ec_name:s}), PC: {vcpu_pc:x}",
        ],
    ),
    (
        "kvm_entry",
        "kvm",
        &[
            "<[>vcpu {vcpu_id}<]><,> rip {rip:x}< intr_info {intr_info:x} error_code {error_code:x}>{immediate_exit?[immediate exit]}",
            "<[>vcpu {vcpu_id}",
            "PC: {vcpu_pc:x}",
        ],
    ),
    ("kvm_fpu", "kvm", &["load={load}", "{load=unload|load}"]),
    (
        "kvm_nested_vmexit",
        "kvm",
        &[
            "vcpu {vcpu_id} reason {exit_reason_name:s} rip {guest_rip:x} info1 {info1:x} info2 {info2:x} intr_info {intr_info:x} error_code {error_code:x}< requests {requests:x}>",
            "<vcpu {vcpu_id} >reason {exit_reason_name:s} rip {guest_rip:x}",
            "<vcpu {vcpu_id} >reason {exit_reason_name:s} info1 {info1:x}< info2 {info2:x}>",
            "rip: {rip:x} reason: {exit_code_name:s} ext_inf1: {exit_info1:x} ext_inf2: {exit_info2:x} ext_int: {exit_int_info:x} ext_int_err: {exit_int_info_err:x}",
            "rip {rip:x} reason {exit_code_name:s} info1 {exit_info1:x} info2 {exit_info2:x} int_info {exit_int_info:x} int_info_err {exit_int_info_err:x}",
        ],
    ),
    (
        "kvm_nested_vmexit_inject",
        "kvm",
        &[
            "reason: {exit_code_name:s} ext_inf1: {exit_info1:x} ext_inf2: {exit_info2:x} ext_int: {exit_int_info:x} ext_int_err: {exit_int_info_err:x}",
            "reason {exit_code_name:s} info1 {exit_info1:x} info2 {exit_info2:x} int_info {exit_int_info:x} int_info_err {exit_int_info_err:x}",
            "reason: {exit_code_name:s} ext_inf1: {exit_info1:x}",
            "reason: {exit_code_name:s}",
            "reason {exit_code_name:s}",
        ],
    ),
    (
        "kvm_nested_vmenter",
        "kvm",
        &[
            "rip: {rip:x} vmcs: {vmcb:x} nested_rip: {nested_rip:x} int_ctl: {int_ctl:x} event_inj: {event_inj:x} nested_ept={tdp_enabled=n|y} {guest_pgd_name:s}: {guest_pgd:x}",
            "rip: {rip:x} vmcb: {vmcb:x} nested_rip: {nested_rip:x} int_ctl: {int_ctl:x} event_inj: {event_inj:x} nested_npt={tdp_enabled=n|y} {guest_pgd_name:s}: {guest_pgd:x}",
        ],
    ),
    (
        "kvm_nested_vmrun",
        "kvm",
        &[
            "rip: {rip:x} vmcb: {vmcb:x} nrip: {nested_rip:x} int_ctl: {int_ctl:x} event_inj: {event_inj:x} npt: {npt=off|on}",
        ],
    ),
    ("kvm_nested_vmenter_failed", "kvm", &["msg={msg:s} err={err}", "{msg:s}"]),
    (
        "kvm_nested_intercepts",
        "kvm",
        &[
            "cr_read: {cr_read:x} cr_write: {cr_write:x} excp: {exceptions:x} intercepts: {intercept1:x} {intercept2:x} {intercept3:x}",
            "cr_read: {cr_read:x} cr_write: {cr_write:x} excp: {exceptions:x} intercept: {intercept:x}",
        ],
    ),
    ("kvm_nested_intr_vmexit", "kvm", &["rip: {rip:x}"]),
    (
        "kvm_userspace_exit",
        "kvm",
        &["reason restart ({errno:-})", "reason error ({errno:-})", "reason {reason_name:s} ({reason})"],
    ),
    ("kvm_msr", "kvm", &["msr_{write=read|write} {ecx:x} = {data:x}{exception? (#GP)}"]),
    ("kvm_pio", "kvm", &["pio_{rw=read|write} at {port:x} size {size} count {count}< val {val:x}>"]),
    ("kvm_mmio", "kvm", &["mmio {type=unsatisfied-read|read|write} len {len} gpa {gpa:x}< val {val:x}>"]),
    ("kvm_fast_mmio", "kvm", &["fast mmio at gpa {gpa:x}"]),
    (
        "kvm_page_fault",
        "kvm",
        &["<vcpu {vcpu_id} ><rip {guest_rip:x} >address {fault_address:x} error_code {error_code:x}"],
    ),
    ("kvm_apic", "kvm", &["apic_{rw=read|write} {reg_name:w} = {val:x}"]),
    (
        "kvm_cpuid",
        "kvm",
        &[
            "func {function:x}< idx {index:x}> rax {rax:x} rbx {rbx:x} rcx {rcx:x} rdx {rdx:x}, cpuid entry {found=not found|found}{used_max_basic?, used max basic}",
            "func {function:x} rax {rax:x} rbx {rbx:x} rcx {rcx:x} rdx {rdx:x}",
        ],
    ),
    (
        "kvm_emulate_insn",
        "kvm",
        &[
            "{csbase:x}:{rip:x}: {insn_text:s} ({flags_name:s}){failed? failed}",
            // libtraceevent's plug-in.
            "{csbase:x}:{rip:x}: {insn_text:s} FAIL{failed?}",
            "{csbase:x}:{rip:x}:",
        ],
    ),
    ("kvm_inj_exception", "kvm", &["#{exception_name:w}"]),
    ("kvm_hypercall", "kvm", &["nr {nr:x} a0 {a0:x} a1 {a1:x} a2 {a2:x} a3 {a3:x}"]),
    ("kvm_inj_virq", "kvm", &["{soft=IRQ|Soft/INTn} {vector:x}{reinjected? [reinjected]}", "irq {irq}"]),
    ("kvm_apic_accept_irq", "kvm", ACCEPT_IRQ),
    ("kvm_apicv_accept_irq", "kvm", ACCEPT_IRQ),
    ("kvm_eoi", "kvm", APICID_VECTOR),
    ("kvm_pv_eoi", "kvm", APICID_VECTOR),
    ("kvm_vcpu_wakeup", "kvm", &["{waited=poll|wait} time {ns} ns<, polling {valid=invalid|valid}>"]),
    ("kvm_halt_poll_ns", "kvm", &["vcpu {vcpu_id}: halt_poll_ns {new} ({grow=shrink|grow} {old})"]),
    ("kvm_write_tsc_offset", "kvm", &["vcpu={vcpu_id} prev={previous_tsc_offset} next={next_tsc_offset}"]),
    ("kvm_set_irq", "kvm", &["gsi {gsi} level {level} source {irq_source_id}"]),
    ("kvm_msi_set_irq", "kvm", &["dst {dst:x} vec {vec} ({dm_name:s}|"]),
    ("kvm_wait_lapic_expire", "kvm", &["vcpu {vcpu_id}: delta {delta} ("]),
    ("kvm_hv_timer_state", "kvm", &["vcpu_id {vcpu_id:x} hv_timer {hv_timer_in_use:x}"]),
    (
        "sched_switch",
        "sched",
        &[
            "prev_comm={prev_comm:s} prev_pid={prev_pid} prev_prio={prev_prio} prev_state={prev_state_text:w} ==> next_comm={next_comm:s} next_pid={next_pid} next_prio={next_prio}",
            "{prev_comm:s}:{prev_pid} [{prev_prio}] {prev_state_text:w} ==> {next_comm:s}:{next_pid} [{next_prio}]",
        ],
    ),
    ("sched_waking", "sched", WAKEUP),
    ("sched_wakeup", "sched", WAKEUP),
    ("sched_wakeup_new", "sched", WAKEUP),
    ("sched_migrate_task", "sched", &["comm={comm:s} pid={pid} prio={prio} orig_cpu={orig_cpu} dest_cpu={dest_cpu}"]),
    ("irq_handler_entry", "irq", &["irq={irq} name={name:s}"]),
    ("irq_handler_exit", "irq", &["irq={irq} ret={ret=unhandled|handled}"]),
    ("softirq_entry", "irq", SOFTIRQ),
    ("softirq_exit", "irq", SOFTIRQ),
    ("softirq_raise", "irq", SOFTIRQ),
    (
        "hrtimer_start",
        "timer",
        &["hrtimer={hrtimer:x} function={function:w} expires={expires} softexpires={softexpires} mode={mode=ABS|REL}"],
    ),
    ("hrtimer_expire_entry", "timer", &["hrtimer={hrtimer:x} function={function:w} now={now}"]),
];
