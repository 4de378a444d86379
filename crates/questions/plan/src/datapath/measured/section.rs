//! The answer of what was measured.

use super::beside;
use super::dials;
use super::figure;
use super::gaps::{self, Gaps};
use super::judged;
use super::kinds::{self, Kind};
use super::rules;
use super::tables;
use base::number::{counted, many, percent, plain, thousands};
use base::{Section, Unknown};
use facts::datapaths::{Datapaths, Printed};
use facts::{Answer, Case, Error};
use host::polled::forwarders::Port;
use host::polled::testpmd::PortStatistics;

pub const QUESTION: &str = "How many packets did the datapath carry, where did the others go, and what did each cost?";

/// What of the environment stands above the answer.
const TOLD: &[&str] = &["cpu", "kernel", "hypervisor", "Open vSwitch", "DPDK", "memory", "size of frames"];

/// Answers it; `None` if nothing was measured or printed.
///
/// # Errors
/// None: what could not be read is a problem of the recording.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let datapaths = case.datapaths();
    let section = || section(datapaths, gaps::of(case, &datapaths.beds));
    Ok((!datapaths.is_empty()).then(|| Answer { section: section(), problems: Vec::new() }))
}

fn section(datapaths: &Datapaths, gaps: Gaps) -> Section {
    let Datapaths { beds, printed } = datapaths;
    let mut section = Section::new("datapath", QUESTION);
    let kinds = kinds::of(beds);
    let cycles = kinds::cycles(beds);
    for bed in beds {
        let told = TOLD.iter().filter_map(|name| Some(format!("{name}: {}", bed.runs.environment.get(*name)?)));
        section.about.extend(told);
        section.about.extend(bed.runs.notes.iter().cloned());
    }
    section.findings = rules::findings(beds, &gaps.who);
    if beds.is_empty() {
        // In a trial the senders fill the thread on purpose, and the bed says what bound it.
        section.findings.extend(judged::findings(printed));
    }
    section.about.extend(gaps.who.into_iter().chain(gaps.told));
    section.summary = if beds.is_empty() { of_printed(printed) } else { of_kinds(&kinds) };
    section.figures.extend(figure::rates(&kinds));
    if !beds.is_empty() {
        section.tables.extend([tables::rates(&kinds), tables::trials(beds), tables::books(beds)]);
        section.tables.extend((!cycles.is_empty()).then(|| tables::cycles(&cycles)));
        section.tables.extend(super::unseen::table(beds, &kinds));
        section.tables.push(tables::pollers(beds));
        section.tables.extend(gaps.table);
        section.tables.extend(beside::tables(beds));
        section.tables.extend(dials::tables(beds));
    }
    section.tables.extend(super::printed::tables(printed));
    section.unknown = unknown(datapaths);
    section.unknown.extend(gaps.unknown);
    section
}

