//! What do the commands say whose output people paste into tickets?
//!
//! In: texts, each a mix of prose, prompts and outputs, in any order. Out: one [`Machine`] with what was told, and how many
//! lines of each text were understood. Recognized: `lscpu`, `lscpu -p`, `-e` and `-J`, `virsh vcpupin`, `vcpuinfo`, `emulatorpin`,
//! `iothreadinfo`, domain XML, `top`, `ps`, `pidstat -t`, `taskset -acp`, `Cpus_allowed_list` of status files, `/proc/interrupts` and `softirqs`, `mpstat -P ALL`, `sar -u`, `vmstat`, `iostat -c`, `/proc/stat`, `numactl -H`,
//! `/proc/cmdline`, `/proc/meminfo`, `/proc/pressure`, `free`, `numastat`, `iostat -x`, `virsh schedinfo` and `domstats`, `cpu.stat`, `cpu.max`,
//! `schedstat`, settings below `/proc/sys` and `/sys`, the kernel's log, `lsvmbus -vv`, `ovs-appctl dpif-netdev/pmd-rxq-show`, `ovs-vsctl show`, `list`, `get`, `ethtool -c`, `-k`, `-l`, `-g`, `-S`, `iperf3`;
//! shown as they stand: fio, `perf report`, turbostat, `cpupower frequency-info`, definitions of KubeVirt, `kubectl describe pod`, `openstack flavor show`, QEMU's log.
//! ```text
//! line by line: which block begins here? --> it takes its lines --> Pasted --threads--> Machine
//! ```
//! A block is known by its header, never by the file's name, and a line that no block takes is counted and shown, not guessed.

mod balloon;
mod boot;
mod counters;
mod cpus;
mod disks;
mod ethtool;
mod fio;
mod frequency;
mod groups;
mod interrupts;
mod iperf;
mod json;
mod kernel;
mod kubernetes;
mod limits;
mod lscpu;
mod marks;
mod memory;
mod named;
mod nodes;
mod openstack;
mod pins;
mod pressure;
mod processes;
mod profile;
mod prompt;
mod proxmox;
mod qemu_log;
mod screen;
mod switch;
mod threads;
mod totals;
mod vmbus;
mod waits;
mod xml;

use crate::budget;
use crate::machine::ovsdb::Tables;
use crate::machine::{Domain, Fact, Gauge, GaugeKind, Machine, Nic, NicKind, Quoted, Throttled};
use base::number::many;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// Commands whose output is recognized.
pub const RECOGNIZED: &str = "the output of lscpu, numactl -H, virsh dumpxml, vcpupin, vcpuinfo and emulatorpin, top -H, ps -eLo, pidstat -t, \
                              taskset -acp, mpstat -P ALL, sar -u, vmstat, iostat -c, /proc/stat, ethtool -S, -g, -l, -k and -c, ovs-vsctl, iperf3, fio, \
                              perf report --stdio, turbostat, kubectl get vmi -o yaml and cat /proc/interrupts, in any mix";

/// How many of the lines that no block took are shown.
const SHOWN_LINES: usize = 3;

/// How much of such a line is shown.
const SHOWN_LETTERS: usize = 60;

/// What was gathered so far.
pub(crate) struct Pasted {
    machine: Machine,
    /// The domain that the last command named; empty before any did.
    domain: String,
    /// Rows of Open vSwitch's tables.
    ovs: Tables,
    /// Where domains and network devices stand in the machine's lists, by their names.
    domains: HashMap<String, usize>,
    nics: HashMap<String, usize>,
    /// Whether a header of `ps` or `pidstat` stood before in this text.
    met_header: bool,
    /// Rows of screens and counters of interrupts that may still be taken.
    rows_left: usize,
    counters_left: usize,
    /// Whether the last command at a prompt asked for vhost workers.
    asks_for_workers: bool,
    /// How many CPUs the machine has, where nothing but their number was told, and the line.
    cpu_count: Option<Fact<u32>>,
    /// What libvirt was told that a vCPU of a domain may use, in CPUs.
    vcpu_quotas: BTreeMap<String, Fact<f64>>,
    /// Quotas of groups, in CPUs, and what they took, by the groups' paths.
    group_quotas: BTreeMap<String, Fact<f64>>,
    throttled: BTreeMap<String, Fact<Throttled>>,
    /// Looks at the counters of interrupts and softirqs, in the order of the texts.
    looks: Vec<interrupts::Look>,
    /// How long tasks ran on each CPU and waited for it, by the last copy of `/proc/schedstat`.
    queues: BTreeMap<u32, (f64, f64)>,
    /// What was left out, by its kind: how often, of what, and the bound.
    left_out: BTreeMap<&'static str, (u64, usize)>,
}

