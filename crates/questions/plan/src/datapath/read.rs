//! A plan out of its file: TOML, schema `kvmscope.chain/1`.
//!
//! Whatever a file says that would not act is an error with its place: a key that is not known, a rate without a unit, edges of
//! which there are too few. A constant without a source is marked as assumed.

use super::model::design::{Datapath, Design};
use super::model::frames::Frames;
use super::model::pcie::Detours;
use super::model::switch::HopCost;
use super::of_host::of_host as host_of_card;
use super::quantity;
use super::sheet::of_limits;
use super::stated::{Known, Stated, StatedCard, StatedChain};
use base::datapath::Traffic;
use base::nearest::instead;
use base::plain::{beginning, plain};
use facts::MOST_PLAN_BYTES;
use facts::fields::{Error, Fields, Source, count, flag, number, one_of, text};
use facts::ring::ChannelCost;
use host::Snapshot;
use toml::de::{DeTable, DeValue};

/// What a file's key `schema` says.
pub const SCHEMA: &str = "kvmscope.chain/1";

/// Most VNFs of a chain, chains, sizes, cards and polling CPUs: beyond them answers are no use to anybody.
const MOST_VNFS: u64 = 256;
const MOST_CHAINS: usize = 64;
const MOST_SIZES: usize = 64;
const MOST_CARDS: usize = 16;
const MOST_CORES: u64 = 1024;

const OF_FILE: &[&str] = &["schema", "host", "nic", "traffic", "chain", "calibration"];
const OF_HOST: &[&str] =
    &["pmd_cores", "core_hz", "port_queues", "vm_queues", "vnf_cores", "reserve", "core_watts", "core_price"];
const OF_RESERVE: &[&str] = &["vnf_cores_per_vm"];
const OF_NIC: &[&str] = &[
    "model",
    "link",
    "ports",
    "cards",
    "pcie",
    "snapshot",
    "pps",
    "pps_of_each_port",
    "pps_below",
    "between_vfs",
    "iommu_small_pages",
    "remote_node",
];
const OF_PCIE: &[&str] = &["gen", "lanes", "mps", "mrrs"];
const OF_TRAFFIC: &[&str] =
    &["sizes", "imix", "pattern", "target", "directions", "flows", "megaflows", "conntrack", "vxlan", "loss_free"];
const OF_CHAIN: &[&str] = &["vnfs", "pattern", "datapath", "edges", "must_migrate", "nic"];
const OF_CALIBRATION: &[&str] = &["ovs", "vnf", "vnf_pps", "ingress_pps", "vhost_pps", "channel"];
const OF_COST: &[&str] = &["source", "c0", "c1", "spread"];
const OF_RATE: &[&str] = &["source", "value"];
const OF_CHANNEL: &[&str] = &["source", "ns", "ns_per_byte", "spread"];

/// Where what a file says outright comes from, as [`Known::given`] has it.
const GIVEN: &str = "given";

/// A name in a file that stands for VFs at both ends of a switched chain.
const MIXED: &str = "mixed";

/// What opens the snapshot of a host that a plan names.
pub type Open<'a> = &'a dyn Fn(&str) -> Result<Snapshot, String>;

/// Reads a plan that is part of a recording. It names no snapshot: what came from elsewhere opens nothing outside itself.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn read(file: &str, written: &str) -> Result<Stated, Error> {
    read_with(file, written, &|_| {
        Err("a plan in a recording names no snapshot; kvmscope plan chain FILE reads it".to_owned())
    })
}

