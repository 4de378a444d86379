//! Channels of Hyper-V's VMBus: each interrupts one CPU, chosen when the channel opens or written to its file `cpu`.
//!
//! Files: Documentation/ABI/stable/sysfs-bus-vmbus, Linux 6.12. Classes: include/linux/hyperv.h, Linux 6.12; names as
//! lsvmbus (tools/hv) prints them.

use super::Samples;
use crate::machine::{Channel, Fact};

const DEVICES: &str = "sys/bus/vmbus/devices";

/// Classes of devices that carry load.
const CLASSES: &[(&str, &str)] = &[
    ("f8615163-df3e-46c5-913f-f2d2f965ed0e", "Synthetic network adapter"),
    ("ba6163d9-04a1-4d29-b605-72e2ffb1dc7f", "Synthetic SCSI Controller"),
    ("2f9bcc4a-0069-4af3-b76b-6fd0be528cda", "Synthetic fiber channel adapter"),
    ("32412632-86cb-44a2-9b5c-50d1417354f5", "Synthetic IDE Controller"),
    ("44c4f61d-4444-4400-9d52-802e27ede19f", "PCI Express pass-through"),
];

/// All channels with the CPUs that they interrupt.
pub(super) fn channels(samples: &Samples<'_>) -> Vec<Channel> {
    let snapshot = samples.last;
    let mut channels = Vec::new();
    for device in snapshot.names(DEVICES) {
        let class = snapshot.line(&format!("{DEVICES}/{device}/class_id")).unwrap_or_default();
        let class = class.trim_matches(['{', '}']).to_lowercase();
        let kind = CLASSES.iter().find(|known| known.0 == class).map_or(class.as_str(), |known| known.1);
        for number in snapshot.names(&format!("{DEVICES}/{device}/channels")) {
            let of = |file: &str| format!("{DEVICES}/{device}/channels/{number}/{file}");
            let Ok(number) = number.parse() else { continue };
            let cpu = snapshot.line(&of("cpu")).and_then(|cpu| cpu.parse().ok());
            channels.push(Channel {
                device: device.clone(),
                kind: kind.to_owned(),
                number,
                cpu: cpu.map(|cpu| Fact::new(cpu, of("cpu"))),
                interrupts: snapshot.line(&of("interrupts")).and_then(|count| count.parse().ok()),
                per_s: samples.rate(&of("interrupts")),
            });
        }
    }
    channels
}
