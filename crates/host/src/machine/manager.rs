//! Who manages a VM: whoever starts it anew undoes what others changed, so commands are those of its manager.

use super::{Domain, Machine, Thread};

/// Who starts a VM and keeps its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manager {
    Libvirt,
    /// Proxmox VE, with its number of the VM; 0: not told.
    Proxmox(u32),
    /// KubeVirt, whose libvirt runs within the VM's pod.
    KubeVirt {
        namespace: String,
        name: String,
    },
    /// Nova, which writes the definition of its libvirt anew at each hard reboot.
    OpenStack {
        server: String,
        flavor: Option<String>,
    },
    /// Incus, or LXD, whose program is `lxc`.
    Incus {
        program: &'static str,
    },
    /// A monitor of VMs other than QEMU, by itself: its program.
    Monitor {
        program: &'static str,
    },
    /// QEMU by itself, or something that is not known.
    Qemu,
}

impl Machine {
    /// By the groups of its threads, which each manager makes in its own way: `/qemu.slice/101.scope` of Proxmox,
    /// `/kubepods.slice/..` of Kubernetes, in which KubeVirt calls a domain `NAMESPACE_NAME`; by what nova writes into a definition (else by its
    /// name, nova's `instance_name_template`), by the file from which Incus has QEMU read, by the program; else by a definition of libvirt.
    pub fn manager_of<'a>(&'a self, domain: &'a Domain) -> Manager {
        let groups = || {
            let of = |thread: &'a Thread| [thread.cgroup.as_deref(), thread.time_group.as_deref()];
            self.threads_of(&domain.name).flat_map(of).flatten()
        };
        let of_proxmox = |group: &str| {
            let inside = group.split_once("/qemu.slice/")?.1;
            inside.split_once(".scope")?.0.parse::<u32>().ok()
        };
        if let Some(id) = groups().find_map(of_proxmox).or(domain.proxmox) {
            return Manager::Proxmox(id);
        }
        if let Some((namespace, name)) = domain.kubevirt.clone() {
            return Manager::KubeVirt { namespace, name };
        }
        let in_pod = groups().any(|group| group.contains("kubepods"));
        if let Some((namespace, name)) = domain.name.split_once('_').filter(|_| in_pod) {
            return Manager::KubeVirt { namespace: namespace.to_owned(), name: name.to_owned() };
        }
        if let Some(nova) = &domain.nova {
            return Manager::OpenStack { server: nova.server.clone(), flavor: nova.flavor.clone() };
        }
        let number = domain.name.strip_prefix("instance-").filter(|number| number.len() == 8);
        if number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_hexdigit())) {
            return Manager::OpenStack { server: domain.name.clone(), flavor: None };
        }
        let read = domain.read_config.as_deref().unwrap_or_default();
        if let Some((_, program)) =
            [("/incus/", "incus"), ("/lxd/", "lxc")].into_iter().find(|(part, _)| read.contains(part))
        {
            return Manager::Incus { program };
        }
        if let Some(program) = domain.monitor {
            return Manager::Monitor { program };
        }
        let is_pinned = !domain.vcpu_pins.is_empty() || !domain.emulator_pins.is_empty();
        let is_libvirts = groups().any(|group| group.contains("machine-qemu") || group.contains("/libvirt"));
        match domain.whole.is_some() || is_pinned || is_libvirts {
            true => Manager::Libvirt,
            false => Manager::Qemu,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Role;

    #[test]
    fn groups_tell_who_made_them() {
        let of = |group: &str, whole: bool| {
            let mut thread = Thread::new(Role::Vcpu(0), "CPU 0/KVM");
            (thread.vm, thread.cgroup) = (Some("shop_db".into()), Some(group.into()));
            let domain = Domain { name: "shop_db".into(), whole: whole.then(|| "x".to_owned()), ..Domain::default() };
            Machine { threads: vec![thread], ..Machine::default() }.manager_of(&domain)
        };
        assert_eq!(of("/qemu.slice/102.scope", false), Manager::Proxmox(102));
        // Version 1 has a tree for each controller, and systemd puts nobody into that of CPU sets.
        let (mut first, domain) =
            (Thread::new(Role::Vcpu(0), "CPU 0/KVM"), Domain { name: "db".into(), ..Domain::default() });
        (first.vm, first.cgroup) = (Some("db".into()), Some("/".into()));
        first.time_group = Some("/qemu.slice/103.scope".into());
        assert_eq!(Machine { threads: vec![first], ..Machine::default() }.manager_of(&domain), Manager::Proxmox(103));
        let kubevirt = Manager::KubeVirt { namespace: "shop".into(), name: "db".into() };
        assert_eq!(of("/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope", true), kubevirt);
        assert_eq!(of("/machine.slice/machine-qemu\\x2d1\\x2dweb.scope/libvirt/vcpu0", false), Manager::Libvirt);
        assert_eq!((of("/user.slice", true), of("/user.slice", false)), (Manager::Libvirt, Manager::Qemu));
    }

    #[test]
    fn nova_and_incus_show_in_what_they_start() {
        let of = |domain: Domain| Machine::default().manager_of(&domain);
        let server = |server: &str| Manager::OpenStack { server: server.into(), flavor: None };
        assert_eq!(of(Domain { name: "instance-0000002a".into(), ..Domain::default() }), server("instance-0000002a"));
        assert_eq!(of(Domain { name: "instance-prod-db".into(), ..Domain::default() }), Manager::Qemu);
        let read_config = Some("/run/incus/web/qemu.conf".to_owned());
        assert_eq!(of(Domain { read_config, ..Domain::default() }), Manager::Incus { program: "incus" });
        let monitor = Some("firecracker");
        assert_eq!(of(Domain { monitor, ..Domain::default() }), Manager::Monitor { program: "firecracker" });
    }
}
