//! Features that a parameter of a KVM module decides.

use crate::known::{KNOWN, Known, Reads};
use crate::model::{Row, Seen};
use base::figure::Standing;
use host::Virtualization;
use host::parameters::Setting;
use host::processor::Vendor;

/// A row for each such feature that this machine's processor and modules can have.
pub(super) fn rows(facts: &Virtualization) -> Vec<Row> {
    let concerned = KNOWN.iter().filter(|known| !known.feature.is_empty() && concerns(facts, known.module));
    let mut rows: Vec<Row> = Vec::new();
    for known in concerned {
        let seen = look(facts, known);
        // Where the vendor is not known, a feature of both has one row.
        if rows.iter().all(|row| row.feature != known.feature) {
            rows.push(Row { feature: known.feature, state: seen.state, evidence: seen.evidence });
        }
    }
    rows
}

/// Whether a module can exist on this processor.
fn concerns(facts: &Virtualization, module: &str) -> bool {
    let vendor = facts.processor.as_ref().map(|cpu| cpu.vendor);
    match module {
        "kvm_intel" => vendor.is_none_or(|vendor| vendor == Vendor::Intel),
        "kvm_amd" => vendor.is_none_or(|vendor| vendor == Vendor::Amd),
        _ => true,
    }
}

fn look(facts: &Virtualization, known: &Known) -> Seen {
    let file = format!("{}.{}", known.module, known.name);
    let offered = (!known.flag.is_empty()).then(|| facts.processor.as_ref()?.offers(known.flag)).flatten();
    match facts.setting(known.module, known.name) {
        Setting::Value(value) => match is_on(&known.reads, &value) {
            Some(false) if offered == Some(false) => {
                Seen::new(Standing::Absent, format!("{file} = {value}, and /proc/cpuinfo lacks {}", known.flag))
            }
            Some(false) if offered.is_none() && is_cleared_by_module(facts, known) => Seen::new(
                Standing::Unknown,
                format!(
                    "{file} = {value}: its default is Y, so that the CPU lacks it or somebody set it, and no flag of /proc/cpuinfo tells which (Linux 5.9 has them)"
                ),
            ),
            Some(false) if known.feature == "enlightened_vmcs" && lacks_hyperv(facts) => {
                Seen::new(Standing::Absent, format!("{file} = {value}, and the hypervisor does not offer it"))
            }
            Some(on) => Seen::new(Standing::of(on), format!("{file} = {value}")),
            None => Seen::new(Standing::Unknown, format!("{file} = {value}, which is neither yes nor no")),
        },
        Setting::NoParameter => {
            Seen::new(Standing::Absent, format!("{} of this kernel has no {}", known.module, known.name))
        }
        Setting::NoModule => {
            let can = facts.processor.as_ref().map(|cpu| cpu.can_virtualize());
            let vendor = known.module != "kvm";
            match can {
                Some(false) if vendor => {
                    Seen::new(Standing::Absent, "/proc/cpuinfo has neither vmx nor svm".to_owned())
                }
                _ => Seen::new(Standing::Off, format!("{} is not loaded", known.module)),
            }
        }
        Setting::Unreadable(why) => Seen::new(Standing::Unknown, format!("{file}: {why}")),
        Setting::Unknown => Seen::new(Standing::Unknown, format!("{file} is not in the snapshot")),
    }
}

/// Whether the module itself may have cleared a switch that is on unless the CPU lacks what it needs: nobody set it when the kernel
/// was booted.
fn is_cleared_by_module(facts: &Virtualization, known: &Known) -> bool {
    let option = format!("{}.{}=", known.module, known.name);
    let booted = facts.snapshot.line("proc/cmdline").unwrap_or_default();
    !known.flag.is_empty() && known.default == "Y" && !booted.contains(&option)
}

/// KVM clears this switch where Hyper-V does not recommend it.
fn lacks_hyperv(facts: &Virtualization) -> bool {
    let offered = crate::features::hyperv::evmcs(facts).map(|seen| seen.state);
    facts.below.present == Some(false) || (facts.cpuid.is_some() && offered != Some(Standing::On))
}

/// What a value says; `None` where it is to be decided at load, or not understood.
pub(super) fn is_on(reads: &Reads, value: &str) -> Option<bool> {
    match reads {
        Reads::Words(words) => Some(words.contains(&value)),
        Reads::Number => value.parse::<i64>().ok().map(|number| number != 0),
        Reads::Switch => match value {
            "Y" | "y" | "1" | "on" => Some(true),
            "N" | "n" | "0" | "off" | "never" => Some(false),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_differ_and_automatic_is_not_a_no() {
        assert_eq!([is_on(&Reads::Switch, "Y"), is_on(&Reads::Switch, "1")], [Some(true); 2]);
        assert_eq!([is_on(&Reads::Switch, "N"), is_on(&Reads::Switch, "0")], [Some(false); 2]);
        assert_eq!([is_on(&Reads::Switch, "auto"), is_on(&Reads::Switch, "-1")], [None; 2]);
        assert_eq!([is_on(&Reads::Number, "128"), is_on(&Reads::Number, "0")], [Some(true), Some(false)]);
        assert_eq!(is_on(&Reads::Words(vec!["cond"]), "not required"), Some(false));
    }
}
