//! What the texts told so far, as the readers of `BLOCKS` add to it.

use super::{ethtool, interrupts, limits, totals, waits};
use crate::budget;
use crate::machine::ovsdb::Tables;
use crate::machine::{Complaint, Domain, Fact, Gauge, GaugeKind, Machine, Nic, NicKind, ProcessMemory, Quoted};
use std::collections::{BTreeMap, HashMap};

/// What was gathered so far.
pub(crate) struct Pasted {
    pub(super) machine: Machine,
    /// The domain that the last command named; empty before any did.
    pub(super) domain: String,
    /// Rows of Open vSwitch's tables.
    pub(super) ovs: Tables,
    /// Where domains and network devices stand in the machine's lists, by their names.
    pub(super) domains: HashMap<String, usize>,
    pub(super) nics: HashMap<String, usize>,
    /// Where processes stand in the list of those whose memory was told, by their ids.
    pub(super) processes: HashMap<i32, usize>,
    /// Whether a header of `ps` or `pidstat` stood before in this text.
    pub(super) met_header: bool,
    /// Rows of screens and counters of interrupts that may still be taken.
    pub(super) rows_left: usize,
    pub(super) counters_left: usize,
    /// Whether the last command at a prompt asked for vhost workers.
    pub(super) asks_for_workers: bool,
    /// How many CPUs the machine has, where nothing but their number was told, and the line.
    pub(super) cpu_count: Option<Fact<u32>>,
    /// What libvirt was told that a vCPU of a domain may use, in CPUs.
    pub(super) vcpu_quotas: BTreeMap<String, Fact<f64>>,
    /// Quotas of groups, in CPUs, and what they took, by the groups' paths.
    pub(super) group_quotas: BTreeMap<String, Fact<f64>>,
    pub(super) throttled: BTreeMap<String, limits::Counted>,
    /// Groups whose files the last command asked for.
    pub(super) groups: limits::AskedGroups,
    /// What threads ran and waited, in the order of the texts, and where each stands there.
    pub(super) waiting: (HashMap<(String, usize), usize>, Vec<waits::Sums>),
    /// Looks at the counters of interrupts and softirqs, in the order of the texts.
    pub(super) looks: Vec<interrupts::Look>,
    /// The cards whose counters the last command asked for.
    pub(super) asked: ethtool::AskedCards,
    /// How long tasks ran on each CPU and waited for it, by the last copy of `/proc/schedstat`.
    pub(super) queues: BTreeMap<u32, (f64, f64)>,
    /// The last copy of `/proc/stat`.
    pub(super) stat: Option<totals::Stat>,
    /// Where `mpstat` or `sar` told last how CPUs were used.
    pub(super) uses: String,
    /// What was left out, by its kind: how often, of what, and the bound.
    pub(super) left_out: BTreeMap<&'static str, (u64, usize)>,
}

impl Pasted {
    pub(super) fn new(domains: Vec<Domain>) -> Self {
        let names = domains.iter().enumerate().map(|(index, domain)| (domain.name.clone(), index)).collect();
        Self {
            machine: Machine { domains, ..Machine::default() },
            domain: String::new(),
            ovs: Tables::default(),
            domains: names,
            nics: HashMap::new(),
            processes: HashMap::new(),
            met_header: false,
            rows_left: budget::SCREEN_ROWS,
            counters_left: budget::IRQ_COUNTERS,
            uses: String::new(),
            asks_for_workers: false,
            cpu_count: None,
            vcpu_quotas: BTreeMap::new(),
            group_quotas: BTreeMap::new(),
            throttled: BTreeMap::new(),
            groups: limits::AskedGroups::default(),
            waiting: (HashMap::new(), Vec::new()),
            looks: Vec::new(),
            asked: ethtool::AskedCards::default(),
            queues: BTreeMap::new(),
            stat: None,
            left_out: BTreeMap::new(),
        }
    }

    /// Forgets what the text before said of the lines that followed in it.
    pub(super) fn begin_text(&mut self) {
        self.met_header = false;
        self.asked.note("", 0);
        self.groups = limits::AskedGroups::default();
    }

