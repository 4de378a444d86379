//! What nesting costs, in sentences: by whole chains, else by what is known of the hypervisor in a guest.

use base::Level;
use base::number::{counted, list, many, percent, thousands};
use facts::ledger::measure::{Measures, grouped};
use walk::events::reasons::Class;

/// Of fewer chains the 99th percentile is the longest one.
const FEWEST_FOR_P99: u64 = 100;

/// A chain or two without accesses may be of a reason for which L1 makes none.
const FEWEST_FOR_SHADOWING: u64 = 10;

/// What makes a chain say nothing of the cost of one exit.
const DISTURBED: &str = "it halted or another guest ran meanwhile";

/// What one exit of L2 costs, in counts, and what it consists of.
pub(super) fn nested_sentences(measure: &Measures<'_>) -> Vec<String> {
    let chains = &measure.chains;
    let (l1, l0) = (measure.level_above(1), measure.level_above(0));
    let l2 = measure.level_above(2);
    let (p50, p99) = (chains.exits.quantile(0.5).unwrap_or(0), chains.exits.quantile(0.99).unwrap_or(0));
    let mut first = format!("Every exit of {l2} that {l1} handles costs {} of {l1} to {l0}", many(p50, "exit"));
    if p99 > p50 && chains.undisturbed >= FEWEST_FOR_P99 {
        first.push_str(&format!(" (median of {}, p99 {p99})", many(chains.undisturbed, "chain")));
    } else {
        first.push_str(&format!(" ({})", many(chains.undisturbed, "chain")));
    }
    if let Some((reason, sequence, times)) = chains.typical() {
        let parts: Vec<String> = grouped(sequence)
            .into_iter()
            .map(|(name, times)| if times == 1 { name } else { format!("{times} {name}") })
            .collect();
        let share = percent(times as f64 / chains.undisturbed.max(1) as f64);
        let told = if sequence.len() as u64 == p50 { String::new() } else { "; the most frequent chain".to_owned() };
        let lead = if told.is_empty() { ": ".to_owned() } else { format!("{told} has {}: ", sequence.len()) };
        first.push_str(&format!(
            "{lead}{}, in {share} of the chains, most frequently after {}",
            list(&parts),
            reason.name()
        ));
    }
    first.push('.');
    let mut sentences = vec![first];
    if chains.disturbed > 0 {
        let (are, them) = if chains.disturbed == 1 { ("is", "it") } else { ("are", "them") };
        let disturbed = many(chains.disturbed, "disturbed chain");
        let open = match chains.count - chains.disturbed - chains.undisturbed {
            0 => String::new(),
            open => format!(", and {} cut off", counted(open, "chain that was", "chains that were")),
        };
        sentences.push(format!("{disturbed} {are} left out: {l1} halted in {them}, or another guest ran next{open}."));
    }
    let vmcs = chains.per_chain(Class::VmcsAccess);
    if vmcs >= 0.5 {
        let without = chains.exits.mean().unwrap_or(0.0) - vmcs;
        if vmcs >= 4.0 {
            sentences.push(format!(
                "VMCS shadowing is off or absent at {l0}: on average {vmcs:.1} of {:.1} exits per chain are VMREAD \
                 and VMWRITE; with shadowing, about {:.1} would remain.",
                without + vmcs,
                without + 1.0
            ));
        } else if chains.undisturbed >= FEWEST_FOR_SHADOWING {
            sentences.push(format!(
                "VMCS shadowing works: on average only {vmcs:.1} exits per chain are VMREAD or VMWRITE."
            ));
        }
    }
    sentences
}

pub(super) fn hypervisor_sentence(measure: &Measures<'_>) -> String {
    let (virtualization, _) = measure.exits_where(|total| total.reason.class().is_nested_sign());
    let unknown = measure.unknown_level();
    let tail = if unknown > 0 {
        format!(
            " The level of {} is unknown: the trace lacks kvm_nested_vmexit and kvm_nested_vmexit_inject.",
            many(unknown, "exit")
        )
    } else {
        String::new()
    };
    format!(
        "A guest hypervisor runs here: {} of {} are its virtualization instructions. {}.{tail}",
        thousands(virtualization),
        many(measure.exits, "exit"),
        reflected(measure)
    )
}

/// What is known of the exits that a guest hypervisor got, where no chain of them was seen to its end.
fn reflected(measure: &Measures<'_>) -> String {
    let seen = &measure.part.seen;
    let (of_nested, _) =
        measure.exits_where(|total| total.level > measure.level_above(1) && total.level != Level::Unknown);
    let entered = seen.nested_entry || measure.exits_where(|total| total.reason.class() == Class::EntryRequest).0 > 0;
    match measure.chains.count {
        0 if seen.inject => "No exit of a nested guest was reflected to it in this window".to_owned(),
        0 if !entered && of_nested == 0 => "It entered no nested guest".to_owned(),
        0 => format!(
            "How many exits of its guests were reflected to it is unknown, because the trace has no \
             kvm_nested_vmexit_inject{}",
            if of_nested > 0 {
                format!("; it has {} of nested guests", many(of_nested, "exit"))
            } else {
                String::new()
            }
        ),
        chains => {
            let (were, lacks) =
                if chains == 1 { ("was", "the end of its chain") } else { ("were", "the ends of their chains") };
            let why = match measure.chains.disturbed {
                0 => format!("the trace lacks {lacks}"),
                disturbed if disturbed == chains => format!("{DISTURBED}, so what one costs is unknown"),
                disturbed => {
                    let rest = thousands(chains - disturbed);
                    format!("of {rest} the trace lacks the end, and in {} {DISTURBED}", thousands(disturbed))
                }
            };
            let exits = if chains == 1 {
                "1 exit of a nested guest".to_owned()
            } else {
                format!("{} exits of nested guests", thousands(chains))
            };
            format!("{exits} {were} reflected to it, but {why}")
        }
    }
}
