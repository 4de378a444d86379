//! Commands for the kernel's command line in the words of the host's distribution: rules type grubby, which Red Hat's have.
//!
//! ```text
//! grubby --update-kernel=ALL --args="X"  --Debian, Ubuntu, Proxmox-->  sed -i .. /etc/default/grub && update-grub
//! ```
//! Sources: grubby(8) 8.40; update-grub(8) and /etc/default/grub of Debian's and Ubuntu's grub2-common 2.06, whose
//! GRUB_CMDLINE_LINUX is one quoted line; grub2-mkconfig of SUSE; proxmox-boot-tool(8), Proxmox VE 8.2.

use host::Machine;

/// What kernels of a distribution have in their names, and how it writes its boot loader's configuration.
const DISTRIBUTIONS: &[(&[&str], &str)] = &[
    (&["-pve", "proxmox"], "(update-grub; proxmox-boot-tool refresh)"),
    (&["ubuntu", "debian", "-generic", "-lowlatency", "-amd64", "-arm64"], "update-grub"),
    (&["suse", "-default"], "grub2-mkconfig -o /boot/grub2/grub.cfg"),
];

const GRUBBY: &str = "grubby --update-kernel=ALL ";

/// Lines of a finding as the host has them.
pub(crate) fn spoken(machine: &Machine, lines: &mut [String]) {
    let kernel = machine.kernel.as_deref().unwrap_or_default().to_lowercase();
    let of_it = |(names, _): &&(&[&str], &str)| names.iter().any(|name| kernel.contains(name));
    let Some((_, write)) = DISTRIBUTIONS.iter().find(of_it) else { return };
    for line in lines {
        if let Some(rest) = line.strip_prefix(GRUBBY) {
            *line = edited(rest, write);
        }
    }
}

/// The value of a parameter of the kernel's command line; of several the last one counts.
pub fn parameter<'a>(command_line: &'a str, name: &str) -> Option<&'a str> {
    let of = |word: &'a str| word.strip_prefix(name)?.strip_prefix('=');
    command_line.split_whitespace().filter_map(of).next_back()
}

/// What makes a change outlast a reboot where the kernel is booted with another value: that one goes, for `to` where there is one; and the
/// way back.
pub fn booted_with(name: &str, now: &str, to: Option<&str>) -> [String; 2] {
    let (was, is) = (format!("{name}={now}"), to.map(|to| format!("{name}={to}")));
    let added = is.as_ref().map_or(String::new(), |is| format!(" --args=\"{is}\""));
    let removed = is.as_ref().map_or(String::new(), |is| format!("--remove-args=\"{is}\" "));
    [
        format!("{GRUBBY}--remove-args=\"{was}\"{added}   # else {was} is back after the next boot"),
        format!("{GRUBBY}{removed}--args=\"{was}\""),
    ]
}

/// The same as an edit of GRUB's defaults.
fn edited(rest: &str, write: &str) -> String {
    let (options, comment) = rest.split_once("   # ").map_or((rest, ""), |(options, comment)| (options, comment));
    let mut edits: Vec<String> = Vec::new();
    for option in ["--remove-args=", "--args="] {
        let Some((_, value)) = options.split_once(option) else { continue };
        let value = value.strip_prefix('"').map_or_else(
            || value.split(' ').next().unwrap_or_default(),
            |quoted| quoted.split('"').next().unwrap_or_default(),
        );
        match option {
            "--args=" => edits.push(format!("-e 's|^GRUB_CMDLINE_LINUX=\"|&{value} |'")),
            _ => edits.extend(value.split(' ').map(|word| format!("-e 's|\\b{word}\\b *||'"))),
        }
    }
    let comment = if comment.is_empty() { String::new() } else { format!("   # {comment}") };
    format!("sed -i {} /etc/default/grub && {write}{comment}", edits.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_gets_the_words_of_its_distribution() {
        let of = |kernel: &str, line: &str| {
            let machine = Machine { kernel: Some(kernel.to_owned()), ..Machine::default() };
            let mut lines = [line.to_owned()];
            spoken(&machine, &mut lines);
            lines[0].clone()
        };
        let adds = "grubby --update-kernel=ALL --args=\"nohz_full=4-7 skew_tick=1\"   # then reboot";
        assert_eq!(of("Linux version 5.14.0-427.el9.x86_64 (Red Hat)", adds), adds);
        assert_eq!(
            of("6.8.0-45-generic", adds),
            "sed -i -e 's|^GRUB_CMDLINE_LINUX=\"|&nohz_full=4-7 skew_tick=1 |' /etc/default/grub && update-grub   # then reboot"
        );
        let changes = "grubby --update-kernel=ALL --remove-args=a=1 --args=\"a=2\"";
        assert_eq!(
            of("6.8.12-1-pve", changes),
            "sed -i -e 's|\\ba=1\\b *||' -e 's|^GRUB_CMDLINE_LINUX=\"|&a=2 |' /etc/default/grub && (update-grub; proxmox-boot-tool refresh)"
        );
    }
}