pub(crate) struct Text<'a> {
    file: &'a str,
    lines: Vec<&'a str>,
    /// Texts that no line holds from a line on, so that nobody looks for them twice.
    ends: RefCell<HashMap<String, usize>>,
}

impl Pasted {
    fn new(domains: Vec<Domain>) -> Self {
        let names = domains.iter().enumerate().map(|(index, domain)| (domain.name.clone(), index)).collect();
        Self {
            machine: Machine { domains, ..Machine::default() },
            domain: String::new(),
            ovs: Tables::default(),
            domains: names,
            nics: HashMap::new(),
            met_header: false,
            rows_left: budget::SCREEN_ROWS,
            counters_left: budget::IRQ_COUNTERS,
            asks_for_workers: false,
            cpu_count: None,
            vcpu_quotas: BTreeMap::new(),
            group_quotas: BTreeMap::new(),
            throttled: BTreeMap::new(),
            looks: Vec::new(),
            queues: BTreeMap::new(),
            left_out: BTreeMap::new(),
        }
    }

    /// The domain of that name, made if it is not there yet; `None` if there are too many.
    fn domain(&mut self, name: &str) -> Option<&mut Domain> {
        let index = match self.domains.get(name) {
            Some(index) => *index,
            None if self.domains.len() < budget::DOMAINS => {
                self.machine.domains.push(Domain { name: name.to_owned(), ..Domain::default() });
                self.domains.insert(name.to_owned(), self.machine.domains.len() - 1);
                self.machine.domains.len() - 1
            }
            None => {
                self.leave_out("facts of domains beyond the first", budget::DOMAINS);
                return None;
            }
        };
        self.machine.domains.get_mut(index)
    }

    /// The domain that the last command named.
    fn named(&mut self) -> Option<&mut Domain> {
        let name = self.domain.clone();
        self.domain(&name)
    }

    /// The network device of that name, made if it is not there yet.
    fn nic(&mut self, name: &str) -> &mut Nic {
        let nics = &mut self.machine.nics;
        let index = *self.nics.entry(name.to_owned()).or_insert_with(|| {
            nics.push(Nic { name: name.to_owned(), kind: NicKind::Other, ..Nic::default() });
            nics.len() - 1
        });
        &mut nics[index]
    }

    /// Counts what a bound left out.
    fn leave_out(&mut self, what: &'static str, most: usize) {
        let count = &mut self.left_out.entry(what).or_insert((0, most)).0;
        *count = count.saturating_add(1);
    }

    /// Counts a row of a screen; false if there have been too many.
    fn may_take_row(&mut self) -> bool {
        let left = self.rows_left.checked_sub(1);
        self.rows_left = left.unwrap_or(0);
        if left.is_none() {
            self.leave_out("rows of screens beyond the first", budget::SCREEN_ROWS);
        }
        left.is_some()
    }

    /// Notes how many CPUs there are; whoever counts more has seen them all.
    fn count_cpus(&mut self, count: u32, place: String) {
        let known = self.cpu_count.as_ref().map_or(0, |known| known.value);
        if count > known && count <= base::cpus::MOST_CPUS {
            self.cpu_count = Some(Fact::new(count, place));
        }
    }

    /// Keeps a value that a host says of itself.
    fn gauge(&mut self, kind: GaugeKind, subject: &str, value: f64, place: String) {
        if self.machine.gauges.len() < budget::SCREEN_ROWS {
            self.machine.gauges.push(Gauge { kind, subject: subject.to_owned(), value, place });
        } else {
            self.leave_out("values of the host beyond the first", budget::SCREEN_ROWS);
        }
    }

