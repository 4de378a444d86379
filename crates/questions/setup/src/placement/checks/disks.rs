//! Disks of guests: slow ones, unsafe ones, those with a limit.

use crate::placement::model::Model;
use base::Severity;
use base::number::list;
use base::shell::{printable, quoted};
use facts::rule::Hit;
use host::machine::{Disk, Domain};

pub(crate) fn disks(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        for disk in &domain.disks {
            let wrong = slow(disk, domain.whole.is_some());
            if !wrong.is_empty() {
                let title = format!("disk {} of {}: {}", disk.target, domain.name, list(&wrong));
                let hit = Hit::new(format!("{}-{}", domain.name, disk.target), Severity::Low, title);
                let mut hit = hit.of_domain(&domain.name);
                (hit.fix, hit.undo) = disk_element(domain, disk);
                hits.push(wrong.iter().fold(hit, |hit, what| hit.seen(what, &disk.place)));
            }
        }
    }
    hits
}

/// The element as it must read, of this disk's own format, with what has to be there first; and the way back.
fn disk_element(domain: &Domain, disk: &Disk) -> (Vec<String>, Vec<String>) {
    let name = quoted(&domain.name);
    let edit = |what: &str| format!("virsh edit {name}   # {what}");
    let is_emulated = matches!(disk.bus.as_deref(), Some("ide" | "sata"));
    let format = disk.format.as_ref().map_or(String::new(), |format| format!(" type='{}'", printable(format)));
    let thread = disk.iothread.unwrap_or(1);
    let (mut fix, mut undo) = (Vec::new(), Vec::new());
    if domain.iothreads < thread {
        fix.push(edit(&format!("<iothreads>{thread}</iothreads>, beside <vcpu>")));
        undo.push(edit("<iothreads> as it was"));
    }
    let bus = if is_emulated {
        let first = "the guest needs its virtio driver before it boots so (Windows: virtio-win); then the disk has another name in it";
        fix.push(format!("virsh domblklist {name}   # {first}"));
        format!(
            ", <target dev='vd{}' bus='virtio'/> without the <address> that it has",
            disk.target.strip_prefix("hd").or(disk.target.strip_prefix("sd")).unwrap_or("a")
        )
    } else {
        String::new()
    };
    fix.push(edit(&format!("<driver name='qemu'{format} cache='none' io='native' iothread='{thread}'/>{bus}")));
    undo.push(edit(&format!("the elements of disk {} as they were", printable(&disk.target))));
    (fix, undo)
}

/// What costs time; that something is not there counts only where the definition is whole.
fn slow(disk: &Disk, is_whole: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    if matches!(disk.bus.as_deref(), Some("ide" | "sata")) {
        wrong.push(format!("bus {} is emulated", disk.bus.as_deref().unwrap_or_default()));
    }
    let (cache, io) = (disk.cache.as_deref(), disk.io.as_deref());
    if cache == Some("writeback") && disk.format.as_deref() == Some("raw") {
        wrong.push("cache=writeback copies through the host's page cache".to_owned());
    }
    if cache == Some("writethrough") {
        wrong.push("cache=writethrough flushes after every write".to_owned());
    }
    if io == Some("native") && !matches!(cache, None | Some("none" | "directsync" | "default")) {
        wrong.push(format!("io=native with cache={} is refused or falls back to threads", cache.unwrap_or_default()));
    }
    if cache == Some("none") && io == Some("threads") {
        wrong.push("io=threads with cache=none uses a thread per request".to_owned());
    }
    if is_whole && disk.bus.as_deref() == Some("virtio") && disk.iothread.is_none() && io == Some("native") {
        wrong.push("no iothread: QEMU's main loop serves it".to_owned());
    }
    wrong
}

pub(crate) fn unsafe_cache(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        for disk in domain.disks.iter().filter(|disk| disk.cache.as_deref() == Some("unsafe")) {
            let title = format!("disk {} of {} loses data if the host crashes", disk.target, domain.name);
            hits.push(
                Hit::new(format!("{}-{}", domain.name, disk.target), Severity::High, title)
                    .of_domain(&domain.name)
                    .seen("cache='unsafe'", &disk.place),
            );
        }
    }
    hits
}

/// Disks with a limit.
pub(crate) fn throttled(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        for disk in &domain.disks {
            let Some(limits) = &disk.throttle else { continue };
            let to = if limits.is_empty() { String::new() } else { format!(": {limits}") };
            let title = format!("disk {} of {} is throttled on purpose{to}", disk.target, domain.name);
            hits.push(
                Hit::new(format!("{}-{}", domain.name, disk.target), Severity::Info, title)
                    .of_domain(&domain.name)
                    .filling("TARGET", quoted(&disk.target))
                    .seen("it has <iotune>", &disk.place),
            );
        }
    }
    hits
}
