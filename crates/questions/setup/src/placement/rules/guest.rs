//! How guests are defined.

use super::Rule;
use crate::placement::checks::{
    cards, cell_memory, cells, defined, disks, guest, memory, pod, servers, shape, sockets,
};
use base::rule::limit;
use base::{FactKind, Needs};

/// In the order in which equal findings are shown.
pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "PLC-TCG",
        per: "VM",
        looks_at: "A definition or a command that asks for QEMU's translator, TCG, and threads of vCPUs that are named after it.",
        requires: &[FactKind::Definitions],
        why: "QEMU translates every instruction of this guest; with KVM the processor runs them itself. Caveat: a guest \
            of another architecture, or a host without virtualization, has no choice.",
        fix: &[
            "ls -l /dev/kvm   # it has to be there: else the module kvm_intel or kvm_amd is to be loaded, or virtualization to be enabled in the firmware",
        ],
        needs: Needs::Reload,
        source: "QEMU 7.2, accel/tcg/tcg-accel-ops-mttcg.c (the thread's name is CPU n/TCG); libvirt.org/formatdomain.html, domain type",
        ..Rule::checked_by(guest::translated)
    },
    Rule {
        id: "PLC-REFUSED",
        per: "VM and field",
        looks_at: "Definitions of KubeVirt: dedicatedCpuPlacement with a request for CPUs that is not the limit; realtime without it or without the nodes \
            of the guest's memory.",
        requires: &[FactKind::Definitions],
        why: "Its admission takes these fields only together, so the VM does not start or is not changed. Caveat: an instance type or a policy of the \
            cluster may add fields that are not in the definition; another version may ask for less.",
        needs: Needs::Reload,
        source: "KubeVirt 1.3, pkg/virt-api/webhooks/validating-webhook/admitters/vmi-create-admitter.go; user guide, dedicated CPU resources and realtime",
        ..Rule::checked_by(pod::refused)
    },
    Rule {
        id: "PLC-CELLS",
        per: "VM",
        looks_at: "Complete definitions: guests with more vCPUs or memory than a node of the host, but a single virtual node.",
        requires: &[FactKind::Nodes, FactKind::Definitions],
        why: "The guest's kernel keeps a task near its memory only where it knows of nodes. Without cells its work and its memory are mixed over the \
            host's nodes, and half of all accesses go to the other one. Caveat: a guest that is migrated needs a host with as many nodes.",
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, guest NUMA topology and numatune",
        ..Rule::checked_by(cells::wide)
    },
    Rule {
        id: "PLC-CELLMEMORY",
        per: "VM",
        looks_at: "Guests with several virtual nodes: the nodes to which each cell's memory is bound, and where it is (numa_maps), against the \
                   nodes of the CPUs of its vCPUs.",
        requires: &[FactKind::Nodes, FactKind::Masks, FactKind::Definitions],
        limits: &[limit("of its memory, beyond what its cells have there", memory::MUCH_REMOTE, "share")],
        why: "The guest's kernel keeps a task near the memory of its cell. If that memory is on another node than the cell's vCPUs, each access \
              that looks local is remote. Caveat: memory follows a changed definition only at the next start, and needs that much free memory there.",
        source: "libvirt.org/formatdomain.html, guest NUMA topology and numatune (memnode); the threshold is our own",
        ..Rule::checked_by(cell_memory::cells)
    },
    Rule {
        id: "PLC-MIGRATING",
        per: "host",
        looks_at: "Pages that automatic NUMA balancing moves between two samples, and guests whose vCPUs may run on several nodes.",
        requires: &[FactKind::PagesMoved, FactKind::Nodes, FactKind::Masks],
        limits: &[limit("moved", cells::MOVED_PAGES, "pages per second")],
        why: "Each page that moves is unmapped first, so a guest that touches it waits, and is copied by a CPU. A guest that is bound to one node has \
            nothing to move. Caveat: after a start, or after threads were moved, it ends by itself.",
        source: "Documentation/admin-guide/sysctl/kernel.rst, numa_balancing, Linux 6.12; the threshold is our own",
        ..Rule::checked_by(cells::balancing)
    },
    Rule {
        id: "PLC-TOPOEXT",
        per: "VM",
        looks_at: "On AMD's processors: a topology with threads, and a CPU of the guest without the feature topoext.",
        requires: &[FactKind::Definitions, FactKind::Processor],
        why: "A guest on AMD learns which of its CPUs share a core from the CPUID leaves of topoext; with host-passthrough QEMU exposes them only \
              on request. Without them the guest sees a core for each thread. Caveat: QEMU's EPYC models have them by default.",
        needs: Needs::Reload,
        source: "QEMU 10.0, target/i386/cpu.c (no_autoenable_flags of CPUID 8000_0001 ECX)",
        ..Rule::checked_by(shape::topoext)
    },
    Rule {
        id: "PLC-SOCKETS",
        per: "VM",
        looks_at: "Windows guests with more than two sockets: CPU time of the vCPUs beyond the second socket.",
        requires: &[FactKind::Definitions, FactKind::Ran],
        limits: &[
            limit("sockets that a client's Windows uses", sockets::USED as f64, ""),
            limit("ran by a vCPU that is not used, share of a CPU at most", sockets::UNUSED, "share"),
        ],
        why: "Windows for clients (10, 11) uses two sockets at most, some editions one or four, and leaves the vCPUs of the others idle; it uses \
              all cores. Caveat: Windows Server uses all sockets, so only vCPUs that were seen idle, or a definition that names a client, are \
              evidence.",
        needs: Needs::Reload,
        source: "Microsoft, Windows 11 editions compared (sockets); libvirt.org/formatdomain.html, CPU model and topology; the thresholds are our own",
        ..Rule::checked_by(sockets::unused)
    },
    Rule {
        id: "PLC-HYPERV",
        per: "VM",
        looks_at: "Complete definitions and command lines of Windows guests: their Hyper-V enlightenments and their clock.",
        requires: &[FactKind::Definitions],
        why: "Without a synthetic timer Windows programs an emulated one for every tick, each an exit to KVM or QEMU, however idle it is. The \
            parts depend on each other, so they are switched on as a set. Caveat: a guest that was installed without them takes them from \
            the next start on.",
        needs: Needs::Reload,
        source: "QEMU 10.0, docs/system/i386/hyperv.rst; libvirt.org/formatdomain.html, hypervisor features",
        ..Rule::checked_by(shape::enlightenments)
    },
    Rule {
        id: "PLC-CLOCKS",
        per: "VM and clock",
        looks_at: "Timers and features of the CPU that a definition takes away, and emulated timers that it asks for.",
        requires: &[FactKind::Definitions],
        why: "A guest can read the time millions of times per second without an exit; a clock that QEMU or KVM emulates costs microseconds each \
              time. Caveat: it may have been removed on purpose, to migrate to other hosts.",
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, time keeping; Documentation/virt/kvm/x86/timekeeping.rst, Linux 6.12",
        ..Rule::checked_by(defined::clocks)
    },
    Rule {
        id: "PLC-LIMIT",
        per: "VM",
        looks_at: "Quotas and weights of CPU time in a definition.",
        requires: &[FactKind::Definitions],
        why: "A quota below one CPU stops a vCPU in every period in which it wants more; a small weight lets others run first. Caveat: that may \
              be what the VM's owner pays for; cpu.stat shows whether it is reached (PLC-QUOTA).",
        source: "libvirt.org/formatdomain.html, CPU tuning; Documentation/scheduler/sched-bwc.rst, Linux 6.12; the threshold, a quarter of the usual weight, is our own",
        ..Rule::checked_by(defined::limits)
    },
    Rule {
        id: "PLC-FIFO",
        per: "VM",
        looks_at: "Real-time policies of vCPUs in a definition: all of them, or the priority of the kernel's own threads.",
        requires: &[FactKind::Definitions],
        why: "A vCPU with such a policy runs until it sleeps. Where all have one, the guest's own housekeeping and the host's threads on those CPUs \
            starve, and at priority 99 those that migrate tasks and watch for lockups, too. Caveat: on CPUs that are isolated for it, and \
            with vCPU 0 left ordinary, it is what a real-time guest needs.",
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, vcpusched; sched(7)",
        ..Rule::checked_by(defined::realtime)
    },
    Rule {
        id: "PLC-RAM",
        per: "VM",
        looks_at: "Whole definitions: memory that a switch in user space cannot map, a balloon, pages of 4 KiB under a large guest.",
        requires: &[FactKind::Definitions],
        limits: &[
            limit("memory on small pages", defined::LARGE as f64, "bytes"),
            limit("left by the balloon, of the VM's memory", defined::BALLOON, "share"),
        ],
        why: "A switch in user space reaches what the guest shares with it alone; what a guest may not use it swaps or drops from its caches; with pages of 4 KiB each miss of the TLB walks two page tables. Caveat: huge \
            pages of the host are not available to others, and transparent ones may be there already.",
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, memory allocation and backing; the thresholds are our own",
        ..Rule::checked_by(defined::memory)
    },
    Rule {
        id: "PLC-NOVCPU",
        per: "VM",
        looks_at: "Pins of vCPUs that a domain does not have.",
        requires: &[FactKind::Definitions],
        why: "libvirt ignores such a pin, so a vCPU that was meant may run anywhere. Caveat: it may be kept for vCPUs that are added later.",
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, CPU tuning",
        ..Rule::checked_by(defined::pins)
    },
    Rule {
        id: "PLC-UNUSED",
        per: "VM",
        looks_at: "Sound cards, tablets and other devices in a domain's XML that a server does not need.",
        requires: &[FactKind::Definitions],
        why: "Each device costs memory, and some wake the host: a USB tablet is polled, a video card has a timer. \
            Caveat: without a video card there is no graphical console.",
        fix: &["virsh edit DOMAIN   # remove the elements"],
        undo: &["virsh edit DOMAIN   # put them back"],
        needs: Needs::Reload,
        source: "Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 2.4",
        ..Rule::checked_by(guest::unused)
    },
    Rule {
        id: "PLC-CPUMODE",
        per: "VM",
        looks_at: "The CPU mode of a domain: neither host-passthrough, host-model nor maximum.",
        requires: &[FactKind::Definitions],
        why: "A named or missing CPU model hides instructions that the processor has. Caveat: a guest with \
            host-passthrough can migrate only to identical hosts.",
        fix: &["virsh edit DOMAIN   # <cpu mode='host-model'/>, or host-passthrough where it never migrates"],
        undo: &["virsh edit DOMAIN   # the <cpu> element as it was"],
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, CPU model and topology",
        ..Rule::checked_by(guest::cpu_mode)
    },
    Rule {
        id: "PLC-TOPO",
        per: "VM",
        looks_at: "A guest that sees one thread per core, while its vCPUs are pinned to sibling threads.",
        requires: &[FactKind::Cores, FactKind::Masks, FactKind::Definitions],
        why: "Two rules disagree here: one socket per vCPU saves the guest's scheduler from wrong guesses; vCPUs \
            pinned to siblings need a guest that sees threads. Caveat: some licences count sockets, and some guests \
            use only two.",
        fix: &["kvmscope compare A B   # measure the same load with each topology; no rule can decide it"],
        undo: &["virsh edit DOMAIN   # the <topology> element as it was"],
        needs: Needs::Reload,
        source: "Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 3.4 (sockets); PLC-SMT (threads)",
        ..Rule::checked_by(guest::topology)
    },
    Rule {
        id: "PLC-NET",
        per: "interface",
        looks_at: "Interfaces with an emulated NIC, with driver qemu instead of vhost, or on a host that has not loaded vhost_net.",
        requires: &[FactKind::Definitions],
        why: "An emulated card causes an exit per register access; without vhost, packets go through QEMU's main \
            loop. Caveat: the guest needs virtio drivers, and vhost's CPU time no longer counts as QEMU's.",
        needs: Needs::Reload,
        source: "Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 5.2 and 5.3; drivers/vhost/net.c",
        ..Rule::checked_by(cards::network)
    },
    Rule {
        id: "PLC-MQ",
        per: "interface",
        looks_at: "One queue in a VM with several vCPUs, where a vhost worker is loaded.",
        requires: &[FactKind::Definitions, FactKind::Ran],
        limits: &[
            limit("vCPUs", cards::MANY_VCPUS as f64, ""),
            limit("load of the worker, share of a CPU", cards::LOADED, "share"),
        ],
        why: "One vCPU and one worker serve one queue, however many vCPUs there are. Caveat: each queue adds a \
            worker that needs a CPU (PLC-WORKERS), and on old guests queues must be enabled by hand.",
        fix: &["virsh edit DOMAIN   # <driver name='vhost' queues='N'/>; in the guest: ethtool -L eth0 combined N"],
        undo: &["virsh edit DOMAIN   # queues as it was"],
        needs: Needs::Reload,
        source: "Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 5.4.2",
        ..Rule::checked_by(cards::queues)
    },
    Rule {
        id: "PLC-VEPA",
        per: "NIC",
        looks_at: "macvtap interfaces in mode vepa: several guests on one NIC.",
        requires: &[FactKind::Definitions],
        why: "In mode vepa, packets between two guests of one card go out to the external switch, which must send \
            them back. Caveat: in mode bridge the switch's rules no longer apply to traffic between guests.",
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, direct attachment; IEEE 802.1Qbg",
        ..Rule::checked_by(cards::vepa)
    },
    Rule {
        id: "PLC-MAINLOOP",
        per: "VM",
        looks_at: "How much of a CPU the emulator's thread ran, and which disks have no thread of their own.",
        requires: &[FactKind::Ran],
        limits: &[limit("ran, share of a CPU", disks::FULL, "share")],
        why: "One thread serves all devices without an iothread, the monitor and the timers: once it is full, requests wait for each other \
            however idle the disks are. Caveat: a migration and a backup work there, too.",
        needs: Needs::Reload,
        source: "QEMU 9.0, docs/devel/multiple-iothreads.rst; libvirt.org/formatdomain.html, IOThreads; the threshold is our own",
        ..Rule::checked_by(disks::main_loop)
    },
    Rule {
        id: "PLC-SERVER",
        per: "VM",
        looks_at: "How much of a CPU programs ran that serve a device of a VM beside QEMU: virtiofsd, passt, qemu-storage-daemon.",
        requires: &[FactKind::Ran],
        limits: &[limit("ran, share of a CPU", disks::FULL, "share")],
        why: "The guest's request is answered once that program has handled it: where one thread does it all and is full, requests wait for each \
            other while vCPUs and CPUs idle. Caveat: what it spends its time with, and whether more threads of it help, only a profile shows \
            (perf top -t).",
        needs: Needs::Reload,
        source: "virtiofsd 1.10, README (--thread-pool-size); libvirt.org/formatdomain.html, Filesystems; passt(1); the threshold is our own",
        ..Rule::checked_by(servers::full)
    },
    Rule {
        id: "PLC-IOTHREAD",
        per: "iothread",
        looks_at: "How much of a CPU each iothread ran, and which disks it serves.",
        requires: &[FactKind::Ran],
        limits: &[limit("ran, share of a CPU", disks::FULL, "share")],
        why: "An iothread serves the requests of all its disks one after the other: once it is full, they wait for it however idle disks and CPUs \
            are. Caveat: while it polls for requests (poll-max-ns) it runs without work as well.",
        needs: Needs::Reload,
        source: "QEMU 9.0, docs/devel/multiple-iothreads.rst; libvirt.org/formatdomain.html, IOThreads and iothreads of a disk's driver; the threshold is our own",
        ..Rule::checked_by(disks::iothreads)
    },
    Rule {
        id: "PLC-DISK",
        per: "disk",
        looks_at: "Bus, cache, io and iothread of each disk in a domain's XML.",
        requires: &[FactKind::Definitions],
        why: "cache=none with io=native and an iothread removes one copy and QEMU's main loop from each request; IDE \
            is emulated. Caveat: io=native needs cache=none or directsync, and a sparse image file can block it.",
        needs: Needs::Reload,
        source: "Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 7.3 and 7.4; libvirt.org/formatdomain.html",
        ..Rule::checked_by(disks::disks)
    },
    Rule {
        id: "PLC-UNSAFE",
        per: "disk",
        looks_at: "Disks with cache='unsafe'.",
        requires: &[FactKind::Definitions],
        why: "With cache=unsafe the guest's flushes are ignored: a host crash can corrupt the guest's file system. \
            Caveat: safe modes are slower; for scratch disks it may be deliberate.",
        fix: &["virsh edit DOMAIN   # cache='none'"],
        undo: &["virsh edit DOMAIN   # cache='unsafe'"],
        needs: Needs::Reload,
        source: "QEMU 9.0, docs/system/qemu-block-drivers.rst, cache modes",
        ..Rule::checked_by(disks::unsafe_cache)
    },
    Rule {
        id: "PLC-IOTUNE",
        per: "disk",
        looks_at: "Disks with <iotune>, or throttling. options of QEMU.",
        requires: &[FactKind::Definitions],
        why: "The disk's rate is limited on purpose; a guest that waits at the limit is not a storage problem. \
            Caveat: without the limit, one guest can take the disk from all others.",
        fix: &["virsh blkdeviotune DOMAIN TARGET   # the current limit"],
        source: "libvirt.org/formatdomain.html, iotune",
        ..Rule::checked_by(disks::throttled)
    },
    Rule {
        id: "PLC-HUGE",
        per: "VM",
        looks_at: "VMs without <hugepages/> that have an assigned device or a vhostuser interface.",
        requires: &[FactKind::Definitions],
        why: "A guest on 4 KiB pages has more TLB misses, and a device that writes into it more IOTLB misses. \
            Caveat: reserved huge pages are not available to others, and a guest that does not fit does not start.",
        fix: &["virsh edit DOMAIN   # <memoryBacking><hugepages/></memoryBacking>"],
        undo: &["virsh edit DOMAIN   # without <hugepages/>"],
        needs: Needs::Reload,
        source: "pcie-bench, SIGCOMM 2018 (IOMMU with 4 KiB pages, window above 16 MB: 64 B reads 28 to 9.8 Gbit/s, 512 B -2 %)",
        ..Rule::checked_by(guest::huge_pages)
    },
    Rule {
        id: "PLC-FALSESMT",
        per: "VM",
        looks_at: "Threads per core that a guest sees, against the pins of its vCPUs: siblings that are none on the \
            host.",
        requires: &[FactKind::Cores, FactKind::Definitions],
        why: "The guest's scheduler separates threads that it wrongly takes for siblings, and puts busy threads on real siblings. Caveat: a guest \
              with one thread per core may need more licences.",
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, CPU model and topology; Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 3.4",
        ..Rule::checked_by(guest::false_siblings)
    },
];
