//! `--html FILE`: the answer as one page, with the vCPUs drawn over time.

use crate::arguments::{FileOptions, is_dash};
use crate::exit::WrongUse;
use crate::interrupt::Interrupt;
use crate::staging::Staging;
use analysis::facts::ledger::build;
use analysis::facts::timeline::{inside, overview, whole_span};
use analysis::{Ask, Input, Options};
use clap::{Args, ValueHint};
use show::html::{Drafting, Drawing, MOST_BYTES, Page, Rendered};
use show::json::Answered;
use std::io::Write;
use std::path::PathBuf;

/// Options of the page.
#[derive(Args)]
pub struct HtmlOptions {
    /// Also write one self-contained page to FILE, to open offline or to send to a colleague; - prints only the page
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    html: Option<PathBuf>,
    /// Maximum size of the page, such as 2MB; data for zooming is dropped first [default: 8MB]
    #[arg(long, value_name = "SIZE", requires = "html", value_parser = size)]
    html_max: Option<u64>,
}

impl HtmlOptions {
    /// Whether a page is wanted.
    pub fn wanted(&self) -> bool {
        self.html.is_some()
    }

    /// Whether the page goes to stdout.
    pub fn is_stdout(&self) -> bool {
        self.html.as_deref().is_some_and(is_dash)
    }

    /// Refuses a page that cannot be, before the work for it is done.
    pub fn check(&self, files: &FileOptions) -> Result<(), WrongUse> {
        self.html.as_deref().filter(|path| !is_dash(path)).map_or(Ok(()), |path| files.check_file(path))
    }

    /// Writes the page, if it is wanted.
    pub fn write(&self, answered: Answered<'_>, drawn: Option<&Drawing>, interrupt: &Interrupt) -> anyhow::Result<()> {
        let Some(path) = &self.html else { return Ok(()) };
        let page = Page { answered, drawn, most_bytes: self.html_max.unwrap_or(MOST_BYTES) };
        let Rendered { text, bounds } = show::html::render(&page)?;
        bounds.iter().for_each(|bound| eprintln!("kvmscope: the page: {bound}"));
        if is_dash(path) {
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes())?;
            return Ok(out.flush()?);
        }
        Staging::new(interrupt).file(path, |out| out.write_all(text.as_bytes())).map(drop)
    }
}

/// The vCPUs over time, or nothing where the recording holds none: the page then has the answers alone.
pub fn draw(input: &Input, options: &Options, progress: &mut dyn FnMut(u64, u64)) -> Option<Drawing> {
    let flow = build::build(&mut Ask { input, options, progress }).ok()?;
    let mut drafting = Drafting::new(whole_span(&flow));
    let lanes = overview(input, options, &flow, &mut |chain| drafting.chain(chain), progress);
    Some(drafting.finish(lanes, |lanes, wanted, most| inside(input, options, &flow, (lanes, wanted, most), progress)))
}

/// `500kB`, `8MB`, `1GB`, or bytes.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || "write a number of bytes, such as 8MB or 500kB".to_owned();
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let times = match unit.trim_end_matches(['B', 'b']) {
        "" => 1,
        "k" | "K" => 1_000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(times)).filter(|size| *size > 0).ok_or_else(wrong)
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
