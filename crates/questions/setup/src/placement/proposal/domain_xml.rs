//! A domain's elements under a plan, for whoever keeps definitions in files: `virsh edit`, or a provisioning tool.
//!
//! Elements and their order: libvirt.org/formatdomain.html. What the plan does not decide is not here: disks, interfaces, and
//! `numatune`, because no placement moves memory.

use super::{Plan, Proposal};
use base::CpuSet;
use host::machine::{Domain, Role};
use std::fmt::Write;

pub fn domain_xml(proposal: &Proposal, plan: &Plan, domain: &Domain) -> String {
    let units = || (0..plan.places.len()).filter(|unit| proposal.subjects[*unit].vm == domain.name);
    let place = |role: Role| {
        let unit = units().find(|unit| proposal.subjects[*unit].role == role)?;
        Some(&plan.places[unit])
    };
    let mut vcpus: Vec<(u32, &CpuSet)> = units()
        .filter_map(|unit| match proposal.subjects[unit].role {
            Role::Vcpu(vcpu) => Some((vcpu, &plan.places[unit])),
            _ => None,
        })
        .collect();
    vcpus.sort_unstable();
    let count = domain.vcpu_count().max(vcpus.last().map_or(0, |(last, _)| last + 1));
    let mut xml = String::new();
    let mut line = |text: String| {
        let _ = writeln!(xml, "{text}");
    };
    line("<domain>".to_owned());
    line(format!("  <name>{}</name>", escaped(&domain.name)));
    line(format!("  <vcpu placement='static'>{count}</vcpu>"));
    let iothreads = domain.iothread_numbers();
    if !iothreads.is_empty() {
        line(format!("  <iothreads>{}</iothreads>", iothreads.len()));
    }
    if !domain.iothread_ids.is_empty() {
        line("  <iothreadids>".to_owned());
        iothreads.iter().for_each(|number| line(format!("    <iothread id='{number}'/>")));
        line("  </iothreadids>".to_owned());
    }
    line("  <cputune>".to_owned());
    vcpus.iter().for_each(|(vcpu, cpus)| line(format!("    <vcpupin vcpu='{vcpu}' cpuset='{cpus}'/>")));
    if let Some(cpus) = place(Role::Emulator) {
        line(format!("    <emulatorpin cpuset='{cpus}'/>"));
    }
    for number in iothreads {
        // Without an element of its own an iothread has the set of the vCPUs, not of the emulator.
        if let Some(cpus) = place(Role::IoThread(number)).or_else(|| place(Role::Emulator)) {
            line(format!("    <iothreadpin iothread='{number}' cpuset='{cpus}'/>"));
        }
    }
    line("  </cputune>".to_owned());
    line("</domain>".to_owned());
    xml
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;")
}
