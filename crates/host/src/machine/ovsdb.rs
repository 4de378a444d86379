//! Open vSwitch out of the rows of its database, whoever tells them.
//!
//! In: rows of the tables Open_vSwitch, Bridge, Port and Interface, from the file `conf.db` or from `ovs-vsctl list`. Out: a
//! [`Switch`].
//! ```text
//! Bridge --ports--> Port --interfaces--> Interface     by their uuids
//! ```
//! Tables and columns: ovs-vswitchd.conf.db(5). The file: ovsdb(5), records of two lines, `OVSDB JSON length hash` and a JSON
//! object; the first is the schema, each later one a transaction `{table: {uuid: {column: value} or null}}`. With `_is_diff`
//! the value of a set or map is what differs from before: what was there goes, what was not comes, another value of a key
//! replaces it (ovsdb/file.c and ovsdb_datum_diff of lib/ovsdb-data.c, Open vSwitch 3.1). Notation of values: RFC 7047, 5.1.
//! A clustered database (`OVSDB CLUSTER`) is never that of a switch.

use super::{Bridge, Fact, Switch, SwitchPort};
use crate::budget;
use base::CpuSet;
use serde_json::Value;
use std::collections::BTreeMap;

/// A column's value: maps have keys, sets and single values stand as elements with themselves for both.
type Column = BTreeMap<String, String>;

pub(crate) type Row = BTreeMap<String, Column>;

/// Tables by their names, rows by their uuids.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Tables {
    rows: BTreeMap<(String, String), Row>,
}

impl Tables {
    /// Adds to a row, or changes it.
    pub(crate) fn set(&mut self, table: &str, uuid: &str, columns: Row) {
        self.rows.entry((table.to_owned(), uuid.to_owned())).or_default().extend(columns);
    }

    /// True if no row was told.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The tables in the file `conf.db`, as its transactions leave them, and the line at which reading ended early: a record
    /// there is cut or of another format, and those behind it may build on it.
    pub(crate) fn of_file(text: &str) -> (Self, Option<usize>) {
        let mut tables = Self::default();
        let mut schema: Option<Value> = None;
        let text = base::plain::beginning(text, budget::JSON_BYTES);
        for (index, pair) in text.lines().collect::<Vec<_>>().chunks(2).enumerate() {
            let record = pair.get(1).filter(|_| pair[0].starts_with("OVSDB JSON "));
            let Some(Ok(record)) = record.map(|record| serde_json::from_str::<Value>(record)) else {
                return (tables, Some(2 * index + 1));
            };
            match &schema {
                None => schema = Some(record),
                Some(schema) => tables.apply(&record, schema),
            }
        }
        (tables, None)
    }

    /// Makes the changes of a transaction.
    fn apply(&mut self, transaction: &Value, schema: &Value) {
        let is_diff = transaction["_is_diff"] == true;
        let tables = transaction.as_object().into_iter().flatten().filter(|(table, _)| !table.starts_with('_'));
        for (table, rows) in tables {
            for (uuid, columns) in rows.as_object().into_iter().flatten() {
                let key = (table.clone(), uuid.clone());
                let Value::Object(columns) = columns else {
                    self.rows.remove(&key);
                    continue;
                };
                let row = self.rows.entry(key).or_default();
                for (name, value) in columns {
                    let most = &schema["tables"][table.as_str()]["columns"][name.as_str()]["type"]["max"];
                    let holds_several = most == "unlimited" || most.as_u64().is_some_and(|most| most > 1);
                    let old = if is_diff && holds_several { row.remove(name) } else { None };
                    row.insert(name.clone(), changed(old.unwrap_or_default(), column(value)));
                }
            }
        }
    }

