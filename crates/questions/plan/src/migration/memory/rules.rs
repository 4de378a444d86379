//! What speaks against migrating this memory as it is planned: rules as data.

use super::super::predict::Asked;
use super::Looked;
use super::survey::{PAGE_BYTES, Survey};
use base::number::{bytes, duration, percent};
use base::rule::{Words, limit};
use base::{Cost, CostKind, Evidence, Finding, Level, Severity, in_order};
use facts::rule::Hit;

/// What a rule looks at: what was measured of memory and, in a plan, what is asked.
#[derive(Clone, Copy)]
pub(in super::super) struct Seen<'a> {
    pub looked: &'a Looked,
    pub asked: Option<&'a Asked>,
}

type Rule = facts::rule::Rule<fn(Seen<'_>) -> Option<Hit>>;

/// From this share of zeros on the search for them may be what takes the time.
const ZEROS: f64 = 0.6;
/// Compressing has to carry so much more to be worth its CPU (docs/read/migration.md, "Compressing").
const WORTH: f64 = 1.1;
/// Less memory than that is no matter.
const LEAST_HOLES_BYTES: f64 = 16.0 * 1_048_576.0;

/// All rules, in the order in which equal findings are shown.
const RULES: &[Rule] = &[
    Rule {
        id: "MIG-ZEROSCAN",
        per: "guest",
        looks_at: "Whether looking for zeros takes longer than sending what is not zeros.",
        limits: &[limit("zeros of all memory", ZEROS, "share")],
        why: "One thread of QEMU scans each page before it is sent. If most pages are zeros, little is sent, and the first pass takes as long as \
              one core takes to read the memory. With multifd, each channel scans its own pages since QEMU 9.0 (zero-page-detection is multifd where nobody set it).",
        fix: &[
            "virsh migrate --live --parallel --parallel-connections 4 DOMAIN DESTINATION   # price: CPUs of both hosts for as long; nothing stays set",
        ],
        source: "ZeroPageDetection in qapi/migration.json, QEMU 9.0",
        ..Rule::checked_by(scan_bound)
    },
    Rule {
        id: "MIG-COMPRESS",
        per: "guest",
        looks_at: "Whether the compressing channels transfer more of the guest's memory than the link does uncompressed.",
        limits: &[limit("transferred when compressed, relative to the link", WORTH, "x")],
        why: "Compressing sends the ratio's part of each byte, as fast as the channels' CPUs compress. Where these are slower than the link, \
              they hold the migration up, and take CPU from guests on both hosts.",
        fix: &["virsh migrate --live --parallel DOMAIN DESTINATION   # without --comp-methods"],
        source: "docs/read/migration.md, \"Compressing\"; multifd_zstd_send_prepare in migration/multifd-zstd.c, QEMU 7.2",
        ..Rule::checked_by(compressing)
    },
    Rule {
        id: "MIG-HOLES",
        per: "guest",
        looks_at: "Whether memory that other processes may have as well has pages to which nothing was ever written.",
        limits: &[limit("such memory", LEAST_HOLES_BYTES, "bytes")],
        why: "Looking for zeros reads every page. Reading a hole of shared memory fills it: the migration takes longer, and afterwards the guest \
              has all of its memory allocated on both hosts. Guests of vhost-user have shared memory.",
        fix: &[
            "virsh edit DOMAIN   # memoryBacking: allocation mode='immediate', or hugepages, on both hosts: then nothing is allocated during the migration",
        ],
        source: "shmem_fault in mm/shmem.c, Linux 6.12; ram_save_host_page in migration/ram.c, QEMU 7.2",
        ..Rule::checked_by(holes)
    },
];

pub(in super::super) fn words() -> impl Iterator<Item = Words> {
    RULES.iter().map(Rule::words)
}

pub(in super::super) fn findings(seen: Seen<'_>) -> Vec<Finding> {
    let hits = RULES.iter().filter_map(|rule| Some(rule.finding((rule.check)(seen)?, Level::L0)));
    in_order(hits.collect())
}

fn subject(survey: Option<&Survey>) -> String {
    survey.map(|survey| survey.vm.clone()).filter(|vm| !vm.is_empty()).unwrap_or_else(|| "guest".to_owned())
}

fn scan_bound(Seen { looked, asked }: Seen<'_>) -> Option<Hit> {
    let asked = asked?;
    let scan_bytes_per_s = asked.scan_bytes_per_s?;
    let memory = &asked.setting.memory;
    let scan_s = memory.pages * PAGE_BYTES / scan_bytes_per_s;
    let send_s = memory.sent_bytes() / asked.setting.bytes_per_s;
    if memory.zero_share <= ZEROS || scan_s <= send_s {
        return None;
    }
    let title =
        format!("Looking for zeros takes {}, sending the rest {}", duration(scan_s * 1e9), duration(send_s * 1e9));
    let seen =
        format!("{} of memory is zeros, one core scans {}/s", percent(memory.zero_share), bytes(scan_bytes_per_s));
    let mut hit = Hit::new(subject(looked.survey.as_ref()), Severity::Medium, title)
        .with(Evidence::in_table(seen, "migration.memory"));
    hit.cost = Cost::of(CostKind::Modelled, (scan_s - send_s) * 1e9, "ns of the first pass");
    Some(hit)
}

fn compressing(Seen { looked, asked }: Seen<'_>) -> Option<Hit> {
    let (asked, channels) = (asked?, looked.compressing_channels?);
    let compressed = looked.survey.as_ref()?.compressed.as_ref()?;
    let link = asked.setting.bytes_per_s;
    let cpus = f64::from(channels) * compressed.bytes_per_s;
    let carried = cpus.min(link * compressed.ratio);
    if carried > WORTH * link {
        return None;
    }
    let title = if carried * WORTH < link {
        format!("Compressing slows it down: {}/s instead of {}/s", bytes(carried), bytes(link))
    } else {
        format!("Compressing gains next to nothing: {}/s instead of {}/s", bytes(carried), bytes(link))
    };
    let seen = format!(
        "{} makes {:.2} bytes into one; {channels} x {}/s are compressed",
        compressed.method,
        compressed.ratio,
        bytes(compressed.bytes_per_s)
    );
    Some(
        Hit::new(subject(looked.survey.as_ref()), Severity::Medium, title)
            .with(Evidence::in_table(seen, "migration.compression")),
    )
}

fn holes(Seen { looked, .. }: Seen<'_>) -> Option<Hit> {
    let survey = looked.survey.as_ref()?;
    let holes_bytes = survey.shared_holes * PAGE_BYTES;
    if holes_bytes < LEAST_HOLES_BYTES {
        return None;
    }
    let title = format!("Migrating allocates {} that the guest never used, on both hosts", bytes(holes_bytes));
    let seen = format!("{} of its memory are holes, and it is shared", percent(survey.shared_holes / survey.pages));
    Some(Hit::new(subject(Some(survey)), Severity::Medium, title).with(Evidence::in_table(seen, "migration.memory")))
}

#[cfg(test)]
mod tests {
    use super::super::super::model::memory::Memory;
    use super::super::super::model::working_set::WorkingSet;
    use super::super::super::predict::Order;
    use super::super::super::predict::tests::asked;
    use super::super::survey::tests::bench;
    use super::*;
    use base::bench::{ANONYMOUS, SHARED};

    fn ids(looked: &Looked, asked: Option<&Asked>) -> Vec<String> {
        findings(Seen { looked, asked }).iter().map(|finding| finding.rule.to_string()).collect()
    }

    fn planned(zero_share: f64, bytes_per_s: f64) -> Asked {
        let mut asked = asked(WorkingSet::Cyclic, 100.0, Order::AtSync);
        asked.setting.memory = Memory { pages: 2_097_152.0, zero_share };
        asked.setting.bytes_per_s = bytes_per_s;
        asked
    }

    #[test]
    fn a_search_that_takes_longer_than_sending_is_told() {
        let (looked, scanned) = (Looked::default(), |rate, plan| Asked { scan_bytes_per_s: Some(rate), ..plan });
        // 8 GiB at 10 GB/s take 859 ms; a tenth of them at 1.25 GB/s 690 ms.
        assert_eq!(ids(&looked, Some(&scanned(10e9, planned(0.9, 1.25e9)))), ["MIG-ZEROSCAN"]);
        assert_eq!(ids(&looked, Some(&scanned(20e9, planned(0.9, 1.25e9)))), [""; 0], "a faster core");
        assert_eq!(ids(&looked, Some(&scanned(10e9, planned(0.59, 1.25e10)))), [""; 0], "too few zeros");
        assert_eq!(ids(&looked, Some(&scanned(10e9, planned(0.61, 1.25e10)))), ["MIG-ZEROSCAN"]);
        assert_eq!(ids(&looked, None), [""; 0]);
    }

    #[test]
    fn compressing_that_does_not_carry_more_is_told() {
        // zstd takes 524 MB/s of a core and halves.
        let survey = Survey::of(&bench(ANONYMOUS, 900));
        let looked =
            |channels| Looked { survey: survey.clone(), compressing_channels: Some(channels), ..Looked::default() };
        assert_eq!(ids(&looked(2), Some(&planned(0.5, 1.25e9))), ["MIG-COMPRESS"], "1.05 GB/s are compressed");
        assert_eq!(ids(&looked(4), Some(&planned(0.5, 1.25e9))), [""; 0]);
        assert_eq!(ids(&looked(2), Some(&planned(0.5, 0.125e9))), [""; 0], "a slow link");
        let unasked = Looked { compressing_channels: None, ..looked(2) };
        assert_eq!(ids(&unasked, Some(&planned(0.5, 1.25e9))), [""; 0]);
    }

    #[test]
    fn holes_of_shared_memory_are_told_and_others_cost_nothing() {
        let looked = |memory| Looked { survey: Survey::of(&bench(memory, 900)), ..Looked::default() };
        assert_eq!(ids(&looked(SHARED), None), ["MIG-HOLES"]);
        assert_eq!(ids(&looked(ANONYMOUS), None), [""; 0]);
    }
}