/// Reads a plan, and opens what it names.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn read_with(file: &str, written: &str, open: Open<'_>) -> Result<Stated, Error> {
    let source = Source { file, text: written };
    if written.len() > MOST_PLAN_BYTES {
        return Err(source.error(0, format!("a plan has at most {MOST_PLAN_BYTES} bytes")));
    }
    let document = DeTable::parse(written)
        .map_err(|error| source.error(error.span().map_or(0, |span| span.start), error.message()))?;
    let fields = Fields::of(source, "a plan", 0, document.get_ref(), OF_FILE)?;
    fields.needed("schema", |value| match text(value)? {
        SCHEMA => Ok(()),
        _ => Err(format!("this program reads \"{SCHEMA}\"")),
    })?;
    let mut stated = Stated { together: true, ..Stated::default() };
    if let Some(traffic) = fields.fields_of("traffic", "traffic", OF_TRAFFIC)? {
        of_traffic(&traffic, &mut stated)?;
    }
    if stated.frames.is_empty() {
        return Err(fields.error("a plan needs sizes or imix in [traffic]"));
    }
    if let Some(host) = fields.fields_of("host", "a host", OF_HOST)? {
        of_host(&host, &mut stated)?;
    }
    let cards = fields.named_of("nic", "a card", OF_NIC)?;
    if cards.is_empty() || cards.len() > MOST_CARDS {
        return Err(fields.error(format!("a plan needs 1 to {MOST_CARDS} cards, each under a line [nic.NAME]")));
    }
    let names: Vec<&str> = cards.iter().map(|(name, _)| name.as_str()).collect();
    for (_, card) in &cards {
        let (card, host) = of_card(card, open)?;
        stated.cards.push(card);
        // The host is one, whichever card it was read for.
        stated.core_hz = stated.core_hz.or(host.core_hz);
        stated.host_cpus = stated.host_cpus.or(host.host_cpus);
        stated.iommu = stated.iommu.or(host.iommu);
    }
    let chains = fields.tables_of("chain", "a chain", OF_CHAIN)?;
    if chains.is_empty() || chains.len() > MOST_CHAINS {
        return Err(fields.error(format!("a plan needs 1 to {MOST_CHAINS} chains, each under a line [[chain]]")));
    }
    stated.chains = chains.iter().map(|chain| of_chain(chain, &names, stated.pattern)).collect::<Result<_, _>>()?;
    if let Some(calibration) = fields.fields_of("calibration", "a calibration", OF_CALIBRATION)? {
        of_calibration(&calibration, &mut stated)?;
    }
    Ok(stated)
}

fn of_traffic(fields: &Fields<'_, '_>, stated: &mut Stated) -> Result<(), Error> {
    let sizes = fields.read("sizes", |value| {
        let all = value.as_array().filter(|all| !all.is_empty() && all.len() <= MOST_SIZES);
        let all = all.ok_or_else(|| format!("write 1 to {MOST_SIZES} sizes, such as [64, 512]"))?;
        let size = |value: &DeValue<'_>| quantity::size(i64::try_from(count(value)?).unwrap_or(i64::MAX));
        all.iter().map(|value| size(value.get_ref())).collect::<Result<Vec<Frames>, String>>()
    })?;
    let imix = fields.read("imix", |value| quantity::imix(text(value)?))?;
    stated.frames = sizes.unwrap_or_default().into_iter().chain(imix).collect();
    stated.pattern = pattern_of(fields)?.unwrap_or_default();
    stated.target_pps = fields.read("target", rate)?;
    stated.directions = fields.read("directions", |value| within(value, 1, 2))?;
    let flows = |value: &DeValue<'_>| match number(value)? {
        flows if (1.0..=1e9).contains(&flows) => Ok(flows),
        _ => Err("write how many flows, such as 10000".to_owned()),
    };
    stated.demands.flows = fields.read("flows", flows)?;
    stated.demands.megaflows = fields.read("megaflows", flows)?;
    stated.demands.conntrack = fields.read("conntrack", flag)?.unwrap_or_default();
    stated.demands.vxlan = fields.read("vxlan", flag)?.unwrap_or_default();
    stated.demands.loss_free = fields.read("loss_free", flag)?.unwrap_or_default();
    Ok(())
}

fn pattern_of(fields: &Fields<'_, '_>) -> Result<Option<Traffic>, Error> {
    fields.read("pattern", |value| one_of(value, &Traffic::ALL, Traffic::name))
}