    /// Keeps a value that no question uses in the words of its program.
    fn quote(&mut self, what: &str, subject: &str, value: &str, place: String) {
        if self.machine.quoted.len() < budget::QUOTED_VALUES {
            let [what, subject, value] = [what, subject, value].map(str::to_owned);
            self.machine.quoted.push(Quoted { what, subject, value, place });
        } else {
            self.leave_out("values that no question uses beyond the first", budget::QUOTED_VALUES);
        }
    }

    /// Notes what could not be read, as long as people might read that.
    fn unread(&mut self, sentence: String) {
        if self.machine.unread.len() < budget::UNREAD_SENTENCES {
            self.machine.unread.push(sentence);
        } else {
            self.leave_out("sentences about what was not read beyond the first", budget::UNREAD_SENTENCES);
        }
    }
}

impl<'a> Text<'a> {
    /// The line at a position, counted from 0, without blanks around it; empty beyond the end.
    fn at(&self, line: usize) -> &'a str {
        self.lines.get(line).map_or("", |line| line.trim())
    }

    fn place(&self, line: usize) -> String {
        format!("{}:{}", self.file, line + 1)
    }

    /// The first line from `line` on for which `ends` holds; `name` tells what is looked for. Where there is none, every
    /// later search for it is told so at once.
    fn find_end(&self, line: usize, name: &str, ends: impl Fn(&str) -> bool) -> Option<usize> {
        if self.ends.borrow().get(name).is_some_and(|none_from| line >= *none_from) {
            return None;
        }
        let found = (line..self.lines.len()).find(|line| ends(self.lines[*line]));
        if found.is_none() {
            self.ends.borrow_mut().insert(name.to_owned(), line);
        }
        found
    }

    fn fact<T>(&self, value: T, line: usize) -> Fact<T> {
        Fact::new(value, self.place(line))
    }
}

