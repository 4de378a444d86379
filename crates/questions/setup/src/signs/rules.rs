//! The rules: what is told apart, put together.

use super::Scene;
use super::checks::{busy, caches, clock, firmware, storage, tracer};
use base::Needs;
use base::rule::{Words, limit};
use facts::rule::Hit;

pub(super) type Check = fn(&Scene<'_>) -> Vec<Hit>;
pub(super) type Rule = facts::rule::Rule<Check>;

/// In the order in which equal findings are shown.
pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "SGN-SMI",
        per: "machine",
        looks_at: "What hwlatdetect found while the kernel did nothing, with the SMIs that were counted and what programs measured on the same text's other machines.",
        limits: &[limit("by which two longest times may differ and be the same", firmware::ALIKE, "share")],
        why: "hwlatdetect spins with interrupts off: what it misses was taken by firmware (system management interrupts) or, inside a VM, by the host. No \
              setting of KVM, of the scheduler or of idle states changes that, and a guest has the same gaps. Caveat: times that are alike are no proof; \
              compare when they came.",
        fix: &[
            "turbostat --quiet --show CPU,SMI --interval 60   # on the bare host: does the count grow, and how often?",
            "dmidecode -s bios-version   # then the firmware's setup: power capping, memory patrol scrub, USB legacy and hardware monitoring off, or its update",
        ],
        needs: Needs::Reboot,
        source: "Documentation/trace/hwlat_detector.rst, Linux 6.12; Intel SDM volume 4, MSR_SMI_COUNT; turbostat(8)",
        ..Rule::checked_by(firmware::gaps as Check)
    },
    Rule {
        id: "SGN-VHOST",
        per: "thread",
        looks_at: "Threads of vhost that run for a whole CPU, and the offloads of guests' cards.",
        limits: &[limit("of a CPU", busy::FULL, "share")],
        why: "One worker carries all packets of a queue pair, one after the other: when its CPU is full, that queue carries no more, however idle the \
              others are. With segmentation offload it moves 64 KiB at once, without it each packet of the MTU. Caveat: more queues help several \
              streams, never one.",
        fix: &[
            "ethtool -k DEV | grep -E 'segmentation|checksum'   # inside the guest, and of the host's card: are they on?",
            "ethtool -K DEV tso on gso on   # inside the guest, unless it forwards and must not; those that -k shows off, tx and sg first",
            "virsh edit DOMAIN   # several streams: <driver name='vhost' queues='4'/> in <interface>, then ethtool -L DEV combined 4 inside",
        ],
        undo: &["ethtool -K DEV tso off gso off   # as ethtool -k had it"],
        source: "drivers/vhost/vhost.c (vhost_worker), drivers/net/virtio_net.c, Linux 6.12; the threshold is our own",
        ..Rule::checked_by(busy::vhost as Check)
    },
    Rule {
        id: "SGN-FULL",
        per: "machine",
        looks_at: "How much of all CPUs' time was idle, with the exits by PAUSE that were counted.",
        limits: &[
            limit("idle, of all CPUs' time, below which a host is full", busy::IDLE, "share"),
            limit("of all exits by PAUSE from which vCPUs spin", busy::SPINNING, "share"),
        ],
        why: "On a full host vCPUs wait for CPUs, also one that holds a lock; the others spin for it, and each spin ends in a PAUSE exit. The exits are the \
              sign and not the cause: switching PLE off makes vCPUs spin longer instead. Caveat: a host that is full for a moment says little.",
        fix: &[
            "ps -eLo pid,psr,pcpu,comm | grep -E 'CPU +[0-9]+/KVM' | sort -rnk3 | head   # on the host: which VMs have the time",
            "virsh setvcpus DOMAIN N --config   # fewer vCPUs in all than CPUs, or a VM moved to another host",
        ],
        source: "Intel SDM volume 3, 26.6.13 (PAUSE-loop exiting); arch/x86/kvm/vmx/vmx.c (handle_pause), Linux 6.12; the thresholds are our own",
        ..Rule::checked_by(busy::full as Check)
    },
    Rule {
        id: "SGN-BOUND",
        per: "set of CPUs",
        looks_at: "VMs that Proxmox binds to the same few CPUs (`affinity`), with more vCPUs than these.",
        why: "Affinity of Proxmox binds a VM and keeps nobody else away: two VMs on the same CPUs wait for each other, while the other CPUs are idle. \
              Caveat: what the VMs run may fit all the same.",
        source: "qm(1), affinity, Proxmox VE 8.2; taskset(1)",
        ..Rule::checked_by(busy::bound as Check)
    },
    Rule {
        id: "SGN-CLOCK",
        per: "machine",
        looks_at: "Accesses to ports and addresses of clocks that QEMU emulates, among all accesses of their kind.",
        limits: &[limit("of all such accesses", clock::MUCH, "share")],
        why: "Each such reading is an exit of some microseconds, most of them to QEMU, and a busy CPU on the host beside an idle guest. A guest reads these where it is \
              shown no paravirtual clock: Windows without Hyper-V's, Linux with another clocksource than kvm-clock or tsc. Caveat: Windows decides when it boots.",
        fix: &[
            clock::LINUX,
            "virsh edit DOMAIN   # Windows: <clock offset='localtime'><timer name='hypervclock' present='yes'/></clock>, and <hyperv><vapic state='on'/><vpindex state='on'/><synic state='on'/><stimer state='on'/></hyperv>",
        ],
        undo: &["virsh edit DOMAIN   # these elements as they were"],
        needs: Needs::Reload,
        source: "hw/acpi/core.c (acpi_pm_tmr) and docs/system/i386/hyperv.rst (hv-time), QEMU 9.0; the threshold is our own",
        ..Rule::checked_by(clock::read as Check)
    },
    Rule {
        id: "SGN-FLUSH",
        per: "disk",
        looks_at: "How long a flush takes, and how long a write: of libvirt's sums, of iostat, or of fio.",
        limits: &[limit("for a flush", storage::SLOW_NS, "ns"), limit("as long as a write", storage::TIMES, "times")],
        why: "A write ends in a cache; a flush ends when the drive has it for good. Whoever commits (databases, fsync) waits for a flush each time, and for \
              the drives below: drives without protection against power loss take milliseconds, a mirror or a journal adds its own. No setting of virtio, \
              iothreads or queues shortens it. Caveat: what caches lie between (mdraid, LVM, ZFS, a controller) is not told.",
        fix: &[
            "fio --name=flush --filename=FILE --size=64m --bs=4k --rw=write --ioengine=psync --fdatasync=1 --runtime=20 --time_based   # on the host, on the same drives: as long?",
            "lsblk -o NAME,MODEL,SIZE,TYPE   # as long there: drives with power-loss protection, or a log device with it; much shorter: what lies between",
        ],
        source: "libvirt-domain.h (block.N.fl.times); fio HOWTO, fdatasync; Documentation/block/writeback_cache_control.rst, Linux 6.12; the thresholds are our own",
        ..Rule::checked_by(storage::flushes as Check)
    },
    Rule {
        id: "SGN-CACHES",
        per: "VM",
        looks_at: "VMs that see threads and have a core of the host for each vCPU, behind several last-level caches, where the threads of fewer cores would do.",
        why: "What vCPUs share goes from cache to cache over the fabric, which takes several times as long as within one. Pinned to both threads of \
              fewer cores, the guest has one cache, and its cores are the host's. Caveat: threads of one core share it: what needs each core whole \
              loses more than it gains; measure both.",
        source: "libvirt.org/formatdomain.html, CPU Tuning and CPU model and topology; lscpu(1), CACHE",
        ..Rule::checked_by(caches::apart as Check)
    },
    Rule {
        id: "SGN-BLOCKER",
        per: "file",
        looks_at: "What rtla found out about the sample that stopped it: the part that took most of it.",
        limits: &[limit("of the sample", tracer::MOST, "share")],
        why: "rtla stops at the first sample over the limit and adds up what ran before the measuring thread did. What took most of it has to leave the CPU. \
              Caveat: it is one sample; the next one may have another cause.",
        source: "tools/tracing/rtla/src/timerlat_aa.c and Documentation/core-api/irq/irq-affinity.rst, Linux 6.12",
        ..Rule::checked_by(tracer::blocker as Check)
    },
];

/// What the rules say of themselves.
pub fn words() -> Vec<Words> {
    RULES.iter().map(Rule::words).collect()
}
