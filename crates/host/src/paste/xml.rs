//! Domain XML in a paste: from the line on which a known element begins to the line on which it ends.

use super::{Pasted, Text, pieces};
use crate::machine::domains_of;

/// Elements that people paste alone, or the whole domain.
const ELEMENTS: &str = "domain interface cputune vcpu cpu numatune memoryBacking devices disk emulatorpin vcpupin iothreads features hyperv clock";

pub(super) fn elements(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(line) = text.at(at).trim_start_matches('`').strip_prefix('<') else { return 0 };
    let name: String = line.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
    if !ELEMENTS.split(' ').any(|known| known == name) {
        return 0;
    }
    let closing = format!("</{name}>");
    let alone = text.at(at).ends_with("/>") && !text.at(at).contains(&closing);
    let Some(end) = text.find_end(at, &closing, |line| alone || line.contains(&closing)) else {
        return cut(text, at, &name, pasted);
    };
    let xml = text.lines[at..=end].join("\n");
    add(xml.trim().trim_matches('`'), text, at, pasted);
    end - at + 1
}

/// Adds what an element at a line tells.
fn add(xml: &str, text: &Text<'_>, at: usize, pasted: &mut Pasted) {
    match domains_of(xml, text.file, at + 1, &pasted.domain) {
        Ok(domains) => domains.into_iter().for_each(|told| {
            let is_named = told.whole.is_some() || !pasted.domain.is_empty() && !pasted.domain.starts_with("DOMAIN-");
            // What follows is of the same, or of what was kept apart.
            pasted.domain = pieces::add(told, is_named, &text.place(at), pasted);
        }),
        Err(error) => pasted.unread(error),
    }
}

/// Elements whose parts say nothing without them; those of others are read one by one.
const OF_PARTS: [&str; 4] = ["features", "hyperv", "clock", "cpu"];

/// Lines of one of these that are read without its end.
const MOST_OPEN: usize = 64;

/// The lines of an element without an end, as far as they are whole elements, with the ends that they lack; and how many lines.
fn closed(text: &Text<'_>, at: usize) -> (String, usize) {
    let (mut xml, mut open, mut end) = (String::new(), Vec::<&str>::new(), at);
    while end < text.lines.len().min(at + MOST_OPEN) && text.at(end).starts_with('<') && text.at(end).ends_with('>') {
        let line = text.at(end);
        let tags = line.split('<').skip(1).filter_map(|tag| Some(tag.split_once('>')?.0));
        for tag in tags.filter(|tag| !tag.ends_with('/') && !tag.starts_with('!')) {
            match tag.strip_prefix('/') {
                Some(name) if open.last() == Some(&name) => _ = open.pop(),
                // It is the end of what stands around it.
                Some(_) => return (with_ends(xml, &open), end - at),
                None => open.extend(tag.split_whitespace().next()),
            }
        }
        xml = xml + line + "\n";
        end += 1;
    }
    (with_ends(xml, &open), end - at)
}

fn with_ends(xml: String, open: &[&str]) -> String {
    open.iter().rev().fold(xml, |xml, name| format!("{xml}</{name}>"))
}

/// An element that was cut off: of a domain its name is known, and elements in it are read one by one.
fn cut(text: &Text<'_>, at: usize, name: &str, pasted: &mut Pasted) -> usize {
    const HEAD: usize = 4;
    let place = text.place(at);
    if OF_PARTS.contains(&name) {
        let (xml, lines) = closed(text, at);
        if lines > 1 {
            pasted.unread(format!("{place}: <{name}> is not closed: its contents were read, the rest is unknown"));
            add(&xml, text, at, pasted);
            return lines;
        }
    }
    if name != "domain" {
        pasted.unread(format!("{place}: <{name}> is not closed, so it was not read"));
        return 1;
    }
    pasted.unread(format!("{place}: <domain> is not closed: its contents were read, the rest is unknown"));
    let called = |line: usize| text.at(line).strip_prefix("<name>")?.strip_suffix("</name>");
    let Some(line) = (at + 1..at + HEAD).find(|line| called(*line).is_some()) else { return 1 };
    pasted.domain = called(line).unwrap_or_default().to_owned();
    pasted.named();
    if line == at + 1 { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn a_domain_that_was_cut_off_keeps_its_name_and_marks_of_code_are_none_of_it() {
        let text = "<domain type='kvm' id='1'>\n  <name>win-1</name>\n  <vcpu placement='static'>8</vcpu>\n  <sysinfo type='smbios'>\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!((machine.domains[0].name.as_str(), machine.domains[0].vcpus), ("win-1", Some(8)));
        assert!(machine.unread[0].contains("the rest is unknown"), "{:?}", machine.unread);
        let code = "`<interface type='bridge'>\n<source bridge='br0'/>\n<model type='virtio'/>\n</interface>`\n";
        let machine = read(&[("t".to_owned(), code.to_owned())]);
        assert_eq!(machine.domains[0].interfaces[0].source.as_deref(), Some("br0"), "{:?}", machine.strange);
    }
}
