//! What a user states of a plan, a part of it at least, and what is taken where nothing is said.

use super::calibrate::Calibration;
use super::model::demands::Demands;
use super::model::design::Design;
use super::model::frames::Frames;
use super::model::hops::Range;
use super::model::nic::{Hairpin, NICS, Nic, PacketLimit, named};
use super::model::pcie::{Detours, Link};
use super::model::switch::HopCost;
use super::plan::{Assumption, Card, Chain, Plan};
use base::datapath::Traffic;
use base::nearest::instead;
use base::number::plain;
pub use facts::Known;
use facts::ring::ChannelCost;

#[derive(Debug, Clone, Default)]
pub struct StatedCard {
    pub model: Option<Known<String>>,
    /// Bits a second of a port.
    pub line_bits_per_s: Option<Known<f64>>,
    pub ports: Option<Known<u32>>,
    /// Cards like it, over which VFs are spread.
    pub count: Option<Known<u32>>,
    /// Generation and lanes of its link.
    pub pcie: Option<Known<(u8, u8)>>,
    /// Largest payload on the way to the root.
    pub mps_bytes: Option<Known<u32>>,
    pub mrrs_bytes: Option<Known<u32>>,
    /// Its NUMA node.
    pub node: Option<Known<u32>>,
    /// Its packets a second, over those of the list.
    pub packets_per_s: Option<Known<f64>>,
    /// These are of each port, and not of the card.
    pub packets_are_of_each_port: bool,
    /// Only shorter frames meet them.
    pub packets_below_bytes: Option<u32>,
    /// How it forwards between its VFs, over what the list says.
    pub between_vfs: Option<Hairpin>,
    /// What makes its accesses slower.
    pub detours: Detours,
}

#[derive(Debug, Clone)]
pub struct StatedChain {
    pub vnfs: u32,
    /// Designs to weigh; the usual ones where none is named.
    pub designs: Vec<Design>,
    /// Whether all its VMs have to be movable.
    pub must_migrate: bool,
    pub card: usize,
    /// Where its packets go; as those of the plan, if that is not said.
    pub pattern: Option<Traffic>,
}

/// A plan, as far as it is stated.
#[derive(Debug, Clone, Default)]
pub struct Stated {
    pub cards: Vec<StatedCard>,
    pub chains: Vec<StatedChain>,
    /// Whether they run at the same time.
    pub together: bool,
    pub frames: Vec<Frames>,
    pub pattern: Traffic,
    /// Where the user names no pattern: designs are compared for each of them.
    pub is_of_any_pattern: bool,
    /// 2 if packets go both ways.
    pub directions: Option<u32>,
    /// What each chain has to carry.
    pub target_pps: Option<f64>,
    /// CPUs that poll for the switch.
    pub pmd_cores: Option<Known<u32>>,
    /// Whether designs and numbers of polling CPUs are searched; where these are given, no more are taken.
    pub search: bool,
    /// Cycles a second of each.
    pub core_hz: Option<Known<f64>>,
    pub host_cpus: Option<Known<u32>>,
    /// What its IOMMU does.
    pub iommu: Option<Known<String>>,
    /// Queues from which the switch takes what a port receives.
    pub port_queues: Option<u32>,
    /// CPUs that each VM has for itself.
    pub reserved_cores_per_vm: u32,
    pub hop: Option<Known<HopCost>>,
    /// What the switch takes in from a port at most.
    pub ingress_pps: Option<Known<f64>>,
    /// What a VNF forwards at most.
    pub guest_pps: Option<Known<f64>>,
    /// Cycles that a VNF takes for a packet.
    pub vnf: Option<Known<HopCost>>,
    /// CPUs that all VNFs share.
    pub vnf_cores: Option<Known<u32>>,
    /// What one thread of vhost-net carries.
    pub vhost_pps: Option<Known<f64>>,
    /// What either end of a ring takes for a frame.
    pub channel: Option<Known<ChannelCost>>,
    /// What makes hops of the switch dearer.
    pub demands: Demands,
    /// Watts, and money, of a CPU that a design keeps busy.
    pub core_watts: Option<f64>,
    pub core_price: Option<f64>,
}

