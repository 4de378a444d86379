//! How knobs are set: what stands where, whether that is what real time wants, and what is typed to change it.

use super::host::{Host, is_real_time};
use super::knobs::{Place, Want};
use super::needs::is_preempt_rt;
use base::nearest::nearest;
use base::number::{list, many, percent};
use base::shell::quoted;
use base::{Change, CpuSet, Needs, Setting};
use host::machine::Role;
use host::processor::Processor;

/// A sibling that is busier than this takes its part of the core: our own limit.
const BUSY_SIBLING: f64 = 0.05;

/// Words of the command line that knobs are known by, long enough to tell a mistake from another word.
const KNOWN_WORDS: &[&str] = &[
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "irqaffinity",
    "skew_tick",
    "nosoftlockup",
    "nowatchdog",
    "nmi_watchdog",
    "pcie_aspm",
    "intel_pstate",
    "clocksource",
    "rcu_nocb_poll",
    "processor.max_cstate",
    "intel_idle.max_cstate",
    "default_hugepagesz",
    "transparent_hugepage",
    "rcutree.nohz_full_patience_delay",
    "rcupdate.rcu_normal_after_boot",
];

/// Threads that are typed one by one.
const MOST_TYPED: usize = 16;

/// How a knob is set.
pub(super) struct Told {
    /// What it is, as a table shows it.
    pub value: String,
    /// What says so.
    pub place: String,
    /// Whether that is what real time wants.
    pub fits: bool,
    /// What it wants.
    pub want: String,
    /// Where the kernel was asked for it and does not have it, a sentence that says so.
    pub ignored: Option<String>,
    /// Typed changes.
    pub changes: Vec<Change>,
    /// Other commands.
    pub fix: Vec<String>,
    pub undo: Vec<String>,
    /// What the change needs here; `None`: what the rule says.
    pub needs: Option<Needs>,
    /// Subjects of findings of other rules about the same setting.
    pub same_as: Vec<String>,
}

impl Told {
    fn new(value: impl Into<String>, place: impl Into<String>, fits: bool, want: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            place: place.into(),
            fits,
            want: want.into(),
            ignored: None,
            changes: Vec::new(),
            fix: Vec::new(),
            undo: Vec::new(),
            needs: None,
            same_as: Vec::new(),
        }
    }

    /// The same, to be changed at boot.
    fn booting(mut self, host: &Host<'_>, words: &str) -> Self {
        let (fix, undo) = at_boot(host, words);
        (self.fix, self.undo) = (vec![fix], vec![undo]);
        self
    }

    /// The same, to be changed with a look at something first.
    fn looking(mut self, command: impl Into<String>) -> Self {
        self.fix.push(command.into());
        self
    }
}

/// How a knob is set on a machine; `None` where that was not read.
pub(super) fn told(host: &Host<'_>, place: &Place) -> Option<Told> {
    match place {
        Place::File(path, want) => file(host, path, want),
        Place::EachCpu(file, want) => each_cpu(host, file, want),
        Place::Boot(words) => boot(host, words),
        Place::Holds { file, word, typed } => holds(host, file, word, typed),
        Place::Spares { file, typed } => spares(host, file, *typed),
        Place::Told(told) => told(host),
    }
}

/// What is chosen of `always [madvise] never`, else the whole value.
fn chosen(value: &str) -> &str {
    value.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(value, |(chosen, _)| chosen).trim()
}

impl Want {
    /// Whether a value is wanted, and what is.
    fn judge(&self, value: &str) -> (bool, String) {
        let number: Option<u64> = value.parse().ok();
        match self {
            Want::Is(any) => (any.contains(&value), any[0].to_owned()),
            Want::AtLeast(least) => (number.is_none_or(|number| number >= *least), least.to_string()),
            Want::AtMost(most) => (number.is_none_or(|number| number <= *most), most.to_string()),
        }
    }
}

