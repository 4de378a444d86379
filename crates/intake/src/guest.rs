//! Does a text say that it is of a guest?
//!
//! A guest shows itself by what only guests have: a hypervisor that the kernel or `lscpu` names, stolen time, a disk of virtio, a clock that
//! the hypervisor keeps; or whoever writes says so in front of it. A text that shows somebody running VMs is of a host, whatever else it
//! says: then nobody knows which lines are whose.
//! ```text
//! From inside my VPS:          guest$ iperf3 -c 10.0.0.9          Hypervisor vendor:  KVM          %Cpu(s):  .. 53.0 st          vda: ios=0/25044
//! ```
//! Sources: lscpu(1); arch/x86/kernel/cpu/hypervisor.c and drivers/block/virtio_blk.c (vda), Linux 6.12; top(1), vmstat(8), mpstat(1);
//! systemd-detect-virt(1).

use crate::normal::Line;

/// What stands in texts of those who run VMs.
const HOSTS: &[&str] = &[
    "/kvm",
    "virsh",
    "vhost-",
    "qemu",
    "libvirt",
    "<domain",
    "kvm_",
    "kubevirt",
    "virt-launcher",
    "kubepods",
    "machine.slice",
    "ovs-",
    "pve",
    "vcpupin",
    "openstack",
    "incus",
    "xl ",
];

/// What whoever writes calls a guest.
const GUESTS: &[&str] = &["guest", "vm", "vps", "l1", "l2", "instance", "droplet"];

/// How a program calls the hypervisor that it runs on.
const DETECTED: &[&str] =
    &["kvm", "qemu", "vmware", "microsoft", "xen", "oracle", "amazon", "google", "bhyve", "parallels"];

/// The guest that a text is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guest {
    /// The first line that says so.
    pub line: u32,
    /// 1, or what that line says.
    pub level: u8,
}

/// Which guest all of these lines are of, where one says so.
pub(crate) fn guest_of(lines: &[Line]) -> Option<Guest> {
    let is_of_host = |line: &Line| {
        let small = line.text.to_ascii_lowercase();
        HOSTS.iter().any(|sign| small.contains(sign))
    };
    let mut steals = Steals::default();
    let says = |(at, line): (usize, &Line)| {
        let text = line.text.trim();
        let has = steals.tells(text) || is_prompt(text) || is_prose(text) || is_fact(text);
        let has = has || at.checked_sub(1).is_some_and(|above| is_detected(lines[above].text.trim(), text));
        has.then(|| Guest { line: line.number, level: level(text) })
    };
    let first = lines.iter().enumerate().find_map(says)?;
    (!lines.iter().any(is_of_host)).then_some(first)
}

/// The level that a line names, in the words of people who nest guests.
fn level(text: &str) -> u8 {
    let small = text.to_ascii_lowercase();
    let has = |name: &str| small.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word == name);
    match () {
        () if has("l3") => 3,
        () if has("l2") || has("nested") => 2,
        () => 1,
    }
}

/// `From inside my VPS:`, `In the guest (4 vCPUs):`: a heading that says where.
fn is_prose(text: &str) -> bool {
    let small = text.to_ascii_lowercase();
    let words: Vec<&str> =
        small.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_guest = |word: &&str| GUESTS.contains(word);
    let is_inside = |(at, word): (usize, &&str)| match *word {
        "inside" | "within" => words[at + 1..].iter().take(3).any(is_guest),
        "in" | "on" | "from" => at == 0 && words[1..].iter().take(2).any(is_guest),
        _ => at == 0 && words.len() == 1 && is_guest(word),
    };
    text.ends_with(':') && words.iter().enumerate().any(is_inside)
}

/// `guest$ iperf3`, `[root@guest ~]# top`: a prompt whose name says it.
fn is_prompt(text: &str) -> bool {
    let Some(end) = text.find(['$', '#', '%']).filter(|_| crate::commands::typed(text).is_some()) else { return false };
    let mut words = text[..end].split(|letter: char| !letter.is_ascii_alphanumeric());
    words.any(|word| matches!(word, "guest" | "vps"))
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
        guest_of(&Normal::of(text.as_bytes()).lines).map(|guest| guest.line)
    }

    #[test]
    fn a_line_may_name_the_level() {
        let level = |text: &str| guest_of(&Normal::of(text.as_bytes()).lines).map(|guest| guest.level);
        assert_eq!(level("inside the L2 guest:\n"), Some(2));
        assert_eq!(level("Within the nested VM:\n"), Some(2));
        assert_eq!(level("Within the VM:\n"), Some(1));
    }

    #[test]
    fn a_guest_shows_itself_or_is_called_one() {
        let vmstat = " r  b us sy id wa st gu\n 1  0  4  2 92  1  0  0\n 3  0 31  7  9  0 53  0\n";
        for (text, line) in [
            ("From inside my VPS:\nx\n", 1),
            ("hello\ninside the guest (4 vCPUs, 1-3 isolated), host is not isolated:\n", 2),
            ("In the VM:\n", 1),
            ("[root@guest ~]# top -b\n", 1),
            ("guest$ iperf3 -c 10.0.0.9\n", 1),
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
            "please run it from the guest, too\n",
            "sda 1.0 2.0\n",
            "",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
