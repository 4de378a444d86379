//! The list: which files a snapshot takes, and what each is needed for.
//!
//! In the order in which they are read: what counts comes first and close together, so that two samples of it are equally
//! far apart; what does not change comes later. Meaning and traps of the fields: Documentation/filesystems/proc.rst,
//! Documentation/ABI/ and Documentation/admin-guide/cgroup-v2.rst, Linux 6.12.
//!
//! Never taken: `environ`, memory, and command lines of processes that run no VM: they may hold passwords.

/// Files of one kind, and why they are taken.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Where they lie below the root; see `pattern` for the syntax.
    pub pattern: &'static str,
    pub why: &'static str,
    pub how: How,
}

/// How a file is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Copy,
    /// With what may be a secret taken out.
    Redact,
    /// Only on request, because reading it takes long or disturbs what it tells about.
    OnRequest,
}

const fn copy(pattern: &'static str, why: &'static str) -> Wanted {
    Wanted { pattern, why, how: How::Copy }
}

const fn redact(pattern: &'static str, why: &'static str) -> Wanted {
    Wanted { pattern, why, how: How::Redact }
}

const fn on_request(pattern: &'static str, why: &'static str) -> Wanted {
    Wanted { pattern, why, how: How::OnRequest }
}

/// Every file of a snapshot.
#[rustfmt::skip]
pub const FILES: &[Wanted] = &[
    // What counts.
    copy("proc/{stat,uptime,loadavg}", "time of each CPU by kind, steal among it; the load"),
    copy("proc/{interrupts,softirqs}", "interrupts and softirqs of each CPU"),
    copy("proc/{schedstat,vmstat,meminfo}", "scheduler waiting; paging, faults, huge pages"),
    copy("proc/pressure/{cpu,memory,io,irq}", "pressure stall information"),
    copy("proc/<pid>/task/*/{schedstat,stat}", "run time, wait time and CPU of each thread"),
    copy("proc/net/{dev,softnet_stat}", "packets of each device; packets dropped before the network stack"),
    copy("sys/class/net/*/statistics/*", "packets, drops and errors of each device"),
    copy("sys/devices/system/cpu/cpu*/cpuidle/state*/{name,latency,residency,disable,usage,time}", "idle states and their use"),
    copy("sys/kernel/debug/kvm/*", "KVM's counters, all VMs together"),
    copy("sys/kernel/debug/kvm/*/{*,vcpu*/*}", "KVM's counters, of each VM and vCPU; offset and scale of guest TSCs"),
    copy("sys/devices/system/node/node*/{numastat,vmstat}", "memory taken from other nodes"),
    // Tasks.
    copy("proc/<pid>/task/*/{status,comm}", "current CPU masks, memory nodes, involuntary switches of threads"),
    copy("proc/<vm>/task/*/cgroup", "cgroup of each thread of a VM"),
    copy("proc/<pid>/{cgroup,autogroup}", "cgroup of a process; autogroups"),
    redact("proc/<vm>/cmdline", "name, devices, queues and memory of a VM"),
    on_request("proc/<vm>/numa_maps", "which nodes hold a VM's memory; large guests stall while it is read"),
    // The kernel.
    copy("proc/{version,misc,devices,modules,filesystems}", "kernel; devices such as kvm and vhost-net; modules"),
    redact("proc/cmdline", "isolated CPUs, mitigations, clocks, as booted"),
    copy("proc/sys/kernel/{osrelease,version,hostname,ostype}", "kernel's version"),
    copy("proc/sys/kernel/{sched_*,numa_balancing*,timer_migration,nmi_watchdog,watchdog*,soft_watchdog,hung_task_timeout_secs}", "scheduler and watchdogs"),
    copy("proc/sys/kernel/{ftrace_enabled,perf_event_*,kptr_restrict,unprivileged_bpf_disabled}", "permitted tracing"),
    copy("proc/sys/vm/{swappiness,stat_interval,nr_hugepages,nr_overcommit_hugepages,dirty_*,overcommit_*,zone_reclaim_mode,compaction_proactiveness}", "memory management"),
    copy("proc/sys/net/core/{busy_poll,busy_read,netdev_*,rps_*,somaxconn,*mem_max,*mem_default,flow_limit_cpu_bitmap}", "network stack: polling, budgets"),
    copy("sys/kernel/debug/sched/{features,preempt,latency_ns,base_slice_ns,min_granularity_ns,wakeup_granularity_ns,migration_cost_ns}", "scheduler's settings where debugfs holds them"),
    copy("sys/kernel/mm/{transparent_hugepage,transparent_hugepage/khugepaged,ksm}/*", "transparent huge pages; KSM"),
    copy("sys/kernel/mm/hugepages/hugepages-*/*", "reserved huge pages"),
    copy("sys/kernel/tracing/{available_tracers,available_events,trace_clock,saved_cmdlines_size}", "available trace events"),
    copy("sys/kernel/realtime", "whether the kernel is PREEMPT_RT"),
    copy("sys/kernel/security/lockdown", "whether the kernel refuses probes"),
    copy("sys/module/{kvm*,vhost*,virtio*,tun,tap,macvtap,hv_*,vfio*,openvswitch,intel_idle,haltpoll,cpuidle_haltpoll,processor,workqueue,rcupdate,rcutree,pcie_aspm,mlx*,ixgbe*,i40e*,ice}/parameters/*", "parameters of KVM, vhost and drivers"),
    copy("sys/module/{kvm*,vhost*,openvswitch}/{version,srcversion,initstate}", "out-of-tree modules"),
    copy("sys/devices/virtual/workqueue/{cpumask,*/cpumask}", "CPUs that may run kernel work"),
    copy("sys/devices/system/{clocksource/clocksource*/*,clockevents/*/current_device}", "clocksource: some make every clock read exit"),
    // Processors.
    copy("proc/cpuinfo", "processor, flags, vmx flags, microcode"),
    copy("sys/devices/system/cpu/{online,offline,possible,present,isolated,nohz_full,kernel_max}", "CPUs present, CPUs isolated"),
    copy("sys/devices/system/cpu/{smt/*,vulnerabilities/*,microcode/*,cpuidle/*,cpufreq/*,intel_pstate/*,amd_pstate/*}", "SMT, mitigations that slow down exits, power"),
    copy("sys/devices/system/cpu/cpu*/{online,cpu_capacity,microcode/version}", "offline CPUs"),
    copy("sys/devices/system/machinecheck/machinecheck*/check_interval", "how often CPUs look for corrected machine checks"),
    copy("sys/devices/system/cpu/cpu*/topology/*", "packages, dies, cores, siblings"),
    copy("sys/devices/system/cpu/cpu*/cache/index*/{id,level,type,size,ways_of_associativity,coherency_line_size,shared_cpu_list}", "CPUs that share caches"),
    copy("sys/devices/system/cpu/cpu*/cpufreq/*", "governor, limits and current frequency"),
    copy("sys/devices/system/cpu/cpu*/power/energy_perf_bias", "bias between performance and energy"),
    copy("etc/{default,sysconfig}/irqbalance", "CPUs that irqbalance keeps away from"),
    copy("sys/firmware/acpi/platform_profile", "firmware's power profile"),
    copy("sys/bus/event_source/devices/*/{type,cpumask}", "performance counters; none in a guest without a PMU"),
    // Memory.
    copy("sys/devices/system/node/{online,possible,has_cpu,has_memory,has_normal_memory}", "NUMA nodes"),
    copy("sys/devices/system/node/node*/{cpulist,cpumap,distance,meminfo}", "CPUs, distances and memory of each node"),
    copy("sys/devices/system/node/node*/hugepages/hugepages-*/*", "huge pages of each node"),
    // Interrupts.
    copy("proc/irq/{default_smp_affinity,*/{smp_affinity_list,effective_affinity_list,affinity_hint,node,spurious}}", "CPUs requested, CPUs effective"),
    copy("sys/kernel/irq/*/*", "name, chip and hardware line of each interrupt"),
    // Devices.
    copy("sys/class/net/*/{address,mtu,speed,duplex,operstate,carrier,type,flags,ifindex,iflink,tx_queue_len,threaded,gro_flush_timeout,napi_defer_hard_irqs,phys_port_name,tun_flags}", "NICs, bridges, taps"),
    copy("sys/class/net/*/queues/rx-*/{rps_cpus,rps_flow_cnt}", "CPUs for receive packet steering"),
    copy("sys/class/net/*/queues/tx-*/{xps_cpus,xps_rxqs,tx_maxrate,byte_queue_limits/limit}", "CPUs of each transmit queue"),
    copy("sys/class/net/*/device/{numa_node,local_cpulist,vendor,device,class,sriov_numvfs,sriov_totalvfs,max_link_speed,max_link_width,current_link_speed,current_link_width,msi_irqs/*}", "node, virtual functions and interrupts of a NIC"),
    copy("sys/class/net/*/{bridge,brport,bonding}/*", "bridges and bonds"),
    copy("sys/class/net/*/macvtap/tap*/dev", "the file of a macvtap, which QEMU opens"),
    copy("sys/bus/pci/devices/*/{class,vendor,device,numa_node,local_cpulist,sriov_numvfs,sriov_totalvfs,msi_irqs/*}", "location of devices"),
    copy("sys/bus/pci/devices/*/{current_link_speed,current_link_width,config}", "links and payloads of PCIe, of devices and of the bridges above them"),
    copy("sys/block/*/{size,ro,queue/{scheduler,rotational,nr_requests,read_ahead_kb,write_cache,nr_hw_queues,nomerges},mq/*/cpu_list}", "disks"),
    copy("sys/bus/vmbus/devices/*/{id,class_id,device_id,vendor,device,numa_node,monitor_id,channel_vp_mapping,channels/*/*}", "Hyper-V's devices and the CPUs of their channels"),
    // Below us.
    copy("sys/hypervisor/{type,guest_type,properties/{capabilities,features},version/*}", "visible hypervisor (Xen)"),
    copy("sys/class/dmi/id/{sys_vendor,product_name,product_version,board_name,bios_vendor,bios_version,bios_date,chassis_type}", "machine or VM, without serial numbers"),
    copy("sys/firmware/devicetree/base/{compatible,model}", "machine, without DMI"),
    // Limits.
    copy("sys/fs/cgroup/**/{cpuset.cpus,cpuset.cpus.effective,cpuset.cpus.partition,cpuset.mems,cpuset.mems.effective,cpu.max,cpu.weight,cpu.stat}", "CPUs and shares of each cgroup (version 2)"),
    copy("sys/fs/cgroup/{cpuset,cpu,cpu*cpuacct}/**/{cpuset.cpus,cpuset.mems,cpuset.effective_cpus,cpuset.sched_load_balance,cpu.cfs_quota_us,cpu.cfs_period_us,cpu.shares,cpu.stat}", "the same (cgroup version 1)"),
    // Names of guest code.
    on_request("proc/kallsyms", "names of the kernel's functions, for exits of this machine's guest code; several MB"),
];

