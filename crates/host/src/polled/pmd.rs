//! `ovs-appctl dpif-netdev/pmd-perf-show` and `pmd-stats-show`: what each polling thread did with its cycles.
//!
//! One reader for both and for all versions, because a line means the same wherever it stands: a heading names the thread, and
//! each line below it is `name: number (more)`. Formats: lib/dpif-netdev.c and lib/dpif-netdev-perf.c, Open vSwitch 2.6 to 3.1;
//! 4.0 has `pmd-perf-show` alone (its NEWS).

use super::{MOST, bracket, fraction, number};

/// What a polling thread says of itself since its counters were cleared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PmdStatistics {
    /// Its CPU; `None`: the main thread.
    pub cpu: Option<u32>,
    /// The node of that CPU.
    pub node: Option<u32>,
    /// Turns of its loop.
    pub(crate) iterations: Option<u64>,
    /// TSC cycles of its loop, idle turns counted.
    pub used_cycles: Option<u64>,
    /// Those of turns that found packets. `pmd-perf-show` prints them as a share with one decimal.
    pub busy_cycles: Option<u64>,
    pub packets: Option<u64>,
    /// Packets a second, where it prints them.
    pub packets_per_s: Option<f64>,
    /// Passes through the tables; a packet that is recirculated takes several.
    pub passes: Option<u64>,
    /// Passes that were found in the cache of exact matches.
    pub emc_hits: Option<u64>,
    /// Those found by the simple match on the port (since 2.17).
    pub simple_match_hits: Option<u64>,
    /// Those found in the signature match cache.
    pub smc_hits: Option<u64>,
    /// Those found among wildcarded flows.
    pub megaflow_hits: Option<u64>,
    /// Passes that no flow matched.
    pub upcalls: Option<u64>,
    pub lost_upcalls: Option<u64>,
    /// Packets that it sent, those counted that a port then dropped.
    pub tx_packets: Option<u64>,
    pub tx_batches: Option<u64>,
    pub packets_per_batch: Option<f64>,
    /// Time that it slept, `other_config:pmd-maxsleep` (since 3.1).
    pub(crate) sleep_us: Option<u64>,
    /// How long it may sleep at a time, `pmd-sleep-show` (since 3.3).
    pub max_sleep_us: Option<u64>,
}

type Slot = fn(&mut PmdStatistics) -> &mut Option<u64>;

/// Names of lines, in lower case and without the dash in front, with what the first number behind means.
const LINES: &[(&str, Slot)] = &[
    ("iterations", |pmd| &mut pmd.iterations),
    ("used tsc cycles", |pmd| &mut pmd.used_cycles),
    // Until 2.12.
    ("cycles", |pmd| &mut pmd.used_cycles),
    ("rx packets", |pmd| &mut pmd.packets),
    ("packets received", |pmd| &mut pmd.packets),
    ("datapath passes", |pmd| &mut pmd.passes),
    ("emc hits", |pmd| &mut pmd.emc_hits),
    ("simple match hits", |pmd| &mut pmd.simple_match_hits),
    ("smc hits", |pmd| &mut pmd.smc_hits),
    ("megaflow hits", |pmd| &mut pmd.megaflow_hits),
    ("upcalls", |pmd| &mut pmd.upcalls),
    ("miss with success upcall", |pmd| &mut pmd.upcalls),
    ("miss", |pmd| &mut pmd.upcalls),
    ("lost upcalls", |pmd| &mut pmd.lost_upcalls),
    ("miss with failed upcall", |pmd| &mut pmd.lost_upcalls),
    ("lost", |pmd| &mut pmd.lost_upcalls),
    ("tx packets", |pmd| &mut pmd.tx_packets),
    ("tx batches", |pmd| &mut pmd.tx_batches),
    ("sleep time (us)", |pmd| &mut pmd.sleep_us),
    ("max sleep", |pmd| &mut pmd.max_sleep_us),
    ("processing cycles", |pmd| &mut pmd.busy_cycles),
];

impl PmdStatistics {
    /// TSC cycles for each packet, those of turns without packets not counted; `None` where nothing was received.
    pub fn cycles_per_packet(&self) -> Option<f64> {
        let packets = self.packets.filter(|packets| *packets > 0)?;
        Some(self.busy_cycles? as f64 / packets as f64)
    }

    /// Share of its cycles in turns that found packets. Polling counts as use elsewhere; here it does not.
    pub fn busy_share(&self) -> Option<f64> {
        let used = self.used_cycles.filter(|used| *used > 0)?;
        Some((self.busy_cycles? as f64 / used as f64).min(1.0))
    }
}

