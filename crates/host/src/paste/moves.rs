//! Disks that Proxmox copies to another node while their VM runs, as the log of its task tells it.
//!
//! ```text
//! 2026-11-14 19:20:06 starting storage migration
//! drive mirror is starting for drive-scsi0 with bandwidth limit: 10240 KB/s
//! drive-scsi0: transferred 11.0 GiB of 500.0 GiB (2.20%) in 18m 44s
//! ```
//! The limit counts KiB. Sources: PVE/QemuMigrate.pm and PVE/QemuServer.pm (`qemu_drive_mirror`, `qemu_drive_mirror_monitor`), PVE/Tools.pm
//! (`render_duration`), Proxmox VE 8.2.

use super::{Pasted, Text};
use crate::machine::DiskMove;

/// What a task says besides, behind its date.
const STEPS: [&str; 14] = [
    "starting online/live migration on",
    "set migration ",
    "starting migration of VM",
    "found local disk",
    "starting VM",
    "volume '",
    "start remote tunnel",
    "ssh tunnel ver",
    "starting storage migration",
    "copying local disk images",
    "use dedicated network address",
    "switching mirror jobs",
    "drive mirror",
    "all 'mirror' jobs",
];

/// How lines of a disk begin.
const MIRROR: &str = "drive mirror is starting for drive-";

/// A line of such a log.
pub(super) fn line(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let line = text.at(at);
    if let Some(rest) = line.strip_prefix(MIRROR) {
        let (disk, limit) = rest.split_once(" with bandwidth limit: ").unwrap_or((rest, ""));
        let kib = limit.strip_suffix(" KB/s").and_then(|kib| kib.trim().parse::<f64>().ok());
        let Some(moved) = disk_of(pasted, disk.trim()) else { return 1 };
        moved.limit_bytes_per_s = kib.filter(|kib| *kib > 0.0).map(|kib| text.fact(kib * 1_024.0, at));
        return 1;
    }
    if let Some((disk, told)) = line.strip_prefix("drive-").and_then(|rest| rest.split_once(": ")) {
        return progress(text, at, (disk, told), pasted);
    }
    // Between its dated lines.
    if line.starts_with("all 'mirror' jobs") {
        return 1;
    }
    let Some(rest) = behind_date(line) else { return 0 };
    if !rest.contains(": start migration to nbd:") && !STEPS.iter().any(|step| rest.starts_with(step)) {
        return 0;
    }
    if let Some(rest) = rest.strip_prefix("starting migration of VM ") {
        let (vm, to) = rest.split_once(' ').unwrap_or((rest, ""));
        pasted.quote("Proxmox migrates", &format!("VM {vm}"), to, text.place(at));
    }
    1
}

/// `transferred 11.0 GiB of 500.0 GiB (2.20%) in 18m 44s`, or that the job is ready.
fn progress(text: &Text<'_>, at: usize, (disk, told): (&str, &str), pasted: &mut Pasted) -> usize {
    let Some(rest) = told.strip_prefix("transferred ") else {
        return usize::from(
            told.contains("mirror-job")
                || ["Cancelling block job", "Complet"].iter().any(|begin| told.starts_with(begin)),
        );
    };
    let read = || {
        let (sizes, took) = rest.split_once(") in ")?;
        let (sent, all) = sizes.split_once(" of ")?;
        Some((size(sent)?, size(all.split('(').next()?)?, seconds(took.split(',').next()?)?))
    };
    let Some((sent, all, seconds)) = read() else { return 0 };
    let place = text.place(at);
    if rest.ends_with("ready") {
        let told = format!("{} in {seconds} s", base::number::bytes(all));
        pasted.quote("disk copied", disk, &told, text.place(at));
    }
    if let Some(moved) = disk_of(pasted, disk) {
        (moved.sent_bytes, moved.total_bytes, moved.seconds, moved.place) = (sent, all, seconds, place);
    }
    1
}

/// Disks of a task: more are not kept.
const MOST_DISKS: usize = 64;

/// The disk of that name, made if it is not there yet.
fn disk_of<'a>(pasted: &'a mut Pasted, disk: &str) -> Option<&'a mut DiskMove> {
    let moves = &mut pasted.machine.disk_moves;
    let known = moves.iter().position(|known| known.disk == disk);
    if known.is_none() && moves.len() < MOST_DISKS {
        moves.push(DiskMove { disk: disk.to_owned(), ..DiskMove::default() });
    }
    let last = moves.len().checked_sub(1)?;
    let at = known.unwrap_or(last);
    moves.get_mut(at).filter(|found| found.disk == disk)
}

/// What stands behind `2026-11-14 19:20:06`.
fn behind_date(line: &str) -> Option<&str> {
    let (date, rest) = line.split_once(' ')?;
    let (time, rest) = rest.split_once(' ')?;
    let is_made_of =
        |text: &str, by: char| text.split(by).count() == 3 && text.bytes().all(|b| b.is_ascii_digit() || b == by as u8);
    (is_made_of(date, '-') && is_made_of(time, ':')).then_some(rest)
}

/// `11.0 GiB`, in bytes.
fn size(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let number: f64 = words.next()?.parse().ok()?;
    let power = ["B", "KiB", "MiB", "GiB", "TiB"].iter().position(|unit| words.clone().next() == Some(unit))?;
    let bytes = number * 1_024_f64.powi(power as i32);
    (0.0..1e18).contains(&bytes).then_some(bytes)
}

/// `1h 18m 44s`, in seconds.
fn seconds(text: &str) -> Option<f64> {
    let part = |word: &str| -> Option<f64> {
        let (number, unit) = word.split_at_checked(word.len().checked_sub(1)?)?;
        let scale = match unit {
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        Some(number.parse::<u32>().ok()? as f64 * scale)
    };
    let parts: Option<Vec<f64>> = text.split_whitespace().map(part).collect();
    parts.filter(|parts| !parts.is_empty()).map(|parts| parts.iter().sum())
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn a_disk_that_is_copied_tells_how_far_it_is_and_its_limit() {
        let text = "2026-11-14 19:20:01 starting migration of VM 204 to node 'pve3' (10.0.0.13)\n\
            2026-11-14 19:20:06 scsi0: start migration to nbd:10.0.0.13:60001:exportname=drive-scsi0\n\
            drive mirror is starting for drive-scsi0 with bandwidth limit: 10240 KB/s\n\
            drive-scsi0: transferred 11.0 MiB of 500.0 GiB (0.00%) in 1s\n\
            drive-scsi0: transferred 1.0 GiB of 2.0 TiB (2.20%) in 1h 1m 4s, still busy\nthe drive-scsi0: is slow\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 1, "{:?}", machine.strange);
        let [moved] = &machine.disk_moves[..] else { panic!("one disk") };
        assert_eq!((moved.disk.as_str(), moved.seconds, moved.place.as_str()), ("scsi0", 3_664.0, "t:5"));
        assert_eq!((moved.sent_bytes, moved.total_bytes), (1_073_741_824.0, 2_199_023_255_552.0));
        assert_eq!(moved.limit_bytes_per_s.as_ref().map(|limit| limit.value), Some(10_485_760.0));
    }
}
