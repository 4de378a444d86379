//! How much of a machine's evidence is read at most: one list for snapshots, pasted text, XML and databases.
//!
//! Evidence comes from anywhere. With these bounds any input is read in time proportional to its size and in less than 2 GB.
//! What lies beyond a bound is not read, and [`Machine::unread`](crate::Machine::unread) says so.

/// Bytes of one file of a snapshot: the largest that a snapshot takes is `kallsyms`, of some 20 MB.
pub const FILE_BYTES: u64 = 64 << 20;

/// Bytes of a file of one line. A page is the most that most files of sysfs have; a list of 8,192 CPUs takes 40 KiB.
pub(crate) const LINE_FILE_BYTES: u64 = 1 << 20;

/// Bytes of a JSON file whose objects are kept as they are: in memory they take up to thirty times as much. A must-gather's
/// list of 100,000 threads has 15 MB, the database of a switch rarely one.
pub(crate) const JSON_BYTES: usize = 16 << 20;

/// Bytes of all pasted texts and outputs of commands of one machine: a `ps -eLf` of 100,000 threads has 10 MB,
/// `/proc/interrupts` on 8,192 CPUs 45 MB.
pub const TEXT_BYTES: usize = 64 << 20;

/// Bytes of one pasted line: the header of `/proc/interrupts` with 8,192 CPUs has 90 KB.
pub const LINE_BYTES: usize = 1 << 20;

/// Lines of one text: `cat /proc/*/status` of 30,000 processes.
pub const LINES: usize = 2_000_000;

/// Rows of all screens of `top`, `ps` and `pidstat` together: two of a host with 100,000 threads.
pub(crate) const SCREEN_ROWS: usize = 200_000;

/// Counters in all rows of `/proc/interrupts`: 500 interrupts on 8,192 CPUs.
pub const IRQ_COUNTERS: usize = 4 << 20;

/// Domains of a machine; the largest hosts run some hundreds.
pub const DOMAINS: usize = 2_048;

/// Threads that domains have by definition, over all of them: 1,000 VMs of 32 vCPUs.
pub const DOMAIN_THREADS: usize = 32_768;

/// NUMA nodes: CONFIG_NODES_SHIFT is 10 at most (arch/x86/Kconfig, Linux 6.12).
pub const NODES: u32 = 1_024;

/// Bridges of a switch, and ports of all of them.
pub const BRIDGES: usize = 1_024;
/// See [`BRIDGES`]; a host of Kubernetes has a port for each pod.
pub const PORTS: usize = 16_384;

/// Pods of a node: Kubernetes supports 110, and vendors up to 1,000.
pub(crate) const PODS: usize = 4_096;

/// Bytes of one XML document: a domain with a thousand devices has some 500 KB.
pub const XML_BYTES: usize = 8 << 20;

/// Elements of an XML document.
pub(crate) const XML_NODES: u32 = 200_000;

/// How deep elements may nest: chains of 200 backing files are libvirt's limit (VIR_STORAGE_MAX_CHAIN_DEPTH, libvirt 9.0),
/// one inside of the other. The parser goes down by recursion.
pub(crate) const XML_DEPTH: usize = 256;

/// Attributes of one element: the parser compares each with all before it.
pub(crate) const XML_ATTRIBUTES: usize = 256;

/// Declarations of namespaces in a document: the parser copies those in force for each element that adds one.
pub(crate) const XML_NAMESPACES: usize = 256;

/// Bytes of a cgroup's path (PATH_MAX).
pub const PATH_BYTES: usize = 4_096;

/// Values that no question uses and that are shown as they stand: those of some hundred cards or containers.
pub(crate) const QUOTED_VALUES: usize = 4_096;

/// Sentences about what could not be read; the rest is counted.
pub const UNREAD_SENTENCES: usize = 200;
