//! The stories that can be told.
//!
//! Each scenario is one thing that happens on real hosts, small enough to check by hand, with a seed that varies times
//! and choices. [`random`] mixes them. Their durations are made up, in the order of magnitude of real ones; nothing may be
//! concluded from them but that an analysis finds them again.

mod apic;
mod deep;
mod fleet;
mod halts;
mod hypercalls;
mod interrupts;
mod losses;
mod mixed;
mod nested;
mod plain;
mod refused;
mod registers;
mod sharing;
mod steps;

pub use fleet::OfFleet;
pub(crate) use fleet::of_fleet;
pub use mixed::{random, wide};
pub use nested::{CIENA_CHAIN, SVM_CHAIN};

use crate::host::Host;
use crate::kernel::{Generation, Vendor};
use crate::random::Random;
use crate::story::Story;

#[derive(Clone, Copy)]
pub struct Scenario {
    /// Its name on command lines.
    pub name: &'static str,
    /// What happens, in one sentence.
    pub about: &'static str,
    /// The vendors it can happen with; the first is the one it is told with if nobody asks.
    pub vendors: &'static [Vendor],
    /// The oldest kernel it can happen on.
    pub since: Generation,
    /// The kernel it is told with if nobody asks.
    pub usual: Generation,
    cpus: u32,
    act: fn(&mut Host, &mut Random),
}

const BOTH: &[Vendor] = &[Vendor::Vmx, Vendor::Svm];
const VMX: &[Vendor] = &[Vendor::Vmx];
const SVM: &[Vendor] = &[Vendor::Svm];

/// All scenarios, simplest first.
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "plain",
        about: "one guest without guests of its own: CPUID, MSR, page faults, ports and MMIO through the VMM",
        vendors: BOTH,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 2,
        act: plain::act,
    },
    Scenario {
        name: "interrupts",
        about: "host interrupts, timers and softirqs inside the guest, inside handling and inside the VMM",
        vendors: BOTH,
        since: Generation::V3_10,
        usual: Generation::V4_8,
        cpus: 2,
        act: plain::interrupts,
    },
    Scenario {
        name: "vmx-no-shadowing",
        about: "nested VMX without VMCS shadowing: every L2 exit costs exactly 45 exits of L1, mostly VMREAD and VMWRITE",
        vendors: VMX,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 3,
        act: nested::no_shadowing,
    },
    Scenario {
        name: "vmx-shadowing",
        about: "the same work with VMCS shadowing: 3 exits of L1 per L2 exit",
        vendors: VMX,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 3,
        act: nested::shadowing,
    },
    Scenario {
        name: "vmx-apic-timer",
        about: "nested VMX where most exits of L1 are APIC_WRITE to TMICT: its own timer, programmed for every L2 exit",
        vendors: VMX,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 3,
        act: nested::apic_timer,
    },
    Scenario {
        name: "svm-no-vls-vgif",
        about: "nested SVM without virtual VMLOAD/VMSAVE and vGIF: at least 7 exits of L1 per L2 exit",
        vendors: SVM,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 3,
        act: nested::svm,
    },
    Scenario {
        name: "vmx-refused",
        about: "nested VMX entries refused early, for the guest's state, by VM-Fail and as a failed entry",
        vendors: VMX,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 2,
        act: refused::vmx,
    },
    Scenario {
        name: "svm-refused",
        about: "nested SVM entries refused by the cached control block check and by the late one",
        vendors: SVM,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 2,
        act: refused::svm,
    },
    Scenario {
        name: "l3",
        about: "a guest of a guest of a guest: exits of L3 and of L2 as a hypervisor, all handed to L1",
        vendors: BOTH,
        since: Generation::V6_1,
        usual: Generation::V6_12,
        cpus: 2,
        act: deep::act,
    },
    Scenario {
        name: "apic",
        about: "local APIC exits by register: APIC_ACCESS, EOI_INDUCED, APIC_WRITE, x2APIC MSRs; AVIC on SVM",
        vendors: BOTH,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 2,
        act: apic::act,
    },
    Scenario {
        name: "fastpath",
        about: "MSR writes re-entered in the fast path: exit, exit on VMX 5.10; entry, entry on SVM before 6.5",
        vendors: BOTH,
        since: Generation::V5_10,
        usual: Generation::V5_10,
        cpus: 2,
        act: apic::fastpath,
    },
    Scenario {
        name: "halts",
        about: "HLT: polling that succeeds, polling then sleeping, wake-ups by interrupts and by threads, wake delay",
        vendors: BOTH,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 4,
        act: halts::act,
    },
    Scenario {
        name: "hogs",
        about: "pre-emption by named tasks, yielded and forced, in the guest and in the VMM; disk waits; moves",
        vendors: BOTH,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 4,
        act: sharing::hogs,
    },
    Scenario {
        name: "two-vms",
        about: "two VMs with two vCPUs each and their vhost threads",
        vendors: BOTH,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 8,
        act: sharing::two_vms,
    },
    Scenario {
        name: "l2-moves",
        about: "one L2 vCPU that moves between the two vCPUs of L1: its chains are closed elsewhere",
        vendors: BOTH,
        since: Generation::V6_1,
        usual: Generation::V6_12,
        cpus: 4,
        act: deep::moves,
    },
    Scenario {
        name: "chain-with-halt",
        about: "chains inside which L1 halts, and one that the end of the recording cuts",
        vendors: BOTH,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 3,
        act: halts::in_chains,
    },
    Scenario {
        name: "hypercalls",
        about: "an L2 that calls its hypervisor from several places, by VMCALL or VMMCALL, and an L1 that calls L0",
        vendors: BOTH,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 3,
        act: hypercalls::act,
    },
    Scenario {
        name: "hypercall-loop",
        about: "the same from one place: nothing but the time tells one call from the other",
        vendors: BOTH,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 3,
        act: hypercalls::act_in_a_loop,
    },
    Scenario {
        name: "registers",
        about: "a guest that writes TSC deadlines and reads and writes other MSRs, some of them again and again alike",
        vendors: BOTH,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 2,
        act: registers::act,
    },
    Scenario {
        name: "registers-of-two",
        about: "the same in two VMs with two vCPUs each",
        vendors: BOTH,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 5,
        act: registers::act_in_two_vms,
    },
    Scenario {
        name: "interrupt-paths",
        about: "virtual interrupts to a guest that runs, halts, masks them, gets several as one, is cut short or has APICv; its timer",
        vendors: BOTH,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 4,
        act: interrupts::act,
    },
    Scenario {
        name: "losses",
        about: "marked gaps, with and without a count of what is missing",
        vendors: BOTH,
        since: Generation::V3_10,
        usual: Generation::V6_12,
        cpus: 3,
        act: losses::act,
    },
];

impl Scenario {
    /// The scenario called `name`.
    pub fn named(name: &str) -> Option<&'static Scenario> {
        ALL.iter().find(|scenario| scenario.name == name)
    }

    /// Tells it with its usual vendor and kernel.
    pub fn run(&self, seed: u64) -> Story {
        self.told(self.vendors[0], self.usual, seed)
    }

    /// Tells it with another vendor and kernel; `None` if it cannot happen there.
    pub fn run_on(&self, vendor: Vendor, generation: Generation, seed: u64) -> Option<Story> {
        let possible = self.vendors.contains(&vendor) && generation >= self.since;
        possible.then(|| self.told(vendor, generation, seed))
    }

    fn told(&self, vendor: Vendor, generation: Generation, seed: u64) -> Story {
        let mut host = Host::new(vendor, generation, self.cpus);
        (self.act)(&mut host, &mut Random::new(seed));
        host.finish()
    }
}
