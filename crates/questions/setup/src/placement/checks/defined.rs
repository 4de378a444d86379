//! Elements of definitions that cost time whatever the host is: clocks, limits, policies, memory, pins of nobody.

use super::strain::WAITED;
use crate::placement::culprits::{only_cpu, sums};
use crate::placement::model::Model;
use base::number::{bytes, list, many, percent};
use base::shell::quoted;
use base::{Evidence, Severity};
use facts::rule::Hit;
use host::machine::{Domain, Fact, GaugeKind, Role};

/// Memory from which on pages of 4 KiB cost: the tables of a guest's pages no longer fit into the caches. Our own threshold.
pub(in crate::placement) const LARGE: u64 = 32 << 30;

/// Part of its memory below which a balloon leaves a guest little: our own threshold.
pub(in crate::placement) const BALLOON: f64 = 0.5;

/// A weight that is far below the usual one of either version: our own threshold.
const LIGHT: u64 = 25;

/// Priorities from here on are those of the kernel's own threads that must run.
const TOP_PRIORITY: u32 = 99;

fn edit(domain: &Domain, what: &str) -> String {
    format!("virsh edit {}   # {what}", quoted(&domain.name))
}

fn hit(domain: &Domain, severity: Severity, title: String, seen: (&str, &str)) -> Hit {
    let mut hit = Hit::new(&domain.name, severity, title).of_domain(&domain.name);
    hit.evidence.push(Evidence::new(seen.0, seen.1));
    hit
}

/// Clocks that a guest is not shown, and emulated ones that it is.
pub(crate) fn clocks(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let timer = |name: &str, present: bool| domain.timers.get(name).filter(|told| told.value == present);
        let feature = |name: &str| domain.features.get(name).filter(|told| !told.value);
        // Until 465.89 NVIDIA's drivers for consumer cards refused to run beside KVM (NVIDIA support, answer 5173).
        let (severity, hidden) = match domain.host_devices.is_empty() {
            true => (
                Severity::Medium,
                "is not shown KVM: it has no kvmclock, counts no steal, and ends each interrupt with an exit",
            ),
            false => (
                Severity::Info,
                "is not shown KVM, as drivers of consumer GPUs before 2021 needed it: without one it has no kvmclock",
            ),
        };
        let of = [
            (feature("kvm"), hidden, "within <features> without <kvm><hidden state='on'/></kvm>; -cpu without kvm=off"),
            (
                timer("kvmclock", false),
                "is not shown kvmclock: without a TSC that it trusts each reading of the time is an exit",
                "<timer name='kvmclock' present='yes'/> within <clock>",
            ),
            (
                timer("hpet", true),
                "has an HPET: each read of it is an exit to QEMU",
                "<timer name='hpet' present='no'/> within <clock>",
            ),
            (
                feature("x2apic"),
                "has no x2APIC: each access to its interrupt controller is an exit with an emulated instruction",
                "within <cpu> without <feature policy='disable' name='x2apic'/>",
            ),
            (
                feature("invtsc"),
                "has no invariant TSC: it may read a slower clock",
                "within <cpu> without <feature policy='disable' name='invtsc'/>; it cannot be migrated to a host of another frequency then",
            ),
        ];
        for (told, what, element) in of {
            let Some(told) = told else { continue };
            let severity = if what == hidden { severity } else { Severity::Low };
            let mut hit = hit(domain, severity, format!("{} {what}", domain.name), ("so it is defined", &told.place));
            hit.subject = format!("{} {}", domain.name, what.split(':').next().unwrap_or_default());
            hit.fix.push(edit(domain, element));
            hit.undo.push(edit(domain, "the element as it was"));
            hits.push(hit);
        }
    }
    hits
}

/// The weight of a VM of which nobody said anything: 100 where groups are those of version 2 (`cpu.weight`), else 1,024 (`cpu.shares`).
fn usual_weight(model: &Model) -> Option<u64> {
    let sets = model.machine.cgroups.values().filter_map(|group| group.effective.as_ref().or(group.cpus.as_ref()));
    let place = sets.map(|set| set.place.as_str()).find(|place| place.contains("sys/fs/cgroup/"))?;
    Some(if place.contains("sys/fs/cgroup/cpuset/") { 1_024 } else { 100 })
}

