//! One page is one plan: whoever reads it types it from the top, so no finding sets what one above it sets to something else.
//!
//! ```text
//! command --> Write: of whom, what, to which value
//!   the same setting, the same value     both may say it
//!   the same setting, another value      the finding above has it, the one below has no commands
//!   one explains the other               the cause is cured first
//!   CPUs, weight or quota of a group     its threads are counted on what they get now: no pin, weight or size of what is in it
//! ```
//! Placements are there to choose from, so they may differ from findings and from each other; what is counted on other CPUs is none.

use base::shell::quoted;
use facts::rule::Hit;
use host::Machine;
use host::machine::{Role, Thread, is_within_group};
use tongue::groups::Typed;

/// What a command sets.
#[derive(Debug, Clone, PartialEq)]
struct Write {
    of: Of,
    key: Key,
    to: String,
}

/// Whose setting it is.
#[derive(Debug, Clone, PartialEq)]
enum Of {
    Group(String),
    Vm(String),
    /// Of a VM, or of nobody's: its name there.
    Thread(String, String),
    /// A file, a device, a unit of which no thread is known.
    Named(String),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Key {
    Cpus,
    Weight,
    Quota,
    /// How many CPUs it wants at most: vCPUs, workers.
    Size,
    /// The one that a file or an element has.
    Value,
}

/// What the findings of a page set so far, each with the id of the finding.
pub(crate) struct Page<'a> {
    machine: &'a Machine,
    typed: Vec<(String, Write)>,
    /// Who types something, and what it explains.
    causes: Vec<(String, Vec<String>)>,
}

impl<'a> Page<'a> {
    pub(crate) fn of(machine: &'a Machine) -> Self {
        Self { machine, typed: Vec::new(), causes: Vec::new() }
    }

    /// The finding above with which these commands do not go together; a choice may differ from it in what both set. What follows from
    /// another finding was counted without that one's cure.
    pub(crate) fn holder(&self, id: &str, lines: &[String], is_choice: bool) -> Option<&str> {
        let writes = self.writes(lines);
        let cause = self.causes.iter().find(|(_, explained)| explained.iter().any(|one| one == id));
        if let Some((cause, _)) = cause.filter(|_| !writes.is_empty()) {
            return Some(cause);
        }
        let against = |typed: &Write| {
            writes.iter().any(|own| self.is_covered(typed, own) || !is_choice && self.disagree(typed, own))
        };
        self.typed.iter().find(|(_, typed)| against(typed)).map(|(id, _)| id.as_str())
    }

    /// Takes what a finding types.
    pub(crate) fn add(&mut self, id: &str, explains: &[String], lines: &[String]) {
        let writes = self.writes(lines);
        if !writes.is_empty() {
            self.causes.push((id.to_owned(), explains.to_vec()));
        }
        self.typed.extend(writes.into_iter().map(|write| (id.to_owned(), write)));
    }

    fn writes(&self, lines: &[String]) -> Vec<Write> {
        lines.iter().filter_map(|line| written(self.machine, line)).collect()
    }

    /// Whether two commands set one thing to two values, or one sets what the other one is counted on.
    fn disagree(&self, one: &Write, other: &Write) -> bool {
        let same = one.of == other.of && one.key == other.key;
        same && one.to != other.to || self.is_covered(one, other) || self.is_covered(other, one)
    }

    /// Whether what is set of `wide` changes what `narrow`, which is in it, was counted on.
    fn is_covered(&self, wide: &Write, narrow: &Write) -> bool {
        let (of_threads, of_size) = (matches!(narrow.of, Of::Thread(..)), narrow.key == Key::Size);
        match &wide.of {
            // A limit within another one of its kind is to be lifted as well.
            Of::Group(path) => {
                let limits = wide.key == Key::Quota && narrow.key == Key::Quota;
                wide.of != narrow.of && !limits && self.is_in(&narrow.of, path)
            }
            // Fewer that want CPUs, and the CPUs that they get, are two cures of one fault.
            Of::Vm(vm) if matches!(wide.key, Key::Weight | Key::Quota | Key::Size) => {
                of_threads && matches!(&narrow.of, Of::Thread(of, _) if of == vm)
            }
            Of::Thread(of, _) => of_size && narrow.of == Of::Vm(of.clone()),
            Of::Vm(_) | Of::Named(_) => false,
        }
    }

    fn is_in(&self, of: &Of, path: &str) -> bool {
        let inside = |thread: &Thread| {
            let groups = [&thread.cgroup, &thread.time_group];
            groups.into_iter().flatten().any(|group| is_within_group(group, path))
        };
        match of {
            Of::Group(below) => is_within_group(below, path),
            Of::Vm(vm) => self.machine.threads_of(vm).any(inside),
            Of::Thread(vm, _) if !vm.is_empty() => self.machine.threads_of(vm).any(inside),
            Of::Thread(_, who) => self.machine.threads.iter().filter(|thread| called(thread) == *who).any(inside),
            Of::Named(_) => false,
        }
    }
}

/// A thread by what its pins are called.
fn called(thread: &Thread) -> String {
    match thread.role {
        Role::Vcpu(vcpu) => format!("vcpu {vcpu}"),
        Role::Emulator => "emulator".to_owned(),
        Role::IoThread(number) => format!("iothread {number}"),
        Role::Vhost | Role::Pmd | Role::Other => thread.tid.map_or_else(String::new, |tid| tid.to_string()),
    }
}

