//! The pasted texts of `fixtures/text`: three generations of kernels, three tools, known to the last field.

use kvmscope_trace::batch::LOST;
use kvmscope_trace::{Batch, FieldKind, Reading, Request, Scratch, Source, Trace, text};
use std::path::Path;

/// Each event as one line: `time cpu tid system:name field=value ..`, numbers in hexadecimal.
fn told(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/text").join(name);
    let trace = text::open(&path).unwrap();
    let request = Request::everything(trace.facts());
    let reading = Reading { request: &request, fitted: None };
    let Source::Pieces(pieces) = trace.lanes(&reading).remove(0).source else { panic!("text comes in pieces") };
    assert_eq!(pieces.count(), 1);
    let mut batch = Batch::default();
    batch.clear(trace.facts().event_types.len());
    pieces.decode(0, &mut Scratch::default(), &mut batch);
    assert!(batch.problems.is_empty(), "{:?}", batch.problems);
    (0..batch.len()).map(|at| tell(&*trace, &batch, at)).collect()
}

fn tell(trace: &dyn Trace, batch: &Batch, at: usize) -> String {
    let values = &batch.values[batch.rows[at].start as usize..];
    let head = format!("{} {} {}", batch.rows[at].time_ns, batch.rows[at].cpu, batch.rows[at].tid);
    if batch.rows[at].kind == LOST {
        return format!("{head} lost {}", values[1]);
    }
    let event = &trace.facts().event_types[usize::from(batch.rows[at].kind)];
    let present = event.fields.iter().enumerate().filter(|(index, _)| values[0] >> index & 1 == 1);
    let shown = present.map(|(index, field)| match field.kind {
        FieldKind::Text => format!(" {}={:?}", field.name, String::from_utf8_lossy(batch.content(values[1 + index]))),
        _ => format!(" {}={:#x}", field.name, values[1 + index]),
    });
    format!("{head} {}:{}{}", event.system, event.name, shown.collect::<String>())
}

#[test]
fn linux_3_10_on_vmx() {
    let told = told("trace_pipe-vmx-3.10.txt");
    assert_eq!(told.len(), 20);
    assert_eq!(told[0], "81223004511000 2 4711 kvm:kvm_entry vcpu_id=0x1");
    assert_eq!(
        told[1],
        "81223004519000 2 4711 kvm:kvm_exit exit_reason_name=\"EXTERNAL_INTERRUPT\" guest_rip=0xffffffff81058e96 \
         info1=0x0 info2=0x800000ef"
    );
    assert_eq!(
        told[2],
        "81223004523000 2 4711 sched:sched_wakeup comm=\"vhost-4702\" pid=0x1261 prio=0x78 success=0x1 target_cpu=0x3"
    );
    assert!(told[4].starts_with("81223004533000 3 4705 sched:sched_switch prev_comm=\"vhost-4702\""));
    assert_eq!(told[6], "81223004604000 2 4711 kvm:kvm_page_fault fault_address=0xfd5ff004 error_code=0x182");
    assert_eq!(told[7], "81223004611000 2 4711 kvm:kvm_mmio type=0x2 len=0x4 gpa=0xfd5ff004 val=0x1");
    assert_eq!(told[8], "81223004640000 2 -1 lost 137");
    assert_eq!(told[9], "81223004640000 2 4711 kvm:kvm_userspace_exit reason_name=\"KVM_EXIT_MMIO\" reason=0x6");
    assert_eq!(told[10], "81223004688000 2 4711 kvm:kvm_inj_virq irq=0x51");
    assert_eq!(told[13], "81223004703000 2 4711 kvm:kvm_apic rw=0x1 reg_name=\"APIC_EOI\" val=0x0");
    assert_eq!(told[15], "81223004705000 2 4711 kvm:kvm_msr write=0x1 ecx=0x80b data=0x0");
    assert_eq!(
        told[18],
        "81223004733000 2 4711 kvm:kvm_cpuid function=0x1 rax=0x206c1 rbx=0x2020800 rcx=0x82b82203 rdx=0xf8bfbff"
    );
}

