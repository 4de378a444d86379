//! What switches and traffic generators print, judged: who is full, what the caches do, where packets are lost and when.

use base::number::{counted, list, many, percent, plain, thousands};
use base::rule::{Words, limit};
use base::{Evidence, Finding, Level, Needs, Severity};
use facts::datapaths::Printed;
use facts::rule::{Hit, Rule};
use host::polled::pmd::PmdStatistics;

/// Share of the cycles of a polling thread from which it is full: our own threshold.
const FULL: f64 = 0.95;
/// Share of the passes that no flow matched from which it counts: our own threshold.
pub(super) const UPCALLS: f64 = 0.01;
/// Part of its cycles with packets, below which nothing is said of what they cost.
const WORKS: f64 = 0.01;
/// Share of the passes that the caches of exact matches found below which they do little: our own threshold.
const CACHED: f64 = 0.5;
/// Packets of a batch below which a full thread loses by small batches: our own threshold; a batch has 32 at most.
const SMALL_BATCH: f64 = 4.0;
/// Share of the packets of an interval, or of a port, that were lost from which it counts: our own threshold.
const LOST: f64 = 0.001;
/// Share of the packets of a port from which a loss is the first thing to look at: our own threshold.
const MANY: f64 = 0.05;
/// Share of its cycles below which a polling thread has room for another queue: our own threshold.
const ROOM: f64 = 0.5;
/// Part of what a thread's queues take from which one of them is nearly all: our own threshold.
const ONE: f64 = 0.8;

/// Looks at one text; what another one beside it says of queues counts as well.
type Check = fn(&Printed, &[Printed]) -> Vec<Hit>;