/// What is taken of a PCIe link where nothing is said: the payload with which every device starts (PCI Express Base Specification 3.0,
/// 7.8.4), and the read request likewise.
pub(super) const MPS_BYTES: u32 = 128;
const MRRS_BYTES: u32 = 512;
/// The clock of the published break-even of cores.
const CORE_HZ: f64 = 2.2e9;
pub(super) const PMD_CORES: u32 = 1;
/// Most polling CPUs that a search tries where no number is given.
const MOST_CORES: u32 = 1024;

pub(super) const ASSUMED: &str = "assumed";

/// Where each value comes from, as it is collected.
#[derive(Default)]
struct Sources(Vec<Assumption>);

impl Sources {
    /// A value that is known, or taken because nothing is said; `show` writes it with its unit.
    fn take<T: Clone>(
        &mut self,
        what: &str,
        known: Option<&Known<T>>,
        otherwise: Known<T>,
        show: impl Fn(&T) -> String,
    ) -> T {
        let Known { value, from } = known.cloned().unwrap_or(otherwise);
        self.0.push(Assumption { what: what.to_owned(), value: show(&value), from });
        value
    }

    /// A value that is known or not.
    fn note<T: Clone>(&mut self, what: &str, known: Option<&Known<T>>, show: impl Fn(&T) -> String) -> Option<T> {
        let Known { value, from } = known.cloned()?;
        self.0.push(Assumption { what: what.to_owned(), value: show(&value), from });
        Some(value)
    }
}

fn gbps(bits: &f64) -> String {
    format!("{} Gb/s", plain(bits / 1e9))
}

fn mpps(pps: &f64) -> String {
    format!("{} Mpps", plain(pps / 1e6))
}

fn bytes(bytes: &u32) -> String {
    format!("{bytes} bytes")
}

impl Stated {
    /// Puts in what a recording of the user's own host measured, over what is stated.
    pub fn calibrate(&mut self, measured: Calibration) {
        if let Some(switch) = measured.switch {
            self.hop = Some(switch.hop);
            self.core_hz = Some(switch.core_hz);
            // A VNF with a CPU of its own is the user's, and not the testpmd that shares one here.
            if self.vnf_cores.is_some() && self.vnf.is_none() {
                self.vnf = switch.vnf;
            }
        }
        self.channel = measured.channel.or(self.channel.take());
    }

