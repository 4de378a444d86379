//! What the evidence of a machine cannot tell, each with what would.

use super::culprits::sums;
use super::model::Model;
use super::section::shows_work;
use ::host::machine::{Domain, NAMED_OR_HOST_MODEL, NicKind, Role, Thread};
use base::number::{list, many};
use base::shell::quoted;
use base::{CpuSet, Unknown};

/// What this evidence cannot tell.
pub(super) fn of(model: &Model) -> Vec<Unknown> {
    let machine = &model.machine;
    let mut unknown = Vec::new();
    let mut say = |what: &str, amount: Option<f64>, unit: &str, text: String| {
        unknown.push(Unknown { what: what.to_owned(), amount, unit: unit.to_owned(), text });
    };
    // Without topology nothing can be placed, so this comes first; without VMs nobody asks for a place.
    let is_asked = !model.pasted || !machine.domains.is_empty() || shows_work(model);
    if is_asked && machine.topology.cores_unknown {
        let text = "Which CPUs share a core is unknown, so no placement was computed; also paste `lscpu -e`.";
        say("cores", None, "", text.to_owned());
    } else if is_asked && model.pasted && machine.topology.cpus.is_empty() {
        let text = "The CPUs, cores and nodes are unknown, so no placement was computed; also paste `lscpu -e`.";
        say("topology", None, "", text.to_owned());
    } else if is_asked && model.pasted && machine.topology.nodes().is_empty() {
        let text = "Which NUMA node each CPU is on is unknown; also paste `lscpu -e=CPU,CORE,SOCKET,NODE`.";
        say("nodes", None, "", text.to_owned());
    }
    machine.strange.iter().take(8).for_each(|line| say("not_understood", None, "", line.clone()));
    if machine.domains.is_empty() {
        // Nobody's waiting is asked about; what would have told of VMs is.
        let files = |line: &&String| !line.starts_with("proc/") && !line.starts_with("sys/");
        machine.unread.iter().filter(files).take(8).for_each(|line| say("unread", None, "", line.clone()));
        return unknown;
    }
    for domain in machine.domains.iter().filter(|domain| domain.vcpu_count() == 0) {
        // A number above that of a thread nobody saw: there are more than those that were seen.
        let of_domain = machine.threads.iter().filter(|thread| thread.vm.as_deref() == Some(&domain.name));
        let number = |role: Role| if let Role::Vcpu(number) = role { Some(number) } else { None };
        let seen: CpuSet = of_domain.filter_map(|thread| number(thread.role)).collect();
        let least = seen.last().map_or(0, |last| last + 1);
        if seen.len() < least as usize {
            let text = format!(
                "{} has {} or more; threads were seen for these numbers alone: {seen}.",
                domain.name,
                many(least.into(), "vCPU")
            );
            say("vcpus", Some(f64::from(least)), "vCPUs", text);
        }
    }
    let is_told = |domain: &&Domain| domain.cpu_mode.as_ref().is_some_and(|mode| mode.value == NAMED_OR_HOST_MODEL);
    for domain in machine.domains.iter().filter(is_told).take(8) {
        let name = &domain.name;
        let text = format!(
            "Whether {name} gets the host's CPU model is unknown: QEMU was started with {NAMED_OR_HOST_MODEL}, which look alike \
             there; also paste `virsh dumpxml {}`.",
            quoted(name)
        );
        say("cpu_mode", None, "", text);
    }
    if !machine.process_memory.is_empty() && machine.domains.iter().any(|domain| domain.pid.is_none()) {
        let pids: Vec<String> = machine.process_memory.iter().take(8).map(|process| process.pid.to_string()).collect();
        let text = format!(
            "Which VM runs in {} is unknown, so whose memory it is, too; also paste `pgrep -af guest=`.",
            list(&pids)
        );
        say("processes", Some(machine.process_memory.len() as f64), "processes", text);
    }
    let is_silent =
        |thread: &&Thread| thread.role != Role::Other && thread.wait_share.is_none() && sums(machine, thread).is_none();
    let silent = machine.threads.iter().filter(is_silent).count();
    if silent > 0 {
        let text = format!(
            "How long {} waited for a CPU is unknown; `kvmscope check` on the host measures it.",
            many(silent as u64, "thread")
        );
        say("waiting", Some(silent as f64), "threads", text);
    }
    let mut nics: Vec<&str> = Vec::new();
    // The peer of a vhostuser interface is a switch, whose ports have nodes of their own.
    for interface in machine.domains.iter().flat_map(|domain| &domain.interfaces).filter(|one| one.kind != "vhostuser")
    {
        let cards = machine.cards_of(interface);
        nics.extend(
            cards.iter().filter(|nic| nic.node.is_none() && nic.kind != NicKind::Tap).map(|nic| nic.name.as_str()),
        );
        // A source that nobody told of may be a card; a tap is none, and its bridge was not told.
        let source = interface.source.as_deref();
        nics.extend(
            source.filter(|source| machine.nics.iter().all(|nic| nic.name != *source) && interface.kind != "ethernet"),
        );
    }
    nics.sort_unstable();
    nics.dedup();
    if !nics.is_empty() && machine.topology.nodes().len() > 1 {
        let files: Vec<String> = nics.iter().map(|nic| format!("/sys/class/net/{nic}/device/numa_node")).collect();
        let files: Vec<_> = files.iter().map(|file| quoted(file)).collect();
        let text = format!("The node of {} is unknown: cat {}.", nics.join(", "), files.join(" "));
        say("nic_node", Some(nics.len() as f64), "devices", text);
    }
    let loose: Vec<&str> = machine
        .domains
        .iter()
        .filter(|domain| domain.memory_nodes.is_none() && !machine.vm_memory.contains_key(&domain.name))
        .map(|domain| domain.name.as_str())
        .collect();
    if !loose.is_empty() && machine.topology.nodes().len() > 1 {
        let text = format!(
            "Which node holds the memory of {} is unknown; on that host run: kvmscope snapshot --numa-maps.",
            loose.join(", ")
        );
        say("memory_node", Some(loose.len() as f64), "VMs", text);
    }
    if machine.irqs.is_empty() {
        say(
            "interrupts",
            None,
            "",
            "Which CPUs handle interrupts is unknown: provide /proc/interrupts twice, and \
             /proc/irq/*/smp_affinity_list."
                .to_owned(),
        );
    }
    if machine.topology.has_siblings() {
        say(
            "smt_yield",
            None,
            "",
            "The throughput of two busy sibling threads was not measured here; 1.25 times that of one is assumed."
                .to_owned(),
        );
    }
    if let (Some(waited), Some(now)) = (model.unexplained(), model.proposal.now()) {
        let modelled = model.proposal.missing(now);
        let text = format!(
            "The model does not explain all that was measured: starved threads were {waited:.2} CPUs short, and by the \
             model {modelled:.2} CPUs are. Its predictions for other placements are as uncertain."
        );
        say("model_disagrees", Some(waited - modelled), "CPUs", text);
    }
    if let Some((found, least)) = model.proposal.gap() {
        let text = format!(
            "A better placement may exist: the best one found is {found:.2} CPUs short, and the lower bound is \
             {least:.2}."
        );
        say("better_placement", Some(found - least), "CPUs", text);
    }
    // Files that a device's driver does not answer say nothing about placement, nor do KVM's counters.
    let elsewhere = ["sys/class/net", "sys/kernel/debug"];
    for line in machine.unread.iter().filter(|line| elsewhere.iter().all(|path| !line.starts_with(path))).take(8) {
        say("unread", None, "", line.clone());
    }
    unknown
}
