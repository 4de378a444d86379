//! Terminal colours: hue stands for the level, everywhere and only that; severities use the terminal's own colours.
//!
//! Hues are the nearest of xterm's 256 colours to the Okabe-Ito set, which colour-blind readers tell apart.

use base::Severity;
use base::plain::plain;

/// Puts colour on words, or leaves them as they are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    pub on: bool,
}

/// What a word is, apart from what it says.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role<'a> {
    Heading,
    Command,
    Quiet,
    Severity(Severity),
    /// A state or level by its name.
    Hue(&'a str),
}

impl Paint {
    /// `text` in the colour of its role.
    pub(super) fn on(self, text: &str, role: Role<'_>) -> String {
        let text = plain(text);
        let code = if self.on { code(role) } else { "" };
        if code.is_empty() || text.is_empty() { text.into_owned() } else { format!("\x1b[{code}m{text}\x1b[0m") }
    }
}

/// Parameters of the terminal's "select graphic rendition" sequence (ECMA-48, 8.3.117).
fn code(role: Role<'_>) -> &'static str {
    match role {
        Role::Heading => "1",
        Role::Command => "36",
        Role::Quiet => "2",
        Role::Severity(Severity::High) => "1;31",
        Role::Severity(Severity::Medium) => "33",
        Role::Severity(Severity::Low) => "36",
        Role::Severity(Severity::Info) => "",
        Role::Hue(name) => hue(name),
    }
}

/// States by their ledger names (`guest_l2_ns`, `L2 guest`) and levels; anything else stays plain.
fn hue(name: &str) -> &'static str {
    let name = name.to_ascii_lowercase();
    let has = |word: &str| name.contains(word);
    match () {
        () if has("preempt") => "38;5;131",
        () if has("halt") || has("blocked") || has("wake") => "38;5;245",
        () if has("user") || has("vmm") => "38;5;175",
        () if (has("handling") || has("working")) && has("l2") => "38;5;166",
        () if has("handling") || has("working") || name == "l0" => "38;5;178",
        () if has("unknown") => "2",
        () if has("l2") => "38;5;36",
        () if has("l1") => "38;5;25",
        () => "",
    }
}
