//! The rules: what is told apart, put together.

use super::Scene;
use super::checks::{
    busy, caches, clock, firmware, hypervisors, limits, polling, real_time, recovery, storage, threads, tracer,
    unmovable,
};
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
        why: "One worker carries all packets of a queue pair, one after the other: when its CPU is full, that queue is at its limit, however idle \
              the others are. With segmentation offload it moves 64 KiB at once, without it each packet of the MTU. Caveat: more queues help several \
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
        why: "On a full host vCPUs wait for CPUs, also one that holds a lock; the others spin for it, and each spin ends in a PAUSE exit. The \
              exits are the symptom, not the cause: disabling PLE makes vCPUs spin longer instead. Caveat: a host that is full for a moment \
              proves little.",
        fix: &[
            "ps -eLo pid,psr,pcpu,comm | grep -E 'CPU +[0-9]+/KVM' | sort -rnk3 | head   # on the host: which VMs have the time",
            "virsh setvcpus DOMAIN N --config   # fewer vCPUs in total than CPUs, or move a VM to another host",
        ],
        source: "Intel SDM volume 3, 26.6.13 (PAUSE-loop exiting); arch/x86/kvm/vmx/vmx.c (handle_pause), Linux 6.12; the thresholds are our own",
        ..Rule::checked_by(busy::full as Check)
    },
    Rule {
        id: "SGN-BOUND",
        per: "set of CPUs",
        looks_at: "VMs that Proxmox binds to the same few CPUs (`affinity`), with more vCPUs than these.",
        why: "Affinity in Proxmox binds a VM, but does not keep other VMs away: two VMs on the same CPUs wait for each other while other CPUs are \
              idle. Caveat: their load may still fit.",
        source: "qm(1), affinity, Proxmox VE 8.2; taskset(1)",
        ..Rule::checked_by(busy::bound as Check)
    },
    Rule {
        id: "SGN-CLOCK",
        per: "machine",
        looks_at: "Accesses to ports and addresses of clocks that QEMU emulates, among all accesses of their kind.",
        limits: &[limit("of all such accesses", clock::MUCH, "share")],
        why: "Each such read is an exit of some microseconds, mostly to QEMU: the host's CPU is busy while the guest is idle. Guests read these \
              clocks if they have no paravirtual one: Windows without Hyper-V's, Linux with another clocksource than kvm-clock or tsc. Caveat: \
              Windows decides when it boots.",
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
        id: "SGN-KVMCLOCK",
        per: "VM",
        looks_at: "The clock that a guest's kernel reads, with the timers of its definition.",
        why: "Linux reads kvm-clock without an exit, and falls back to hpet or the ACPI timer if it no longer trusts its TSC and has no \
              kvm-clock: then each read goes to QEMU. Such an access exits with EPT_MISCONFIG, which is no fault of the page tables. Caveat: what \
              made the TSC untrusted may \
              disturb other guests as well.",
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, Time keeping; arch/x86/kernel/kvmclock.c and kernel/time/clocksource.c, Linux 6.12",
        ..Rule::checked_by(clock::hidden as Check)
    },
    Rule {
        id: "SGN-CLOCKSOURCE",
        per: "machine",
        looks_at: "The clocksource of a kernel, as a command printed it: hpet or acpi_pm.",
        why: "A device is read in place of a register: bus cycles on a host, an exit to the VMM in a guest. A host whose clocksource is not the TSC also \
              gives its guests no stable kvm-clock: each reading becomes a system call there. Caveat: it matters to programs that read the time often, \
              and a TSC that the kernel found unstable is worse.",
        source: "arch/x86/kernel/hpet.c, drivers/clocksource/acpi_pm.c, kernel/time/clocksource.c and arch/x86/kvm/x86.c (pvclock_update_vm_gtod_copy), Linux 6.12",
        ..Rule::checked_by(clock::slow as Check)
    },
    Rule {
        id: "SGN-FLUSH",
        per: "disk",
        looks_at: "How long a flush takes, and how long a write: of libvirt's sums, of iostat, or of fio.",
        limits: &[limit("for a flush", storage::SLOW_NS, "ns"), limit("as long as a write", storage::TIMES, "times")],
        why: "A write ends in a cache; a flush ends when the data is durable on the drive. Every commit (databases, fsync) waits for a flush, and \
              so for the drives below: drives without power-loss protection take milliseconds, and a mirror or a journal adds its own time. No \
              setting of virtio, \
              iothreads or queues shortens it. Caveat: caches in between (mdraid, LVM, ZFS, a controller) are not known.",
        fix: &[
            "fio --name=flush --filename=FILE --size=64m --bs=4k --rw=write --ioengine=psync --fdatasync=1 --runtime=20 --time_based   # on the host, on the same drives: as long?",
            "lsblk -o NAME,MODEL,SIZE,TYPE   # as long there: drives with power-loss protection, or a log device with it; much shorter: the layers in between",
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
        looks_at: "What rtla reported about the sample that stopped it: its largest part.",
        limits: &[limit("of the sample", tracer::MOST, "share")],
        why: "rtla stops at the first sample over the limit and adds up what ran before the measuring thread did: a thread or an interrupt that took most of it is \
              to be kept off that CPU, an idle state that did is not to be entered there. cyclictest asks for no idle states (/dev/cpu_dma_latency), rtla does \
              so with --dma-latency alone. Caveat: it is one sample; the next one may have another cause.",
        source: "tools/tracing/rtla/src/timerlat_aa.c, Documentation/core-api/irq/irq-affinity.rst and admin-guide/pm/cpuidle.rst, Linux 6.12; cpupower-idle-set(1); \
                 cyclictest.c (set_latency_target), rt-tests 2.4",
        ..Rule::checked_by(tracer::blocker as Check)
    },
    Rule {
        id: "SGN-IOLIMIT",
        per: "disk",
        looks_at: "What fio did, against the limits of the disks of VMs (blkdeviotune, iotune, Proxmox's iops and mbps), with the host's own times.",
        limits: &[limit("by which it may be off the limit, of the limit", limits::AT_LIMIT, "share")],
        why: "QEMU holds requests back as soon as a disk has used up its limit, and they wait in the guest's queue: with N concurrent requests \
              each takes N divided by the limit, however fast the drive is. Other queues, threads or drives change nothing. Caveat: a limit is \
              usually set on purpose, for the other users of that drive.",
        source: "virsh(1), blkdeviotune, libvirt 10.0; docs/throttle.txt, QEMU 9.0; qm.conf(5), Proxmox VE 8.2; the threshold is our own",
        ..Rule::checked_by(limits::disks as Check)
    },
    Rule {
        id: "SGN-COPYLIMIT",
        per: "disk",
        looks_at: "How fast Proxmox copies a disk to another node, against the bandwidth limit that it names.",
        limits: &[limit("by which it may be below the limit, of the limit", limits::COPY_AT_LIMIT, "share")],
        why: "A task of Proxmox copies disks no faster than bwlimit, in KiB per second: that of the command, else of the storage, else of \
              datacenter.cfg. Then neither the network nor the drives are the limit. Caveat: without a limit the copy may take the link from guests.",
        source: "qm(1), migrate --bwlimit; datacenter.cfg(5), bwlimit, Proxmox VE 8.2; the threshold is our own",
        ..Rule::checked_by(limits::copies as Check)
    },
    Rule {
        id: "SGN-NESTED",
        per: "program",
        looks_at: "Exits by instructions of virtualization (VMREAD, VMRESUME, VMRUN and others) among all that were counted, with how the VM is defined.",
        limits: &[limit("of all exits", hypervisors::MUCH, "share")],
        why: "Only a hypervisor causes such exits. Each exit of its own guests comes to this level first and is reflected, and handling it may \
              exit again. Windows runs on its own hypervisor if its virtual processor can (virtualization-based security). Caveat: if the guest \
              is meant to run VMs, that is its job.",
        needs: Needs::Reload,
        source: "Documentation/virt/kvm/x86/nested-vmx.rst and arch/x86/kvm/vmx/nested.c, Linux 6.12; learn.microsoft.com, virtualization-based security; \
                 the threshold is our own",
        ..Rule::checked_by(hypervisors::nested as Check)
    },
    Rule {
        id: "SGN-POLLING",
        per: "machine",
        looks_at: "How fast KVM's counters of halt polling grow, with halt_poll_ns.",
        limits: &[limit("CPUs", polling::MUCH, ""), limit("of the host's CPUs", polling::OF_HOST, "share")],
        why: "When a vCPU halts, KVM polls for up to halt_poll_ns before the thread sleeps, which saves the wake-up where the guest has something to do \
              soon. Where it has not, the CPU was busy for nothing: idle guests look like load in the kernel. Caveat: less of it makes wake-ups slower.",
        source: "Documentation/virt/kvm/halt-polling.rst, Linux 6.12; the thresholds are our own",
        ..Rule::checked_by(polling::halts as Check)
    },
    Rule {
        id: "SGN-THREAD",
        per: "thread",
        looks_at: "Threads of QEMU, by their names, that run for a whole CPU.",
        limits: &[limit("of a CPU", threads::FULL, "share")],
        why: "QEMU does some things on one thread alone: when its CPU is full, that is the limit, however idle the host and the network are. Caveat: a \
              screen shows a moment.",
        source: "migration/migration.c and multifd.c, QEMU 9.0; virsh(1), migrate, libvirt 10.0; the threshold is our own",
        ..Rule::checked_by(threads::full as Check)
    },
    Rule {
        id: "SGN-RTLIMIT",
        per: "machine",
        looks_at: "The kernel's line that RT throttling began, with sched_rt_runtime_us and what programs measured.",
        limits: &[limit("by which two lengths may differ and be the same", real_time::ALIKE, "share")],
        why: "Threads with a real-time policy may run for a total of sched_rt_runtime_us in each period; a polling vCPU uses that up, and is \
              stopped for the rest. Caveat: without the limit such a thread never yields its CPU, not even to the kernel's threads.",
        source: "Documentation/scheduler/sched-rt-group.rst and kernel/sched/rt.c, Linux 6.12; the threshold is our own",
        ..Rule::checked_by(real_time::throttled as Check)
    },
    Rule {
        id: "SGN-RECOVERY",
        per: "machine",
        looks_at: "Whether KVM's thread that recovers huge pages took a CPU from a vCPU, by a trace, with its parameters.",
        limits: &[limit("at once", recovery::LONG_NS as f64, "ns"), limit("times", recovery::AGAIN as f64, "")],
        why: "With the mitigation of iTLB multihit, KVM splits huge pages that a guest executes code from, and a thread of each VM merges them \
              again, a part of them each period. It holds the VM's lock while it does, and runs on the CPUs that its VM may use. Caveat: without \
              it a guest keeps small \
              pages wherever it executed code.",
        source: "Documentation/admin-guide/hw-vuln/multihit.rst and arch/x86/kvm/mmu/mmu.c, Linux 6.12; the threshold is our own",
        ..Rule::checked_by(recovery::pages as Check)
    },
    Rule {
        id: "SGN-CORES",
        per: "program",
        looks_at: "How many cores testpmd forwards on, and how many streams it has (show config fwd).",
        why: "testpmd distributes streams over --nb-cores cores, by default one, whatever -l lists: that one core is the limit of all ports. \
              Caveat: where packets are lost elsewhere, more cores send more into that.",
        source: "testpmd user guide, --nb-cores and set nbcore, DPDK 23.11",
        ..Rule::checked_by(busy::forwarder as Check)
    },
    Rule {
        id: "SGN-FIOCPU",
        per: "job",
        looks_at: "The CPU time of fio's job by its own account, user and kernel.",
        limits: &[limit("of a CPU", busy::JOB, "share")],
        why: "A job of fio is one thread: when it needs its CPU whole to ask for requests, it asks for no more, and a disk that is busy all the time \
              (%util) may still have room for others. Caveat: time of the kernel may be exits that the host handles, in a nested guest most of it.",
        source: "fio HOWTO, Interpreting the output (cpu), fio 3.33; iostat(1), %util; the threshold is our own",
        ..Rule::checked_by(busy::jobs as Check)
    },
    Rule {
        id: "SGN-UNMOVABLE",
        per: "VM",
        looks_at: "The condition LiveMigratable of a VMI of KubeVirt, with its reason, its eviction strategy and the claims of its volumes.",
        why: "KubeVirt checks what a live migration needs before it begins, such as disks that both nodes can open, and reports it in this \
              condition. With an eviction strategy that requires a migration, its webhook then refuses each eviction: a drain retries forever, \
              and no timeout or bandwidth changes that. Caveat: a condition is as old as its timestamp.",
        needs: Needs::Reload,
        source: "kubevirt.io user guide, Live Migration (limitations) and Node maintenance (eviction strategies), KubeVirt 1.2",
        ..Rule::checked_by(unmovable::conditions as Check)
    },
    Rule {
        id: "SGN-CYCLES",
        per: "machine",
        looks_at: "Cycles that perf counted for the host (cycles:H) against those of host and guests (cycles:HG), with halt_poll_ns.",
        limits: &[limit("of the cycles", polling::OF_CYCLES, "share")],
        why: "A vCPU's CPU that spends nearly all cycles in the host runs no guest code: KVM handles exits, or polls for a halted vCPU. Caveat: \
              the counts do not distinguish these; perf top does.",
        source: "perf-list(1), event modifiers, and Documentation/virt/kvm/halt-polling.rst, Linux 6.12; the threshold is our own",
        ..Rule::checked_by(polling::cycles as Check)
    },
    Rule {
        id: "SGN-GENERATOR",
        per: "program",
        looks_at: "How busy the cores of the traffic generator TRex are.",
        limits: &[limit("of its cores", busy::GENERATOR, "share")],
        why: "A generator with full cores sends less than requested; its result is then its own limit, not that of the device under test. Caveat: \
              packets that do not come back are a different problem.",
        source: "TRex manual 3.04, cpu_util and queue_full, stateless console; the threshold is our own",
        ..Rule::checked_by(busy::generator as Check)
    },
    Rule {
        id: "SGN-OVSMAIN",
        per: "machine",
        looks_at: "CPU usage of ovs-vswitchd's main thread by its log, and what wakes it.",
        limits: &[limit("of a CPU", busy::MAIN, "share")],
        why: "In Open vSwitch with DPDK polling threads serve DPDK's ports; packets of the kernel's (tap, system) go through sockets of the main thread, \
              which is slow and manages the switch as well. Moving queues between polling threads changes nothing there. Caveat: many flows or \
              statistics keep that thread busy, too.",
        source: "lib/poll-loop.c and lib/netdev-linux.c, Open vSwitch 3.1; docs.openvswitch.org, Using Open vSwitch with DPDK; the threshold is our own",
        ..Rule::checked_by(busy::switch as Check)
    },
];

/// What the rules say of themselves.
pub fn words() -> Vec<Words> {
    RULES.iter().map(Rule::words).collect()
}
