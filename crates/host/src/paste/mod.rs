//! What do the commands say whose output people paste into tickets?
//!
//! In: texts, each a mix of prose, prompts and outputs, in any order. Out: one [`Machine`] with what was told, and how many
//! lines of each text were understood. Recognized: `lscpu -p` and `-e`, `virsh vcpupin`, `emulatorpin`, `iothreadinfo`,
//! domain XML, `top`, `ps`, `pidstat -t`, `taskset -acp`, `/proc/interrupts` and `softirqs`, `mpstat -P ALL`, `numactl -H`,
//! `lsvmbus -vv`, `ovs-appctl dpif-netdev/pmd-rxq-show`, `ovs-vsctl show`, `list`, `get`, `ethtool -c`, `-k`, `-l`, `iperf3`.
//! ```text
//! line by line: which block begins here? --> it takes its lines --> Pasted --threads--> Machine
//! ```
//! A block is known by its header, never by the file's name, and a line that no block takes is counted, not guessed.

mod counters;
mod cpus;
mod ethtool;
mod iperf;
mod nodes;
mod pins;
mod processes;
mod screen;
mod switch;
mod threads;
mod vmbus;
mod xml;

use crate::machine::ovsdb::Tables;
use crate::machine::{Domain, Fact, Machine};

/// What was gathered so far.
pub(crate) struct Pasted {
    machine: Machine,
    /// The domain that the last command named; empty before any did.
    domain: String,
    /// Rows of Open vSwitch's tables.
    ovs: Tables,
}

/// The lines of one text.
pub(crate) struct Text<'a> {
    file: &'a str,
    lines: Vec<&'a str>,
}

impl<'a> Text<'a> {
    /// The line at a position, counted from 0, without blanks around it; empty beyond the end.
    fn at(&self, line: usize) -> &'a str {
        self.lines.get(line).map_or("", |line| line.trim())
    }

    /// Where a line stands, for people.
    fn place(&self, line: usize) -> String {
        format!("{}:{}", self.file, line + 1)
    }

    /// A fact of a line.
    fn fact<T>(&self, value: T, line: usize) -> Fact<T> {
        Fact::new(value, self.place(line))
    }
}

/// Takes the block that begins at a line, and returns how many lines that were; 0: none of its kind begins there.
type Block = fn(&Text<'_>, usize, &mut Pasted) -> usize;

/// All kinds of block. No two begin with the same line.
const BLOCKS: &[Block] = &[
    cpus::parsable,
    cpus::extended,
    pins::vcpus,
    pins::emulator,
    pins::iothreads,
    pins::taskset,
    xml::elements,
    processes::rows,
    screen::top,
    counters::interrupts,
    counters::mpstat,
    nodes::numactl,
    vmbus::channels,
    switch::pmd,
    switch::record,
    switch::other_config,
    switch::show,
    ethtool::coalescing,
    ethtool::offloads,
    ethtool::channels,
    iperf::text,
    iperf::json,
    pins::command,
];

/// Reads texts, each with the name that its facts are quoted by.
pub fn read(texts: &[(String, String)]) -> Machine {
    read_of(Vec::new(), texts)
}

/// Reads texts about a machine whose domains are known.
pub(crate) fn read_of(domains: Vec<Domain>, texts: &[(String, String)]) -> Machine {
    let machine = Machine { domains, ..Machine::default() };
    let mut pasted = Pasted { machine, domain: String::new(), ovs: Tables::default() };
    for (file, text) in texts {
        let plain = without_entities(text);
        let text = Text { file, lines: plain.lines().collect() };
        let (mut line, mut understood) = (0, 0);
        while line < text.lines.len() {
            let taken = BLOCKS.iter().map(|block| block(&text, line, &mut pasted)).find(|taken| *taken > 0);
            let end = text.lines.len().min(line + taken.unwrap_or(1));
            understood += if taken.is_some() { written(&text.lines[line..end]) } else { 0 };
            line = end;
        }
        let (told, understood) = (written(&text.lines), understood as u64);
        pasted.machine.sources.push((file.clone(), understood, told as u64 - understood));
    }
    threads::finish(pasted)
}

/// How many lines are not blank.
fn written(lines: &[&str]) -> usize {
    lines.iter().filter(|line| !line.trim().is_empty()).count()
}

/// Text copied from a page's source has its angle brackets as entities; XML within is XML only without them.
fn without_entities(text: &str) -> String {
    if text.contains("&lt;domain") || text.contains("&lt;interface") || text.contains("&lt;cputune") {
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
    } else {
        text.to_owned()
    }
}
