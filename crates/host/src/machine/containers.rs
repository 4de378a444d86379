//! Containers, by the groups in which their managers put them: what bounds such a group is theirs to set, not systemd's.
//!
//! ```text
//! /system.slice/docker-4f5c0a9d8e7b...scope, /docker/4f5c0a9d8e7b...    Docker, by its two cgroup drivers
//! /machine.slice/libpod-4f5c0a9d8e7b...scope/container                  Podman
//! /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod7c1e..slice/..   Kubernetes
//! ```
//! Sources: `docker update` (Docker 27) and podman-update(1) (Podman 5), which have these options alike; Kubernetes 1.31,
//! pkg/kubelet/cm/pod_container_manager_linux.go (`pod` and the pod's uid, its hyphens as `_` where systemd names it).

use base::shell::quoted;

/// Whose container a group is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Container {
    /// Of Docker or Podman, by whose program and by the number as they print it.
    Engine { program: &'static str, id: String },
    /// Of a pod of Kubernetes, with its uid where the path has a whole one.
    Pod { uid: Option<String> },
}

/// As many digits of a container's number as its manager prints.
const ID_SHOWN: usize = 12;

impl Container {
    /// The container that a group is of, or lies in.
    pub fn of_group(path: &str) -> Option<Self> {
        let parts = || path.split('/');
        if parts().any(|part| part.starts_with("kubepods")) {
            return Some(Container::Pod { uid: parts().find_map(uid) });
        }
        let is_id = |id: &&str| id.len() == 64 && id.bytes().all(|digit| digit.is_ascii_hexdigit());
        let named = parts().find_map(|part| {
            let part = part.strip_suffix(".scope").unwrap_or(part);
            let of = |prefix, program| Some((part.strip_prefix(prefix).filter(is_id)?, program));
            of("docker-", "docker").or_else(|| of("libpod-", "podman"))
        });
        let bare = || parts().skip_while(|part| *part != "docker").nth(1).filter(is_id).map(|id| (id, "docker"));
        let (id, program) = named.or_else(bare)?;
        Some(Container::Engine { program, id: id[..ID_SHOWN].to_owned() })
    }

    /// What a person calls it: its number of 64 digits is for programs.
    pub fn label(&self) -> String {
        match self {
            Container::Engine { program, id } => format!("container {id} of {program}"),
            Container::Pod { .. } => "a pod".to_owned(),
        }
    }

    /// What shows which object of its manager this is.
    pub fn shown(&self) -> String {
        match self {
            Container::Engine { program, id } => {
                format!("{program} inspect {id}   # its name, and its limits under HostConfig")
            }
            Container::Pod { uid } => {
                let of = uid.as_ref().map_or(String::new(), |uid| format!(" | grep {}", quoted(uid)));
                format!(
                    "kubectl get pods -A -o 'custom-columns=N:.metadata.namespace,P:.metadata.name,U:.metadata.uid,O:.metadata.ownerReferences[0].name'{of}   # which pod, and what made it"
                )
            }
        }
    }

    /// What gives it another limit: an option of Docker with its value, and the resource of a pod, as `limits=cpu=N`.
    pub fn set(&self, option: &str, of_pod: &str) -> String {
        match self {
            Container::Engine { program, id } => format!("{program} update {option} {id}"),
            Container::Pod { .. } => format!("kubectl set resources OBJECT -n NAMESPACE --{of_pod}"),
        }
    }

    /// What gives it this weight, of version 1 or of version 2. Docker takes the first one's numbers (runc 1.2, ConvertCPUSharesToCgroupV2Value), a
    /// pod's weight is its request.
    pub fn weighing(&self, weight: u64, is_first: bool) -> String {
        let shares = if is_first { weight } else { 2 + (weight.saturating_sub(1) * 262_142).div_ceil(9_999) };
        self.set(&format!("--cpu-shares {shares}"), "requests=cpu=N   # what it requests is its weight")
    }
}

/// The uid of a pod in a part of a path, `kubepods-burstable-pod1a2b3c4d_0000_1111_2222_333344445555.slice` or `pod1a2b3c4d-..`.
fn uid(part: &str) -> Option<String> {
    let stem = part.strip_suffix(".slice").unwrap_or(part);
    let uid = stem.rsplit_once("pod").map(|(_, uid)| uid.replace('_', "-"))?;
    let is_whole = uid.len() == 36 && uid.bytes().all(|digit| digit == b'-' || digit.is_ascii_hexdigit());
    is_whole.then_some(uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_tell_whose_container_they_are() {
        let id = "4f5c0a9d8e7b6c5d".repeat(4);
        let engine = |program| Some(Container::Engine { program, id: id[..12].to_owned() });
        let of = |path: String| Container::of_group(&path);
        assert_eq!(of(format!("/system.slice/docker-{id}.scope")), engine("docker"));
        assert_eq!(of(format!("/docker/{id}")), engine("docker"));
        assert_eq!(of(format!("/machine.slice/libpod-{id}.scope/container")), engine("podman"));
        let pod = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1a2b3c4d_0000_1111_2222_333344445555.slice/cri-containerd-8f.scope";
        let uid = Some("1a2b3c4d-0000-1111-2222-333344445555".to_owned());
        assert_eq!(of(pod.to_owned()), Some(Container::Pod { uid }));
        assert_eq!(of("/kubepods/besteffort/pod7/9e".to_owned()), Some(Container::Pod { uid: None }));
        let weighing = |weight| engine("docker").unwrap().weighing(weight, false);
        assert!(weighing(100).starts_with("docker update --cpu-shares 2598 "), "{}", weighing(100));
        for path in ["/system.slice/docker.service", "/docker/web", "/machine.slice/machine-qemu.scope"] {
            assert_eq!(of(path.to_owned()), None, "{path}");
        }
    }
}
