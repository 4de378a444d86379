//! Where one design overtakes another: cores that beat a VF, the size at which two tie, the longest chain at a target.

use super::design::Design;
use super::frames::Frames;
use super::stages::{Bed, Load, rate};
use super::switch::HopCost;
use base::datapath::Traffic;

/// Ethernet's shortest and longest untagged frame, with its check sequence.
pub(crate) const SHORTEST_BYTES: u32 = 64;
pub(crate) const LONGEST_BYTES: u32 = 1518;

/// The longest chain that is asked for.
pub(crate) const MOST_VNFS: u32 = 256;

/// Cores that poll for a switch that carries `system_pps` of a chain of `vnfs`: each packet makes one hop more than there are VNFs.
pub(crate) fn pmd_cores(hop: &HopCost, core_hz: f64, system_pps: f64, vnfs: u32, frames: &Frames) -> f64 {
    let vnfs = f64::from(vnfs.max(1));
    (vnfs + 1.0) / vnfs * system_pps * frames.mean(|bytes| hop.of(bytes)) / core_hz
}

/// The shortest frame from which `slow` carries at least as much as `fast`, if there is one: what is short binds by packets, what
/// is long by bits, so they cross once.
pub(crate) fn tie_bytes(slow: impl Fn(&Frames) -> Option<f64>, fast: impl Fn(&Frames) -> Option<f64>) -> Option<u32> {
    let ties = |bytes: u32| {
        let frames = Frames::of(bytes);
        // Equal up to what rounding leaves.
        Some(slow(&frames)? >= fast(&frames)? * (1.0 - 1e-9))
    };
    (SHORTEST_BYTES..=LONGEST_BYTES).find(|bytes| ties(*bytes) == Some(true))
}

/// The longest chain of `design` that carries `target_pps` from end to end; `None` if not even one VNF does.
pub(crate) fn longest_chain(
    bed: &Bed,
    design: impl Fn(u32) -> Design,
    frames: &Frames,
    target_pps: f64,
) -> Option<u32> {
    let carries = |vnfs: u32| {
        let load = Load { design: &design(vnfs), pattern: Traffic::Chain, vnfs };
        rate(bed, load, &[], frames).chain_pps().is_some_and(|pps| pps >= target_pps)
    };
    (1..=MOST_VNFS).take_while(|vnfs| carries(*vnfs)).last()
}

#[cfg(test)]
mod tests {
    use super::super::demands::Demands;
    use super::super::design::Datapath;
    use super::super::nic::named;
    use super::super::pcie::{Detours, Link};
    use super::super::wire::frames_per_s;
    use super::*;

    const HZ: f64 = 2.2e9;

    fn bed() -> Bed {
        Bed {
            line_bits_per_s: 40e9,
            ports: 1,
            cards: 1,
            pcie: Some(Link { generation: 3, lanes: 8, mps_bytes: 128, mrrs_bytes: 512 }),
            detours: Detours::default(),
            port_queues: 1,
            directions: 1,
            nic: named("XL710").copied(),
            pmd_cores: 1,
            core_hz: HZ,
            hop: None,
            ingress_pps: None,
            guest_pps: None,
            vnf: None,
            vnf_cores: None,
            vhost_pps: None,
            channel: None,
            demands: Demands::default(),
        }
    }

    #[test]
    fn cores_that_beat_one_card_of_vfs_are_those_of_the_published_method() {
        // The second line's long frame costs 2.3 short ones.
        for (cycles, per_byte, published) in
            [(250.0, 0.00088, [2.4, 2.5, 2.6, 1.8, 1.2, 1.05]), (418.0, 1.3 / 1454.0, [4.0, 4.2, 4.3, 3.0, 2.1, 1.8])]
        {
            let hop = HopCost::through_64_bytes(cycles, per_byte, 1.1, None);
            for (bytes, published) in [64, 128, 256, 512, 1024, 1518].into_iter().zip(published) {
                let frames = Frames::of(bytes);
                let design = Design::uniform(Datapath::Sriov, Traffic::Chain, 8);
                let load = Load { design: &design, pattern: Traffic::Chain, vnfs: 8 };
                let system = rate(&bed(), load, &[], &frames).system_pps().unwrap();
                let cores = pmd_cores(&hop, HZ, system, 8, &frames);
                let digit = if published == 1.05 { 0.005 } else { 0.05 };
                assert!(
                    (cores - published).abs() <= digit + 1e-9,
                    "{cycles} cycles, {bytes}: {cores} is not {published}"
                );
            }
        }
    }

    #[test]
    fn a_switch_reaches_the_line_where_its_affine_cost_says() {
        let line = |frames: &Frames| Some(frames.rate(|bytes| frames_per_s(40e9, bytes)));
        let switch = |per_byte: f64| {
            move |frames: &Frames| Some(frames.rate(|bytes| 10.6e6 / (1.0 + per_byte * (bytes - 64.0))))
        };
        let tie = |per_byte: f64| tie_bytes(switch(per_byte), line).unwrap();
        assert!(
            (697..=745).contains(&tie(0.00083)) && (697..=745).contains(&tie(0.00091)),
            "{} {}",
            tie(0.00083),
            tie(0.00091)
        );
        assert_eq!(tie(0.0), 452, "as if each size cost the same, which the row of 512 bytes refutes");
        assert_eq!(tie_bytes(|_| Some(32e6), line), Some(137));
        assert_eq!(tie_bytes(|_| Some(1e3), line), None);
    }

    #[test]
    fn the_longest_chain_is_the_last_that_carries_the_target() {
        let chain = |vnfs| Design::uniform(Datapath::Sriov, Traffic::Chain, vnfs);
        assert_eq!(longest_chain(&bed(), chain, &Frames::of(64), 5e6), Some(3), "18.5 Mpps divided by 3, not by 4");
        assert_eq!(longest_chain(&bed(), chain, &Frames::of(64), 60e6), None);
    }
}
