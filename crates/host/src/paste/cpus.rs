//! `lscpu --parse=...` and `lscpu -e`: which CPU is of which core, socket and node.

use super::{Pasted, Text};
use crate::machine::Cpu;
use std::collections::BTreeMap;

/// `# Node,Core,CPU` and the lines after it; the header tells the order of the columns.
pub(super) fn parsable(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    // The comment above the header, as lscpu of util-linux 2.38 writes it.
    if text.at(at).starts_with("# The following is the parsable format") {
        let ends = |line: &str| line.ends_with("from zero.");
        return (at..at + 4).find(|line| ends(text.at(*line))).map_or(0, |end| end - at + 1);
    }
    let Some(header) = text.at(at).strip_prefix('#') else { return 0 };
    let names: Vec<String> = header.trim().split(',').map(|name| name.trim().to_lowercase()).collect();
    if names.len() < 2 || !names.iter().any(|name| name == "cpu") {
        return 0;
    }
    let mut end = at + 1;
    let mut rows = Vec::new();
    loop {
        let cells: Vec<&str> = text.at(end).split(',').collect();
        if cells.len() < 2 || !cells[0].bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        rows.push(cells);
        end += 1;
    }
    take(&names, &rows, &text.place(at), pasted);
    end - at
}

/// `CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE` and the lines after it.
pub(super) fn extended(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let names: Vec<String> = text.at(at).split_whitespace().map(str::to_lowercase).collect();
    if names.first().map(String::as_str) != Some("cpu") || !names.iter().any(|name| name == "core") {
        return 0;
    }
    let mut rows = Vec::new();
    let mut end = at + 1;
    while text.at(end).starts_with(|first: char| first.is_ascii_digit()) {
        rows.push(text.at(end).split_whitespace().collect());
        end += 1;
    }
    take(&names, &rows, &text.place(at), pasted);
    end - at
}

/// Cores by socket (else by node) and core id, numbered in the order in which they are met.
fn take(names: &[String], rows: &[Vec<&str>], place: &str, pasted: &mut Pasted) {
    let column = |name: &str| names.iter().position(|known| known == name);
    let [cpu, core, socket, node, caches, online] =
        ["cpu", "core", "socket", "node", "l1d:l1i:l2:l3", "online"].map(column);
    let number = |row: &[&str], column: Option<usize>| -> Option<u32> { row.get(column?)?.parse().ok() };
    let topology = &mut pasted.machine.topology;
    // Of CPUs whose cores nobody told until now, numbers were made up.
    if column("core").is_some() && std::mem::take(&mut topology.cores_unknown) {
        topology.cpus.clear();
    } else if column("core").is_none() && topology.cpus.is_empty() {
        topology.cores_unknown = true;
    }
    let (mut cores, mut last_caches): (BTreeMap<_, u32>, BTreeMap<u32, u32>) = (BTreeMap::new(), BTreeMap::new());
    for row in rows {
        let Some(number_of) = number(row, cpu) else { continue };
        if number_of >= base::cpus::MOST_CPUS {
            continue;
        }
        let (package, node) = (number(row, socket), number(row, node));
        let own = cores.len() as u32;
        // Without a core column each CPU counts as a core of its own: sharing is unknown, not none.
        let core = match number(row, core) {
            Some(id) => *cores.entry((package.or(node), id)).or_insert(own),
            None => number_of,
        };
        let cache = caches.and_then(|column| row.get(column)?.rsplit(':').next()?.parse().ok());
        let last_cache = cache.map(|cache| *last_caches.entry(cache).or_insert(number_of));
        let runs = online.and_then(|column| row.get(column)).is_none_or(|word| !matches!(*word, "no" | "N"));
        topology.cpus.insert(number_of, Cpu { core, package, node, last_cache });
        if runs {
            topology.online.insert(number_of);
        }
    }
    topology.place = place.to_owned();
}
