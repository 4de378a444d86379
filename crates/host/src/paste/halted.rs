//! Why a VM stands still, or a thread of it: `virsh domstate --reason`, `virsh domblkerror`, pools of `lvs` and file systems of `df` that are
//! full, and what stalld complains of.
//!
//! ```text
//! paused (I/O error)          vda: no space          thinpool vg0 twi-aotzD- 800.00g 100.00 41.22
//! stalld[1804]: qemu-kvm-48211 starved on CPU 14 for 61 seconds
//! ```
//! Sources: virsh(1) (domstate, domblkerror), libvirt 10.0; lvs(8) and lvmthin(7) of LVM 2.03; df(1) of coreutils 9.1; stalld(8) 1.19.

use super::totals::number;
use super::{Pasted, Text};
use base::number::{counted, plain};

/// Reasons that `virsh domstate --reason` and QEMU's monitor have for a VM that an error stopped, and what to look at.
const REASONS: [(&str, &str); 6] = [
    (
        "paused (I/O error)",
        "a disk of it failed: `virsh domblkerror DOMAIN` names it; the guest goes on with `virsh resume` once that is mended",
    ),
    (
        "VM status: paused (io-error)",
        "a disk of it failed, `info block` names them; the guest goes on with `cont` once that is mended",
    ),
    ("paused (crashed)", "its guest crashed"),
    ("crashed (panicked)", "its guest's kernel panicked"),
    ("VM status: paused (internal-error)", "KVM or QEMU could not go on: the VM's log has the registers"),
    ("VM status: paused (guest-panicked)", "its guest's kernel panicked"),
];

/// A VM that an error stopped, or the disk at fault below `virsh domblkerror`.
pub(super) fn state(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let line = text.at(at);
    let asked = |command: &str| at > 0 && text.at(at - 1).contains(command);
    if let Some((reason, why)) = REASONS.iter().find(|(reason, _)| line == *reason) {
        pasted.quote("state", "the VM", reason, text.place(at));
        pasted.summarize(format!("The VM is {}: {why}.", reason.trim_start_matches("VM status: ")), text.place(at));
        return 1;
    }
    const ERRORS: [&str; 2] = ["no space", "unspecified error"];
    let of = |line: usize| {
        text.at(line).split_once(": ").filter(|(disk, error)| !disk.contains(' ') && ERRORS.contains(error))
    };
    if !(asked("domblkerror") && of(at).is_some()) {
        return 0;
    }
    let mut end = at;
    while let Some((disk, error)) = of(end) {
        pasted.quote("error of a disk", disk, error, text.place(end));
        let why = if error == ERRORS[0] { "what it is stored on is full" } else { "the host's log says which" };
        pasted.summarize(format!("Disk {disk} stopped the VM with {error}: {why}."), text.place(end));
        end += 1;
    }
    end - at
}

/// From how full on a pool is told, in percent: one that grows by itself does so at 70 to 100 (lvmthin(7), thin_pool_autoextend_threshold).
const FULL: f64 = 95.0;

/// `LV VG Attr LSize Pool Origin Data% Meta%` of `lvs`, and a row for each volume.
pub(super) fn lvs(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let head: Vec<&str> = text.at(at).split_whitespace().collect();
    if !(head.starts_with(&["LV", "VG", "Attr", "LSize"]) && head.contains(&"Data%")) {
        return 0;
    }
    let mut end = at + 1;
    loop {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        let [name, group, attributes, size, rest @ ..] = &cells[..] else { break };
        if attributes.len() != 10 {
            break;
        }
        let shares: Vec<f64> = rest.iter().filter_map(|cell| number(cell)).collect();
        let told = match shares[..] {
            [data, metadata, ..] => format!("{size}, data {} % full, metadata {} %", plain(data), plain(metadata)),
            [data] => format!("{size}, {} % used", plain(data)),
            [] => (*size).to_owned(),
        };
        pasted.quote("logical volume", &format!("{group}/{name}"), &told, text.place(end));
        // Pools begin with a `t`; a volume inside one is not full because its own blocks are all used.
        if let ('t', Some(worst)) = (
            attributes.chars().next().unwrap_or('-'),
            shares.iter().copied().reduce(f64::max).filter(|worst| *worst >= FULL),
        ) {
            let said = format!(
                "Thin pool {group}/{name} is {} % full: writes of VMs on it fail once it is whole, which pauses them.",
                plain(worst)
            );
            pasted.summarize(said, text.place(end));
        }
        end += 1;
    }
    if end == at + 1 { 0 } else { end - at }
}

