//! How does a null device send so many packets a second? A policer of the switch lets as many through, and the others are never offered.
//!
//! ```text
//! null device --as fast as it is asked--> policer of the port (TSC) --so many--> flow: offered
//!                                           '--> ovs_rx_qos_drops: never offered
//! ```
//! The policer is DPDK's srTCM. It adds `n` bytes to a bucket every `p` ticks of the time-stamp counter, `n` and `p` whole and `p` hardly above
//! 100, so that a policer holds one of some rates that lie 1 % apart. So there are two senders: the first has the nearest rate below, the
//! second, whose `p` is in the thousands, makes up what is missing. Sources: `ingress_policer_run`, `netdev_dpdk_policer_construct` of
//! lib/netdev-dpdk.c, Open vSwitch 3.1; `rte_meter_get_tb_params` of lib/meter/rte_meter.c, DPDK 22.11.

use base::datapath::FCS_BYTES;

/// The policer does not count the header of Ethernet (`netdev_dpdk_srtcm_policer_pkt_handle`).
const HEADER_BYTES: u32 = 14;
/// Least ticks between two additions to a bucket (RTE_METER_TB_PERIOD_MIN).
const LEAST_PERIOD: f64 = 100.0;
/// A rate is given in steps of 1000 bits a second.
const STEP_BYTES: f64 = 125.0;
/// How much of the rate the first sender is asked for. It may be 1 % faster than that, and leaves the second one 0.5 % at least.
const FIRST: f64 = 0.985;
/// How long the switch may do something else without anything being lost of the rate: senders do not stop either while a polling thread waits for
/// its CPU. What then comes at once may find a ring full, as it would in a card.
const BUCKET_S: f64 = 0.1;

/// The counter as DPDK believes it to tick, and as it does: DPDK rounds to 10 MHz (`estimate_tsc_freq` of
/// lib/eal/common/eal_common_timer.c).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ticks {
    pub(super) believed_hz: f64,
    pub(super) hz: f64,
}

/// What a policer is told, in units of 1000 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Policer {
    pub(super) rate_kbps: u64,
    pub(super) burst_kb: u64,
}

/// Policers of two senders that together let `pps` packets of that size through, FCS counted.
pub(super) fn policers(pps: u64, size_bytes: u32, ticks: Ticks) -> [Policer; 2] {
    let packet = f64::from(size_bytes.saturating_sub(FCS_BYTES + HEADER_BYTES).max(1));
    let asked = pps as f64 * packet;
    let first = (FIRST * asked / STEP_BYTES).floor().max(1.0);
    let rest = asked - passes(first * STEP_BYTES, ticks);
    // What a policer is believed to pass is off by as much as its clock.
    let second = (rest * ticks.believed_hz / ticks.hz / STEP_BYTES).round().max(1.0);
    [first, second].map(|steps| {
        let burst = (steps * BUCKET_S).max(BURST_PACKETS * packet / STEP_BYTES).ceil();
        Policer { rate_kbps: steps as u64, burst_kb: burst as u64 }
    })
}

/// A batch has 32 packets (NETDEV_MAX_BURST), and a bucket that holds fewer loses some of each.
const BURST_PACKETS: f64 = 64.0;

/// Bytes a second that a policer passes when it is told `rate`.
fn passes(rate: f64, ticks: Ticks) -> f64 {
    let period = ticks.believed_hz / rate;
    let bytes = if period >= LEAST_PERIOD { 1.0 } else { (LEAST_PERIOD / period).ceil() };
    let period = (ticks.believed_hz * bytes / rate).floor().max(1.0);
    ticks.hz * bytes / period
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKS: Ticks = Ticks { believed_hz: 2.25e9, hz: 2.249_3e9 };

    #[test]
    fn two_policers_hold_any_rate_to_a_tenth_of_what_a_trial_may_miss() {
        for size_bytes in [64, 512, 1518] {
            let packet = f64::from(size_bytes - 18);
            for pps in (10_000..5_000_000).step_by(13_337) {
                let [first, second] = policers(pps, size_bytes, TICKS);
                let both = [first, second].map(|policer| passes(policer.rate_kbps as f64 * STEP_BYTES, TICKS) / packet);
                let missed = (both.iter().sum::<f64>() / pps as f64 - 1.0).abs();
                assert!(missed < 0.000_4, "{pps} pps of {size_bytes} bytes: {both:?}, {missed}");
                assert!(both[1] > 0.003 * pps as f64 && both[1] < 0.02 * pps as f64, "{both:?}");
            }
        }
    }

    #[test]
    fn one_policer_alone_misses_by_up_to_a_hundredth() {
        let worst = (500_000..2_000_000).step_by(1_111).map(|pps| {
            let rate = f64::from(pps) * 46.0;
            (passes((rate / STEP_BYTES).round() * STEP_BYTES, TICKS) / rate - 1.0).abs()
        });
        let worst = worst.fold(0.0, f64::max);
        assert!(worst > 0.005 && worst < 0.011, "{worst}");
    }
}
