//! Domain XML in a paste: from the line on which a known element begins to the line on which it ends.

use super::{Pasted, Text};
use crate::machine::domains_of;

/// Elements that people paste alone, or the whole domain.
const ELEMENTS: &str = "domain interface cputune vcpu cpu numatune memoryBacking devices disk emulatorpin vcpupin iothreads features clock";

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
    let xml = xml.trim().trim_matches('`');
    match domains_of(xml, text.file, at + 1, &pasted.domain) {
        Ok(domains) => domains.into_iter().for_each(|told| {
            if told.whole.is_some() {
                pasted.domain.clone_from(&told.name);
            }
            if let Some(domain) = pasted.domain(&told.name.clone()) {
                domain.add(told);
            }
        }),
        Err(error) => pasted.unread(error),
    }
    end - at + 1
}

/// An element that was cut off: of a domain its name is known, and elements in it are read one by one.
fn cut(text: &Text<'_>, at: usize, name: &str, pasted: &mut Pasted) -> usize {
    const HEAD: usize = 4;
    let place = text.place(at);
    if name != "domain" {
        pasted.unread(format!("{place}: <{name}> has no end, so it was not read"));
        return 1;
    }
    pasted.unread(format!("{place}: <domain> has no end: what stands in it was read, and what was cut off is unknown"));
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
        assert!(machine.unread[0].contains("what was cut off is unknown"), "{:?}", machine.unread);
        let code = "`<interface type='bridge'>\n<source bridge='br0'/>\n<model type='virtio'/>\n</interface>`\n";
        let machine = read(&[("t".to_owned(), code.to_owned())]);
        assert_eq!(machine.domains[0].interfaces[0].source.as_deref(), Some("br0"), "{:?}", machine.strange);
    }
}
