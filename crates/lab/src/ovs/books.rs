//! Where is every packet of a trial? Counters of three programs become books.
//!
//! A ring holds what one side put in and the other did not take out. That is the only number here that is a difference of two
//! counters, and it is bounded by the size of the ring; where two counters are of the same packets, both stand in the books.

use super::counters::{AroundVnf, Counters, generator_of};
use super::ports::{Wiring, into, out_of};
use super::vnfs::RING;
use base::datapath::{Agreement, Books, Place};

/// The books of a trial in which `counters` were added.
pub(super) fn books(wiring: Wiring, counters: &Counters) -> Books {
    let mut books = Books { sent: counters.generated.iter().map(|(flow, _)| flow).sum(), ..Books::default() };
    for ((port, _), (flow, counted)) in wiring.generators().zip(&counters.generated) {
        books.agree(
            format!("sent by {port}"),
            (format!("flow of {port}"), *flow),
            ("rx_q0_packets".to_owned(), *counted),
        );
    }
    for (vnf, around) in (0..).zip(&counters.vnfs) {
        let (number, inward, outward) = (vnf + 1, into(vnf), out_of(vnf));
        let AroundVnf { put, refused, taken, sent, dropped, fetched, matched } = *around;
        let drops = |place: String, packets, counter: String| Place { place, packets, counter, most: None };
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
        let arrives = match (wiring.before(vnf), generator_of(wiring, vnf)) {
            (Some(before), _) => (format!("flow of {}", out_of(before)), counters.vnfs[before as usize].matched),
            (None, generator) => {
                let index = if counters.generated.len() > 1 { vnf as usize } else { 0 };
                let flow = counters.generated.get(index).map_or(0, |(flow, _)| *flow);
                (format!("flow of {}", generator.unwrap_or_default()), flow)
            }
        };
        let at_ring = ("tx_q0_good_packets + ovs_tx_failure_drops".to_owned(), put.saturating_add(refused));
        books.agree(format!("to VNF {number}"), arrives, at_ring);
        let through = ("TX-packets + TX-dropped".to_owned(), sent.saturating_add(dropped));
        books.agree(format!("through VNF {number}"), ("RX-packets".to_owned(), taken), through);
        let fetched = ("rx_q0_good_packets".to_owned(), fetched);
        books.agree(format!("from VNF {number}"), fetched, (format!("flow of {outward}"), matched));
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

/// The resource that kept the rate from being higher, by where packets were dropped. The generator always has more, and a PMD
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

    fn chain() -> (Wiring, Counters) {
        let counters = Counters { generated: vec![(100, 100)], vnfs: vec![around(80, 20, 5), around(75, 0, 0)] };
        (Wiring { pattern: Traffic::Chain, vnfs: 2 }, counters)
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
    fn vnfs_side_by_side_have_books_each() {
        let wiring = Wiring { pattern: Traffic::NorthSouth, vnfs: 2 };
        let counters =
            Counters { generated: vec![(100, 100), (60, 60)], vnfs: vec![around(80, 20, 0), around(60, 0, 0)] };
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
