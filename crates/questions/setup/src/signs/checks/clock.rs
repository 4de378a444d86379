//! Which clock a guest reads, by the ports and addresses that it accesses.

use crate::signs::Scene;
use base::number::{percent, thousands};
use base::{Level, Severity};
use facts::counts::{Counted, Row, device};
use facts::rule::Hit;

/// Share of all accesses of a kind from which a clock is what the guest accesses: our own threshold.
pub(in crate::signs) const MUCH: f64 = 0.5;

/// What a guest with Linux says of its clock.
pub(in crate::signs) const LINUX: &str = "cat /sys/devices/system/clocksource/clocksource0/current_clocksource   # inside a Linux guest: kvm-clock or tsc, and never acpi_pm or hpet";

pub(in crate::signs) fn read(scene: &Scene<'_>) -> Vec<Hit> {
    scene.counts.iter().filter_map(|counted| of_counts(scene, counted)).collect()
}

fn of_counts(scene: &Scene<'_>, counted: &Counted) -> Option<Hit> {
    let is_access = |row: &&Row| row.name.starts_with("0x");
    let all: u64 = counted.rows.iter().filter(is_access).map(|row| row.count).fold(0, u64::saturating_add);
    let clock = |row: &Row| device(&row.name).filter(|device| device.is_clock);
    let row = counted.rows.iter().filter(|row| clock(row).is_some()).max_by_key(|row| row.count)?;
    let (share, device) = (row.count as f64 / all.max(1) as f64, clock(row)?);
    if share < MUCH {
        return None;
    }
    let name = device.what.split(':').next().unwrap_or_default();
    let title =
        format!("a guest reads the time from {name}: {} of its accesses ({}), each an exit", percent(share), row.name);
    let mut hit = Hit::new(counted.machine.as_str(), Severity::High, title);
    hit.level = Some(scene.recording.level_of(&counted.machine));
    hit = hit.seen(
        format!("{} {} times, {} of such accesses", row.name, thousands(row.count), percent(share)),
        scene.named(&counted.path),
    );
    // Of exits by reason, how many these are.
    let exits = scene
        .counts
        .iter()
        .flat_map(|counted| &counted.rows)
        .find(|row| matches!(row.name.as_str(), "IO_INSTRUCTION" | "io" | "IOIO"));
    if let Some(exits) = exits.filter(|_| row.name.contains(":P")) {
        let of = exits.count_share.map_or(String::new(), |share| format!(", {} of all exits", percent(share)));
        hit = hit.seen(format!("{} {} times{of}", exits.name, thousands(exits.count)), "table counted");
    }
    let domains = || scene.models.iter().flat_map(|model| &model.machine.domains);
    // Proxmox shows Hyper-V's clock to a guest by its type alone.
    let kinds = domains()
        .filter_map(|domain| Some((domain, domain.options.get("ostype").filter(|kind| !kind.starts_with("win"))?)));
    // Commands of Linux in the only guest say what runs in it.
    let is_linux = scene.models.iter().any(|model| matches!(model.level, Level::At(1..))) && domains().count() <= 1;
    let is_linux = is_linux && domains().all(|domain| domain.windows.is_none());
    for (domain, kind) in kinds.filter(|_| !is_linux) {
        hit = hit.seen(
            format!("ostype of {} is {kind}: Proxmox shows no Hyper-V to it", domain.name),
            domain.whole.clone().unwrap_or_default(),
        );
        let id = domain.proxmox.filter(|id| *id > 0).map_or("VMID".to_owned(), |id| id.to_string());
        hit.fix.push(format!("qm set {id} --ostype win10   # if it runs a Windows, of 2016 or 2019 (win11 for 2022): it then reads Hyper-V's clock; stop and start it"));
        hit.undo.push(format!("qm set {id} --ostype {kind}"));
    }
    if !hit.fix.is_empty() || is_linux {
        hit.nothing_to_change = true;
        hit.fix.push(LINUX.to_owned());
    }
    if let Some(only) = domains().next().filter(|_| domains().count() == 1) {
        hit = hit.of_domain(&only.name);
    }
    Some(hit)
}

