//! Sums of a migration, by its own program's account.
//!
//! ```text
//! Job type:         Completed            Migration status: completed
//! Time elapsed:     2271         ms      total time: 17 ms
//! Constant pages:   1875309              duplicate: 32778 pages
//! ```
//! Sources: `cmdDomjobinfo` of tools/virsh-domain.c, libvirt 9.0; `hmp_info_migrate` of monitor/hmp-cmds.c, QEMU 7.2, and of
//! migration/migration-hmp-cmds.c, QEMU 10.0 and, with groups, 10.1. Both count sizes in powers of 1024, the monitor's `kbytes` too.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// `virsh domjobinfo`.
    Libvirt,
    /// `info migrate`.
    Monitor,
    /// QEMU's answer to `query-migrate`.
    Qmp,
    /// The log of virt-launcher.
    KubeVirt,
    /// The log of Cloud Hypervisor.
    CloudHypervisor,
    /// The log of a task of Proxmox.
    Proxmox,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    pub by: By,
    /// What libvirt calls the job in small letters, where it is no migration out of this host: `save`, `dump`, `incoming migration`.
    pub job: Option<String>,
    /// As QEMU has it: `active`, `completed`, `failed`, `cancelled`.
    pub status: String,
    pub error: Option<String>,
    /// Milliseconds from its begin to its end, or until now.
    pub total_ms: Option<u64>,
    /// Milliseconds that the source takes the guest to have been stopped.
    pub downtime_ms: Option<u64>,
    pub transferred_bytes: Option<u64>,
    /// Bytes that are still to be sent.
    pub remaining_bytes: Option<u64>,
    pub zero_pages: Option<u64>,
    pub normal_pages: Option<u64>,
    pub page_bytes: Option<u64>,
    /// How often dirty bits were fetched: passes, the final one counted.
    pub passes: Option<u64>,
    /// What auto-converge takes of the guest's time, in percent.
    pub throttle_percent: Option<u64>,
    /// All of the guest's memory.
    pub total_bytes: Option<u64>,
    /// Bytes of its disks that are still to be sent.
    pub disk_remaining_bytes: Option<u64>,
    /// What the source takes the guest to be stopped for, if it stopped it now.
    pub expected_downtime_ms: Option<u64>,
    /// Pages that the guest dirtied in a second of the last pass.
    pub dirty_pages_per_s: Option<u64>,
    /// The same in bytes, by who counts it so.
    pub dirty_bytes_per_s: Option<f64>,
    /// Bytes that are sent in a second.
    pub sent_bytes_per_s: Option<f64>,
    /// What else its text says of it: limits, what was switched on, why it was stopped.
    pub notes: Vec<String>,
}

/// What a line may tell.
#[derive(Clone, Copy)]
enum Field {
    TotalMs,
    DowntimeMs,
    Transferred,
    Remaining,
    /// The same of memory and disks together, where a text has cut off what is of memory alone.
    DataTransferred,
    DataRemaining,
    DataTotal,
    ZeroPages,
    NormalPages,
    PageSize,
    Passes,
    Throttle,
    Total,
    Expected,
    DirtyPages,
    Sent,
}

/// What is said of a migration behind its switch to post-copy (docs/devel/migration/postcopy.rst, QEMU 9.0).
pub const POSTCOPY: &str = "post-copy: the guest runs on the target already, waits for pages that are left here, and is lost where either side fails";

/// How libvirt and the monitor call it.
const LABELS: &[(&str, &str, Field)] = &[
    ("Time elapsed", "total time", Field::TotalMs),
    ("Total downtime", "downtime", Field::DowntimeMs),
    ("Data processed", "", Field::DataTransferred),
    ("Data remaining", "", Field::DataRemaining),
    ("Data total", "", Field::DataTotal),
    ("Memory processed", "transferred ram", Field::Transferred),
    ("Memory remaining", "remaining ram", Field::Remaining),
    ("Constant pages", "duplicate", Field::ZeroPages),
    ("Normal pages", "normal", Field::NormalPages),
    ("Page size", "page size", Field::PageSize),
    ("Iteration", "dirty sync count", Field::Passes),
    ("Auto converge throttle", "cpu throttle percentage", Field::Throttle),
    ("Memory total", "total ram", Field::Total),
    ("Expected downtime", "expected downtime", Field::Expected),
    ("Dirty rate", "dirty pages rate", Field::DirtyPages),
    ("Memory bandwidth", "throughput", Field::Sent),
];

/// Lines that an account begins with.
const BEGINS: [(&str, By); 2] = [("Job type", By::Libvirt), ("Migration status", By::Monitor)];

