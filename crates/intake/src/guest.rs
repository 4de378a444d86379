//! Does a text say that it is of a guest?
//!
//! A guest shows itself by what only guests have: a hypervisor that the kernel or `lscpu` names, stolen time, a disk of virtio, a clock that
//! the hypervisor keeps. A text that shows somebody running VMs is of a host, whatever else it says: then nobody knows which lines are whose,
//! unless headings tell (`origin`).
//! ```text
//! Hypervisor vendor:  KVM          %Cpu(s):  .. 53.0 st          vda: ios=0/25044
//! ```
//! Sources: lscpu(1); arch/x86/kernel/cpu/hypervisor.c and drivers/block/virtio_blk.c (vda), Linux 6.12; top(1), vmstat(8), mpstat(1);
//! systemd-detect-virt(1).

use crate::normal::Line;

/// What stands in texts of those who run VMs.
const HOSTS: &str = "/kvm|virsh|vhost-|qemu|libvirt|<domain|kvm_|kubevirt|virt-launcher|kubepods|machine.slice|ovs-|pve|vcpupin|openstack|\
    incus|xl ";

/// How a program calls the hypervisor that it runs on.
const DETECTED: &[&str] =
    &["kvm", "qemu", "vmware", "microsoft", "xen", "oracle", "amazon", "google", "bhyve", "parallels"];

/// The first of these lines that only a guest has.
pub(crate) fn guest_of(lines: &[Line]) -> Option<u32> {
    let is_of_host = |line: &Line| {
        let small = line.text.to_ascii_lowercase();
        HOSTS.split('|').any(|sign| small.contains(sign))
    };
    let mut steals = Steals::default();
    let says = |(at, line): (usize, &Line)| {
        let text = line.text.trim();
        let has = steals.tells(text) || is_fact(text);
        let has = has || at.checked_sub(1).is_some_and(|above| is_detected(lines[above].text.trim(), text));
        has.then_some(line.number)
    };
    let first = lines.iter().enumerate().find_map(says)?;
    (!lines.iter().any(is_of_host)).then_some(first)
}

/// What programs say of the machine below them.
fn is_fact(text: &str) -> bool {
    let is_disk = || {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default().trim_end_matches(':');
        let is_name =
            name.len() == 3 && name.starts_with("vd") && name.ends_with(|last: char| last.is_ascii_lowercase());
        is_name && words.next().is_some_and(|next| next.starts_with("ios=") || next.parse::<f64>().is_ok())
    };
    let flags = || text.split_once(':').filter(|(name, _)| matches!(name.trim(), "flags" | "Flags"));
    text.starts_with("Hypervisor vendor:")
        || text.contains("Hypervisor detected: ")
        || text.contains("using sched offset of") && text.contains("kvm-clock")
        || text == "kvm-clock"
        || text.contains("clocksource: ") && text.contains("kvm-clock")
        || flags().is_some_and(|(_, flags)| flags.split_whitespace().any(|flag| flag == "hypervisor"))
        || is_disk()
}

/// What `systemd-detect-virt` prints below its command.
fn is_detected(above: &str, text: &str) -> bool {
    above.ends_with("systemd-detect-virt") && DETECTED.contains(&text)
}

/// Columns and heads that tell of stolen time.
#[derive(Default)]
struct Steals {
    /// Where the last header has it, and how many columns it has.
    column: Option<(usize, usize)>,
}

impl Steals {
    /// Whether a line says that time was stolen, which only a guest can see.
    fn tells(&mut self, text: &str) -> bool {
        let number = |word: &str| word.replace(',', ".").parse::<f64>().ok();
        let words: Vec<&str> = text.split_whitespace().collect();
        // `%Cpu(s): 71.2 us, 18.3 sy, .. 12.6 st`.
        if text.contains("Cpu(s)") {
            let of = words.windows(2).find(|pair| pair[1].trim_end_matches(',') == "st");
            let joined = words.iter().find_map(|word| word.trim_end_matches(',').strip_suffix("%st"));
            return of.map(|pair| pair[0]).or(joined).and_then(number).is_some_and(|share| share > 0.0);
        }
        if let Some(column) = words.iter().position(|word| matches!(*word, "%steal" | "st")) {
            self.column = Some((column, words.len()));
            return false;
        }
        let Some((column, count)) = self.column else { return false };
        if words.len() != count {
            self.column = self.column.filter(|_| words.is_empty());
            return false;
        }
        number(words[column]).is_some_and(|share| share > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Normal;

    fn of(text: &str) -> Option<u32> {
        guest_of(&Normal::of(text.as_bytes()).lines)
    }

    #[test]
    fn a_guest_shows_itself() {
        let vmstat = " r  b us sy id wa st gu\n 1  0  4  2 92  1  0  0\n 3  0 31  7  9  0 53  0\n";
        for (text, line) in [
            ("Hypervisor vendor:     KVM\n", 1),
            ("$ systemd-detect-virt\nkvm\n", 2),
            ("  vda: ios=0/25044, merge=0/9\n", 1),
            ("%Cpu(s): 71.2 us,  8.1 id,  0.0 si, 12.6 st\n", 1),
            (vmstat, 3),
            ("flags : fpu vme hypervisor lahf_lm\n", 1),
        ] {
            assert_eq!(of(text), Some(line), "{text}");
            assert_eq!(of(&format!("{text}$ virsh list\n")), None, "who runs VMs is a host: {text}");
        }
    }

    #[test]
    fn who_says_nothing_of_it_is_none() {
        for text in [
            "The guest is slow.\nfio in the guest says the same\n",
            "%Cpu(s): 71.2 us,  8.1 id,  0.0 st\n",
            " r  b us sy id wa st\n 1  0  4  2 92  1  0\n",
            "sda 1.0 2.0\n",
            "",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