    /// The plan, complete; or what is missing.
    ///
    /// # Errors
    /// A sentence for the user: what cannot be planned, and what to state.
    pub fn plan(&self) -> Result<Plan, String> {
        let mut sources = Sources::default();
        let cards: Vec<Card> = self.cards.iter().map(|card| card.card(&mut sources)).collect::<Result<_, _>>()?;
        let search_up_to = self
            .search
            .then(|| self.pmd_cores.as_ref().or(self.host_cpus.as_ref()).map_or(MOST_CORES, |known| known.value));
        let pmd_cores = match search_up_to {
            Some(most) => {
                let searched = Known { value: most, from: "searched".to_owned() };
                sources.take("polling CPUs of the switch", None, searched, |most| format!("up to {most}"))
            }
            None => {
                let one = Known { value: PMD_CORES, from: ASSUMED.to_owned() };
                sources.take("polling CPUs of the switch", self.pmd_cores.as_ref(), one, u32::to_string)
            }
        };
        let hz = |hz: &f64| format!("{} GHz", plain(hz / 1e9));
        let core_hz = sources.take(
            "clock of a polling CPU",
            self.core_hz.as_ref(),
            Known { value: CORE_HZ, from: ASSUMED.to_owned() },
            hz,
        );
        sources.note("CPUs of the host", self.host_cpus.as_ref(), u32::to_string);
        sources.note("IOMMU of the host", self.iommu.as_ref(), String::clone);
        let cycles =
            |cost: &HopCost| format!("{} and {} for each byte", plain(cost.cycles), plain(cost.cycles_per_byte));
        let hop = sources.note("cycles of a hop of the switch", self.hop.as_ref(), cycles);
        let demands = self.demands(&mut sources);
        let hop = hop.map(|hop| demands.spread_over(&hop));
        let each = |pps: &f64| mpps(pps);
        Ok(Plan {
            cards,
            chains: self.chains.iter().map(|chain| chain.chain(self.pattern, self.channel.is_some())).collect(),
            together: self.together,
            frames: self.frames.clone(),
            directions: self.directions.unwrap_or(1),
            target_pps: self.target_pps,
            pmd_cores,
            pmd_cores_are_given: self.pmd_cores.is_some(),
            compared: if self.is_of_any_pattern {
                vec![Traffic::NorthSouth, Traffic::Chain]
            } else {
                vec![self.pattern]
            },
            search_up_to,
            core_hz,
            port_queues: self.port_queues.unwrap_or(1),
            reserved_cores_per_vm: self.reserved_cores_per_vm,
            hop,
            ingress_pps: sources.note("what the switch takes from a port", self.ingress_pps.as_ref(), each),
            guest_pps: sources.note("what a VNF forwards", self.guest_pps.as_ref(), each),
            vnf: sources.note("cycles of a VNF for a packet", self.vnf.as_ref(), cycles),
            vnf_cores: sources.note("CPUs that VNFs share", self.vnf_cores.as_ref(), u32::to_string),
            vhost_pps: sources.note("what a thread of vhost-net carries", self.vhost_pps.as_ref(), each),
            channel: sources.note("time of an end of a channel for a frame", self.channel.as_ref(), |cost| {
                format!("{} ns and {} for each byte", plain(cost.ns), plain(cost.ns_per_byte))
            }),
            demands,
            core_watts: self.core_watts,
            core_price: self.core_price,
            assumptions: sources.0,
        })
    }

    /// What makes hops dearer, each with what it is taken from.
    fn demands(&self, sources: &mut Sources) -> Demands {
        let is_remote = self.cards.iter().any(|card| card.detours.remote_node);
        let demands = Demands { remote_node: self.demands.remote_node || is_remote, ..self.demands.clone() };
        let times = demands.times();
        let range = |range: &Range<f64>| format!("{} to {} times", plain(round(range.least)), plain(round(range.most)));
        let mut note = |is_so: bool, what: &str, value: String, from: &str| {
            let assumption = Assumption { what: what.to_owned(), value, from: from.to_owned() };
            sources.0.extend(is_so.then_some(assumption));
        };
        let are_many = demands.flows.is_some() || demands.megaflows.is_some();
        note(are_many, "a hop with so many flows", range(&times), "ovs_perf and connect-X5 vDPA, published");
        note(
            demands.conntrack,
            "a hop that tracks connections",
            "1 to 3.5 hops more".to_owned(),
            "connect-X5 vDPA, fitted",
        );
        let of_node = "OpenStack Nova, numa-aware-vswitches: up to 50 %";
        note(demands.remote_node, "a hop to another node", "1 to 2 times".to_owned(), of_node);
        note(demands.vxlan, "VXLAN", "50 bytes, and 2 passes of what comes in".to_owned(), "RFC 7348; dpif-netdev.c");
        note(demands.loss_free, "share without loss", "79.6 % at 64 bytes".to_owned(), "ovs_perf, zero loss, quoted");
        note(demands.vm_queues > 1, "queues of each VM", demands.vm_queues.to_string(), "given");
        demands
    }
}

/// Two digits behind the point.
fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

impl StatedCard {
    /// Whether enough is stated of it.
    pub(super) fn is_complete(&self) -> Result<(), String> {
        self.card(&mut Sources::default()).map(|_| ())
    }