/// Limits and weights of CPU time.
pub(crate) fn limits(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let name = quoted(&domain.name);
        if let Some(quota) = domain.vcpu_quota.as_ref().filter(|quota| quota.value < 1.0) {
            let title =
                format!("each vCPU of {} may use {:.2} CPUs, however idle the host is", domain.name, quota.value);
            let mut hit = hit(domain, Severity::Info, title, ("<quota> by <period>", &quota.place));
            kept_waiting(model, domain, &mut hit);
            hit.fix.push(format!("virsh schedinfo {name} --live --config --set vcpu_quota=-1"));
            hit.undo.push(format!(
                "virsh schedinfo {name} --live --config --set vcpu_quota={:.0}   # by a period of 100000",
                quota.value * 1e5
            ));
            hits.push(hit);
        }
        let usual = usual_weight(model);
        let light = |shares: &&Fact<u64>| match usual {
            Some(usual) => shares.value < usual / 4,
            // 100 is usual in version 2, so nothing above a quarter of it is little everywhere.
            None => shares.value < LIGHT,
        };
        if let Some(shares) = domain.cpu_shares.as_ref().filter(light) {
            let told = usual
                .map_or_else(|| "1024 (cgroups version 1) or 100 (version 2)".to_owned(), |usual| usual.to_string());
            let title = format!(
                "{} has a weight of {}, where {told} is usual: it gets what others leave over",
                domain.name, shares.value
            );
            let mut hit = hit(domain, Severity::Info, title, ("<shares>", &shares.place));
            hit.subject = format!("{} shares", domain.name);
            hit.fix.push(match usual {
                Some(usual) => format!("virsh schedinfo {name} --live --config --set cpu_shares={usual}"),
                None => {
                    format!("virsh schedinfo {name}   # beside the others': then --live --config --set cpu_shares=N")
                }
            });
            hit.undo.push(format!("virsh schedinfo {name} --live --config --set cpu_shares={}", shares.value));
            hits.push(hit);
        }
    }
    hits
}

/// A quota that is reached: vCPUs wait by the sums that are kept of them, and those that are bound to a CPU do while it is idle.
fn kept_waiting(model: &Model, domain: &Domain, hit: &mut Hit) {
    let threads = model.machine.threads.iter().filter(|thread| thread.vm.as_deref() == Some(&domain.name));
    let waits = threads.filter(|thread| matches!(thread.role, Role::Vcpu(_)));
    let waits =
        waits.filter_map(|thread| Some((thread, sums(&model.machine, thread).filter(|sum| sum.value >= WAITED)?)));
    let waits: Vec<_> = waits.take(MOST_TOLD).collect();
    let mut idle: Vec<String> = Vec::new();
    for (thread, sum) in &waits {
        let (words, _) = sum.kind.words();
        hit.evidence.push(Evidence::new(format!("{}: {words}, {}", sum.subject, percent(sum.value)), &sum.place));
        let cpu = only_cpu(thread).and_then(|cpu| Some((cpu, model.machine.cpu_use.get(&cpu)?.idle)));
        idle.extend(
            cpu.filter(|(_, idle)| *idle >= WAITED)
                .map(|(cpu, idle)| format!("CPU {cpu} was idle {} of the time", percent(idle))),
        );
    }
    if !waits.is_empty() {
        hit.severity = Severity::Medium;
        hit.title += ", and waits";
    }
    // How idle it is now says nothing of what a vCPU waited since its VM began.
    let is_recent = waits.iter().all(|(_, sum)| sum.kind == GaugeKind::WaitedBetween);
    if !idle.is_empty() && idle.len() == waits.len() && is_recent {
        hit.severity = Severity::High;
        hit.title += &format!(" although there is room where it is bound: {}", list(&idle));
    }
}

/// vCPUs that are named.
const MOST_TOLD: usize = 8;

