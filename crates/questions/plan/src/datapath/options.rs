//! A plan that is stated quantity by quantity, without a file: chains side by side on one kind of card.

use super::quantity;
use super::{
    ChannelCost, Datapath, Demands, Design, Detours, Frames, HopCost, Known, NICS, Stated, StatedCard, StatedChain,
};
use base::datapath::Traffic;
use base::nearest::instead;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Most ports of a card, cards, polling CPUs and CPUs of VNFs: beyond them answers are no use to anybody.
const PORTS: RangeInclusive<u32> = 1..=64;
const CORES: RangeInclusive<u32> = 0..=1024;

/// What is stated. [`Options::set`] reads each from text.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub vnfs: Vec<u32>,
    pub sizes: Vec<Frames>,
    /// A mix of sizes.
    pub imix: Option<Frames>,
    /// Where packets go; `None`: through a chain, and designs are compared for in and out too.
    pub pattern: Option<Traffic>,
    /// The card's model.
    pub nic: Option<String>,
    /// Bits a second of a port.
    pub line_bits_per_s: Option<f64>,
    pub ports: Option<u32>,
    pub cards: Option<u32>,
    /// Generation and lanes of its link.
    pub pcie: Option<(u8, u8)>,
    /// Largest payload on the way to the root.
    pub mps_bytes: Option<u32>,
    pub mrrs_bytes: Option<u32>,
    /// What makes its accesses slower.
    pub detours: Detours,
    pub hop: Option<HopCost>,
    /// CPUs that poll for the switch.
    pub pmd_cores: Option<u32>,
    /// Cycles a second of each.
    pub core_hz: Option<f64>,
    /// What the switch takes in from a port at most.
    pub ingress_pps: Option<f64>,
    /// What a VNF forwards at most.
    pub guest_pps: Option<f64>,
    /// Cycles that a VNF takes for a packet.
    pub vnf: Option<HopCost>,
    /// CPUs that all VNFs share.
    pub vnf_cores: Option<u32>,
    /// What one thread of vhost-net carries.
    pub vhost_pps: Option<f64>,
    /// What either end of a ring between VNFs takes for a frame.
    pub channel: Option<ChannelCost>,
    /// Datapaths to weigh; the usual ones where none is named.
    pub datapaths: Vec<Datapath>,
    /// Whether designs and numbers of polling CPUs are searched.
    pub search: bool,
    /// Whether all VMs have to be movable.
    pub must_migrate: bool,
    /// What each chain has to carry.
    pub target_pps: Option<f64>,
    /// A card of one's own, in place of one of the list.
    pub sheet: Option<StatedCard>,
    /// What makes hops of the switch dearer.
    pub demands: Demands,
    /// Queues from which the switch takes what a port receives, and what a VM sends.
    pub queues: Option<u32>,
    /// 2 if packets go both ways.
    pub directions: Option<u32>,
    /// Watts, and money, of a CPU that a design keeps busy.
    pub core_watts: Option<f64>,
    pub core_price: Option<f64>,
}

/// What is stated and would not act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Something about the PCIe link, which is unknown of this card.
    Link,
    /// CPUs that VNFs share, without what a packet takes there.
    VnfCores,
}