const RULES: &[Rule<Check>] = &[
    Rule {
        id: "DTP-BURST",
        per: "file",
        looks_at: "Intervals of a traffic generator in which packets did not come back.",
        limits: &[limit("of an interval's packets", LOST, "share")],
        why: "The intervals tell when packets were lost: a short burst is a failover, a flush of a table or a thread that did not run; a steady \
              loss is a rate above what the chain carries. Caveat: what is on the way at the end of an interval is counted as lost in it and \
              comes back in the next one.",
        fix: &[
            "kvmscope record --seconds 30 -o again   # on the host while it is repeated: which thread did not run at that time",
        ],
        source: "NFVbench 4.0, docs/user/advanced.rst; the threshold is our own",
        ..Rule::checked_by(bursts as Check)
    },
    Rule {
        id: "DTP-FULL",
        per: "polling thread",
        looks_at: "Share of its cycles in which a polling thread of Open vSwitch had packets.",
        limits: &[limit("of its cycles", FULL, "share")],
        why: "A polling thread that always has packets is the limit of the ports that it serves: what more arrives is dropped in front of it. \
              One queue is served by one thread: where others have room, queues are to move there or to become more; another CPU helps where \
              none has. Caveat: the numbers are of the time since they were cleared.",
        fix: &["ovs-appctl dpif-netdev/pmd-rxq-show   # which queues each serves"],
        source: "Open vSwitch 3.1, Documentation/topics/dpdk/pmd.rst; the threshold is our own",
        ..Rule::checked_by(full as Check)
    },
    Rule {
        id: "DTP-NOMBUF",
        per: "port",
        looks_at: "Packets for which a port of testpmd had no buffer (RX-nombuf).",
        limits: &[limit("of the packets that came", LOST, "share")],
        why: "The pool of buffers was empty: packets are lost inside the program that shows this, not in the switch or host below it. Rings of all \
              ports hold buffers while they wait, those for sending as well: a pool has to be larger than all of their descriptors. Caveat: a \
              program that keeps packets, or leaks them, empties any pool.",
        fix: &[
            "dpdk-testpmd .. -- --total-num-mbufs=N   # at least ports x queues x (rxd + txd), and 512 for each core",
            "dpdk-testpmd .. -- --rxd=1024 --txd=1024   # or shorter rings",
        ],
        source: "testpmd's guide, run_app (--total-num-mbufs, --rxd); rte_eth_stats.rx_nombuf, DPDK 22.11; the threshold is our own",
        ..Rule::checked_by(buffers as Check)
    },
    Rule {
        id: "DTP-LOST",
        per: "port",
        looks_at: "Packets that a port of l2fwd, Pktgen, vRouter or testpmd lost, and where.",
        limits: &[limit("of the packets of its direction", LOST, "share")],
        why: "A packet is lost where a ring is full: whoever empties that ring was too slow or did not run. What is lost on the way in came faster \
              than the program fetched it: its cores are full or were stopped. What is lost on the way out found the ring of that port full: who \
              takes packets from it is the next to look at: for a virtio port the switch on the host, for a vhost port the guest, for a card the \
              line. Caveat: counters are sums since the program began, and a flood on purpose loses packets as well.",
        fix: &[
            "kvmscope record --seconds 10 -o again   # on the host, under the same load: which thread did not run",
            "ovs-appctl dpif-netdev/pmd-rxq-show   # where Open vSwitch empties the ring: is its thread full?",
        ],
        source: "DPDK 22.11, examples/l2fwd/main.c and app/test-pmd/config.c; Pktgen 22.07; tf-vrouter R2011, utils/vif.c; the threshold is our own",
        ..Rule::checked_by(forwarded as Check)
    },
    Rule {
        id: "DTP-UPCALLS",
        per: "polling thread",
        looks_at: "Passes of packets that no flow matched, and those of them that were lost.",
        limits: &[limit("of its passes", UPCALLS, "share")],
        why: "Such a packet waits until the switch has computed a flow for it, which takes some hundred times as long as a packet that matches. \
              Caveat: after a start, or with connections that live for a few packets, it is as it must be.",
        fix: &[
            "ovs-appctl upcall/show   # flows now, and the limit",
            "ovs-vsctl set Open_vSwitch . other_config:flow-limit=500000",
        ],
        undo: &["ovs-vsctl remove Open_vSwitch . other_config flow-limit"],
        source: "ovs-vswitchd.conf.db(5), other_config:flow-limit, Open vSwitch 3.1; the threshold is our own",
        ..Rule::checked_by(upcalls as Check)
    },
    Rule {
        id: "DTP-CACHE",
        per: "polling thread",
        looks_at: "Passes that were found in the caches of exact matches, and those among wildcarded flows.",
        limits: &[limit("of its passes found in the caches", CACHED, "share")],
        why: "With more connections than the cache of exact matches holds (8,192) nearly every packet is looked up among wildcarded flows, which \
              costs several times as many cycles. Caveat: with one or two masks the wildcarded lookup is cheap as well; measure both.",
        fix: &[
            "ovs-vsctl set Open_vSwitch . other_config:smc-enable=true   # a cache of signatures for a million flows",
        ],
        undo: &["ovs-vsctl remove Open_vSwitch . other_config smc-enable"],
        source: "Open vSwitch 3.1, Documentation/topics/dpdk/bridge.rst (EMC, SMC); the threshold is our own",
        ..Rule::checked_by(caches as Check)
    },
    Rule {
        id: "DTP-BATCH",
        per: "polling thread",
        looks_at: "Packets in each batch that a full polling thread sent.",
        limits: &[limit("in a batch", SMALL_BATCH, "packets")],
        why: "What a batch costs is shared by its packets: small ones mean that each packet pays for the notification and for the lock of the port. \
              Caveat: packets wait for the batch to fill, so latency grows.",
        fix: &["ovs-vsctl set Open_vSwitch . other_config:tx-flush-interval=50   # us that a packet may wait"],
        undo: &["ovs-vsctl remove Open_vSwitch . other_config tx-flush-interval"],
        needs: Needs::Nothing,
        source: "ovs-vswitchd.conf.db(5), other_config:tx-flush-interval, Open vSwitch 3.1; the thresholds are our own",
        ..Rule::checked_by(batches as Check)
    },
];

