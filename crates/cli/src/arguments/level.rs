//! The level of a machine, as a person types it: `L0`.

use base::Level;

/// The deepest level that the ledger distinguishes (docs/read/flow.md).
const DEEPEST: u8 = 3;

/// `L0` to `L3`.
pub(crate) fn machine_level(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(Level::At(level)) if level <= DEEPEST => Ok(level),
        Ok(Level::At(_)) => Err(format!("`{text}` is too deep: kvmscope distinguishes L0 to L{DEEPEST}")),
        _ => Err(format!(
            "`{text}` is not a level of a machine; write L0 for a host, L1 for its guest, up to L{DEEPEST}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::machine_level;

    #[test]
    fn a_machine_has_a_level_that_the_ledger_knows() {
        assert_eq!(["L0", "l1", "3"].map(machine_level), [Ok(0), Ok(1), Ok(3)]);
        assert!(["L4", "L9", "L255", "L256", "L?", "web", ""].iter().all(|text| machine_level(text).is_err()));
    }
}
