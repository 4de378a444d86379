//! Two stories that the model must not contradict, and what speaks against reading more into them.
//!
//! Neither calibrates or validates anything: each is one run on one machine, and some of what happened is not known.

use base::number::plain;
use facts::published::value;
use std::fmt::Write as _;

/// Clock at which the CPU shares of Ciena are turned into cycles: between the E5-2690 v4's 2.6 GHz and what a cloud gives.
const CIENA_HZ: f64 = 2.4e9;
/// Cycles of one exit of L1, from fast to the slides' 1,350.
const EXIT: (f64, f64) = (1_200.0, 1_350.0);
/// `top` of the Ciena slides, averaged over the guests shown: workstation, cloud without shadowing, cloud with it.
const TOP: (f64, f64, f64) = (9.1, 79.7, 52.9);

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Story {
    pub set: &'static str,
    pub what: &'static str,
    pub low: f64,
    pub high: f64,
    /// In this unit.
    pub unit: &'static str,
    pub against: &'static str,
    /// Why it proves nothing.
    pub doubt: &'static str,
}

/// All of them, computed from the published records.
pub(crate) fn stories() -> Vec<Story> {
    let c1 = value("fosdem18.cpuid.l1");
    let saved = value("fosdem18.cpuid.l2") - value("fosdem18.cpuid.l2.evmcs");
    let by_commit = value("evmcs18.cpuid.l2") - value("evmcs18.cpuid.l2.evmcs");
    let cpu = ["ciena16.cpu.l1", "ciena16.cpu.l2", "ciena16.cpu.l2.shadow"].map(|id| value(id) / 100.0);
    let [alone, without, with] = cpu;
    let exit = (value("ciena16.chain.low") * EXIT.0, value("ciena16.chain.high") * EXIT.1);
    let rate = ((without - alone) * CIENA_HZ / exit.1, (without - alone) * CIENA_HZ / exit.0);
    let needed = ((with - alone) * CIENA_HZ / rate.1, (with - alone) * CIENA_HZ / rate.0);
    let by_top = (TOP.1 - TOP.0) / (TOP.2 - TOP.0);
    let dvh = value("dvh20.hypercall.l2") / CIENA_HZ;
    let ciena = |what, (low, high): (f64, f64), unit, against| Story {
        set: "Ciena 2016",
        what,
        low,
        high,
        unit,
        against,
        doubt: "according to the slides, nesting and shadowing were enabled together, so the 80 % may include plain \
            emulation",
    };
    vec![
        Story {
            set: "FOSDEM 2018",
            what: "what the enlightened VMCS saved, in exits of L1",
            low: by_commit / c1,
            high: saved / c1,
            unit: "c1",
            against: "8 to 16 VMREAD and VMWRITE of KVM for an exit (intel/haxm 130)",
            doubt: "its author attributes more to the clean-field mask than to the cheaper accesses, and the kernel \
                build took longer",
        },
        ciena(
            "an exit of L2 without shadowing, 40 to 50 exits of L1",
            exit,
            "cycles",
            "nothing: no cycles were published",
        ),
        ciena(
            "exits of L2 that turn 10 % of a CPU into 80 %",
            rate,
            "exits per second",
            "nothing: no rate was published",
        ),
        ciena(
            "an exit of L2 with shadowing, for 50 % of a CPU",
            needed,
            "cycles",
            "37,733 of DVH, 20,700 of FOSDEM without it",
        ),
        ciena(
            "cost without shadowing against with it",
            (by_top, (without - alone) / (with - alone)),
            "times",
            "5 by counts of exits",
        ),
        ciena(
            "CPU with shadowing, at DVH's 37,733 cycles",
            (alone + rate.0 * dvh, alone + rate.1 * dvh),
            "share",
            "50 %",
        ),
    ]
}

/// The part of docs/formats/validation.md about published cases that the model neither confirms nor refutes.
pub(super) fn printed() -> String {
    let mut out = "\n### Two published cases that prove nothing\n\nThe model is consistent with them, no more.\n\n\
        | case | what is computed | from | to | in | against |\n|---|---|---|---|---|---|\n"
        .to_owned();
    let mut doubts: Vec<String> = Vec::new();
    for story in stories() {
        let [low, high] = [story.low, story.high].map(|value| plain(rounded(value)));
        let Story { set, what, unit, against, doubt, .. } = story;
        let _ = writeln!(out, "| {set} | {what} | {low} | {high} | {unit} | {against} |");
        let doubt = format!("- {set}: {doubt}.\n");
        if !doubts.contains(&doubt) {
            doubts.push(doubt);
        }
    }
    out + "\n" + &doubts.concat()
}

/// As many digits as the inputs have: three.
fn rounded(value: f64) -> f64 {
    let scale = 10f64.powf(2.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stories_compute_to_what_their_publications_leave_open() {
        let stories = stories();
        let close =
            |value: f64, expected: f64| assert!((value / expected - 1.0).abs() < 0.02, "{value} and {expected}");
        let expected = [
            (7.84, 8.74),
            (48_000.0, 67_500.0),
            (24_900.0, 35_000.0),
            (27_400.0, 38_600.0),
            (1.61, 1.75),
            (0.49, 0.65),
        ];
        for (story, (low, high)) in stories.iter().zip(expected) {
            close(story.low, low);
            close(story.high, high);
            assert!(story.low <= story.high && !story.doubt.is_empty());
        }
    }
}
