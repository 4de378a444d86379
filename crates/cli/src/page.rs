//! How wide is the page, and does it take colours?

use clap::{Args, ValueEnum};
use std::io::IsTerminal;

/// Options of the page.
#[derive(Args)]
#[command(next_help_heading = "The page")]
pub struct PageOptions {
    /// Columns of the text [default: the terminal's, else 100]
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(50..=1000))]
    width: Option<u16>,
    /// Terminal colours; `auto` obeys NO_COLOR and needs a terminal
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    color: Colour,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Colour {
    Auto,
    Always,
    Never,
}

impl PageOptions {
    /// The page that stdout is.
    pub fn page(&self) -> show::text::Page {
        let terminal = std::io::stdout().is_terminal();
        let of_terminal = || terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0);
        let width = self.width.or_else(|| if terminal { of_terminal() } else { None });
        let colour = match self.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => terminal && !no_color() && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
        };
        let default = show::text::Page::default();
        show::text::Page { width: width.map_or(default.width, usize::from), colour }
    }
}

/// <https://no-color.org>: set to anything but nothing.
fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