fn file(host: &Host<'_>, path: &str, want: &Want) -> Option<Told> {
    let line = host.last.line(path)?;
    let value = chosen(&line);
    let (fits, wanted) = want.judge(value);
    let mut told = Told::new(value, path, fits, &wanted);
    told.same_as.push(path.replace('/', "."));
    if !fits {
        set(&mut told, path, wanted, value);
    }
    Some(told)
}

/// How a file below `/sys` or `/proc/sys` is set. Parameters of KVM's modules are read-only while the module is loaded but for
/// nx_huge_pages (mode 0444 in arch/x86/kvm/x86.c and vmx/vmx.c, Linux 6.12); those of RCU are given at boot.
fn set(told: &mut Told, path: &str, to: String, from: &str) {
    let parameter = path.strip_prefix("sys/module/").and_then(|rest| rest.split_once("/parameters/"));
    match parameter {
        Some((module @ ("rcutree" | "rcupdate"), parameter)) => {
            let word = format!("{module}.{parameter}");
            told.fix.push(boot_command("--args", &format!("{word}={to}")));
            told.undo.push(boot_command("--args", &format!("{word}={from}")));
        }
        Some((module, parameter)) if parameter != "nx_huge_pages" => {
            let file = format!("/etc/modprobe.d/kvmscope-{parameter}.conf");
            told.fix.push(format!(
                "echo options {module} {parameter}={to} > {file}   # holds when {module} is loaded next, with all VMs stopped"
            ));
            told.undo.push(format!("rm {file}   # {parameter} is {from} again when {module} is loaded next"));
        }
        _ => {
            let sysfs = path.strip_prefix("sys/").map(|path| Setting::SysfsWrite { path: path.to_owned() });
            let sysctl = || path.strip_prefix("proc/sys/").map(|path| Setting::Sysctl { path: path.to_owned() });
            told.changes.extend(sysfs.or_else(sysctl).map(|setting| setting.change(to, Some(from.to_owned()))));
        }
    }
}

fn each_cpu(host: &Host<'_>, file: &str, want: &Want) -> Option<Told> {
    let path = |cpu: u32| format!("devices/system/cpu/cpu{cpu}/{file}");
    let read = |cpu: u32| Some((cpu, host.last.line(&format!("sys/{}", path(cpu)))?.trim().to_owned()));
    let values: Vec<(u32, String)> = host.cpus.iter().filter_map(read).collect();
    let (_, first) = values.first()?;
    let (_, wanted) = want.judge(first);
    let others: Vec<&(u32, String)> = values.iter().filter(|(_, value)| !want.judge(value).0).collect();
    let value = match &others[..] {
        [] => first.clone(),
        [(_, value), ..] => {
            let cpus: CpuSet = others.iter().map(|(cpu, _)| *cpu).collect();
            format!("{value} on CPUs {cpus}")
        }
    };
    let mut told = Told::new(value, format!("sys/devices/system/cpu/cpu*/{file}"), others.is_empty(), &wanted);
    told.same_as.push(format!("sys.devices.system.cpu.cpu0.{}", file.replace('/', ".")));
    let change = |(cpu, value): &&(u32, String)| {
        Setting::SysfsWrite { path: path(*cpu) }.change(wanted.clone(), Some(value.clone()))
    };
    told.changes = others.iter().map(change).collect();
    Some(told)
}

/// What adds words to the command line of the next boots, and what takes them away again, or sets what stood there.
fn at_boot(host: &Host<'_>, words: &str) -> (String, String) {
    let before = |word: &str| {
        let name = word.split('=').next().unwrap_or(word);
        host.booted(name).map(|value| value.map_or(name.to_owned(), |value| format!("{name}={value}")))
    };
    let old: Vec<String> = words.split(' ').filter_map(before).collect();
    let new: Vec<&str> = words.split(' ').filter(|word| before(word).is_none()).collect();
    let back = match (old.is_empty(), new.is_empty()) {
        (true, _) => boot_command("--remove-args", words),
        (false, true) => boot_command("--args", &old.join(" ")),
        (false, false) => {
            format!("grubby --update-kernel=ALL --remove-args=\"{}\" --args=\"{}\"", new.join(" "), old.join(" "))
        }
    };
    (boot_command("--args", words), back)
}

