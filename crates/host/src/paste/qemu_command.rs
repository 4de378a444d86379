//! A command line of QEMU, out of `ps`, `pgrep -a`, a script or a log: one VM, however somebody folded it.

use super::{Pasted, Text, pieces};
use crate::machine::{domain_of, vm_named_in};

/// A process of QEMU with its whole command, out of `ps` or `pgrep -a` without a head or a prompt; or the command alone, as logs have it.
pub(super) fn command(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let is_program = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or_default();
        name.starts_with("qemu-system-") || matches!(name, "qemu-kvm" | "kvm")
    };
    if !text.at(at).split_whitespace().any(is_program) {
        return 0;
    }
    let (whole, lines) = unfolded(text, at);
    // A log quotes what a shell would take apart.
    let words: Vec<&str> = whole.split_whitespace().map(|word| word.trim_matches('\'')).collect();
    let Some(program) = words.iter().position(|word| is_program(word)) else { return 0 };
    // Whoever talks about it goes on with other words.
    if !words.get(program + 1).is_some_and(|word| word.starts_with('-')) {
        return 0;
    }
    let has = |option: &str| words[program..].contains(&option);
    if !(has("-smp") || has("-m") || has("-machine"))
        || !(has("-name") || has("-cpu") || has("-accel") || has("-enable-kvm"))
    {
        return 0;
    }
    let command = words[program..].join(" ");
    let pid = words[..program].iter().find_map(|word| word.parse::<i32>().ok());
    let named = vm_named_in(&command).or_else(|| pid.map(|pid| format!("process-{pid}")));
    let name = named.clone().unwrap_or_else(|| "VM".to_owned());
    let mut told = domain_of(&command.replace(' ', "\0"), &name, &text.place(at));
    told.pid = pid;
    pieces::add(told, named.is_some(), &text.place(at), pasted);
    lines
}

/// Lines that a command may be folded into: by `fold`, a mailer or a shell.
const MOST_FOLDS: usize = 256;

/// Lines within a quoted value that a mailer broke.
const MOST_QUOTED: usize = 4;

/// Whether a quoted value is open at the end: `-smbios 'type=1,product=OpenStack`.
fn is_quoted(command: &str) -> bool {
    command.matches('\'').count() % 2 == 1
}

/// A command that somebody folded, on one line, and how many lines that were: behind an option whose value is missing, a backslash, or before
/// another option.
fn unfolded(text: &Text<'_>, at: usize) -> (String, usize) {
    let mut whole = text.at(at).to_owned();
    let is_option = |word: &str| {
        let name = word.strip_prefix('-').unwrap_or_default();
        name.starts_with(|first: char| first.is_ascii_alphabetic())
    };
    let mut end = at + 1;
    while end < text.lines.len().min(at + MOST_FOLDS) && !text.at(end).is_empty() {
        let next = text.at(end);
        let is_open = whole.ends_with('\\')
            || whole.rsplit(' ').next().is_some_and(is_option)
            || is_quoted(&whole) && (end..end + MOST_QUOTED).any(|line| text.at(line).contains('\''));
        // A mailer leaves the backslash of a line that is too long on a line of its own.
        if !is_open && !is_option(next) && next != "\\" {
            break;
        }
        whole.truncate(whole.trim_end_matches('\\').trim_end().len());
        whole.push(' ');
        whole.push_str(next);
        end += 1;
    }
    (whole, end - at)
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn a_command_of_qemu_is_a_vm_with_or_without_what_stands_before_it() {
        let command = "/usr/libexec/qemu-kvm -name guest=mail,debug-threads=on -m 2048 -smp 3 -device e1000,netdev=n0 -netdev tap,id=n0";
        for (before, pid) in [("qemu 8123 1 12 Mar03 ? 01:02:03 ", Some(8123)), ("8123 ", Some(8123)), ("", None)] {
            let machine = read(&[("t".to_owned(), format!("this one:\n{before}{command}\n"))]);
            let domain = &machine.domains[0];
            assert_eq!((domain.name.as_str(), domain.vcpus, domain.pid), ("mail", Some(3), pid), "{before}");
            assert_eq!(domain.interfaces[0].model.as_deref(), Some("e1000"));
        }
        let said = read(&[("t".to_owned(), "we start qemu-kvm with -m 4096 -cpu host\n".to_owned())]);
        assert!(said.domains.is_empty());
        let listed = read(&[("t".to_owned(), format!("    PID COMMAND\n   8123 {command}\n"))]);
        assert_eq!(listed.domains[0].vcpus, Some(3), "{:?}", listed.strange);
    }

    #[test]
    fn a_folded_command_is_one_vm() {
        let command = "qemu-kvm -name guest=web -machine \npc-q35 -m 2048 -smp 3 -netdev \nvhost-user,chardev=c,id=n0 -device \nvirtio-net-pci,netdev=n0 \n-msg timestamp=on\n\nMore words.\n";
        let machine = read(&[("t".to_owned(), command.to_owned())]);
        assert_eq!((machine.domains.len(), machine.domains[0].vcpus), (1, Some(3)), "{:?}", machine.domains);
        assert_eq!((machine.sources[0].1, machine.sources[0].2), (5, 1), "{:?}", machine.strange);
        let shell = command.replace(" \n", " \\\n");
        assert_eq!(read(&[("t".to_owned(), shell)]).domains[0].interfaces.len(), 1);
        let broken = "qemu-kvm -name guest=web -object secret,id=k0,file=/var/lib/k.aes\n\\\n-smbios 'type=1,manufacturer=OpenStack Foundation,product=OpenStack\n\
            Nova,family=Virtual\nMachine' \\\n-m 2048 \\\n-smp 3 \\\n-netdev tap,id=n0,vhost=on \\\n-device virtio-net-pci,netdev=n0\nit's slow\n";
        let machine = read(&[("t".to_owned(), broken.to_owned())]);
        assert_eq!(
            (machine.domains[0].vcpus, machine.domains[0].workers(), machine.sources[0].2),
            (Some(3), (1, 1), 1)
        );
        let one = "qemu-kvm -name guest=web -m 2048\nqemu-kvm -name guest=mail -m 2048\n";
        assert_eq!(read(&[("t".to_owned(), one.to_owned())]).domains.len(), 2);
    }
}
