//! How guests are defined.

use super::Rule;
use crate::placement::checks::guest;
use base::Needs;

/// In the order in which equal findings are shown.
pub const RULES: &[Rule] = &[
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
        fix: &[],
        undo: &[],
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
        id: "PLC-FALSESMT",
        check: guest::false_siblings,
        why: "The guest's scheduler keeps threads apart that it takes for siblings, though they are none, and lets \
              true neighbours share. If this is wrong: a guest with one vCPU thread a core may cost more licences.",
        fix: &[
            "virsh edit DOMAIN   # <topology sockets='1' cores='N' threads='1'/>, or pin vCPUs of a shown core to one core",
        ],
        undo: &["virsh edit DOMAIN   # the <topology> element as it was"],
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, CPU model and topology; Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 3.4",
    },
];
