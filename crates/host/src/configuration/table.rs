//! Which files hold what somebody chose, rather than what happened since.
//!
//! Patterns are those of [`FILES`](crate::snapshot::FILES): what a snapshot does not take is not here. Meaning of the files:
//! Documentation/ABI/ and Documentation/admin-guide/, Linux 6.12.

#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub area: Area,
    pub pattern: &'static str,
    pub form: Form,
}

base::named! {
    /// What a setting is of, in the order in which they are told.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Area {
        /// Parameters of kernel modules.
        Module = "module",
        Kernel = "kernel",
        /// Processors, their idle states, frequencies and weaknesses.
        Processor = "processor",
        /// The QEMU of a VM, as it was started.
        Vm = "QEMU",
        /// A VM, as libvirt defines it.
        Domain = "domain",
        /// Who may run where.
        Placement = "placement",
        Memory = "memory",
        /// Network devices and the network stack.
        Network = "network",
        Device = "device",
        /// Firmware, or the machine below.
        Firmware = "firmware",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One value; of a choice (`always [madvise] never`) the one in brackets.
    Line,
    Words,
    /// One value, the same file for each CPU or node: told together.
    PerCpu,
    /// A set of CPUs, as a list or as a mask.
    Cpus,
}

const fn source(area: Area, pattern: &'static str, form: Form) -> Source {
    Source { area, pattern, form }
}

#[rustfmt::skip]
pub(super) const SOURCES: &[Source] = &[
    source(Area::Module, "sys/module/*/parameters/*", Form::Line),
    source(Area::Module, "sys/module/{kvm*,vhost*,openvswitch}/{version,srcversion}", Form::Line),
    source(Area::Kernel, "proc/sys/kernel/{osrelease,version}", Form::Line),
    source(Area::Kernel, "proc/cmdline", Form::Words),
    source(Area::Kernel, "proc/sys/kernel/{sched_*,numa_balancing*,timer_migration,nmi_watchdog,watchdog*,soft_watchdog,ftrace_enabled}", Form::Line),
    source(Area::Kernel, "sys/kernel/debug/sched/features", Form::Words),
    source(Area::Kernel, "sys/kernel/debug/sched/{preempt,latency_ns,base_slice_ns,min_granularity_ns,wakeup_granularity_ns,migration_cost_ns}", Form::Line),
    source(Area::Kernel, "sys/kernel/realtime", Form::Line),
    source(Area::Kernel, "sys/devices/system/clocksource/clocksource0/current_clocksource", Form::Line),
    source(Area::Processor, "sys/devices/system/cpu/{online,isolated,nohz_full}", Form::Cpus),
    source(Area::Processor, "sys/devices/system/cpu/{smt/control,vulnerabilities/*}", Form::Line),
    source(Area::Processor, "sys/devices/system/cpu/cpuidle/{current_driver,current_governor}", Form::Line),
    source(Area::Processor, "sys/devices/system/cpu/{cpufreq/boost,intel_pstate/{no_turbo,status,min_perf_pct,max_perf_pct},amd_pstate/status}", Form::Line),
    source(Area::Processor, "sys/devices/system/cpu/cpu*/cpufreq/{scaling_governor,scaling_driver,scaling_min_freq,scaling_max_freq,energy_performance_preference}", Form::PerCpu),
    source(Area::Processor, "sys/devices/system/cpu/cpu*/power/energy_perf_bias", Form::PerCpu),
    source(Area::Processor, "sys/devices/system/cpu/cpu*/microcode/version", Form::PerCpu),
    source(Area::Processor, "sys/devices/system/cpu/cpu*/cpuidle/state*/disable", Form::PerCpu),
    source(Area::Processor, "sys/firmware/acpi/platform_profile", Form::Line),
    source(Area::Placement, "sys/devices/virtual/workqueue/{cpumask,*/cpumask}", Form::Cpus),
    source(Area::Placement, "etc/{default,sysconfig}/irqbalance", Form::Words),
    source(Area::Placement, "proc/irq/default_smp_affinity", Form::Cpus),
    source(Area::Memory, "sys/kernel/mm/{transparent_hugepage,transparent_hugepage/khugepaged}/{enabled,defrag,shmem_enabled,scan_sleep_millisecs}", Form::Line),
    source(Area::Memory, "sys/kernel/mm/ksm/{run,sleep_millisecs,pages_to_scan,merge_across_nodes}", Form::Line),
    source(Area::Memory, "sys/kernel/mm/hugepages/hugepages-*/{nr_hugepages,nr_overcommit_hugepages}", Form::Line),
    source(Area::Memory, "sys/devices/system/node/node*/hugepages/hugepages-*/nr_hugepages", Form::Line),
    source(Area::Memory, "proc/sys/vm/{swappiness,stat_interval,dirty_*,overcommit_*,zone_reclaim_mode,compaction_proactiveness}", Form::Line),
    source(Area::Network, "proc/sys/net/core/{busy_poll,busy_read,netdev_*,rps_*,somaxconn,*mem_max,*mem_default}", Form::Line),
    source(Area::Network, "sys/class/net/*/{mtu,tx_queue_len,threaded,gro_flush_timeout,napi_defer_hard_irqs}", Form::Line),
    source(Area::Network, "sys/class/net/*/speed", Form::Line),
    source(Area::Network, "sys/class/net/*/queues/*/{rps_cpus,xps_cpus}", Form::Cpus),
    source(Area::Network, "sys/class/net/*/device/sriov_numvfs", Form::Line),
    source(Area::Device, "sys/block/*/queue/{scheduler,nr_requests,read_ahead_kb,write_cache,nomerges}", Form::Line),
    source(Area::Device, "sys/bus/pci/devices/*/{current_link_speed,current_link_width}", Form::Line),
    source(Area::Firmware, "sys/class/dmi/id/{sys_vendor,product_name,bios_version,bios_date}", Form::Line),
];