fn boot_command(option: &str, words: &str) -> String {
    format!("grubby --update-kernel=ALL {option}=\"{words}\"   # then reboot")
}

fn boot(host: &Host<'_>, words: &[&str]) -> Option<Told> {
    if host.boot.is_empty() {
        return None;
    }
    let is_there = |word: &&&str| match word.split_once('=') {
        Some((name, value)) => host.booted(name) == Some(Some(value)),
        None => host.booted(word).is_some(),
    };
    let there = words.iter().find(is_there);
    let name = words[0].split('=').next().unwrap_or(words[0]);
    let now = match (there, host.booted(name)) {
        (Some(word), _) => (*word).to_owned(),
        (None, Some(value)) => format!("{name}={}", value.unwrap_or_default()),
        (None, None) => "not there".to_owned(),
    };
    let told = Told::new(now, "proc/cmdline", there.is_some(), words[0]);
    Some(if there.is_some() { told } else { told.booting(host, words[0]) })
}

fn holds(host: &Host<'_>, file: &str, word: &str, typed: &str) -> Option<Told> {
    let line = host.last.line(file)?;
    // A kernel without tickless CPUs says `(null)`.
    let set = CpuSet::parse(line.trim()).unwrap_or_default();
    let wants =
        if host.cpus.is_empty() { "the CPUs that vCPUs are pinned to".to_owned() } else { host.cpus.to_string() };
    let value = if set.is_empty() { "none".to_owned() } else { set.to_string() };
    let fits = !host.cpus.is_empty() && host.cpus.is_within(&set);
    let mut told = Told::new(value, file, fits, wants);
    told.same_as.push(word.to_owned());
    let lacks = |asked: &CpuSet| !asked.and(&host.machine.topology.online).is_within(&set);
    if let Some(asked) = host.booted(word).flatten().map(cpus_of).filter(lacks) {
        told.ignored = Some(format!("{word}={asked} was asked for at boot, and the kernel has {}", told.value));
        return Some(told.looking(format!(
            "dmesg | grep -iE 'nohz|housekeeping|isolcpus'   # {word}={asked} was asked for at boot: why does the kernel not have it?"
        )));
    }
    Some(match (fits, host.cpus.is_empty()) {
        (true, _) => told,
        (false, true) => told.looking(format!(
            "virsh vcpupin VM VCPU CPU --live --config   # pin vCPUs first; then {} for their CPUs, at boot",
            typed.split('=').next().unwrap_or(typed)
        )),
        (false, false) => told.booting(host, &typed.replace("CPUS", &host.cpus.to_string())),
    })
}

/// The CPUs of `managed_irq,domain,2-5`.
fn cpus_of(value: &str) -> CpuSet {
    let from = value.find(|letter: char| letter.is_ascii_digit());
    from.and_then(|from| CpuSet::parse(&value[from..])).unwrap_or_default()
}

fn spares(host: &Host<'_>, path: &str, typed: Option<&str>) -> Option<Told> {
    if host.cpus.is_empty() {
        return None;
    }
    let line = host.last.line(path)?;
    let (value, mask) = (line.trim(), CpuSet::parse_mask(&line)?);
    let there = mask.and(&host.cpus);
    let rest = mask.without(&host.cpus);
    let mut told = Told::new(format!("CPUs {mask}"), path, there.is_empty(), format!("none of CPUs {}", host.cpus));
    told.same_as.push("workqueue".to_owned());
    if there.is_empty() {
        return Some(told);
    }
    if rest.is_empty() {
        return Some(told.looking(format!("cat /{path}   # all its CPUs are for real time: it needs one that is not")));
    }
    match path.strip_prefix("sys/") {
        Some(path) => {
            let to = rest.mask_like(value);
            told.changes.push(Setting::SysfsWrite { path: path.to_owned() }.change(to, Some(value.to_owned())));
        }
        None => {
            told.fix.push(format!(
                "echo {} > /{path}   # for interrupts that are requested from now on",
                rest.mask_like(value)
            ));
            told.undo.push(format!("echo {value} > /{path}"));
        }
    }
    let left = host.rest();
    if let Some(typed) = typed.filter(|_| !left.is_empty()).map(|typed| typed.replace("REST", &left.to_string())) {
        let (fix, undo) = at_boot(host, &typed);
        told.fix.push(fix);
        told.undo.push(undo);
    }
    Some(told)
}

