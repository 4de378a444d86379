//! What LTTng's kernel tracer makes of the same events (brief `flow`, 2.7).
//!
//! x86 events are called `kvm_x86_*`, `pid` fields are `tid`, softirqs are `irq_softirq_*`. The probes copy the kernel's
//! prototypes by hand, so on newer kernels some fields hold something else: they are filled here with what was measured
//! on 6.1, or follows from the prototypes on 5.10. Several events do not exist.

use crate::kernel::Generation;
use crate::story::Story;
use trace::write::{EventSchema, Record, Schema, Value};

/// Events that LTTng has no probe for.
const MISSING: [&str; 6] = [
    "kvm_nested_vmenter",
    "kvm_nested_vmenter_failed",
    "kvm_vcpu_wakeup",
    "kvm_wait_lapic_expire",
    "kvm_hv_timer_state",
    "kvm_apicv_accept_irq",
];

/// Generic events keep their names.
const GENERIC: [&str; 4] = ["kvm_userspace_exit", "kvm_mmio", "kvm_set_irq", "kvm_msi_set_irq"];

/// Where the kernel keeps `struct kvm_vcpu` of a thread.
fn vcpu_pointer(tid: i32) -> u64 {
    0xffff_8881_0400_0000 + 0x8000 * tid as u64
}

/// The story's events as LTTng records them; records of events it does not know are gone.
pub(crate) fn translate(story: &Story) -> (Schema, Vec<Record>) {
    let mut schema = Schema::default();
    let mut places = Vec::new();
    for event in &story.schema.events {
        let known = !MISSING.contains(&event.name.as_str());
        places.push(known.then_some(schema.events.len()));
        if known {
            schema.events.push(translate_event(event));
        }
    }
    let translate = |record: &Record| {
        let place = places.get(record.event).copied().flatten()?;
        let old = &story.schema.events[record.event];
        let values = values(story.generation, old, &schema.events[place], record);
        Some(Record { event: place, values, ..record.clone() })
    };
    let records = story.records.iter().filter_map(translate).collect();
    (schema, records)
}

/// The name and the fields that the probe declares.
fn translate_event(event: &EventSchema) -> EventSchema {
    let name = match (event.system.as_str(), event.name.as_str()) {
        ("kvm", name) if !GENERIC.contains(&name) => name.replacen("kvm_", "kvm_x86_", 1),
        ("irq_vectors", name) => format!("x86_irq_vectors_{name}"),
        (_, name) if name.starts_with("softirq_") => format!("irq_{name}"),
        (_, name) if name.starts_with("hrtimer_") => format!("timer_{name}"),
        (_, name) => name.to_owned(),
    };
    let probe = match event.name.as_str() {
        "kvm_entry" => Some("unsigned int vcpu_id"),
        "kvm_nested_vmexit" => Some(
            "__u64 rip; __u32 exit_code; __u64 exit_info1; __u64 exit_info2; __u32 exit_int_info; \
             __u32 exit_int_info_err; __u32 isa",
        ),
        "kvm_page_fault" => Some("unsigned long fault_address; unsigned int error_code"),
        "kvm_cpuid" => {
            Some("unsigned int function; unsigned long rax; unsigned long rbx; unsigned long rcx; unsigned long rdx")
        }
        "kvm_inj_virq" => Some("unsigned int irq"),
        "kvm_nested_intercepts" => Some("__u16 cr_read; __u16 cr_write; __u32 exceptions; __u64 intercept"),
        _ => None,
    };
    let mut fields = match probe {
        Some(declarations) => EventSchema::declared(&event.system, &name, declarations).fields,
        None => event.fields.clone(),
    };
    for field in &mut fields {
        field.name = match field.name.as_str() {
            "pid" => "tid".into(),
            "prev_pid" => "prev_tid".into(),
            "next_pid" => "next_tid".into(),
            name => name.to_owned(),
        };
    }
    EventSchema { name, fields, ..event.clone() }
}

/// Values of the translated fields, stale where the prototype changed under the probe.
fn values(generation: Generation, old: &EventSchema, new: &EventSchema, record: &Record) -> Vec<Value> {
    let of = |name: &str| {
        let at = old.fields.iter().position(|field| field.name == name);
        at.map_or(Value::Integer(0), |at| record.value(at).clone())
    };
    let pointer = vcpu_pointer(record.tid);
    let changed = generation >= Generation::V5_10;
    let newest = generation >= Generation::V6_1;
    match old.name.as_str() {
        "kvm_entry" if changed => vec![(pointer & 0xffff_ffff).into()],
        "kvm_nested_vmexit" if newest => {
            vec![pointer.into(), of("isa"), 0x77.into(), 0x88.into(), 0x99.into(), 0xaa.into(), 0xbb.into()]
        }
        "kvm_nested_vmexit" if changed => {
            vec![of("exit_reason"), (pointer & 0xffff_ffff).into(), of("isa"), 0.into(), 0.into(), 0.into(), 0.into()]
        }
        "kvm_page_fault" if newest => vec![pointer.into(), (of("fault_address").integer() & 0xffff_ffff).into()],
        "kvm_cpuid" if changed => vec![of("function"), of("index"), of("rax"), of("rbx"), of("rcx")],
        "kvm_inj_virq" if newest => vec![of("vector")],
        "kvm_nested_intercepts" if changed => {
            vec![of("cr_read"), of("cr_write"), of("exceptions"), of("intercept1")]
        }
        _ => {
            let original = |name: &str| match name {
                "tid" => "pid".to_owned(),
                "prev_tid" | "next_tid" => name.replace("tid", "pid"),
                name => name.to_owned(),
            };
            new.fields.iter().map(|field| of(&original(&field.name))).collect()
        }
    }
}