fn of_host(fields: &Fields<'_, '_>, stated: &mut Stated) -> Result<(), Error> {
    let cores = fields.read("pmd_cores", |value| match value.as_str() {
        Some("search") => Ok(None),
        Some(_) => Err("write a number, or \"search\"".to_owned()),
        None => within(value, 0, MOST_CORES).map(Some),
    })?;
    stated.search = cores == Some(None);
    stated.pmd_cores = cores.flatten().map(Known::given);
    let hz = |value: &DeValue<'_>| match number(value)? {
        hz if (1e8..=1e11).contains(&hz) => Ok(hz),
        _ => Err("write cycles per second, such as 2.2e9".to_owned()),
    };
    stated.core_hz = fields.read("core_hz", hz)?.map(Known::given);
    stated.port_queues = fields.read("port_queues", |value| within(value, 1, MOST_CORES))?;
    stated.demands.vm_queues = fields.read("vm_queues", |value| within(value, 1, 64))?.unwrap_or_default();
    let amount = |value: &DeValue<'_>| match number(value)? {
        amount if (0.0..=1e9).contains(&amount) => Ok(amount),
        _ => Err("write what a CPU takes, such as 8.5".to_owned()),
    };
    stated.core_watts = fields.read("core_watts", amount)?;
    stated.core_price = fields.read("core_price", amount)?;
    stated.vnf_cores = fields.read("vnf_cores", |value| within(value, 1, MOST_CORES))?.map(Known::given);
    if let Some(reserve) = fields.fields_of("reserve", "a reserve", OF_RESERVE)? {
        let each = reserve.read("vnf_cores_per_vm", |value| within(value, 0, MOST_CORES))?;
        stated.reserved_cores_per_vm = each.unwrap_or_default();
    }
    Ok(())
}

/// A card, with what the snapshot that it names says of its host besides.
fn of_card(fields: &Fields<'_, '_>, open: Open<'_>) -> Result<(StatedCard, Stated), Error> {
    let model = fields.read("model", text)?;
    let mut host = fields.read("snapshot", |value| host_of_card(&open(text(value)?)?, model))?.unwrap_or_default();
    let of_host = host.cards.pop();
    if of_host.is_some() {
        fields.refuse("pcie", "the link is read from the snapshot already")?;
    }
    let named = model.filter(|_| of_host.is_none()).map(|model| Known::given(model.to_owned()));
    let of_host = of_host.unwrap_or_default();
    let mut card = StatedCard {
        model: named.or(of_host.model),
        line_bits_per_s: fields
            .read("link", |value| quantity::bits_per_s(text(value)?))?
            .map(Known::given)
            .or(of_host.line_bits_per_s),
        ports: fields.read("ports", |value| within(value, 1, 64))?.map(Known::given),
        count: fields.read("cards", |value| within(value, 1, 64))?.map(Known::given),
        detours: Detours {
            iommu_small_pages: fields.read("iommu_small_pages", flag)?.unwrap_or_default(),
            remote_node: fields.read("remote_node", flag)?.unwrap_or_default(),
        },
        pcie: of_host.pcie,
        mps_bytes: of_host.mps_bytes,
        mrrs_bytes: of_host.mrrs_bytes,
        node: of_host.node,
        ..StatedCard::default()
    };
    of_limits(fields, &mut card, GIVEN)?;
    of_pcie(fields, &mut card, GIVEN)?;
    // What the list does not know is found out here, where the error has a place.
    card.is_complete().map_err(|text| fields.error(text))?;
    Ok((card, host))
}

/// The link of a card.
pub(super) fn of_pcie(fields: &Fields<'_, '_>, card: &mut StatedCard, from: &str) -> Result<(), Error> {
    let Some(pcie) = fields.fields_of("pcie", "a PCIe link", OF_PCIE)? else { return Ok(()) };
    let generation = pcie.needed("gen", |value| within(value, 1, 6))?;
    let lanes = pcie.needed("lanes", |value| match within(value, 1, 32)? {
        lanes if quantity::link_is_known(1, lanes as u8) => Ok(lanes as u8),
        _ => Err("a link has 1, 2, 4, 8, 12, 16 or 32 lanes".to_owned()),
    })?;
    card.pcie = Some(Known { value: (generation as u8, lanes), from: from.to_owned() });
    let payload = |value: &DeValue<'_>| quantity::payload(i64::try_from(count(value)?).unwrap_or(i64::MAX));
    let known = |value| Known { value, from: from.to_owned() };
    card.mps_bytes = pcie.read("mps", payload)?.map(known);
    card.mrrs_bytes = pcie.read("mrrs", payload)?.map(known);
    Ok(())
}

