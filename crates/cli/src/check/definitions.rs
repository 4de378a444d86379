//! `check --xml`: a placement as elements of libvirt's definitions, and nothing else.

use anyhow::bail;
use base::{Cell, Section};
use std::io::Write;

/// Prints the elements of each domain under the placement of that rank.
///
/// # Errors
/// If there is no such placement, or the output is closed.
pub fn print(out: &mut dyn Write, sections: &[Section], rank: u64) -> anyhow::Result<()> {
    let table = sections.iter().find_map(|section| section.table("domain_xml"));
    let texts: Vec<&str> = table
        .and_then(|table| {
            let (of_rank, xml) = (table.column("rank")?, table.column("xml")?);
            let rows = table.rows.iter().filter(move |row| row[of_rank] == Cell::U64(rank));
            Some(rows.filter_map(move |row| if let Cell::Text(text) = &row[xml] { Some(text.as_str()) } else { None }))
        })
        .into_iter()
        .flatten()
        .collect();
    if texts.is_empty() {
        bail!(
            "no placement {rank} for a domain here; `kvmscope check` lists those that are better than the current \
            one"
        );
    }
    for text in texts {
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}
