//! Which machine of a recording is meant: `L0`, `L1:web`.

use super::machine_level;
use base::recording::{Identity, Machine};

/// The machine of `text`, with the id that a manifest gives it: `L1`, or `L1-web`.
pub(crate) fn machine(text: &str) -> Result<Machine, String> {
    const HOW: &str = "write LEVEL or LEVEL:NAME, such as L0 or L1:web";
    let (level, name) = text.split_once(':').map_or((text, None), |(level, name)| (level, Some(name)));
    let level = machine_level(level)?;
    // The name becomes part of a directory's.
    let plain = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    if !name.is_none_or(plain) {
        return Err(format!("{HOW}; a name has letters, digits, `-`, `_` and `.`"));
    }
    let id = name.map_or_else(|| format!("L{level}"), |name| format!("L{level}-{name}"));
    Ok(Machine { id, level, parent: None, name: name.map(str::to_owned), identity: Identity::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_a_level_and_perhaps_a_name() {
        assert_eq!(machine("L0").unwrap().id, "L0");
        let web = Machine {
            id: "L1-web".into(),
            level: 1,
            parent: None,
            name: Some("web".into()),
            identity: Identity::default(),
        };
        assert_eq!(machine("L1:web"), Ok(web));
        for text in ["", "web", "L?", "L1:", "L1:a/b", "L1:web:x"] {
            assert!(machine(text).is_err(), "{text}");
        }
    }
}
