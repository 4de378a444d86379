//! Which events are heard, and how.

use crate::emit::{Field, Hears};
use crate::event::over;
use crate::format::Described;

/// How an event is heard.
pub(super) struct Plan {
    pub name: &'static str,
    /// Without its fields, as a raw tracepoint: those are not skipped while another program runs on that CPU.
    pub raw: Option<Hears>,
    /// With the fields that the kernel describes.
    pub traced: Option<fn(&Described) -> Option<Hears>>,
    /// Without it there is nothing to tell.
    pub needed: bool,
}

/// The argument of a raw tracepoint.
pub(super) const fn argument(number: i16) -> Field {
    Field { offset: 8 * number, bytes: 8 }
}

/// Prototypes of `kvm_userspace_exit` and `kvm_fpu`: arch/x86/kvm/trace.h and include/trace/events/kvm.h, Linux 3.10 to 6.18.
pub(super) const PLANS: &[Plan] = &[
    Plan {
        name: "sched/sched_switch",
        raw: None,
        traced: Some(|event| {
            let [prev, state, next] = ["prev_pid", "prev_state", "next_pid"].map(|name| event.field(name));
            Some(Hears::Switch { prev: prev?, state: state?, comm: event.text("prev_comm"), next: next? })
        }),
        needed: true,
    },
    Plan {
        name: "sched/sched_waking",
        raw: None,
        traced: Some(|event| Some(Hears::Waking(event.field("pid")?))),
        needed: false,
    },
    Plan {
        name: "kvm/kvm_userspace_exit",
        raw: Some(Hears::UserspaceExit(argument(0), Some(argument(1)))),
        traced: Some(|event| Some(Hears::UserspaceExit(event.field("reason")?, event.field("errno")))),
        needed: true,
    },
    Plan {
        name: "kvm/kvm_fpu",
        raw: Some(Hears::Fpu(argument(0))),
        traced: Some(|event| Some(Hears::Fpu(event.field("load")?))),
        needed: false,
    },
    Plan {
        name: "kvm/kvm_exit",
        raw: None,
        traced: Some(|event| Some(Hears::Exit(event.field("exit_reason")?, event.field("isa")))),
        needed: false,
    },
    Plan {
        name: "kvm/kvm_entry",
        raw: None,
        traced: Some(|event| Some(Hears::Entry(event.field("vcpu_id")))),
        needed: false,
    },
];

/// Begins and ends of what the host does over its tasks (include/trace/events/irq.h, arch/x86/include/asm/trace/irq_vectors.h, Linux 6.12).
pub(super) const INTERRUPTS: &[(&str, u64)] = &[
    ("irq/irq_handler_entry", over::IRQ_BEGINS),
    ("irq/irq_handler_exit", over::IRQ_ENDS),
    ("irq_vectors/local_timer_entry", over::IRQ_BEGINS),
    ("irq_vectors/local_timer_exit", over::IRQ_ENDS),
    ("irq_vectors/reschedule_entry", over::IRQ_BEGINS),
    ("irq_vectors/reschedule_exit", over::IRQ_ENDS),
    ("irq_vectors/call_function_entry", over::IRQ_BEGINS),
    ("irq_vectors/call_function_exit", over::IRQ_ENDS),
    ("irq_vectors/call_function_single_entry", over::IRQ_BEGINS),
    ("irq_vectors/call_function_single_exit", over::IRQ_ENDS),
    ("irq_vectors/irq_work_entry", over::IRQ_BEGINS),
    ("irq_vectors/irq_work_exit", over::IRQ_ENDS),
    ("irq/softirq_entry", over::SOFTIRQ_BEGINS),
    ("irq/softirq_exit", over::SOFTIRQ_ENDS),
];

/// `nmi_handler(handler, delta_ns, handled)`: include/trace/events/nmi.h, Linux 6.12.
pub(super) const NMI: (&str, Hears) = ("nmi/nmi_handler", Hears::Nmi(argument(1)));
