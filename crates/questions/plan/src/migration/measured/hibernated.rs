//! Guests that were saved to files, all at once, and woken: how large, how fast, how fast the disk was beside, and was that said before?

use super::figures;
use super::residuals::{self, Held};
use base::hibernation::{Guest, Hibernation};
use base::number::{bytes, counted, duration};
use base::prediction::{Prediction, Said};
use base::rule::Words;
use base::{Cell, Evidence, Finding, Level, Section, Severity, Table, TableSpec, Unknown, in_order, shown, table};
use facts::migrations::Migrations;
use facts::rule::Hit;

/// The question where nothing else was recorded.
const QUESTION: &str = "How large are the files of saved guests, how fast do they wake, and was the prediction right?";

pub(super) const WAKES: TableSpec = table! {
    migration.wakes version 1:
    "One guest that was saved to a file and woken, all of them at once: what its file takes on the disk, from `migrate` until that was durable, \
          from the start of a QEMU until the guest counted on, the prediction of that, and what the file system read alone.";
    key_u64("") guest, u64("bytes") saved_bytes, ns save_ns, ns wake_ns, ns predicted_low_ns, ns predicted_high_ns,
    f64("bytes/s") disk_bytes_per_s;
    shown![
        "Guests that were saved and woken", 40;
        guest, saved_bytes: "file", save_ns: "saved in", wake_ns: "woke in", predicted_low_ns: "at least",
        predicted_high_ns: "at most", disk_bytes_per_s: "the disk reads",
    ]
};

pub(super) const SAVES: TableSpec = table! {
    migration.saves version 1:
    "What was saved of one guest: its pages by QEMU's count, its file, and what that would take compressed by zstd at level 1; `how` QEMU wrote it; \
          whether a sum over its memory was the same after it was loaded; why it could not be saved or woken.";
    key_u64("") guest, u64("bytes") memory_bytes, count zero_pages, count normal_pages, u64("bytes") saved_bytes,
    u64("bytes") compressed_bytes, text how, flag equal, text why;
    shown![
        "What was saved", 40;
        guest, memory_bytes: "memory", zero_pages: "zero pages", normal_pages: "other pages", saved_bytes: "file",
        compressed_bytes: "compressed", how: "by", equal: "the same after it", why: "because",
    ]
};

/// What the kernel says of a full disk (errno(3), ENOSPC).
const NO_SPACE: &str = "No space left on device";

type Rule = facts::rule::Rule<fn((usize, &Guest)) -> Option<Hit>>;

const RULES: &[Rule] = &[
    Rule {
        id: "MIG-NOSPACE",
        per: "guest",
        looks_at: "Whether a guest could not be saved because the file system was full.",
        why: "A guest's file takes all of its pages that are not zero. QEMU writes until the file system is full, then gives up; the guest is still there \
              and can go on.",
        fix: &[
            "kvmscope plan migration --to-file --ram BYTES --zero SHARE --disk RATE   # what its file takes; then df -h of the place",
        ],
        source: "write(2), ENOSPC; docs/read/migration.md, \"Saved to a file\"",
        ..Rule::checked_by(no_space)
    },
    Rule {
        id: "MIG-MEMORY",
        per: "guest",
        looks_at: "Whether a guest's memory was another after it had been saved and loaded.",
        why: "A guest that stands still is saved and loaded byte by byte. Another sum means that the file was damaged, or that something wrote to the \
              memory meanwhile, such as a device of another process.",
        fix: &["qemu-img check IMAGE   # of its disks, before it is trusted again"],
        source: "docs/read/migration.md, \"Saved to a file\"",
        ..Rule::checked_by(differs)
    },
];

/// What the rules say of themselves.
pub(super) fn words() -> impl Iterator<Item = Words> {
    RULES.iter().map(Rule::words)
}

fn no_space((number, guest): (usize, &Guest)) -> Option<Hit> {
    let error = guest.error.as_ref()?;
    if !error.contains(NO_SPACE) && guest.free_bytes != Some(0) {
        return None;
    }
    let free = guest
        .free_bytes
        .map_or("what was free is not known".to_owned(), |free| format!("{} were free", bytes(free as f64)));
    let goes_on = match guest.goes_on {
        Some(true) => "; the guest goes on where it was",
        Some(false) => "; the guest does not go on",
        None => "",
    };
    let title = format!("The file system was full, {free}{goes_on}");
    let said = Evidence::in_table(format!("QEMU says: {error}"), "migration.saves");
    Some(Hit::new(format!("guest {number}"), Severity::High, title).with(said))
}