/// What `info migrate_parameters` and `info migrate_capabilities` say that decides whether a migration ends.
const SET: &[&str] = &[
    "downtime-limit",
    "max-bandwidth",
    "auto-converge",
    "cpu-throttle-initial",
    "cpu-throttle-increment",
    "max-cpu-throttle",
    "postcopy-ram",
    "multifd",
    "multifd-channels",
    "tls-creds",
    "xbzrle",
    "xbzrle pages",
    "xbzrle transferred",
    "xbzrle cache miss rate",
    "dirty-limit",
];

/// What is set, in words: `downtime-limit 300 ms`.
fn set(label: &str, value: &str) -> Option<String> {
    (SET.contains(&label) && !value.is_empty() && value != "''").then(|| format!("{label} {value}"))
}

/// How libvirt calls what became of a job, and QEMU (`virshDomainJobToString`).
const STATUS: &[(&str, &str)] = &[
    ("Bounded", "active"),
    ("Unbounded", "active"),
    ("Completed", "completed"),
    ("Failed", "failed"),
    ("Cancelled", "cancelled"),
];

/// All accounts in a text, in order.
pub fn read(text: &str) -> Vec<Account> {
    let mut accounts: Vec<Account> = Vec::new();
    let (mut is_open, mut status) = (false, None);
    // Settings that were asked for before the first account.
    let mut before: Vec<String> = Vec::new();
    for line in text.lines() {
        let Some((label, value)) = line.trim().split_once(':') else { continue };
        let (label, value) = (label.trim(), value.trim());
        if let Some((_, by)) = BEGINS.iter().find(|(begin, _)| *begin == label) {
            let mut account = Account::new(*by, value);
            is_open = account.is_some();
            account.iter_mut().filter(|_| *by == By::Monitor).for_each(|account| account.notes.append(&mut before));
            accounts.extend(account);
        } else if label == "Status" {
            status = Some(value);
        } else if label == "Time (ms)" {
            // QEMU 10.1 and later.
            let mut account = Account::new(By::Monitor, status.take().unwrap_or("active"));
            account.iter_mut().for_each(|account| account.take_group(label, value));
            is_open = account.is_some();
            accounts.extend(account);
        } else if label == "Operation" && is_open {
            let other = (!value.starts_with("Outgoing migration")).then(|| value.to_lowercase());
            accounts.iter_mut().next_back().into_iter().for_each(|account| account.job = other.clone());
        } else if is_open && let Some(account) = accounts.last_mut() {
            account.take(label, value);
        } else if before.len() < SET.len() {
            before.extend(set(label, value));
        }
    }
    accounts
}

impl Account {
    /// One that has a status alone; `None` where there is no job.
    fn new(by: By, status: &str) -> Option<Self> {
        let (status, error) = match status.split_once('(') {
            Some((status, why)) => (status.trim(), Some(why.trim_end_matches(')').to_owned())),
            None => (status, None),
        };
        let status = match by {
            By::Monitor | By::Qmp | By::KubeVirt | By::CloudHypervisor | By::Proxmox => status,
            By::Libvirt => STATUS.iter().find(|(word, _)| *word == status)?.1,
        };
        Some(Self { error, ..Self::of(by, status) })
    }

    /// One of which nothing but its status is known.
    pub(super) fn of(by: By, status: &str) -> Self {
        Self {
            by,
            job: None,
            status: status.to_owned(),
            error: None,
            total_ms: None,
            downtime_ms: None,
            transferred_bytes: None,
            remaining_bytes: None,
            zero_pages: None,
            normal_pages: None,
            page_bytes: None,
            passes: None,
            throttle_percent: None,
            total_bytes: None,
            disk_remaining_bytes: None,
            expected_downtime_ms: None,
            dirty_pages_per_s: None,
            dirty_bytes_per_s: None,
            sent_bytes_per_s: None,
            notes: status.starts_with("postcopy-").then(|| POSTCOPY.to_owned()).into_iter().collect(),
        }
    }

    /// `Sizes: pagesize=4 KiB, total=64 GiB`, as QEMU 10.1 groups them.
    fn take_group(&mut self, label: &str, value: &str) {
        let of = |key: &str| value.split(", ").find_map(|pair| pair.trim().strip_prefix(key)?.strip_prefix('='));
        let count = |key: &str| of(key).and_then(|value| value.parse::<u64>().ok());
        match label {
            "Time (ms)" => {
                (self.total_ms, self.downtime_ms) = (count("total"), count("down"));
                self.expected_downtime_ms = count("exp_down");
            }
            "Throughput (Mbps)" => self.sent_bytes_per_s = speed(&format!("{value} mbps")),
            "Sizes" => {
                (self.page_bytes, self.total_bytes) = (of("pagesize").and_then(size), of("total").and_then(size))
            }
            "Transfers" => {
                self.transferred_bytes = of("transferred").and_then(size);
                self.remaining_bytes = of("remain").and_then(size);
            }
            "Page Types" => (self.normal_pages, self.zero_pages) = (count("normal"), count("zero")),
            "Page Rates (pps)" => self.dirty_pages_per_s = count("dirty"),
            "Others" => self.passes = count("dirty_syncs"),
            "CPU Throttle (%)" => self.throttle_percent = value.parse().ok(),
            _ => {}
        }
    }

