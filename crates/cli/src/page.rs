//! How wide is the page, and does it take colours?

use clap::{Args, ValueEnum};
use std::ffi::OsString;
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
        let colour = self.color.wanted(terminal, |name| std::env::var_os(name));
        let default = show::text::Page::default();
        show::text::Page { width: width.map_or(default.width, usize::from), colour }
    }
}

impl Colour {
    /// Whether colours are used on a page that is a terminal or not.
    fn wanted(self, terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
        match self {
            Colour::Always => true,
            Colour::Never => false,
            // https://no-color.org: NO_COLOR counts when it is set to anything but nothing.
            Colour::Auto => {
                terminal
                    && variable("NO_COLOR").is_none_or(|value| value.is_empty())
                    && variable("TERM").is_none_or(|terminal| terminal != "dumb")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_needs_a_terminal_and_nobody_who_minds() {
        let auto = |terminal, name: &str, value: &str| {
            Colour::Auto.wanted(terminal, |asked| (asked == name).then(|| OsString::from(value)))
        };
        assert!(auto(true, "", ""));
        assert!(!auto(false, "", ""));
        assert!(!auto(true, "NO_COLOR", "1"));
        assert!(auto(true, "NO_COLOR", ""));
        assert!(!auto(true, "TERM", "dumb"));
        assert!(Colour::Always.wanted(false, |_| Some("1".into())));
        assert!(!Colour::Never.wanted(true, |_| None));
    }
}
