//! What is known of the parameters of KVM's modules.
//!
//! Parameters are enumerated generically; a row of `known.toml` attaches knowledge by name, and names that no row knows are listed
//! without.

use facts::rows::rows;
use serde::Deserialize;
use std::sync::LazyLock;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Such as `kvm_intel`.
    pub module: &'static str,
    /// Such as `enable_shadow_vmcs`.
    pub name: &'static str,
    /// The feature it decides in table `features`; empty: it decides none and stands in table `parameters` alone.
    #[serde(default)]
    pub feature: &'static str,
    /// Its value when nobody sets it.
    pub default: &'static str,
    /// How the file's line reads.
    #[serde(default)]
    pub reads: Reads,
    /// The flag of `/proc/cpuinfo` without which the processor cannot; empty: none is needed, or none shows it.
    #[serde(default)]
    pub flag: &'static str,
    pub meaning: &'static str,
    /// What happens without it; empty: nothing that costs exits.
    #[serde(default)]
    pub without: &'static str,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", bound(deserialize = "'de: 'static"))]
pub enum Reads {
    /// `Y` or `1`, `N` or `0`.
    #[default]
    Switch,
    /// On unless it is 0.
    Number,
    /// On if it is one of these words.
    Words(Vec<&'static str>),
}

/// Every parameter with knowledge, in the order in which features are shown.
pub static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| rows(include_str!("known.toml")));

pub fn of(module: &str, name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.module == module && known.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_parameter_and_no_feature_of_a_module_stands_twice() {
        for (at, known) in KNOWN.iter().enumerate() {
            for other in &KNOWN[at + 1..] {
                let same_name = (known.module, known.name) == (other.module, other.name);
                let same_feature =
                    !known.feature.is_empty() && (known.module, known.feature) == (other.module, other.feature);
                assert!(!same_name && !same_feature, "{}.{}", known.module, known.name);
            }
            assert!(!known.meaning.is_empty() && !known.default.is_empty());
        }
        assert_eq!(of("kvm_amd", "avic").unwrap().feature, "avic");
        assert!(of("kvm_pvm", "force").is_none());
    }
}
