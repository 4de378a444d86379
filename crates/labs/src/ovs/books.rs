//! Where is every packet of a trial? Counters of three programs become books.
//!
//! A ring holds what one side put in and the other did not take out. That is the only number here that is a difference of two
//! counters, and it is bounded by the size of the ring; where two counters are of the same packets, both stand in the books.

use super::counters::{AroundVnf, Counters, Generated};
use super::ports::{Source, Wiring, into, out_of};
use super::vnfs::RING;
use base::datapath::{Agreement, Books, Place};

/// The books of a trial in which `counters` were added.
pub(super) fn books(wiring: Wiring, counters: &Counters) -> Books {
    let mut books = Books { sent: counters.offered(), ..Books::default() };
    for ((port, _), Generated { flow, policed, counted }) in wiring.generators().zip(&counters.generated) {
        let (packets, counters) = match wiring.source {
            Source::Paced => (
                format!("sent by {port}, with those that its policer refused, which were never offered"),
                format!("flow + ovs_rx_qos_drops of {port}"),
            ),
            _ => (format!("sent by {port}"), format!("flow of {port}")),
        };
        let counted = ("rx_q0_packets".to_owned(), *counted);
        books.agree(packets, (counters, flow.saturating_add(*policed)), counted);
    }
    let drops = |place: String, packets, counter: String| Place { place, packets, counter, most: None };
    for (vnf, around) in (0..).zip(&counters.vnfs) {
        let (number, inward, outward) = (vnf + 1, into(vnf), out_of(vnf));
        let AroundVnf { put, refused, taken, sent, dropped, fetched, matched } = *around;
        books.dropped.push(drops(
            format!("ring into VNF {number}"),
            refused,
            format!("ovs_tx_failure_drops of {inward}"),
        ));
        books.dropped.push(drops(
            format!("ring out of VNF {number}"),
            dropped,
            format!("TX-dropped of port {}", 2 * vnf + 1),
        ));
        books.hold(format!("ring into VNF {number}"), ("tx_q0_good_packets", put), ("RX-packets", taken));
        books.hold(format!("ring out of VNF {number}"), ("TX-packets", sent), ("rx_q0_good_packets", fetched));
        let arrives = match wiring.before(vnf) {
            Some(before) => (format!("flow of {}", out_of(before)), counters.vnfs[before as usize].matched),
            None => {
                let feeding: Vec<(String, u64)> = wiring
                    .generators()
                    .zip(&counters.generated)
                    .enumerate()
                    .filter(|(index, _)| wiring.feeds(*index as u32) == vnf)
                    .map(|(_, ((port, _), generated))| (port, generated.flow))
                    .collect();
                let ports: Vec<&str> = feeding.iter().map(|(port, _)| port.as_str()).collect();
                (format!("flow of {}", ports.join(" + ")), feeding.iter().map(|(_, flow)| flow).sum())
            }
        };
        let at_ring = ("tx_q0_good_packets + ovs_tx_failure_drops".to_owned(), put.saturating_add(refused));
        books.agree(format!("to VNF {number}"), arrives, at_ring);
        let through = ("TX-packets + TX-dropped".to_owned(), sent.saturating_add(dropped));
        books.agree(format!("through VNF {number}"), ("RX-packets".to_owned(), taken), through);
        let fetched = ("rx_q0_good_packets".to_owned(), fetched);
        let flow = (format!("flow of {outward}"), matched);
        books.agree(format!("from VNF {number}"), fetched, flow);
        if wiring.is_last(vnf) {
            books.received = books.received.saturating_add(matched);
        }
    }
    books
}

/// What a trial adds to books.
trait Agree {
    fn agree(&mut self, packets: String, one: (String, u64), other: (String, u64));
    /// What lies in a ring: what was put in and not taken out. Where more was taken than put, the two disagree.
    fn hold(&mut self, place: String, put: (&str, u64), taken: (&str, u64));
}

impl Agree for Books {
    fn agree(&mut self, packets: String, one: (String, u64), other: (String, u64)) {
        self.agreements.push(Agreement { packets, one, other });
    }

    fn hold(&mut self, place: String, put: (&str, u64), taken: (&str, u64)) {
        let packets = put.1.saturating_sub(taken.1);
        if taken.1 > put.1 {
            self.agree(place.clone(), (put.0.to_owned(), put.1), (taken.0.to_owned(), taken.1));
        }
        let counter = format!("{} less {}", put.0, taken.0);
        self.held.push(Place { place, packets, counter, most: Some(u64::from(RING)) });
    }
}

/// Shares of what was sent below which drops at a place bind nothing: a burst that finds a ring full now and then.
const FEW: f64 = 0.01;

