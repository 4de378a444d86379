//! Parameters of KVM's modules.

use super::super::checks::Told;
use super::super::host::Host;
use super::{Group, Place, Rule, Want, knob};
use base::Needs;

pub(super) const KNOBS: &[Rule] = &[
    Rule {
        id: "LAT-NXHUGE",
        looks_at: "Whether KVM splits huge pages that the guest executes (nx_huge_pages).",
        why: "Each split is an exit with KVM's lock held, and a thread merges the pages again once an hour. Caveat: on a processor \
              with the bug iTLB multihit a guest can then crash the host: only for guests that are trusted.",
        source: "Documentation/admin-guide/hw-vuln/multihit.rst, Linux 6.12; tuned 2.28, profile realtime-virtual-host",
        ..knob(
            "nx_huge_pages",
            Group::Kvm,
            Place::File("sys/module/kvm/parameters/nx_huge_pages", Want::Is(&["N", "0", "off", "never"])),
        )
    },
    Rule {
        id: "LAT-PLE",
        looks_at: "Pause-loop exiting.",
        why: "A vCPU that spins with PAUSE exits so that another may run, and on a dedicated CPU there is none. Caveat: where vCPUs \
              share CPUs, spinning wastes the time of others.",
        needs: Needs::Reload,
        source: "arch/x86/kvm/vmx/vmx.c, ple_gap, Linux 6.12; tuned 2.28, profile realtime-virtual-host",
        ..knob("ple_gap", Group::Kvm, Place::File("sys/module/kvm_intel/parameters/ple_gap", Want::Is(&["0"])))
    },
    Rule {
        id: "LAT-ADVANCE",
        looks_at: "Whether KVM programs timers of guests early by what the entry takes.",
        why: "Without it each timer of the guest is late by the time from the host's timer to the entry. Caveat: the vCPU spins for \
              the rest; tuned gave up searching for the best value, because it gained only 3 or 4 us (commit 51c50a3, 2020).",
        needs: Needs::Reload,
        source: "arch/x86/kvm/lapic.c, lapic_timer_advance, Linux 6.12 (adaptive by default)",
        ..knob("lapic_timer_advance", Group::Kvm, Place::Told(timer_advance))
    },
    Rule {
        id: "LAT-APICV",
        looks_at: "Whether the processor delivers interrupts to running vCPUs itself (APICv, AVIC).",
        why: "Without it each interrupt for a running vCPU is an exit and an entry. Caveat: KVM leaves it off for a VM with incompatible \
              settings; NST and FLW rules show when, and on which processors it has errata.",
        needs: Needs::Reload,
        source: "arch/x86/kvm/vmx/vmx.c, enable_apicv, and svm/avic.c, avic, Linux 6.12",
        ..knob("APICv", Group::Kvm, Place::Told(posted_interrupts))
    },
    Rule {
        id: "LAT-HALTPOLL",
        looks_at: "Whether KVM polls on a CPU after a halt (halt_poll_ns) although the guests there poll themselves.",
        why: "A guest that polls halts by chance, and KVM then withholds the CPU from its kernel threads, and slows its sibling, for this long. \
              Caveat: guests that sleep between packets wake up later without it: only vCPUs that are always busy are reported.",
        source: "Documentation/virt/kvm/halt-polling.rst, Linux 6.12; our own limit of what is always busy",
        ..knob("halt_poll_ns", Group::Kvm, Place::Told(halt_polling))
    },
    Rule {
        id: "LAT-VMXTIMER",
        looks_at: "Whether timers of guests are the processor's VMX preemption timer.",
        why: "A timer of the host costs an interrupt, its handler and the injection; this one only an exit. Caveat: it works only \
              while the vCPU runs.",
        needs: Needs::Reload,
        source: "arch/x86/kvm/vmx/vmx.c, preemption_timer, Linux 6.12 (since 4.8, commit 64672c95)",
        ..knob(
            "preemption_timer",
            Group::Kvm,
            Place::File("sys/module/kvm_intel/parameters/preemption_timer", Want::Is(&["Y", "1"])),
        )
    },
];

/// A vCPU that ran more than this of the time polls, or computes without a rest: our own limit.
const ALWAYS_BUSY: f64 = 0.9;

fn halt_polling(host: &Host<'_>) -> Option<Told> {
    const FILE: &str = "sys/module/kvm/parameters/halt_poll_ns";
    let value = host.last.line(FILE)?.trim().to_owned();
    let shares: Vec<f64> = host.vcpus().filter_map(|thread| Some(thread.run_share.as_ref()?.value)).collect();
    if shares.is_empty() {
        return None;
    }
    let all_busy = shares.iter().all(|share| *share > ALWAYS_BUSY);
    let fits = value == "0" || !all_busy;
    let mut told = Told::new(&value, FILE, fits, if all_busy { "0" } else { "any: not all vCPUs are always busy" });
    told.same_as.push(FILE.replace('/', "."));
    if !fits {
        told.set(FILE, "0".to_owned(), &value);
    }
    Some(told)
}

/// A number of ns in older kernels, of which -1 is adaptive, and yes or no since 6.10 (`lapic_timer_advance`).
fn timer_advance(host: &Host<'_>) -> Option<Told> {
    const PARAMETERS: &str = "sys/module/kvm/parameters";
    let [new, old] = ["lapic_timer_advance", "lapic_timer_advance_ns"].map(|name| format!("{PARAMETERS}/{name}"));
    let (path, want, off) = match host.last.line(&new) {
        Some(_) => (new, "Y", ["N", "0"]),
        None => (old, "-1", ["0", "0"]),
    };
    let value = host.last.line(&path)?.trim().to_owned();
    let fits = !off.contains(&value.as_str());
    let mut told = Told::new(&value, &path, fits, want);
    if !fits {
        told.set(&path, want.to_owned(), &value);
    }
    Some(told)
}

fn posted_interrupts(host: &Host<'_>) -> Option<Told> {
    let of = |module: &str, parameter: &str| {
        let path = format!("sys/module/{module}/parameters/{parameter}");
        Some((host.last.line(&path)?.trim().to_owned(), path))
    };
    let (value, path) = of("kvm_intel", "enable_apicv").or_else(|| of("kvm_amd", "avic"))?;
    let fits = matches!(value.as_str(), "Y" | "1");
    let told = Told::new(value, path, fits, "Y");
    Some(match fits {
        true => told,
        false => told.looking("kvmscope check   # rules NST and FLW show whether it can be on here, and the command"),
    })
}
