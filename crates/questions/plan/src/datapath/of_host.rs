//! What a host says of its cards and its CPUs.

use super::model::nic::model_of;
use super::stated::{Known, Stated, StatedCard};
use host::Snapshot;
use host::pci::{NetworkCard, network_cards};

/// Clock that a CPU is sold with, in kHz; without it, the highest (Documentation/admin-guide/pm/cpufreq.rst, Linux 6.12).
const CLOCKS: [&str; 2] =
    ["sys/devices/system/cpu/cpu0/cpufreq/base_frequency", "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"];

/// A plan with what a host says of the card `wanted`: an interface, an address or a model; its only card if none is named. What it
/// does not say, and designs, sizes and calibrations, are the user's.
///
/// # Errors
/// A sentence for the user: which cards there are to choose from.
pub fn of_host(snapshot: &Snapshot, wanted: Option<&str>) -> Result<Stated, String> {
    let cards = network_cards(snapshot);
    let name = |card: &NetworkCard| {
        let model = model_of(card.ids).map_or(format!("{:04x}:{:04x}", card.ids.0, card.ids.1), str::to_owned);
        let interfaces = card.interfaces.join(", ");
        let of = if interfaces.is_empty() { String::new() } else { format!(" {interfaces}") };
        format!("{} ({model}{of})", card.address)
    };
    let is_wanted = |card: &&NetworkCard| match wanted {
        None => true,
        Some(wanted) => {
            let is_model = model_of(card.ids).is_some_and(|model| model.eq_ignore_ascii_case(wanted));
            card.address == wanted || card.interfaces.iter().any(|name| name == wanted) || is_model
        }
    };
    let chosen: Vec<&NetworkCard> = cards.iter().filter(is_wanted).collect();
    // Ports of one card are one choice.
    let slot = |card: &NetworkCard| card.address.rsplit_once('.').map_or("", |(slot, _)| slot).to_owned();
    let first = chosen.first().filter(|first| chosen.iter().all(|card| slot(card) == slot(first)));
    let Some(card) = first else {
        let known: Vec<String> = cards.iter().map(name).collect();
        return Err(if known.is_empty() {
            "no network card on PCIe is known of this host; give its model and its speed".to_owned()
        } else {
            format!("name one of its cards, by its address, interface or model: {}", base::number::list(&known))
        });
    };
    let from = |file: &str| format!("{}: {file}", card.address);
    let model = model_of(card.ids).map_or_else(|| name(card), str::to_owned);
    let stated = StatedCard {
        model: Some(Known { value: model, from: from("vendor, device") }),
        line_bits_per_s: card.line_bits_per_s.map(|value| Known { value, from: from("speed") }),
        pcie: card.link.map(|value| Known { value, from: from("current_link_speed, width, up to the root") }),
        mps_bytes: card.mps_bytes.map(|value| Known { value, from: from("config, the smallest up to the root") }),
        mrrs_bytes: card.mrrs_bytes.map(|value| Known { value, from: from("config") }),
        node: card.node.map(|value| Known { value, from: from("numa_node") }),
        ..StatedCard::default()
    };
    let clock = |file: &&str| {
        let khz: f64 = snapshot.line(file)?.parse().ok()?;
        (khz > 0.0).then(|| Known { value: khz * 1e3, from: (*file).to_owned() })
    };
    let online = snapshot.line("sys/devices/system/cpu/online").and_then(|list| base::CpuSet::parse(&list));
    let cpus = online
        .map(|cpus| Known { value: cpus.iter().count() as u32, from: "sys/devices/system/cpu/online".to_owned() });
    Ok(Stated {
        cards: vec![stated],
        core_hz: CLOCKS.iter().find_map(clock),
        host_cpus: cpus,
        iommu: Some(iommu(snapshot)),
        ..Stated::default()
    })
}

/// `off`, `translates`, or `passes the host's own accesses through`.
fn iommu(snapshot: &Snapshot) -> Known<String> {
    let units = snapshot.entries("sys/class/iommu");
    let command = snapshot.read("proc/cmdline").unwrap_or_default();
    let passes = command.split_whitespace().any(|word| matches!(word, "iommu=pt" | "iommu.passthrough=1"));
    let value = match (units.is_empty(), passes) {
        (true, _) => "off",
        (false, true) => "passes the host's own accesses through",
        (false, false) => "translates",
    };
    Known { value: value.to_owned(), from: "sys/class/iommu, proc/cmdline".to_owned() }
}
