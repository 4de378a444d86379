//! The records, a block for each publication.

use super::{Published, Status};

/// What the records of no publication share.
const NOTHING: Published = Published {
    id: "",
    source: "",
    url_or_commit: "",
    year: 0,
    machine: "",
    kernel: "",
    level: 0,
    op: "",
    variant: "",
    unit: "",
    statistic: "",
    value: 0.0,
    status: Status::Read,
};

const FOSDEM18: Published = Published {
    source: "V. Kuznetsov, A slightly different nesting: KVM on Hyper-V, FOSDEM 2018",
    url_or_commit: "https://fosdem.org/2018/schedule/event/vai_kvm_on_hyperv/",
    year: 2018,
    machine: "Xeon E5-2667 v4, 3.2 GHz (named for the kernel build)",
    kernel: "L0 Hyper-V; L1 Linux 4.15-rc8",
    ..NOTHING
};

const PVM23: Published = Published {
    source: "PVM: Efficient Shadow Paging for Deploying Secure Containers in Cloud-native Environment, SOSP 2023, table 1",
    url_or_commit: "https://github.com/virt-pvm/misc",
    year: 2023,
    machine: "Xeon Platinum 8269CY, 2.5 GHz",
    kernel: "Linux 4.19 with page-table isolation",
    ..NOTHING
};

const DVH20: Published = Published {
    source: "Optimizing Nested Virtualization Performance Using Direct Virtual Hardware, ASPLOS 2020",
    url_or_commit: "https://github.com/columbia/dvh-asplos-ae-micro",
    year: 2020,
    machine: "unknown",
    kernel: "unknown",
    status: Status::Quoted,
    ..NOTHING
};

const DORSAL18: Published = Published {
    source: "dorsal, hypercall/data, 100,000 hypercalls per level, medians computed from the files",
    url_or_commit: "https://github.com/abenbachir/dorsal commit 2b530bfc",
    year: 2018,
    machine: "Core i7-6700K, as quoted",
    kernel: "not stated",
    ..NOTHING
};

const EVMCS18: Published = Published {
    source: "x86/kvm: use Enlightened VMCS when running on Hyper-V, Linux 4.17",
    url_or_commit: "commit 773e8a0425c9",
    year: 2018,
    machine: "not stated",
    kernel: "L0 Hyper-V; L1 Linux 4.17, under development",
    ..NOTHING
};

const BITMAP18: Published = Published {
    source: "KVM: x86: VMX: hyper-v: Enlightened MSR-Bitmap support",
    url_or_commit: "commit ceef7d10dfb6",
    year: 2018,
    machine: "not stated",
    kernel: "L0 Hyper-V; L1 Linux 4.18, under development",
    ..NOTHING
};

const XSTATE24: Published = Published {
    source: "KVM: x86: Cache CPUID.0xD XSTATE offsets+sizes during module init",
    url_or_commit: "commit 1201f226c863",
    year: 2024,
    machine: "",
    kernel: "Linux 6.13",
    ..NOTHING
};

const SVM20: Published = Published {
    source: "SVM entry and exit series, Linux kernel mailing list, December 2020",
    url_or_commit: "https://lore.kernel.org/kvm/ (2020-12)",
    year: 2020,
    machine: "EPYC",
    kernel: "not stated",
    ..NOTHING
};

const CIENA16: Published = Published {
    source: "O. Stelescu, Migrating the Ciena SIM Environment into the Cloud, Ecole Polytechnique progress report, December 2016",
    url_or_commit: "slides, \"Brief analysis using LTTng\"",
    year: 2016,
    machine: "Xeon E5-2690 v4",
    kernel: "L0 and L1 RHEL 7.2 (3.10)",
    ..NOTHING
};

const HAXM18: Published = Published {
    source: "intel/haxm pull request 130: VMCS accesses of KVM as L1 for an exit of L2",
    url_or_commit: "https://github.com/intel/haxm/pull/130",
    year: 2018,
    machine: "not stated",
    kernel: "KVM as L1",
    ..NOTHING
};