fn of_chain(fields: &Fields<'_, '_>, cards: &[&str], of_plan: Traffic) -> Result<StatedChain, Error> {
    let own = pattern_of(fields)?;
    let pattern = own.unwrap_or(of_plan);
    let vnfs = fields.needed("vnfs", |value| within(value, 1, MOST_VNFS))?;
    let designs = fields.read("datapath", |value| match text(value)? {
        MIXED if pattern == Traffic::Chain => Ok(Design::ends(Datapath::Sriov, Datapath::OvsDpdk, vnfs)),
        MIXED => Err("a mixed datapath is one of a chain".to_owned()),
        name => path(name).map(|path| Design::uniform(path, pattern, vnfs)),
    })?;
    let needed = if pattern == Traffic::Chain { vnfs as usize + 1 } else { 2 };
    let edges = fields.read("edges", |value| {
        let all = value.as_array().filter(|all| all.len() == needed);
        let all = all.ok_or_else(|| format!("write {needed} edges, such as [\"vf\", .., \"vf\"], in order"))?;
        all.iter().map(|edge| path(text(edge.get_ref())?)).collect::<Result<Vec<Datapath>, String>>()
    })?;
    if designs.is_some() && edges.is_some() {
        fields.refuse("edges", "the chain has a datapath for all edges already")?;
    }
    let card = fields.read("nic", |value| {
        let name = text(value)?;
        let at = cards.iter().position(|card| *card == name);
        at.ok_or_else(|| {
            format!("there is no [nic.{}]; {}", plain(beginning(name, 60)), instead(name, cards.iter().copied()))
        })
    })?;
    Ok(StatedChain {
        vnfs,
        designs: designs.or(edges.map(Design::of)).into_iter().collect(),
        must_migrate: fields.read("must_migrate", flag)?.unwrap_or_default(),
        card: card.unwrap_or_default(),
        pattern: own,
    })
}

fn of_calibration(fields: &Fields<'_, '_>, stated: &mut Stated) -> Result<(), Error> {
    stated.hop = known_cost(fields, "ovs", "the cost of a hop")?;
    stated.vnf = known_cost(fields, "vnf", "the cost of a packet in a VNF")?;
    stated.guest_pps = known_rate(fields, "vnf_pps")?;
    stated.ingress_pps = known_rate(fields, "ingress_pps")?;
    stated.vhost_pps = known_rate(fields, "vhost_pps")?;
    stated.channel = known_channel(fields)?;
    Ok(())
}

/// Cycles with their source.
fn known_cost(fields: &Fields<'_, '_>, key: &str, what: &'static str) -> Result<Option<Known<HopCost>>, Error> {
    let Some(table) = fields.fields_of(key, what, OF_COST)? else { return Ok(None) };
    let (c0, c1) = (table.needed("c0", number)?, table.read("c1", number)?.unwrap_or_default());
    let how = "a packet takes 1 cycle to 1e9, and 0 to 1e6 more for each byte";
    let cost = quantity::hop_of(c0, c1).ok_or_else(|| table.error(how))?;
    let value = HopCost { spread: spread(&table)?, ..cost };
    Ok(Some(Known { value, from: source(&table)? }))
}