/// `rcu_nocbs=`, or `nohz_full=`, which implies it.
pub(super) fn rcu(host: &Host<'_>) -> Option<Told> {
    if host.boot.is_empty() || host.cpus.is_empty() {
        return None;
    }
    let of = |word: &str| match host.booted(word) {
        Some(Some("all")) => host.machine.topology.online.clone(),
        Some(Some(value)) => cpus_of(value),
        Some(None) | None => CpuSet::default(),
    };
    let set = of("rcu_nocbs").or(&of("nohz_full"));
    let fits = host.cpus.is_within(&set);
    let value = if set.is_empty() { "none".to_owned() } else { set.to_string() };
    let told = Told::new(value, "proc/cmdline", fits, host.cpus.to_string());
    Some(if fits { told } else { told.booting(host, &format!("rcu_nocbs={}", host.cpus)) })
}

/// The flag of `isolcpus=`, where that is used.
pub(super) fn managed_irqs(host: &Host<'_>) -> Option<Told> {
    let value = host.booted("isolcpus")??;
    let fits = value.split(',').any(|flag| flag == "managed_irq");
    let told = Told::new(if fits { "set" } else { "not set" }, "proc/cmdline", fits, "set");
    Some(if fits { told } else { told.booting(host, &format!("isolcpus=managed_irq,domain,{}", cpus_of(value))) })
}

/// The set of the first process.
pub(super) fn programs(host: &Host<'_>) -> Option<Told> {
    const FILE: &str = "proc/1/task/1/status";
    let status = host.last.read(FILE)?;
    let set = status.lines().find_map(|line| CpuSet::parse(line.strip_prefix("Cpus_allowed_list:")?))?;
    let there = set.and(&host.cpus);
    let told = Told::new(format!("CPUs {set}"), FILE, there.is_empty(), format!("none of CPUs {}", host.cpus));
    Some(match there.is_empty() || host.rest().is_empty() {
        true => told,
        false => told.looking(format!(
            "echo CPUAffinity={} >> /etc/systemd/system.conf   # for programs that systemd starts after the next boot",
            host.rest()
        )),
    })
}

/// On bare metal the time-stamp counter; a guest may have a clock of its hypervisor that is read as cheaply.
pub(super) fn clock_source(host: &Host<'_>) -> Option<Told> {
    const FILE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let value = host.last.line(FILE)?.trim().to_owned();
    let is_guest = Processor::of(host.last).is_some_and(|processor| processor.flags.contains("hypervisor"));
    let cheap = is_guest && matches!(value.as_str(), "kvm-clock" | "hyperv_clocksource_tsc_page");
    let fits = value == "tsc" || cheap || value == "arch_sys_counter";
    let told = Told::new(value, FILE, fits, "tsc");
    Some(if fits { told } else { told.looking("dmesg | grep -i tsc   # why the kernel left the time-stamp counter") })
}

pub(super) fn invariant(host: &Host<'_>) -> Option<Told> {
    let processor = Processor::of(host.last)?;
    let lacking: Vec<String> = ["constant_tsc", "nonstop_tsc"]
        .iter()
        .filter(|flag| !processor.flags.contains(**flag))
        .map(|flag| (*flag).to_owned())
        .collect();
    // Processors of other architectures have a counter of their own.
    if !processor.flags.contains("tsc") {
        return None;
    }
    let value = if lacking.is_empty() { "both flags".to_owned() } else { format!("without {}", list(&lacking)) };
    let told = Told::new(value, "proc/cpuinfo, flags", lacking.is_empty(), "constant_tsc and nonstop_tsc");
    Some(match lacking.is_empty() {
        true => told,
        false => told
            .looking("grep -m1 -o 'constant_tsc\\|nonstop_tsc' /proc/cpuinfo   # in a guest: ask its host for +invtsc"),
    })
}

