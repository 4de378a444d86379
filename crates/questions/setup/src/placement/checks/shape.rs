//! Which topology do the pins of a VM's vCPUs really form, and how must the element read that says so?

use crate::placement::model::Model;
use base::number::counted;
use base::shell::quoted;
use base::{Evidence, Severity};
use facts::rule::Hit;
use host::machine::Domain;
use host::processor::Vendor;
use std::collections::BTreeMap;

/// What the pins form.
pub(super) enum Formed {
    /// Not every vCPU is pinned to one CPU, or nobody knows which CPUs share a core.
    Unknown,
    /// Every vCPU has a core of its own.
    Cores,
    /// Each so many vCPUs in a row have a core.
    Threads(u32),
    /// The CPUs are whole cores of so many threads, and these moves, vCPU and CPU, put each core's in a row.
    Reordered(u32, Vec<(u32, u32)>),
    /// So many vCPUs share cores, and so many have one of their own: no topology fits both.
    Mixed(u32, u32),
}

pub(super) fn formed(model: &Model, domain: &Domain) -> Formed {
    let topology = &model.machine.topology;
    let count = domain.vcpu_count();
    if topology.cores_unknown || topology.cpus.is_empty() || count == 0 {
        return Formed::Unknown;
    }
    // The core of each vCPU's only CPU.
    let mut places: Vec<(u32, u32)> = Vec::new();
    for vcpu in 0..count {
        let pin = domain.vcpu_pin(vcpu).filter(|pin| pin.value.len() == 1);
        let place = pin.and_then(|pin| pin.value.first()).and_then(|cpu| Some((cpu, topology.cpus.get(&cpu)?.core)));
        let Some(place) = place else { return Formed::Unknown };
        places.push(place);
    }
    let mut cores: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (cpu, core) in &places {
        cores.entry(*core).or_default().push(*cpu);
    }
    let distinct = |cpus: &Vec<u32>| cpus.iter().collect::<std::collections::BTreeSet<_>>().len() == cpus.len();
    if !cores.values().all(distinct) {
        return Formed::Unknown;
    }
    let sizes: Vec<usize> = cores.values().map(Vec::len).collect();
    let most = sizes.iter().copied().max().unwrap_or(1);
    if most == 1 {
        return Formed::Cores;
    }
    if sizes.iter().any(|size| *size != most) {
        let sharing: usize = sizes.iter().filter(|size| **size > 1).sum();
        let alone = sizes.iter().filter(|size| **size == 1).count();
        return Formed::Mixed(sharing as u32, alone as u32);
    }
    let in_rows = places.chunks(most).all(|row| row.iter().all(|(_, core)| *core == row[0].1));
    let threads = most as u32;
    if in_rows { Formed::Threads(threads) } else { Formed::Reordered(threads, moves(&places, &cores, most)) }
}

/// The first vCPU of each row stays where it is; the others go to the other CPUs of its core.
fn moves(places: &[(u32, u32)], cores: &BTreeMap<u32, Vec<u32>>, threads: usize) -> Vec<(u32, u32)> {
    let mut wanted: Vec<u32> = Vec::new();
    let mut used: Vec<u32> = Vec::new();
    for row in 0..places.len() / threads {
        // A core that an earlier row took is gone: the first of those left, in the order of the vCPUs.
        let own = places[row * threads].1;
        let next = places.iter().map(|(_, core)| *core).find(|core| !used.contains(core));
        let core = if used.contains(&own) { next.unwrap_or(own) } else { own };
        used.push(core);
        let first = places[row * threads].0;
        let mut cpus = cores[&core].clone();
        cpus.sort_by_key(|cpu| (*cpu != first, *cpu));
        wanted.extend(cpus);
    }
    let changed = (0_u32..).zip(&wanted).zip(places).filter(|((_, wanted), (now, _))| *wanted != now);
    changed.map(|((vcpu, wanted), _)| (vcpu, *wanted)).collect()
}

/// The element as it must read: sockets stay as many as the guest sees where its vCPUs can be divided by them.
pub(super) fn element(model: &Model, domain: &Domain, threads: u32) -> String {
    let count = domain.vcpu_count().max(1);
    let sockets = domain.topology.as_ref().map_or(1, |shown| shown.value.sockets.max(1));
    let sockets = if count.is_multiple_of(sockets * threads) { sockets } else { 1 };
    let cores = count / (sockets * threads).max(1);
    let topology = format!("<topology sockets='{sockets}' cores='{cores}' threads='{threads}'/>");
    let is_amd = model.machine.vendor.as_ref().is_some_and(|vendor| vendor.value == Vendor::Amd);
    let is_shown = domain.features.get("topoext").is_some_and(|told| told.value);
    match is_amd && threads > 1 && !is_shown {
        true => format!("<cpu>{topology}<feature policy='require' name='topoext'/></cpu>"),
        false => format!("<cpu>{topology}</cpu>"),
    }
}

