//! Names out of evidence as a shell and a terminal may see them.
//!
//! A VM may be called `a; rm -rf /` and a thread `\x1b[2J`: the first is data where we print a command to run, the second
//! where we print a line. [`quoted`] makes one word of POSIX `sh` of any text, [`printable`] a text without controls.

use std::borrow::Cow;
use std::fmt::Write;

/// `text` as one word of a POSIX shell: as it stands where every character is plain, else in single quotes. Control
/// characters stand as `"$(printf '\033')"`, so that a terminal shows them and does not obey them.
pub fn quoted(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut word = String::from("'");
    for character in text.chars() {
        match character {
            '\'' => word.push_str(r"'\''"),
            // Quotes hold a line's end, and `$(..)` would drop it.
            control if control.is_control() && control != '\n' => {
                word.push_str("'\"$(printf '");
                control.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| {
                    // Writing into a string cannot fail.
                    let _ = write!(word, "\\{byte:03o}");
                });
                word.push_str("')\"'");
            }
            other => word.push(other),
        }
    }
    word.push('\'');
    Cow::Owned(word)
}

/// `text` with control characters written as Rust writes them: `\u{1b}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let shown = |character: char| -> Cow<'static, str> {
        if character.is_control() {
            character.escape_default().collect::<String>().into()
        } else {
            character.to_string().into()
        }
    };
    Cow::Owned(text.chars().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    /// What a shell makes of the word.
    fn in_shell(word: &str) -> String {
        let output = Command::new("sh").args(["-c", &format!("printf %s {word}")]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn plain_names_stand_as_they_are_and_others_in_quotes() {
        for plain in ["web-1", "0-3,8", "/sys/devices/system/cpu", "instance-00000001"] {
            assert_eq!(quoted(plain), plain);
        }
        assert_eq!(quoted("CPU 0/KVM"), "'CPU 0/KVM'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("a\u{1b}[2J"), "'a'\"$(printf '\\033')\"'[2J'");
        for text in ["a; rm -rf /", "$(id)", "`id`", "~", "!!", "a\\", "\t\n", "\u{1b}\u{9b}", "ä b", "*"] {
            assert_eq!(in_shell(&quoted(text)), text);
            assert!(!quoted(text).contains(|character: char| character.is_control() && character != '\n'), "{text:?}");
        }
    }

    #[test]
    fn controls_are_shown_and_not_obeyed() {
        assert_eq!(printable("CPU 0/KVM"), "CPU 0/KVM");
        assert_eq!(printable("\u{1b}[31mx\u{7}\n"), "\\u{1b}[31mx\\u{7}\\n");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))] // each starts a shell

        #[test] // no argument of a program can hold a NUL
        fn any_text_is_one_word_and_comes_back(text in "[^\0]{0,40}") {
            prop_assert_eq!(in_shell(&quoted(&text)), text);
        }
    }
}
