//! How wide is the page, does it take colours, and which characters does it show?

use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::io::IsTerminal;

/// Options of the page.
#[derive(Args)]
#[command(next_help_heading = "Text output")]
pub struct PageOptions {
    /// Width of the text in columns [default: $COLUMNS, else that of the terminal, else 100]
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
        let variable = |name: &str| std::env::var_os(name);
        let width = self.width.or_else(|| columns(variable)).or_else(|| if terminal { of_terminal() } else { None });
        let colour = self.color.wanted(terminal, variable);
        let default = show::text::Page::default();
        show::text::Page { width: width.map_or(default.width, usize::from), colour, ascii: !shows_unicode(variable) }
    }
}

/// `COLUMNS`, where it is a number (POSIX, Environment Variables); a page narrower than the narrowest is left to the terminal.
fn columns(variable: impl Fn(&str) -> Option<OsString>) -> Option<u16> {
    variable("COLUMNS")?.to_str()?.trim().parse().ok().filter(|columns| *columns > 0)
}

/// Whether the locale's characters are UTF-8: the first of these variables that is set decides (POSIX, Internationalization
/// Variables). Where none is set nobody has said anything, and today's terminals show UTF-8.
fn shows_unicode(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let Some(locale) = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set) else { return true };
    let locale = locale.to_string_lossy().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
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
    fn the_locale_decides_which_characters_are_shown() {
        let shows = |set: &[(&str, &str)]| {
            shows_unicode(|asked| set.iter().find(|(name, _)| *name == asked).map(|(_, value)| value.into()))
        };
        assert!(shows(&[]) && shows(&[("LANG", "")]));
        assert!(shows(&[("LANG", "de_DE.UTF-8")]) && shows(&[("LANG", "C.utf8")]));
        assert!(!shows(&[("LANG", "C")]) && !shows(&[("LANG", "POSIX")]) && !shows(&[("LANG", "de_DE.ISO-8859-1")]));
        assert!(!shows(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "C")]));
        assert!(shows(&[("LANG", "C"), ("LC_CTYPE", "en_US.UTF-8")]));
    }

    #[test]
    fn columns_are_a_number_or_not_said() {
        let of = |value: &str| columns(|_| Some(value.into()));
        assert_eq!([of("72"), of("0"), of("wide"), of(""), columns(|_| None)], [Some(72), None, None, None, None]);
    }

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