/// What either end of a ring takes for a frame, with its source.
fn known_channel(fields: &Fields<'_, '_>) -> Result<Option<Known<ChannelCost>>, Error> {
    let Some(table) = fields.fields_of("channel", "the cost of a channel", OF_CHANNEL)? else { return Ok(None) };
    let (ns, each) = (table.needed("ns", number)?, table.read("ns_per_byte", number)?.unwrap_or_default());
    let how = "an end takes 0.1 ns to 1e9 for a frame, and 0 to 1e6 more for each byte";
    let cost = ChannelCost::given(ns, each).ok_or_else(|| table.error(how))?;
    let value = ChannelCost { spread: spread(&table)?, ..cost };
    Ok(Some(Known { value, from: source(&table)? }))
}

/// By which factor a cost may be off, which a file has as a share.
fn spread(table: &Fields<'_, '_>) -> Result<f64, Error> {
    let spread = table.read("spread", |value| match number(value)? {
        spread if (0.0..1.0).contains(&spread) => Ok(1.0 + spread),
        _ => Err("write a share below 1, such as 0.1".to_owned()),
    })?;
    Ok(spread.unwrap_or(1.0))
}

/// A rate with its source, or one alone, which is then assumed.
fn known_rate(fields: &Fields<'_, '_>, key: &str) -> Result<Option<Known<f64>>, Error> {
    let is_table = fields.read(key, |value| Ok(value.as_table().is_some()))?;
    if is_table != Some(true) {
        let assumed = |value| Known { value, from: super::stated::ASSUMED.to_owned() };
        return Ok(fields.read(key, rate)?.map(assumed));
    }
    let Some(table) = fields.fields_of(key, "a rate", OF_RATE)? else { return Ok(None) };
    Ok(Some(Known { value: table.needed("value", rate)?, from: source(&table)? }))
}

fn source(fields: &Fields<'_, '_>) -> Result<String, Error> {
    let named = fields.read("source", text)?;
    Ok(named.unwrap_or(super::stated::ASSUMED).to_owned())
}

fn rate(value: &DeValue<'_>) -> Result<f64, String> {
    let how = |_| "write packets per second with their unit, such as \"5 Mpps\"".to_owned();
    quantity::pps(text(value).map_err(how)?)
}

fn path(name: &str) -> Result<Datapath, String> {
    let known = Datapath::ALL.map(Datapath::name).into_iter().chain([MIXED]);
    Datapath::called(name)
        .ok_or_else(|| format!("`{}` is not known; {}", plain(beginning(name, 60)), instead(name, known)))
}

