//! What do the commands say whose output people paste into tickets?
//!
//! In: texts, each a mix of prose, prompts and outputs, in any order. Out: one [`Machine`] with what was told, and how many
//! lines of each text were understood. Recognized: `lscpu -p` and `-e`, `virsh vcpupin`, `emulatorpin`, `iothreadinfo`,
//! domain XML, `top`, `taskset -acp`, `/proc/interrupts` and `softirqs`, `mpstat -P ALL`, `numactl -H`, `lsvmbus -vv`.
//! ```text
//! line by line: which block begins here? --> it takes its lines --> Pasted --threads--> Machine
//! ```
//! A block is known by its header, never by the file's name, and a line that no block takes is counted, not guessed.

mod counters;
mod cpus;
mod nodes;
mod pins;
mod screen;
mod threads;
mod vmbus;
mod xml;

use crate::machine::{Fact, Machine};

/// What was gathered so far.
pub(crate) struct Pasted {
    machine: Machine,
    /// The domain that the last command named; empty before any did.
    domain: String,
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
    screen::top,
    counters::interrupts,
    counters::mpstat,
    nodes::numactl,
    vmbus::channels,
    pins::command,
];

/// Reads texts, each with the name that its facts are quoted by.
pub fn read(texts: &[(String, String)]) -> Machine {
    let mut pasted = Pasted { machine: Machine::default(), domain: String::new() };
    for (file, text) in texts {
        let plain = without_entities(text);
        let text = Text { file, lines: plain.lines().collect() };
        let (mut line, mut understood) = (0, 0);
        while line < text.lines.len() {
            let taken = BLOCKS.iter().map(|block| block(&text, line, &mut pasted)).find(|taken| *taken > 0);
            understood += taken.unwrap_or(0);
            line += taken.unwrap_or(1);
        }
        let told = text.lines.iter().filter(|line| !line.trim().is_empty()).count();
        let understood = understood.min(told) as u64;
        pasted.machine.sources.push((file.clone(), understood, told as u64 - understood));
    }
    threads::finish(pasted)
}

/// Text copied from a page's source has its angle brackets as entities; XML within is XML only without them.
fn without_entities(text: &str) -> String {
    if text.contains("&lt;domain") || text.contains("&lt;interface") || text.contains("&lt;cputune") {
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
    } else {
        text.to_owned()
    }
}
