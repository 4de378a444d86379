//! What do the commands say whose output people paste into tickets?
//!
//! In: texts, each a mix of prose, prompts and outputs, in any order. Out: one [`Machine`] with what was told, and how many
//! lines of each text were understood. Recognized: `lscpu`, `lscpu -p`, `-e` and `-J`, `virsh vcpupin`, `vcpuinfo`, `emulatorpin`,
//! `iothreadinfo`, domain XML, `top`, `ps`, `pidstat -t`, `taskset -acp`, `Cpus_allowed_list` of status files, `/proc/interrupts` and `softirqs`, `mpstat -P ALL`, `sar -u`, `vmstat`, `iostat -c`, `/proc/stat`, `numactl -H`,
//! `/proc/cmdline`, `/proc/meminfo`, `/proc/pressure`, `free`, `numastat`, `iostat -x`, `virsh schedinfo` and `domstats`, `cpu.stat`, `cpu.max`,
//! `schedstat`, settings below `/proc/sys` and `/sys`, the kernel's log, `lsvmbus -vv`, `ovs-appctl dpif-netdev/pmd-rxq-show`, `ovs-vsctl show`, `list`, `get`, `ethtool -c`, `-k`, `-l`, `-g`, `-S`, `iperf3`;
//! `virt-top`, VPP's `show runtime`, `perf sched latency`, `calc-dirty-rate`, Firecracker's metrics, `sar -n DEV` and `EDEV`, `mpstat -o JSON`;
//! `ip -s link`, `ifconfig`, `virsh domifstat`, `cpu-stats`, `domblkerror`, `coverage/show`, `dropstats`, `strace -c`, `kvmtop`, `/proc/PID/sched`, `lvs`, `df`, stalld, `dd`, `ioping`, `ping`, `pveperf`, LatencyMon;
//! shown as they stand: fio, netperf, the summary of NFVbench, the console of TRex, `perf report`, turbostat, `cpupower frequency-info`, definitions of KubeVirt, `kubectl describe pod`, `openstack flavor show`, QEMU's log.
//! ```text
//! line by line: which block begins here? --> it takes its lines --> Pasted --threads--> Machine
//! ```
//! A block is known by its header, never by the file's name, and a line that no block takes is counted and shown, not guessed.

mod balloon;
mod boot;
mod cards;
mod clock;
mod counters;
mod cpus;
mod disks;
mod ethtool;
mod events;
mod fio;
mod frequency;
mod gathered;
mod generators;
mod groups;
mod halted;
mod interrupts;
mod iotune;
mod iperf;
mod json;
mod kernel;
mod kubernetes;
mod limits;
mod lscpu;
mod marks;
mod memory;
mod moves;
mod named;
mod nodes;
mod openstack;
mod pieces;
mod pins;
mod pressure;
mod processes;
mod profile;
mod prompt;
mod proxmox;
mod qemu_command;
mod qemu_log;
mod screen;
mod shares;
mod short;
mod small_tests;
mod small_vmms;
mod sums;
mod switch;
mod sysstat_json;
mod threads;
mod totals;
mod virsh_list;
mod vmbus;
mod waits;
mod walk;
mod xml;

use crate::machine::{Domain, Machine};
pub(crate) use gathered::Pasted;
pub(crate) use walk::Text;
pub use walk::{lines_read, receive_queues};

/// Commands whose output is recognized.
pub const RECOGNIZED: &str = "the output of lscpu, numactl -H, virsh dumpxml, vcpupin, vcpuinfo and emulatorpin, top -H, ps -eLo, pidstat -t, \
                              taskset -acp, mpstat -P ALL, sar -u, vmstat, iostat -c, /proc/stat, ethtool -S, -g, -l, -k and -c, ovs-vsctl, iperf3, fio, \
                              perf report --stdio, turbostat, kubectl get vmi -o yaml and cat /proc/interrupts, in any mix";

/// What the main thread of ovs-vswitchd says that it uses of a CPU, where it is quoted.
pub const OVS_MAIN: &str = "ovs-vswitchd's main thread, of a CPU";