/// Reads all threads in the order in which they stand. A thread that is printed again is told again: whoever wants the last
/// word takes the last one.
pub fn read(text: &str) -> Vec<PmdStatistics> {
    let mut threads: Vec<PmdStatistics> = Vec::new();
    // The lines of a heading; those of another thing end them.
    let mut open = false;
    // What `pmd-stats-show` prints of the cycles of turns without packets.
    let mut idle_cycles = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(thread) = heading(line) {
            open = threads.len() < MOST;
            if open {
                threads.push(thread);
            }
            idle_cycles = None;
            continue;
        }
        let Some(thread) = threads.last_mut().filter(|_| open) else { continue };
        let Some((name, rest)) = line.trim_start_matches(['-', ' ']).split_once(':') else { continue };
        let name = name.trim().to_ascii_lowercase();
        if let Some((_, slot)) = LINES.iter().find(|(known, _)| *known == name) {
            *slot(thread) = number(rest).or(*slot(thread));
        }
        match name.as_str() {
            // `- busy iterations:  2131160  (100.0 % of used cycles)`, until 2.12 `- busy:  86009  (84.1 % cycles)`
            "busy iterations" | "busy" => {
                let share = bracket(rest).and_then(fraction).filter(|percent| *percent <= 100.0);
                let used = thread.used_cycles;
                thread.busy_cycles = share.zip(used).map(|(percent, used)| (used as f64 * percent / 100.0) as u64);
            }
            // `Rx packets:  2399607  (2381 Kpps, 848 cycles/pkt)`
            "rx packets" => {
                let thousands = bracket(rest).and_then(|rate| rate.split_once(" Kpps")?.0.trim().parse::<f64>().ok());
                thread.packets_per_s = thousands.map(|thousands| thousands * 1e3);
            }
            "idle cycles" | "polling cycles" => idle_cycles = number(rest),
            "tx batches" => thread.packets_per_batch = bracket(rest).and_then(fraction),
            "avg. packets per output batch" => thread.packets_per_batch = fraction(rest),
            // `avg cycles per packet: 264.33 (8192/31)`: versions before 2.10 print the packets nowhere else.
            "avg cycles per packet" if thread.packets.is_none() => {
                thread.packets = bracket(rest).and_then(|ratio| number(ratio.split_once('/')?.1));
            }
            _ => {}
        }
        if thread.used_cycles.is_none() && name == "processing cycles" {
            thread.used_cycles = idle_cycles.zip(thread.busy_cycles).and_then(|(idle, busy)| idle.checked_add(busy));
        }
    }
    let is_told = |thread: &PmdStatistics| {
        thread.used_cycles.is_some() || thread.packets.is_some() || thread.max_sleep_us.is_some()
    };
    threads.retain(is_told);
    threads
}

