//! What speaks against a path as it was measured: rules as data.

use super::checks;
use super::measured::Channel;
use base::rule::{Words, limit};
use base::{Finding, Level, Needs, in_order};
use facts::rule::Hit;

pub(super) type Rule = facts::rule::Rule<fn(&Channel<'_>) -> Vec<Hit>>;

/// A window that takes more of a batch's time is what to change first: without it the path would carry a quarter more.
pub(super) const WINDOW_SHARE: f64 = 0.2;
/// Launches of one setup on a quiet machine differ by less.
pub(super) const LOST: f64 = 0.05;
/// A window that is open for longer than it is closed protects less than half of the time.
pub(super) const OPEN: f64 = 0.5;
/// From one kick for ten packets on, batches of ten and more are woken for each of them.
pub(super) const KICKS: f64 = 0.1;
/// A side that runs this much of the time has no use for being woken.
pub(super) const BUSY: f64 = 0.8;

/// Of the frames of a sender that reads the table before each batch fewer are stale, whatever changes.
pub(super) const STALE: f64 = 0.01;

/// All rules, in the order in which equal findings are shown.
const RULES: &[Rule] = &[
    Rule {
        id: "CHN-WRONG",
        per: "path",
        looks_at: "Whether each sent frame arrived once, in order, and unchanged.",
        limits: &[limit("frames that did not", 1.0, "count")],
        why: "A path that loses, doubles, reorders or tears frames is broken, and so is each rate that was measured over it: work that is not done \
              takes no time.",
        fix: &["kvmscope bench channel --seconds 30   # whether it happens again; then report it"],
        source: "docs/labs/channel.md, \"Twelve rules against a hostile peer\"",
        ..Rule::checked_by(checks::wrong)
    },
    Rule {
        id: "CHN-SIBLINGS",
        per: "machine",
        looks_at: "Whether both sides ran on one core: as its two threads, or on one CPU.",
        why: "Two sides that look for frames all the time compete for the units of one core, and slow each other. The ring's lines never leave the \
              core's cache either, so that nothing is measured of what a path between cores costs.",
        fix: &["kvmscope bench channel --cpus A,B   # CPUs of two cores that share a last-level cache"],
        source: "Documentation/admin-guide/cputopology.rst, thread_siblings_list, Linux 6.12",
        ..Rule::checked_by(checks::siblings)
    },
    Rule {
        id: "CHN-NODES",
        per: "machine",
        looks_at: "Whether the two sides ran on different NUMA nodes.",
        why: "Each line of the ring then travels over the link between packages, there and back: that is several times as far as to another core of \
              the same cache.",
        fix: &["kvmscope bench channel --cpus A,B   # CPUs of one node: lscpu --extended=CPU,CORE,NODE,CACHE"],
        source: "Documentation/mm/numa.rst, Linux 6.12",
        ..Rule::checked_by(checks::nodes)
    },
    Rule {
        id: "CHN-PREEMPTED",
        per: "machine",
        looks_at: "Whether the CPU of a side was taken from it, by whom, and what that cost: the rate of all slices against that of clean ones.",
        limits: &[limit("of the clean rate lost", LOST, "share")],
        why: "While one side does not run, the other one waits, and no frame moves. Such a rate shows how busy the machine was, not what the path can carry.",
        fix: &["kvmscope check   # which threads may run on the CPUs of the two sides"],
        needs: Needs::Reboot,
        source: "Documentation/admin-guide/kernel-parameters.txt, isolcpus=domain, Linux 6.12; nonvoluntary_ctxt_switches in proc(5)",
        ..Rule::checked_by(checks::preempted)
    },
    Rule {
        id: "CHN-MPROTECT",
        per: "machine",
        looks_at: "Whether windows were made with mprotect where protection keys were measured, or the processor has them.",
        why: "mprotect takes a system call to open and one to close, changes page tables, and has every CPU of the process forget their entries. A \
              protection key changes a register of the thread, which takes no system call.",
        fix: &["kvmscope bench channel --window pkey"],
        undo: &["kvmscope bench channel --window mprotect"],
        source: "Documentation/core-api/protection-keys.rst, Linux 6.12; pkeys(7)",
        ..Rule::checked_by(checks::mprotect)
    },
    Rule {
        id: "CHN-WINDOW",
        per: "path",
        looks_at: "Which share of a batch's time opening and closing the window takes.",
        limits: &[limit("of a batch's time", WINDOW_SHARE, "share")],
        why: "A window costs the same for a batch of any size: the more frames go through one, the less each of them pays. Batches that wait to be \
              full add as much latency as it takes their frames to arrive.",
        source: "docs/labs/channel.md, \"What `kvmscope bench channel` answers\"",
        ..Rule::checked_by(checks::window)
    },
    Rule {
        id: "CHN-OPEN",
        per: "path",
        looks_at: "Which share of the time a window was open.",
        limits: &[limit("of the time", OPEN, "share")],
        why: "Whatever our own process writes by mistake while the window is open reaches the shared memory: it protects for the rest of the time \
              only. Smaller batches open it for shorter, and more often.",
        source: "docs/labs/channel.md, \"Windows\"",
        ..Rule::checked_by(checks::open)
    },
    Rule {
        id: "CHN-KICKS",
        per: "path",
        looks_at: "How many kicks there are for each packet while both sides are busy.",
        limits: &[
            limit("kicks for each packet", KICKS, "count"),
            limit("of the time that each side runs", BUSY, "share"),
        ],
        why: "A kick is a system call, and wakes a side that was about to look anyway. Sides that look for a while before they sleep need few of \
              them.",
        fix: &["kvmscope bench channel --policy adaptive"],
        undo: &["kvmscope bench channel --policy kick"],
        source: "virtio 1.2, 2.7.10 Available Buffer Notification Suppression; docs/labs/channel.md",
        ..Rule::checked_by(checks::kicks)
    },
    Rule {
        id: "CHN-RING",
        per: "machine",
        looks_at: "Whether a ring is larger than the second-level cache of the CPUs, where the bench or a snapshot states its size.",
        why: "Both sides walk over all of a ring. One that does not fit into the cache of their cores pushes its own lines out, and each frame is \
              fetched from farther away.",
        source: "Documentation/ABI/testing/sysfs-devices-system-cpu, cache/index*/size, Linux 6.12",
        ..Rule::checked_by(checks::ring)
    },
    Rule {
        id: "CHN-STALE",
        per: "number of machines",
        looks_at: "Whether frames were delivered that the flow table forbade when they were, and how many were sent by rules that had been revoked.",
        limits: &[limit("frames misdelivered", 1.0, "count"), limit("of frames stale", STALE, "share")],
        why: "A frame that is delivered after its rule was revoked reaches a machine that may not have it: the isolation that the table promises \
              does not hold. Stale frames that are dropped cost the sender's work alone; they show that senders read the table too seldom, or \
              do not get the CPU to.",
        fix: &[
            "kvmscope bench channel --only flows --seconds 30   # whether it happens again; a misdelivered frame is a bug to report",
        ],
        source: "docs/labs/channel.md, \"Several machines\"",
        ..Rule::checked_by(checks::stale)
    },
    Rule {
        id: "CHN-FAULT",
        per: "rule",
        looks_at: "Whether an honest side crashed, hung or handed out a wrong frame when its peer broke one of the twelve rules.",
        limits: &[limit("rules not survived", 1.0, "count")],
        why: "The peer is another tenant. One that can end or stall the other side, or choose what it reads, controls a machine that is not its own.",
        fix: &["kvmscope bench channel --only faults   # whether it happens again; then report it"],
        source: "docs/labs/channel.md, \"Twelve rules against a hostile peer\"",
        ..Rule::checked_by(checks::fault)
    },
    Rule {
        id: "CHN-UNVERIFIED",
        per: "machine",
        looks_at: "Whether the receiver verified the number and checksum of each frame.",
        why: "A path that loses frames is fast. Without verification it is unknown whether this one does.",
        source: "RFC 2544, 26.1 (throughput is a rate without loss)",
        ..Rule::checked_by(checks::unverified)
    },
];

pub fn words() -> Vec<Words> {
    RULES.iter().map(Rule::words).collect()
}

pub(super) fn findings(channel: &Channel<'_>) -> Vec<Finding> {
    let hits = RULES.iter().flat_map(|rule| (rule.check)(channel).into_iter().map(|hit| rule.finding(hit, Level::L0)));
    in_order(hits.collect())
}
