//! What was published of live migrations of NFV guests, and the arithmetic that puts it in its place.
//!
//! Published: OPNFV KVM4NFV, docs/release/userguide/live_migration.userguide.rst of opnfv/kvmfornfv (two E5-2699 v3, a 10G port, a guest of 8 GiB, 64 B
//! packets at 2,013 Mb/s), and its goals, J. Nakajima, "KVM Enhancements for OPNFV", 2015-11-12. Its text and slides name two different ports, and its
//! command sets a limit of 100 ms where the text says 10 ms.

use super::model::memory::{PAGE_BYTES, PAGE_MEMORY_BYTES};
use super::model::pace::MEMORY_BYTES_PER_S;
use base::number::bytes;
use base::table::{Shown, TableSpec};
use base::{Cell, Column, ColumnType, Section, Table};

/// Asks for them.
#[derive(Debug, Clone, Copy)]
pub struct Wanted;

pub(super) const PUBLISHED: TableSpec = TableSpec {
    section: "migration",
    name: "published",
    version: 1,
    row: "A number that others published, a goal that they set, or one that is computed from what it says; nothing in it was measured here.",
    columns: &[
        Column::key("what"),
        Column::value("value", "", ColumnType::F64),
        Column::text("unit"),
        Column::text("kind"),
        Column::text("source"),
    ],
    shown: Some(Shown::of(
        "Published, and what follows from it",
        &[("what", "what"), ("value", "value"), ("unit", ""), ("kind", "is"), ("source", "from")],
        40,
    )),
};

/// A guest of OPNFV's, and the port that it goes through.
const GUEST_BYTES: f64 = 8.0 * GIB;
const PORT_BITS_PER_S: f64 = 10e9;
const GIB: f64 = 1_073_741_824.0;
/// What came of it with DPDK's l2fwd in the guest.
const AFTER_MS: f64 = 654.0;

const GUIDE: &str = "OPNFV KVM4NFV, user guide";
const GOALS: &str = "Nakajima 2015";

/// What stands somewhere: what, value, unit, source.
const NUMBERS: [(&str, f64, &str, &str); 12] = [
    ("total, l2fwd, before", 2_271.0, "ms", GUIDE),
    ("total, l2fwd, after", AFTER_MS, "ms", GUIDE),
    ("total, idle, before", 2_070.0, "ms", GUIDE),
    ("total, idle, after", 401.0, "ms", GUIDE),
    ("dark, l2fwd, before", 26.0, "ms", GUIDE),
    ("dark, l2fwd, after", 5.0, "ms", GUIDE),
    ("dark, idle, before", 29.0, "ms", GUIDE),
    ("dark, idle, after", 9.0, "ms", GUIDE),
    ("goal: total", 2_000.0, "ms", GOALS),
    ("goal: dark, I/O", 10.0, "ms", GOALS),
    ("goal: dark, memory", 500.0, "ms", GOALS),
    ("goal: network", 25.0, "ms", GOALS),
];

/// Gigabits a second, GiB and milliseconds that arithmetic is done for.
const LINKS: [f64; 4] = [10.0, 25.0, 40.0, 100.0];
const GUESTS_GIB: [f64; 2] = [8.0, 16.0];
const LIMITS_MS: [f64; 3] = [3.0, 5.0, 10.0];

fn computed() -> Vec<(String, f64, &'static str, String)> {
    let bytes_per_s = PORT_BITS_PER_S / 8.0;
    let sent = LINKS.map(|link| {
        let seconds = GUEST_BYTES * 8.0 / (link * 1e9);
        (format!("8 GiB, no zeros, at {link:.0} Gb/s"), seconds * 1e3, "ms", "8 GiB / rate".to_owned())
    });
    let needed = GUESTS_GIB.map(|guest| {
        let gigabits = guest * GIB * 8.0 / 2.0 / 1e9;
        (format!("{guest:.0} GiB, no zeros, in 2 s"), gigabits, "Gb/s", "memory / 2 s".to_owned())
    });
    let most_gb = bytes_per_s * AFTER_MS / 1e3 / 1e9;
    let rest = [
        ("most on the wire in 654 ms".to_owned(), most_gb, "GB", "10 Gb/s x 654 ms".to_owned()),
        (
            "so at least zeros".to_owned(),
            100.0 * (1.0 - most_gb * 1e9 / (GUEST_BYTES / PAGE_MEMORY_BYTES * PAGE_BYTES)),
            "%",
            "1 - that / 8 GiB".to_owned(),
        ),
        (
            "looking for zeros in 8 GiB".to_owned(),
            GUEST_BYTES / MEMORY_BYTES_PER_S * 1e3,
            "ms",
            format!("{}/s, one core", bytes(MEMORY_BYTES_PER_S)),
        ),
    ];
    let last = LIMITS_MS.map(|limit_ms| {
        let pages = (bytes_per_s * limit_ms / 1e3 / PAGE_BYTES).floor();
        (format!("final pass of {limit_ms:.0} ms at 10 Gb/s"), pages, "pages", "4,104 B a page".to_owned())
    });
    sent.into_iter().chain(needed).chain(rest).chain(last).collect()
}

/// What a user is shown who asks for it.
pub(super) fn section() -> Section {
    let mut section = Section::new("migration", super::QUESTION);
    let mut table = Table::new(&PUBLISHED);
    for (what, value, unit, source) in NUMBERS {
        let kind = if source == GOALS { "goal" } else { "published" };
        table.push(vec![what.into(), Cell::F64(value), unit.into(), kind.into(), source.into()]);
    }
    for (what, value, unit, source) in computed() {
        table.push(vec![what.into(), Cell::F64(value), unit.into(), "computed".into(), source.into()]);
    }
    section.summary = "OPNFV KVM4NFV moved a guest of 8 GiB in 654 ms instead of 2,271 ms, dark for 5 ms instead of 26 ms, over a port of 10 Gb/s. \
        That port carries 0.82 GB in 654 ms: nine tenths of the guest's memory were zeros, and the result rests on that. Nothing here was measured."
        .to_owned();
    section.tables = vec![table];
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arithmetic_is_that_of_the_published_setting() {
        let of = |what: &str| computed().into_iter().find(|(one, ..)| one.starts_with(what)).unwrap().1;
        let sent = [10, 25, 40, 100].map(|link| of(&format!("8 GiB, no zeros, at {link} ")).round());
        assert_eq!(sent, [6_872.0, 2_749.0, 1_718.0, 687.0]);
        assert_eq!([of("8 GiB, no zeros, in"), of("16 GiB")].map(|gigabits| (gigabits * 10.0).round()), [344.0, 687.0]);
        assert_eq!([3, 5, 10].map(|ms| of(&format!("final pass of {ms} ms"))), [913.0, 1_522.0, 3_045.0]);
        assert_eq!((of("most on the wire") * 100.0).round(), 82.0);
        assert_eq!((of("looking for zeros") / 10.0).round(), 46.0);
        assert!(of("so at least zeros") > 90.0, "nine tenths, as the summary says");
    }
}
