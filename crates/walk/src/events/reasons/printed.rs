//! A reason that no table knows, by the name under which a text prints it.

use std::fmt;

/// The name, kept with the reason itself: a text may print any word, and reasons of several texts are compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Printed {
    bytes: [u8; LONGEST],
}

/// Longer names are truncated. The longest that kernels print beside those of our tables has 16 characters.
const LONGEST: usize = 23;

impl Printed {
    /// The name in `text`; `UNKNOWN` where there is none.
    pub fn new(text: &str) -> Self {
        let text = if text.is_empty() { "UNKNOWN" } else { text };
        let mut bytes = [0; LONGEST];
        let text = base::plain::beginning(text, LONGEST);
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Self { bytes }
    }

    pub fn text(&self) -> &str {
        let end = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(LONGEST);
        std::str::from_utf8(&self.bytes[..end]).unwrap_or_default()
    }

    /// A number that tells most names apart (FNV-1a, 32 bits).
    pub fn number(&self) -> u32 {
        self.bytes.iter().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
    }
}

impl fmt::Debug for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_up_to_its_longest() {
        assert_eq!(Printed::new("FOO|BAR").text(), "FOO|BAR");
        assert_eq!(Printed::new("").text(), "UNKNOWN");
        let long = format!("{}\u{e9}\u{e9}", "A".repeat(LONGEST - 1));
        assert_eq!(Printed::new(&long).text(), "A".repeat(LONGEST - 1));
        assert_ne!(Printed::new("A").number(), Printed::new("B").number());
    }
}