impl Options {
    /// States `key` as `text` says; a second time another value of `vnfs`, `size` and `datapath`. Keys are those of
    /// `kvmscope plan chain`, with `_` between words.
    ///
    /// # Errors
    /// If there is no such key, or the text says nothing that it could be.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), String> {
        match key {
            "vnfs" => self.vnfs.push(within(text, 1..=256)?),
            "size" => self.sizes.push(quantity::size(number(text)?)?),
            "imix" => self.imix = Some(quantity::imix(text)?),
            "pattern" => {
                let named = Traffic::named(text);
                self.pattern = Some(named.ok_or_else(|| instead(text, Traffic::ALL.map(Traffic::name)))?);
            }
            "nic" => self.nic = Some(text.to_owned()),
            "link" => self.line_bits_per_s = Some(quantity::bits_per_s(text)?),
            "ports" => self.ports = Some(within(text, PORTS)?),
            "cards" => self.cards = Some(within(text, PORTS)?),
            "pcie" => self.pcie = Some(quantity::pcie(text)?),
            "mps" => self.mps_bytes = Some(quantity::payload(number(text)?)?),
            "mrrs" => self.mrrs_bytes = Some(quantity::payload(number(text)?)?),
            "iommu_small_pages" => self.detours.iommu_small_pages = number(text)?,
            "remote_node" => self.detours.remote_node = number(text)?,
            "hop" => self.hop = Some(quantity::hop(text)?),
            "pmd_cores" => self.pmd_cores = Some(within(text, CORES)?),
            "ghz" => self.core_hz = Some(quantity::ghz(text)?),
            "ingress" => self.ingress_pps = Some(quantity::pps(text)?),
            "vnf_pps" => self.guest_pps = Some(quantity::pps(text)?),
            "vnf" => self.vnf = Some(quantity::hop(text)?),
            "vnf_cores" => self.vnf_cores = Some(within(text, 1..=1024)?),
            "vhost_pps" => self.vhost_pps = Some(quantity::pps(text)?),
            "channel" => self.channel = Some(quantity::channel(text)?),
            "datapath" => {
                let named = Datapath::called(text);
                let path = named.ok_or_else(|| instead(text, Datapath::ALL.map(Datapath::name)))?;
                self.datapaths.push(path);
            }
            "search" => self.search = number(text)?,
            "must_migrate" => self.must_migrate = number(text)?,
            "target" => self.target_pps = Some(quantity::pps(text)?),
            "flows" => self.demands.flows = Some(quantity::flows(text)?),
            "megaflows" => self.demands.megaflows = Some(quantity::flows(text)?),
            "conntrack" => self.demands.conntrack = number(text)?,
            "vxlan" => self.demands.vxlan = number(text)?,
            "loss_free" => self.demands.loss_free = number(text)?,
            "queues" => self.queues = Some(within(text, 1..=64)?),
            "directions" => self.directions = Some(within(text, 1..=2)?),
            "core_watts" => self.core_watts = Some(quantity::amount(text)?),
            "core_price" => self.core_price = Some(quantity::amount(text)?),
            _ => return Err("nothing of a plan is called so".to_owned()),
        }
        Ok(())
    }

    /// Whether it has what every plan needs: VNFs, sizes, a card, which a host's snapshot has.
    pub fn is_enough(&self, has_host: bool) -> bool {
        let has_sizes = !self.sizes.is_empty() || self.imix.is_some();
        let has_card = has_host || self.nic.is_some() || self.line_bits_per_s.is_some();
        !self.vnfs.is_empty() && has_sizes && has_card
    }

    /// What of this would not act in `stated`, which it became; `calibrated` says whether a recording gives what a VNF takes.
    pub fn idle(&self, stated: &Stated, calibrated: bool) -> Option<Idle> {
        let knows_link = |card: &StatedCard| {
            let model = card.model.as_ref().map_or("", |model| model.value.as_str());
            card.pcie.is_some() || NICS.iter().any(|nic| nic.model.eq_ignore_ascii_case(model))
        };
        let of_link = self.mps_bytes.is_some() || self.mrrs_bytes.is_some() || self.detours != Detours::default();
        if of_link && !stated.cards.iter().all(knows_link) {
            return Some(Idle::Link);
        }
        let knows_vnf = self.vnf.is_some() || self.guest_pps.is_some() || calibrated;
        (self.vnf_cores.is_some() && !knows_vnf).then_some(Idle::VnfCores)
    }

    /// What this states, over what a host's snapshot says.
    pub fn stated(&self, host: Stated) -> Stated {
        let of_host = host.cards.into_iter().next();
        let named = of_host.is_none().then(|| self.nic.clone()).flatten();
        let of_host = of_host.unwrap_or_default();
        let sheet = self.sheet.clone().unwrap_or_default();
        let card = StatedCard {
            model: sheet.model.or(named.map(Known::given)).or(of_host.model),
            line_bits_per_s: self
                .line_bits_per_s
                .map(Known::given)
                .or(sheet.line_bits_per_s)
                .or(of_host.line_bits_per_s),
            ports: self.ports.map(Known::given),
            count: self.cards.map(Known::given),
            pcie: self.pcie.map(Known::given).or(sheet.pcie).or(of_host.pcie),
            mps_bytes: self.mps_bytes.map(Known::given).or(of_host.mps_bytes),
            mrrs_bytes: self.mrrs_bytes.map(Known::given).or(of_host.mrrs_bytes),
            node: of_host.node,
            packets_per_s: sheet.packets_per_s,
            packets_are_of_each_port: sheet.packets_are_of_each_port,
            packets_below_bytes: sheet.packets_below_bytes,
            between_vfs: sheet.between_vfs,
            detours: self.detours,
        };
        let pattern = self.pattern.unwrap_or_default();
        let chain = |vnfs: &u32| StatedChain {
            vnfs: *vnfs,
            designs: once(&self.datapaths).iter().map(|path| Design::uniform(*path, pattern, *vnfs)).collect(),
            must_migrate: self.must_migrate,
            card: 0,
            pattern: None,
        };
        Stated {
            cards: vec![card],
            chains: once(&self.vnfs).iter().map(chain).collect(),
            frames: once(&self.sizes).into_iter().chain(self.imix.clone()).collect(),
            pattern,
            is_of_any_pattern: self.pattern.is_none(),
            search: self.search,
            target_pps: self.target_pps,
            pmd_cores: self.pmd_cores.map(Known::given),
            core_hz: self.core_hz.map(Known::given).or(host.core_hz),
            host_cpus: host.host_cpus,
            iommu: host.iommu,
            hop: self.hop.clone().map(Known::given),
            ingress_pps: self.ingress_pps.map(Known::given),
            guest_pps: self.guest_pps.map(Known::given),
            vnf: self.vnf.clone().map(Known::given),
            vnf_cores: self.vnf_cores.map(Known::given),
            vhost_pps: self.vhost_pps.map(Known::given),
            channel: self.channel.clone().map(Known::given),
            demands: Demands { vm_queues: self.queues.unwrap_or_default(), ..self.demands.clone() },
            port_queues: self.queues,
            directions: self.directions,
            core_watts: self.core_watts,
            core_price: self.core_price,
            ..Stated::default()
        }
    }
}

