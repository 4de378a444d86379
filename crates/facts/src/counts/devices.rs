//! Whose a port or an address is that a guest accesses: `0x608:PIN` of `perf kvm stat report --event=ioport`, `0xfed000f0:R` of `--event=mmio`.
//!
//! Sources: hw/acpi/ich9.c and piix4.c (the timer lies 8 above the block, which SeaBIOS places at 0x600 and older ones at 0xb000), hw/i386/pc.c,
//! hw/timer/hpet.c, hw/nvram/fw_cfg.c and hw/i386/vmport.c, QEMU 9.0; PC/AT ports: drivers/i2c/busses and arch/x86/include/asm, Linux 6.12.

/// A device of a PC at one port or address, or at several in a row.
#[derive(Debug, PartialEq, Eq)]
pub struct Device {
    pub first: u64,
    pub last: u64,
    pub is_port: bool,
    pub what: &'static str,
    /// Whether the guest reads the time there.
    pub is_clock: bool,
}

/// All that are known.
fn devices() -> impl Iterator<Item = Device> {
    let rows = include_str!("devices.tsv").lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|row| {
        let [first, last, kind, clock, what] = row.split('\t').collect::<Vec<_>>().try_into().ok()?;
        let [first, last] = [first, last].map(|place| u64::from_str_radix(place, 16).ok());
        Some(Device { first: first?, last: last?, is_port: kind == "port", is_clock: clock == "clock", what })
    })
}

/// The device that an access is to, by its name in a table of accesses.
pub fn device(name: &str) -> Option<Device> {
    let (place, way) = name.strip_prefix("0x")?.split_once(':')?;
    let place = u64::from_str_radix(place, 16).ok()?;
    let is_port = matches!(way, "PIN" | "POUT");
    devices().find(|device| device.is_port == is_port && (device.first..=device.last).contains(&place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_one_device() {
        assert!(devices().count() > 20 && devices().zip(devices().skip(1)).all(|(one, next)| one.last < next.first));
        assert!(device("0x608:PIN").is_some_and(|device| device.is_clock));
        assert!(device("0xfed000f0:R").is_some_and(|device| device.is_clock));
        assert!(device("0x3f8:POUT").is_some_and(|device| !device.is_clock));
        assert_eq!((device("0xc050:POUT"), device("HLT"), device("0x608:R")), (None, None, None));
    }
}
