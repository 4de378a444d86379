//! All of it as one Section.

use super::advise::advise;
use super::model::Model;
use super::proposal::{Advice, Verdict};
use super::{figure, host, hypotheses, preemptors, rivals, tables};
use crate::placements::placements;
use ::host::machine::{Domain, NAMED_OR_HOST_MODEL, NicKind, Role, Thread, Topology};
use base::in_order;
use base::number::{duration, list, many};
use base::shell::quoted;
use base::{CpuSet, Level, Section, Severity, Unknown};
use facts::{Answer, Case, Error};

/// The question this folder answers.
pub const QUESTION: &str = "Which threads compete for which CPU, and what should change?";

/// Answers it; `None` if nothing was told of any machine's threads or CPUs.
///
/// # Errors
/// If the user wishes for something that no machine has; what cannot be read is a problem and costs nobody else's answer.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let placements = placements(case);
    let (models, problems) = &*placements;
    if models.is_empty() && problems.is_empty() && case.machines().unopened == 0 {
        return Ok(None);
    }
    super::asked::check(models, &case.given().queries.get().cloned().unwrap_or_default())?;
    let mut section = section(models);
    preemptors::add(case, models, &mut section);
    Ok(Some(Answer { section, problems: problems.clone() }))
}

/// The elements of each domain's libvirt XML under the placement of that rank, 1 for the first.
pub fn definitions(case: &Case, rank: u64) -> Vec<String> {
    let placements = placements(case);
    let of_rank = tables::definitions(&placements.0).filter(|definition| definition.rank == rank);
    of_rank.map(|definition| definition.xml).collect()
}

pub fn section(models: &[Model]) -> Section {
    let mut section = Section::new("placement", QUESTION);
    section.about = models.iter().flat_map(about).collect();
    section.findings = in_order(models.iter().flat_map(|model| advise(model, models.len() > 1)).collect());
    section.summary = summary(models, &section);
    section.tables = [tables::proposal, tables::plans, tables::threads, tables::cpus, tables::domain_xml]
        .map(|table| table(models))
        .into();
    let first = [rivals::table(models), hypotheses::table(models), host::table(models)];
    section.tables.splice(0..0, first.into_iter().filter(|table| !table.rows.is_empty()));
    section.figures = models.iter().filter_map(figure::topology).collect();
    section.unknown = models.iter().flat_map(unknown).collect();
    if vms(models) == 0 {
        // Nobody has a place to choose: the tables stay for programs, and are no news for people.
        section
            .tables
            .iter_mut()
            .filter(|table| ![tables::THREADS.name, host::HOST.name].contains(&table.spec.name))
            .for_each(|table| table.shown = None);
    }
    section
}

fn about(model: &Model) -> Vec<String> {
    let (machine, topology) = (&model.machine, &model.machine.topology);
    let count = |wanted: fn(&Role) -> bool| machine.threads.iter().filter(|thread| wanted(&thread.role)).count() as u64;
    let cpus = topology_of(topology);
    // A VM of which nobody told a vCPU has some nevertheless.
    let vcpus = match count(|role| matches!(role, Role::Vcpu(_))) {
        0 if !machine.domains.is_empty() => "an unknown number of vCPUs".to_owned(),
        vcpus => many(vcpus, "vCPU"),
    };
    // Who read no process has not counted VMs.
    let is_known = |thread: &Thread| thread.vm.is_some() || thread.role != Role::Other;
    let is_counted = machine.lists_processes || !machine.domains.is_empty() || machine.threads.iter().any(is_known);
    let vms = match is_counted {
        true => format!(
            "{} with {}, {}",
            many(machine.domains.len() as u64, "VM"),
            vcpus,
            many(count(|role| matches!(role, Role::Vhost)), "vhost thread"),
        ),
        false => "no process was read, so its VMs are not known".to_owned(),
    };
    // Of which level a text is that shows neither VMs nor a hypervisor below, nobody told.
    let whose = if model.level == Level::Unknown { String::new() } else { format!("{}: ", model.id) };
    let mut lines = vec![format!("{whose}{cpus}; {vms}")];
    if let Some(span) = machine.span_ns {
        let (appeared, vanished) = machine.passing;
        lines.push(format!(
            "{}: two samples, {} apart; {} started between them, {vanished} ended",
            model.id,
            duration(span as f64),
            many(appeared, "thread")
        ));
    }
    for run in &machine.throughput {
        let way = if run.direction.is_empty() { String::new() } else { format!(" {}", run.direction) };
        let streams = match run.streams {
            0 => String::new(),
            count => format!(" in {}", many(u64::from(count), "stream")),
        };
        let again =
            run.retransmits.map_or(String::new(), |count| format!(", {} retransmitted", many(count, "segment")));
        lines.push(format!(
            "{whose}iperf3 measured {:.3} Gbit/s{way}{streams} over {:.0} s{again} ({})",
            run.bits_per_s.value / 1e9,
            run.seconds,
            run.bits_per_s.place
        ));
    }
    if model.pasted {
        let (read, lost) =
            machine.sources.iter().fold((0, 0), |(read, lost), source| (read + source.1, lost + source.2));
        let texts = many(machine.sources.len() as u64, "pasted text");
        let lost = if lost > 0 { format!(", {lost} not understood") } else { String::new() };
        lines.push(format!("{texts}: {} used here{lost}", many(read, "line")));
    }
    lines
}