/// Commands that pin vCPUs anew while they run, and those that take it back.
pub(super) fn pinning(domain: &Domain, moves: &[(u32, u32)]) -> (Vec<String>, Vec<String>) {
    let name = quoted(&domain.name);
    let pin = |vcpu: u32, cpus: &str| format!("virsh vcpupin {name} {vcpu} {cpus} --live --config");
    let now = |vcpu: u32| domain.vcpu_pin(vcpu).map(|pin| pin.value.to_string()).unwrap_or_default();
    moves.iter().map(|(vcpu, cpu)| (pin(*vcpu, &cpu.to_string()), pin(*vcpu, &now(*vcpu)))).unzip()
}

/// Guests that are to see threads of a core on AMD's processors, whose CPU has no leaf that tells of them.
pub(crate) fn topoext(model: &Model) -> Vec<Hit> {
    let Some(vendor) = model.machine.vendor.as_ref().filter(|vendor| vendor.value == Vendor::Amd) else {
        return Vec::new();
    };
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let Some(shown) = domain.topology.as_ref().filter(|shown| shown.value.threads > 1) else { continue };
        if !lacks_topoext(model, domain) {
            continue;
        }
        let title = format!(
            "{} is to see {} per core and sees 1: its CPU has no topoext",
            domain.name,
            counted(shown.value.threads.into(), "thread", "threads")
        );
        let mut hit = Hit::new(&domain.name, Severity::Medium, title).of_domain(&domain.name);
        hit.evidence.push(Evidence::new(format!("threads='{}'", shown.value.threads), &shown.place));
        hit.evidence.push(Evidence::new("the host's processor is AMD's", &vendor.place));
        if let Some(told) = domain.features.get("topoext") {
            hit.evidence.push(Evidence::new("topoext is disabled", &told.place));
        }
        hit.fix.push(format!(
            "virsh edit {}   # within <cpu>: <feature policy='require' name='topoext'/>",
            quoted(&domain.name)
        ));
        hit.undo.push(format!("virsh edit {}   # without that feature", quoted(&domain.name)));
        hits.push(hit);
    }
    hits
}

/// Whether a guest sees no threads whatever its topology says: QEMU shows topoext only where it is asked for, and models of its own by
/// themselves.
pub(super) fn lacks_topoext(model: &Model, domain: &Domain) -> bool {
    let is_amd = model.machine.vendor.as_ref().is_some_and(|vendor| vendor.value == Vendor::Amd);
    let is_host = domain.cpu_mode.as_ref().is_some_and(|mode| mode.value == "host-passthrough");
    match domain.features.get("topoext") {
        Some(told) => is_amd && !told.value,
        None => is_amd && is_host,
    }
}

/// What Windows uses of Hyper-V so that an idle guest sleeps, as libvirt calls it; all depend on those before them.
const ENLIGHTENMENTS: [&str; 6] = ["relaxed", "vapic", "spinlocks", "vpindex", "synic", "stimer"];

/// Guests with Windows that are not shown what they need to sleep.
pub(crate) fn enlightenments(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        // Only a whole definition says what is not there.
        let of_pod = domain.fields.values().next().map(|told| &told.place).filter(|_| !domain.is_completed);
        let whole = domain.whole.as_ref().or(of_pod);
        // A command line is whole, but for a file that it names.
        let by_command = domain.windows.as_ref().filter(|_| domain.by_command && domain.read_config.is_none());
        let place = whole.or(by_command.map(|told| &told.place));
        let (Some(windows), Some(place)) = (&domain.windows, place) else { continue };
        let shown = domain.hyperv.as_ref().map(|told| &told.value);
        let mut missing: Vec<&str> =
            ENLIGHTENMENTS.into_iter().filter(|name| !shown.is_some_and(|shown| shown.contains(*name))).collect();
        if !domain.timers.get("hypervclock").is_some_and(|told| told.value) {
            missing.push("hypervclock");
        }
        if !missing.iter().any(|name| ["vpindex", "synic", "stimer", "hypervclock"].contains(name)) {
            continue;
        }
        let title = format!(
            "{} runs Windows without {}: idle, it wakes for every tick",
            domain.name,
            base::number::list(&missing.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(),)
        );
        let mut hit = Hit::new(&domain.name, Severity::Medium, title).of_domain(&domain.name);
        hit.evidence.push(Evidence::new(windows.value.clone(), &windows.place));
        let none = match (&domain.whole, of_pod) {
            (Some(_), _) => "no <hyperv>",
            (None, Some(_)) => "no features.hyperv",
            (None, None) => "no hv- word behind -cpu",
        };
        let told = domain.hyperv.as_ref().map_or((none, place), |told| ("what of Hyper-V it is shown", &told.place));
        hit.evidence.push(Evidence::new(told.0, told.1));
        let elements: Vec<String> = missing
            .iter()
            .map(|name| match *name {
                "spinlocks" => "<spinlocks state='on' retries='8191'/>".to_owned(),
                "hypervclock" => "and within <clock> <timer name='hypervclock' present='yes'/>".to_owned(),
                name => format!("<{name} state='on'/>"),
            })
            .collect();
        hit.fix.push(format!(
            "virsh edit {}   # within <features><hyperv>: {}",
            quoted(&domain.name),
            elements.join(" ")
        ));
        hit.undo.push(format!("virsh edit {}   # without these elements", quoted(&domain.name)));
        hits.push(hit);
    }
    hits
}
