//! Where memory, cards, interrupts and polling threads are.

use super::Rule;
use crate::placement::checks::{memory, place, polling, queues};
use base::Needs;

/// In the order in which equal findings are shown.
pub const RULES: &[Rule] = &[
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
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "Documentation/networking/scaling.rst, Linux 6.12",
    },
    Rule {
        id: "PLC-MEMORY",
        check: memory::remote,
        why: "Each access of a vCPU to memory of another node crosses the link between the nodes. If this is \
              wrong: the pages may be those that the guest seldom touches: numa_maps counts pages, not accesses.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "Documentation/filesystems/proc.rst, numa_maps, Linux 6.12; Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 9.3; the threshold of 10 % is our own",
    },
    Rule {
        id: "PLC-CPUSET",
        check: memory::narrower,
        why: "A thread runs on CPUs that its mask and its cgroup both have; of a pin beyond the group nothing is \
              left but the rest. If this is wrong: the group may be narrow on purpose, and the pin the mistake.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.effective, Linux 6.12; cpuset(7)",
    },
    Rule {
        id: "PLC-PMD",
        check: polling::shared,
        why: "A polling thread takes its CPU whole, packets or none: a vCPU there gets the rest by turns, a vCPU \
              on the sibling half a core. If this is wrong: where polling threads may sleep (pmd-sleep-max) an \
              idle one leaves its CPU.",
        fix: &["ovs-appctl dpif-netdev/pmd-rxq-show   # who polls what, now"],
        undo: &[],
        needs: Needs::Nothing,
        source: "Open vSwitch 3.1, Documentation/topics/dpdk/pmd.rst and ovs-vswitchd.conf.db(5), pmd-cpu-mask",
    },
    Rule {
        id: "PLC-PMDNODE",
        check: polling::remote,
        why: "Buffers and descriptors of the card lie on its node: polled from another, each packet crosses the \
              link between them. If this is wrong: one busy queue polled from afar is faster than two that share a \
              CPU nearby.",
        fix: &["ovs-appctl dpif-netdev/pmd-rxq-show   # the shares of the CPU that each queue takes, after the change"],
        undo: &[],
        needs: Needs::Nothing,
        source: "Open vSwitch 3.1, Documentation/topics/dpdk/pmd.rst (port and PMD of one NUMA node); pcie-bench, SIGCOMM 2018",
    },
    Rule {
        id: "PLC-PMDLOAD",
        check: polling::unbalanced,
        why: "A full polling thread drops what comes faster, while another of its node polls for nothing. If this is \
              wrong: queues are shared out by what they took in the last minute, and a burst may be over.",
        fix: &[
            "ovs-appctl dpif-netdev/pmd-rxq-rebalance   # or pmd-auto-lb=true in other_config, which does it by itself",
        ],
        undo: &[],
        needs: Needs::Nothing,
        source: "Open vSwitch 3.1, Documentation/topics/dpdk/pmd.rst, and ovs-vswitchd.conf.db(5), pmd-auto-lb-load-threshold \
                 (95 %); the threshold of 50 % is our own",
    },
    Rule {
        id: "PLC-XPS",
        check: queues::xps,
        why: "A sender without a send queue of its own takes one by hash, and contends with others for its lock. \
              If this is wrong: where few packets are sent nobody waits for a queue.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "Documentation/networking/scaling.rst, XPS, Linux 6.12",
    },
    Rule {
        id: "PLC-COALESCE",
        check: queues::coalescing,
        why: "An interrupt costs some microseconds of its CPU, whether it announces one packet or thirty. If this \
              is wrong: waiting for more packets adds to the latency of each: for latency leave it off.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "ethtool(8), -C; Documentation/networking/ethtool-netlink.rst, COALESCE, Linux 6.12; the threshold of 20,000 a second is our own",
    },
    Rule {
        id: "PLC-OFFLOAD",
        check: queues::offloads,
        why: "Small packets put together at the card go through bridge, tap and vhost once; by themselves each \
              goes the whole way. If this is wrong: a packet waits for its followers for the length of one poll; \
              some routers of guests want packets as they came.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "Documentation/networking/segmentation-offloads.rst, GRO, Linux 6.12; ethtool(8), -K",
    },
    Rule {
        id: "PLC-RSS",
        check: queues::few,
        why: "One queue is served by one CPU. A card with more queues spreads flows over as many. If this is \
              wrong: one flow stays on one queue, however many there are.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "Documentation/networking/scaling.rst, RSS, Linux 6.12; ethtool(8), -L; the threshold of 50 % is our own",
    },
    Rule {
        id: "PLC-ONEQUEUE",
        check: queues::unused,
        why: "Packets that arrive on one queue are carried by one worker and handled by one vCPU, however many \
              there are. If this is wrong: a single flow uses one queue, and nothing is wrong then.",
        fix: &[
            "ethtool -L eth0 combined N   # in the guest: older kernels leave all but one off",
            "ethtool -x eth0   # in the guest: does its table name all queues?",
        ],
        undo: &[],
        needs: Needs::Nothing,
        source: "drivers/net/virtio_net.c, Linux 6.12; Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 5.4.2; the thresholds of 50 and 1 % are our own",
    },
    Rule {
        id: "PLC-VMBUS",
        check: queues::channels,
        why: "A channel interrupts the CPU that it was opened for; several on one CPU wait for each other. If this \
              is wrong: a device that is seldom used loses nothing.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "Documentation/ABI/stable/sysfs-bus-vmbus, channels/NN/cpu, Linux 6.12",
    },
];
