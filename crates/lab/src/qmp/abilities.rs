//! What a QEMU can do, out of `query-qmp-schema`.

use serde_json::Value;
use std::collections::BTreeMap;

/// Commands, what each takes, and the values of enumerations.
#[derive(Debug, Clone, Default)]
pub struct Abilities {
    /// By name: commands by their own, types by numbers.
    entries: BTreeMap<String, Value>,
}

impl Abilities {
    /// Those of an answer to `query-qmp-schema`. Types have no names there but numbers: they are followed from the commands.
    pub fn of_schema(schema: &Value) -> Self {
        let entries = schema.as_array().into_iter().flatten();
        let named = entries.filter_map(|entry| Some((entry["name"].as_str()?.to_owned(), entry.clone())));
        Self { entries: named.collect() }
    }

    /// Whether it knows a command.
    pub fn has(&self, command: &str) -> bool {
        self.command(command).is_some()
    }

    /// Whether a command takes an argument of that name.
    pub fn takes(&self, command: &str, argument: &str) -> bool {
        let arguments = self.command(command).and_then(|command| self.kind(&command["arg-type"]));
        arguments.is_some_and(|arguments| member(arguments, argument).is_some())
    }

    /// Whether a command takes `value` at this place of its arguments, from member to member: `["capabilities", "capability"]`. What is
    /// between them may be a list.
    pub fn accepts(&self, command: &str, place: &[&str], value: &str) -> bool {
        let values = self.at(command, place).and_then(|kind| kind["values"].as_array());
        values.into_iter().flatten().any(|one| one == value)
    }

    /// Whether `migrate-set-capabilities` knows it.
    pub fn has_capability(&self, name: &str) -> bool {
        self.accepts("migrate-set-capabilities", &["capabilities", "capability"], name)
    }

    fn command(&self, name: &str) -> Option<&Value> {
        self.entries.get(name).filter(|entry| entry["meta-type"] == "command")
    }

    fn kind(&self, name: &Value) -> Option<&Value> {
        self.entries.get(name.as_str()?)
    }

    /// The type at this place of a command's arguments.
    fn at(&self, command: &str, place: &[&str]) -> Option<&Value> {
        place.iter().try_fold(self.kind(&self.command(command)?["arg-type"])?, |object, name| {
            let found = self.kind(&member(object, name)?["type"])?;
            if found["meta-type"] == "array" { self.kind(&found["element-type"]) } else { Some(found) }
        })
    }
}

fn member<'o>(object: &'o Value, name: &str) -> Option<&'o Value> {
    object["members"].as_array()?.iter().find(|member| member["name"] == name)
}
