//! How knobs are set: what stands where, whether that is what real time wants, and what is typed to change it.
//!
//! Here: the places that several knobs share. What only one knob looks at stands beside it, in `knobs/`.

use super::host::{Host, set_apart};
use super::knobs::{Place, Want};
use base::shell::quoted;
use base::{Change, CpuSet, Needs, Setting};

/// How a knob is set.
pub(super) struct Told {
    pub value: String,
    pub place: String,
    /// Whether that is what real time wants.
    pub fits: bool,
    pub want: String,
    /// Where the kernel was asked for it and does not have it, a sentence that says so.
    pub ignored: Option<String>,
    pub changes: Vec<Change>,
    pub fix: Vec<String>,
    pub undo: Vec<String>,
    /// What the change needs here; `None`: what the rule says.
    pub needs: Option<Needs>,
    /// Subjects of findings of other rules about the same setting.
    pub(crate) same_as: Vec<String>,
}

impl Told {
    pub(super) fn new(value: impl Into<String>, place: impl Into<String>, fits: bool, want: impl Into<String>) -> Self {
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

    pub(super) fn booting(mut self, host: &Host<'_>, words: &str) -> Self {
        let (fix, undo) = at_boot(host, words);
        (self.fix, self.undo) = (vec![fix], vec![undo]);
        self
    }

    /// The same, to be changed with a look at something first.
    pub(super) fn looking(mut self, command: impl Into<String>) -> Self {
        self.fix.push(command.into());
        self
    }

    /// How a file below `/sys` or `/proc/sys` is set. Parameters of KVM's modules are read-only while the module is loaded but for
    /// nx_huge_pages and halt_poll_ns (mode 0444 in arch/x86/kvm/x86.c and vmx/vmx.c, 0644 in virt/kvm/kvm_main.c, Linux 6.12);
    /// those of RCU are given at boot.
    pub(super) fn set(&mut self, path: &str, to: String, from: &str) {
        let parameter = path.strip_prefix("sys/module/").and_then(|rest| rest.split_once("/parameters/"));
        match parameter {
            Some((module @ ("rcutree" | "rcupdate"), parameter)) => {
                let word = format!("{module}.{parameter}");
                self.fix.push(boot_command("--args", &format!("{word}={to}")));
                self.undo.push(boot_command("--args", &format!("{word}={from}")));
            }
            Some((module, parameter)) if !matches!(parameter, "nx_huge_pages" | "halt_poll_ns") => {
                let file = format!("/etc/modprobe.d/kvmscope-{parameter}.conf");
                self.fix.push(format!(
                    "echo options {module} {parameter}={to} > {file}   # holds when {module} is loaded next, with all VMs stopped"
                ));
                self.undo.push(format!("rm {file}   # {parameter} is {from} again when {module} is loaded next"));
            }
            _ => {
                let sysfs = path.strip_prefix("sys/").map(|path| Setting::SysfsWrite { path: path.to_owned() });
                let sysctl = || path.strip_prefix("proc/sys/").map(|path| Setting::Sysctl { path: path.to_owned() });
                self.changes.extend(sysfs.or_else(sysctl).map(|setting| setting.change(to, Some(from.to_owned()))));
            }
        }
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
pub(super) fn chosen(value: &str) -> &str {
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
        told.set(path, wanted, value);
    }
    Some(told)
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
        told.ignored = Some(format!("{word}={asked} was set at boot, but the kernel has {}", told.value));
        return Some(told.looking(format!(
            "dmesg | grep -iE 'nohz|housekeeping|isolcpus'   # {word}={asked} was set at boot: why does the kernel not have it?"
        )));
    }
    Some(match (fits, host.cpus.is_empty()) {
        (true, _) => told,
        (false, true) => {
            let vm = host.machine.domains.first().map_or("VM".into(), |domain| quoted(&domain.name));
            told.looking(format!(
                "virsh vcpupin {vm} VCPU CPU --live --config   # pin vCPUs first; then {} for their CPUs, at boot",
                typed.split('=').next().unwrap_or(typed)
            ))
        }
        (false, false) => told.booting(host, &typed.replace("CPUS", &host.cpus.to_string())),
    })
}

/// The CPUs of `managed_irq,domain,2-5`.
pub(super) fn cpus_of(value: &str) -> CpuSet {
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
    // What was set apart and is empty now is set apart all the same.
    let rest = mask.without(&host.cpus).without(&set_apart(host.machine));
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
