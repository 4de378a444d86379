//! Checks of VMs that are offered Hyper-V's interface, as Windows is: what of it their command lines leave out.
//!
//! Names: docs/system/i386/hyperv.rst, QEMU 9.0. QEMU takes `hv_time` for `hv-time`, and `=on` behind any of them.

use super::hit;
use crate::model::Model;
use base::number::{list, many};
use base::shell::quoted;
use base::{Evidence, Severity};
use facts::rule::Hit;

/// What saves any such guest exits, or keeps its clock steady when its host moves.
const ALWAYS: &[&str] =
    &["hv-time", "hv-frequencies", "hv-reenlightenment", "hv-stimer", "hv-stimer-direct", "hv-avic", "hv-xmm-input"];

/// What saves exits of its own guests.
const NESTED: &[&str] = &["hv-emsr-bitmap", "hv-tlbflush-direct"];

const ALIASES: &[(&str, &str)] = &[("hv-apicv", "hv-avic")];

/// VMs with some of it, and not all.
pub(crate) fn hyperv(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for machine in &model.machines {
        for pid in machine.facts.snapshot.vms() {
            let Some(text) = machine.facts.snapshot.read(&format!("proc/{pid}/cmdline")) else { continue };
            let words: Vec<&str> = text.split('\0').collect();
            let Some(cpu) = words.iter().position(|word| *word == "-cpu").and_then(|at| words.get(at + 1)) else {
                continue;
            };
            let missing = missing(cpu);
            if missing.is_empty() {
                continue;
            }
            let flags = many(missing.len() as u64, "enlightenment");
            let process = format!("process {pid}");
            let title = format!(
                "VM {} of {} has Hyper-V enlightenments, but not {flags}",
                name(&words).unwrap_or(&process),
                machine.id
            );
            let missing: Vec<String> = missing.into_iter().map(str::to_owned).collect();
            let evidence = vec![
                Evidence::new(format!("missing: {}", list(&missing)), format!("proc/{pid}/cmdline, -cpu")),
                Evidence::new(format!("-cpu {cpu}"), format!("proc/{pid}/cmdline")),
            ];
            let mut hit = hit(machine, Severity::Info, title, evidence);
            hit.subject = format!("{}.{pid}", machine.id);
            let all = format!("{cpu},{}", missing.join(","));
            hit.fix =
                vec![format!("qemu-system-x86_64 -cpu {} ...   # QEMU reports what else a flag needs", quoted(&all))];
            hit.undo = vec![format!("qemu-system-x86_64 -cpu {} ...", quoted(cpu))];
            // Only libvirt calls it so on a command line; others have no such definition.
            if let Some(name) = name(&words).filter(|_| words.iter().any(|word| word.starts_with("guest="))) {
                hit.fix.push(format!("virsh edit {}   # the same in <features><hyperv>", quoted(name)));
            }
            hits.push(hit);
        }
    }
    hits
}

/// What a `-cpu` leaves out; nothing if it offers none of the interface, or all that there is.
fn missing(cpu: &str) -> Vec<&'static str> {
    let flags: Vec<String> = cpu
        .split(',')
        .filter(|flag| !flag.ends_with("=off"))
        .map(|flag| flag.trim_start_matches('+').trim_end_matches("=on").replace('_', "-"))
        .map(|flag| ALIASES.iter().find(|(other, _)| *other == flag).map_or(flag, |(_, name)| (*name).to_owned()))
        .collect();
    let has = |name: &str| flags.iter().any(|flag| flag == name);
    if has("hv-passthrough") || !flags.iter().any(|flag| flag.starts_with("hv-")) {
        return Vec::new();
    }
    let hypervisor = ["host", "max", "vmx", "svm"].into_iter().any(has) && !cpu.contains("vmx=off");
    let wanted = ALWAYS.iter().chain(NESTED.iter().filter(|_| hypervisor));
    wanted.copied().filter(|name| !has(name)).collect()
}

/// The VM's name on its command line.
fn name<'a>(words: &[&'a str]) -> Option<&'a str> {
    let given = words.iter().position(|word| *word == "-name").and_then(|at| words.get(at + 1));
    let given = given.and_then(|text| text.split(',').find(|part| !part.contains('=') || part.starts_with("guest=")));
    given.map(|part| part.trim_start_matches("guest="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_vm_with_some_of_it_lacks_the_rest() {
        assert!(missing("host").is_empty() && missing("host,hv-passthrough").is_empty());
        let some = missing("Skylake-Server,hv_time,hv-stimer=on,hv-stimer-direct,hv-apicv,hv-frequencies=off");
        assert_eq!(some, ["hv-frequencies", "hv-reenlightenment", "hv-xmm-input"]);
        let nested = missing("host,hv-time");
        assert!(nested.contains(&"hv-emsr-bitmap") && !nested.contains(&"hv-time"), "{nested:?}");
        assert!(!missing("host,vmx=off,hv-time").contains(&"hv-emsr-bitmap"));
        let all = [&["host"], ALWAYS, NESTED].concat().join(",");
        assert!(missing(&all).is_empty());
    }

    #[test]
    fn a_vm_is_called_as_its_command_line_says() {
        assert_eq!(name(&["-name", "guest=web,debug-threads=on"]), Some("web"));
        assert_eq!(name(&["-name", "web,process=x"]), Some("web"));
        assert_eq!(name(&["-m", "512"]), None);
    }
}
