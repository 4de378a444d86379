//! What does a finding cost on this very host? Its own exits tell, where a recording has them.
//!
//! In: findings on features, and the exits of the recording's own traces. A finding whose exits were seen gets them as
//! evidence, and their time as its cost, measured, in the place of a published number.

use base::number::{list, percent, plain, thousands};
use base::recording::Emulator;
use base::{About, Cost, CostKind, Evidence, Finding, GivesBack, Level};
use facts::estimate::Estimate;
use facts::traced_exits::TracedExits;

/// Which exits a finding is about.
struct Priced {
    rule: &'static str,
    /// Part of the finding's subject; empty: any.
    about: &'static str,
    /// Reasons of the exits that would go, as table `exits` calls them.
    reasons: &'static [&'static str],
}

const PRICED: &[Priced] = &[
    Priced { rule: "NST-SHADOW", about: "", reasons: &["VMREAD", "VMWRITE"] },
    Priced { rule: "NST-SVM", about: "virtual_vmload_vmsave", reasons: &["VMLOAD", "VMSAVE"] },
    Priced { rule: "NST-SVM", about: "virtual_gif", reasons: &["STGI", "CLGI"] },
    Priced {
        rule: "NST-APIC",
        about: "apicv",
        reasons: &["APIC_ACCESS", "EOI_INDUCED", "INTERRUPT_WINDOW", "TPR_BELOW_THRESHOLD"],
    },
    Priced { rule: "NST-APIC", about: "avic", reasons: &["VINTR", "WRITE_CR8"] },
    Priced { rule: "NST-NXHUGE", about: "", reasons: &["EPT_VIOLATION"] },
];

/// Adds to `findings` what their exits cost in the recording's own traces.
pub(crate) fn add(findings: &mut [Finding], exits: &TracedExits, emulated: Option<Emulator>) {
    for finding in findings {
        let of_finding = |priced: &&Priced| priced.rule == finding.rule && finding.subject.contains(priced.about);
        // The host's trace shows what the host's own settings cost.
        if finding.level == Level::L0
            && let Some(priced) = PRICED.iter().find(of_finding)
        {
            measured(finding, priced, exits, emulated);
        }
    }
}

fn measured(finding: &mut Finding, priced: &Priced, exits: &TracedExits, emulated: Option<Emulator>) {
    let (count, ns) = exits.of_reasons(priced.reasons);
    if count == 0 {
        return;
    }
    let names: Vec<String> = priced.reasons.iter().map(|name| (*name).to_owned()).collect();
    let share = exits.share(ns);
    let reasons = || priced.reasons.iter().map(|name| About::reason(*name));
    let what = format!("{} exits are {}, {} of the vCPUs' time", thousands(count), list(&names), percent(share));
    finding
        .evidence
        .push(Evidence::new(what, "table exits of flow").about([About::rows("flow.exits")]).about(reasons()));
    if exits.undisturbed() > 0 {
        let (of, all) = (exits.per_chain(priced.reasons), exits.exits_per_chain());
        let rounded = |value: f64| plain((value * 10.0).round() / 10.0);
        let what = format!("{} of {} exits per chain are {}", rounded(of), rounded(all), list(&names));
        finding
            .evidence
            .push(Evidence::new(what, "table chains of flow").about([About::rows("flow.chains")]).about(reasons()));
    }
    finding.title = format!("{}; here that is {} of the vCPUs' time", finding.title, percent(share));
    let unit = marked("share of the vCPUs' time", emulated);
    finding.cost = Cost::of(CostKind::Measured, share, unit.clone());
    // All of these are exits of guests of the host itself.
    let saved = exits.saved_share(priced.reasons).unwrap_or(Estimate { low: 0.0, mid: share, high: share });
    let Estimate { low, mid: share, high } = saved;
    finding.gives_back =
        Some(GivesBack { state: "handling_l1".to_owned(), share, low, high, unit, of_vcpus: Vec::new() });
}

/// A unit with the mark of emulated time.
fn marked(unit: &str, emulated: Option<Emulator>) -> String {
    emulated.map_or_else(|| unit.to_owned(), |emulator| format!("{unit}, emulated by {}", emulator.name()))
}
