//! What can be wrong with who runs where: rules as data.
//!
//! Each row says what it is called, why it costs, what being wrong about it would cost, what to type, what that needs and
//! where the claim comes from; its `check` returns what it saw. A rule that lacks a fact stays silent.

use super::checks::{evidence, guest, knobs, overlap, pins, place, proposed};
use super::model::Model;
use crate::shared::Hit;
use base::Needs;

/// A rule about machines.
type Rule = crate::shared::Rule<fn(&Model) -> Vec<Hit>>;

/// All rules, in the order in which equal findings are shown.
pub const RULES: &[Rule] = &[
    Rule {
        id: "PLC-OVERLAP",
        check: overlap::overlap,
        why: "A vCPU and the threads that carry its packets cannot run at once on one CPU; while one runs, the other \
              waits. If this is wrong: helpers on a CPU that is busy already, or far from their memory, are slower \
              than before; the change is undone by one command.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "KVM vhost performance tuning to enhance ADC VE throughput, 2017 (x3.15 once); CentOS Stream 9 kernel merge \
                 requests 2813 and 2842 (50-60 % of network throughput)",
    },
    Rule {
        id: "PLC-STARVED",
        check: overlap::starved,
        why: "The thread was ready to run and did not get a CPU; that time is lost to its VM. If this is wrong: a \
              thread moved to a CPU that fills up later starves there; look again after the move.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat, Linux 6.12; the threshold of 0.2 is our own",
    },
    Rule {
        id: "PLC-STACKED",
        check: pins::stacked,
        why: "Two vCPUs on one CPU take turns; to the guest both look like whole CPUs. If this is wrong: a vCPU that \
              mostly sleeps loses nothing by sharing.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "virsh(1), vcpupin; the article named at PLC-OVERLAP shows 1.3 and 4.0 % of a CPU lost by two such vCPUs",
    },
    Rule {
        id: "PLC-SMT",
        check: pins::siblings,
        why: "Two threads of one core share its execution units. A guest that is shown no siblings schedules on them \
              as if they were cores. If this is wrong: a guest that is shown threads may be counted differently by \
              licences, and separate cores may not be free.",
        fix: &[
            "virsh edit DOMAIN   # <cpu><topology sockets='1' cores='N' threads='2'/></cpu>, or pin to separate cores",
        ],
        undo: &["virsh edit DOMAIN   # the <topology> element as it was"],
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, CPU model and topology; Documentation/admin-guide/hw-vuln/core-scheduling.rst",
    },
    Rule {
        id: "PLC-WORKERS",
        check: overlap::workers,
        why: "Each pair of queues has a worker thread in the kernel. Workers without a CPU of their own wait for each \
              other and for the vCPUs. If this is wrong: workers that sleep need no CPU; count those that run.",
        fix: &["virsh edit DOMAIN   # fewer: <driver name='vhost' queues='N'/>, or give the emulator more CPUs"],
        undo: &["virsh edit DOMAIN   # queues as it was"],
        needs: Needs::Reload,
        source: "drivers/vhost/net.c, Linux 6.12; QEMU 9.0, net/tap.c (one vhost device for each pair of queues)",
    },
    Rule {
        id: "EVD-ORDER",
        check: evidence::order,
        why: "CPU time of a thread never falls. A screen with more of it was taken later, whatever its place says. If \
              this is wrong: if the screens are of two boots or two VMs, their times do not compare at all.",
        fix: &["date; top -H -b -n 2 -d 5   # with the date, twice, before and after each change"],
        undo: &[],
        needs: Needs::Nothing,
        source: "top(1), TIME+; Documentation/filesystems/proc.rst, stat (utime, stime)",
    },
    Rule {
        id: "EVD-MASK",
        check: evidence::mask,
        why: "A thread runs within its mask only. Seen outside, either another mask held at that moment, or the \
              pieces of evidence are of different moments. If this is wrong: column P names the last CPU only, so it \
              can contradict a mask and never prove one.",
        fix: &["for t in /proc/PID/task/*; do grep -H Cpus_allowed_list $t/status; done   # the masks in force, now"],
        undo: &[],
        needs: Needs::Nothing,
        source: "top(1), P (last used CPU); sched_setaffinity(2)",
    },
    Rule {
        id: "EVD-PINS",
        check: evidence::pins,
        why: "A pin was told more than once and differently; only one of them held at a time. The last one is taken. \
              If this is wrong: findings about the other placement are missing here.",
        fix: &["virsh emulatorpin DOMAIN   # what is asked for, now"],
        undo: &[],
        needs: Needs::Nothing,
        source: "virsh(1), emulatorpin",
    },
    Rule {
        id: "PLC-BED",
        check: evidence::steal,
        why: "The machine below took time from this one. Waiting that it causes looks like contention here. If this \
              is wrong: none of the other findings can be trusted before this one is gone.",
        fix: &["mpstat -P ALL 2 5   # is it still there?"],
        undo: &[],
        needs: Needs::OuterLevel,
        source: "Documentation/filesystems/proc.rst, /proc/stat (steal), Linux 6.12; the threshold of 5 % is our own",
    },
    Rule {
        id: "PLC-OFFLINE",
        check: pins::offline,
        why: "A pin that names CPUs which do not run is cut down to the others without a word, or refused when none \
              is left. If this is wrong: the CPU may have been switched off for a moment only.",
        fix: &["cat /sys/devices/system/cpu/online"],
        undo: &[],
        needs: Needs::Nothing,
        source: "kernel/sched/syscalls.c, __sched_setaffinity (mask and cpuset), Linux 6.12",
    },
    Rule {
        id: "PLC-ISOL",
        check: pins::isolated,
        why: "No balancing reaches isolated CPUs: a thread with several of them in its mask stays on the one where it \
              began. If this is wrong: isolation by cpuset partitions, which balance inside, shows in the same \
              file.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "Documentation/admin-guide/kernel-parameters.txt, isolcpus=domain, Linux 6.12",
    },
    Rule {
        id: "PLC-FLOAT",
        check: pins::floating,
        why: "Threads that may run anywhere also run on CPUs that others were pinned to, and those cannot move away. \
              If this is wrong: a pinned host without spare CPUs leaves the unpinned nowhere to go.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 9.3; OpenStack Nova, cpu-topologies.rst",
    },
    Rule {
        id: "PLC-OVERCOMMIT",
        check: pins::overcommit,
        why: "Where more vCPUs want to run than there are CPUs, some of them always wait. If this is wrong: vCPUs \
              that sleep cost nothing: a crowded host of idle guests is no fault.",
        fix: &["virsh setvcpus DOMAIN N --config   # fewer vCPUs, from the next start"],
        undo: &["virsh setvcpus DOMAIN M --config   # as many as before"],
        needs: Needs::Reload,
        source: "Red Hat Enterprise Linux 7 Virtualization Deployment and Administration Guide, overcommitting (5:1 under load)",
    },
    Rule {
        id: "PLC-LATE",
        check: pins::late,
        why: "Since Linux 6.4 vhost workers are threads of QEMU that take the mask of the thread that made them. A \
              pin made later need not reach them. If this is wrong: a mask set for one thread is lost when the device \
              is made anew, and at the next start.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "commit 6e890c5d5021 (vhost: use vhost_tasks for worker threads, 6.4); kernel/vhost_task.c, Linux 6.12",
    },
    Rule {
        id: "PLC-ESCAPE",
        check: pins::escaped,
        why: "Vhost threads outside of the VM's cgroup ignore its CPU set and its weight: emulatorpin has no effect \
              on them. If this is wrong: on hosts whose CPUs are full, putting them back cost 50-60 % of network \
              throughput.",
        fix: &["cat /proc/TID/cgroup   # 0::/ is the root"],
        undo: &[],
        needs: Needs::Nothing,
        source: "CentOS Stream 9 kernel merge requests 2813 and 2842",
    },
    Rule {
        id: "PLC-NODE",
        check: place::spans,
        why: "vCPUs on two nodes share memory over the link between them; on one node none of them would need it. If \
              this is wrong: memory does not move with a pin: pinned away from where it lies, everything is remote.",
        fix: &["numastat -p PID   # where the memory lies, before anything is moved"],
        undo: &[],
        needs: Needs::Nothing,
        source: "Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 9.3.2 (10 % or more)",
    },
    Rule {
        id: "PLC-NIC",
        check: place::nic,
        why: "Packets and their descriptors cross the link between the nodes, each way. If this is wrong: a free CPU \
              far away beats a contended one nearby: 512 B and more cost about nothing.",
        fix: &["virsh edit DOMAIN   # the port on the vCPUs' node, if the card has one there; else leave it"],
        undo: &["virsh edit DOMAIN   # the port as it was"],
        needs: Needs::Nothing,
        source: "pcie-bench, SIGCOMM 2018 (64 B device reads of remote memory -9 to -25 %, 128 B -8 %, 512 B about 0, writes 0)",
    },
    Rule {
        id: "PLC-IRQ",
        check: place::irqs,
        why: "Interrupts and their softirqs run before any thread; a vCPU pinned there cannot go elsewhere. If this \
              is wrong: interrupts moved away from the CPU that uses their data cost cache misses instead.",
        fix: &["systemctl stop irqbalance   # or ban these CPUs there (IRQBALANCE_BANNED_CPULIST): it moves them back"],
        undo: &["systemctl start irqbalance"],
        needs: Needs::Nothing,
        source: "Documentation/core-api/irq/irq-affinity.rst, Linux 6.12; irqbalance(1)",
    },
    Rule {
        id: "PLC-RPS",
        check: place::rps,
        why: "Receive packet steering does the network stack's work on the CPUs of its mask, vCPUs or not. If this is \
              wrong: steering removed, one CPU may be too slow for the device.",
        fix: &["echo MASK > /sys/class/net/DEV/queues/rx-N/rps_cpus   # without the vCPUs' CPUs"],
        undo: &[],
        needs: Needs::Nothing,
        source: "Documentation/networking/scaling.rst, Linux 6.12",
    },
    Rule {
        id: "PLC-UNUSED",
        check: guest::unused,
        why: "Each device costs memory and some of them wake the host: a USB tablet is polled, a video card has a \
              timer. If this is wrong: without a video card there is no graphical console.",
        fix: &["virsh edit DOMAIN   # take the elements out"],
        undo: &["virsh edit DOMAIN   # put them back"],
        needs: Needs::Reload,
        source: "Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 2.4",
    },
    Rule {
        id: "PLC-CPUMODE",
        check: guest::cpu_mode,
        why: "A named or missing CPU model leaves out instructions that the processor has. If this is wrong: a guest \
              with host-passthrough migrates to equal hosts only.",
        fix: &["virsh edit DOMAIN   # <cpu mode='host-model'/>, or host-passthrough where it never migrates"],
        undo: &["virsh edit DOMAIN   # the <cpu> element as it was"],
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, CPU model and topology",
    },
    Rule {
        id: "PLC-TOPO",
        check: guest::topology,
        why: "Two rules contradict each other here: one socket for each vCPU spares the guest's scheduler wrong \
              guesses; vCPUs pinned to siblings want the guest to see threads. If this is wrong: licences count \
              sockets, and some guests use no more than two.",
        fix: &["kvmscope compare A B   # the same load with each topology: that decides, no rule does"],
        undo: &["virsh edit DOMAIN   # the <topology> element as it was"],
        needs: Needs::Reload,
        source: "Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 3.4 (sockets); PLC-SMT (threads)",
    },
    Rule {
        id: "PLC-NET",
        check: guest::network,
        why: "An emulated card exits at each register access; without vhost the packets go through QEMU's main loop. \
              If this is wrong: the guest needs drivers for virtio, and vhost's CPU time no longer shows as QEMU's.",
        fix: &["virsh edit DOMAIN   # <model type='virtio'/> and <driver name='vhost'/>"],
        undo: &["virsh edit DOMAIN   # model and driver as they were"],
        needs: Needs::Reload,
        source: "Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 5.2 and 5.3; drivers/vhost/net.c",
    },
    Rule {
        id: "PLC-MQ",
        check: guest::queues,
        why: "One queue is served by one vCPU and one worker, however many there are. If this is wrong: each queue \
              adds a worker that wants a CPU (PLC-WORKERS), and old guests enable them by hand only.",
        fix: &["virsh edit DOMAIN   # <driver name='vhost' queues='N'/>; in the guest: ethtool -L eth0 combined N"],
        undo: &["virsh edit DOMAIN   # queues as it was"],
        needs: Needs::Reload,
        source: "Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 5.4.2",
    },
    Rule {
        id: "PLC-VEPA",
        check: guest::vepa,
        why: "In mode vepa packets between two guests of one card go out to the switch, which must send them back. If \
              this is wrong: mode bridge takes the switch's rules off the traffic between guests.",
        fix: &["virsh edit DOMAIN   # <source dev='DEV' mode='bridge'/>"],
        undo: &["virsh edit DOMAIN   # mode='vepa'"],
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, direct attachment; IEEE 802.1Qbg",
    },
    Rule {
        id: "PLC-DISK",
        check: guest::disks,
        why: "cache=none with io=native and an iothread takes one copy and the main loop out of each request; ide is \
              emulated. If this is wrong: io=native needs cache=none or directsync, and an image file that is not \
              allocated can block it.",
        fix: &[
            "virsh edit DOMAIN   # <driver name='qemu' type='raw' cache='none' io='native' iothread='1'/>, bus virtio",
        ],
        undo: &["virsh edit DOMAIN   # the <driver> element as it was"],
        needs: Needs::Reload,
        source: "Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 7.3 and 7.4; libvirt.org/formatdomain.html",
    },
    Rule {
        id: "PLC-UNSAFE",
        check: guest::unsafe_cache,
        why: "With cache=unsafe the guest's flushes are thrown away: a crash of the host loses or breaks the file \
              system. If this is wrong: safe modes are slower; scratch disks may be meant so.",
        fix: &["virsh edit DOMAIN   # cache='none'"],
        undo: &["virsh edit DOMAIN   # cache='unsafe'"],
        needs: Needs::Reload,
        source: "QEMU 9.0, docs/system/qemu-block-drivers.rst, cache modes",
    },
    Rule {
        id: "PLC-IOTUNE",
        check: guest::throttled,
        why: "The disk's rate is limited by intent; a guest that waits at the limit is no fault of the storage. If \
              this is wrong: without the limit one guest can take the disk from all others.",
        fix: &["virsh blkdeviotune DOMAIN TARGET   # what the limit is, now"],
        undo: &[],
        needs: Needs::Nothing,
        source: "libvirt.org/formatdomain.html, iotune",
    },
    Rule {
        id: "PLC-HUGE",
        check: guest::huge_pages,
        why: "A guest on 4 KiB pages misses the TLB more often, and a device that writes into it misses the IOMMU's. \
              If this is wrong: huge pages are set aside: they are missing elsewhere, and a guest that does not fit \
              does not start.",
        fix: &["virsh edit DOMAIN   # <memoryBacking><hugepages/></memoryBacking>"],
        undo: &["virsh edit DOMAIN   # without <hugepages/>"],
        needs: Needs::Reload,
        source: "pcie-bench, SIGCOMM 2018 (IOMMU with 4 KiB pages, window above 16 MB: 64 B reads 28 to 9.8 Gbit/s, 512 B -2 %)",
    },
    Rule {
        id: "PLC-TUNED",
        check: knobs::settings,
        why: "tuned's profiles for KVM hosts set this otherwise. That is what a profile asks, not what was measured \
              here. If this is wrong: each costs something else: power, memory, fairness. Measure with the load that \
              matters.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "tuned 2.28, profiles throughput-performance and virtual-host",
    },
    Rule {
        id: "PLC-PROPOSAL",
        check: proposed::proposed,
        why: "By the model of shares this placement leaves less wanted and not given; the one that brings most for each \
              command stands first. If this is wrong: the model knows shares of CPUs, not caches or locks; `kvmscope \
              apply --trial 60` measures.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "docs/placement.md, the score; Documentation/scheduler/sched-design-CFS.rst, Linux 6.12",
    },
];
