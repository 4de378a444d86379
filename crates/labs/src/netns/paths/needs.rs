//! Is everything there that the paths need? Asked before anything is started.
//!
//! In: the paths, where programs are looked for, and the root of this host. Out: nothing, or a sentence with what is missing: a Debian
//! package, a module that is not loaded, an option of the kernel.

use super::Path;
use crate::machine::needs::{self, Need};
use crate::testpmd::PROGRAM;
use lab::Error;
use std::path::PathBuf;

const ALL: &[Need] = &[("ip", "iproute2"), ("tc", "iproute2"), ("ethtool", "ethtool")];
const TESTPMD: &[Need] = &[(PROGRAM, "dpdk-dev"), ("stdbuf", "coreutils")];

/// Looks for all that `paths` need: programs in the directories `programs`, files below `root`.
///
/// # Errors
/// If anything is missing.
pub(super) fn check(paths: &[Path], programs: &[PathBuf], root: &std::path::Path) -> Result<(), Error> {
    let mut needs = ALL.to_vec();
    if paths.contains(&Path::VhostNet) {
        vhost_net(root)?;
        needs.extend(TESTPMD);
    }
    needs::require(&needs, programs, root)
}

/// Modules are not loaded by us: nothing here could say whether somebody uses one by the time it would be unloaded.
fn vhost_net(root: &std::path::Path) -> Result<(), Error> {
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let release = read(root.join("proc/sys/kernel/osrelease"));
    let modules = root.join("lib/modules").join(release.trim());
    // Packed or not: `kernel/drivers/vhost/vhost_net.ko.xz: ...`
    let lists = |file: &str| read(modules.join(file)).contains("/vhost_net.ko");
    if root.join("dev/vhost-net").exists() || lists("modules.builtin") {
        return Ok(());
    }
    Err(Error::Absent(if lists("modules.dep") {
        "the kernel's module vhost_net is not loaded; load it (`modprobe vhost_net`) and try again".to_owned()
    } else {
        "this kernel has no vhost_net (CONFIG_VHOST_NET is off, or its module is not installed), so this path cannot be measured here; \
         `kvmscope plan chain --snapshot DIR` plans it for a host that has it, `kvmscope report FILE` reads what was printed there, and \
         --path macvtap measures what a VMM without it does"
            .to_owned()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_its_module_is_refused_with_what_to_do() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/osrelease", "6.1.0-1-amd64\n");
        let why = || check(&[Path::Veth, Path::VhostNet], &[], root.path()).unwrap_err().to_string();
        let lacks = why();
        assert!(lacks.contains("CONFIG_VHOST_NET") && lacks.contains("plan chain --snapshot"), "{lacks}");
        write("lib/modules/6.1.0-1-amd64/modules.dep", "kernel/drivers/vhost/vhost_net.ko: kernel/a.ko\n");
        assert!(why().contains("`modprobe vhost_net`"));
        // Programs are missing then, and nothing else.
        write("lib/modules/6.1.0-1-amd64/modules.builtin", "kernel/drivers/vhost/vhost_net.ko\n");
        assert!(why().contains("dpdk-dev"));
    }
}