pub(in crate::datapath) fn words() -> impl Iterator<Item = Words> {
    RULES.iter().map(Rule::words)
}

/// Findings about what programs printed.
pub(super) fn findings(printed: &[Printed]) -> Vec<Finding> {
    let of = |rule: &'static Rule<Check>| {
        let hits = printed.iter().flat_map(|text| (rule.check)(text, printed).into_iter().map(move |hit| (text, hit)));
        hits.map(|(text, hit)| {
            let subject =
                if printed.len() > 1 { format!("{} {}", text.path, hit.subject) } else { hit.subject.clone() };
            rule.finding(Hit { subject, ..hit }, Level::L0)
        })
        .collect::<Vec<_>>()
    };
    RULES.iter().flat_map(of).collect()
}

fn threads(text: &Printed) -> impl Iterator<Item = (u32, &PmdStatistics)> {
    text.pmds.iter().filter_map(|pmd| Some((pmd.cpu?, pmd)))
}

fn hit(text: &Printed, cpu: u32, severity: Severity, title: String) -> Hit {
    let seen =
        Evidence::in_table(title.clone(), "datapath.pmds").key("cpu", u64::from(cpu)).key("file", text.path.as_str());
    Hit::new(format!("CPU {cpu}"), severity, title).with(seen)
}

fn full(text: &Printed, all: &[Printed]) -> Vec<Hit> {
    let full = threads(text).filter_map(|(cpu, pmd)| Some((cpu, pmd.busy_share().filter(|share| *share >= FULL)?)));
    // Threads without a packet print no cycles.
    let has_room = |pmd: &PmdStatistics| pmd.busy_share().map_or(pmd.packets == Some(0), |share| share < ROOM);
    let roomy: Vec<String> = threads(text).filter(|(_, pmd)| has_room(pmd)).map(|(cpu, _)| cpu.to_string()).collect();
    full.map(|(cpu, share)| {
        let room = match roomy.as_slice() {
            [] => String::new(),
            [only] => format!(", and that on CPU {only} has room"),
            several => format!(", and those on CPUs {} have room", list(several)),
        };
        let title =
            format!("the polling thread on CPU {cpu} is full: it had packets in {} of its cycles{room}", percent(share));
        let mut hit = hit(text, cpu, Severity::Medium, title);
        if roomy.is_empty() {
            hit.fix.push("ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask=MASK   # one more CPU of the card's node".into());
            hit.undo.push("ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask=MASK   # the mask as it was".into());
            return hit;
        }
        // One queue cannot be shared by two threads: where it takes nearly all, moving the others helps nobody.
        let queues = all.iter().flat_map(|text| &text.queues).find(|pmd| pmd.cpu == cpu && !pmd.queues.is_empty());
        let usages = || queues.iter().flat_map(|pmd| &pmd.queues).filter_map(|queue| queue.usage);
        let is_one = usages().count() > 0 && usages().fold(0.0, f64::max) > ONE * usages().sum::<f64>();
        if !is_one {
            let how = "its queues, by their load, to those with room; pmd-auto-lb=true in other_config does it by itself";
            hit.fix.push(format!("ovs-appctl dpif-netdev/pmd-rxq-rebalance   # {how}"));
        }
        hit.fix.push("ovs-vsctl set Interface PORT options:n_rxq=2   # of its busiest card: more queues, which others can take (of vhost ports the guest asks, by its queues)".into());
        hit.fix.push(format!("ovs-vsctl set Interface PORT other_config:pmd-rxq-affinity=0:{}   # or by hand: that queue to that CPU, which then serves no other", roomy[0]));
        hit.undo.push("ovs-vsctl remove Interface PORT other_config pmd-rxq-affinity; ovs-vsctl set Interface PORT options:n_rxq=1   # as it was".into());
        hit
    })
    .collect()
}