#[test]
fn linux_5_4_on_svm_by_perf_script() {
    let told = told("perf-script-svm-5.4.txt");
    assert_eq!(told.len(), 22);
    assert_eq!(
        told[1],
        "9120551004000 7 20899 kvm:kvm_nested_vmexit rip=0x401a30 exit_code_name=\"npf\" exit_info1=0x100000014 \
         exit_info2=0x7f3000 exit_int_info=0x0 exit_int_info_err=0x0"
    );
    assert_eq!(
        told[7],
        "9120551044000 7 20899 kvm:kvm_nested_vmrun rip=0xffffffffa03f1e2c vmcb=0x10a40a000 nested_rip=0x401a30 \
         int_ctl=0x1000200 event_inj=0x0 npt=0x1"
    );
    assert_eq!(
        told[8],
        "9120551045000 7 20899 kvm:kvm_nested_intercepts cr_read=0x10 cr_write=0x110 exceptions=0x60042 \
         intercept=0x2ebd4c8027"
    );
    assert_eq!(
        told[18],
        "9120553010000 7 0 sched:sched_switch prev_comm=\"swapper/7\" prev_pid=0x0 prev_prio=0x78 \
         prev_state_text=\"R\" next_comm=\"CPU 1/KVM\" next_pid=0x51a3 next_prio=0x78"
    );
    assert_eq!(told[19], "9120553015000 7 20899 kvm:kvm_vcpu_wakeup waited=0x1 ns=0x1c2bc5 valid=0x1");
    assert_eq!(told[20], "9120553018000 7 20899 kvm:kvm_halt_poll_ns vcpu_id=0x1 new=0x4e20 grow=0x1 old=0x2710");
}

#[test]
fn linux_6_18_on_vmx() {
    let told = told("ftrace-vmx-6.18.txt");
    assert_eq!(told.len(), 14);
    assert_eq!(
        told[5],
        "512100013000 4 3102 kvm:kvm_nested_vmenter rip=0x10537 vmcb=0x21000 nested_rip=0x30004 int_ctl=0x0 \
         event_inj=0x0 tdp_enabled=0x1 guest_pgd_name=\"nested_eptp\" guest_pgd=0x2000"
    );
    assert_eq!(
        told[6],
        "512100016000 4 3102 kvm:kvm_entry vcpu_id=0x0 rip=0x30004 intr_info=0x80000031 error_code=0x0 \
         immediate_exit=0x1"
    );
    assert_eq!(
        told[7],
        "512100019000 4 3102 kvm:kvm_exit vcpu_id=0x0 exit_reason_name=\"INVALID_STATE FAILED_VMENTRY\" \
         guest_rip=0x30004 info1=0x0 info2=0x0 intr_info=0x0 error_code=0x0 requests=0x4"
    );
    assert_eq!(told[8], "512100022000 4 3102 kvm:kvm_nested_vmenter_failed msg=\"invalid guest state\"");
    assert_eq!(told[9], "512100030000 4 3102 kvm:kvm_userspace_exit errno=0xfffffffffffffffc");
    assert_eq!(
        told[10],
        "512100041000 4 3102 sched:sched_switch prev_comm=\"CPU 0/KVM\" prev_pid=0xc1e prev_prio=0x78 \
         prev_state_text=\"R+\" next_comm=\"stress-ng: cpu [run]\" next_pid=0x115c next_prio=0x78"
    );
    assert_eq!(told[11], "512100900000 4 4444 irq:irq_handler_entry irq=0x29 name=\"nvme0q5\"");
    assert_eq!(told[12], "512100903000 4 4444 irq:irq_handler_exit irq=0x29 ret=0x1");
}

#[test]
fn recordings_of_linux_6_1() {
    let svm = told("trace-cmd-svm-6.1.txt");
    assert_eq!(svm.len(), 61);
    let nested = svm.iter().filter(|event| event.contains("kvm_nested_vmexit ")).count();
    let in_l2 = |event: &&String| event.contains("kvm:kvm_exit") && event.contains("guest_rip=0x3000");
    assert_eq!(svm.iter().filter(in_l2).count(), nested, "each exit of L2 is told twice");
    let raw = told("trace-cmd-raw-vmx-6.1.txt");
    assert_eq!(raw.len(), 61);
    let exits: Vec<_> = raw.iter().filter(|event| event.contains("kvm:kvm_exit")).collect();
    assert!(!exits.is_empty() && exits.iter().all(|exit| exit.contains("exit_reason=0x") && exit.contains("isa=0x1")));
}