/// Links whose targets are facts; their targets stand in `links.json`, so that a snapshot holds no link.
#[rustfmt::skip]
pub const LINKS: &[(&str, &str)] = &[
    ("sys/class/net/*/{device,master,lower_*,upper_*}", "device and master of a NIC"),
    ("sys/class/net/*/device/{driver,physfn,virtfn*,iommu_group}", "driver; physical and virtual functions"),
    ("sys/bus/pci/devices/*", "bridges above a device"),
    ("sys/bus/pci/devices/*/{driver,physfn,iommu_group}", "devices assigned to guests (vfio-pci)"),
    ("sys/bus/vmbus/devices/*/driver", "drivers of Hyper-V's devices"),
    ("sys/block/*/device", "device of a disk"),
    ("proc/<vm>/fd/*", "KVM, vhost, tap and disk files of a VM"),
    ("proc/<vm>/ns/net", "the network namespace of a VM"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_may_hold_a_secret_is_copied_as_it_is() {
        for wanted in FILES {
            let taken = wanted.pattern;
            assert!(!taken.contains("environ") && !taken.contains("/mem,") && !taken.ends_with("/mem"), "{taken}");
            assert!(!taken.contains("proc/<pid>/cmdline"), "{taken}");
            assert!(
                !taken.contains("cmdline") || taken.contains("saved_cmdlines") || wanted.how == How::Redact,
                "{taken}"
            );
            assert!(!wanted.why.is_empty());
        }
    }
}
