//! What does a nested lab need, by its settings?

use super::settings::{Arch, Guest, Settings};
use crate::machine::needs::{Need, require};
use crate::machine::qemu;
use lab::Error;
use std::path::{Path, PathBuf};

const QEMU: &[Need] = &[("qemu-system-x86_64", "qemu-system-x86")];
/// QEMU goes along into L0 and L1, from the place where Debian puts it.
const QEMU_INSIDE: &[Need] = &[
    (qemu::PROGRAM, "qemu-system-x86"),
    (qemu::BIOS, "seabios"),
    (qemu::BOOT_ROM, "qemu-system-data"),
    (qemu::APIC_ROM, "qemu-system-data"),
];
/// Debian packs its kernel with it.
const UNPACK: Need = ("xz", "xz-utils");
const BOCHS: &[Need] = &[
    ("bochs", "bochs"),
    ("/usr/share/bochs/BIOS-bochs-latest", "bochsbios"),
    ("/usr/share/bochs/VGABIOS-lgpl-latest", "vgabios"),
    ("grub-mkrescue", "grub-common"),
    ("/usr/lib/grub/i386-pc", "grub-pc-bin"),
    ("xorriso", "xorriso"),
    ("mformat", "mtools"),
];

/// Looks for all that `settings` need: programs in the directories `programs`, files below `root`.
///
/// # Errors
/// If anything is missing.
pub(super) fn check(settings: &Settings, programs: &[PathBuf], root: &Path) -> Result<(), Error> {
    let mut needs = match settings.arch {
        Arch::Svm => QEMU.to_vec(),
        Arch::Vmx => BOCHS.to_vec(),
    };
    match (settings.guest, settings.arch) {
        (Guest::Linux, Arch::Svm) => needs.extend(QEMU_INSIDE),
        (Guest::Linux, Arch::Vmx) => needs.push(UNPACK),
        (Guest::Toy | Guest::Bench, _) => {}
    }
    require(&needs, programs, root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_said_at_once_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let programs = [root.path().join("usr/bin")];
        let put = |path: &str| {
            let path = root.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"").unwrap();
        };
        let missing = |arch, guest| {
            let settings = Settings::new(arch, guest, &[]).unwrap();
            check(&settings, &programs, root.path()).map_err(|error| error.to_string())
        };
        let all = missing(Arch::Svm, Guest::Linux).unwrap_err();
        let packages = "apt-get install qemu-system-x86 seabios qemu-system-data";
        assert!(all.contains(qemu::BOOT_ROM) && all.ends_with(packages), "{all}");
        put(qemu::PROGRAM);
        assert_eq!(missing(Arch::Svm, Guest::Toy), Ok(()));
        [qemu::BIOS, qemu::BOOT_ROM, qemu::APIC_ROM].into_iter().for_each(put);
        assert_eq!(missing(Arch::Svm, Guest::Linux), Ok(()));
        BOCHS.iter().filter(|(name, _)| name.starts_with('/')).for_each(|(name, _)| put(name));
        ["bochs", "grub-mkrescue", "mformat"].into_iter().for_each(|name| put(&format!("usr/bin/{name}")));
        let one = missing(Arch::Vmx, Guest::Toy).unwrap_err();
        assert_eq!(one, "the lab needs xorriso; on Debian: apt-get install xorriso");
        let two = missing(Arch::Vmx, Guest::Linux).unwrap_err();
        assert!(two.ends_with("apt-get install xorriso xz-utils"), "no QEMU goes along: {two}");
    }
}