/// The resource that kept the rate from being higher, by where packets were dropped. A generator of the switch always has more, and a PMD
/// is never idle behind it, so that neither says anything.
pub(super) fn bound_by(books: &Books) -> &'static str {
    let share = |ring: &str| {
        let dropped: u64 = books.dropped.iter().filter(|at| at.place.starts_with(ring)).map(|at| at.packets).sum();
        dropped as f64 / books.sent.max(1) as f64
    };
    // A VNF whose ring is full does not keep up. Where the rings behind VNFs are full too, the PMD does not fetch.
    let (guest, pmd) = (share("ring into"), share("ring out of"));
    if guest > FEW && guest > pmd { "guest" } else { "pmd" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::datapath::Traffic;

    fn around(put: u64, refused: u64, dropped: u64) -> AroundVnf {
        let sent = put - dropped;
        AroundVnf { put, refused, taken: put, sent, dropped, fetched: sent, matched: sent }
    }

    fn sent(packets: u64) -> Generated {
        Generated { flow: packets, policed: 0, counted: packets }
    }

    fn chain() -> (Wiring, Counters) {
        let counters = Counters { generated: vec![sent(100)], vnfs: vec![around(80, 20, 5), around(75, 0, 0)] };
        (Wiring { pattern: Traffic::Chain, vnfs: 2, source: Source::Generators }, counters)
    }

    #[test]
    fn every_packet_is_somewhere_and_counters_agree() {
        let (wiring, counters) = chain();
        let books = books(wiring, &counters);
        assert_eq!((books.sent, books.received, books.missing()), (100, 75, 0));
        assert_eq!(books.faults(), Vec::<String>::new());
        assert_eq!(books.dropped.iter().map(|at| at.packets).collect::<Vec<_>>(), [20, 5, 0, 0]);
        assert_eq!(bound_by(&books), "guest");
    }

    #[test]
    fn what_policers_refused_was_never_offered_and_has_to_agree_all_the_same() {
        let (wiring, mut counters) = chain();
        let wiring = Wiring { source: Source::Paced, ..wiring };
        let policed = |flow, policed| Generated { flow, policed, counted: 1_000 };
        counters.generated = vec![policed(98, 902), policed(2, 998)];
        let paced = books(wiring, &counters);
        assert_eq!((paced.sent, paced.missing(), paced.faults()), (100, 0, Vec::<String>::new()));
        assert_eq!((counters.offered(), counters.dropped()), (100, 25));
        let arrives = &paced.agreements[2].one;
        assert_eq!(arrives, &("flow of gen0 + gen1".to_owned(), 100));
        counters.generated[1].policed = 997;
        let faults = books(wiring, &counters).faults();
        assert!(faults[0].contains("never offered"), "{faults:?}");
    }

    #[test]
    fn vnfs_side_by_side_have_books_each() {
        let wiring = Wiring { pattern: Traffic::NorthSouth, vnfs: 2, source: Source::Generators };
        let counters =
            Counters { generated: vec![sent(100), sent(60)], vnfs: vec![around(80, 20, 0), around(60, 0, 0)] };
        let books = books(wiring, &counters);
        assert_eq!((books.sent, books.received, books.missing(), books.faults().len()), (160, 140, 0, 0));
    }

    #[test]
    fn what_lies_in_a_ring_is_held_and_what_cannot_is_a_fault() {
        let (wiring, mut counters) = chain();
        counters.vnfs[1].fetched = 70;
        counters.vnfs[1].matched = 70;
        let held = books(wiring, &counters);
        assert_eq!((held.held[3].packets, held.missing(), held.faults().len()), (5, 0, 0));
        counters.vnfs[1].fetched = 76;
        assert!(!books(wiring, &counters).faults().is_empty(), "more came out than went in");
        let (wiring, mut lost) = chain();
        lost.vnfs[0].matched = 74;
        let faults = books(wiring, &lost).faults();
        assert!(faults.iter().any(|fault| fault.starts_with("from VNF 1")), "{faults:?}");
    }

    #[test]
    fn the_pmd_binds_where_vnfs_keep_up() {
        let (wiring, mut counters) = chain();
        counters.vnfs[0] = around(100, 0, 0);
        counters.vnfs[1] = around(100, 0, 0);
        assert_eq!(bound_by(&books(wiring, &counters)), "pmd");
        counters.vnfs[0] = around(100, 0, 40);
        counters.vnfs[1] = around(60, 0, 0);
        assert_eq!(bound_by(&books(wiring, &counters)), "pmd", "rings behind VNFs are full");
    }
}
