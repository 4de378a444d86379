//! What a reader of a plan may set: for all its chains and cards at once.

use super::model::frames::Frames;
use super::model::nic::NICS;
use super::quantity;
use super::stated::{Known, MPS_BYTES, PMD_CORES, Stated, StatedCard};
use base::Control;
use std::collections::BTreeMap;

/// What chains, sizes or cards have that differ among each other.
const AS_PLANNED: &str = "as planned";
/// Where values that are set so come from.
const SET: &str = "set in the report";

const VNFS: [u32; 12] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32];
const SIZES: [u32; 8] = [64, 128, 256, 512, 1024, 1280, 1518, 9018];
const CORES: std::ops::RangeInclusive<u32> = 0..=16;
const MPS: [u32; 3] = [128, 256, 512];

pub(super) fn of(stated: &Stated) -> Vec<Control> {
    let numbers = |all: &[u32]| all.iter().map(u32::to_string).collect::<Vec<_>>();
    let one = |values: Vec<String>| match &values[..] {
        [first, others @ ..] if others.iter().all(|other| other == first) => first.clone(),
        _ => AS_PLANNED.to_owned(),
    };
    let vnfs = one(stated.chains.iter().map(|chain| chain.vnfs.to_string()).collect());
    let size = |frames: &Frames| match frames.size_bytes() {
        Some(bytes) => bytes.to_string(),
        None => frames.mix_name().unwrap_or_default().to_owned(),
    };
    let sizes = one(stated.frames.iter().map(size).collect());
    let cores = stated.pmd_cores.as_ref().map_or(PMD_CORES, |known| known.value).to_string();
    let model =
        |card: &StatedCard| card.model.as_ref().map_or_else(|| AS_PLANNED.to_owned(), |known| known.value.clone());
    let models = one(stated.cards.iter().map(model).collect());
    let mps = |card: &StatedCard| card.mps_bytes.as_ref().map_or(MPS_BYTES, |known| known.value).to_string();
    let payloads = one(stated.cards.iter().map(mps).collect());
    let mut controls = Vec::new();
    if can_stretch(stated) {
        controls.push(Control::new("vnfs", "VNFs", numbers(&VNFS), &vnfs));
    }
    controls.push(Control::new("size", "Frame size, bytes", numbers(&SIZES), &sizes));
    let cores = if stated.search { AS_PLANNED } else { &cores };
    controls.push(Control::new("pmd_cores", "Polling CPUs", CORES.map(|cores| cores.to_string()), cores));
    controls.push(Control::new("nic", "NIC", NICS.iter().map(|nic| nic.model.to_owned()), &models));
    controls.push(Control::new("mps", "PCIe payload (MPS), bytes", numbers(&MPS), &payloads));
    controls
}

/// The plan with the controls set to these values; one that is as planned stays so.
pub(super) fn set(planned: &Stated, values: &BTreeMap<String, String>) -> Stated {
    let mut stated = planned.clone();
    let known = |value: u32| Known { value, from: SET.to_owned() };
    let number = |id: &str| values.get(id).and_then(|value| value.parse::<u32>().ok());
    if let Some(vnfs) = number("vnfs").filter(|_| can_stretch(planned)) {
        for chain in &mut stated.chains {
            let pattern = chain.pattern.unwrap_or(planned.pattern);
            let stretched = chain.designs.iter().filter_map(|design| design.stretched(pattern, vnfs));
            (chain.designs, chain.vnfs) = (stretched.collect(), vnfs);
        }
    }
    if let Some(size) = values.get("size") {
        let bytes = size.parse().ok().and_then(|bytes| quantity::size(bytes).ok());
        stated.frames = bytes.or_else(|| quantity::imix(size).ok()).map_or(stated.frames, |frames| vec![frames]);
    }
    if let Some(cores) = number("pmd_cores") {
        (stated.pmd_cores, stated.search) = (Some(known(cores)), false);
    }
    for card in &mut stated.cards {
        if let Some(nic) = values.get("nic").and_then(|model| NICS.iter().find(|nic| nic.model == model)) {
            let model = Some(Known { value: nic.model.to_owned(), from: SET.to_owned() });
            // Another card has ports, limits and a link of its own.
            *card = StatedCard {
                model,
                mps_bytes: card.mps_bytes.take(),
                mrrs_bytes: card.mrrs_bytes.take(),
                count: card.count.take(),
                ..StatedCard::default()
            };
        }
        if let Some(mps) = number("mps").and_then(|bytes| quantity::payload(i64::from(bytes)).ok()) {
            card.mps_bytes = Some(known(mps));
        }
    }
    stated
}