/// All of them.
#[rustfmt::skip]
pub const PUBLISHED: &[Published] = &[
    Published { id: "fosdem18.cpuid.l0", op: "cpuid", level: 0, unit: "cycles", statistic: "mean", value: 180.0, ..FOSDEM18 },
    Published { id: "fosdem18.cpuid.l1", op: "cpuid", level: 1, unit: "cycles", statistic: "mean", value: 1_350.0, ..FOSDEM18 },
    Published { id: "fosdem18.cpuid.l2", op: "cpuid", level: 2, unit: "cycles", statistic: "mean", value: 20_700.0, ..FOSDEM18 },
    Published { id: "fosdem18.cpuid.l2.evmcs", op: "cpuid", level: 2, variant: "evmcs", unit: "cycles", statistic: "mean", value: 8_900.0, ..FOSDEM18 },
    Published { id: "fosdem18.clock.l0", op: "clock_gettime", level: 0, unit: "cycles", statistic: "mean", value: 55.0, ..FOSDEM18 },
    Published { id: "fosdem18.clock.l1", op: "clock_gettime", level: 1, unit: "cycles", statistic: "mean", value: 70.0, ..FOSDEM18 },
    Published { id: "fosdem18.clock.l2", op: "clock_gettime", level: 2, unit: "cycles", statistic: "mean", value: 1_500.0, ..FOSDEM18 },
    Published { id: "fosdem18.clock.l2.stable", op: "clock_gettime", level: 2, variant: "stable clock", unit: "cycles", statistic: "mean", value: 80.0, ..FOSDEM18 },
    Published { id: "fosdem18.build.l1", op: "kernel build", level: 1, unit: "s", statistic: "one run", value: 1_602.187, ..FOSDEM18 },
    Published { id: "fosdem18.build.l2", op: "kernel build", level: 2, unit: "s", statistic: "one run", value: 1_614.887, ..FOSDEM18 },
    Published { id: "fosdem18.build.l2.evmcs", op: "kernel build", level: 2, variant: "evmcs", unit: "s", statistic: "one run", value: 1_673.110, ..FOSDEM18 },
    Published { id: "pvm23.hypercall.l1", op: "vmcall", level: 1, unit: "us", statistic: "mean", value: 0.46, ..PVM23 },
    Published { id: "pvm23.hypercall.l1.pvm", op: "vmcall", level: 1, variant: "pvm", unit: "us", statistic: "mean", value: 0.54, ..PVM23 },
    Published { id: "pvm23.hypercall.l2", op: "vmcall", level: 2, unit: "us", statistic: "mean", value: 7.43, ..PVM23 },
    Published { id: "pvm23.hypercall.l2.pvm", op: "vmcall", level: 2, variant: "pvm", unit: "us", statistic: "mean", value: 0.48, ..PVM23 },
    Published { id: "pvm23.exception.l1", op: "ud2", level: 1, unit: "us", statistic: "mean", value: 1.66, ..PVM23 },
    Published { id: "pvm23.exception.l1.pvm", op: "ud2", level: 1, variant: "pvm", unit: "us", statistic: "mean", value: 1.67, ..PVM23 },
    Published { id: "pvm23.exception.l2", op: "ud2", level: 2, unit: "us", statistic: "mean", value: 9.20, ..PVM23 },
    Published { id: "pvm23.exception.l2.pvm", op: "ud2", level: 2, variant: "pvm", unit: "us", statistic: "mean", value: 2.21, ..PVM23 },
    Published { id: "pvm23.msr.l1", op: "MSR access", level: 1, unit: "us", statistic: "mean", value: 0.87, ..PVM23 },
    Published { id: "pvm23.msr.l1.pvm", op: "MSR access", level: 1, variant: "pvm", unit: "us", statistic: "mean", value: 2.53, ..PVM23 },
    Published { id: "pvm23.msr.l2", op: "MSR access", level: 2, unit: "us", statistic: "mean", value: 8.18, ..PVM23 },
    Published { id: "pvm23.msr.l2.pvm", op: "MSR access", level: 2, variant: "pvm", unit: "us", statistic: "mean", value: 2.88, ..PVM23 },
    Published { id: "pvm23.cpuid.l1", op: "cpuid", level: 1, unit: "us", statistic: "mean", value: 0.54, ..PVM23 },
    Published { id: "pvm23.cpuid.l1.pvm", op: "cpuid", level: 1, variant: "pvm", unit: "us", statistic: "mean", value: 0.60, ..PVM23 },
    Published { id: "pvm23.cpuid.l2", op: "cpuid", level: 2, unit: "us", statistic: "mean", value: 7.10, ..PVM23 },
    Published { id: "pvm23.cpuid.l2.pvm", op: "cpuid", level: 2, variant: "pvm", unit: "us", statistic: "mean", value: 0.51, ..PVM23 },
    Published { id: "pvm23.pio.l1", op: "inl_from_qemu", level: 1, unit: "us", statistic: "mean", value: 3.79, ..PVM23 },
    Published { id: "pvm23.pio.l1.pvm", op: "inl_from_qemu", level: 1, variant: "pvm", unit: "us", statistic: "mean", value: 4.91, ..PVM23 },
    Published { id: "pvm23.pio.l2", op: "inl_from_qemu", level: 2, unit: "us", statistic: "mean", value: 29.34, ..PVM23 },
    Published { id: "pvm23.pio.l2.pvm", op: "inl_from_qemu", level: 2, variant: "pvm", unit: "us", statistic: "mean", value: 12.94, ..PVM23 },
    Published { id: "pvm23.switch.l1", op: "world switch", level: 1, unit: "us", statistic: "mean", value: 0.105, ..PVM23 },
    Published { id: "pvm23.switch.l2", op: "world switch", level: 2, unit: "us", statistic: "mean", value: 1.3, ..PVM23 },
    Published { id: "pvm23.switch.l2.pvm", op: "world switch", level: 2, variant: "pvm", unit: "us", statistic: "mean", value: 0.179, ..PVM23 },
    Published { id: "pvm23.fork.l1", op: "fork", level: 1, unit: "us", statistic: "mean", value: 82.13, ..PVM23 },
    Published { id: "pvm23.fork.l2", op: "fork", level: 2, unit: "us", statistic: "mean", value: 113.0, ..PVM23 },
    Published { id: "pvm23.fork32.l1", op: "fork of 32 processes", level: 1, unit: "us", statistic: "mean", value: 513.5, ..PVM23 },
    Published { id: "pvm23.fork32.l2", op: "fork of 32 processes", level: 2, unit: "us", statistic: "mean", value: 812.5, ..PVM23 },
    Published { id: "dvh20.hypercall.l1", op: "vmcall", level: 1, unit: "cycles", statistic: "mean", value: 1_575.0, ..DVH20 },
    Published { id: "dvh20.hypercall.l2", op: "vmcall", level: 2, unit: "cycles", statistic: "mean", value: 37_733.0, ..DVH20 },
    Published { id: "dvh20.hypercall.l3", op: "vmcall", level: 3, unit: "cycles", statistic: "mean", value: 857_578.0, ..DVH20 },
    Published { id: "dvh20.devnotify.l1", op: "pci-mem", level: 1, unit: "cycles", statistic: "mean", value: 4_984.0, ..DVH20 },
    Published { id: "dvh20.devnotify.l2", op: "pci-mem", level: 2, unit: "cycles", statistic: "mean", value: 48_390.0, ..DVH20 },
    Published { id: "dvh20.devnotify.l3", op: "pci-mem", level: 3, unit: "cycles", statistic: "mean", value: 1_008_935.0, ..DVH20 },
    Published { id: "dvh20.timer.l1", op: "tscdeadline", level: 1, unit: "cycles", statistic: "mean", value: 2_005.0, ..DVH20 },
    Published { id: "dvh20.timer.l2", op: "tscdeadline", level: 2, unit: "cycles", statistic: "mean", value: 43_359.0, ..DVH20 },
    Published { id: "dvh20.timer.l3", op: "tscdeadline", level: 3, unit: "cycles", statistic: "mean", value: 1_033_946.0, ..DVH20 },
    Published { id: "dvh20.ipi.l1", op: "ipi", level: 1, unit: "cycles", statistic: "mean", value: 3_273.0, ..DVH20 },
    Published { id: "dvh20.ipi.l2", op: "ipi", level: 2, unit: "cycles", statistic: "mean", value: 39_456.0, ..DVH20 },
    Published { id: "dvh20.ipi.l3", op: "ipi", level: 3, unit: "cycles", statistic: "mean", value: 787_971.0, ..DVH20 },
    Published { id: "dorsal18.hypercall.l1", op: "vmcall", level: 1, unit: "ns", statistic: "median", value: 285.83, ..DORSAL18 },
    Published { id: "dorsal18.hypercall.l2", op: "vmcall", level: 2, unit: "ns", statistic: "median", value: 9_303.03, ..DORSAL18 },
    Published { id: "dorsal18.hypercall.l3", op: "vmcall", level: 3, unit: "ns", statistic: "median", value: 232_717.08, ..DORSAL18 },
    Published { id: "dorsal18.hypercall.l2.l0", op: "vmcall", level: 2, variant: "handled by L0", unit: "ns", statistic: "median", value: 289.0, ..DORSAL18 },
    Published { id: "dorsal18.hypercall.l3.l0", op: "vmcall", level: 3, variant: "handled by L0", unit: "ns", statistic: "median", value: 292.0, ..DORSAL18 },
    Published { id: "evmcs18.cpuid.l2", op: "cpuid", level: 2, unit: "cycles", statistic: "mean", value: 18_890.0, ..EVMCS18 },
    Published { id: "evmcs18.cpuid.l2.evmcs", op: "cpuid", level: 2, variant: "evmcs", unit: "cycles", statistic: "mean", value: 8_304.0, ..EVMCS18 },
    Published { id: "bitmap18.rdmsr.l2", op: "rd_kernel_gs_base", level: 2, unit: "cycles", statistic: "mean", value: 1_300.0, ..BITMAP18 },
    Published { id: "bitmap18.rdmsr.l2.bitmap", op: "rd_kernel_gs_base", level: 2, variant: "enlightened MSR bitmap", unit: "cycles", statistic: "mean", value: 120.0, ..BITMAP18 },
    Published { id: "xstate24.skylake.before", op: "cpuid", level: 2, machine: "Skylake-SP", unit: "cycles", statistic: "mean", value: 11_650.0, ..XSTATE24 },
    Published { id: "xstate24.skylake.after", op: "cpuid", level: 2, variant: "cached XSTATE sizes", machine: "Skylake-SP", unit: "cycles", statistic: "mean", value: 6_850.0, ..XSTATE24 },
    Published { id: "xstate24.icelake.before", op: "cpuid", level: 2, machine: "Ice Lake-SP", unit: "cycles", statistic: "mean", value: 22_350.0, ..XSTATE24 },
    Published { id: "xstate24.icelake.after", op: "cpuid", level: 2, variant: "cached XSTATE sizes", machine: "Ice Lake-SP", unit: "cycles", statistic: "mean", value: 9_000.0, ..XSTATE24 },
    Published { id: "xstate24.emeraldrapids.before", op: "cpuid", level: 2, machine: "Emerald Rapids", unit: "cycles", statistic: "mean", value: 28_850.0, ..XSTATE24 },
    Published { id: "xstate24.emeraldrapids.after", op: "cpuid", level: 2, variant: "cached XSTATE sizes", machine: "Emerald Rapids", unit: "cycles", statistic: "mean", value: 7_900.0, ..XSTATE24 },
    Published { id: "svm20.run.l1", op: "run ioctl", level: 1, unit: "cycles", statistic: "mean", value: 2_528.0, ..SVM20 },
    Published { id: "svm20.entry.l1", op: "entry", level: 1, unit: "cycles", statistic: "mean", value: 576.0, ..SVM20 },
    Published { id: "svm20.vmrun.l1", op: "VMRUN to exit", level: 1, unit: "cycles", statistic: "mean", value: 1_376.0, ..SVM20 },
    Published { id: "svm20.exit.l1", op: "exit", level: 1, unit: "cycles", statistic: "mean", value: 576.0, ..SVM20 },
    Published { id: "ciena16.cpu.l1", op: "CPU of one simulated card", level: 1, unit: "percent", statistic: "top, one moment", value: 10.0, ..CIENA16 },
    Published { id: "ciena16.cpu.l2", op: "CPU of one simulated card", level: 2, unit: "percent", statistic: "top, one moment", value: 80.0, ..CIENA16 },
    Published { id: "ciena16.cpu.l2.shadow", op: "CPU of one simulated card", level: 2, variant: "VMCS shadowing", unit: "percent", statistic: "top, one moment", value: 50.0, ..CIENA16 },
    Published { id: "ciena16.chain.low", op: "L1 exits per exit of L2", level: 2, unit: "exits", statistic: "lowest cited", value: 40.0, ..CIENA16 },
    Published { id: "ciena16.chain.high", op: "L1 exits per exit of L2", level: 2, unit: "exits", statistic: "highest cited", value: 50.0, ..CIENA16 },
    Published { id: "haxm18.vmread.low", op: "VMREAD per exit of L2", level: 1, unit: "exits", statistic: "lowest mean", value: 6.0, ..HAXM18 },
    Published { id: "haxm18.vmread.high", op: "VMREAD per exit of L2", level: 1, unit: "exits", statistic: "highest mean", value: 10.0, ..HAXM18 },
    Published { id: "haxm18.vmwrite.low", op: "VMWRITE per exit of L2", level: 1, unit: "exits", statistic: "lowest mean", value: 2.0, ..HAXM18 },
    Published { id: "haxm18.vmwrite.high", op: "VMWRITE per exit of L2", level: 1, unit: "exits", statistic: "highest mean", value: 6.0, ..HAXM18 },
];
