//! Which boot of the host is this? Process ids, start times and values of the kernel belong to one.

use std::path::Path;

/// Where the kernel gives each boot a random number (Documentation/admin-guide/sysctl/kernel.rst, `random`).
const FILE: &str = "sys/kernel/random/boot_id";

/// The boot of the host whose `/proc` is `proc`; `None` if that cannot be read.
pub(super) fn boot_id(proc: &Path) -> Option<String> {
    let text = std::fs::read_to_string(proc.join(FILE)).ok()?;
    let id = text.trim();
    (!id.is_empty()).then(|| id.to_owned())
}
