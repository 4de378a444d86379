//! Is everything there that the paths need? Asked before anything is started.
//!
//! In: the paths, where programs are looked for, and the root of this host. Out: nothing, or a sentence with what is missing: a Debian
//! package, a module that is not loaded, an option of the kernel.

use super::{Path, vswitch};
use crate::machine::needs::{self, Need};
use crate::ovs::switch::SCHEMA;
use crate::testpmd::PROGRAM;
use lab::Error;
use std::path::PathBuf;

const ALL: &[Need] = &[("ip", "iproute2"), ("tc", "iproute2"), ("ethtool", "ethtool")];
const TESTPMD: &[Need] = &[(PROGRAM, "dpdk-dev"), ("stdbuf", "coreutils")];
const SWITCH: &[Need] = &[
    ("ovsdb-tool", "openvswitch-common"),
    ("ovs-ofctl", "openvswitch-common"),
    (SCHEMA, "openvswitch-common"),
    ("ovsdb-server", "openvswitch-switch"),
    ("ovs-vsctl", "openvswitch-switch"),
    (vswitch::DAEMON, "openvswitch-switch"),
    ("ss", "iproute2"),
];

/// What a path needs of the kernel that few kernels lack.
struct Module {
    /// Its name.
    name: &'static str,
    /// The option that builds it.
    option: &'static str,
    /// There while the kernel has it, below the root.
    sign: &'static str,
    /// What else can be measured here.
    instead: &'static str,
}

const OPENVSWITCH: Module = Module {
    name: "openvswitch",
    option: "CONFIG_OPENVSWITCH",
    sign: "sys/module/openvswitch",
    instead: "--path ovs-netdev measures Open vSwitch in user space here",
};
const VHOST_NET: Module = Module {
    name: "vhost_net",
    option: "CONFIG_VHOST_NET",
    sign: "dev/vhost-net",
    instead: "--path macvtap measures what a VMM without it does",
};

/// Looks for all that `paths` need: programs in the directories `programs`, files below `root`.
///
/// # Errors
/// If anything is missing.
pub(super) fn check(paths: &[Path], programs: &[PathBuf], root: &std::path::Path) -> Result<(), Error> {
    let mut needs = ALL.to_vec();
    for path in paths {
        match path {
            Path::Veth | Path::Bridge | Path::AfPacket | Path::Macvtap => {}
            Path::AfXdp => needs.extend(TESTPMD),
            Path::OvsNetdev => needs.extend(SWITCH),
            Path::OvsKernel => {
                OPENVSWITCH.check(root)?;
                needs.extend(SWITCH);
            }
            Path::VhostNet => {
                VHOST_NET.check(root)?;
                needs.extend(TESTPMD);
            }
        }
    }
    needs.sort_unstable();
    needs.dedup();
    needs::require(&needs, programs, root)
}

impl Module {
    /// Modules are not loaded by us: nothing here could say whether somebody uses one by the time it would be unloaded.
    fn check(&self, root: &std::path::Path) -> Result<(), Error> {
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        let release = read(root.join("proc/sys/kernel/osrelease"));
        let modules = root.join("lib/modules").join(release.trim());
        // Written with `-` or `_`, packed or not: `kernel/net/openvswitch/openvswitch.ko.xz: ...`
        let lists = |file: &str| read(modules.join(file)).contains(&format!("/{}.ko", self.name));
        let Self { name, option, instead, .. } = self;
        if root.join(self.sign).exists() || lists("modules.builtin") {
            return Ok(());
        }
        Err(Error::Absent(if lists("modules.dep") {
            format!("the kernel's module {name} is not loaded; load it (`modprobe {name}`) and try again")
        } else {
            format!(
                "this kernel has no {name} ({option} is off, or its module is not installed), so this path cannot be measured \
                 here; `kvmscope plan chain --snapshot DIR` plans it for a host that has it, `kvmscope report FILE` reads what was \
                 printed there, and {instead}"
            )
        }))
    }
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
        let why = |path| check(&[path], &[], root.path()).unwrap_err().to_string();
        write("proc/sys/kernel/osrelease", "6.1.0-1-amd64\n");
        let lacks = why(Path::OvsKernel);
        assert!(lacks.contains("CONFIG_OPENVSWITCH") && lacks.contains("plan chain --snapshot"), "{lacks}");
        assert!(why(Path::VhostNet).contains("CONFIG_VHOST_NET"));
        write("lib/modules/6.1.0-1-amd64/modules.dep", "kernel/net/openvswitch/openvswitch.ko: kernel/a.ko\n");
        assert!(why(Path::OvsKernel).contains("`modprobe openvswitch`"));
        // Programs are missing then, and nothing else.
        write("sys/module/openvswitch/refcnt", "1\n");
        assert!(why(Path::OvsKernel).contains("openvswitch-switch"));
        write("lib/modules/6.1.0-1-amd64/modules.builtin", "kernel/drivers/vhost/vhost_net.ko\n");
        assert!(why(Path::VhostNet).contains("dpdk-dev"));
    }
}