/// Real-time policies that reach every vCPU, or the priority of the kernel's own threads.
pub(crate) fn realtime(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let all = domain.vcpu_count();
        let of_all = |told: &&Fact<(base::CpuSet, String, u32)>| {
            let (vcpus, policy, priority) = &told.value;
            let is_realtime = matches!(policy.as_str(), "fifo" | "rr");
            is_realtime && all > 0 && ((0..all).all(|vcpu| vcpus.contains(vcpu)) || *priority >= TOP_PRIORITY)
        };
        let Some(told) = domain.realtime.iter().find(of_all) else { continue };
        let (vcpus, policy, priority) = &told.value;
        let title = format!(
            "vCPUs {vcpus} of {} run with {policy} and priority {priority}: of {} none is left for its ordinary work",
            domain.name,
            many(all.into(), "vCPU")
        );
        let mut hit = hit(domain, Severity::Info, title, ("<vcpusched>", &told.place));
        let others = match all {
            0 | 1 => None,
            2 => Some("1".to_owned()),
            _ => Some(format!("1-{}", all - 1)),
        };
        let element = others.map_or_else(
            || "without <vcpusched>: its one vCPU has its ordinary work to do as well".to_owned(),
            |others| format!("<vcpusched vcpus='{others}' scheduler='{policy}' priority='1'/>: vCPU 0 ordinary, priority 1 is above all that is not real-time"),
        );
        hit.fix.push(edit(domain, &element));
        hit.undo
            .push(edit(domain, &format!("<vcpusched vcpus='{vcpus}' scheduler='{policy}' priority='{priority}'/>")));
        hits.push(hit);
    }
    hits
}

/// A guest has little memory left below this part of what the balloon leaves it: our own threshold.
pub(in crate::placement) const LITTLE: f64 = 0.05;

/// A balloon beside which its guest has no memory left and swaps.
fn squeezed(model: &Model, domain: &Domain) -> Option<Hit> {
    let (all, now) = (domain.memory_bytes?, domain.current_memory_bytes?);
    let told = domain.balloon.as_ref()?;
    let (usable, out) = (told.value.usable?, told.value.swapped_out.filter(|out| *out > 0)?);
    if now >= all || usable as f64 >= LITTLE * now as f64 {
        return None;
    }
    let title = format!(
        "the balloon leaves {} {} of {}; it has {} of that left and swapped {} out since it started",
        domain.name,
        bytes(now as f64),
        bytes(all as f64),
        bytes(usable as f64),
        bytes(out as f64)
    );
    let mut hit = hit(domain, Severity::Medium, title, ("what its balloon says of its memory", &told.place));
    hit.subject = format!("{} balloon", domain.name);
    let free = model.machine.gauges.iter().rev().find(|gauge| gauge.kind == GaugeKind::MemoryAvailable);
    if let Some(free) = free {
        hit.evidence.push(Evidence::new(format!("the host has {} available", bytes(free.value)), &free.place));
    }
    let name = quoted(&domain.name);
    hit.fix.push(format!("virsh setmem {name} {} --live   # KiB: all that it may have", all >> 10));
    hit.undo.push(format!("virsh setmem {name} {} --live", now >> 10));
    Some(hit)
}

/// A large guest on pages of 4 KiB: as its process has them, else as it is defined. QEMU asks for transparent huge pages itself, so only a
/// host that gives none leaves small ones.
fn small_pages(model: &Model, domain: &Domain) -> Option<Hit> {
    const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";
    let measured = model.machine.vm_small_pages.get(&domain.name).filter(|small| small.value >= LARGE);
    let shares = domain.interfaces.iter().any(|one| one.kind == "vhostuser");
    let defined = domain.memory_bytes.filter(|all| *all >= LARGE && !domain.huge_pages && !shares);
    let by_command = domain.by_command.then(|| "its command line".to_owned());
    let place = domain.whole.clone().or(by_command);
    let (all, seen, place) = match measured {
        Some(small) => (small.value, format!("{} on pages of 4 KiB", bytes(small.value as f64)), small.place.clone()),
        None => (defined?, "no <hugepages/>".to_owned(), place?),
    };
    let is_never = model.machine.setting(THP).map(|setting| setting.contains("[never]"));
    let (severity, unless) = match (is_never, measured) {
        (Some(true), Some(_)) => (Severity::Medium, ""),
        (Some(true), None) => (Severity::Low, ""),
        (None, _) if model.pasted => (Severity::Info, ", unless the host gives it transparent huge pages"),
        _ => return None,
    };
    let title = format!("{} has {} on pages of 4 KiB{unless}", domain.name, bytes(all as f64));
    let mut hit = hit(domain, severity, title, (&seen, &place));
    hit.subject = format!("{} pages", domain.name);
    let pages = model.machine.nodes.values().flat_map(|node| &node.huge_pages);
    let free: u64 = pages.map(|(kib, _, free)| free * (kib << 10)).sum();
    if free >= all {
        hit.title += &format!("; {} on huge pages are reserved and free", bytes(free as f64));
    }
    if is_never == Some(true) {
        hit = hit.seen(format!("/{THP} is never"), THP);
        hit.fix.push(format!("echo madvise > /{THP}   # QEMU asks for them: all of it from the VM's next start, parts of it while it runs"));
        hit.undo.push(format!("echo never > /{THP}"));
    }
    let or = if hit.fix.is_empty() { "" } else { ", or this instead" };
    hit.fix.push(edit(domain, &format!("<memoryBacking><hugepages/></memoryBacking>{or}; the host needs as many free first: grep HugePages_Free /proc/meminfo")));
    hit.undo.push(edit(domain, "without <hugepages/>"));
    Some(hit)
}

