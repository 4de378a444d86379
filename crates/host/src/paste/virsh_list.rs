//! Which VMs libvirt has and which of them run: `virsh list --all`.
//!
//! ```text
//!  Id   Name   State
//! --------------------
//!  1    web    running
//!  -    old    shut off
//! ```
//! A name tells neither threads nor a definition, so it makes no VM: what runs is counted beside those that are described. Source:
//! virsh(1), list, libvirt 10.0.

use super::{Pasted, Text};
use crate::machine::LISTED;

/// States of virsh(1); the name, which may hold spaces, stands before one.
const STATES: [&str; 8] =
    ["running", "idle", "paused", "in shutdown", "shut off", "crashed", "pmsuspended", "no state"];

/// Its head, and all rows.
pub(super) fn list(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    if text.at(at).split_whitespace().collect::<Vec<_>>() != ["Id", "Name", "State"] {
        return 0;
    }
    let mut end = at + 1;
    while end < text.lines.len() {
        let line = text.at(end).trim();
        let is_rule = !line.is_empty() && line.bytes().all(|byte| byte == b'-');
        match (is_rule, row(line)) {
            (true, _) => {}
            (_, Some((name, state))) => pasted.quote(LISTED, name, state, text.place(end)),
            _ => break,
        }
        end += 1;
    }
    end - at
}

fn row(line: &str) -> Option<(&str, &str)> {
    let (id, rest) = line.split_once(' ')?;
    let state = STATES.into_iter().find(|state| rest.ends_with(state))?;
    let name = rest.strip_suffix(state)?.trim();
    (!name.is_empty() && (id == "-" || id.parse::<u32>().is_ok())).then_some((name, state))
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn what_runs_is_counted_and_makes_no_vm() {
        let text = " Id   Name     State\n----------------------\n 1    web 2    running\n 7    db       paused\n -    old      shut off\n\nhello\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!((machine.sources[0].2, machine.domains.len(), machine.listed_running()), (1, 0, 1));
        let told: Vec<_> = machine.quoted.iter().map(|one| (one.subject.as_str(), one.value.as_str())).collect();
        assert_eq!(told, [("web 2", "running"), ("db", "paused"), ("old", "shut off")]);
    }
}