    fn take(&mut self, label: &str, value: &str) {
        if self.by == By::Monitor {
            self.take_group(label, value);
            if self.notes.len() < SET.len() {
                self.notes.extend(set(label, value));
            }
        }
        let called = |(libvirt, monitor, _): &&(&str, &str, Field)| match self.by {
            By::Libvirt => *libvirt == label,
            By::Monitor | By::Qmp | By::KubeVirt | By::CloudHypervisor | By::Proxmox => *monitor == label,
        };
        let Some((.., field)) = LABELS.iter().find(called) else { return };
        let count = || value.split_whitespace().next()?.parse().ok();
        match field {
            Field::TotalMs => self.total_ms = count(),
            Field::DowntimeMs => self.downtime_ms = count(),
            Field::Transferred => self.transferred_bytes = size(value),
            Field::Remaining => self.remaining_bytes = size(value),
            Field::DataTransferred => self.transferred_bytes = self.transferred_bytes.or(size(value)),
            Field::DataRemaining => self.remaining_bytes = self.remaining_bytes.or(size(value)),
            Field::DataTotal => self.total_bytes = self.total_bytes.or(size(value)),
            Field::ZeroPages => self.zero_pages = count(),
            Field::NormalPages => self.normal_pages = count(),
            Field::PageSize => self.page_bytes = size(value),
            Field::Passes => self.passes = count(),
            Field::Throttle => self.throttle_percent = count(),
            Field::Total => self.total_bytes = size(value),
            Field::Expected => self.expected_downtime_ms = count(),
            Field::DirtyPages => self.dirty_pages_per_s = count(),
            Field::Sent => self.sent_bytes_per_s = speed(value),
        }
    }
}

/// `830.64 mbps`, of 10^6 bits, or libvirt's `1.234 MiB/s`; 0 is none.
fn speed(value: &str) -> Option<f64> {
    let bytes = match value.strip_suffix("mbps") {
        Some(megabits) => megabits.trim().parse::<f64>().ok()? * 1e6 / 8.0,
        None => size(value.strip_suffix("/s")?)? as f64,
    };
    (bytes > 0.0).then_some(bytes)
}

