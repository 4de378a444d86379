//! Domain XML in a paste: from the line on which a known element begins to the line on which it ends.

use super::{Pasted, Text};
use crate::machine::domains_of;

/// Elements that people paste alone, or the whole domain.
const ELEMENTS: &str =
    "domain interface cputune vcpu cpu numatune memoryBacking devices disk emulatorpin vcpupin iothreads";

pub(super) fn elements(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(line) = text.at(at).strip_prefix('<') else { return 0 };
    let name: String = line.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
    if !ELEMENTS.split(' ').any(|known| known == name) {
        return 0;
    }
    let closing = format!("</{name}>");
    let alone = text.at(at).ends_with("/>") && !text.at(at).contains(&closing);
    let Some(end) = text.find_end(at, &closing, |line| alone || line.contains(&closing)) else {
        pasted.unread(format!("{}: <{name}> has no end, so it was not read", text.place(at)));
        return 1;
    };
    let xml = text.lines[at..=end].join("\n");
    match domains_of(&xml, text.file, at + 1, &pasted.domain) {
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