/// Ports that lost packets, each at the place where it lost most.
fn forwarded(text: &Printed, _: &[Printed]) -> Vec<Hit> {
    let mut hits = Vec::new();
    for port in &text.forwarders {
        let Some((loss, Some(share))) = port.worst() else { continue };
        if share < LOST {
            continue;
        }
        let (lost, place) = (thousands(loss.packets), &loss.place);
        let title = format!("{} {}: {lost} packets, {}, {place}", port.program, port.name, percent(share));
        let seen = Evidence::in_table(title.clone(), "datapath.forwarders")
            .key("port", port.name.as_str())
            .key("file", text.path.as_str());
        let severity = if share >= MANY { Severity::High } else { Severity::Medium };
        let mut hit = Hit::new(format!("{} {}", port.program, port.name), severity, title).with(seen);
        // These programs run in guests and on hosts alike.
        hit.level = Some(Level::Unknown);
        hits.push(hit);
    }
    hits
}

/// Ports of testpmd that had no buffer for packets.
fn buffers(text: &Printed, _: &[Printed]) -> Vec<Hit> {
    let short = text.testpmd.ports.iter().filter_map(|(port, told)| {
        let lost = told.rx_nombuf.filter(|lost| *lost > 0)?;
        let share = lost as f64 / told.rx_packets.unwrap_or(0).saturating_add(lost) as f64;
        (share >= LOST).then_some((port, told, lost, share))
    });
    short
        .map(|(port, told, lost, share)| {
            let title = format!(
                "port {port} of testpmd had no buffer for {} packets, {} of those that came (RX-nombuf)",
                thousands(lost),
                percent(share)
            );
            let seen = Evidence::in_table(format!("RX-nombuf {}", thousands(lost)), "datapath.ports")
                .key("port", u64::from(*port))
                .key("file", text.path.as_str());
            let mut hit = Hit::new(format!("port {port}"), Severity::High, title).with(seen);
            // testpmd runs in guests and on hosts alike.
            hit.level = Some(Level::Unknown);
            match told.rx_missed {
                Some(0) => hit.seen("RX-missed 0: no ring in front of it was full", text.path.as_str()),
                _ => hit,
            }
        })
        .collect()
}

/// All passes of a thread whose kinds were told.
fn passes(pmd: &PmdStatistics) -> Option<u64> {
    let known = [pmd.emc_hits, pmd.simple_match_hits, pmd.smc_hits, pmd.megaflow_hits, pmd.upcalls, pmd.lost_upcalls];
    let sum: u64 = known.into_iter().flatten().fold(0, u64::saturating_add);
    (sum > 0).then_some(sum)
}

/// A thread that hardly works: what its few packets cost is nobody's loss.
fn is_idle(pmd: &PmdStatistics) -> bool {
    pmd.busy_share().is_some_and(|share| share < WORKS)
}

/// Share of a thread's passes that no flow matched.
pub(super) fn missed_share(pmd: &PmdStatistics) -> Option<f64> {
    let missed = pmd.upcalls?.saturating_add(pmd.lost_upcalls.unwrap_or(0));
    Some(missed as f64 / passes(pmd)? as f64)
}

fn upcalls(text: &Printed, _: &[Printed]) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (cpu, pmd) in threads(text) {
        let Some(share) = missed_share(pmd) else { continue };
        let lost = pmd.lost_upcalls.unwrap_or(0);
        if share < UPCALLS || is_idle(pmd) {
            continue;
        }
        let and_lost = match lost {
            0 => String::new(),
            lost => format!("; {} lost", counted(lost, "of them was", "of them were")),
        };
        let title =
            format!("{} of the passes on CPU {cpu} matched no flow and went to ovs-vswitchd{and_lost}", percent(share));
        hits.push(hit(text, cpu, Severity::Medium, title));
    }
    hits
}