/// `1.234 GiB`, `4096 bytes`, `959 kbytes`, in bytes.
pub(super) fn size(value: &str) -> Option<u64> {
    let mut words = value.split_whitespace();
    let number: f64 = words.next()?.parse().ok()?;
    let power = match words.next()? {
        "B" | "bytes" => 0,
        "KiB" | "kbytes" => 1,
        "MiB" => 2,
        "GiB" => 3,
        "TiB" => 4,
        "PiB" => 5,
        _ => return None,
    };
    let bytes = number * 1024_f64.powi(power);
    (0.0..=1e18).contains(&bytes).then(|| bytes.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_memory_and_disks_counts_where_the_lines_of_memory_are_cut_off() {
        let text = "Job type:         Unbounded\nTime elapsed:     110110 ms\nData processed:   100.500 GiB\n\
            Data remaining:   25.500 GiB\n";
        let [account] = &read(text)[..] else { panic!("one") };
        assert_eq!((account.transferred_bytes, account.remaining_bytes), (size("100.5 GiB"), size("25.5 GiB")));
        let whole = read(&format!("{text}Memory remaining: 1.000 GiB\n"));
        assert_eq!(whole[0].remaining_bytes, Some(1 << 30));
    }

    #[test]
    fn settings_that_stand_before_are_of_the_first_account() {
        let text = "(qemu) info migrate_parameters\ntls-creds: ''\nmax-bandwidth: 104857600 bytes/second\n(qemu) info migrate\nMigration status: active\n\
            xbzrle pages: 152 pages\n(qemu) info migrate_capabilities\nmultifd: off\n";
        let [account] = &read(text)[..] else { panic!("one") };
        assert_eq!(account.notes, ["max-bandwidth 104857600 bytes/second", "xbzrle pages 152 pages", "multifd off"]);
    }

    #[test]
    fn libvirt_and_the_monitor_say_the_same_in_their_own_words() {
        let libvirt = "$ virsh domjobinfo web --completed\nJob type:         Completed   \nOperation:        Outgoing migration\n\
            Time elapsed:     2271         ms\nTime elapsed w/o network: 2270         ms\nData processed:   875.123 MiB\n\
            Memory processed: 874.000 MiB\nMemory remaining: 0.000 B\nMemory total:     8.000 GiB\nPage size:        4096         bytes\n\
            Iteration:        4           \nConstant pages:   1875309     \nNormal pages:     223744      \nTotal downtime:   26           ms\n\
            Downtime w/o network: 25           ms\nAuto converge throttle: 20           \n\n";
        let monitor = "(qemu) info migrate\r\nglobals:\r\nstore-global-state: on\r\nMigration status: completed\r\ntotal time: 2271 ms\r\n\
            downtime: 26 ms\r\nsetup: 9 ms\r\ntransferred ram: 894976 kbytes\r\nremaining ram: 0 kbytes\r\ntotal ram: 8388608 kbytes\r\nduplicate: 1875309 pages\r\n\
            normal: 223744 pages\r\nnormal bytes: 894976 kbytes\r\ndirty sync count: 4\r\npage size: 4 kbytes\r\ncpu throttle percentage: 20\r\n";
        let ([one], [other]) = (&read(libvirt)[..], &read(monitor)[..]) else { panic!("one each") };
        assert_eq!((one.by, other.by), (By::Libvirt, By::Monitor));
        assert_eq!(*one, Account { by: By::Libvirt, ..other.clone() });
        assert_eq!((one.total_ms, one.downtime_ms, one.passes), (Some(2271), Some(26), Some(4)));
        assert_eq!((one.transferred_bytes, one.page_bytes), (Some(874 << 20), Some(4096)));
        assert_eq!((one.zero_pages, one.throttle_percent, one.error.as_ref()), (Some(1_875_309), Some(20), None));
        assert_eq!(read(&[libvirt, monitor].concat()).len(), 2);
    }

    #[test]
    fn the_monitors_groups_of_qemu_10_1_are_read_with_what_was_set() {
        let text = "Status: \t\tactive\nTime (ms): \t\ttotal=184233, setup=11, exp_down=8326\nRAM info:\n  Throughput (Mbps): \t9388.12\n  \
            Sizes: \t\tpagesize=4 KiB, total=64 GiB\n  Transfers: \t\ttransferred=201 GiB, remain=9.1 GiB\n    Channels: \t\tprecopy=1.21 GiB, multifd=200 GiB, postcopy=0 B\n    \
            Page Types: \tnormal=52311004, zero=3120441\n  Page Rates (pps): \ttransfer=286500, dirty=311204\n  Others: \t\tdirty_syncs=14\n\
            (qemu) info migrate_parameters\ndowntime-limit: 300 ms\ntls-creds: ''\n(qemu) info migrate_capabilities\nauto-converge: off\n";
        let [account] = &read(text)[..] else { panic!("one") };
        assert_eq!((account.status.as_str(), account.total_ms, account.downtime_ms), ("active", Some(184_233), None));
        assert_eq!((account.expected_downtime_ms, account.passes), (Some(8_326), Some(14)));
        assert_eq!((account.page_bytes, account.dirty_pages_per_s), (Some(4_096), Some(311_204)));
        assert_eq!((account.transferred_bytes, account.total_bytes), (Some(201 << 30), Some(64 << 30)));
        assert_eq!((account.sent_bytes_per_s, account.remaining_bytes), (Some(1_173_515_000.0), size("9.1 GiB")));
        assert_eq!(account.notes, ["downtime-limit 300 ms", "auto-converge off"]);
        let over = &read("Status: completed\nTime (ms): total=2271, setup=9, down=26\n")[0];
        assert_eq!((over.status.as_str(), over.downtime_ms), ("completed", Some(26)));
    }

    #[test]
    fn other_jobs_have_their_names_and_a_failure_has_its_reason() {
        let job = |kind: &str, what: &str| format!("Job type:  {kind}\nOperation:  {what}\nTime elapsed: 5 ms\n");
        assert_eq!(read("Job type:         None        \n"), []);
        assert_eq!(read(&job("Completed", "Save"))[0].job.as_deref(), Some("save"));
        assert_eq!(read(&job("Unbounded", "Outgoing migration"))[0].job, None);
        assert_eq!(read(&job("Unbounded", "Outgoing migration"))[0].status, "active");
        let failed = &read("Migration status: failed (Failed to connect to 'x': No such file)\ntotal time: 0 ms\n")[0];
        assert_eq!((failed.status.as_str(), failed.total_ms), ("failed", Some(0)));
        assert_eq!(failed.error.as_deref(), Some("Failed to connect to 'x': No such file"));
        assert_eq!(read("downtime: 5 ms\n"), [], "nobody knows of what");
        assert_eq!(
            [size("1 GiB"), size("-1 GiB"), size("1 parsec"), size("1e300 PiB")],
            [Some(1 << 30), None, None, None]
        );
    }
}
