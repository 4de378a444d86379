//! A machine in a terminal: a line for each core, CPUs beside each other, one placement below the other.
//!
//! ```text
//!    now
//!      node 0    CPU 0  vcpu 0!            CPU 8  vcpu 4
//! ```
//! `!` marks what shares a CPU with a vCPU.

use super::line::{Lines, elided, left, width};
use super::paint::Role;
use base::figure::{CpuBox, Panel};
use base::plain::plain;

/// Cores drawn of each placement; a machine of hundreds would fill pages.
const MOST_CORES: usize = 16;

pub(super) fn render(panels: &[Panel], out: &mut Lines) {
    for panel in panels {
        out.gap();
        out.line(&format!("   {}", panel.title));
        let room = panel.nodes.iter().map(|node| width(&node.title)).max().unwrap_or(0);
        let cores = || panel.nodes.iter().flat_map(|node| node.cores.iter().map(move |core| (node, core)));
        let threads = cores().map(|(_, core)| core.len()).max().unwrap_or(1).max(1);
        let cell = out.page.width.saturating_sub(5 + room + 2 * threads) / threads;
        let mut last = "";
        for (node, core) in cores().take(MOST_CORES) {
            let title = if node.title == last { "" } else { node.title.as_str() };
            last = &node.title;
            let mut line = format!("     {}", left(title, room));
            for cpu in core {
                let words = words(cpu);
                let drawn = left(&elided(&words, cell), cell);
                line.push_str("  ");
                let red = Role::Severity(base::Severity::High);
                line.push_str(&if cpu.contended { out.paint.on(&drawn, red) } else { plain(&drawn).into_owned() });
            }
            out.line(line.trim_end());
        }
        if let Some(more) = cores().count().checked_sub(MOST_CORES).filter(|more| *more > 0) {
            out.line(&format!("     + {}, see --json", base::number::many(more as u64, "more core")));
        }
        for link in &panel.links {
            out.wrapped("     ", "       ", &link.text, out.page.width);
        }
    }
}

fn words(cpu: &CpuBox) -> String {
    let mark = if cpu.contended { "!" } else { "" };
    let chips = if cpu.chips.is_empty() { "-".to_owned() } else { cpu.chips.join(", ") };
    format!("CPU {:<3} {chips}{mark}", cpu.cpu)
}