fn caches(text: &Printed, _: &[Printed]) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (cpu, pmd) in threads(text) {
        // A cache that is not told, or that never finds anything because it is off, is not judged.
        let (Some(all), Some(emc), Some(megaflow)) = (passes(pmd), pmd.emc_hits, pmd.megaflow_hits) else { continue };
        let cached =
            [Some(emc), pmd.smc_hits, pmd.simple_match_hits].into_iter().flatten().fold(0, u64::saturating_add);
        let share = cached as f64 / all as f64;
        if emc == 0 || share >= CACHED || megaflow <= cached || is_idle(pmd) {
            continue;
        }
        let title = format!(
            "the caches of CPU {cpu} found {} of its passes, the others were looked up among wildcarded flows",
            percent(share)
        );
        hits.push(hit(text, cpu, Severity::Low, title));
    }
    hits
}

fn batches(text: &Printed, _: &[Printed]) -> Vec<Hit> {
    let small = threads(text).filter_map(|(cpu, pmd)| {
        let batch = pmd.packets_per_batch.filter(|batch| *batch > 0.0 && *batch < SMALL_BATCH)?;
        let share = pmd.busy_share().filter(|share| *share >= FULL)?;
        Some((cpu, batch, share))
    });
    small
        .map(|(cpu, batch, share)| {
            let title = format!(
                "CPU {cpu} sends {} packets in a batch of at most 32, and is busy in {} of its cycles",
                plain(batch),
                percent(share)
            );
            hit(text, cpu, Severity::Low, title)
        })
        .collect()
}

