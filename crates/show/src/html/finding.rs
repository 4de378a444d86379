//! A finding as a card: how bad, what, how we know, what it costs, what to run, how to undo it.

use super::escape::Safe;
use crate::text;
use base::Finding;
use std::collections::HashMap;
use std::fmt::Write;

/// The cards in the order of `findings`, what one explains below it.
pub(super) fn render(findings: &[&Finding], out: &mut String) -> std::fmt::Result {
    for shown in by_cause(findings) {
        if let [_, _, ..] = shown[..] {
            out.push_str("<div class=\"cause\">\n");
            shown.iter().try_for_each(|finding| card(finding, out))?;
            out.push_str("</div>\n");
        } else {
            shown.iter().try_for_each(|finding| card(finding, out))?;
        }
    }
    Ok(())
}

/// Each finding that no earlier one explains, with all that it explains, also by way of others, in their order.
fn by_cause<'a>(findings: &[&'a Finding]) -> Vec<Vec<&'a Finding>> {
    let mut causes: Vec<Vec<&Finding>> = Vec::new();
    let mut below: HashMap<&str, usize> = HashMap::new();
    for &finding in findings {
        let cause = below.get(finding.id().as_str()).copied().unwrap_or(causes.len());
        match causes.get_mut(cause) {
            Some(shown) => shown.push(finding),
            None => causes.push(vec![finding]),
        }
        for id in &finding.explains {
            below.entry(id).or_insert(cause);
        }
    }
    causes
}

fn card(finding: &Finding, out: &mut String) -> std::fmt::Result {
    let severity = finding.severity.name();
    write!(
        out,
        "<article class=\"card {severity}\" id=\"{}\">\n<header><span class=\"severity\">{severity}</span>\
         <code class=\"rule\">{}</code><span class=\"about\">{}</span></header>\n<h3>{}</h3>\n<dl>\n",
        Safe(finding.id()),
        Safe(finding.rule),
        Safe(&finding.subject),
        Safe(&finding.title)
    )?;
    write!(out, "<dt>seen</dt><dd><ul>")?;
    for seen in &finding.evidence {
        write!(out, "<li>{}", Safe(&seen.what))?;
        if !seen.place.is_empty() {
            write!(out, " <span class=\"place\">{}</span>", Safe(&seen.place))?;
        }
        out.push_str("</li>");
    }
    writeln!(out, "</ul></dd>")?;
    writeln!(
        out,
        "<dt>costs</dt><dd class=\"cost {}\">{}</dd>",
        finding.cost.kind.name(),
        Safe(text::cost(&finding.cost))
    )?;
    if let Some(words) = text::gives_back(finding) {
        writeln!(out, "<dt>gives back</dt><dd>{}</dd>", Safe(words))?;
    }
    if !finding.explains.is_empty() {
        writeln!(out, "<dt>explains</dt><dd>{}</dd>", Safe(text::explained(finding)))?;
    }
    if !finding.why.is_empty() {
        writeln!(out, "<dt>why</dt><dd>{}</dd>", Safe(&finding.why))?;
    }
    if !finding.fix.is_empty() {
        commands(&finding.level.run(), &finding.fix, out)?;
        writeln!(out, "<dt>needs</dt><dd>{}</dd>", Safe(finding.needs.words()))?;
    }
    if !finding.undo.is_empty() {
        commands("undo", &finding.undo, out)?;
    }
    if !finding.source.is_empty() {
        writeln!(out, "<dt>source</dt><dd class=\"quiet\">{}</dd>", Safe(finding.source))?;
    }
    out.push_str("</dl>\n</article>\n");
    Ok(())
}

/// A command per line, each selected whole by one click (`user-select: all`), so that it is copied without a script.
fn commands(label: &str, commands: &[String], out: &mut String) -> std::fmt::Result {
    write!(out, "<dt>{}</dt><dd>", Safe(label))?;
    for command in commands {
        write!(out, "<pre><code>{}</code></pre>", Safe(command))?;
    }
    writeln!(out, "</dd>")
}
