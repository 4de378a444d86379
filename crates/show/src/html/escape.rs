//! Text of others on a page of ours: nothing in it can be markup.
//!
//! Names of threads, VMs, files and symbols come from the traced machines. On the page they are text: what HTML and SVG
//! read as markup becomes character references, and what would change how its surroundings read becomes U+FFFD
//! ([`base::plain`]).

use base::plain::{REPLACEMENT, misleads};
use std::fmt::{self, Display, Write};

/// Something shown as text, between tags or inside a quoted attribute.
pub(crate) struct Safe<T>(pub T);

impl<T: Display> Display for Safe<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(out), "{}", self.0)
    }
}

/// Escapes what is written through it.
struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '&' => self.0.write_str("&amp;")?,
                '<' => self.0.write_str("&lt;")?,
                '>' => self.0.write_str("&gt;")?,
                '"' => self.0.write_str("&quot;")?,
                '\'' => self.0.write_str("&#39;")?,
                '\n' => self.0.write_char('\n')?,
                // No characters of XML 1.0, which SVG is.
                '\u{fffe}' | '\u{ffff}' => self.0.write_char(REPLACEMENT)?,
                misleading if misleads(misleading) => self.0.write_char(REPLACEMENT)?,
                plain => self.0.write_char(plain)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_markup() {
        let name = "</td><script>alert('x')</script>\" onload=\"&\x1b[2J\u{202e}\u{200b}";
        let safe = Safe(name).to_string();
        assert_eq!(
            safe,
            "&lt;/td&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot; onload=&quot;&amp;\u{fffd}[2J\u{fffd}\u{fffd}"
        );
    }
}
