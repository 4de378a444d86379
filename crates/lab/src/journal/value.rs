//! Values of the kernel's files: does what is read mean what was written?
//!
//! ```text
//! always [madvise] never    a choice: the word in brackets holds, and that word alone can be written back
//! Y                         a flag, whatever word set it: 1, y, on (kstrtobool in lib/kstrtox.c, Linux 6.12)
//! Y                         kvm's nx_huge_pages after `force`, and after `auto` where the processor needs it
//! ```
//! Source of the last: `set_nx_huge_pages` and `get_nx_huge_pages`, arch/x86/kvm/mmu/mmu.c, Linux 6.12.

use std::path::Path;

/// What holds by the text of a file.
pub fn holding(text: &str) -> &str {
    let text = text.trim_end();
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(chosen, _)| chosen)
}

/// True if a file of the kernel in which `written` was put may read `now`.
pub fn is_taken(path: &Path, written: &str, now: &str) -> bool {
    let is_nx = path.ends_with("nx_huge_pages");
    written == now
        || match now {
            "Y" => matches!(written, "1" | "y" | "Y" | "on") || is_nx && matches!(written, "force" | "auto"),
            "N" => matches!(written, "0" | "n" | "N" | "off") || is_nx && written == "auto",
            _ => false,
        }
}

/// True if `wanted` holds already, and nothing has to be written: `auto` says of no value whether it came by itself.
pub fn holds_already(path: &Path, wanted: &str, now: &str) -> bool {
    wanted == now || wanted != "auto" && is_taken(path, wanted, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_again_in_the_kernels_own_words() {
        assert_eq!(holding("always [madvise] never\n"), "madvise");
        assert_eq!((holding("200000\n"), holding("\n")), ("200000", ""));
        let nx = Path::new("/sys/module/kvm/parameters/nx_huge_pages");
        let flag = Path::new("/sys/module/kvm/parameters/tdp_mmu");
        assert!(is_taken(nx, "auto", "N") && is_taken(nx, "auto", "Y") && is_taken(nx, "force", "Y"));
        assert!(!is_taken(nx, "force", "N") && !is_taken(flag, "auto", "N"));
        assert!(is_taken(flag, "1", "Y") && is_taken(flag, "off", "N") && !is_taken(flag, "1", "N"));
        assert!(holds_already(flag, "1", "Y") && !holds_already(nx, "auto", "Y"));
    }
}
