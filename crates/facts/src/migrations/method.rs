//! By which method did a guest's memory go over? By the capabilities and parameters that the source was told before it was to migrate.

use base::method::{COMPRESSION, Method};
use serde_json::Value;
use std::collections::BTreeSet;

#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    capabilities: BTreeSet<String>,
    compression: Option<String>,
    downtime_limit_ms: Option<u64>,
    max_bytes_per_s: Option<u64>,
}

/// What changes the form of what goes over: one side cannot read what the other one writes (qapi/migration.json, QEMU 7.2 and 10.0).
const BOTH: [&str; 5] = ["multifd", "postcopy-ram", "mapped-ram", "x-ignore-shared", "compress"];

impl Told {
    pub(super) fn method(&self) -> Method {
        Method::of(|name| self.capabilities.contains(name), self.compression.as_deref())
    }

    /// How long the guest may be dark for what is left, and how much may be sent in a second.
    pub(super) fn limits(&self) -> (Option<u64>, Option<u64>) {
        (self.downtime_limit_ms.map(|ms| ms.saturating_mul(1_000_000)), self.max_bytes_per_s)
    }

    /// What must be alike and was told to one side alone; true where that is this one.
    pub(super) fn one_sided(&self, other: &Self) -> Vec<(String, bool)> {
        let has = |side: &Self, name: &str| side.capabilities.contains(name);
        let differs = BOTH.into_iter().filter(|name| has(self, name) != has(other, name));
        let mut found: Vec<(String, bool)> = differs.map(|name| (name.to_owned(), has(self, name))).collect();
        let compresses = |side: &Self| side.compression.clone().filter(|how| how != "none");
        if compresses(self) != compresses(other) {
            found.push((COMPRESSION.to_owned(), compresses(self).is_some()));
        }
        found
    }

    pub(super) fn take(&mut self, command: &str, arguments: &Value) {
        match command {
            "migrate-set-capabilities" => {
                for one in arguments["capabilities"].as_array().into_iter().flatten() {
                    let Some(name) = one["capability"].as_str() else { continue };
                    if one["state"] == true {
                        self.capabilities.insert(name.to_owned());
                    } else {
                        self.capabilities.remove(name);
                    }
                }
            }
            "migrate-set-parameters" => {
                let compression = arguments[COMPRESSION].as_str().map(str::to_owned);
                self.compression = compression.or(self.compression.take());
                self.downtime_limit_ms = arguments["downtime-limit"].as_u64().or(self.downtime_limit_ms);
                self.max_bytes_per_s = arguments["max-bandwidth"].as_u64().or(self.max_bytes_per_s);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_switched_on_last_counts() {
        let mut told = Told::default();
        let mut told_so = |name: &str, state: bool| {
            told.take("migrate-set-capabilities", &json!({ "capabilities": [{ "capability": name, "state": state }] }));
            told.method().name()
        };
        assert_eq!(told_so("events", true), "precopy");
        assert_eq!(told_so("xbzrle", true), "xbzrle");
        assert_eq!(told_so("xbzrle", false), "precopy");
        assert_eq!(told_so("multifd", true), "multifd");
        told.take("migrate-set-parameters", &json!({ "multifd-compression": "zstd" }));
        told.take("migrate-set-parameters", &json!({ "max-bandwidth": 1 }));
        assert_eq!(told.method().name(), "zstd");
        told.take("migrate-set-parameters", &json!({ "downtime-limit": 50 }));
        assert_eq!(told.limits(), (Some(50_000_000), Some(1)));
    }
}