/// `96 CPUs on 48 cores, 2 packages, 16 last-level caches and 8 nodes`; packages and caches where they are several.
fn topology_of(topology: &Topology) -> String {
    if topology.cpus.is_empty() {
        return "CPUs unknown".to_owned();
    }
    let (packages, caches, nodes) = (topology.package_count(), topology.last_cache_count(), topology.nodes().len());
    let mut kinds = Vec::new();
    if !topology.cores_unknown {
        kinds.push(many(topology.cores().len() as u64, "core"));
    }
    kinds.extend((packages > 1).then(|| many(packages as u64, "package")));
    kinds.extend((caches > packages.max(1)).then(|| many(caches as u64, "last-level cache")));
    kinds.extend((nodes > 0).then(|| many(nodes as u64, "node")));
    let on = if kinds.is_empty() { String::new() } else { format!(" on {}", list(&kinds)) };
    let cores = if topology.cores_unknown { ", cores unknown" } else { "" };
    let nodes = if nodes == 0 { ", nodes unknown" } else { "" };
    format!("{}{on}{cores}{nodes}", many(topology.cpus.len() as u64, "CPU"))
}

fn vms(models: &[Model]) -> usize {
    models.iter().map(|model| model.machine.domains.len()).sum()
}

/// The answer as a person would say it.
fn summary(models: &[Model], section: &Section) -> String {
    let worst =
        section.findings.iter().find(|finding| finding.severity >= Severity::Medium && finding.rule.starts_with("PLC"));
    if vms(models) == 0 {
        let of_host = worst.map(|finding| format!("{}. ", sentence_case(&finding.title)));
        let carried = models.iter().flat_map(|model| &model.machine.throughput).map(|run| {
            let way = if run.direction.is_empty() { String::new() } else { format!(" {}", run.direction) };
            format!("{:.2} Gbit/s{way}", run.bits_per_s.value / 1e9)
        });
        let carried: Vec<String> = carried.collect();
        let carried = (!carried.is_empty()).then(|| format!("iperf3 measured {}. ", list(&carried)));
        let told = format!("{}{}", of_host.unwrap_or_default(), carried.unwrap_or_default());
        return match (
            models.iter().any(|model| model.pasted) && !models.iter().any(shows_work),
            section.findings.first(),
        ) {
            (false, _) => format!("{told}{}", no_vm(models)),
            (true, _) if !told.is_empty() => told.trim_end().to_owned(),
            (true, Some(first)) => format!("{}.", sentence_case(&first.title)),
            (true, None) => "What the text tells stands below; no rule finds anything wrong in it.".to_owned(),
        };
    }
    let mut sentences = Vec::new();
    match worst {
        Some(finding) => sentences.push(format!("{}.", sentence_case(&finding.title))),
        None if models.iter().any(shows_threads) => {
            sentences.push(format!("Nothing here shows threads of VMs competing for a CPU{}.", untold(models)));
        }
        None => sentences.push(format!("Whether threads of VMs compete for a CPU is unknown{}.", untold(models))),
    }
    if let Some(finding) = worst.filter(|finding| !finding.changes.is_empty()) {
        sentences.push(format!("Run: {}.", finding.fix[0]));
        let verdicts = models.iter().map(|model| Advice::of(&model.machine, &model.proposal).take(&finding.changes));
        let computed = verdicts.into_iter().find_map(|verdict| match verdict {
            Verdict::Holds(now, after) if after < now => Some((now, after)),
            Verdict::Holds(..) | Verdict::Unknown | Verdict::Loses => None,
        });
        sentences.push(match computed {
            Some((now, after)) => {
                format!("By the model, {after:.2} CPUs are short then, {now:.2} now; measure before and after.")
            }
            None => "What it gains was not computed; measure before and after.".to_owned(),
        });
    }
    let doubts = section.findings.iter().filter(|finding| finding.rule.starts_with("EVD")).count() as u64;
    if doubts > 0 {
        sentences.push(format!("The evidence contradicts itself in {}.", many(doubts, "point")));
    }
    sentences.join(" ")
}

