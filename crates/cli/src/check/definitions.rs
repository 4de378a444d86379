//! `check --xml`: a placement as elements of libvirt's definitions, and nothing else.

use analysis::{Case, placement};
use anyhow::bail;
use std::io::Write;

/// Prints the elements of each domain under the placement of that rank.
///
/// # Errors
/// If there is no such placement, or the output is closed.
pub(super) fn print(out: &mut dyn Write, case: &Case, rank: u64) -> anyhow::Result<()> {
    let texts = placement::definitions(case, rank);
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
