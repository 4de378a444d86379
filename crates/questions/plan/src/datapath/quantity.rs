//! Quantities as people write them, each with its unit.

use super::model::frames::Frames;
use super::model::switch::HopCost;
use base::quantity::{scaled, split};
use facts::ring::ChannelCost;
use std::ops::RangeInclusive;

/// Most sizes of a mix.
const MOST_SIZES: usize = 32;
/// The shortest frame of Ethernet, and the longest of jumbo frames, with their check sequence.
const FRAMES: RangeInclusive<u32> = 64..=9_622;

/// Rates that are more than nothing and can be counted.
const RATES: RangeInclusive<f64> = f64::from_bits(1)..=1e15;

/// `5 Mpps` as packets a second.
pub fn pps(text: &str) -> Result<f64, String> {
    let units = [("pps", 1.0), ("kpps", 1e3), ("Mpps", 1e6), ("Gpps", 1e9)];
    scaled(text, &units, RATES, "write packets per second with their unit, such as \"5 Mpps\"")
}

/// `100k` flows, or `100000`.
pub fn flows(text: &str) -> Result<f64, String> {
    let units = [("", 1.0), ("k", 1e3), ("M", 1e6)];
    scaled(text, &units, 1.0..=1e9, "write how many flows, such as 10000 or 10k")
}

/// `8.5`: watts, or money.
pub fn amount(text: &str) -> Result<f64, String> {
    scaled(text, &[("", 1.0), ("W", 1.0)], 0.0..=1e9, "write what a CPU takes, such as 8.5")
}

/// `40G` as bits a second.
pub fn bits_per_s(text: &str) -> Result<f64, String> {
    let units = [("M Mb/s", 1e6), ("G Gb/s", 1e9), ("T Tb/s", 1e12)];
    scaled(text, &units, RATES, "write the speed of a port with its unit, such as \"40G\"")
}

/// `64`, the bytes of a frame.
pub fn size(bytes: i64) -> Result<Frames, String> {
    let known = u32::try_from(bytes).ok().filter(|bytes| FRAMES.contains(bytes));
    known.map(Frames::of).ok_or_else(|| {
        let (least, most) = (FRAMES.start(), FRAMES.end());
        format!("a frame has {least} to {most} bytes with its check sequence; messages of a socket, as netperf counts, are no frames")
    })
}

/// `64:7,594:4,1518:1`: bytes, and how many of them among each other.
pub fn imix(text: &str) -> Result<Frames, String> {
    const HOW: &str = "write sizes and how many frames have each, such as \"64:7,594:4,1518:1\"";
    let part = |part: &str| {
        let (bytes, weight) = part.split_once(':').ok_or(HOW)?;
        let bytes: u32 = bytes.trim().parse().map_err(|_| HOW)?;
        size(i64::from(bytes))?;
        let weight: f64 = weight.trim().parse().map_err(|_| HOW)?;
        if weight > 0.0 && weight <= 1e9 { Ok((weight, bytes)) } else { Err(HOW.to_owned()) }
    };
    let parts: Vec<(f64, u32)> = text.split(',').take(MOST_SIZES + 1).map(part).collect::<Result<_, String>>()?;
    if parts.len() > MOST_SIZES {
        return Err(format!("a mix has at most {MOST_SIZES} sizes"));
    }
    Frames::mix(&parts).ok_or_else(|| HOW.to_owned())
}

/// `240+0.24`: cycles of a hop, and more for each byte.
pub fn hop(text: &str) -> Result<HopCost, String> {
    const HOW: &str = "write the cycles of a hop, and more for each byte, such as 240+0.24";
    let (cycles, cycles_per_byte) = sum(text).ok_or(HOW)?;
    hop_of(cycles, cycles_per_byte).ok_or_else(|| HOW.to_owned())
}

/// The same of two numbers; `None` if a hop would take no time, or an hour.
pub(super) fn hop_of(cycles: f64, cycles_per_byte: f64) -> Option<HopCost> {
    let is_cost = (1.0..1e9).contains(&cycles) && (0.0..1e6).contains(&cycles_per_byte);
    is_cost.then_some(HopCost { cycles, cycles_per_byte, spread: 1.0, source: None })
}

/// `14+0.02`: nanoseconds that either end of a ring takes for a frame, and more for each byte.
pub fn channel(text: &str) -> Result<ChannelCost, String> {
    const HOW: &str =
        "write the ns that an end of the channel takes for a frame, and more for each byte, such as 14+0.02";
    let (ns, ns_per_byte) = sum(text).ok_or(HOW)?;
    ChannelCost::given(ns, ns_per_byte).ok_or_else(|| HOW.to_owned())
}