    /// The domain of that name, made if it is not there yet; `None` if there are too many.
    pub(super) fn domain(&mut self, name: &str) -> Option<&mut Domain> {
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
    pub(super) fn named(&mut self) -> Option<&mut Domain> {
        let name = self.domain.clone();
        self.domain(&name)
    }

    /// The network device of that name, made if it is not there yet.
    pub(super) fn nic(&mut self, name: &str) -> &mut Nic {
        let nics = &mut self.machine.nics;
        let index = *self.nics.entry(name.to_owned()).or_insert_with(|| {
            nics.push(Nic { name: name.to_owned(), kind: NicKind::Other, ..Nic::default() });
            nics.len() - 1
        });
        &mut nics[index]
    }

    /// Notes where a process's memory lies; of one that was looked at twice the last look counts, and the one before is quoted.
    pub(super) fn process_memory(&mut self, told: ProcessMemory) {
        let memory = &mut self.machine.process_memory;
        let at = *self.processes.entry(told.pid).or_insert(memory.len());
        let Some(known) = memory.get_mut(at) else {
            memory.push(told);
            return;
        };
        let before = std::mem::replace(known, told);
        for (node, there) in &before.bytes.value {
            let (what, subject) =
                (format!("memory on node {node}, before"), format!("{} ({})", before.pid, before.name));
            self.quote(&what, &subject, &base::number::bytes(*there as f64), before.bytes.place.clone());
        }
    }

    /// Counts what a bound left out.
    pub(super) fn leave_out(&mut self, what: &'static str, most: usize) {
        let count = &mut self.left_out.entry(what).or_insert((0, most)).0;
        *count = count.saturating_add(1);
    }

    /// Counts a row of a screen; false if there have been too many.
    pub(super) fn may_take_row(&mut self) -> bool {
        let left = self.rows_left.checked_sub(1);
        self.rows_left = left.unwrap_or(0);
        if left.is_none() {
            self.leave_out("rows of screens beyond the first", budget::SCREEN_ROWS);
        }
        left.is_some()
    }

    /// Notes how many CPUs there are; whoever counts more has seen them all.
    pub(super) fn count_cpus(&mut self, count: u32, place: String) {
        let known = self.cpu_count.as_ref().map_or(0, |known| known.value);
        if count > known && count <= base::cpus::MOST_CPUS {
            self.cpu_count = Some(Fact::new(count, place));
        }
    }

    /// Keeps a value that a host says of itself.
    pub(super) fn gauge(&mut self, kind: GaugeKind, subject: &str, value: f64, place: String) {
        if self.machine.gauges.len() < budget::SCREEN_ROWS {
            self.machine.gauges.push(Gauge { kind, subject: subject.to_owned(), value, place });
        } else {
            self.leave_out("values of the host beyond the first", budget::SCREEN_ROWS);
        }
    }

    /// Keeps a value that no question uses in the words of its program.
    pub(super) fn quote(&mut self, what: &str, subject: &str, value: &str, place: String) {
        if self.machine.quoted.len() < budget::QUOTED_VALUES {
            let [what, subject, value] = [what, subject, value].map(str::to_owned);
            self.machine.quoted.push(Quoted { what, subject, value, place });
        } else {
            self.leave_out("values that no question uses beyond the first", budget::QUOTED_VALUES);
        }
    }

    /// Keeps what something complains of.
    pub(super) fn complain(&mut self, complaint: Complaint, place: String) {
        if self.machine.complaints.len() < budget::SCREEN_ROWS {
            self.machine.complaints.push(Fact::new(complaint, place));
        } else {
            self.leave_out("complaints beyond the first", budget::SCREEN_ROWS);
        }
    }

    /// Keeps a sentence that sums up what a program printed.
    pub(super) fn summarize(&mut self, sentence: String, place: String) {
        if self.machine.summaries.len() < budget::UNREAD_SENTENCES {
            self.machine.summaries.push(Fact::new(sentence, place));
        } else {
            self.leave_out("sentences about programs beyond the first", budget::UNREAD_SENTENCES);
        }
    }

    /// Notes what could not be read, as long as people might read that.
    pub(super) fn unread(&mut self, sentence: String) {
        if self.machine.unread.len() < budget::UNREAD_SENTENCES {
            self.machine.unread.push(sentence);
        } else {
            self.leave_out("sentences about what was not read beyond the first", budget::UNREAD_SENTENCES);
        }
    }
}