/// Takes the block that begins at a line, and returns how many lines that were; 0: none of its kind begins there.
type Block = fn(&Text<'_>, usize, &mut Pasted) -> usize;

/// All kinds of block. No two begin with the same line, and none with a blank one.
const BLOCKS: &[Block] = &[
    cpus::parsable,
    cpus::extended,
    cpus::json,
    lscpu::summary,
    lscpu::json,
    lscpu::cpuinfo,
    pins::vcpus,
    pins::vcpuinfo,
    pins::emulator,
    pins::iothreads,
    pins::taskset,
    pins::allowed,
    xml::elements,
    processes::rows,
    screen::head,
    screen::top,
    screen::bare,
    interrupts::counters,
    interrupts::stamp,
    counters::mpstat,
    counters::system,
    limits::schedinfo,
    limits::cpu_stat,
    limits::cpu_max,
    limits::domstats,
    balloon::stat,
    waits::of_file,
    waits::of_cpus,
    waits::of_names,
    proxmox::command,
    proxmox::container,
    proxmox::config,
    pressure::lines,
    memory::meminfo,
    memory::free,
    memory::numastat,
    memory::sar,
    nodes::lstopo,
    disks::domblkstat,
    disks::iostat,
    kernel::line,
    named::settings,
    named::sysctl,
    totals::vmstat,
    totals::average,
    totals::stat,
    nodes::numactl,
    vmbus::channels,
    switch::pmd,
    switch::record,
    switch::other_config,
    switch::statistics,
    switch::show,
    ethtool::coalescing,
    ethtool::offloads,
    ethtool::channels,
    ethtool::rings,
    ethtool::statistics,
    fio::jobs,
    profile::rows,
    frequency::turbostat,
    frequency::cpupower,
    kubernetes::vm,
    kubernetes::pod,
    openstack::fields,
    qemu_log::lines,
    iperf::text,
    iperf::json,
    iperf::around,
    processes::command,
    boot::line,
    pins::command,
    named::heading,
    prompt::line,
];

/// Reads texts, each with the name that its facts are quoted by.
pub fn read(texts: &[(String, String)]) -> Machine {
    let (mut machine, strange) = of(Vec::new(), texts);
    machine.strange = strange;
    machine
}

/// Which lines of a text without marks are read. What a bound leaves out is not.
pub fn told(text: &str) -> Vec<bool> {
    let read = base::plain::beginning(text, budget::TEXT_BYTES);
    let lines = read.lines().take(budget::LINES);
    let lines = lines.map(|line| if line.len() > budget::LINE_BYTES { "" } else { line }).collect();
    let text_read = Text { file: "", lines, ends: RefCell::default() };
    let mut told = blocks(&text_read, &mut Pasted::new(Vec::new()));
    told.resize(text.lines().count(), false);
    told
}

/// Reads texts about a machine whose domains are known.
pub(crate) fn read_of(domains: Vec<Domain>, texts: &[(String, String)]) -> Machine {
    of(domains, texts).0
}

/// The machine, and of each text a sentence about the lines that no block took.
fn of(domains: Vec<Domain>, texts: &[(String, String)]) -> (Machine, Vec<String>) {
    let mut strange = Vec::new();
    let mut pasted = Pasted::new(domains);
    let mut bytes_left = budget::TEXT_BYTES;
    for (file, text) in texts {
        let whole = text.len();
        let text = base::plain::beginning(text, bytes_left);
        bytes_left -= text.len();
        if text.len() < whole {
            let (read, most) = (text.len(), budget::TEXT_BYTES >> 20);
            pasted.unread(format!("{file}: {read} of {whole} bytes were read; all texts together may have {most} MiB"));
        }
        strange.extend(take(file, &marks::plain(text), &mut pasted));
    }
    interrupts::finish(&mut pasted);
    for (what, (count, most)) in std::mem::take(&mut pasted.left_out) {
        pasted.machine.unread.push(format!("{what} {most} were not read: {count}"));
    }
    (threads::finish(pasted), strange)
}

/// Takes all blocks of one text and notes how many of its lines that were; a sentence about the others, if there are any.
fn take(file: &str, plain: &str, pasted: &mut Pasted) -> Option<String> {
    let mut lines: Vec<&str> = plain.lines().take(budget::LINES).collect();
    let beyond = plain.lines().skip(budget::LINES).count();
    if beyond > 0 {
        pasted.unread(format!("{file}: lines after the first {} were not read: {beyond}", budget::LINES));
    }
    let (is_written, mut too_long) = (|line: &&str| !line.trim().is_empty(), 0);
    for line in lines.iter_mut().filter(|line| line.len() > budget::LINE_BYTES && is_written(line)) {
        (*line, too_long) = ("", too_long + 1);
    }
    if too_long > 0 {
        pasted.unread(format!("{file}: lines of more than {} bytes were not read: {too_long}", budget::LINE_BYTES));
    }
    // Marks alone say nothing, and nothing of them is lost.
    let marks = marks::unquote(&mut lines);
    let written_lines = written(&lines) + marks + too_long + beyond;
    let text = Text { file, lines, ends: RefCell::default() };
    let told = blocks(&text, pasted);
    let is_strange = |line: &usize| !told[*line] && !text.at(*line).is_empty();
    let understood = marks + (0..told.len()).filter(|line| told[*line] && !text.at(*line).is_empty()).count();
    let lost = (written_lines - understood) as u64;
    pasted.machine.sources.push((file.to_owned(), understood as u64, lost));
    let strange = (0..told.len()).filter(is_strange).take(SHOWN_LINES);
    let shown = strange.map(|line| format!("line {} `{}`", line + 1, shown(text.at(line)))).collect::<Vec<_>>();
    (!shown.is_empty())
        .then(|| format!("{file}: {} not understood, the first: {}", many(lost, "line"), shown.join(", ")))
}

/// Takes all blocks of one text, and says of each line whether one took it.
fn blocks(text: &Text<'_>, pasted: &mut Pasted) -> Vec<bool> {
    let mut told = vec![false; text.lines.len()];
    pasted.met_header = false;
    let mut line = 0;
    while line < text.lines.len() {
        let taken = match text.at(line).is_empty() {
            true => None,
            false => BLOCKS.iter().map(|block| block(text, line, pasted)).find(|taken| *taken > 0),
        };
        let end = text.lines.len().min(line + taken.unwrap_or(1));
        told[line..end].fill(taken.is_some());
        line = end;
    }
    told
}

/// The beginning of a line, as it is shown to people.
fn shown(line: &str) -> String {
    let plain: String = line.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    match plain.char_indices().nth(SHOWN_LETTERS) {
        Some((end, _)) => format!("{}..", &plain[..end]),
        None => plain,
    }
}

/// How many lines are not blank.
fn written(lines: &[&str]) -> usize {
    lines.iter().filter(|line| !line.trim().is_empty()).count()
}