/// Clocks that a guest reads with an exit each, as its kernel calls them.
const SLOW: [&str; 2] = ["hpet", "acpi_pm"];

const CURRENT: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Kernels that read such a clock, by what somebody pasted of them; where the definition of the VM is the cause, [`hidden`] says it.
pub(in crate::signs) fn slow(scene: &Scene<'_>) -> Vec<Hit> {
    if !hidden(scene).is_empty() {
        return Vec::new();
    }
    let read = scene.models.iter().filter_map(|model| Some((model, model.machine.settings.get(CURRENT)?)));
    let read = read.filter(|(_, told)| SLOW.contains(&told.value.trim()));
    let hits = read.map(|(model, told)| {
        let clock = told.value.trim();
        let is_guest = matches!(model.level, Level::At(1..));
        let title = match is_guest {
            true => format!("the guest's kernel reads its time from {clock}: each reading is an exit to the VMM"),
            false => format!("the kernel reads its time from {clock}: on a host a microsecond or two each time, in a guest an exit"),
        };
        let mut hit = Hit::new(clock, Severity::Medium, title);
        hit.level = Some(model.level);
        hit = hit.seen(format!("current_clocksource is {clock}"), &told.place);
        let available = model.machine.settings.get(&CURRENT.replace("current", "available"));
        if let Some(names) = available {
            hit = hit.seen(format!("available: {}", names.value.trim()), &names.place);
        }
        let has = |name: &str| available.is_some_and(|names| names.value.split_whitespace().any(|one| one == name));
        let better = ["kvm-clock", "tsc"].into_iter().find(|name| has(name));
        // What the kernel left because it drifts is not to be gone back to.
        let is_distrusted = model.machine.complaints.iter().any(|told| told.value.line.to_lowercase().contains("tsc"));
        hit.fix.push("dmesg | grep -i -E 'tsc|clocksource'   # why the kernel left the TSC, if it did: then that comes first".to_owned());
        match better.filter(|_| !is_distrusted) {
            Some(better) => {
                hit.fix.push(format!("echo {better} > /{CURRENT}   # until the next boot; lasting: clocksource={better} on the kernel's command line"));
                hit.undo.push(format!("echo {clock} > /{CURRENT}"));
            }
            None if available.is_none() => hit.fix.push(format!("cat /{}   # is there a better one?", CURRENT.replace("current", "available"))),
            None => {}
        }
        hit
    });
    hits.collect()
}

/// Guests of Linux that read such a clock, where the definition of the only VM takes kvm-clock away.
pub(in crate::signs) fn hidden(scene: &Scene<'_>) -> Vec<Hit> {
    let domains: Vec<_> =
        scene.models.iter().flat_map(|model| model.machine.domains.iter().map(move |domain| (model, domain))).collect();
    let [(host, domain)] = domains[..] else { return Vec::new() };
    let Some(timer) = domain.timers.get("kvmclock").filter(|timer| !timer.value) else { return Vec::new() };
    let guests = scene.models.iter().filter(|model| matches!(model.level, Level::At(1..)));
    let read = guests.filter_map(|model| model.machine.settings.get(CURRENT));
    let hits = read.filter(|told| SLOW.contains(&told.value.trim())).map(|told| {
        let (vm, clock) = (&domain.name, told.value.trim());
        let title = format!(
            "the guest reads its time from {clock}, an exit each time: the definition of {vm} disables kvm-clock"
        );
        let mut hit = Hit::new(vm.as_str(), Severity::High, title).of_domain(vm);
        hit.level = Some(host.level);
        hit = hit
            .seen(format!("current_clocksource is {clock}"), &told.place)
            .seen("<timer name='kvmclock' present='no'/>", &timer.place);
        let name = base::shell::quoted(vm);
        hit.fix.push(format!(
            "virsh edit {name}   # <timer name='kvmclock' present='yes'/>, or no such line; then stop and start it"
        ));
        hit.undo.push(format!("virsh edit {name}   # the <clock> element as it was"));
        hit
    });
    hits.collect()
}