/// A number, or `true` or `false`.
fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is no such number"))
}

fn within(text: &str, range: RangeInclusive<u32>) -> Result<u32, String> {
    let known = text.parse().ok().filter(|value| range.contains(value));
    known.ok_or_else(|| format!("write how many, from {} to {}", range.start(), range.end()))
}

/// Each value once, in the order in which they were given.
fn once<T: Clone + PartialEq>(all: &[T]) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for one in all {
        if !kept.contains(one) {
            kept.push(one.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(all: &[(&str, &str)]) -> Options {
        let mut options = Options::default();
        all.iter().for_each(|(key, text)| options.set(key, text).unwrap());
        options
    }

    #[test]
    fn what_is_stated_is_read_and_what_cannot_be_is_refused() {
        let options = set(&[("vnfs", "2"), ("vnfs", "8"), ("size", "64"), ("nic", "XL710"), ("ghz", "2.4")]);
        assert!(options.is_enough(false) && !set(&[("vnfs", "2"), ("nic", "XL710")]).is_enough(true));
        let stated = options.stated(Stated::default());
        assert_eq!((stated.chains.len(), stated.core_hz.unwrap().value), (2, 2.4e9));
        for (key, text) in
            [("vnfs", "0"), ("size", "60"), ("ports", "65"), ("pattern", "up"), ("search", "1"), ("mtu", "9")]
        {
            assert!(Options::default().set(key, text).is_err(), "{key} {text}");
        }
    }

    #[test]
    fn what_would_not_act_is_found() {
        let idle = |all: &[(&str, &str)]| {
            let options = set(all);
            options.idle(&options.stated(Stated::default()), false)
        };
        assert_eq!(idle(&[("link", "40G"), ("mps", "256")]), Some(Idle::Link));
        assert_eq!(idle(&[("nic", "xl710"), ("mps", "256")]), None);
        assert_eq!(idle(&[("nic", "XL710"), ("vnf_cores", "2")]), Some(Idle::VnfCores));
        assert_eq!(idle(&[("nic", "XL710"), ("vnf_cores", "2"), ("vnf", "900")]), None);
    }
}