/// `240+0.24` as two numbers; `240` alone has nothing more for each byte.
fn sum(text: &str) -> Option<(f64, f64)> {
    let (fixed, each) = text.split_once('+').unwrap_or((text, "0"));
    let number = |text: &str| split(text).filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value);
    number(fixed).zip(number(each))
}

/// `2.2`: the clock of a CPU in GHz, as cycles a second.
pub fn ghz(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value: &f64| (0.1..100.0).contains(value));
    value.map(|value| value * 1e9).ok_or_else(|| "write the clock of a CPU in GHz, such as 2.2".to_owned())
}

/// `3x8`: generation and lanes of a PCIe link.
pub fn pcie(text: &str) -> Result<(u8, u8), String> {
    const HOW: &str = "write generation and lanes of the link, such as 3x8";
    let (generation, lanes) = text.trim_start_matches("gen").split_once('x').ok_or(HOW)?;
    let read = generation.trim().parse().ok().zip(lanes.trim().parse().ok());
    read.filter(|(generation, lanes)| link_is_known(*generation, *lanes)).ok_or_else(|| HOW.to_owned())
}

/// Whether such a link exists.
pub(super) fn link_is_known(generation: u8, lanes: u8) -> bool {
    (1..=6).contains(&generation) && [1, 2, 4, 8, 12, 16, 32].contains(&lanes)
}

/// `128`: a payload or read request that PCIe knows.
pub fn payload(bytes: i64) -> Result<u32, String> {
    let known = u32::try_from(bytes).ok().filter(|bytes| (128..=4096).contains(bytes) && bytes.is_power_of_two());
    known.ok_or_else(|| "PCIe knows 128, 256, 512, 1024, 2048 and 4096 bytes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_units() {
        assert_eq!((pps("5 Mpps"), pps("37Mpps"), pps("800 pps")), (Ok(5e6), Ok(37e6), Ok(800.0)));
        assert_eq!((bits_per_s("40G"), bits_per_s("2.5 Gb/s")), (Ok(40e9), Ok(2.5e9)));
        for text in ["5", "5 M", "Mpps", "-5 Mpps", "5 mpps", "", "1e9 Mpps", "0 pps", "99999999999999999999 Gpps"] {
            assert!(pps(text).is_err(), "{text}");
        }
        assert!(bits_per_s("40").is_err() && bits_per_s("40 GB").is_err());
        assert_eq!((flows("10k"), flows("1_000"), amount("8.5 W")), (Ok(1e4), Ok(1e3), Ok(8.5)));
        assert!(["0", "", "k", "-1"].iter().all(|text| flows(text).is_err()) && amount("-1").is_err());
    }

    #[test]
    fn sizes_are_those_of_frames() {
        assert!(size(64).is_ok() && size(1518).is_ok() && size(9_622).is_ok());
        for bytes in [-1, 0, 60, 63, 65_536, i64::MAX] {
            assert!(size(bytes).unwrap_err().contains("netperf"), "{bytes}");
        }
        let mix = imix("64:7, 594:4,1518:1").unwrap();
        assert_eq!((mix.size_bytes(), mix.mix_name()), (None, Some("64:7,594:4,1518:1")));
        for text in ["", "64", "64:x", "64:0", "64:-1", "60:1", "64:1,,", "64:inf"] {
            assert!(imix(text).is_err(), "{text}");
        }
        assert!(imix(&"64:1,".repeat(40)).is_err());
    }

    #[test]
    fn a_hop_a_link_and_a_payload_are_read() {
        assert_eq!(hop("240+0.24").map(|hop| (hop.cycles, hop.cycles_per_byte)), Ok((240.0, 0.24)));
        assert_eq!(hop("250").map(|hop| hop.cycles_per_byte), Ok(0.0));
        assert_eq!(channel("14+0.02").map(|cost| (cost.ns, cost.ns_per_byte)), Ok((14.0, 0.02)));
        assert!(["", "0", "14 ns", "14+x"].iter().all(|text| channel(text).is_err()));
        assert!(["", "+", "0", "240+x", "240 cycles", "240+-1"].iter().all(|text| hop(text).is_err()));
        assert_eq!((pcie("3x8"), pcie("gen4x16")), (Ok((3, 8)), Ok((4, 16))));
        assert!(["3", "0x8", "7x8", "3x7", "x"].iter().all(|text| pcie(text).is_err()));
        assert!(payload(256).is_ok() && payload(64).is_err() && payload(300).is_err() && payload(1 << 40).is_err());
    }
}