/// The other threads of the cores, those of real time apart.
pub(super) fn siblings(host: &Host<'_>) -> Option<Told> {
    let topology = &host.machine.topology;
    if host.cpus.is_empty() || topology.cores_unknown {
        return None;
    }
    let of = |cpu: u32| topology.cpus.get(&cpu).map(|about| topology.of_core(about.core)).unwrap_or_default();
    let siblings = host.cpus.iter().fold(CpuSet::default(), |all, cpu| all.or(&of(cpu)));
    let siblings = siblings.without(&host.cpus).and(&topology.online);
    if siblings.is_empty() {
        return Some(Told::new("none", "sys/devices/system/cpu/cpu*/topology", true, "none, or idle"));
    }
    let busy = |cpu: u32| Some((cpu, 1.0 - host.machine.cpu_use.get(&cpu)?.idle));
    let (cpu, most) = siblings.iter().filter_map(busy).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let value = format!("CPU {cpu} was busy for {}", percent(most));
    let told = Told::new(value, "proc/stat", most <= BUSY_SIBLING, format!("idle siblings, CPUs {siblings}"));
    Some(match most <= BUSY_SIBLING {
        true => told,
        false => told.looking(format!(
            "ps -eLo psr,tid,comm --sort psr   # what runs on CPUs {siblings}: start it elsewhere, or move it"
        )),
    })
}