fn bursts(text: &Printed, _: &[Printed]) -> Vec<Hit> {
    let is_lossy = |share: Option<f64>| share.is_some_and(|share| share >= LOST);
    let lossy: Vec<(usize, _)> =
        text.traffic.iter().enumerate().filter(|(_, interval)| is_lossy(interval.drop_share)).collect();
    let (Some((first, from)), Some((last, until))) = (lossy.first(), lossy.last()) else { return Vec::new() };
    let lost: i64 = lossy.iter().filter_map(|(_, interval)| interval.dropped).fold(0, i64::saturating_add);
    let worst = lossy.iter().filter_map(|(_, interval)| interval.drop_share).fold(0.0, f64::max);
    let when = match (&from.at, &until.at) {
        (Some(from), Some(until)) if from != until => format!(" from {from} to {until}"),
        (Some(from), _) => format!(" at {from}"),
        _ => String::new(),
    };
    let how_many = u64::try_from(lost).ok().filter(|lost| *lost > 0);
    let what = how_many
        .map_or("packets were lost".to_owned(), |lost| format!("{} lost", counted(lost, "packet was", "packets were")));
    let all = text.traffic.len();
    let title = format!(
        "{what} in {} of {}{when}, up to {} of an interval's",
        lossy.len(),
        many(all as u64, "interval"),
        percent(worst)
    );
    let is_short = last - first + 1 < all;
    let kind = if is_short { "before and after it nothing is lost" } else { "every interval has losses" };
    let seen = Evidence::in_table(kind, "datapath.traffic").key("file", text.path.as_str());
    vec![Hit::new("traffic", Severity::Medium, title).with(seen)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(text: &str) -> Vec<String> {
        let pmds = host::polled::pmd::read(text);
        let traffic = host::polled::traffic::read(text);
        let printed = Printed {
            machine: "L0".into(),
            path: "t".into(),
            pmds,
            queues: Vec::new(),
            flows: Vec::new(),
            testpmd: host::polled::testpmd::Testpmd::default(),
            traffic,
            forwarders: host::polled::forwarders::read(text),
        };
        findings(&[printed]).into_iter().map(|finding| format!("{} {}", finding.rule, finding.title)).collect()
    }

    fn stats(emc: u64, megaflow: u64, miss: u64, lost: u64, busy: u64, idle: u64, batch: &str) -> String {
        format!(
            "pmd thread numa_id 0 core_id 4:\n  packets received: 1000\n  packet recirculations: 0\n  avg. datapath passes per packet: 1.00\n\
             \x20 emc hits: {emc}\n  smc hits: 0\n  megaflow hits: {megaflow}\n  avg. subtable lookups per megaflow hit: 2.00\n\
             \x20 miss with success upcall: {miss}\n  miss with failed upcall: {lost}\n  avg. packets per output batch: {batch}\n\
             \x20 idle cycles: {idle} ({:.2}%)\n  processing cycles: {busy} ({:.2}%)\n",
            idle as f64 * 100.0 / (busy + idle) as f64,
            busy as f64 * 100.0 / (busy + idle) as f64
        )
    }

    #[test]
    fn a_thread_is_judged_by_each_of_its_counters_and_a_calm_one_by_none() {
        assert_eq!(titles(&stats(900, 100, 0, 0, 50, 50, "16.00")), Vec::<String>::new());
        assert_eq!(
            titles(&stats(900, 100, 0, 0, 99, 1, "16.00")),
            ["DTP-FULL the polling thread on CPU 4 is full: it had packets in 99.0 % of its cycles"]
        );
        let idle = stats(900, 100, 0, 0, 1, 99, "16.00").replace("core_id 4", "core_id 6");
        let beside = titles(&format!("{}{idle}", stats(900, 100, 0, 0, 99, 1, "16.00")));
        assert!(beside[0].ends_with("of its cycles, and that on CPU 6 has room"), "{beside:?}");
        let upcalls = titles(&stats(800, 100, 90, 10, 50, 50, "16.00"));
        assert_eq!(
            upcalls,
            [
                "DTP-UPCALLS 10.0 % of the passes on CPU 4 matched no flow and went to ovs-vswitchd; 10 of them were lost"
            ]
        );
        let few = titles(&stats(800, 100, 90, 10, 1, 9_999, "16.00"));
        assert_eq!(few, Vec::<String>::new(), "of an idle thread");
        let caches = titles(&stats(100, 900, 0, 0, 50, 50, "16.00"));
        assert_eq!(
            caches,
            [
                "DTP-CACHE the caches of CPU 4 found 10.0 % of its passes, the others were looked up among wildcarded flows"
            ]
        );
        assert_eq!(titles(&stats(0, 1_000, 0, 0, 50, 50, "16.00")), Vec::<String>::new(), "a cache that is off");
        assert_eq!(titles(&stats(900, 100, 0, 0, 99, 1, "1.20")).len(), 2, "full, with small batches");
    }

    #[test]
    fn a_port_that_loses_packets_is_told_with_the_place() {
        let text = |dropped: u64| {
            format!(
                "Port statistics ====\nStatistics for port 0 ------------------------------\nPackets sent: 75000\nPackets received: 9\nPackets dropped: {dropped}\n"
            )
        };
        assert_eq!(
            titles(&text(25_000)),
            ["DTP-LOST l2fwd port 0: 25,000 packets, 25.0 %, were dropped on the way out: its ring took no more"]
        );
        assert_eq!(titles(&text(5)), Vec::<String>::new());
    }

    #[test]
    fn a_burst_is_told_with_its_times() {
        let line = |at: &str, lost: &str, share: &str| {
            format!("2020-04-25 {at},000 INFO TX: 9; RX: 8; (Est.) Dropped: {lost}; Drop rate: {share}%\n")
        };
        let text = [
            line("12:59:18", "39", "0.0008"),
            line("12:59:19", "430,938", "8.5833"),
            line("12:59:20", "2,514,784", "50.0883"),
            line("12:59:21", "3", "0.0001"),
        ];
        assert_eq!(
            titles(&text.concat()),
            [
                "DTP-BURST 2,945,722 packets were lost in 2 of 4 intervals from 2020-04-25 12:59:19,000 to 2020-04-25 12:59:20,000, up to 50.1 % of an interval's"
            ]
        );
        assert_eq!(titles(&text[0]), Vec::<String>::new());
    }
}
