//! Tables of OpenStack's client: `openstack flavor show`, `server show`.
//!
//! ```text
//! | Field      | Value                                                       |
//! | properties | hw:cpu_policy='dedicated', hw:mem_page_size='small'         |
//! ```
//! Source: python-openstackclient 6.2, formatter `table`.

use super::{Pasted, Text};

/// A row of two cells.
fn row(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix('|')?.strip_suffix('|')?.split_once('|')?;
    Some((name.trim(), value.trim()))
}

/// What stands between rows.
fn is_rule(line: &str) -> bool {
    line.starts_with("+-") && line.bytes().all(|byte| b"+-".contains(&byte))
}

/// A table of fields and values; empty values say nothing.
pub(super) fn fields(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let head = at + usize::from(is_rule(text.at(at)));
    if row(text.at(head)) != Some(("Field", "Value")) {
        return 0;
    }
    let (mut end, mut rows): (usize, Vec<(usize, String, String)>) = (head + 1, Vec::new());
    while end < text.lines.len() {
        match row(text.at(end)) {
            // A long value goes on below, without a name.
            Some(("", more)) => rows.iter_mut().last().into_iter().for_each(|row| row.2.push_str(more)),
            Some((name, value)) => rows.push((end, name.to_owned(), value.to_owned())),
            None if is_rule(text.at(end)) => {}
            None => break,
        }
        end += 1;
    }
    let name = rows.iter().find(|row| row.1 == "name").map_or(String::new(), |row| row.2.clone());
    for (line, field, value) in rows.iter().filter(|row| !row.2.is_empty()) {
        if field != "properties" {
            pasted.quote(field, &name, value, text.place(*line));
            continue;
        }
        for property in value.split(", ") {
            let (key, value) = property.split_once('=').unwrap_or((field, property));
            pasted.quote(key, &name, value.trim_matches('\''), text.place(*line));
        }
    }
    end - at
}
