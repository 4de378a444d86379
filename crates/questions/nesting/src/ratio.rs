//! How much more does an exit cost when it is nested, and is that more than others have seen?
//!
//! In: what a bench measured of exits. Out: a sentence; and a finding if nesting adds more than on
//! any published host. A hint only: processors, kernels and mitigations differ, so a high ratio proves nothing.

use super::measured::exits::{self, Row};
use super::plan::benched;
use super::plan::inputs::Stated;
use base::number::{plain, thousands};
use base::rule::Words;
use base::{About, Cost, CostKind, Evidence, Finding, Level, Needs, Section, Severity};
use facts::benches::Benches;
use facts::published::value;

/// The rule of the finding, which looks at benches and not at machines.
pub(crate) const WORDS: Words = Words {
    id: "NST-RATIO",
    per: "machine",
    looks_at: "What `bench exits` measured of CPUID without nesting and with it, against published hosts: more than on any \
        of them.",
    requires: &[],
    limits: &[],
    why: "A high ratio suggests that L0 emulates VMREAD and VMWRITE, or has an old kernel. It proves neither: only L0's \
        settings or a trace at L0 can.",
    fix: &["kvmscope check   # at L0, by its owner"],
    undo: &[],
    needs: Needs::OuterLevel,
    source: "docs/read/plan.md; PVM (SOSP 2023), DVH (ASPLOS 2020), FOSDEM 2018, dorsal 2018",
};

/// Published exits without nesting and with it, in one unit each.
const PUBLISHED: &[(&str, &str)] = &[
    ("fosdem18.cpuid.l1", "fosdem18.cpuid.l2.evmcs"),
    ("pvm23.cpuid.l1", "pvm23.cpuid.l2"),
    ("fosdem18.cpuid.l1", "fosdem18.cpuid.l2"),
    ("dvh20.hypercall.l1", "dvh20.hypercall.l2"),
    ("dorsal18.hypercall.l1", "dorsal18.hypercall.l2"),
];

/// Least and most that nesting added on a published host, in exits without it.
fn published() -> (f64, f64) {
    let ratios = PUBLISHED.iter().map(|(c1, c2)| (value(c2) - value(c1)) / value(c1));
    ratios.fold((f64::MAX, 0.0), |(least, most), ratio| (least.min(ratio), most.max(ratio)))
}

/// Says it, where a bench tells; cycles of an emulator tell nothing.
pub(crate) fn add(benches: &Benches, section: &mut Section) {
    if benches.emulated.is_none() {
        judge(&exits::rows(benches), section);
    }
}

fn judge(rows: &[Row], section: &mut Section) {
    let mut stated = Stated::default();
    let (Some(how), Some(c1), Some(d)) = (benched::add(&mut stated, rows), stated.c1, stated.d) else { return };
    let ratio = d.mid / c1.mid.max(1.0);
    let (least, most) = published();
    let tenth = |value: f64| plain((value * 10.0).round() / 10.0);
    let cycles = |value: f64| thousands(value.round() as u64);
    let sentence = format!(
        "Nesting adds {} cycles to an exit, {} times its cost without nesting ({how}); published hosts had {} to {} \
         times.",
        cycles(d.mid),
        tenth(ratio),
        tenth(least),
        tenth(most)
    );
    if ratio > most {
        section.findings.push(finding(&sentence, d.mid, d.low, d.high));
    }
    section.summary = format!("{}\n\n{sentence}", section.summary).trim().to_owned();
}

fn finding(sentence: &str, d: f64, low: f64, high: f64) -> Finding {
    Finding {
        rule: WORDS.id,
        subject: "L0".to_owned(),
        per: WORDS.per,
        severity: Severity::Medium,
        level: Level::L0,
        title: "L0 seems to lack VMCS shadowing or another nesting feature".to_owned(),
        evidence: vec![
            Evidence::new(sentence, "table exits, cpuid and l2_cpuid").about([About::rows("nesting.exits")]),
        ],
        cost: Cost::of(CostKind::Measured, d, "cycles that nesting adds per exit").between(low, high),
        gives_back: None,
        explains: Vec::new(),
        why: WORDS.why.to_owned(),
        changes: Vec::new(),
        fix: WORDS.fix.iter().map(|line| (*line).to_owned()).collect(),
        undo: Vec::new(),
        needs: WORDS.needs,
        source: WORDS.source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::recording::Emulator;

    fn measured(c1: u64, c2: u64) -> Section {
        let rows = [
            Row::of_one_launch("cpuid", "here", c1, 0.0, "outer level"),
            Row::of_one_launch("cpuid", "guest", c2, 1.0, "kernel"),
        ];
        let mut section = Section::new("nesting", "?");
        judge(&rows, &mut section);
        section
    }

    #[test]
    fn a_ratio_above_all_published_ones_is_a_finding_and_one_among_them_a_sentence() {
        let (least, most) = published();
        assert!((least - 5.6).abs() < 0.05 && (most - 31.5).abs() < 0.1, "{least} to {most}");
        let slow = measured(1_350, 55_350);
        assert_eq!(slow.findings[0].id(), "NST-RATIO@L0");
        assert!(slow.summary.contains("40 times"), "{}", slow.summary);
        let usual = measured(1_350, 20_700);
        assert!(usual.findings.is_empty() && usual.summary.contains("14.3 times"), "{}", usual.summary);
        let mut emulated = Section::new("nesting", "?");
        add(&Benches { emulated: Some(Emulator::Tcg), ..Benches::default() }, &mut emulated);
        assert_eq!(emulated.summary, "");
    }
}
