//! What does a thread do, by its name?
//!
//! Names are those of QEMU 7.2 (`accel/kvm/kvm-accel-ops.c`, `iothread.c`), of vhost (drivers/vhost/vhost.c, Linux 6.12: the
//! number is the thread that took the device, mostly QEMU's first) and of Open vSwitch 3.1 (`lib/dpif-netdev.c`). Firecracker 1.7
//! calls its vCPUs `fc_vcpu 0`, Cloud Hypervisor 40 `vcpu0`, crosvm `crosvm_vcpu0`. A name that is none of these is nobody's: listed,
//! not guessed.

use super::Role;

/// The thread that runs all vCPUs of a VM in turn, where QEMU translates without a thread for each.
pub(crate) const ALL_VCPUS: &str = "ALL CPUs/TCG";

/// The role, and the process that the name points to.
pub fn role_of(name: &str) -> Option<(Role, Option<i32>)> {
    let name = name.trim().trim_start_matches('[').trim_end_matches(']');
    if let Some(owner) = name.strip_prefix("vhost-") {
        let digits: String = owner.chars().take_while(char::is_ascii_digit).collect();
        return digits.parse().ok().map(|owner| (Role::Vhost, Some(owner)));
    }
    // One thread for all vCPUs (accel/tcg/tcg-accel-ops-rr.c): without it the VM has none, so it counts as the first.
    if name == ALL_VCPUS {
        return Some((Role::Vcpu(0), None));
    }
    if let Some(number) = ["fc_vcpu ", "crosvm_vcpu", "vcpu"].iter().find_map(|begin| name.strip_prefix(begin)) {
        return number.parse().ok().map(|number| (Role::Vcpu(number), None));
    }
    if let Some(rest) = name.strip_prefix("CPU ") {
        let (number, way) = rest.split_once('/')?;
        return matches!(way, "KVM" | "TCG" | "HVF")
            .then(|| number.parse().ok().map(|number| (Role::Vcpu(number), None)))?;
    }
    if let Some(id) = name.strip_prefix("IO ") {
        // The id is libvirt's `iothread1`, or anything; one without a number is QEMU's own (`mon_iothread`).
        let stem = id.trim_end_matches(|letter: char| letter.is_ascii_digit());
        // Proxmox's `iothread-virtioscsi0`, of which the kernel keeps `iothread-vir`.
        if stem == id && id.starts_with("iothread-") {
            return Some((Role::IoThread(0), None));
        }
        return id[stem.len()..].parse().ok().map(|number| (Role::IoThread(number), None));
    }
    if name.starts_with("pmd-c") || name.starts_with("pmd") && name[3..].starts_with(|c: char| c.is_ascii_digit()) {
        return Some((Role::Pmd, None));
    }
    let helper = name.starts_with("qemu-system-")
        || name.starts_with("qemu-kvm")
        // Proxmox calls the program so.
        || matches!(name, "kvm" | "vnc_worker" | "SPICE Worker");
    helper.then_some((Role::Emulator, None))
}

/// Monitors of VMs other than QEMU, by their programs.
const SMALL: [&str; 3] = ["firecracker", "cloud-hypervisor", "crosvm"];

/// The program of a command line, where it is such a monitor.
pub(crate) fn small_monitor(command: &str) -> Option<&'static str> {
    let program = command.split([' ', '\0']).next()?.rsplit('/').next()?;
    SMALL.into_iter().find(|known| program.starts_with(*known))
}

/// Folders in which anybody's sockets lie: none is called after a VM.
const SHARED_FOLDERS: [&str; 6] = ["run", "tmp", "var", "lib", "sockets", "root"];