/// The rates in sentences: of many the first and the last, which of packets of one size are the highest and the lowest.
fn of_kinds(kinds: &[Kind<'_>]) -> String {
    let mut told: Vec<&Kind<'_>> =
        kinds.iter().filter(|kind| kind.first().is_some() && kind.chain_pps().is_some()).collect();
    let sizes = told.iter().filter_map(|kind| kind.first()).map(|run| (run.pattern, run.size_bytes));
    let is_alike = sizes.clone().zip(sizes.skip(1)).all(|(one, next)| one == next);
    if is_alike {
        let rate = |kind: &Kind<'_>| kind.chain_pps().map_or(0.0, |pps| pps.median);
        told.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
    }
    let said: Vec<String> = told.into_iter().filter_map(of_kind).collect();
    match said.as_slice() {
        [] => "No trial was made at the most that can be sent.".to_owned(),
        [first, others @ .., last] if others.len() > 1 && is_alike => {
            format!("{first} {last} {} others lie between (table rates).", others.len())
        }
        [first, others @ .., last] if others.len() > 1 => {
            format!("{first} {last} The table of rates has the {} others.", others.len())
        }
        few => few.join(" "),
    }
}

fn of_kind(kind: &Kind<'_>) -> Option<String> {
    let (run, pps) = (kind.first()?, kind.chain_pps()?);
    let what = match run.pattern {
        base::datapath::Traffic::Chain => format!("A chain of {}", many(u64::from(run.vnfs), "VNF")),
        base::datapath::Traffic::NorthSouth => format!("Each of {} side by side", many(u64::from(run.vnfs), "VNF")),
    };
    let spread = match pps.count {
        1 => "one trial".to_owned(),
        count => format!("{} to {} over {count} trials", plain(pps.low / 1e6), plain(pps.high / 1e6)),
    };
    let bound = match kind.bound_by() {
        Some(bound) => format!("; {}", bound_words(bound)),
        None if kind.is_disturbed() => "; polling threads waited for their CPUs".to_owned(),
        None => String::new(),
    };
    let (design, size, rate) = (&run.design, run.size_bytes, plain(pps.median / 1e6));
    Some(format!("{what} on {design} carried {rate} Mpps of {size} bytes at full load, measured ({spread}){bound}."))
}

/// What a binding resource is, for people.
fn bound_words(resource: &str) -> String {
    match resource {
        "pmd" => "the polling thread of the switch bound it".to_owned(),
        "guest" => "the VNFs bound it: their rings were full".to_owned(),
        other => format!("bound by {other}"),
    }
}

/// What programs printed, in a sentence.
fn of_printed(printed: &[Printed]) -> String {
    let pmds: Vec<_> = printed.iter().flat_map(|text| &text.pmds).filter(|pmd| pmd.cpu.is_some()).collect();
    let busiest =
        pmds.iter().filter_map(|pmd| Some((pmd.busy_share()?, *pmd))).max_by(|one, other| one.0.total_cmp(&other.0));
    if let Some((share, pmd)) = busiest {
        let cycles =
            pmd.cycles_per_packet().map(|cycles| format!(" and spent {} cycles on each packet", plain(cycles)));
        let lost: u64 = pmds.iter().filter_map(|pmd| pmd.lost_upcalls).sum();
        let lost = match lost {
            0 => String::new(),
            lost => format!(" {} lost.", counted(lost, "upcall was", "upcalls were")),
        };
        let rate = pmd.packets_per_s.map(|rate| format!("; it received {} packets per second", thousands(rate as u64)));
        // A thread beside it that has nothing to do could take a part.
        let idle: Vec<String> = pmds
            .iter()
            .filter(|pmd| pmd.packets == Some(0))
            .filter_map(|pmd| pmd.cpu.map(|cpu| cpu.to_string()))
            .collect();
        let idle = match idle.is_empty() {
            true => String::new(),
            false => format!(" {} received no packet: on CPU {}.", many(idle.len() as u64, "thread"), idle.join(", ")),
        };
        let queue = busiest_queue(printed).map_or(String::new(), |told| format!(" {told}"));
        let forwarded = of_forwarded(printed).map_or(String::new(), |told| format!(" Beside them {told}"));
        let missed = judged::missed_share(pmd).filter(|share| *share >= judged::UPCALLS);
        let missed = missed.map_or(String::new(), |share| {
            format!(" {} of its passes matched no flow, and went to ovs-vswitchd.", percent(share))
        });
        return format!(
            "{}; the busiest, on CPU {}, had packets in {} of its cycles{}{}.{missed}{lost}{idle}{queue}{forwarded}",
            many(pmds.len() as u64, "polling thread"),
            pmd.cpu.unwrap_or_default(),
            percent(share),
            cycles.unwrap_or_default(),
            rate.unwrap_or_default()
        );
    }
    let intervals: Vec<_> = printed.iter().flat_map(|text| &text.traffic).collect();
    if let (Some(first), Some(last)) = (intervals.first(), intervals.last()) {
        let sent = first.tx_packets.zip(last.tx_packets).and_then(|(first, last)| last.checked_sub(first));
        let sent = sent.filter(|sent| *sent > 0).map(|sent| {
            format!(
                "{} packets between the first and the last of {}",
                thousands(sent),
                many(intervals.len() as u64, "interval")
            )
        });
        let rate = last.tx_pps.map(|pps| format!("{} packets per second", thousands(pps as u64)));
        let lost: i64 = intervals.iter().filter_map(|interval| interval.dropped).fold(0, i64::saturating_add);
        let lost = u64::try_from(lost)
            .ok()
            .filter(|lost| *lost > 0)
            .map(|lost| format!("; {} did not come back", thousands(lost)));
        let share =
            last.drop_share.filter(|_| lost.is_none()).map(|share| format!("; {} of it was dropped", percent(share)));
        let what = sent.or(rate).unwrap_or_else(|| "packets".to_owned());
        return format!("The traffic generator sent {what}{}{}.", lost.unwrap_or_default(), share.unwrap_or_default());
    }
    let ports = || printed.iter().flat_map(|text| text.testpmd.ports.values());
    let pps: Vec<u64> = ports().filter_map(|port| port.tx_pps).collect();
    if !pps.is_empty() {
        let lost = |of: &dyn Fn(&PortStatistics) -> Option<u64>, what: &str| {
            let count = ports().filter_map(of).fold(0, u64::saturating_add);
            (count > 0).then(|| format!("; {} {what}", counted(count, "packet", "packets")))
        };
        let errors = lost(&|port| port.tx_errors, "could not be sent (TX-errors)");
        let missed = lost(&|port| port.rx_missed, "were missed on the way in (RX-missed)");
        let unbuffered = lost(&|port| port.rx_nombuf, "found no buffer (RX-nombuf)");
        let sum = |of: &dyn Fn(&PortStatistics) -> Option<u64>| ports().filter_map(of).fold(0, u64::saturating_add);
        let (sent, received) = (sum(&|port| port.tx_pps), sum(&|port| port.rx_pps));
        // A sink sends nothing on purpose, a source receives nothing.
        let rates = match (sent, received) {
            (0, 1..) => format!("received {} packets per second and sent none", thousands(received)),
            (_, 0) => format!("sent {} packets per second", thousands(sent)),
            _ => format!("sent {} packets per second and received {}", thousands(sent), thousands(received)),
        };
        return format!(
            "testpmd {rates} when it was asked last{}{}{}.",
            errors.unwrap_or_default(),
            missed.unwrap_or_default(),
            unbuffered.unwrap_or_default()
        );
    }
    of_forwarded(printed)
        .or_else(|| of_forwarders(printed))
        .or_else(|| busiest_queue(printed))
        .or_else(|| unmeasured(printed))
        .or_else(|| sleepers(printed))
        .unwrap_or_else(|| match printed.iter().any(|text| !text.flows.is_empty()) {
            true => "Packets of flows were printed, and no rate.".to_owned(),
            false => "What a switch printed has no count of packets.".to_owned(),
        })
}

/// Ports that are told in the sentence; the table has all of them.
const MOST_PORTS: usize = 3;

/// What other forwarders and generators carried: first where most was lost, else each port.
fn of_forwarders(printed: &[Printed]) -> Option<String> {
    let mut ports: Vec<&Port> = printed.iter().flat_map(|text| &text.forwarders).collect();
    ports.sort_by_key(|port| std::cmp::Reverse(port.worst().map(|(loss, _)| loss.packets)));
    let told: Vec<String> = ports.iter().take(MOST_PORTS).map(|port| of_port(port)).collect();
    let others = ports.len().saturating_sub(told.len());
    let rest = match others {
        0 => String::new(),
        others => format!(" {} in the table.", counted(others as u64, "more port is", "more ports are")),
    };
    let is_clean = ports.iter().all(|port| port.counts_losses && port.losses.is_empty());
    let none = if is_clean { " None of them counts a lost packet." } else { "" };
    (!told.is_empty()).then(|| format!("{}{rest}{none}", told.join(" ")))
}

fn of_port(port: &Port) -> String {
    let told = |rate: Option<u64>, sum: Option<u64>| match (rate, sum) {
        (Some(rate), _) => Some(format!("{} packets per second", thousands(rate))),
        (None, Some(sum)) => Some(counted(sum, "packet", "packets")),
        (None, None) => None,
    };
    let mut said: Vec<String> = Vec::new();
    said.extend(told(port.tx_pps, port.sent).map(|sent| format!("sent {sent}")));
    said.extend(told(port.rx_pps, port.received).map(|received| format!("received {received}")));
    let lost = port.worst().map_or(String::new(), |(loss, share)| {
        let share = share.map_or(String::new(), |share| format!(" ({})", percent(share)));
        format!("; {}{share} {}", counted(loss.packets, "packet", "packets"), loss.place)
    });
    format!("{} {} {}{lost}.", port.program, port.name, said.join(" and "))
}

/// Polling threads that may sleep: what arrives meanwhile waits.
fn sleepers(printed: &[Printed]) -> Option<String> {
    let threads = || printed.iter().flat_map(|text| &text.pmds).filter_map(|pmd| pmd.cpu.zip(pmd.max_sleep_us));
    let sleep: Vec<(u32, u64)> = threads().filter(|(_, us)| *us > 0).collect();
    let longest = sleep.iter().map(|(_, us)| *us).max();
    Some(match longest {
        None if threads().next().is_none() => return None,
        None => format!("None of {} may sleep.", many(threads().count() as u64, "polling thread")),
        Some(us) => {
            let cpus: Vec<String> = sleep.iter().map(|(cpu, _)| cpu.to_string()).collect();
            format!(
                "{} of {} may sleep up to {us} us at a time where few packets come, on CPUs {}: a packet that arrives meanwhile waits as long. \
                 `ovs-vsctl set Open_vSwitch . other_config:pmd-sleep-max=0` ends it, for CPU time.",
                sleep.len(),
                many(threads().count() as u64, "polling thread"),
                cpus.join(", ")
            )
        }
    })
}

/// Receive queues that were not measured yet are served all the same.
fn unmeasured(printed: &[Printed]) -> Option<String> {
    let queues = printed.iter().flat_map(|text| &text.queues);
    let served = queues.flat_map(|pmd| pmd.queues.iter().map(move |queue| (pmd.cpu, queue)));
    let told: Vec<String> =
        served.map(|(cpu, queue)| format!("queue {} of {} by CPU {cpu}", queue.queue, queue.port)).collect();
    if told.is_empty() {
        return None;
    }
    let shown = told.iter().take(MOST_PORTS).cloned().collect::<Vec<_>>().join(", ");
    let rest = if told.len() > MOST_PORTS { " and others" } else { "" };
    Some(format!("Receive queues are polled as follows: {shown}{rest}; their load was not measured yet."))
}

/// The receive queue that takes most of a polling thread.
fn busiest_queue(printed: &[Printed]) -> Option<String> {
    let queues = printed
        .iter()
        .flat_map(|text| &text.queues)
        .flat_map(|pmd| pmd.queues.iter().map(move |queue| (pmd.cpu, queue)));
    let busiest = queues.filter_map(|(cpu, queue)| Some((queue.usage?, cpu, queue)));
    let (usage, cpu, queue) = busiest.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let (port, number) = (&queue.port, queue.queue);
    Some(format!("Of the receive queues, queue {number} of {port} takes most: {} of CPU {cpu}.", percent(usage)))
}

/// What testpmd forwarded, and where it dropped: what it could not send found no room in the ring of that port, which somebody else empties.
fn of_forwarded(printed: &[Printed]) -> Option<String> {
    let last = printed.iter().rev().map(|text| &text.testpmd).find(|testpmd| !testpmd.forwarded.is_empty())?;
    let sent = last.forwarded.values().filter_map(|port| port.tx_packets).fold(0, u64::saturating_add);
    let mut said =
        format!("testpmd sent {} packets through {}", thousands(sent), many(last.forwarded.len() as u64, "port"));
    let share = |dropped: u64, passed: Option<u64>| {
        let all = dropped.saturating_add(passed.unwrap_or(0)).max(1);
        format!("{} ({})", thousands(dropped), percent(dropped as f64 / all as f64))
    };
    let mut drops = Vec::new();
    for (port, told) in &last.forwarded {
        drops.extend(told.tx_dropped.filter(|dropped| *dropped > 0).map(|dropped| {
            format!(
                "port {port} dropped {} of what it was to send: its ring was full (TX-dropped)",
                share(dropped, told.tx_packets)
            )
        }));
        drops.extend(
            told.rx_dropped.filter(|dropped| *dropped > 0).map(|dropped| {
                format!("port {port} lost {} on the way in (RX-dropped)", share(dropped, told.rx_packets))
            }),
        );
    }
    match drops.is_empty() {
        true => said.push_str(" and dropped none."),
        false => said.push_str(&format!("; {}.", drops.join("; "))),
    }
    Some(said)
}

/// What the answer cannot vouch for.
fn unknown(datapaths: &Datapaths) -> Vec<Unknown> {
    let runs: Vec<_> = datapaths.beds.iter().flat_map(|bed| &bed.runs.runs).collect();
    let mut unknown = Vec::new();
    let mut tell = |what: &str, amount: usize, text: String| {
        unknown.push(Unknown { what: what.to_owned(), amount: Some(amount as f64), unit: "trials".to_owned(), text });
    };
    let open: Vec<_> = runs.iter().filter(|run| !run.books.faults().is_empty()).collect();
    if let Some(first) = open.first() {
        let (count, why) = (many(open.len() as u64, "trial"), first.books.faults().join("; "));
        tell("open_books", open.len(), format!("The books of {count} do not close: {why}."));
    }
    let disturbed: Vec<_> = runs.iter().filter(|run| !run.interference.is_empty()).collect();
    if let Some(worst) = disturbed.iter().max_by_key(|run| run.interference.len()) {
        let (count, who) = (many(disturbed.len() as u64, "trial"), worst.interference.join("; "));
        tell(
            "disturbed",
            disturbed.len(),
            format!("Others used the CPUs of threads that poll in {count}; in one: {who}."),
        );
    }
    let dropped = tables::most_dropped(&datapaths.beds);
    if dropped > OVERLOAD {
        let text = format!(
            "The senders send as much as they can: up to {} of a trial was dropped, and the cycles that the switch spent on \
             dropped packets are in its cycles of a packet.",
            percent(dropped)
        );
        tell("overload", runs.len(), text);
    }
    unknown
}

/// Share of dropped packets above which cycles of a packet are those of two kinds of packets.
const OVERLOAD: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;
    use base::Level;
    use base::datapath::{Books, DatapathRun, DatapathRuns, Place, Poller, PollerCycles, Traffic};
    use facts::datapaths::Bed;
    use std::collections::BTreeMap;

    fn run(repeat: u32, received: u64) -> DatapathRun {
        let place = |place: &str, packets| Place { place: place.into(), packets, counter: "c".into(), most: None };
        DatapathRun {
            design: "ovs-dpdk".into(),
            pattern: Traffic::Chain,
            vnfs: 2,
            size_bytes: 64,
            repeat,
            offered_pps: None,
            begin_ns: 0,
            traced_from_ns: None,
            window_ns: 1_000_000_000,
            window_error_ns: 0,
            window_sent: received,
            window_received: received,
            samples: Vec::new(),
            books: Books {
                sent: received + 10,
                received,
                dropped: vec![place("ring into VNF 1", 10)],
                ..Books::default()
            },
            pollers: vec![Poller {
                name: "pmd-c00/id:9".into(),
                tid: 9,
                cpu: 0,
                run_share: 0.5,
                wait_share: 0.0,
                cycles: Some(PollerCycles {
                    used: 1200,
                    busy: 1000,
                    packets: 5,
                    batches: None,
                    queues: 5,
                    refused_cycles: None,
                }),
            }],
            steal_share: None,
            interference: Vec::new(),
            bound_by: Some("guest".into()),
            cores: Some(1),
        }
    }

    fn measured(runs: Vec<DatapathRun>) -> Datapaths {
        let environment = BTreeMap::from([(base::bench::NS_PER_TICK.to_owned(), "0.5".to_owned())]);
        let runs = DatapathRuns { runs, ..DatapathRuns::new(environment) };
        Datapaths { beds: vec![Bed { machine: "L0".into(), level: Level::L0, runs }], printed: Vec::new() }
    }

    #[test]
    fn trials_of_one_kind_are_one_rate_with_its_spread() {
        let section = section(&measured(vec![run(0, 3_000_000), run(1, 1_000_000)]), Gaps::default());
        assert_eq!(
            section.summary,
            "A chain of 2 VNFs on ovs-dpdk carried 2 Mpps of 64 bytes at full load, measured (1 to 3 over 2 trials); \
             the VNFs bound it: their rings were full."
        );
        let rates: Vec<_> = section.table("rates").unwrap().rows().collect();
        let number = |name| rates[0].number(name).unwrap();
        assert_eq!((rates.len(), number("chain_pps"), number("system_pps")), (1, 2e6, 4e6));
        assert_eq!((number("low_pps"), number("high_pps"), rates[0].text("kind")), (1e6, 3e6, Some("measured")));
        assert!((number("gbps") - 2.048).abs() < 1e-9, "system_pps x size x 8");
        assert_eq!(section.table("books").unwrap().rows.len(), 2);
        assert!(section.unknown.is_empty(), "{:?}", section.unknown);
    }

    #[test]
    fn cycles_are_those_on_the_cpu_and_the_counter_is_kept_beside() {
        let section = section(&measured(vec![run(0, 3_000_000)]), Gaps::default());
        let row = section.table("cycles").unwrap().rows().next().unwrap();
        let number = |name| row.number(name).unwrap();
        assert_eq!((number("ports"), number("cycles"), number("counted_cycles")), (5.0, 100.0, 200.0));
        assert_eq!(number("tsc_hz"), 2e9);
    }

    #[test]
    fn books_that_do_not_close_and_others_on_the_cpus_are_said() {
        let lost = run(0, 3_000_000);
        let books = Books { sent: lost.books.sent + 7, ..lost.books.clone() };
        let lost = DatapathRun { books, interference: vec!["cc1 ran".into()], ..lost };
        let section = section(&measured(vec![lost]), Gaps::default());
        let what: Vec<&str> = section.unknown.iter().map(|unknown| unknown.what.as_str()).collect();
        assert_eq!(what, ["open_books", "disturbed"]);
        assert!(section.unknown[0].text.contains("7 packets are missing"), "{}", section.unknown[0].text);
    }
}
