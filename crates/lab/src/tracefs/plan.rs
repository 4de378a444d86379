//! What is to be recorded, and how?

use super::ring::Keep;
use crate::Error;
use base::CpuSet;
use base::quantity::whole;
use std::path::Path;
use std::time::Duration;

/// Once a second a page of each CPU is rarely full, and costs little.
const SWEEP: Duration = Duration::from_secs(1);

/// A page that is not full is taken when the trace ends: taking it earlier would take CPU time from those that measure.
const SWEEP_AT_THE_END: Duration = Duration::from_secs(3_600);

/// What changes who has a CPU, and what makes threads ready.
const SCHEDULING: [&str; 7] = [
    "sched:sched_switch",
    "sched:sched_waking",
    "irq:irq_handler_entry",
    "irq:irq_handler_exit",
    "irq:softirq_entry",
    "irq:softirq_exit",
    "irq_vectors",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub events: Vec<Selection>,
    /// The trace clock; `None` takes `x86-tsc` where the kernel has it, else `mono`.
    pub clock: Option<String>,
    /// Size of the ring buffer of each CPU in KiB.
    pub buffer_kib: u64,
    /// Only events of these threads; empty: all. With them of threads that their processes start, as soon as those are seen,
    /// and all switches, where switches are recorded; else of all tasks that they start.
    pub tids: Vec<u32>,
    /// Only events on these CPUs; empty: all.
    pub cpus: CpuSet,
    /// Keep the addresses of the kernel's functions, megabytes of text: for events with addresses.
    pub symbols: bool,
    /// Record nothing until [`super::TracefsRecorder::go_on`].
    pub paused: bool,
    /// How often pages are taken that are not full: what a kill costs, and how far behind whoever reads along is.
    pub sweep: Duration,
    /// What a flight recorder keeps; `None` keeps all.
    pub keep: Option<Keep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The group: `kvm`.
    pub system: String,
    /// The event; `None` for all of the group.
    pub name: Option<String>,
    /// Named by the user: then it must be there.
    pub asked: bool,
}

/// What `kvmscope record` records unless more is asked for: the events that the flow of a vCPU is told from. All of group `kvm` is taken,
/// because kernels rename single events.
impl Default for Plan {
    fn default() -> Self {
        let events = ["kvm"].into_iter().chain(SCHEDULING).chain(["timer:hrtimer_expire_entry"]);
        Self {
            events: events.filter_map(Selection::parse).collect(),
            clock: None,
            buffer_kib: 4 << 10,
            tids: Vec::new(),
            cpus: CpuSet::default(),
            symbols: true,
            paused: false,
            sweep: SWEEP,
            keep: None,
        }
    }
}

impl Plan {
    /// Who has these CPUs while something is measured on them.
    pub fn of_scheduling(cpus: CpuSet) -> Self {
        let events = SCHEDULING.iter().filter_map(|text| Selection::parse(text)).collect();
        Self { events, cpus, symbols: false, sweep: SWEEP_AT_THE_END, ..Self::default() }
    }
}

impl Selection {
    /// Reads `system:name` or `system`; `None` if it is neither. A name that could lead out of tracefs is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (system, name) = text.split_once(':').map_or((text, None), |(system, name)| (system, Some(name)));
        let plain = |text: &str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        };
        let known = plain(system) && name.is_none_or(|name| plain(name) || name == "*");
        let name = name.filter(|name| *name != "*").map(str::to_owned);
        known.then(|| Self { system: system.to_owned(), name, asked: false })
    }

    /// The single events that this selects, `(system, name)`, out of those below `events`.
    ///
    /// # Errors
    /// If the user named what is not there; what is only ours to want may be missing.
    pub fn names(&self, events: &Path) -> Result<Vec<(String, String)>, Error> {
        let group = events.join(&self.system);
        let mut names = match &self.name {
            Some(name) => vec![name.clone()],
            None => std::fs::read_dir(&group)
                .map(|listing| listing.filter_map(|file| file.ok()?.file_name().into_string().ok()).collect())
                .unwrap_or_default(),
        };
        names.retain(|name| group.join(name).join("format").is_file());
        names.sort_unstable();
        if names.is_empty() && self.asked {
            let name = self.name.as_deref().map(|name| format!(":{name}")).unwrap_or_default();
            let text = format!(
                "this kernel has no event {}{name}; `ls {}` shows what it has",
                self.system,
                if group.is_dir() { group.display() } else { events.display() }
            );
            return Err(Error::WrongUse(text));
        }
        Ok(names.into_iter().map(|name| (self.system.clone(), name)).collect())
    }
}

/// Reads a size such as `512K`, `8M` or `1G` as KiB; a bare number counts KiB, as the kernel's `buffer_size_kb` does.
pub fn buffer_kib(text: &str) -> Option<u64> {
    let units = [("", 1), ("K KB KIB", 1), ("M MB MIB", 1 << 10), ("G GB GIB", 1 << 20)];
    whole(&text.to_ascii_uppercase(), &units).filter(|kib| *kib > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_events_have_plain_names() {
        assert_eq!(["8M", "512k", "64", "1GiB"].map(buffer_kib), [Some(8192), Some(512), Some(64), Some(1 << 20)]);
        assert_eq!(["", "0", "M", "8T", "-1"].map(buffer_kib), [None; 5]);
        let parsed = Selection::parse("kvm:kvm_exit").unwrap();
        assert_eq!((parsed.system.as_str(), parsed.name.as_deref()), ("kvm", Some("kvm_exit")));
        assert_eq!(Selection::parse("sched:*").unwrap().name, None);
        assert!(["", "a/b", "../x", "kvm:..", "a:b:c"].iter().all(|text| Selection::parse(text).is_none()));
    }

    #[test]
    fn only_what_the_user_named_must_be_there() {
        let events = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(events.path().join("kvm/kvm_exit")).unwrap();
        std::fs::write(events.path().join("kvm/kvm_exit/format"), "name: kvm_exit").unwrap();
        std::fs::write(events.path().join("kvm/enable"), "0").unwrap();
        let all = Selection::parse("kvm").unwrap();
        assert_eq!(all.names(events.path()).unwrap(), [("kvm".to_owned(), "kvm_exit".to_owned())]);
        let absent = Selection::parse("xen").unwrap();
        assert!(absent.names(events.path()).unwrap().is_empty());
        let error = Selection { asked: true, ..absent }.names(events.path()).unwrap_err().to_string();
        assert!(error.contains("no event xen"), "{error}");
    }
}