/// `Filesystem Size Used Avail Use% Mounted on` of `df`, and its rows.
pub(super) fn df(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let head = text.at(at);
    if !(head.starts_with("Filesystem ") && head.contains(" Use% ") && head.ends_with("Mounted on")) {
        return 0;
    }
    let mut end = at + 1;
    loop {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        let [.., available, used, place] = cells[..] else { break };
        let Some(share) = used.strip_suffix('%').and_then(number).filter(|_| place.starts_with('/')) else { break };
        pasted.quote("file system", place, &format!("{} % used, {available} left", plain(share)), text.place(end));
        if share >= 100.0 {
            pasted.summarize(
                format!(
                    "The file system at {place} is full: a VM whose disk grows there is paused at its next new block."
                ),
                text.place(end),
            );
        }
        end += 1;
    }
    if end == at + 1 { 0 } else { end - at }
}

/// Lines of stalld: who was ready and was not run, and whom it helped.
pub(super) fn stalld(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let of = |line: usize| {
        text.at(line).split_once("stalld[").or_else(|| text.at(line).split_once("stalld: ")).map(|(_, told)| told)
    };
    let starved = |line: usize| -> Option<(&str, &str, u64)> {
        let (who, told) = of(line)?.split_once(" starved on CPU ")?;
        let (cpu, told) = told.split_once(" for ")?;
        Some((who.rsplit(": ").next()?, cpu, told.split_whitespace().next()?.parse().ok()?))
    };
    let is_boost = |line: usize| of(line).is_some_and(|told| told.contains("boosted "));
    if starved(at).is_none() && !is_boost(at) {
        return 0;
    }
    let (mut end, mut longest): (usize, Option<(u64, String)>) = (at, None);
    let mut cases = 0;
    while starved(end).is_some() || is_boost(end) {
        if let Some((who, cpu, seconds)) = starved(end) {
            cases += 1;
            pasted.quote("stalld", who, &format!("ready on CPU {cpu} for {seconds} s, and not run"), text.place(end));
            if longest.as_ref().is_none_or(|(most, _)| seconds > *most) {
                longest = Some((seconds, format!("{who} was ready on CPU {cpu} for {seconds} s and was not run")));
            }
        }
        end += 1;
    }
    if let Some((_, said)) = longest {
        let more =
            if cases > 1 { format!(", the longest of {}", counted(cases, "case", "cases")) } else { String::new() };
        pasted.summarize(format!("stalld: {said}{more}: others of a higher priority kept that CPU, such as a real-time task or a thread that polls."), text.place(at));
    }
    end - at
}

#[cfg(test)]
mod tests {
    use crate::paste::whole_summaries_of;

    #[test]
    fn a_paused_vm_and_the_full_pool_below_it_are_told() {
        let said = whole_summaries_of(
            "# virsh domstate db01 --reason\npaused (I/O error)\n\n# virsh domblkerror db01\nvda: no space\n\n  LV  VG  Attr       LSize   Pool Origin Data%  Meta%\n  thinpool vg0 twi-aotzD- 800.00g             100.00 41.22\n  db01     vg0 Vwi-aotz-- 900.00g thinpool    99.11\n",
        );
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].starts_with("The VM is paused (I/O error)"), "{said:?}");
        assert_eq!(said[1], "Disk vda stopped the VM with no space: what it is stored on is full.");
        assert!(said[2].starts_with("Thin pool vg0/thinpool is 100 % full"), "{said:?}");
    }

    #[test]
    fn a_full_file_system_is_told_and_one_with_room_is_not() {
        let told = whole_summaries_of(
            "Filesystem      Size  Used Avail Use% Mounted on\n/dev/md0        7.3T  7.3T     0 100% /var/lib/libvirt\n/dev/md1        1.0T  0.2T  0.8T  20% /\n",
        );
        assert_eq!(
            told,
            [
                "The file system at /var/lib/libvirt is full: a VM whose disk grows there is paused at its next new block."
            ]
        );
    }

    #[test]
    fn who_starved_longest_is_told_of_all_cases() {
        let told = whole_summaries_of(
            "Oct 12 04:11:02 c3 stalld[1804]: qemu-kvm-48211 starved on CPU 14 for 61 seconds\nOct 12 04:11:03 c3 stalld[1804]: boosted pid 48211 using SCHED_DEADLINE\nOct 12 04:13:40 c3 stalld[1804]: ksoftirqd/14-102 starved on CPU 14 for 62 seconds\n",
        );
        assert!(
            told[0].starts_with(
                "stalld: ksoftirqd/14-102 was ready on CPU 14 for 62 s and was not run, the longest of 2 cases"
            ),
            "{told:?}"
        );
    }
}
