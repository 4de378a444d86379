//! `lscpu --parse=...` and `lscpu -e`, also as JSON: which CPU is of which core, socket and node.

use super::{Pasted, Text, json, prompt};
use crate::machine::Cpu;
use base::CpuSet;
use serde_json::Value;
use std::collections::BTreeMap;

/// Columns that lscpu may print beside caches: util-linux 2.38, sys-utils/lscpu.c. Between nodes and caches it prints an empty
/// one.
const COLUMNS: &str = " address bogomips book cluster configured core cpu drawer maxmhz mhz minmhz modelname node online polarization \
    scalmhz% socket";

/// What `lscpu -p` prints without being told.
const OF_ITSELF: &str = "cpu,core,socket,node,,l1d,l1i,l2,l3";

/// `l2`, or all levels in one: `l1d:l1i:l2:l3`.
fn is_cache(name: &str) -> bool {
    name.strip_prefix('l').is_some_and(|level| level.starts_with(|first: char| first.is_ascii_digit()))
}

/// The columns that a line names, if it names nothing else and those that tell of CPUs.
fn columns<'a>(names: impl Iterator<Item = &'a str>) -> Option<Vec<String>> {
    let known = |name: &str| {
        let name = name.trim().to_lowercase();
        (COLUMNS.split(' ').any(|known| known == name) || is_cache(&name)).then_some(name)
    };
    let names = names.map(known).collect::<Option<Vec<String>>>()?;
    let tells = |wanted: &[&str]| names.iter().any(|name| wanted.contains(&name.as_str()));
    (tells(&["cpu"]) && tells(&["core", "socket", "node"])).then_some(names)
}

/// The columns that a command asks for: `lscpu -p`, `lscpu --parse=node,core,cpu`, `lscpu -ap=cpu,node`.
fn asked(line: &str) -> Option<Vec<String>> {
    let words = prompt::command(line).filter(|words| words[0].ends_with("lscpu"))?;
    let list = words.iter().find_map(|word| {
        let short = || word.strip_prefix('-').filter(|word| !word.starts_with('-'))?.split_once('p');
        word.strip_prefix("--parse").or_else(|| short().map(|(_, list)| list))
    })?;
    let list = list.trim_start_matches('=');
    columns(if list.is_empty() { OF_ITSELF } else { list }.split(','))
}

/// `# Node,Core,CPU` and the lines after it; the header tells the order of the columns, or where it was cut off, the command.
pub(super) fn parsable(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let line = text.at(at);
    // The comment above the header, as lscpu of util-linux 2.38 writes it.
    if line.starts_with("# The following is the parsable format") {
        let ends = |line: &str| line.ends_with("from zero.");
        return (at..at + 4).find(|line| ends(text.at(*line))).map_or(0, |end| end - at + 1);
    }
    let header = line.trim_start_matches('#');
    let header = Some(header).filter(|header| header.contains(',')).and_then(|header| columns(header.split(',')));
    let has_header = header.is_some();
    let Some(names) = header.or_else(|| asked(line)) else { return 0 };
    let cpu = names.iter().position(|name| name == "cpu").unwrap_or(0);
    let row = |line: usize| {
        let cells: Vec<&str> = text.at(line).split(',').map(str::trim).collect();
        let is_number = |cell: &&str| cell.bytes().all(|byte| byte.is_ascii_digit());
        (cells.len() > 1 && (is_number(&cells[0]) || cells.get(cpu).is_some_and(is_number))).then_some(cells)
    };
    let rows: Vec<Vec<&str>> = (at + 1..text.lines.len()).map_while(row).collect();
    // Where the header stands below the command, it tells.
    if !rows.is_empty() {
        take(&names, &rows, &text.place(at), pasted);
    }
    if rows.is_empty() && !has_header { 0 } else { 1 + rows.len() }
}

