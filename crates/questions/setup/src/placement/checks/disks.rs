//! Disks of guests: slow ones, unsafe ones, those with a limit.

use super::cards::{emulated, in_main_loop, with_vhost};
use crate::placement::model::Model;
use base::Severity;
use base::number::{list, percent};
use base::shell::{printable, quoted};
use facts::rule::Hit;
use host::machine::{Disk, Domain, Role, Thread};

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
                let hit = wrong.iter().fold(hit, |hit, what| hit.seen(what, &disk.place));
                hits.push(set(disk, &wrong).into_iter().fold(hit, |hit, what| hit.seen(what, &disk.place)));
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
    // Disks of a SCSI controller are served by the controller's thread.
    let is_scsi = disk.bus.as_deref() == Some("scsi");
    let own = if is_scsi { String::new() } else { format!(" iothread='{thread}'") };
    fix.push(edit(&format!("<driver name='qemu'{format} cache='none' io='native'{own}/>{bus}")));
    undo.push(edit(&format!("the elements of disk {} as they were", printable(&disk.target))));
    if is_scsi {
        fix.push(edit(&format!("<driver iothread='{thread}'/>, within <controller type='scsi' model='virtio-scsi'>")));
        undo.push(edit("the elements of its SCSI controller as they were"));
    }
    (fix, undo)
}

/// How the disk is served besides what is wrong with it: what of its speed is the host's memory.
fn set(disk: &Disk, wrong: &[String]) -> Option<String> {
    let told = [("cache", &disk.cache), ("io", &disk.io)];
    let told = told.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
    let told: Vec<String> = told.filter(|told| !wrong.iter().any(|wrong| wrong.contains(told))).collect();
    let cached = match disk.cache.as_deref() {
        Some("writeback" | "writethrough" | "unsafe") => ": what the guest reads may come from the host's page cache",
        _ => "",
    };
    (!told.is_empty()).then(|| format!("it has {}{cached}", list(&told)))
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

/// Share of a CPU from which QEMU's main loop is full: our own threshold.
pub(in crate::placement) const FULL: f64 = 0.9;

/// VMs whose main loop has no time left: it serves each disk and device that has no thread of its own.
pub(crate) fn main_loop(model: &Model) -> Vec<Hit> {
    let full = model.machine.domains.iter().filter_map(|domain| {
        let run = emulator(model, domain)?.run_share.as_ref()?;
        (run.value >= FULL).then_some((domain, run))
    });
    full.map(|(domain, run)| {
        let is_told = domain.whole.is_some() || domain.by_command;
        let without = |disk: &&Disk| match disk.bus.as_deref() {
            Some("virtio") => is_told && disk.iothread.is_none(),
            // Its controller may have one of those that there are.
            Some("scsi") => is_told && domain.iothreads == 0,
            _ => false,
        };
        let served: Vec<&Disk> = domain.disks.iter().filter(without).collect();
        let names: Vec<String> = served.iter().map(|disk| disk.target.clone()).collect();
        let serves = if names.is_empty() { String::new() } else { format!(", and serves {}", list(&names)) };
        let title = format!("QEMU's main loop of {} ran {} of a CPU{serves}", domain.name, percent(run.value));
        let mut hit = Hit::new(&domain.name, Severity::Medium, title).of_domain(&domain.name);
        hit = hit.seen(format!("the emulator ran {}", percent(run.value)), &run.place);
        hit = emulates(domain, hit);
        for disk in served.iter().take(MOST_SERVED) {
            let (fix, undo) = disk_element(domain, disk);
            hit.fix.extend(fix);
            hit.undo.extend(undo);
        }
        hit = carries(domain, hit);
        if served.is_empty() && hit.fix.is_empty() {
            let tid = emulator(model, domain).and_then(|thread| thread.tid);
            hit.fix.push(format!(
                "perf top -t {}   # what it works at",
                tid.map_or("TID".to_owned(), |tid| tid.to_string())
            ));
        }
        served.iter().fold(hit, |hit, disk| hit.seen(format!("disk {} has no iothread", disk.target), &disk.place))
    })
    .collect()
}

/// The cards whose packets the main loop carries, with what has the kernel carry them.
fn carries(domain: &Domain, mut hit: Hit) -> Hit {
    let name = quoted(&domain.name);
    for card in domain.interfaces.iter().filter(|card| in_main_loop(card)).take(MOST_SERVED) {
        let what = printable(&card.name);
        hit.title = format!("{}, and carries the packets of {what}", hit.title);
        hit.explains.push(format!("PLC-NET@{}-{}", domain.name, card.name));
        hit = hit.seen(format!("{what} has no vhost"), &card.place);
        hit.fix.push(format!("virsh edit {name}   # {}", with_vhost(card)));
        hit.undo.push(format!("virsh edit {name}   # the <interface> as it was"));
    }
    hit
}

/// The devices that QEMU emulates: each access of the guest to one is work of the main loop, and of a vCPU that waits for it. Findings
/// of their own have what replaces them.
fn emulates(domain: &Domain, mut hit: Hit) -> Hit {
    let disks = domain.disks.iter().filter(|disk| matches!(disk.bus.as_deref(), Some("ide" | "sata")));
    let cards = domain.interfaces.iter().filter(|interface| emulated(interface));
    let disks = disks.map(|disk| (disk.bus.as_deref(), &disk.target, &disk.place, "PLC-DISK", "disk"));
    let cards = cards.map(|card| (card.model.as_deref(), &card.name, &card.place, "PLC-NET", "card"));
    let mut said: Vec<String> = Vec::new();
    for (kind, name, place, rule, what) in cards.chain(disks) {
        let (name, kind) = (printable(name), printable(kind.unwrap_or_default()).into_owned());
        said.push(format!("{what} {name} ({kind})"));
        hit.explains.push(format!("{rule}@{}-{name}", domain.name));
        hit = hit.seen(format!("{what} {name} is emulated: {kind}"), place);
    }
    if !said.is_empty() {
        hit.title = format!("{}: it emulates {}", hit.title, list(&said));
        hit.fix.push("kvmscope check   # PLC-NET and PLC-DISK below have virtio for these devices: the kernel then serves the card, and a \
                      separate thread the disk".to_owned());
    }
    hit
}

/// Iothreads that have no time left: all their disks wait for the one thread.
pub(crate) fn iothreads(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        for thread in model.machine.threads_of(&domain.name) {
            let (Role::IoThread(number), Some(run)) = (thread.role, &thread.run_share) else { continue };
            if run.value < FULL {
                continue;
            }
            let served: Vec<&Disk> = domain.disks.iter().filter(|disk| disk.iothread == Some(number)).collect();
            let names: Vec<String> = served.iter().map(|disk| printable(&disk.target).into_owned()).collect();
            let serves = if names.is_empty() { String::new() } else { format!(", and serves {}", list(&names)) };
            let title = format!("iothread {number} of {} ran {} of a CPU{serves}", domain.name, percent(run.value));
            let hit = Hit::new(format!("{} {number}", domain.name), Severity::Medium, title);
            let mut hit = hit.seen(format!("iothread {number} ran {}", percent(run.value)), &run.place);
            hit = served.iter().fold(hit, |hit, disk| hit.seen(format!("disk {} is its", disk.target), &disk.place));
            (hit.fix, hit.undo) = more_threads(domain, number, &names);
            hits.push(hit);
        }
    }
    hits
}