    fn card(&self, sources: &mut Sources) -> Result<Card, String> {
        let model = self.model.as_ref().map_or("", |model| model.value.as_str());
        let known = named(model);
        let name = if model.is_empty() { "NIC" } else { model };
        let of = |what: &str| format!("{what} of {name}");
        let Some(line) = self.line_bits_per_s.clone().or(known.map(|nic| of_sheet(nic.line_bits_per_s, nic))) else {
            let models = instead(model, NICS.iter().map(|nic| nic.model));
            return Err(format!(
                "{name} is not in the list of NICs, so its speed has to be given, such as 40G; {models}"
            ));
        };
        let line_bits_per_s = sources.take(&of("port speed"), None, line, gbps);
        let one = Known { value: 1, from: ASSUMED.to_owned() };
        let ports = sources.take(&of("ports"), self.ports.as_ref(), one, u32::to_string);
        let count = sources.note(&of("cards"), self.count.as_ref(), u32::to_string).unwrap_or(1);
        sources.note(&of("NUMA node"), self.node.as_ref(), u32::to_string);
        let pcie = self.pcie.clone().or(known.map(|nic| of_sheet(nic.pcie, nic)));
        let pcie =
            sources.note(&of("PCIe link"), pcie.as_ref(), |(generation, lanes)| format!("gen{generation} x{lanes}"));
        let link = pcie.map(|(generation, lanes)| {
            let assumed = |value| Known { value, from: ASSUMED.to_owned() };
            let mps = self.mps_bytes.as_ref();
            let mps_bytes = sources.take(&of("largest PCIe payload"), mps, assumed(MPS_BYTES), bytes);
            let mrrs = self.mrrs_bytes.as_ref();
            let mrrs_bytes = sources.take(&of("largest PCIe read request"), mrrs, assumed(MRRS_BYTES), bytes);
            Link { generation, lanes, mps_bytes, mrrs_bytes }
        });
        let own = known.and_then(|nic| Some(from_list(nic.packets?, nic)));
        let stated = self.packets_per_s.clone().map(|known| Known {
            value: PacketLimit {
                per_s: known.value,
                is_of_device: !self.packets_are_of_each_port,
                below_bytes: self.packets_below_bytes,
            },
            from: known.from,
        });
        let packets = sources.note(&of("packet limit"), stated.or(own).as_ref(), shown_limit);
        let of_limits = packets.map(|_| Nic {
            model: "",
            packets,
            hairpin: Hairpin::Unknown,
            port_of_two_bits_per_s: None,
            line_bits_per_s,
            pcie: pcie.unwrap_or_default(),
            source: "",
            link_source: "",
        });
        let nic = known.copied().map(|nic| Nic { packets, ..nic }).or(of_limits);
        let nic = nic.map(|nic| Nic { hairpin: self.between_vfs.unwrap_or(nic.hairpin), ..nic });
        Ok(Card { model: name.to_owned(), nic, line_bits_per_s, ports, count, pcie: link, detours: self.detours })
    }
}

fn of_sheet<T>(value: T, nic: &Nic) -> Known<T> {
    Known { value, from: nic.link_source.to_owned() }
}

fn from_list<T>(value: T, nic: &Nic) -> Known<T> {
    Known { value, from: nic.source.to_owned() }
}

fn shown_limit(limit: &PacketLimit) -> String {
    let whose = if limit.is_of_device { "of the card" } else { "of each port" };
    let below = limit.below_bytes.map_or(String::new(), |bytes| format!(" below {bytes} bytes"));
    format!("{} {whose}{below}", mpps(&limit.per_s))
}

impl StatedChain {
    fn chain(&self, of_plan: Traffic, knows_rings: bool) -> Chain {
        let pattern = self.pattern.unwrap_or(of_plan);
        let is_open = self.designs.is_empty();
        let usual = || Chain::usual_designs(pattern, self.vnfs, knows_rings);
        let designs = if is_open { usual() } else { self.designs.clone() };
        Chain { vnfs: self.vnfs, pattern, designs, is_open, must_migrate: self.must_migrate, card: self.card }
    }
}