    fn table<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |((table, _), _)| table == name).map(|(_, row)| row)
    }

    /// The switch that the tables describe; facts are quoted by `place`.
    pub(crate) fn switch(&self, place: &str) -> Switch {
        let mut switch = Switch::default();
        for row in self.table("Open_vSwitch") {
            let option = |key| row.get("other_config").and_then(|config| config.get(key));
            let mask = |key| Some(Fact::new(CpuSet::parse_mask(option(key)?)?, place));
            switch.options_read = true;
            switch.pmd_mask = mask("pmd-cpu-mask");
            switch.lcore_mask = mask("dpdk-lcore-mask");
            switch.dpdk = option("dpdk-init").map(|on| Fact::new(matches!(on.as_str(), "true" | "try"), place));
        }
        let row = |table: &str, uuid: &String| self.rows.get(&(table.to_owned(), uuid.clone()));
        let mut ports_left = budget::PORTS;
        for bridge in self.table("Bridge").take(budget::BRIDGES) {
            let ports = keys(bridge, "ports").filter_map(|uuid| row("Port", uuid));
            let interfaces = ports.flat_map(|port| keys(port, "interfaces")).filter_map(|uuid| row("Interface", uuid));
            switch.bridges.push(Bridge {
                name: only(bridge, "name").unwrap_or_default(),
                user_space: only(bridge, "datapath_type").is_some_and(|kind| kind == "netdev"),
                ports: interfaces.take(ports_left).map(|interface| port(interface, place)).collect(),
            });
            ports_left -= switch.bridges.last().map_or(0, |bridge| bridge.ports.len());
        }
        switch
    }
}

/// A value with what differs from it.
fn changed(mut old: Column, difference: Column) -> Column {
    for (key, value) in difference {
        if old.get(&key) == Some(&value) {
            old.remove(&key);
        } else {
            old.insert(key, value);
        }
    }
    old
}

fn keys<'a>(row: &'a Row, column: &str) -> impl Iterator<Item = &'a String> {
    row.get(column).into_iter().flat_map(|column| column.keys())
}

/// The value of a column that holds one.
fn only(row: &Row, column: &str) -> Option<String> {
    keys(row, column).next().cloned().filter(|value| !value.is_empty())
}

fn port(row: &Row, place: &str) -> SwitchPort {
    let of = |column: &str, key: &str| row.get(column)?.get(key).cloned();
    let node = of("status", "numa_id").and_then(|node| node.parse().ok());
    let affinity = of("other_config", "pmd-rxq-affinity").unwrap_or_default();
    let pair = |pair: &str| {
        let (queue, cpu) = pair.split_once(':')?;
        Some((queue.trim().parse().ok()?, cpu.trim().parse().ok()?))
    };
    SwitchPort {
        name: only(row, "name").unwrap_or_default(),
        kind: only(row, "type").unwrap_or_else(|| "system".to_owned()),
        backing: of("options", "dpdk-devargs").or_else(|| of("options", "vhost-server-path")),
        node: node.map(|node| Fact::new(node, place)),
        rx_queues: of("options", "n_rxq").and_then(|count| count.parse().ok()),
        rx_affinity: affinity.split(',').filter_map(pair).collect(),
    }
}

/// A value in the notation of RFC 7047: an atom, `["uuid", x]`, `["set", [..]]`, `["map", [[k, v], ..]]`.
fn column(value: &Value) -> Column {
    let Value::Array(parts) = value else { return [(atom(value), atom(value))].into() };
    match (parts.first().and_then(Value::as_str), parts.get(1)) {
        (Some("set"), Some(Value::Array(items))) => items.iter().map(|item| (atom(item), atom(item))).collect(),
        (Some("map"), Some(Value::Array(pairs))) => {
            pairs.iter().filter_map(|pair| Some((atom(pair.get(0)?), atom(pair.get(1)?)))).collect()
        }
        _ => [(atom(value), atom(value))].into(),
    }
}

fn atom(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.get(1).map(atom).unwrap_or_default(),
        other => other.to_string(),
    }
}