/// What a line sets, where it sets anything.
fn written(machine: &Machine, line: &str) -> Option<Write> {
    let (command, comment) = line.split_once("   #").unwrap_or((line, ""));
    let mut words = command.split_whitespace();
    let last = || command.rsplit(' ').next().unwrap_or_default();
    match (words.next()?, words.next()?) {
        ("virsh", verb) => by_virsh(machine, verb, command, comment),
        ("taskset", _) => {
            let tid = last().parse::<i32>().ok()?;
            let thread = machine.threads.iter().find(|thread| thread.tid == Some(tid));
            let vm = thread.and_then(|thread| thread.vm.clone()).unwrap_or_default();
            let who = thread.map_or_else(|| tid.to_string(), called);
            Some(Write { of: Of::Thread(vm, who), key: Key::Cpus, to: words.next()?.to_owned() })
        }
        ("systemctl", "set-property") => {
            let unit = words.find(|word| !word.starts_with("--"))?;
            let (name, to) = words.next()?.split_once('=')?;
            let key = match name {
                "AllowedCPUs" => Key::Cpus,
                "CPUWeight" => Key::Weight,
                "CPUQuota" => Key::Quota,
                _ => {
                    return Some(Write { of: Of::Named(format!("{unit} {name}")), key: Key::Value, to: to.to_owned() });
                }
            };
            let of = group_of(machine, unit).map_or_else(|| Of::Named(unit.to_owned()), Of::Group);
            Some(Write { of, key, to: to.to_owned() })
        }
        ("echo", _) => {
            let (value, file) = command.strip_prefix("echo ")?.split_once(" > ")?;
            Some(Write { to: value.to_owned(), ..by_file(file.trim_matches('\'')) })
        }
        ("ethtool", option) => {
            let of = Of::Named(format!("ethtool {option} {}", words.next()?));
            Some(Write { of, key: Key::Value, to: words.collect::<Vec<_>>().join(" ") })
        }
        _ => None,
    }
}

fn by_virsh(machine: &Machine, verb: &str, command: &str, comment: &str) -> Option<Write> {
    let rest = command.strip_prefix("virsh ")?.strip_prefix(verb)?.trim_start();
    let is_next = |name: &str| rest.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    let vm = machine.domains.iter().map(|domain| &domain.name).find(|name| is_next(&quoted(name)))?.clone();
    let mut words = rest[quoted(&vm).len()..].split_whitespace();
    let set = |key: &str| Some(rest.split_once(key)?.1.split(' ').next().unwrap_or_default().to_owned());
    let (of, key, to) = match verb {
        "vcpupin" => (Of::Thread(vm, format!("vcpu {}", words.next()?)), Key::Cpus, words.next()?.to_owned()),
        "iothreadpin" => (Of::Thread(vm, format!("iothread {}", words.next()?)), Key::Cpus, words.next()?.to_owned()),
        "emulatorpin" => (Of::Thread(vm, "emulator".to_owned()), Key::Cpus, words.next()?.to_owned()),
        "schedinfo" => match set("cpu_shares=") {
            Some(shares) => (Of::Vm(vm), Key::Weight, shares),
            None => (Of::Vm(vm), Key::Quota, set("_quota=")?),
        },
        "setvcpus" => (Of::Vm(vm), Key::Size, words.next()?.to_owned()),
        "edit" if comment.contains("fewer") => (Of::Vm(vm), Key::Size, comment.to_owned()),
        "edit" => {
            let element = comment.split_once("<topology")?.1.split_once("/>")?.0;
            (Of::Named(format!("{vm} topology")), Key::Value, element.to_owned())
        }
        _ => return None,
    };
    Some(Write { of, key, to })
}

/// A file, and the group that it is of where it is one of a group.
fn by_file(file: &str) -> Write {
    let named = || Write { of: Of::Named(file.to_owned()), key: Key::Value, to: String::new() };
    let Some((path, name)) = file.strip_prefix("/sys/fs/cgroup").and_then(|below| below.rsplit_once('/')) else {
        return named();
    };
    let key = match name {
        "cpuset.cpus" => Key::Cpus,
        "cpu.weight" | "cpu.shares" => Key::Weight,
        "cpu.max" | "cpu.cfs_quota_us" => Key::Quota,
        _ => return named(),
    };
    // Version 1 has a tree for each controller.
    let mut trees = ["/cpuset/", "/cpu,cpuacct/", "/cpu/"].into_iter();
    let path = trees.find_map(|tree| path.strip_prefix(tree)).unwrap_or(path);
    Write { of: Of::Group(format!("/{}", path.trim_start_matches('/'))), key, to: String::new() }
}

/// The group of a unit.
fn group_of(machine: &Machine, unit: &str) -> Option<String> {
    let of_threads = machine.threads.iter().flat_map(|thread| [&thread.cgroup, &thread.time_group]).flatten();
    of_threads.chain(machine.cgroups.keys()).chain(machine.weights.keys()).find_map(|path| {
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
        ends.map(|end| &path[..end])
            .find(|group| group.rsplit('/').next().is_some_and(|name| quoted(name) == unit))
            .map(str::to_owned)
    })
}

/// The hit with what is typed for a group.
pub(crate) fn typed(hit: &mut Hit, typed: Typed) {
    hit.first.extend(typed.first);
    hit.fix.extend(typed.fix);
    hit.undo.extend(typed.undo);
}
