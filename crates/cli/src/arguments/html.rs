//! `--html FILE`: the answer as one page.

use super::is_dash;
use base::quantity::whole;
use clap::{Args, ValueHint};
use process::Staging;
use process::interrupt::Interrupt;
use show::html::{Drawing, MOST_BYTES, Page, Rendered};
use show::json::Answered;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Options of the page.
#[derive(Args)]
pub(super) struct HtmlOptions {
    /// Also write one self-contained page to FILE, to open offline or to send to a colleague; - prints only the page
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    html: Option<PathBuf>,
    /// Maximum size of the page, such as 2MB; data for zooming is dropped first [default: 8MB]
    #[arg(long, value_name = "SIZE", requires = "html", value_parser = size)]
    html_max: Option<u64>,
}

impl HtmlOptions {
    /// Where the page goes, if it is wanted.
    pub(super) fn path(&self) -> Option<&Path> {
        self.html.as_deref()
    }

    /// Writes the page, if it is wanted.
    pub(super) fn write(
        &self,
        answered: Answered<'_>,
        drawn: Option<&Drawing>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let Some(path) = &self.html else { return Ok(()) };
        let page = Page { answered, drawn, most_bytes: self.html_max.unwrap_or(MOST_BYTES) };
        let Rendered { text, bounds } = show::html::render(&page)?;
        bounds.iter().for_each(|bound| process::exit::note(&format!("kvmscope: the page: {bound}")));
        if is_dash(path) {
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes())?;
            return Ok(out.flush()?);
        }
        Staging::new(interrupt).file(path, |out| out.write_all(text.as_bytes())).map(drop)
    }
}

/// `500kB`, `8MB`, `1GB`, or bytes.
fn size(text: &str) -> Result<u64, String> {
    let units = [("", 1), ("k K", 1_000), ("m M", 1_000_000), ("g G", 1_000_000_000)];
    let bytes = whole(text.trim_end_matches(['B', 'b']), &units).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| "write a number of bytes, such as 8MB or 500kB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_with_a_unit_or_without() {
        assert_eq!(["8MB", "500kB", "1G", "4096"].map(size), [Ok(8_000_000), Ok(500_000), Ok(1_000_000_000), Ok(4096)]);
        assert!(
            ["", "MB", "8 apples", "0", "-1", "99999999999999999999", "9999999999999GB"]
                .iter()
                .all(|text| size(text).is_err())
        );
    }
}