fn within(value: &DeValue<'_>, least: u64, most: u64) -> Result<u32, String> {
    let known = count(value).ok().filter(|number| (least..=most).contains(number));
    known.map(|number| number as u32).ok_or_else(|| format!("write a whole number from {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file of docs/read/plan.md, whole.
    const WHOLE: &str = r#"
schema = "kvmscope.chain/1"
[host]
pmd_cores = 4
core_hz = 2.2e9
vnf_cores = 4
reserve = { vnf_cores_per_vm = 1 }
[nic.wan]
model = "XL710"
link = "40G"
pcie = { gen = 3, lanes = 8, mps = 128, mrrs = 512 }
[nic.lan]
link = "25G"
pps = "30 Mpps"
[traffic]
sizes = [64, 512, 1518]
imix = "64:7,594:4,1518:1"
pattern = "chain"
target = "5 Mpps"
directions = 1
[[chain]]
vnfs = 8
datapath = "ovs-dpdk"
must_migrate = true
[[chain]]
vnfs = 2
edges = ["vf", "ovs", "kernel"]
nic = "lan"
[calibration]
ovs = { source = "lab:recording", c0 = 240.0, c1 = 0.24, spread = 0.15 }
vnf = { source = "own VNF", c0 = 900.0, spread = 0.2 }
vnf_pps = "8 Mpps"
vhost_pps = { value = "0.8 Mpps", source = "own bed" }
channel = { source = "bench channel", ns = 14.0, ns_per_byte = 0.02, spread = 0.1 }
"#;

    #[test]
    fn every_key_is_read() {
        let plan = read("f", WHOLE).unwrap().plan().unwrap();
        assert_eq!((plan.pmd_cores, plan.core_hz, plan.reserved_cores_per_vm), (4, 2.2e9, 1));
        assert_eq!(plan.frames.len(), 4);
        assert_eq!((plan.target_pps, plan.directions, plan.together), (Some(5e6), 1, true));
        let [wan, lan] = &plan.cards[..] else { panic!("{plan:?}") };
        assert_eq!((wan.pcie.unwrap().mps_bytes, wan.line_bits_per_s), (128, 40e9));
        assert_eq!((lan.pcie, lan.nic.unwrap().packets.unwrap().per_s), (None, 30e6));
        let [long, short] = &plan.chains[..] else { panic!("{plan:?}") };
        assert_eq!((long.designs[0].to_string(), long.must_migrate, long.card), ("ovs-dpdk".into(), true, 0));
        assert_eq!((short.designs[0].to_string(), short.card), ("sriov+ovs-dpdk+ovs-kernel".into(), 1));
        let hop = plan.hop.unwrap();
        assert_eq!((hop.cycles, hop.cycles_per_byte, hop.spread), (240.0, 0.24, 1.15));
        let vnf = plan.vnf.unwrap();
        assert_eq!((vnf.cycles, vnf.cycles_per_byte, vnf.spread, plan.vnf_cores), (900.0, 0.0, 1.2, Some(4)));
        let from =
            |what: &str| plan.assumptions.iter().find(|one| one.what.contains(what)).map(|one| one.from.as_str());
        assert_eq!(
            (from("hop of"), from("a VNF forwards"), from("vhost")),
            (Some("lab:recording"), Some("assumed"), Some("own bed"))
        );
    }

    #[test]
    fn what_is_wrong_has_line_and_column() {
        for (from, to, expected) in [
            ("kvmscope.chain/1", "kvmscope.chain/2", "f:2:10: schema: this program reads \"kvmscope.chain/1\""),
            ("pmd_cores", "pmd_core", "f:4:1: a host has no key `pmd_core`; did you mean `pmd_cores`?"),
            ("pmd_cores = 4", "pmd_cores = \"all\"", "f:4:13: pmd_cores: write a number, or \"search\""),
            ("lanes = 8", "lanes = 7", "f:11:27: lanes: a link has 1, 2, 4, 8, 12, 16 or 32 lanes"),
            ("mps = 128", "mps = 100", "f:11:36: mps: PCIe knows 128, 256, 512, 1024, 2048 and 4096 bytes"),
            (
                "target = \"5 Mpps\"",
                "target = 5",
                "f:19:10: target: write packets per second with their unit, such as \"5 Mpps\"",
            ),
            ("\"40G\"", "\"40\"", "f:10:8: link: write the speed of a port with its unit, such as \"40G\""),
            ("vnfs = 8", "vnfs = 0", "f:22:8: vnfs: write a whole number from 1 to 256"),
            ("ovs-dpdk", "ovs-dpkd", "f:23:12: datapath: `ovs-dpkd` is not known; did you mean `ovs-dpdk`?"),
            ("\"vf\", ", "", "f:27:9: edges: write 3 edges, such as [\"vf\", .., \"vf\"], in order"),
            ("nic = \"lan\"", "nic = \"lam\"", "f:28:7: nic: there is no [nic.lam]; did you mean `lan`?"),
            ("link = \"25G\"\n", "", "f:12:1: NIC is not in the list of NICs"),
        ] {
            assert!(WHOLE.contains(from), "{from}");
            let error = read("f", &WHOLE.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{to}: {error}");
        }
        let recorded = read("f", &WHOLE.replacen("link = \"25G\"", "snapshot = \"..\"", 1)).unwrap_err().to_string();
        assert!(recorded.starts_with("f:13:12: snapshot: a plan in a recording names no snapshot"), "{recorded}");
        let netperf = read("f", &WHOLE.replacen("[64, 512, 1518]", "[64, 65536]", 1)).unwrap_err().to_string();
        assert!(netperf.starts_with("f:16:9: sizes: ") && netperf.contains("netperf"), "{netperf}");
        assert!(read("f", "").is_err() && read("f", "x = ").is_err());
    }
}
