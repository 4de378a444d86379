//! All of it as one Section.

use super::advise::advise;
use super::model::Model;
use super::proposal::{Advice, Verdict};
use super::{figure, host, hypotheses, judged, preemptors, rivals, tables, unknowns};
use crate::placements::placements;
use ::host::Machine;
use ::host::machine::{Domain, Role, Thread, Topology};
use base::in_order;
use base::number::{duration, list, many, percent};
use base::{Finding, Level, Section, Severity};
use facts::{Answer, Case, Error};
use tongue::translated;

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
    let taken = preemptors::Taken::of(case, models);
    let mut section = section_of(models, taken.is_any());
    taken.add(&mut section);
    Ok(Some(Answer { section, problems: problems.clone() }))
}

/// The elements of each domain's libvirt XML under the placement of that rank, 1 for the first.
pub fn definitions(case: &Case, rank: u64) -> Vec<String> {
    let placements = placements(case);
    let of_rank = tables::definitions(&placements.0).filter(|definition| definition.rank == rank);
    of_rank.map(|definition| definition.xml).collect()
}

/// Of machines without a trace.
pub fn section(models: &[Model]) -> Section {
    section_of(models, false)
}

/// `is_traced` says that a trace shows somebody who took a CPU from a vCPU.
fn section_of(models: &[Model], is_traced: bool) -> Section {
    let mut section = Section::new("placement", QUESTION);
    section.about = models.iter().flat_map(|model| about(model, models.len() > 1)).collect();
    section.findings = in_order(models.iter().flat_map(|model| advise(model, models.len() > 1)).collect());
    // What one machine's finding types on another is in the words of whoever manages the VMs there.
    for model in models {
        let other = |finding: &&mut Finding| finding.rule == "PLC-BED" && finding.level == model.level;
        section.findings.iter_mut().filter(other).for_each(|finding| translated(&model.machine, finding));
    }
    section.summary = summary(models, &section, is_traced);
    section.tables = [tables::proposal, tables::plans, tables::threads, tables::cpus, tables::domain_xml]
        .map(|table| table(models))
        .into();
    let first = [rivals::table(models), hypotheses::table(models), host::table(models)];
    section.tables.splice(0..0, first.into_iter().filter(|table| !table.rows.is_empty()));
    section.figures = models.iter().filter_map(figure::topology).collect();
    section.unknown = models.iter().flat_map(unknowns::of).chain(judged::not_judged(models)).collect();
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

fn about(model: &Model, several: bool) -> Vec<String> {
    let (machine, topology) = (&model.machine, &model.machine.topology);
    let count = |wanted: fn(&Role) -> bool| machine.threads.iter().filter(|thread| wanted(&thread.role)).count() as u64;
    let cpus = topology_of(topology);
    let vcpus = vcpus_of(machine);
    // Who read no process has not counted VMs.
    let is_known = |thread: &Thread| thread.vm.is_some() || thread.role != Role::Other;
    let is_counted = machine.lists_processes || !machine.domains.is_empty() || machine.threads.iter().any(is_known);
    let vms = match is_counted {
        true => {
            let workers = count(|role| matches!(role, Role::Vhost));
            // Where neither a definition nor a list of processes was whole, nobody knows that there is none.
            let is_whole = |domain: &Domain| domain.whole.is_some() || domain.by_command;
            let is_known = workers > 0 || !model.pasted || machine.domains.iter().all(is_whole);
            let workers = is_known.then(|| format!(", {}", many(workers, "vhost thread")));
            let (vms, running) = (machine.domains.len(), machine.listed_running());
            let of_all =
                if running > vms { format!(", of {} that run", many(running as u64, "VM")) } else { String::new() };
            format!("{} with {vcpus}{}{of_all}", many(vms as u64, "VM"), workers.unwrap_or_default())
        }
        false if machine.listed_running() > 0 => {
            format!("{} running, of which only the list is known", many(machine.listed_running() as u64, "VM"))
        }
        false => "no process was read, so its VMs are not known".to_owned(),
    };
    // Of which level a text is that shows neither VMs nor a hypervisor below, nobody told.
    let whose = if model.level == Level::Unknown { String::new() } else { format!("{}: ", model.id) };
    let mut lines = vec![format!("{whose}{cpus}; {vms}")];
    // What a text shows besides VMs, without a heading, may have been measured in one.
    let whose = if model.pasted && model.level == Level::L0 && !several { String::new() } else { whose };
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

/// How many vCPUs the VMs have: a number above that of a thread nobody saw says that there are more, and so does a group of one alone.
fn vcpus_of(machine: &Machine) -> String {
    let number = |thread: &Thread| if let Role::Vcpu(number) = thread.role { Some(number) } else { None };
    let (mut all, mut is_least) = (machine.threads.iter().filter_map(number).count() as u64, false);
    for domain in machine.domains.iter().filter(|domain| domain.vcpu_count() == 0) {
        let of_it = || machine.threads_of(&domain.name).filter(|thread| number(thread).is_some());
        let last = of_it().filter_map(number).map(|number| number + 1).max().unwrap_or(0);
        let unseen = u64::from(last).saturating_sub(of_it().count() as u64);
        all += unseen;
        is_least |= unseen > 0 || of_it().any(|thread| thread.tid.is_none());
    }
    match all {
        // A VM of which nobody told a vCPU has some nevertheless.
        0 if !machine.domains.is_empty() => "an unknown number of vCPUs".to_owned(),
        all if is_least => format!("at least {}", many(all, "vCPU")),
        all => many(all, "vCPU"),
    }
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
fn summary(models: &[Model], section: &Section, is_traced: bool) -> String {
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
        let summaries: String = summaries(models).map(|summary| format!("{summary} ")).collect();
        let told = format!("{}{}{summaries}", of_host.unwrap_or_default(), carried.unwrap_or_default());
        return match (
            models.iter().any(|model| model.pasted) && !models.iter().any(shows_work),
            section.findings.first(),
        ) {
            (false, _) => format!("{told}{}", no_vm(models)),
            (true, _) if !told.is_empty() => told.trim_end().to_owned(),
            (true, Some(first)) => format!("{}.", sentence_case(&first.title)),
            (true, None) => in_order_now(models).unwrap_or_else(|| "What the text tells stands below.".to_owned()),
        };
    }
    let mut sentences: Vec<String> = summaries(models).map(str::to_owned).collect();
    match worst {
        Some(finding) => sentences.push(format!("{}.", sentence_case(&finding.title))),
        // The trace says who competes, in a sentence of its own.
        None if is_traced => {}
        None if models.iter().any(shows_threads) => {
            sentences.push(format!("Nothing here shows threads of VMs competing for a CPU{}.", untold(models)));
        }
        None => sentences.push(format!("Whether threads of VMs compete for a CPU is unknown{}.", untold(models))),
    }
    sentences.extend(busiest(models).filter(|_| worst.is_none() && !is_traced));
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

/// Programs that the answer sums up in a sentence each; the table of what was printed has the values of all.
const MOST_SUMMARIES: usize = 4;

/// Sentences that sum up what programs printed.
fn summaries(models: &[Model]) -> impl Iterator<Item = &str> {
    let all = models.iter().flat_map(|model| &model.machine.summaries);
    all.map(|summary| summary.value.as_str()).take(MOST_SUMMARIES)
}

/// What was looked at where nothing is wrong, with its numbers; `None` where nothing of it was told, or where something is near a limit.
fn in_order_now(models: &[Model]) -> Option<String> {
    use ::host::machine::GaugeKind::{MemoryAvailable, MemoryTotal, SwappedIn, SwappedOut, TasksBlocked};
    const MOST_BUSY: f64 = 0.9;
    const LEAST_FREE: f64 = 0.1;
    let [model] = models else { return None };
    let of = |kinds: &[_]| -> Vec<f64> {
        let gauges =
            model.machine.gauges.iter().filter(|gauge| kinds.contains(&gauge.kind) && gauge.subject.is_empty());
        gauges.map(|gauge| gauge.value).collect()
    };
    let busiest = model.machine.total_use.iter().map(|told| 1.0 - told.value.shares.idle).reduce(f64::max);
    let free = of(&[MemoryAvailable]).last().copied().zip(of(&[MemoryTotal]).last().copied());
    let free = free.filter(|(_, total)| *total > 0.0).map(|(free, total)| free / total);
    let (swapped, blocked) = (of(&[SwappedIn, SwappedOut]), of(&[TasksBlocked]));
    if [swapped.iter(), blocked.iter()].into_iter().flatten().any(|value| *value > 0.0)
        || model.machine.total_use.iter().any(|told| told.value.shares.steal > 0.0)
        || busiest.is_some_and(|share| share > MOST_BUSY)
        || free.is_some_and(|share| share < LEAST_FREE)
        || !model.machine.complaints.is_empty()
    {
        return None;
    }
    let told = [
        busiest.map(|share| format!("the CPUs are busy for at most {} of the time", percent(share))),
        free.map(|share| format!("{} of the memory is available", percent(share))),
        (!swapped.is_empty()).then(|| "nothing is swapped in or out (0 B/s)".to_owned()),
        (!blocked.is_empty()).then(|| "no task is blocked (0 tasks)".to_owned()),
    ];
    let told: Vec<String> = told.into_iter().flatten().collect();
    (!told.is_empty()).then(|| format!("What was looked at is in order: {}.", list(&told)))
}

/// Whether threads of VMs were seen to run or wait, or where they may run is known.
fn shows_threads(model: &Model) -> bool {
    let of_vms = model.machine.threads.iter().filter(|thread| thread.vm.is_some());
    let mut of_vms = of_vms.chain(model.machine.threads.iter().filter(|thread| thread.role == Role::Pmd));
    of_vms.any(|thread| thread.run_share.is_some() || thread.wait_share.is_some() || thread.affinity.is_some())
}

/// A thread that runs less is no answer to why something takes CPU time: our own limit.
const BUSY: f64 = 0.2;

/// Which threads of VMs ran most, where a pasted text tells no more than that, and what tells what they did.
fn busiest(models: &[Model]) -> Option<String> {
    let of = |model: &'_ Model| -> Vec<(f64, String)> {
        let ran = model.machine.threads.iter().filter_map(|thread| {
            let (share, vm) = (thread.run_share.as_ref()?.value, thread.vm.as_deref()?);
            let role = thread.role.to_string().replace("vcpu", "vCPU");
            (share >= BUSY).then(|| (share, format!("{role} of {vm} ({} of a CPU)", percent(share))))
        });
        ran.collect()
    };
    let mut ran: Vec<(f64, String)> = models.iter().filter(|model| model.pasted).flat_map(of).collect();
    ran.sort_by(|a, b| b.0.total_cmp(&a.0));
    let most: Vec<String> = ran.into_iter().take(3).map(|(_, thread)| thread).collect();
    (!most.is_empty()).then(|| {
        format!(
            "Most CPU time went to {}; `kvmscope record` or `perf kvm stat` shows whether the guest, KVM or the VMM used it.",
            list(&most)
        )
    })
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
        "an",
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
pub(super) fn shows_work(model: &Model) -> bool {
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