/// Firecracker's `--id web`; else the socket, `--api-socket /run/web.sock`, or the folder of one that is called after its program alone.
fn small_vm_named_in(command: &str) -> Option<String> {
    let behind = |option: &str| {
        let (_, rest) = command.split_once(option)?;
        let rest = rest.strip_prefix([' ', '='])?;
        rest.split_whitespace().next().filter(|word| !word.starts_with('-'))
    };
    if let Some(id) = behind(" --id").or_else(|| behind(" --name")) {
        return Some(id.to_owned());
    }
    let sockets = [" --api-socket", " --api-sock", " --socket", " -s"];
    let socket = sockets.into_iter().find_map(behind)?.trim_start_matches("path=");
    let (folder, file) = socket.rsplit_once('/').unwrap_or(("", socket));
    let stem = file.split('.').next().unwrap_or_default();
    let is_anybodys = stem.ends_with("api") || SMALL.contains(&stem);
    let name = if is_anybodys { folder.rsplit('/').next().unwrap_or_default() } else { stem };
    let is_shared = SHARED_FOLDERS.contains(&name) || SMALL.contains(&name) || folder.starts_with("/run/user/");
    let is_none = name.is_empty() || is_anybodys && is_shared;
    (!is_none).then(|| name.to_owned())
}

/// The VM's name in the command line of its process: QEMU's `-name guest=web,debug-threads=on` or `-name web`, Firecracker's `--id web`, the socket
/// of Cloud Hypervisor.
pub fn vm_named_in(command: &str) -> Option<String> {
    if small_monitor(command).is_some() {
        return small_vm_named_in(command);
    }
    let rest = command.split_once("-name ")?.1;
    let word = rest.split_whitespace().next()?;
    let named = word.split(',').find_map(|option| option.strip_prefix("guest="));
    let name = named.or_else(|| word.split(',').next())?;
    // A command that a screen cut off ends with `+`: half a name is none.
    (!name.is_empty() && !name.ends_with('+')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_roles() {
        assert_eq!(role_of("[vhost-23329]"), Some((Role::Vhost, Some(23329))));
        assert_eq!(role_of("CPU 12/KVM"), Some((Role::Vcpu(12), None)));
        assert_eq!(role_of("CPU 0/TCG"), Some((Role::Vcpu(0), None)));
        assert_eq!(role_of("ALL CPUs/TCG"), Some((Role::Vcpu(0), None)));
        assert_eq!(role_of("IO iothread2"), Some((Role::IoThread(2), None)));
        assert_eq!(role_of("IO io0"), Some((Role::IoThread(0), None)));
        assert_eq!(role_of("IO iothread-vir"), Some((Role::IoThread(0), None)));
        for (name, number) in [("fc_vcpu 3", 3), ("vcpu12", 12), ("crosvm_vcpu0", 0)] {
            assert_eq!(role_of(name), Some((Role::Vcpu(number), None)));
        }
        assert_eq!(role_of("IO mon_iothread"), None);
        assert_eq!(role_of("pmd-c03/id:8"), Some((Role::Pmd, None)));
        for program in ["qemu-system-x86", "kvm"] {
            assert_eq!(role_of(program), Some((Role::Emulator, None)), "{program}");
        }
        for unknown in ["CPU", "CPU x/KVM", "vcpu", "vcpus", "fc_api", "vhost-", "worker", "ksoftirqd/0", "pmdk"] {
            assert_eq!(role_of(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn qemu_names_its_vm() {
        assert_eq!(
            vm_named_in("qemu-system-x86_64 -enable-kvm -name bigip-virtio -S").as_deref(),
            Some("bigip-virtio")
        );
        assert_eq!(vm_named_in("/usr/bin/qemu-kvm -name guest=web,debug-threads=on -S").as_deref(), Some("web"));
        assert_eq!(vm_named_in("qemu-kvm -name we+"), None);
        for command in [
            "/usr/bin/firecracker --id web --api-sock /run/firecracker.socket",
            "cloud-hypervisor --api-socket /run/chv/web.sock --cpus boot=4",
            "/opt/kata/bin/cloud-hypervisor --api-socket path=/run/vc/vm/web/clh-api.sock",
            "firecracker --api-sock /run/fc/web.socket --config-file web.json",
            "crosvm run --cpus 2 -s /run/vm/web/crosvm.sock vmlinux",
        ] {
            assert_eq!(vm_named_in(command).as_deref(), Some("web"), "{command}");
        }
        assert_eq!(vm_named_in("firecracker --no-api"), None);
        for socket in ["/run/firecracker.socket", "/run/user/1000/fc/api.sock", "/run/firecracker/firecracker.sock"] {
            assert_eq!(vm_named_in(&format!("firecracker --api-sock {socket}")), None, "a folder of all VMs: {socket}");
        }
    }
}