/// Whether threads of VMs were seen to run or wait, or where they may run is known.
fn shows_threads(model: &Model) -> bool {
    let of_vms = model.machine.threads.iter().filter(|thread| thread.vm.is_some());
    let mut of_vms = of_vms.chain(model.machine.threads.iter().filter(|thread| thread.role == Role::Pmd));
    of_vms.any(|thread| thread.run_share.is_some() || thread.wait_share.is_some() || thread.affinity.is_some())
}

/// What pasted text says nothing of, as the end of a sentence.
fn untold(models: &[Model]) -> String {
    use ::host::machine::GaugeKind;
    let Some(model) = models.iter().find(|model| model.pasted) else { return String::new() };
    let machine = &model.machine;
    let has = |kinds: &[GaugeKind]| machine.gauges.iter().any(|gauge| kinds.contains(&gauge.kind));
    let memory = has(&[GaugeKind::MemoryAvailable, GaugeKind::SwappedIn, GaugeKind::PressureSome])
        || !machine.vm_memory.is_empty()
        || !machine.process_memory.is_empty()
        || machine.domains.iter().any(|domain| domain.memory_bytes.is_some())
        || machine.quoted.iter().any(|quoted| quoted.what.starts_with("balloon."));
    let disks = has(&[GaugeKind::DiskBusy, GaugeKind::DiskRead, GaugeKind::PressureSome])
        || !machine.total_use.is_empty()
        || machine.domains.iter().any(|domain| !domain.disks.is_empty());
    let interrupts = !machine.irqs.is_empty() || !machine.cpu_use.is_empty();
    let told = [("memory", memory), ("disks", disks), ("interrupts", interrupts)];
    let missing: Vec<String> = told.iter().filter(|(_, told)| !told).map(|(name, _)| (*name).to_owned()).collect();
    match missing.is_empty() {
        true => String::new(),
        false => format!("; of {} it says nothing", list(&missing)),
    }
}

/// A title as the beginning of a sentence; names of VMs and threads stay as they are.
fn sentence_case(title: &str) -> String {
    let first = title.split_whitespace().next().unwrap_or_default();
    let is_word = first.bytes().all(|byte| byte.is_ascii_lowercase());
    let articles = [
        "a",
        "the",
        "tasks",
        "pages",
        "steal",
        "time",
        "threads",
        "memory",
        "interrupts",
        "kernel",
        "disk",
        "isolated",
    ];
    match is_word && articles.contains(&first) {
        true => format!("{}{}", first[..1].to_uppercase(), &title[1..]),
        false => title.to_owned(),
    }
}

/// Whether it shows cores or what runs on all CPUs, which asks who takes them; a card or interrupts ask nothing of VMs, nor does a guest.
fn shows_work(model: &Model) -> bool {
    let machine = &model.machine;
    let is_guest = model.level > Level::L0 && model.level != Level::Unknown;
    let shows_cores = !machine.topology.cpus.is_empty() && !machine.topology.cores_unknown;
    let is_silent =
        !shows_cores && machine.screens.is_empty() && machine.cpu_use.is_empty() && machine.total_use.is_empty();
    !is_guest && !is_silent
}

/// Why there is nothing to say of VMs: only who saw all processes knows that there is none.
fn no_vm(models: &[Model]) -> &'static str {
    if models.iter().any(|model| model.pasted) {
        "Which threads of VMs run where is unknown. If this is of a host with VMs, also paste `top -H -b -n 1 -w 200` and who may run where: `virsh vcpupin` and \
         `emulatorpin`, or `taskset -acp PID`."
    } else if models.iter().all(|model| model.machine.lists_processes) {
        "No VM was found, so no VM's threads can compete for CPUs."
    } else {
        "No process was read, so whether VMs run here is unknown."
    }
}

/// What this evidence cannot tell.
fn unknown(model: &Model) -> Vec<Unknown> {
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
    let silent =
        machine.threads.iter().filter(|thread| thread.role != Role::Other && thread.wait_share.is_none()).count();
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
             model {modelled:.2} CPUs are. What it says of other placements is as uncertain."
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