/// A thread for each further disk, now, which the disks have from the next start on; one disk has its queues on two (QEMU 9.0,
/// iothread-vq-mapping; libvirt 10.0).
fn more_threads(domain: &Domain, number: u32, disks: &[String]) -> (Vec<String>, Vec<String>) {
    let name = quoted(&domain.name);
    let known = domain.iothread_numbers();
    let free = (1..).filter(|free| *free != number && !known.contains(free));
    let added: Vec<u32> = free.take(disks.len().saturating_sub(1).clamp(1, MOST_ADDED)).collect();
    let line = |verb: &str, thread: &u32| format!("virsh iothread{verb} {name} {thread} --live --config");
    let mut fix: Vec<String> = added.iter().map(|thread| line("add", thread)).collect();
    let mut undo: Vec<String> = added.iter().map(|thread| line("del", thread)).collect();
    let element = match disks {
        [] | [_] => format!(
            "<iothreads><iothread id='{number}'/><iothread id='{}'/></iothreads> within <driver> of its disk, in place of iothread='{number}'",
            added[0]
        ),
        [_, others @ ..] => {
            let each = others.iter().zip(added.iter().cycle());
            let each: Vec<String> =
                each.map(|(disk, thread)| format!("<driver iothread='{thread}'/> of {disk}")).collect();
            list(&each)
        }
    };
    fix.push(format!("virsh edit {name}   # {element}: from the next start"));
    undo.insert(0, format!("virsh edit {name}   # the elements of these disks as they were"));
    (fix, undo)
}

/// Iothreads that a finding adds.
const MOST_ADDED: usize = 3;

/// Disks whose elements a finding types.
const MOST_SERVED: usize = 2;

fn emulator<'a>(model: &'a Model, domain: &'a Domain) -> Option<&'a Thread> {
    model.machine.threads_of(&domain.name).find(|thread| thread.role == Role::Emulator)
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
                    .seen(limits, &disk.place),
            );
        }
    }
    hits
}