fn differs((number, guest): (usize, &Guest)) -> Option<Hit> {
    let (before, after) = (guest.sum_before.as_ref()?, guest.sum_after.as_ref()?);
    let title = "Its memory was another after it had been loaded from its file";
    let hit = || Hit::new(format!("guest {number}"), Severity::High, title);
    let seen = || format!("the sum was {before}, and is {after}");
    (before != after).then(|| hit().with(Evidence::in_table(seen(), "migration.saves")))
}

/// The answer about guests that were saved, if any were.
pub(super) fn section(migrations: &Migrations, emulator: Option<&str>) -> Option<Section> {
    let hibernation = migrations.hibernation.as_ref()?;
    let said = migrations.said_of_files.as_ref();
    let mut section = Section::new("migration", QUESTION);
    section.about.extend(
        emulator.map(|name| format!("EMULATED by {name}: what is saved is real, how fast guests compute is not.")),
    );
    section.summary = summary(hibernation, said);
    section.findings = in_order(findings(hibernation));
    section.tables = vec![wakes(hibernation, said), saves(hibernation)];
    let held = held(hibernation, said);
    let residuals = residuals::table(&held);
    section.tables.extend((!residuals.rows.is_empty()).then_some(residuals));
    section.figures.extend(figures::held("guest", &held));
    if !hibernation.disk.is_direct {
        let text = "The file system does not let files pass its page cache (O_DIRECT): how fast the disk reads was measured through it.";
        section.unknown.push(Unknown { what: "disk".into(), amount: None, unit: String::new(), text: text.into() });
    }
    Some(section)
}

fn findings(hibernation: &Hibernation) -> Vec<Finding> {
    let guests = hibernation.guests.iter().enumerate();
    let hits = guests
        .flat_map(|guest| RULES.iter().filter_map(move |rule| Some(rule.finding((rule.check)(guest)?, Level::L0))));
    hits.collect()
}

/// What was said of one quantity of each guest.
fn of<'p>(said: Option<&'p Prediction>, what: &str) -> Option<&'p Said> {
    said?.said.iter().find(|said| said.what == what)
}

fn actual(guest: &Guest, what: &str) -> Option<f64> {
    let was = match what {
        "saved" => guest.saved_bytes,
        "save" => guest.save_ns,
        "wake" => guest.wake_ns,
        _ => None,
    };
    was.map(|was| was as f64)
}

fn summary(hibernation: &Hibernation, said: Option<&Prediction>) -> String {
    let guests = &hibernation.guests;
    let all = counted(guests.len() as u64, "guest", "guests");
    let between = |of: fn(&Guest) -> Option<u64>, print: fn(f64) -> String| {
        let values = || guests.iter().filter_map(of);
        let (least, most) = (print(values().min()? as f64), print(values().max()? as f64));
        Some(if least == most { least } else { format!("{least} to {most}") })
    };
    let mut sentences = Vec::new();
    match (between(|one| one.saved_bytes, bytes), between(|one| one.save_ns, duration)) {
        (Some(size), Some(took)) => {
            sentences.push(format!("{all} saved at once by {}: files of {size}, durable in {took}.", hibernation.how));
        }
        _ => sentences.push(format!("{all} could not be saved.")),
    }
    let failed = guests.iter().filter(|one| one.error.is_some()).count();
    if failed > 0 && failed < guests.len() {
        sentences.push(format!("{} could not be saved or woken.", counted(failed as u64, "guest", "guests")));
    }
    if let Some(took) = between(|one| one.wake_ns, duration) {
        let woken = guests.iter().filter(|one| one.wake_ns.is_some()).count();
        let equal = guests.iter().filter(|one| one.sum_after.is_some() && one.sum_after == one.sum_before).count();
        let disk = bytes(hibernation.disk.read_bytes_per_s());
        sentences.push(format!(
            "Woken at once they counted on after {took}; the disk reads {disk}/s by itself. Memory is the same in {equal} of {woken}."
        ));
        if let Some(wake) = of(said, "wake") {
            let held = guests.iter().filter(|one| one.wake_ns.is_some() && wake.holds(actual(one, "wake"))).count();
            let print = |ns: Option<f64>| ns.map_or("never".to_owned(), duration);
            sentences.push(format!(
                "Predicted {} to {}; {}.",
                print(wake.low),
                print(wake.high),
                super::section::inside(held, woken)
            ));
        }
    }
    sentences.join(" ")
}