/// Memory that is small, small-paged or not shared.
pub(crate) fn memory(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let squeezed = squeezed(model, domain);
        let is_squeezed = squeezed.is_some();
        hits.extend(squeezed);
        if let Some(told) = &domain.small_pages {
            let title = format!(
                "{} has pages of 4 KiB by its flavour: where it is behind a switch in user space (vhost-user), that needs huge pages to reach its packets",
                domain.name
            );
            let mut hit = hit(domain, Severity::Info, title, (&told.value, &told.place));
            hit.subject = format!("{} small pages", domain.name);
            hit.fix.push(edit(domain, "<memoryBacking><hugepages/></memoryBacking>; the host needs as many free first: grep HugePages_Free /proc/meminfo"));
            hit.undo.push(edit(domain, "without <hugepages/>"));
            hits.push(hit);
        }
        let by_command = domain.by_command.then(|| "its command line".to_owned());
        let Some(place) = &domain.whole.clone().or(by_command) else { continue };
        let users: Vec<String> =
            domain.interfaces.iter().filter(|one| one.kind == "vhostuser").map(|one| one.name.clone()).collect();
        if domain.whole.is_some() && !users.is_empty() && !domain.shared_memory {
            let title = format!(
                "{} has {} by vhostuser, and its memory is not shared: the switch cannot reach its packets",
                domain.name,
                list(&users)
            );
            let mut hit = hit(
                domain,
                Severity::Medium,
                title,
                ("no <access mode='shared'/>, no cell with memAccess='shared'", place),
            );
            hit.fix.push(edit(domain, "<memoryBacking><hugepages/><access mode='shared'/></memoryBacking>"));
            hit.undo.push(edit(domain, "<memoryBacking> as it was"));
            hits.push(hit);
        }
        if let (Some(all), Some(now), false) = (domain.memory_bytes, domain.current_memory_bytes, is_squeezed)
            && (now as f64) < BALLOON * all as f64
        {
            let title = format!("the balloon leaves {} {} of {}", domain.name, bytes(now as f64), bytes(all as f64));
            let mut hit = hit(domain, Severity::Low, title, ("<currentMemory> below <memory>", place));
            hit.subject = format!("{} balloon", domain.name);
            hit.fix.push(format!("virsh setmem {} {} --live --config   # KiB", quoted(&domain.name), all >> 10));
            hit.undo.push(format!("virsh setmem {} {} --live --config", quoted(&domain.name), now >> 10));
            hits.push(hit);
        }
    }
    hits.extend(model.machine.domains.iter().filter_map(|domain| small_pages(model, domain)));
    hits
}

/// Pins of vCPUs that a domain does not have.
pub(crate) fn pins(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in model.machine.domains.iter().filter(|domain| domain.whole.is_some()) {
        let Some(count) = domain.vcpus else { continue };
        let beyond: Vec<(&u32, &Fact<base::CpuSet>)> = domain.vcpu_pins.range(count..).collect();
        let Some((_, first)) = beyond.first() else { continue };
        let names: Vec<String> = beyond.iter().map(|(vcpu, _)| vcpu.to_string()).collect();
        let title = format!(
            "{} has {} and pins for vCPU {}, which it does not have",
            domain.name,
            many(count.into(), "vCPU"),
            list(&names)
        );
        let mut hit = hit(domain, Severity::Low, title, ("<vcpupin>", &first.place));
        hit.fix.push(edit(domain, &format!("<vcpupin> of vCPUs 0 to {}; they count from 0", count.saturating_sub(1))));
        hit.undo.push(edit(domain, "the pins as they were"));
        hits.push(hit);
    }
    hits
}
