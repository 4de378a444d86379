//! A machine on the page: boxes in boxes (node, core, CPU) with chips, placements side by side where there is room.

use super::escape::Safe;
use super::look;
use base::figure::{CpuBox, Panel};
use std::fmt::{Result, Write};

/// Draws every placement.
pub fn render(panels: &[Panel], out: &mut String) -> Result {
    writeln!(out, "<div class=\"machines\">")?;
    for panel in panels {
        writeln!(out, "<div><h4>{}</h4>", Safe(&panel.title))?;
        for node in &panel.nodes {
            writeln!(out, "<div class=\"box\">{}<div class=\"cores\">", Safe(&node.title))?;
            for core in &node.cores {
                writeln!(out, "<div class=\"box\">")?;
                core.iter().try_for_each(|cpu| cpu_box(cpu, out))?;
                out.push_str("</div>\n");
            }
            out.push_str("</div></div>\n");
        }
        for link in &panel.links {
            writeln!(out, "<p class=\"away\">{}</p>", Safe(&link.text))?;
        }
        out.push_str("</div>\n");
    }
    out.write_str("</div>\n")
}

fn cpu_box(cpu: &CpuBox, out: &mut String) -> Result {
    let class = if cpu.contended { "box contended" } else { "box" };
    write!(out, "<div class=\"{class}\"><b>{}</b>", cpu.cpu)?;
    for (place, (chip, hue)) in cpu.chips.iter().zip(&cpu.hues).enumerate() {
        let before = if place == 0 { " " } else { ", " };
        let fill = look::fill(hue);
        write!(
            out,
            "{before}<svg class=\"chip\" aria-hidden=\"true\"><rect width=\"100%\" height=\"100%\" fill=\"{fill}\"/></svg>{}",
            Safe(chip)
        )?;
    }
    out.push_str("</div>\n");
    Ok(())
}
