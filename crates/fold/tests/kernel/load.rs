//! Threads that run guests, sleep, and have rivals.

use lab::guest::{Guest, open, programs};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// The longest that a guest here may take, whoever else has the CPU.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs the port loop in a guest of its own, in a thread of its own.
pub(crate) fn guests() {
    let kvm = open(Path::new("/dev/kvm")).expect("KVM");
    for name in ["port-out", "hlt", "mmio-read"] {
        let program = programs::named(name).expect("a program");
        let outcome = Guest::new(&kvm).expect("a guest").run(program, 300, LIMIT).expect("a run");
        assert_eq!(outcome.rounds, 300);
    }
}

/// Threads that run a guest and sleep in between.
pub(crate) fn sleeps() {
    let kvm = open(Path::new("/dev/kvm")).expect("KVM");
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(1));
        let program = programs::named("port-in").expect("a program");
        Guest::new(&kvm).expect("a guest").run(program, 20, LIMIT).expect("a run");
    }
    let mut guest = Own::new();
    for _ in 0..20 {
        guest.runs(10);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A guest whose vCPU is run by whoever asks.
struct Own {
    vcpu: kvm_ioctls::VcpuFd,
    _vm: kvm_ioctls::VmFd,
    _memory: lab::guest::memory::Memory,
}

impl Own {
    fn new() -> Self {
        let kvm = open(Path::new("/dev/kvm")).expect("KVM");
        let vm = kvm.create_vm().expect("a VM");
        let mut memory = lab::guest::memory::Memory::new(programs::MEMORY_BYTES).expect("memory");
        let program = programs::named("port-out").expect("a program");
        memory.load(programs::CODE as usize, &program.code(u32::MAX)).expect("code");
        let region = kvm_bindings::kvm_userspace_memory_region {
            memory_size: memory.bytes() as u64,
            userspace_addr: memory.address(),
            ..Default::default()
        };
        // SAFETY: the region is exactly the mapping, which is dropped behind the VM and its vCPU.
        unsafe { vm.set_user_memory_region(region) }.expect("memory for the VM");
        let vcpu = vm.create_vcpu(0).expect("a vCPU");
        let mut registers = vcpu.get_sregs().expect("registers");
        (registers.cs.base, registers.cs.selector) = (0, 0);
        vcpu.set_sregs(&registers).expect("registers");
        let start = kvm_bindings::kvm_regs { rip: programs::CODE, rflags: 2, ..Default::default() };
        vcpu.set_regs(&start).expect("registers");
        Self { vcpu, _vm: vm, _memory: memory }
    }

    fn runs(&mut self, times: u32) {
        for _ in 0..times {
            self.vcpu.run().expect("KVM_RUN");
        }
    }
}

fn tid() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// How long a thread has waited for a CPU, by the scheduler.
fn waited_ns(tid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/schedstat")).expect("schedstat");
    text.split_whitespace().nth(1).and_then(|ns| ns.parse().ok()).expect("a number")
}

/// Whether a thread sleeps.
fn sleeps_now(tid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).is_ok_and(|stat| stat.contains(") S "))
}

/// Runs a guest on `cpu`, in a thread of its own, until others have taken some time, and looks while it sleeps: the thread, and how long it has
/// waited since its first event. `None` if it waited in the moment in which that was.
pub(crate) fn measured<T>(cpu: usize, look: impl FnOnce(u32, u64) -> T) -> Option<T> {
    let (tell, told) = channel();
    let (wake, woken) = channel::<()>();
    let run = move || {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu);
        rustix::thread::sched_setaffinity(None, &set).expect("a CPU");
        let mut guest = Own::new();
        let before = waited_ns(tid());
        guest.runs(1);
        let is_whole = waited_ns(tid()) == before;
        while is_whole && waited_ns(tid()) - before < 1_000_000_000 {
            guest.runs(4_000);
            std::thread::sleep(Duration::from_micros(100));
        }
        tell.send(is_whole.then_some((tid(), before))).expect("somebody listens");
        let _ = woken.recv();
    };
    let thread = std::thread::spawn(run);
    let looked = told.recv().expect("an answer").map(|(tid, before)| {
        testing::wait_for("it sleeps", || sleeps_now(tid));
        look(tid, waited_ns(tid) - before)
    });
    drop(wake);
    thread.join().expect("no panic");
    looked
}

/// A thread that sleeps until it is dropped.
pub(crate) struct Sleeper {
    pub(crate) tid: u32,
    /// Its end wakes the thread.
    _wake: Sender<()>,
}

impl Sleeper {
    pub(crate) fn new() -> Self {
        let (wake, woken) = channel::<()>();
        let (tell, told) = channel();
        std::thread::spawn(move || {
            tell.send(tid()).expect("somebody listens");
            let _ = woken.recv();
        });
        let tid = told.recv().expect("its id");
        testing::wait_for("it sleeps", || sleeps_now(tid));
        Self { tid, _wake: wake }
    }
}
