//! What would a change move? Effects as data.
//!
//! A change moves what nesting adds to each exit (a factor on it), or how often exits happen (what is kept of their rate).
//! Each states where its numbers come from; where nobody published one, the change can save anything between nothing and
//! all of its exits, and the row says so.

use super::model::Estimate;
use base::Needs;

pub struct Effect {
    /// What `--with` calls it.
    pub id: &'static str,
    /// In a few words.
    pub title: &'static str,
    pub moves: Moves,
    /// The feature of table `features` that is on when it has been made; empty: none shows it.
    pub feature: &'static str,
    pub needs: Needs,
    pub place: Place,
    /// True if it is part of the combination that is shown unasked.
    pub usual: bool,
    pub evidence: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub enum Moves {
    /// What remains of the time that nesting adds to each exit.
    Nesting(Estimate),
    /// The same, told by the exits of L1 that fall away from each chain of a recording; else by the estimate, if any.
    Chain(&'static [&'static str], Option<Estimate>),
    /// What remains of the rate of these exits.
    Rates(&'static [&'static str], Estimate),
    /// Neither: the model has no word for it.
    Nothing,
}

/// Where a change is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Wherever guests run guests.
    Any,
    Vmx,
    /// On AMD.
    Svm,
    /// On Intel with Hyper-V as L0.
    Hyperv,
    /// On Intel with KVM as L0.
    VmxOnKvm,
}

/// Between nothing and all, for changes without a published figure.
const UP_TO_ALL: Estimate = Estimate { low: 0.0, mid: 0.0, high: 1.0 };

pub const EFFECTS: &[Effect] = &[
    Effect {
        id: "shadow",
        title: "VMCS shadowing at L0",
        moves: Moves::Chain(&["VMREAD", "VMWRITE"], Some(Estimate { low: 0.20, mid: 0.60, high: 0.62 })),
        feature: "vmcs_shadowing",
        needs: Needs::OuterLevel,
        place: Place::VmxOnKvm,
        usual: true,
        evidence: "in a recording by its own VMREAD and VMWRITE; else 1.61 to 1.75 times (Ciena 2016), at best 15 exits to 3",
    },
    Effect {
        id: "evmcs",
        title: "enlightened VMCS",
        moves: Moves::Nesting(Estimate { low: 0.39, mid: 0.39, high: 0.40 }),
        feature: "enlightened_vmcs",
        needs: Needs::Reload,
        place: Place::Hyperv,
        usual: true,
        evidence: "20,700 to 8,900 cycles (FOSDEM 2018), 18,890 to 8,304 (commit); timer, IPI, EOI and dirty-log \
                   exits may increase, which the number does not include: one kernel build took longer with it",
    },
    Effect {
        id: "msr-bitmap",
        title: "enlightened MSR bitmap",
        moves: Moves::Rates(&["MSR"], UP_TO_ALL),
        feature: "hyperv_msr_bitmap",
        needs: Needs::OuterLevel,
        place: Place::Hyperv,
        usual: true,
        evidence: "1,300 to 120 cycles for an MSR that needs no exit (commit ceef7d10dfb6); rates do not show how \
            many accesses that is",
    },
    Effect {
        id: "kernel",
        title: "a kernel with commit 1201f226c863",
        moves: Moves::Nesting(Estimate { low: 0.24, mid: 0.36, high: 0.53 }),
        feature: "",
        needs: Needs::Reboot,
        place: Place::Vmx,
        usual: false,
        evidence: "28,850 to 7,900, 22,350 to 9,000, 11,650 to 6,850 cycles by processor, each less 1,350 of a plain exit",
    },
    Effect {
        id: "vls",
        title: "virtual VMLOAD and VMSAVE at L0",
        moves: Moves::Chain(&["VMLOAD", "VMSAVE"], None),
        feature: "virtual_vmload_vmsave",
        needs: Needs::OuterLevel,
        place: Place::Svm,
        usual: true,
        evidence: "VMLOAD and VMSAVE in the recording; no published value",
    },
    Effect {
        id: "vgif",
        title: "virtual GIF at L0",
        moves: Moves::Chain(&["STGI", "CLGI"], None),
        feature: "virtual_gif",
        needs: Needs::OuterLevel,
        place: Place::Svm,
        usual: true,
        evidence: "STGI and CLGI in the recording; no published value",
    },
    Effect {
        id: "apicv",
        title: "APICv, posted interrupts",
        moves: Moves::Rates(
            &["APIC_ACCESS", "APIC_WRITE", "EOI_INDUCED", "INTERRUPT_WINDOW", "TPR_BELOW_THRESHOLD"],
            UP_TO_ALL,
        ),
        feature: "apicv",
        needs: Needs::Reload,
        place: Place::Vmx,
        usual: true,
        evidence: "no published value for nested guests: between none and all of these exits",
    },
    Effect {
        id: "avic",
        title: "AVIC",
        moves: Moves::Rates(&["VINTR", "WRITE_CR8", "INTERRUPT_WINDOW"], UP_TO_ALL),
        feature: "avic",
        needs: Needs::Reload,
        place: Place::Svm,
        usual: true,
        evidence: "no published value for nested guests, and a vCPU has no AVIC while it runs a nested guest",
    },
    Effect {
        id: "timers",
        title: "half as many timer exits",
        moves: Moves::Rates(&["TSC_DEADLINE", "PREEMPTION_TIMER"], Estimate::exact(0.5)),
        feature: "",
        needs: Needs::Nothing,
        place: Place::Any,
        usual: true,
        evidence: "an assumption, to show the possible gain: fewer ticks and timers in the guest",
    },
    Effect {
        id: "sriov",
        title: "SR-IOV or VFIO into the guest",
        moves: Moves::Rates(&["IO", "IOIO", "EPT_MISCONFIG"], UP_TO_ALL),
        feature: "",
        needs: Needs::Reload,
        place: Place::Any,
        usual: true,
        evidence: "doorbell exits disappear, and vhost's CPU time with them; interrupts still exit unless posted; no \
            published value for nested guests",
    },
    Effect {
        id: "huge-pages",
        title: "huge pages for the nested guest",
        moves: Moves::Rates(&["EPT_VIOLATION", "NPF"], Estimate { low: 1.0 / 512.0, mid: 1.0 / 512.0, high: 1.0 }),
        feature: "",
        needs: Needs::Reload,
        place: Place::Any,
        usual: true,
        evidence: "one fault instead of 512, if all are first accesses to 4 KiB pages; cloud-hypervisor issue 6060",
    },
    Effect {
        id: "cpu-pm",
        title: "no exits for HLT, PAUSE, MWAIT (cpu-pm)",
        moves: Moves::Rates(&["HLT", "PAUSE", "MWAIT", "MONITOR"], Estimate::exact(0.0)),
        feature: "",
        needs: Needs::Reload,
        place: Place::Any,
        usual: false,
        evidence: "KVM_CAP_X86_DISABLE_EXITS; the host's CPU then never idles, and the host accounts all of it to \
            the vCPU",
    },
    Effect {
        id: "pvm",
        title: "PVM as hypervisor of L1",
        moves: Moves::Nesting(Estimate { low: 0.0, mid: 0.07, high: 0.36 }),
        feature: "kvm_pvm",
        needs: Needs::Reboot,
        place: Place::Any,
        usual: false,
        evidence: "table 1 of PVM, SOSP 2023: hypercall 7.43 to 0.48 us, exception 9.20 to 2.21, port 29.34 to 12.94",
    },
    Effect {
        id: "pinning",
        title: "pinning and isolation",
        moves: Moves::Nothing,
        feature: "",
        needs: Needs::Nothing,
        place: Place::Any,
        usual: false,
        evidence: "affects neither cost nor rate of exits, but preemption and cold caches, which the model does not \
            include",
    },
];