/// A value as `ovs-vsctl` prints it: `text`, `"text"`, `[a, b]`, `{key=value, "key"="value"}`.
pub(crate) fn printed(text: &str) -> Column {
    let text = text.trim();
    let inside = |open, close| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    if let Some(pairs) = inside('{', '}') {
        let pair = |pair: String| pair.split_once('=').map(|(key, value)| (plain(key), plain(value)));
        return items(pairs).into_iter().filter_map(pair).collect();
    }
    let each = inside('[', ']').map_or_else(|| vec![text.to_owned()], items);
    each.iter().map(|item| (plain(item), plain(item))).collect()
}

/// What commas part, but not those inside of quotes.
fn items(text: &str) -> Vec<String> {
    let (mut items, mut quoted) = (vec![String::new()], false);
    for letter in text.chars() {
        quoted ^= letter == '"';
        match (letter, items.last_mut()) {
            (',', _) if !quoted => items.push(String::new()),
            (_, Some(item)) => item.push(letter),
            (_, None) => {}
        }
    }
    items.retain(|item| !item.trim().is_empty());
    items
}

fn plain(text: &str) -> String {
    text.trim().trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As ovsdb(5) has it: a schema, a transaction that makes rows, one that changes one and takes one away.
    const FILE: &str = r#"OVSDB JSON 10 0123456789012345678901234567890123456789
{"name":"Open_vSwitch","tables":{}}
OVSDB JSON 10 0123456789012345678901234567890123456789
{"_date":1,"Open_vSwitch":{"o":{"other_config":["map",[["dpdk-init","true"],["pmd-cpu-mask","c"]]]}},"Bridge":{"b":{"name":"br0","datapath_type":"netdev","ports":["set",[["uuid","p"],["uuid","q"]]]}},"Port":{"p":{"name":"dpdk0","interfaces":["uuid","i"]},"q":{"name":"gone","interfaces":["uuid","j"]}},"Interface":{"i":{"name":"dpdk0","type":"dpdk","options":["map",[["dpdk-devargs","0000:3b:00.1"],["n_rxq","2"]]],"other_config":["map",[["pmd-rxq-affinity","0:2,1:3"]]]},"j":{"name":"gone"}}}
OVSDB JSON 10 0123456789012345678901234567890123456789
{"Open_vSwitch":{"o":{"other_config":["map",[["dpdk-init","true"],["pmd-cpu-mask","0xc0"]]]}},"Bridge":{"b":{"ports":["uuid","p"]}},"Port":{"q":null},"Interface":{"j":null}}
OVSDB JSON 99 cut
{"Bridge":{"b":{"na
"#;

    #[test]
    fn transactions_change_and_remove_rows() {
        let (tables, ended) = Tables::of_file(FILE);
        assert_eq!(ended, Some(7), "the last record is cut");
        assert_eq!(Tables::of_file("OVSDB CLUSTER 1 0\n{}\n").1, Some(1));
        let switch = tables.switch("conf.db");
        assert_eq!(switch.pmd_mask.as_ref().unwrap().value.to_string(), "6-7");
        let [bridge] = &switch.bridges[..] else { panic!("{:?}", switch.bridges) };
        assert!(bridge.user_space && bridge.name == "br0");
        let [port] = &bridge.ports[..] else { panic!("{:?}", bridge.ports) };
        assert_eq!((port.name.as_str(), port.kind.as_str()), ("dpdk0", "dpdk"));
        assert_eq!((port.backing.as_deref(), port.rx_queues), (Some("0000:3b:00.1"), Some(2)));
        assert_eq!(port.rx_affinity, [(0, 2), (1, 3)]);
    }

    #[test]
    fn printed_values_may_hold_commas() {
        let column = printed(r#"{dpdk-init="true", dpdk-socket-mem="4096,4096", pmd-cpu-mask=c}"#);
        assert_eq!((column["dpdk-socket-mem"].as_str(), column["pmd-cpu-mask"].as_str()), ("4096,4096", "c"));
        assert_eq!(printed("[a, \"b\"]").into_keys().collect::<Vec<_>>(), ["a", "b"]);
        assert!(printed("[]").is_empty() && printed("{}").is_empty());
    }
}
