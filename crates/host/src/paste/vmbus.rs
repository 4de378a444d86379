//! `lsvmbus -vv`: which CPU of a Hyper-V guest each channel of a device interrupts.

use super::{Pasted, Text};
use crate::machine::Channel;

/// `VMBUS ID 14: Class_ID = {..} - [Synthetic network adapter]` and the channels below it.
pub(super) fn channels(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(rest) = text.at(at).strip_prefix("VMBUS ID") else { return 0 };
    let device = rest.rsplit(" - ").next().unwrap_or_default().trim_matches(['[', ']', ' ']);
    let mut end = at + 1;
    let mut id = String::new();
    while end < text.lines.len() && !text.at(end).is_empty() && !text.at(end).starts_with("VMBUS ID") {
        let value = |key: &str| -> Option<u32> {
            let digits = text.at(end).split_once(key)?.1.trim_start_matches(['=', ' ']);
            digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        let cpu = value("target_cpu").or_else(|| value("target_vp"));
        match (value("Rel_ID"), cpu) {
            (Some(number), Some(cpu)) => pasted.machine.channels.push(Channel {
                device: id.clone(),
                kind: device.to_owned(),
                number,
                cpu: Some(text.fact(cpu, end)),
                ..Channel::default()
            }),
            _ if text.at(end).starts_with("Device_ID") => {
                id = text.at(end).split('{').nth(1).unwrap_or_default().trim_end_matches('}').to_owned();
            }
            _ if text.at(end).contains('=') || text.at(end).contains(':') => {}
            _ => break,
        }
        end += 1;
    }
    end - at
}