fn wakes(hibernation: &Hibernation, said: Option<&Prediction>) -> Table {
    let mut table = Table::new(&WAKES);
    let wake = of(said, "wake");
    let ns = |value: Option<f64>| value.map(|ns| ns.max(0.0).round() as u64);
    for (number, guest) in hibernation.guests.iter().enumerate() {
        table.push(vec![
            (number as u64).into(),
            guest.saved_bytes.into(),
            guest.save_ns.into(),
            guest.wake_ns.into(),
            ns(wake.and_then(|said| said.low)).into(),
            ns(wake.and_then(|said| said.high)).into(),
            hibernation.disk.read_bytes_per_s().into(),
        ]);
    }
    table
}

fn saves(hibernation: &Hibernation) -> Table {
    let mut table = Table::new(&SAVES);
    for (number, guest) in hibernation.guests.iter().enumerate() {
        let equal = guest.sum_before.as_ref().zip(guest.sum_after.as_ref()).map(|(before, after)| before == after);
        table.push(vec![
            (number as u64).into(),
            guest.memory_bytes.into(),
            guest.zero_pages.into(),
            guest.normal_pages.into(),
            guest.saved_bytes.into(),
            guest.compressed_bytes.into(),
            hibernation.how.as_str().into(),
            equal.map_or(Cell::Missing, Cell::Bool),
            guest.error.as_deref().map_or(Cell::Missing, Cell::from),
        ]);
    }
    table
}

/// What was said of each guest that was woken, against what it was.
fn held<'p>(hibernation: &Hibernation, said: Option<&'p Prediction>) -> Vec<Held<'p>> {
    let woken = hibernation.guests.iter().enumerate().filter(|(_, guest)| guest.error.is_none());
    let said = || said.iter().flat_map(|prediction| &prediction.said);
    woken
        .flat_map(|(number, guest)| said().map(move |said| Held { number, said, was: actual(guest, &said.what) }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::hibernation::{Disk, SCHEMA};

    fn saved(guests: Vec<Guest>) -> Hibernation {
        let disk = Disk { bytes: 1 << 30, write_ns: 1, read_ns: 1_000_000_000, slowest_read_ns: 1, is_direct: true };
        Hibernation { schema: SCHEMA.to_owned(), how: "file".to_owned(), disk, guests }
    }

    fn guest() -> Guest {
        Guest {
            saved_bytes: Some(1_000),
            save_ns: Some(7),
            wake_ns: Some(50),
            sum_before: Some("1".into()),
            sum_after: Some("1".into()),
            ..Guest::default()
        }
    }

    #[test]
    fn a_full_disk_and_another_memory_are_found_by_what_was_seen() {
        let rules = |guest: Guest| findings(&saved(vec![guest])).iter().map(|one| one.rule).collect::<Vec<_>>();
        assert_eq!(rules(guest()), [""; 0]);
        let failed = |error: &str, free_bytes| Guest { error: Some(error.into()), free_bytes, ..Guest::default() };
        assert_eq!(rules(failed("Broken pipe; cat: write error: No space left on device", None)), ["MIG-NOSPACE"]);
        assert_eq!(rules(failed("Broken pipe", Some(0))), ["MIG-NOSPACE"]);
        assert_eq!(rules(failed("Broken pipe", Some(4_096))), [""; 0]);
        assert_eq!(rules(Guest { sum_after: Some("2".into()), ..guest() }), ["MIG-MEMORY"]);
    }

    #[test]
    fn a_guest_is_held_against_what_was_said_of_each() {
        let wake = Said {
            what: "wake".into(),
            low: Some(40.0),
            likely: None,
            high: Some(60.0),
            naive: None,
            unit: "ns".into(),
        };
        let said = Prediction {
            schema: base::prediction::SCHEMA.into(),
            about: "hibernation".into(),
            given: std::collections::BTreeMap::new(),
            said: vec![wake],
        };
        let hibernation = saved(vec![guest(), Guest { wake_ns: Some(61), ..guest() }]);
        let inside: Vec<_> =
            residuals::table(&held(&hibernation, Some(&said))).rows.iter().map(|row| row[5].clone()).collect();
        assert_eq!(inside, [Cell::Bool(true), Cell::Bool(false)]);
        assert_eq!(wakes(&hibernation, Some(&said)).rows[1][3..6], [61_u64.into(), 40_u64.into(), 60_u64.into()]);
        assert!(summary(&hibernation, Some(&said)).ends_with("; 1 of 2 runs fell inside."));
        assert!(wakes(&hibernation, None).rows[0][4..6].iter().all(|cell| *cell == Cell::Missing));
    }
}