/// `pmd thread numa_id 0 core_id 4:`, `main thread:`.
fn heading(line: &str) -> Option<PmdStatistics> {
    if line == "main thread:" {
        return Some(PmdStatistics::default());
    }
    let mut words = line.strip_prefix("pmd thread numa_id ")?.trim_end_matches(':').split_whitespace();
    let node = words.next()?.parse().ok();
    let cpu = words.nth(1)?.parse().ok().filter(|cpu| *cpu < base::cpus::MOST_CPUS)?;
    Some(PmdStatistics { cpu: Some(cpu), node, ..PmdStatistics::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_until_2_12_is_read() {
        let text = "pmd thread numa_id 0 core_id 1:\n\n  Cycles:            2419034712  (2.40 GHz)\n  Iterations:            572817  (1.76 us/it)\n  - idle:                486808  (15.9 % cycles)\n  - busy:                 86009  (84.1 % cycles)\n  Rx packets:           2399607  (2381 Kpps, 848 cycles/pkt)\n";
        let thread = &read(text)[0];
        assert_eq!((thread.packets, thread.packets_per_s, thread.cpu), (Some(2_399_607), Some(2_381_000.0), Some(1)));
        let (busy, cycles) = (thread.busy_share().unwrap(), thread.cycles_per_packet().unwrap());
        assert!((busy - 0.841).abs() < 1e-3 && (cycles - 848.0).abs() < 1.0, "{busy} {cycles}");
    }

    /// Open vSwitch 3.1.0 of Debian 12, a chain of one VNF under load, and the main thread.
    const PERF: &str = "\
Time: 23:27:47.576
Measurement duration: 3.060 s

pmd thread numa_id 0 core_id 0:

  Iterations:              2131160  (1.44 us/it)
  - Used TSC cycles:    7955658096  (100.0 % of total cycles)
  - idle iterations:             0  (  0.0 % of used cycles)
  - busy iterations:       2131160  (100.0 % of used cycles)
  - sleep iterations:            0  (  0.0 % of iterations)
  Sleep time (us):               0  (  0 us/iteration avg.)
  Rx packets:             78409664  (25624 Kpps, 101 cycles/pkt)
  Datapath passes:        78409664  (1.00 passes/pkt)
  - PHWOL hits:                  0  (  0.0 %)
  - MFEX Opt hits:               0  (  0.0 %)
  - Simple Match hits:    78409664  (100.0 %)
  - EMC hits:                    0  (  0.0 %)
  - SMC hits:                    0  (  0.0 %)
  - Megaflow hits:               0  (  0.0 %, 0.00 subtbl lookups/hit)
  - Upcalls:                     0  (  0.0 %, 0.0 us/upcall)
  - Lost upcalls:                0  (  0.0 %)
  Tx packets:             68197152  (22287 Kpps)
  Tx batches:              2131161  (32.00 pkts/batch)
";
    const STATS: &str = "\
pmd thread numa_id 0 core_id 0:
  packets received: 78692576
  packet recirculations: 0
  avg. datapath passes per packet: 1.00
  phwol hits: 0
  mfex opt hits: 0
  simple match hits: 78692576
  emc hits: 7
  smc hits: 0
  megaflow hits: 0
  avg. subtable lookups per megaflow hit: 0.00
  miss with success upcall: 2
  miss with failed upcall: 1
  avg. packets per output batch: 32.00
  idle cycles: 1000 (0.00%)
  processing cycles: 8006608484 (100.00%)
  avg cycles per packet: 101.75 (8006608484/78692576)
  avg processing cycles per packet: 101.75 (8006608484/78692576)
main thread:
  packets received: 0
  packet recirculations: 0
  avg. datapath passes per packet: 0.00
";
    /// As Open vSwitch 2.6 prints it (`pmd_info_show_stats`, lib/dpif-netdev.c).
    const OLD: &str = "pmd thread numa_id 0 core_id 2:\n\temc hits:30\n\tmegaflow hits:0\n\tavg. subtable lookups per hit:0.00\n\
        \tmiss:1\n\tlost:0\n\tpolling cycles:4096 (50.00%)\n\tprocessing cycles:4096 (50.00%)\n\
        \tavg cycles per packet: 264.25 (8192/31)\n\tavg processing cycles per packet: 132.12 (4096/31)\n";

    #[test]
    fn the_newest_format_has_all_numbers() {
        let [pmd] = &read(PERF)[..] else { panic!() };
        assert_eq!(
            (pmd.cpu, pmd.node, pmd.packets, pmd.iterations),
            (Some(0), Some(0), Some(78_409_664), Some(2_131_160))
        );
        assert_eq!((pmd.used_cycles, pmd.busy_cycles), (Some(7_955_658_096), Some(7_955_658_096)));
        assert_eq!(
            (pmd.tx_packets, pmd.tx_batches, pmd.packets_per_batch),
            (Some(68_197_152), Some(2_131_161), Some(32.0))
        );
        assert_eq!((pmd.simple_match_hits, pmd.emc_hits, pmd.lost_upcalls), (Some(78_409_664), Some(0), Some(0)));
        assert!((pmd.cycles_per_packet().unwrap() - 101.46).abs() < 0.01 && pmd.busy_share() == Some(1.0));
    }

    #[test]
    fn half_a_share_is_half_the_cycles() {
        let half = PERF.replace("2131160  (100.0 % of used", "2131160  ( 50.0 % of used");
        assert_eq!(read(&half)[0].busy_cycles, Some(3_977_829_048));
    }

    #[test]
    fn without_traffic_what_is_not_printed_is_missing() {
        let silent = "pmd thread numa_id 0 core_id 1:\n\n  Iterations: 9  (0.12 us/it)\n  - Used TSC cycles: 90  (100.0 % of total cycles)\n\
            \x20 - idle iterations: 9  (100.0 % of used cycles)\n  - busy iterations: 0  (  0.0 % of used cycles)\n  Rx packets: 0\n  Tx packets: 0\n";
        let [pmd] = &read(silent)[..] else { panic!() };
        assert_eq!((pmd.packets, pmd.busy_cycles, pmd.emc_hits, pmd.passes), (Some(0), Some(0), None, None));
        assert_eq!((pmd.cycles_per_packet(), pmd.busy_share()), (None, Some(0.0)));
    }

    #[test]
    fn older_formats_say_the_same_in_other_words() {
        let [pmd, main] = &read(STATS)[..] else { panic!() };
        assert_eq!(
            (pmd.packets, pmd.busy_cycles, pmd.used_cycles),
            (Some(78_692_576), Some(8_006_608_484), Some(8_006_609_484))
        );
        assert_eq!((pmd.upcalls, pmd.lost_upcalls, pmd.packets_per_batch), (Some(2), Some(1), Some(32.0)));
        assert_eq!((main.cpu, main.packets, main.used_cycles), (None, Some(0), None));
        let [old] = &read(OLD)[..] else { panic!() };
        assert_eq!(
            (old.cpu, old.packets, old.used_cycles, old.busy_cycles),
            (Some(2), Some(31), Some(8192), Some(4096))
        );
        assert_eq!(
            (old.emc_hits, old.megaflow_hits, old.upcalls, old.lost_upcalls),
            (Some(30), Some(0), Some(1), Some(0))
        );
    }

    #[test]
    fn text_of_other_things_is_passed_over() {
        assert_eq!(read(&format!("$ ovs-appctl x\n{PERF}\n$ ls\nfile: 3\n")).len(), 1);
        assert!(read("pmd thread numa_id 0 core_id 4:\n  isolated : false\n").is_empty(), "queues alone");
        assert!(read("pmd thread numa_id 0 core_id 99999999:\n  Rx packets: 5\n").is_empty());
        assert!(read("Rx packets: 5\n").is_empty());
    }
}