/// Words that were meant to be others.
pub(super) fn misspelt(host: &Host<'_>) -> Option<Told> {
    if host.boot.is_empty() {
        return None;
    }
    let meant = |(name, _): &(String, Option<String>)| {
        let name = name.replace('-', "_");
        let is_known = KNOWN_WORDS.contains(&name.as_str());
        // The first letters are seldom wrong, and tell one subsystem's words from another's.
        let near = nearest(&name, KNOWN_WORDS.iter().copied());
        let near = near.filter(|known| name.len().abs_diff(known.len()) <= 1 && known.get(..3) == name.get(..3))?;
        (!is_known && host.booted(near).is_none()).then_some((name, near))
    };
    let wrong: Vec<(String, &str)> = host.boot.iter().filter_map(meant).collect();
    let Some((first, near)) = wrong.first() else {
        return Some(Told::new("none", "proc/cmdline", true, "no word of them misspelt"));
    };
    let value = list(&wrong.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    let mut told = Told::new(
        value,
        "proc/cmdline",
        false,
        list(&wrong.iter().map(|(_, near)| (*near).to_owned()).collect::<Vec<_>>()),
    );
    let (are, they) = if wrong.len() == 1 { ("sets", "was") } else { ("set", "were") };
    told.ignored =
        Some(format!("{} on the kernel's command line {are} nothing: {} {they} meant", told.value, told.want));
    let value = host.booted(first).flatten().map_or(String::new(), |value| format!("={value}"));
    told.fix.push(format!("grubby --update-kernel=ALL --remove-args={first} --args=\"{near}{value}\"   # then reboot"));
    told.undo.push(format!("grubby --update-kernel=ALL --remove-args={near} --args=\"{first}{value}\""));
    Some(told)
}

/// The policy of links, or the word that turns power saving off.
pub(super) fn link_power(host: &Host<'_>) -> Option<Told> {
    const FILE: &str = "sys/module/pcie_aspm/parameters/policy";
    if host.booted("pcie_aspm") == Some(Some("off")) {
        return Some(Told::new("pcie_aspm=off", "proc/cmdline", true, "off"));
    }
    let line = host.last.line(FILE)?;
    let value = chosen(&line).to_owned();
    let fits = value == "performance";
    let mut told = Told::new(value.clone(), FILE, fits, "performance");
    if !fits {
        let path = FILE.trim_start_matches("sys/").to_owned();
        told.changes.push(Setting::SysfsWrite { path }.change("performance", Some(value)));
        told.needs = Some(Needs::Nothing);
    }
    Some(told)
}

/// No file of a snapshot tells of them.
pub(super) fn smi(_: &Host<'_>) -> Option<Told> {
    None
}

/// vCPUs of normal policy on CPUs of real time.
pub(super) fn fifo(host: &Host<'_>) -> Option<Told> {
    let there = |set: &CpuSet| !host.cpus.is_empty() && !set.is_empty() && set.is_within(&host.cpus);
    let vcpus: Vec<_> =
        host.vcpus().filter(|thread| thread.affinity.as_ref().is_some_and(|set| there(&set.value))).collect();
    if vcpus.is_empty() || vcpus.iter().any(|thread| thread.policy.is_none()) {
        return None;
    }
    let normal: Vec<_> = vcpus.iter().filter(|thread| !is_real_time(thread)).collect();
    let count = |many_of: usize| many(many_of as u64, "vCPU");
    let value = match normal.len() {
        0 => format!("{} with a real-time policy", count(vcpus.len())),
        normal => format!("{} of normal policy", count(normal)),
    };
    let told = Told::new(value, "proc/*/task/*/stat, policy", normal.is_empty(), "fifo");
    Some(match normal.first() {
        None => told,
        Some(thread) => told.looking(format!(
            "virsh edit {}   # <cputune><vcpusched vcpus='...' scheduler='fifo' priority='1'/></cputune>",
            quoted(thread.vm.as_deref().unwrap_or("VM"))
        )),
    })
}

/// Kernel threads of these CPUs on a PREEMPT_RT kernel: name, and the least priority as FIFO.
const KERNEL_THREADS: &[(&str, u32)] = &[("ksoftirqd", 2), ("ktimers", 2), ("rcuc", 4)];

pub(super) fn kernel_priorities(host: &Host<'_>) -> Option<Told> {
    if !is_preempt_rt(host) || host.cpus.is_empty() {
        return None;
    }
    let mut low: Vec<(String, String, u32, String)> = Vec::new();
    let mut seen = 0;
    for pid in host.last.names("proc").into_iter().filter(|name| name.parse::<u32>().is_ok()) {
        let Some(comm) = host.last.line(&format!("proc/{pid}/task/{pid}/comm")) else { continue };
        let Some((name, cpu)) = comm.trim().split_once('/') else { continue };
        let known = KERNEL_THREADS.iter().find(|(known, _)| *known == name);
        let (Some((_, least)), Ok(cpu)) = (known, cpu.parse::<u32>()) else { continue };
        let Some(stat) = host.last.read(&format!("proc/{pid}/task/{pid}/stat")).filter(|_| host.cpus.contains(cpu))
        else {
            continue;
        };
        // Fields 40 and 41 of proc_pid_stat(5), counted from behind the name.
        let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u32>().ok();
        let (Some(priority), Some(policy)) = (number(40), number(41)) else { continue };
        seen += 1;
        if !matches!(policy, 1 | 2) || priority < *least {
            let before = match policy {
                1 => format!("-f -p {priority}"),
                2 => format!("-r -p {priority}"),
                _ => "-o -p 0".to_owned(),
            };
            low.push((comm.trim().to_owned(), pid, *least, before));
        }
    }
    (seen > 0).then_some(())?;
    let value = match low.len() {
        0 => "high enough".to_owned(),
        count => format!("{} too low, {} first", many(count as u64, "thread"), low[0].0),
    };
    let mut told =
        Told::new(value, "proc/*/task/*/stat, rt_priority", low.is_empty(), "ksoftirqd and ktimers f:2, rcuc f:4");
    let low = || low.iter().take(MOST_TYPED);
    told.fix = low().map(|(name, pid, least, _)| format!("chrt -f -p {least} {pid}   # {name}")).collect();
    told.undo = low().map(|(_, pid, _, before)| format!("chrt {before} {pid}")).collect();
    Some(told)
}

/// 0 is never.
pub(super) fn hung_tasks(host: &Host<'_>) -> Option<Told> {
    const FILE: &str = "proc/sys/kernel/hung_task_timeout_secs";
    let value = host.last.line(FILE)?.trim().to_owned();
    let seconds: u64 = value.parse().ok()?;
    let fits = seconds == 0 || seconds >= 600;
    let mut told = Told::new(&value, FILE, fits, "600");
    if !fits {
        set(&mut told, FILE, "600".to_owned(), &value);
    }
    Some(told)
}

pub(super) fn machine_checks(host: &Host<'_>) -> Option<Told> {
    const FILE: &str = "sys/devices/system/machinecheck/machinecheck0/check_interval";
    if let Some(Some(value @ ("off" | "ignore_ce"))) = host.booted("mce") {
        return Some(Told::new(format!("mce={value}"), "proc/cmdline", true, "0"));
    }
    // The kernel prints it in hexadecimal (device_show_int of older kernels is decimal): 0 is never in both.
    let value = host.last.line(FILE)?.trim().to_owned();
    let fits = value == "0";
    let mut told = Told::new(&value, FILE, fits, "0");
    if !fits {
        set(&mut told, FILE, "0".to_owned(), &value);
    }
    Some(told)
}

/// VMs whose vCPUs are on CPUs of real time, and that have no huge pages.
pub(super) fn small_pages(host: &Host<'_>) -> Option<Told> {
    let has_vcpu = |name: &str| {
        host.machine.threads_of(name).any(|thread| {
            let set = thread.affinity.as_ref().map(|set| &set.value);
            matches!(thread.role, Role::Vcpu(_)) && set.is_some_and(|set| !set.is_empty() && set.is_within(&host.cpus))
        })
    };
    let domains: Vec<_> =
        host.machine.domains.iter().filter(|domain| domain.whole.is_some() && has_vcpu(&domain.name)).collect();
    let small: Vec<String> =
        domains.iter().filter(|domain| !domain.huge_pages).map(|domain| domain.name.clone()).collect();
    (!domains.is_empty()).then_some(())?;
    let value = if small.is_empty() { "huge pages".to_owned() } else { format!("small pages: {}", list(&small)) };
    Some(Told::new(value, "libvirt, memoryBacking", small.is_empty(), "huge pages"))
}

/// A number of ns in older kernels, of which -1 is adaptive, and yes or no since 6.10 (`lapic_timer_advance`).
pub(super) fn timer_advance(host: &Host<'_>) -> Option<Told> {
    const PARAMETERS: &str = "sys/module/kvm/parameters";
    let [new, old] = ["lapic_timer_advance", "lapic_timer_advance_ns"].map(|name| format!("{PARAMETERS}/{name}"));
    let (path, want, off) = match host.last.line(&new) {
        Some(_) => (new, "Y", ["N", "0"]),
        None => (old, "-1", ["0", "0"]),
    };
    let value = host.last.line(&path)?.trim().to_owned();
    let fits = !off.contains(&value.as_str());
    let mut told = Told::new(&value, &path, fits, want);
    if !fits {
        set(&mut told, &path, want.to_owned(), &value);
    }
    Some(told)
}

pub(super) fn posted_interrupts(host: &Host<'_>) -> Option<Told> {
    let of = |module: &str, parameter: &str| {
        let path = format!("sys/module/{module}/parameters/{parameter}");
        Some((host.last.line(&path)?.trim().to_owned(), path))
    };
    let (value, path) = of("kvm_intel", "enable_apicv").or_else(|| of("kvm_amd", "avic"))?;
    let fits = matches!(value.as_str(), "Y" | "1");
    let told = Told::new(value, path, fits, "Y");
    Some(match fits {
        true => told,
        false => told.looking("kvmscope check   # rules NST and FLW say whether it can be on here, and what is typed"),
    })
}