/// `CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE`, in any order, and the lines after it.
pub(super) fn extended(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(names) = columns(text.at(at).split_whitespace()).filter(|names| names.len() > 1) else { return 0 };
    let cpu = names.iter().position(|name| name == "cpu").unwrap_or(0);
    // The model's name has blanks, so that what stands behind it is counted from the end.
    let model = names.iter().position(|name| name == "modelname").unwrap_or(names.len());
    let row = |line: usize| {
        let mut cells: Vec<&str> = text.at(line).split_whitespace().collect();
        if let Some(more) = cells.len().checked_sub(names.len()).filter(|_| model < names.len()) {
            cells.drain(model..model + more);
        }
        (cells.len() > 1 && cells.get(cpu)?.parse::<u32>().is_ok()).then_some(cells)
    };
    let rows: Vec<Vec<&str>> = (at + 1..text.lines.len()).map_while(row).collect();
    take(&names, &rows, &text.place(at), pasted);
    1 + rows.len()
}

/// `lscpu -e -J`: an object for each CPU; numbers and truths are words in versions before util-linux 2.33.
pub(super) fn json(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some((value, lines)) = json::object(text, at, "cpus", pasted) else { return 0 };
    let cpus = || value["cpus"].as_array().into_iter().flatten().filter_map(Value::as_object);
    let Some(keys) = cpus().next().map(|cpu| cpu.keys().cloned().collect::<Vec<_>>()) else { return lines };
    let cell = |value: Option<&Value>| match value {
        Some(Value::String(word)) => word.clone(),
        Some(Value::Bool(runs)) => if *runs { "yes" } else { "no" }.to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => String::new(),
    };
    let rows: Vec<Vec<String>> = cpus().map(|cpu| keys.iter().map(|key| cell(cpu.get(key))).collect()).collect();
    let names: Vec<String> = keys.iter().map(|key| key.to_lowercase()).collect();
    take(&names, &rows, &text.place(at), pasted);
    lines
}

