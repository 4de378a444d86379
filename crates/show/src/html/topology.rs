//! A machine on the page: boxes in boxes (node, core, CPU) with chips, placements side by side where there is room.

use super::escape::Safe;
use super::look;
use base::figure::{CpuBox, Panel};
use std::fmt::{Result, Write};

/// Whose a chip is, by its hue.
const KINDS: [(&str, &str); 4] =
    [("guest_l1", "vCPU"), ("userspace", "threads of a VMM"), ("irq", "interrupt"), ("task", "others of the host")];

/// Draws every placement, and a legend for all.
pub(super) fn render(panels: &[Panel], out: &mut String) -> Result {
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
    out.push_str("</div>\n");
    legend(panels, out)
}

fn legend(panels: &[Panel], out: &mut String) -> Result {
    let cpus = || panels.iter().flat_map(|panel| &panel.nodes).flat_map(|node| node.cores.iter().flatten());
    out.push_str("<ul class=\"keys\">");
    for (hue, whose) in KINDS {
        if cpus().any(|cpu| cpu.hues.contains(&hue)) {
            let fill = look::fill(hue);
            write!(
                out,
                "<li><svg aria-hidden=\"true\"><rect width=\"100%\" height=\"100%\" fill=\"{fill}\"/></svg>{whose}</li>"
            )?;
        }
    }
    if cpus().any(|cpu| cpu.contended) {
        out.push_str(
            "<li><svg aria-hidden=\"true\"><rect class=\"shared\" width=\"100%\" height=\"100%\" rx=\"2\"/></svg>\
             shared with a vCPU or a thread that polls</li>",
        );
    }
    out.write_str("</ul>\n")
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