/// Takes the block that begins at a line, and returns how many lines that were; 0: none of its kind begins there.
type Block = fn(&Text<'_>, usize, &mut Pasted) -> usize;

/// All kinds of block. No two begin with the same line, and none with a blank one.
const BLOCKS: &[Block] = &[
    cpus::parsable,
    cpus::extended,
    cpus::json,
    limits::dominfo,
    lscpu::summary,
    lscpu::json,
    lscpu::cpuinfo,
    pins::vcpus,
    pins::vcpuinfo,
    pins::emulator,
    pins::iothreads,
    pins::numatune,
    pins::taskset,
    pins::allowed,
    xml::elements,
    processes::rows,
    screen::head,
    screen::top,
    screen::bare,
    interrupts::counters,
    interrupts::grepped,
    interrupts::stamp,
    counters::mpstat,
    sysstat_json::mpstat,
    counters::system,
    limits::schedinfo,
    limits::directory,
    limits::cpu_stat,
    limits::cpu_max,
    limits::domstats,
    balloon::stat,
    waits::of_file,
    waits::comms,
    waits::of_cpus,
    waits::of_names,
    proxmox::command,
    proxmox::versions,
    small_vmms::command,
    small_vmms::firecracker,
    proxmox::datacenter,
    moves::line,
    proxmox::container,
    proxmox::config,
    pressure::lines,
    memory::meminfo,
    memory::of_node,
    memory::of_process,
    memory::free,
    memory::numastat,
    memory::sar,
    nodes::lstopo,
    disks::domblkstat,
    iotune::limits,
    virsh_list::list,
    disks::iostat,
    kernel::line,
    named::settings,
    named::sysctl,
    totals::vmstat,
    totals::average,
    totals::stat,
    nodes::numactl,
    vmbus::channels,
    switch::pmd,
    switch::record,
    switch::other_config,
    switch::statistics,
    switch::dumped_port,
    switch::show,
    ethtool::coalescing,
    ethtool::offloads,
    ethtool::channels,
    ethtool::rings,
    ethtool::statistics,
    fio::jobs,
    profile::rows,
    frequency::turbostat,
    frequency::cpupower,
    kubernetes::vm,
    kubernetes::pod,
    openstack::fields,
    qemu_log::lines,
    iperf::text,
    iperf::json,
    sums::virt_top_head,
    sums::virt_top,
    sums::vpp,
    sums::perf_sched,
    sums::dirty_rate,
    sums::firecracker,
    sums::interfaces,
    sums::pmd_sleep,
    cards::ip,
    cards::ifconfig,
    cards::domifstat,
    events::coverage,
    events::dropstats,
    halted::state,
    halted::lvs,
    halted::df,
    halted::stalld,
    shares::guests,
    shares::strace,
    shares::cpu_stats,
    shares::kvmtop,
    shares::sched,
    small_tests::block,
    generators::netperf,
    generators::nfvbench,
    generators::trex,
    generators::trex_global,
    iperf::around,
    short::line,
    short::forwarding,
    short::head,
    qemu_command::command,
    boot::line,
    pins::command,
    named::heading,
    prompt::line,
];

/// Reads texts, each with the name that its facts are quoted by.
pub fn read(texts: &[(String, String)]) -> Machine {
    let (mut machine, strange) = walk::of(Vec::new(), texts);
    machine.strange = strange;
    machine
}

/// Reads texts about a machine whose domains are known.
pub(crate) fn read_of(domains: Vec<Domain>, texts: &[(String, String)]) -> Machine {
    walk::of(domains, texts).0
}

/// Test help: the sentences that a text is summed up in.
#[cfg(test)]
pub(crate) fn summaries_of(text: &str) -> Vec<String> {
    let machine = read(&[("t".to_owned(), text.to_owned())]);
    machine.summaries.into_iter().map(|summary| summary.value).collect()
}

/// Test help: the same of a text of which no line may be left over.
#[cfg(test)]
pub(crate) fn whole_summaries_of(text: &str) -> Vec<String> {
    let machine = read(&[("t".to_owned(), text.to_owned())]);
    assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
    machine.summaries.into_iter().map(|summary| summary.value).collect()
}
