//! Where memory, cards, interrupts and polling threads are.

use super::Rule;
use crate::placement::checks::{cells, dropped, isolated, memory, place, polling, queues, steering};
use crate::placement::culprits;
use base::FactKind;
use base::rule::limit;

/// In the order in which equal findings are shown.
pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "PLC-FARIRQ",
        per: "NIC",
        looks_at: "The node of each card, and the nodes of the CPUs that its interrupts come to between two samples.",
        requires: &[FactKind::Nodes, FactKind::Cards, FactKind::Interrupts],
        limits: &[limit("interrupts of a card on another node", cells::FAR_IRQS, "per second")],
        why: "A card writes packets into the caches and the memory of its own node; a CPU of another node fetches each packet from there. Caveat: \
              if the guest's threads are on that other node, the packets have to go there anyway.",
        source: "Documentation/networking/scaling.rst and core-api/irq/irq-affinity.rst, Linux 6.12; the threshold is our own",
        ..Rule::checked_by(cells::far_interrupts)
    },
    Rule {
        id: "PLC-NODE",
        per: "VM",
        looks_at: "Nodes over which the pinned vCPUs of a VM are spread although one node has enough CPUs for them.",
        requires: &[FactKind::Nodes, FactKind::Masks],
        why: "vCPUs on two nodes share memory over the interconnect; on one node none of them would need it. Caveat: \
            memory does not move with a pin; if its memory is elsewhere, a pinned VM has only remote memory.",
        fix: &["numastat -p PID   # which nodes hold the memory, before anything is moved"],
        source: "Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 9.3.2 (10 % or more)",
        ..Rule::checked_by(place::spans)
    },
    Rule {
        id: "PLC-NIC",
        per: "VM",
        looks_at: "The node of each NIC and assigned device of a VM, against the nodes of its vCPUs.",
        requires: &[FactKind::Nodes, FactKind::Masks, FactKind::Cards, FactKind::Definitions],
        why: "Packets and their descriptors cross the interconnect in both directions. Caveat: an idle remote CPU \
            beats a contended local one; packets of 512 B and more lose next to nothing.",
        fix: &["virsh edit DOMAIN   # use a port on the vCPUs' node, if the card has one there; else leave it"],
        undo: &["virsh edit DOMAIN   # the port as it was"],
        source: "pcie-bench, SIGCOMM 2018 (64 B device reads of remote memory -9 to -25 %, 128 B -8 %, 512 B about 0, writes 0)",
        ..Rule::checked_by(place::nic)
    },
    Rule {
        id: "PLC-CARD",
        per: "NIC",
        looks_at: "How many packets a card's receive ring holds and how many queues are enabled (ethtool -g, -l), and the packets that it counted \
                   as lost (ethtool -S).",
        requires: &[FactKind::CardCounters],
        limits: &[limit("of what there could be", dropped::FEW, "share")],
        why: "Packets that arrive while the CPU of a queue is busy wait in the ring, and are lost if it is full; each queue interrupts one CPU, \
              which handles all of its packets. Caveat: in a long ring packets wait longer and fall out of the caches, and a host whose CPUs \
              belong to guests may want few queues.",
        source: "ethtool(8), -g and -l; Documentation/networking/scaling.rst, Linux 6.12; the threshold is our own",
        ..Rule::checked_by(dropped::small)
    },
    Rule {
        id: "PLC-IRQ",
        per: "NIC or interrupt",
        looks_at: "Interrupts of NICs on CPUs of vCPUs, with their rate and the softirq time of the CPU; without rates, \
            those that are routed to CPUs of vCPUs alone.",
        requires: &[FactKind::Interrupts, FactKind::Masks],
        limits: &[
            limit("interrupts per second", culprits::MANY_PER_S, ""),
            limit("share of the CPU in interrupts and softirqs", culprits::MUCH_INTERRUPTED, "share"),
        ],
        why: "Interrupts and their softirqs preempt every thread; a vCPU pinned there cannot move away. Caveat: \
            interrupts on another CPU than the one that uses their data cost cache misses instead.",
        source: "Documentation/core-api/irq/irq-affinity.rst, Linux 6.12; irqbalance(1)",
        ..Rule::checked_by(place::irqs)
    },
    Rule {
        id: "PLC-ISOLIRQ",
        per: "interrupt or CPU",
        looks_at: "Interrupts of devices on isolated CPUs, and of the timer on those in nohz_full, between two samples of /proc/interrupts.",
        requires: &[FactKind::Isolated, FactKind::Interrupts],
        limits: &[
            limit("interrupts of a device per second", culprits::MANY_PER_S, ""),
            limit("timer interrupts per second", isolated::TICKING, ""),
        ],
        why: "isolcpus and nohz_full keep tasks and ticks away, but not device interrupts: these follow their affinity masks. The tick continues \
              while more than one task is runnable, or a timer needs it. Caveat: a device that is assigned to a guest or polled there may belong \
              on that CPU.",
        source: "Documentation/admin-guide/kernel-parameters.txt, isolcpus (managed_irq) and nohz_full, and timers/no_hz.rst, Linux 6.12; the thresholds are our own",
        ..Rule::checked_by(isolated::interrupts)
    },
    Rule {
        id: "PLC-RPS",
        per: "NIC",
        looks_at: "rps_cpus of the NICs' receive queues, against the CPUs of vCPUs.",
        requires: &[FactKind::Cards, FactKind::Masks],
        why: "Receive packet steering runs the network stack on the CPUs of its mask, also where vCPUs run. Caveat: \
            without steering, one CPU may be too slow for the device.",
        source: "Documentation/networking/scaling.rst, Linux 6.12",
        ..Rule::checked_by(steering::rps)
    },
    Rule {
        id: "PLC-MEMORY",
        per: "VM",
        looks_at: "Where numa_maps finds the memory of a VM, against the nodes of its vCPUs.",
        requires: &[FactKind::Nodes, FactKind::Masks, FactKind::GuestMemory],
        limits: &[limit("share of the memory on other nodes", memory::MUCH_REMOTE, "share")],
        why: "Each access of a vCPU to memory of another node crosses the interconnect. Caveat: the guest may seldom \
            touch these pages; numa_maps counts pages, not accesses.",
        source: "Documentation/filesystems/proc.rst, numa_maps, Linux 6.12; Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 9.3; the threshold of 10 % is our own",
        ..Rule::checked_by(memory::remote)
    },
    Rule {
        id: "PLC-CPUSET",
        per: "VM",
        looks_at: "CPUs that a thread's cgroup allows, against the pin that libvirt was asked to set.",
        requires: &[FactKind::Groups, FactKind::Definitions],
        why: "A thread runs only on CPUs that are in its mask and in its cgroup; the kernel ignores the rest of the \
            pin. Caveat: the cgroup may be narrow on purpose, and the pin may be the mistake.",
        source: "Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.effective, Linux 6.12; cpuset(7)",
        ..Rule::checked_by(memory::narrower)
    },
    Rule {
        id: "PLC-PMD",
        per: "VM",
        looks_at: "Polling threads on the CPU or the core of a pinned vCPU.",
        requires: &[FactKind::Cpus, FactKind::Masks],
        why: "A polling thread uses 100 % of its CPU, with or without packets: a vCPU on that CPU has to take turns \
            with it, and a vCPU on the sibling thread gets half a core. Caveat: where polling threads may sleep \
            (pmd-sleep-max), an idle one frees its CPU.",
        fix: &["ovs-appctl dpif-netdev/pmd-rxq-show   # current assignment of queues to polling threads"],
        source: "Open vSwitch 3.1, Documentation/topics/dpdk/pmd.rst and ovs-vswitchd.conf.db(5), pmd-cpu-mask",
        ..Rule::checked_by(polling::shared)
    },
    Rule {
        id: "PLC-PMDCOUNT",
        per: "host",
        looks_at: "The number of polling threads that an option or a plan of service chains asks for, against those that run.",
        requires: &[FactKind::Switch],
        why: "The plan assumes this many polling CPUs: with fewer, a chain carries less than planned, and each additional one takes a CPU from \
              vCPUs. Open vSwitch starts one polling thread for each CPU of pmd-cpu-mask, and assigns the queues of a node to the threads there \
              by their load. Caveat: a thread that is alone on its node serves no port of another one.",
        fix: &["ovs-appctl dpif-netdev/pmd-rxq-show   # which thread serves which queue, after the change"],
        source: "Open vSwitch 3.1, Documentation/topics/dpdk/pmd.rst and ovs-vswitchd.conf.db(5), pmd-cpu-mask",
        ..Rule::checked_by(polling::asked)
    },
    Rule {
        id: "PLC-PMDNODE",
        per: "polling thread",
        looks_at: "The node of each NIC, against that of the polling thread that serves its queue.",
        requires: &[FactKind::Switch, FactKind::Nodes],
        why: "The card's buffers and descriptors are on its own node: polled from another node, each packet crosses \
            the interconnect. Caveat: one busy queue polled remotely is faster than two that share a local CPU.",
        fix: &["ovs-appctl dpif-netdev/pmd-rxq-show   # CPU share of each queue, after the change"],
        source: "Open vSwitch 3.1, Documentation/topics/dpdk/pmd.rst (port and PMD of one NUMA node); pcie-bench, SIGCOMM 2018",
        ..Rule::checked_by(polling::remote)
    },
    Rule {
        id: "PLC-PMDLOAD",
        per: "polling thread",
        looks_at: "Load of polling threads: a saturated one while another on the same node has room.",
        requires: &[FactKind::Switch],
        limits: &[
            limit("saturated, share of a CPU", polling::FULL, "share"),
            limit("with room, share of a CPU at most", polling::ROOM, "share"),
        ],
        why: "A saturated polling thread drops packets while another one on its node is idle. Caveat: queues are \
            assigned by their load of the last minute, and a burst may be over.",
        fix: &["ovs-appctl dpif-netdev/pmd-rxq-rebalance   # or pmd-auto-lb=true in other_config, which rebalances \
             automatically"],
        source: "Open vSwitch 3.1, Documentation/topics/dpdk/pmd.rst, and ovs-vswitchd.conf.db(5), pmd-auto-lb-load-threshold \
                 (95 %); the threshold of 50 % is our own",
        ..Rule::checked_by(polling::unbalanced)
    },
    Rule {
        id: "PLC-ONEQUEUE",
        per: "queue",
        looks_at: "The load of each queue of a polling thread that is saturated.",
        requires: &[FactKind::Switch],
        limits: &[
            limit("saturated, share of a CPU", polling::FULL, "share"),
            limit("by one queue, share of that", polling::OF_ONE, "share"),
        ],
        why: "A queue is served by one polling thread. Where one queue fills it, moving queues to other threads changes nothing: only more queues, between \
            which the card or the guest spreads its flows, use more CPUs. Caveat: one flow stays in one queue.",
        source: "Open vSwitch 3.1, Documentation/topics/dpdk/pmd.rst (multiqueue) and vhost-user.rst; the threshold of 80 % is our own",
        ..Rule::checked_by(polling::one_queue)
    },
    Rule {
        id: "PLC-XPS",
        per: "NIC",
        looks_at: "xps_cpus of NICs that VMs use, against the CPUs of vhost workers and vCPUs.",
        requires: &[FactKind::Cards, FactKind::Masks],
        why: "A sender without its own send queue picks one by hash, and contends with others for its lock. \
            Caveat: with few packets nothing waits for a queue.",
        source: "Documentation/networking/scaling.rst, XPS, Linux 6.12",
        ..Rule::checked_by(steering::xps)
    },
    Rule {
        id: "PLC-COALESCE",
        per: "NIC",
        looks_at: "rx-usecs and adaptive-rx of a NIC, with the rate of its interrupts.",
        requires: &[FactKind::Cards],
        limits: &[limit("interrupts per second on one CPU", queues::OFTEN_PER_S, "")],
        why: "An interrupt costs its CPU some microseconds, whether it announces one packet or thirty. Caveat: \
            coalescing adds latency to each packet; leave it off where latency matters most.",
        source: "ethtool(8), -C; Documentation/networking/ethtool-netlink.rst, COALESCE, Linux 6.12; the threshold \
            of 20,000 per second is our own",
        ..Rule::checked_by(queues::coalescing)
    },
    Rule {
        id: "PLC-OFFLOAD",
        per: "NIC",
        looks_at: "generic-receive-offload of NICs that VMs use.",
        requires: &[FactKind::Cards],
        why: "GRO merges small packets at the card, and they pass bridge, tap and vhost once; without it each takes \
            the whole path. Caveat: a packet waits up to one poll for its followers, and some guest routers need \
            packets as they arrived.",
        source: "Documentation/networking/segmentation-offloads.rst, GRO, Linux 6.12; ethtool(8), -K",
        ..Rule::checked_by(queues::offloads)
    },
    Rule {
        id: "PLC-RSS",
        per: "NIC",
        looks_at: "Queues in use against those that the NIC has, with the softirq time of the CPUs that serve it.",
        requires: &[FactKind::Cards, FactKind::Usage],
        limits: &[limit("softirq share of a CPU", queues::FULL_SOFTIRQ, "share")],
        why: "One CPU serves one queue; a card with more queues spreads flows over as many CPUs. Caveat: a single \
            flow stays on one queue, however many there are.",
        source: "Documentation/networking/scaling.rst, RSS, Linux 6.12; ethtool(8), -L; the threshold of 50 % is our own",
        ..Rule::checked_by(steering::few)
    },
    Rule {
        id: "PLC-ONEQUEUE",
        per: "VM",
        looks_at: "Load of the vhost workers of a VM with several queues: some loaded, the others idle.",
        requires: &[FactKind::Definitions, FactKind::Ran],
        limits: &[
            limit("loaded, share of a CPU", queues::LOADED, "share"),
            limit("idle, share of a CPU at most", queues::IDLE, "share"),
        ],
        why: "Packets of one queue are carried by one worker and handled by one vCPU, however many there are. \
            Caveat: a single flow uses one queue; then nothing is wrong.",
        fix: &[
            "ethtool -L eth0 combined N   # in the guest: older kernels enable only one queue",
            "ethtool -x eth0   # in the guest: does the table list all queues?",
        ],
        source: "drivers/net/virtio_net.c, Linux 6.12; Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 5.4.2; the thresholds of 50 and 1 % are our own",
        ..Rule::checked_by(queues::unused)
    },
    Rule {
        id: "PLC-VMBUS",
        per: "device",
        looks_at: "The CPUs that the VMBus channels of a Hyper-V device interrupt: one for all of them.",
        why: "A VMBus channel interrupts the CPU that it was opened for; several channels on one CPU wait for each \
            other. Caveat: a device that is seldom used loses nothing.",
        source: "Documentation/ABI/stable/sysfs-bus-vmbus, channels/NN/cpu, Linux 6.12",
        ..Rule::checked_by(queues::channels)
    },
];