/// Whether it is known which edges a longer chain has.
fn can_stretch(stated: &Stated) -> bool {
    let designs = |vnfs: u32| {
        stated
            .chains
            .iter()
            .flat_map(|chain| chain.designs.iter().map(|design| (chain.pattern.unwrap_or(stated.pattern), design)))
            .all(|(pattern, design)| design.stretched(pattern, vnfs).is_some())
    };
    designs(1)
}

#[cfg(test)]
mod tests {
    use super::super::read::read;
    use super::*;

    const PLAN: &str = r#"
schema = "kvmscope.chain/1"
[nic.wan]
model = "XL710"
[traffic]
sizes = [64]
[[chain]]
vnfs = 8
"#;

    fn values(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(id, value)| ((*id).to_owned(), (*value).to_owned())).collect()
    }

    fn shown(stated: &Stated) -> Vec<(String, String)> {
        of(stated).into_iter().map(|control| (control.id, control.values[control.chosen].clone())).collect()
    }

    #[test]
    fn what_is_set_is_what_the_controls_then_show() {
        let stated = read("f", PLAN).unwrap();
        let before = [("vnfs", "8"), ("size", "64"), ("pmd_cores", "1"), ("nic", "XL710"), ("mps", "128")];
        let pairs =
            |all: &[(&str, &str)]| all.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
        assert_eq!(shown(&stated), pairs(&before));
        let after = [("vnfs", "4"), ("size", "1518"), ("pmd_cores", "5"), ("nic", "E810-CQ"), ("mps", "256")];
        let set_so = set(&stated, &values(&after));
        assert_eq!(shown(&set_so), pairs(&after));
        assert!(set_so.plan().is_ok());
        assert_eq!(shown(&set(&stated, &values(&[]))), pairs(&before));
    }

    #[test]
    fn every_value_that_is_offered_can_be_planned() {
        let stated = read("f", PLAN).unwrap();
        for control in of(&stated) {
            for value in &control.values {
                let set_so = set(&stated, &values(&[(&control.id, value)]));
                assert!(set_so.plan().is_ok(), "{} = {value}: {:?}", control.id, set_so.plan());
                let now = of(&set_so).into_iter().find(|other| other.id == control.id).unwrap();
                assert_eq!(now.values[now.chosen], *value, "{}", control.id);
            }
        }
    }

    #[test]
    fn a_chain_with_edges_of_its_own_keeps_its_length() {
        let edges = PLAN.replace("vnfs = 8", "vnfs = 2\nedges = [\"vf\", \"ovs\", \"kernel\"]");
        let stated = read("f", &edges).unwrap();
        assert!(of(&stated).iter().all(|control| control.id != "vnfs"));
        assert_eq!(set(&stated, &values(&[("vnfs", "4")])).chains[0].vnfs, 2);
        let mixed = PLAN.replace("vnfs = 8", "vnfs = 8\ndatapath = \"mixed\"");
        let four = set(&read("f", &mixed).unwrap(), &values(&[("vnfs", "4")]));
        assert_eq!(four.chains[0].designs[0].shape(), "sriov + 3 x ovs-dpdk + sriov");
    }
}