/// Cores by socket (else by node) and core id, numbered in the order in which they are met. A CPU without a core where others
/// have one is off.
fn take<Cell: AsRef<str>>(names: &[String], rows: &[Vec<Cell>], place: &str, pasted: &mut Pasted) {
    let column = |name: &str| names.iter().position(|known| known == name);
    let [cpu, core, socket, node, online] = ["cpu", "core", "socket", "node", "online"].map(column);
    let caches = names.iter().rposition(|name| is_cache(name));
    let word = |row: &[Cell], column: Option<usize>| row.get(column?).map(|cell| cell.as_ref().to_owned());
    let number = |row: &[Cell], column: Option<usize>| -> Option<u32> { word(row, column)?.parse().ok() };
    let topology = &mut pasted.machine.topology;
    // Of CPUs whose cores nobody told until now, numbers were made up.
    if core.is_some() && std::mem::take(&mut topology.cores_unknown) {
        topology.cpus.clear();
    } else if core.is_none() && topology.cpus.is_empty() {
        topology.cores_unknown = true;
    }
    let mut off = Vec::new();
    let (mut cores, mut last_caches): (BTreeMap<_, u32>, BTreeMap<u32, u32>) = (BTreeMap::new(), BTreeMap::new());
    for row in rows {
        let Some(number_of) = number(row, cpu).filter(|cpu| *cpu < base::cpus::MOST_CPUS) else { continue };
        // One that is off runs nobody, and shares its core and its node with nobody.
        if word(row, online).is_some_and(|word| matches!(word.as_str(), "no" | "N")) {
            off.push(number_of);
            continue;
        }
        let (package, node) = (number(row, socket), number(row, node));
        let own = cores.len() as u32;
        let core = match (core, number(row, core)) {
            (_, Some(id)) => *cores.entry((package.or(node), id)).or_insert(own),
            (Some(_), None) => continue,
            // Without a core column each CPU counts as a core of its own: sharing is unknown, not none.
            (None, None) => number_of,
        };
        let cache = word(row, caches).and_then(|caches| caches.rsplit(':').next()?.parse().ok());
        let last_cache = cache.map(|cache| *last_caches.entry(cache).or_insert(number_of));
        topology.cpus.insert(number_of, Cpu { core, package, node, last_cache });
        topology.online.insert(number_of);
    }
    topology.place = place.to_owned();
    for cpu in &off {
        topology.cpus.remove(cpu);
    }
    let off: CpuSet = off.into_iter().collect();
    if !off.is_empty() {
        pasted.quote("offline CPUs", "", &off.to_string(), place.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use crate::machine::{Cpu, Topology};
    use crate::paste::read;

    /// Two nodes, as lscpu's columns and rows tell them.
    const ROWS: &str = "0,0,0\n0,1,1\n1,2,2\n1,3,3\n0,0,4\n0,1,5\n1,2,6\n1,3,7\n";

    fn of(text: &str) -> Topology {
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        machine.topology
    }

    #[test]
    fn a_prompt_is_no_header_and_stands_for_one_that_was_cut_off() {
        let comment = "# The following is the parsable format, which can be fed to other\n# programs. Each different item in \
                       every column has an unique ID\n# starting usually from zero.\n";
        for head in [
            "# lscpu --parse=node,core,cpu\n# Node,Core,CPU\n".to_owned(),
            format!("[root@host ~]# lscpu --parse=node,core,cpu\n{comment}# Node,Core,CPU\n"),
            "$ sudo lscpu -p=node,core,cpu | grep -v '^#'\n".to_owned(),
            "# lscpu --parse=NODE,CORE,CPU\n".to_owned(),
            "Node,Core,CPU\n".to_owned(),
        ] {
            let topology = of(&(head.clone() + ROWS));
            assert_eq!((topology.cpus.len(), topology.nodes().len()), (8, 2), "{head}");
            assert_eq!(topology.of_core(topology.cpus[&5].core).to_string(), "1,5", "{head}");
        }
        let plain = of("$ lscpu -p\n0,0,0,0,,0,0,0,0\n1,1,0,0,,1,1,1,0\n2,2,0,0,,2,2,2,8\n");
        assert_eq!(plain.cpus[&1], Cpu { core: 1, package: Some(0), node: Some(0), last_cache: Some(0) });
        assert_eq!(plain.cpus[&2].last_cache, Some(2), "the lowest CPU of its cache");
    }

    #[test]
    fn columns_stand_in_any_order_and_a_cpu_that_is_off_is_none() {
        let topology = of("NODE ONLINE CORE CPU MODELNAME MAXMHZ\n0 yes 0 0 Intel(R) Xeon(R) 3200.0\n\
                           0 yes 0 1 Intel(R) Xeon(R) 3200.0\n- no - 2 - -\n1 yes 1 3 Intel(R) Xeon(R) 3200.0\n\
                           1 no 1 4 Intel(R) Xeon(R) 3200.0\n");
        assert_eq!((topology.online.to_string(), topology.cpus.len()), ("0-1,3".to_owned(), 3));
        assert_eq!((topology.of_core(0).to_string(), topology.nodes().len()), ("0-1".to_owned(), 2));
    }

    #[test]
    fn json_says_the_same_as_the_table() {
        let table = of("CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE\n0 0 0 0 0:0:0:0 yes\n8 1 1 1 1:1:1:1 yes\n");
        let json = "{\n   \"cpus\": [\n      {\n         \"cpu\": 0,\n         \"node\": 0,\n         \"socket\": 0,\n\
                    \"core\": 0,\n \"l1d:l1i:l2:l3\": \"0:0:0:0\",\n \"online\": true\n      },{\n \"cpu\": 8,\n \"node\": 1,\n\
                    \"socket\": 1,\n \"core\": 1,\n \"l1d:l1i:l2:l3\": \"1:1:1:1\",\n \"online\": true\n      }\n   ]\n}\n";
        assert_eq!(of(json), table);
        let words = json.replace(": true", ": \"yes\"").replace(": 0,", ": \"0\",").replace(": 8,", ": \"8\",");
        assert_eq!(of(&words), table, "as util-linux 2.32 writes it");
        let quoted: String = json.lines().map(|line| format!("> {line}\n")).collect();
        assert_eq!(of(&quoted), table);
        let cut = read(&[("t".to_owned(), json[..json.len() - 8].to_owned())]);
        assert!(cut.topology.cpus.is_empty() && cut.unread[0].contains("is not closed"), "{:?}", cut.unread);
    }
}
