//! What a VM's disk may do at most: `virsh blkdeviotune DOMAIN DISK`.
//!
//! ```text
//! total_iops_sec : 600
//! read_iops_sec  : 0          no limit
//! ```
//! Source: virsh(1), blkdeviotune, libvirt 10.0.

use super::{Pasted, Text, prompt};
use crate::machine::Disk;

/// `total_iops_sec : 600`, of any of its lines.
fn pair(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim();
    let is_limit = ["total_", "read_", "write_", "size_"].iter().any(|begin| name.starts_with(begin))
        && ["bytes_sec", "iops_sec"].iter().any(|kind| name.contains(kind));
    (is_limit || name == "group_name").then(|| (name, value.trim()))
}

/// All of its lines, of the disk that the command names.
pub(super) fn limits(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    if pair(text.at(at)).is_none_or(|(name, _)| name == "group_name") {
        return 0;
    }
    let lines = (at..text.lines.len()).map_while(|line| Some((line, pair(text.at(line))?)));
    let (mut end, mut told) = (at, Vec::new());
    for (line, (name, value)) in lines {
        end = line + 1;
        if value.parse::<f64>().is_ok_and(|value| value > 0.0) {
            told.push((line, name, value));
        }
    }
    let asked = at.checked_sub(1).and_then(|above| prompt::command(text.at(above))).unwrap_or_default();
    let behind = asked.iter().position(|word| *word == "blkdeviotune").map_or(&[][..], |verb| &asked[verb + 1..]);
    let names: Vec<&str> =
        behind.iter().take_while(|word| **word != "|").filter(|word| !word.starts_with('-')).copied().collect();
    let [vm, target, ..] = names[..] else {
        for (line, name, value) in told {
            pasted.quote(name, "a disk that is not named", value, text.place(line));
        }
        return end - at;
    };
    let limits: Vec<String> = told.iter().map(|(_, name, value)| format!("{name} {value}")).collect();
    let place = text.place(told.first().map_or(at, |(line, ..)| *line));
    if let Some(domain) = pasted.domain(vm) {
        let throttle = (!limits.is_empty()).then(|| limits.join(", "));
        match domain.disks.iter_mut().find(|disk| disk.target == target) {
            Some(known) => known.throttle = throttle,
            None => domain.disks.push(Disk { place, target: target.to_owned(), throttle, ..Disk::default() }),
        }
    }
    end - at
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn a_limit_is_of_the_disk_that_the_command_names() {
        let text = "# virsh blkdeviotune web vdb\ntotal_bytes_sec: 0\ntotal_iops_sec : 600\nread_iops_sec  : 0\nsize_iops_sec  : 0\ngroup_name     : drive-virtio-disk1\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        let disk = &machine.domains[0].disks[0];
        assert_eq!(
            (disk.target.as_str(), disk.throttle.as_deref(), disk.place.as_str()),
            ("vdb", Some("total_iops_sec 600"), "t:3")
        );
        let free = read(&[("t".to_owned(), text.replace("600", "0"))]);
        assert_eq!(free.domains[0].disks[0].throttle, None, "0 is no limit");
    }
}