/// The effect called `id`.
pub fn effect(id: &str) -> Option<&'static Effect> {
    EFFECTS.iter().find(|effect| effect.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::published::value;

    /// What remains of the added time, with 1,350 cycles of a plain exit (FOSDEM 2018) below both.
    fn remains(before: &str, after: &str) -> f64 {
        let c1 = value("fosdem18.cpuid.l1");
        (value(after) - c1) / (value(before) - c1)
    }

    fn factor(id: &str) -> Estimate {
        match effect(id).unwrap().moves {
            Moves::Nesting(factor) | Moves::Chain(_, Some(factor)) | Moves::Rates(_, factor) => factor,
            Moves::Chain(_, None) | Moves::Nothing => panic!("{id} has no factor"),
        }
    }

    #[test]
    fn factors_are_those_of_the_published_records() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 0.005, "{a} and {b}");
        close(factor("evmcs").mid, remains("fosdem18.cpuid.l2", "fosdem18.cpuid.l2.evmcs"));
        close(factor("evmcs").high, remains("evmcs18.cpuid.l2", "evmcs18.cpuid.l2.evmcs"));
        close(factor("kernel").high, remains("xstate24.skylake.before", "xstate24.skylake.after"));
        close(factor("kernel").mid, remains("xstate24.icelake.before", "xstate24.icelake.after"));
        close(factor("kernel").low, remains("xstate24.emeraldrapids.before", "xstate24.emeraldrapids.after"));
        close(factor("shadow").high, 1.0 / 1.61);
        let pvm = |op: &str| {
            let at = |end: &str| value(&format!("pvm23.{op}.{end}"));
            (at("l2.pvm") - at("l1")) / (at("l2") - at("l1"))
        };
        close(factor("pvm").mid, pvm("exception"));
        close(factor("pvm").high, pvm("pio"));
    }

    #[test]
    fn every_effect_says_where_its_numbers_come_from_and_none_adds() {
        for effect in EFFECTS {
            assert!(!effect.evidence.is_empty());
            let (Moves::Nesting(factor) | Moves::Rates(_, factor) | Moves::Chain(_, Some(factor))) = effect.moves
            else {
                continue;
            };
            assert!(
                0.0 <= factor.low && factor.low <= factor.mid && factor.mid <= factor.high && factor.high <= 1.0,
                "{}",
                effect.id
            );
        }
    }
}
