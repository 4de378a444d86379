//! Tables of OpenStack's client: `openstack flavor show`, `server show`.
//!
//! ```text
//! | Field      | Value                                                       |
//! | properties | hw:cpu_policy='dedicated', hw:mem_page_size='small'         |
//! ```
//! Source: python-openstackclient 6.2, formatter `table`.

use super::{Pasted, Text};
use crate::machine::{Fact, Nova};
use std::collections::BTreeMap;

/// A row of two cells.
fn row(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix('|')?.strip_suffix('|')?.split_once('|')?;
    Some((name.trim(), value.trim()))
}

/// What stands between rows.
fn is_rule(line: &str) -> bool {
    line.starts_with("+-") && line.bytes().all(|byte| b"+-".contains(&byte))
}

/// A table of fields and values; empty values say nothing.
pub(super) fn fields(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let head = at + usize::from(is_rule(text.at(at)));
    if row(text.at(head)) != Some(("Field", "Value")) {
        return 0;
    }
    let (mut end, mut rows): (usize, Vec<(usize, String, String)>) = (head + 1, Vec::new());
    while end < text.lines.len() {
        match row(text.at(end)) {
            // A long value goes on below, without a name.
            Some(("", more)) => rows.iter_mut().last().into_iter().for_each(|(.., value)| {
                // A list was broken at its blank.
                let blank = if value.ends_with(',') { " " } else { "" };
                *value = format!("{value}{blank}{more}");
            }),
            Some((name, value)) => rows.push((end, name.to_owned(), value.to_owned())),
            None if is_rule(text.at(end)) => {}
            None => break,
        }
        end += 1;
    }
    let name = rows.iter().find(|row| row.1 == "name").map_or(String::new(), |row| row.2.clone());
    let mut properties = BTreeMap::new();
    for (line, field, value) in rows.iter().filter(|row| !row.2.is_empty()) {
        // The flavour of a server is a list where a microversion has it so, else a name.
        if field != "properties" && !(field == "flavor" && value.contains('=')) {
            pasted.quote(field, &name, value, text.place(*line));
            continue;
        }
        for property in value.split(", ") {
            let (key, value) = property.split_once('=').unwrap_or((field, property));
            let (key, value) = (key.strip_prefix("extra_specs.").unwrap_or(key), value.trim_matches('\''));
            pasted.quote(key, &name, value, text.place(*line));
            properties.insert(key.to_owned(), (value.to_owned(), text.place(*line)));
        }
    }
    let instance = rows.iter().find(|row| row.1 == "OS-EXT-SRV-ATTR:instance_name").map(|row| row.2.clone());
    if let Some(instance) = instance
        && let Some(domain) = pasted.domain(&instance)
    {
        let of = |key: &str| properties.get(key).map(|(value, place)| (value.as_str(), place));
        domain.vcpus = of("vcpus").and_then(|(count, _)| count.parse().ok()).or(domain.vcpus);
        let mebibytes = of("ram").and_then(|(ram, _)| ram.parse::<u64>().ok());
        domain.memory_bytes = mebibytes.and_then(|ram| ram.checked_mul(1 << 20)).or(domain.memory_bytes);
        let flavor = of("original_name").map(|(name, _)| name.to_owned());
        domain.nova = Some(Nova { server: name, flavor });
        let small = of("hw:mem_page_size").filter(|(size, _)| matches!(*size, "small" | "4KB" | "4"));
        domain.small_pages = small.map(|(size, place)| Fact::new(format!("hw:mem_page_size is {size}"), place));
    }
    end - at
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn a_server_is_a_vm_of_its_flavour() {
        let text = "+---+---+\n| Field | Value |\n+---+---+\n| OS-EXT-SRV-ATTR:instance_name | instance-07 |\n| flavor | description=, disk='40', extra_specs.hw:cpu_policy='dedicated', |\n\
            |  | extra_specs.hw:mem_page_size='small', original_name='nfv.c8', ram='16384', |\n|  | vcpus='8' |\n| name | fw-b |\n+---+---+\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        let [domain] = &machine.domains[..] else { panic!("{:?}", machine.domains) };
        assert_eq!((domain.name.as_str(), domain.vcpus, domain.memory_bytes), ("instance-07", Some(8), Some(16 << 30)));
        let nova = domain.nova.as_ref().unwrap();
        assert_eq!((nova.server.as_str(), nova.flavor.as_deref()), ("fw-b", Some("nfv.c8")));
        assert!(domain.small_pages.is_some());
        let told = |what: &str| machine.quoted.iter().find(|told| told.what == what).map(|told| told.value.as_str());
        assert_eq!((told("hw:cpu_policy"), told("disk")), (Some("dedicated"), Some("40")));
    }

    #[test]
    fn properties_of_a_flavour_are_shown_one_by_one() {
        let text = "| Field | Value |\n| name | m1 |\n| properties | hw:cpu_policy='dedicated', hw:numa_nodes='2' |\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        let told: Vec<_> = machine.quoted.iter().map(|told| (told.what.as_str(), told.value.as_str())).collect();
        assert_eq!(told, [("name", "m1"), ("hw:cpu_policy", "dedicated"), ("hw:numa_nodes", "2")]);
        assert!(machine.domains.is_empty());
    }
}
