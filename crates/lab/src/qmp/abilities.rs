//! What a QEMU can do, out of `query-qmp-schema`.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Commands, what each takes, and the values of enumerations.
#[derive(Debug, Clone, Default)]
pub struct Abilities {
    /// By command: names of its arguments.
    commands: BTreeMap<String, BTreeSet<String>>,
    capabilities: BTreeSet<String>,
}

impl Abilities {
    /// Those of an answer to `query-qmp-schema`. Types have no names there but numbers: they are followed from the commands.
    pub fn of_schema(schema: &Value) -> Self {
        let entries = schema.as_array().map(Vec::as_slice).unwrap_or_default();
        let by_name: BTreeMap<&str, &Value> =
            entries.iter().filter_map(|entry| Some((entry["name"].as_str()?, entry))).collect();
        let members = |name: &Value| -> Vec<(&str, &Value)> {
            let object = name.as_str().and_then(|name| by_name.get(name));
            let list = object.and_then(|object| object["members"].as_array());
            list.into_iter().flatten().filter_map(|one| Some((one["name"].as_str()?, &one["type"]))).collect()
        };
        let commands = entries.iter().filter(|entry| entry["meta-type"] == "command");
        let commands = commands.filter_map(|entry| {
            let arguments = members(&entry["arg-type"]).into_iter().map(|(name, _)| name.to_owned());
            Some((entry["name"].as_str()?.to_owned(), arguments.collect()))
        });
        // migrate-set-capabilities takes a list of objects, whose member `capability` is an enumeration.
        let list = by_name.get("migrate-set-capabilities").map(|entry| members(&entry["arg-type"]));
        let element =
            list.and_then(|members| by_name.get(members.first()?.1.as_str()?).map(|array| &array["element-type"]));
        let of_element = element.map(members).unwrap_or_default();
        let named = of_element.into_iter().find(|(name, _)| *name == "capability");
        let values = named.and_then(|(_, kind)| by_name.get(kind.as_str()?)?["values"].as_array());
        let capabilities = values.into_iter().flatten().filter_map(|value| value.as_str().map(str::to_owned));
        Self { commands: commands.collect(), capabilities: capabilities.collect() }
    }

    /// Whether it knows a command.
    pub fn has(&self, command: &str) -> bool {
        self.commands.contains_key(command)
    }

    /// Whether a command takes an argument of that name.
    pub fn takes(&self, command: &str, argument: &str) -> bool {
        self.commands.get(command).is_some_and(|arguments| arguments.contains(argument))
    }

    /// Whether `migrate-set-capabilities` knows it.
    pub fn has_capability(&self, name: &str) -> bool {
        self.capabilities.contains(name)
    }
}
