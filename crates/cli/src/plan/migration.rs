//! `kvmscope plan migration`: whether a live migration ends, and when.

use super::numbers::share;
use super::quantities::{bandwidth, dirtied, memory, some_memory, time};
use crate::arguments::{Answered, BudgetOption, OutputOptions, ReplaceOptions, SurveyOptions, WorkloadOption};
use crate::completed::vms;
use analysis::facts::migrations::Migrations;
use analysis::migration::blocked::Guest;
use analysis::migration::model::hibernation;
use analysis::migration::model::memory::{Memory, PAGE_MEMORY_BYTES};
use analysis::migration::model::pace::Sender;
use analysis::migration::model::passes::Setting;
use analysis::migration::model::working_set::{Hot, Measured, WorkingSet};
use analysis::migration::{Asked, History, Looked, Order, Prediction, Survey};
use analysis::{About, Answers, Case, Given, migration};
use anyhow::{Context, anyhow, bail};
use base::recording::{MANIFEST, Recording};
use clap::{Args, ValueEnum};
use lab::moving::blocked_reasons;
use lab::tracefs::find_vm;
use process::exit::{Exit, WrongUse, complain};
use process::interrupt::Interrupt;
use std::path::{Path, PathBuf};

/// Predict whether a live migration ends, how long it takes and how long the guest is dark
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope plan migration --ram 8G --zero 60% --hot 64M --rate 160M/s --bandwidth 10Gbit\n  \
    kvmscope plan migration --ram 16G --hot 2G --rate 900M/s --bandwidth 10Gbit --limit 10ms\n  \
    kvmscope plan migration --ram 1G --hot 64M --rate 9000pages/s --order sync --bandwidth 1Gbit\n  \
    kvmscope plan migration --ram 8G --hot 64M --rate 160M/s --bandwidth 40Gbit --budget kvm4nfv-2015\n  \
    kvmscope plan migration --vm web --bandwidth 10Gbit --compress 4\n  \
    kvmscope plan migration --ram 8G --curve moved --bandwidth 25Gbit\n  \
    kvmscope plan migration --ram 8G --hot 64M --rate 160M/s --bandwidth 10Gbit --history moved\n  \
    kvmscope plan migration --to-file --ram 8G --zero 60% --guests 20 --disk-of /var/lib/libvirt\n\n\
    With --vm or --survey, memory, zeros and what is dirtied are measured, if they are not stated (kvmscope bench memory).\n\
    A curve of the guest's working set (--curve) has a line for each window: its length and what was dirtied, `1s 32M`;\n\
    the passes of an earlier migration of it (record --migration, lab migrate) are one too.\n\
    Exit status: 0 answered, 1 no answer, 2 wrong usage, 3 a finding at or above --fail-on,\n\
    or a goal of --budget that the model certainly breaks.")]
pub(super) struct Migration {
    /// Measure a running VM, by name or process id, for whatever is not stated
    #[arg(long, value_name = "NAME|PID", add = vms(), conflicts_with = "survey")]
    vm: Option<String>,
    /// The same from a recording of `bench memory`
    #[arg(long, value_name = "RECORDING")]
    survey: Option<PathBuf>,
    /// Memory of the guest
    #[arg(long, value_name = "BYTES", value_parser = memory, required_unless_present_any = ["vm", "survey"])]
    ram: Option<f64>,
    /// How much of it is zeros: 0.6 or 60% [default: what was measured, else 0]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    zero: Option<f64>,
    /// Rate at which one core scans for zeros, as measured by `bench zeropages`
    #[arg(long, value_name = "RATE", value_parser = bandwidth)]
    scan: Option<f64>,
    /// Number of channels that compress with zstd, each on its own CPU; needs --vm or --survey
    #[arg(long, value_name = "CHANNELS", value_parser = clap::value_parser!(u32).range(1..=255))]
    compress: Option<u32>,
    /// Memory that the guest keeps rewriting
    #[arg(long, value_name = "BYTES", value_parser = some_memory, requires = "rate",
          required_unless_present_any = ["curve", "vm", "survey", "to_file"])]
    hot: Option<f64>,
    /// Rate at which it dirties that memory: 160M/s, or 40000pages/s
    #[arg(long, value_name = "RATE", value_parser = dirtied, requires = "hot")]
    rate: Option<f64>,
    /// Order of writes: in order, anywhere, or in order with dirty bits cleared as each pass begins
    #[arg(long, value_name = "ORDER", default_value = "cyclic", conflicts_with = "curve")]
    order: Written,
    /// Measured working set instead of --hot and --rate: windows of time and what was dirtied in each, or a recording of an earlier
    /// migration
    #[arg(long, value_name = "FILE|RECORDING", conflicts_with = "hot")]
    curve: Option<PathBuf>,
    /// Predict saving guests to files and waking them instead
    #[arg(long, conflicts_with_all = ["hot", "rate", "curve", "bandwidth", "max_bandwidth", "limit", "throttle", "devices", "setup", "scan",
          "compress", "budget", "workload", "order"])]
    to_file: bool,
    /// Number of guests, all at the same time
    #[arg(long, value_name = "N", default_value_t = 1, requires = "to_file", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    guests: u32,
    /// Rate at which the file system writes and reads
    #[arg(long, value_name = "RATE", value_parser = bandwidth, requires = "to_file", conflicts_with = "disk_of")]
    disk: Option<f64>,
    /// Measure that rate: a file as large as all guests, 1 GiB at most, is written to this directory, read and removed
    #[arg(long, value_name = "DIR", requires = "to_file")]
    disk_of: Option<PathBuf>,
    /// Rate of link, scan and copy
    #[arg(long, value_name = "RATE", value_parser = bandwidth, required_unless_present = "to_file")]
    bandwidth: Option<f64>,
    /// QEMU's max-bandwidth, if lower
    #[arg(long, value_name = "RATE", value_parser = bandwidth)]
    max_bandwidth: Option<f64>,
    /// QEMU's downtime-limit
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "300ms")]
    limit: f64,
    /// Share of its time that is taken from the guest during the migration
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0")]
    throttle: f64,
    /// Time that saving and loading devices adds to the dark time
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "0s")]
    devices: f64,
    /// Time that setup adds to the total
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "0s")]
    setup: f64,
    /// A recording of earlier predicted runs, or a directory of such recordings: the model's past error shifts the intervals; repeatable
    #[arg(long, value_name = "DIR")]
    history: Vec<PathBuf>,
    /// Write the prediction to FILE, for `record --migration --prediction FILE`
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    #[command(flatten)]
    budget: BudgetOption,
    #[command(flatten)]
    workload: WorkloadOption,
    #[command(flatten)]
    replace: ReplaceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Written {
    Cyclic,
    Uniform,
    Sync,
}

/// What a QEMU takes to start where nobody has measured it: 0.1 to 0.5 s were seen (QEMU 7.2, q35).
const STARTING_S: f64 = 0.3;

impl Migration {
    /// Predicts.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        self.output.check(1, self.replace.force)?;
        let interrupt = Interrupt::watch()?;
        let recording = Recording::of_nothing(concat!("kvmscope plan ", env!("CARGO_PKG_VERSION")));
        let survey = self.surveyed(&interrupt)?;
        if self.to_file {
            let given = Given::query(self.saved(survey.as_ref())?);
            return self.answer(Case::new(analysis::open(recording)?, given), &interrupt);
        }
        let (asked, budget, workload) = (self.asked(survey.as_ref())?, self.budget.read()?, self.workload.workload());
        let history = history(&self.history)?;
        let is_broken = budget.as_ref().is_some_and(|budget| migration::breaks(&asked, &history, budget, workload));
        if let Some(path) = &self.keep {
            let kept = history.kept(&Prediction::of(&asked), &asked);
            kept.write(path).with_context(|| path.display().to_string())?;
        }
        let guest = self.vm.as_deref().map(started).transpose()?;
        let looked = Looked { survey, compressing_channels: self.compress, guest, history };
        let given = Given { budget, workload, ..Given::query(asked).with(looked) };
        let exit = self.answer(Case::new(analysis::open(recording)?, given), &interrupt)?;
        Ok(if is_broken && exit == Exit::Answered { Exit::FailOn } else { exit })
    }

    fn answer(&self, case: Case, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        let Answers { sections, problems, failed } = Answers::about(&case, &[About::Plan]);
        failed.into_iter().for_each(|error| complain(&error.into()));
        let answered = Answered::of(case.input().recording.clone(), sections, problems);
        self.output.end("plan", &[answered], interrupt)
    }

    /// What is asked about guests that are saved to files.
    fn saved(&self, survey: Option<&Survey>) -> anyhow::Result<hibernation::Asked> {
        let memory = self.memory(survey)?;
        let (write_bytes_per_s, read_bytes_per_s, slowest_read_bytes_per_s) = match (self.disk, &self.disk_of) {
            (Some(rate), _) => (rate, rate, rate),
            (None, Some(place)) => {
                let all_bytes = memory.sent_bytes() * f64::from(self.guests);
                let disk = lab::disk::measure(place, all_bytes as u64)?;
                let slowest_ns = disk.slowest_read_ns.max(1) as f64;
                (disk.write_bytes_per_s(), disk.read_bytes_per_s(), disk.bytes as f64 / (slowest_ns / 1e9))
            }
            (None, None) => {
                bail!(WrongUse("state how fast the disk is: --disk 500MB/s, or --disk-of DIR to measure it".to_owned()))
            }
        };
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX));
        let start_s = STARTING_S;
        let guests = self.guests;
        Ok(hibernation::Asked {
            memory,
            guests,
            write_bytes_per_s,
            read_bytes_per_s,
            slowest_read_bytes_per_s,
            start_s,
            cpus,
        })
    }

    fn memory(&self, survey: Option<&Survey>) -> anyhow::Result<Memory> {
        let pages = self.ram.map(|ram| ram / PAGE_MEMORY_BYTES).or(survey.map(|survey| survey.pages));
        let Some(pages) = pages else { bail!(WrongUse("state how much memory the guest has: --ram 8G".to_owned())) };
        let measured = survey.and_then(|survey| survey.zero()).map(|zero| zero.share);
        Ok(Memory { pages, zero_share: self.zero.or(measured).unwrap_or(0.0) })
    }

    /// What is in the guest's memory, if that is to be measured or was.
    fn surveyed(&self, interrupt: &Interrupt) -> anyhow::Result<Option<Survey>> {
        let states_dirtied = self.curve.is_some() || self.hot.is_some() || self.to_file;
        let found = match (&self.vm, &self.survey) {
            (Some(vm), _) => {
                let stop = interrupt.hold();
                let looked = SurveyOptions::default().look(vm, !states_dirtied, &mut |_| {}, &stop);
                interrupt.wait_if_asked();
                Survey::of(&looked?)
            }
            (None, Some(path)) => {
                let case = Case::new(analysis::open(Recording::open(path)?)?, Given::default());
                let found = case.benches().runs.iter().find_map(|run| Survey::of(&run.bench));
                if found.is_none() {
                    bail!(WrongUse(format!("{}: no memory of a guest was looked at in it", path.display())));
                }
                found
            }
            (None, None) if self.compress.is_some() => {
                bail!(WrongUse("how well memory compresses is measured: --vm NAME or --survey RECORDING".to_owned()))
            }
            (None, None) => None,
        };
        Ok(found.map(|survey| if states_dirtied { survey.without_windows() } else { survey }))
    }

    fn asked(&self, survey: Option<&Survey>) -> anyhow::Result<Asked> {
        let memory = self.memory(survey)?;
        let points = survey.map(Survey::points).filter(|points| !points.is_empty());
        let working_set = match (&self.curve, self.hot.zip(self.rate)) {
            (None, None) if points.is_some() => match points.as_deref().and_then(Measured::of) {
                Some(measured) => WorkingSet::Measured(measured),
                None => bail!("what was measured of the guest's memory has no window that is longer than 0"),
            },
            (Some(path), _) => WorkingSet::Measured(curve(path)?),
            (None, Some((hot, rate))) => {
                let hot = Hot { pages: hot / PAGE_MEMORY_BYTES, pages_per_s: rate / PAGE_MEMORY_BYTES };
                if self.order == Written::Uniform { WorkingSet::Uniform(hot) } else { WorkingSet::Cyclic(hot) }
            }
            (None, None) => {
                bail!(WrongUse("state what the guest dirties: --hot 64M --rate 160M/s, or --curve FILE".to_owned()))
            }
        };
        if working_set.most_pages() > memory.pages {
            bail!(WrongUse("the guest cannot have more hot memory than --ram".to_owned()));
        }
        let Some(bandwidth) = self.bandwidth else {
            bail!(WrongUse("state the rate of the link: --bandwidth 10Gbit".to_owned()))
        };
        let bytes_per_s = self.max_bandwidth.map_or(bandwidth, |most| most.min(bandwidth));
        // Windows of QEMU's limit tell only where the link carries more.
        let senders = (bytes_per_s < bandwidth).then(|| Sender::of_link(bandwidth)).into_iter().collect();
        Ok(Asked {
            setting: Setting { memory, working_set, bytes_per_s, limit_s: self.limit, throttle: self.throttle },
            order: if self.order == Written::Sync { Order::AtSync } else { Order::Unknown },
            link_bytes_per_s: bandwidth,
            senders,
            devices_s: [self.devices; 2],
            setup_s: self.setup,
            scan_bytes_per_s: self.scan,
        })
    }
}

/// Runs that were predicted, out of recordings and of directories of recordings.
fn history(paths: &[PathBuf]) -> anyhow::Result<History> {
    let mut history = History::default();
    for path in paths {
        let mut recordings = vec![path.clone()];
        if path.is_dir() && !path.join(MANIFEST).exists() {
            let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
            recordings =
                entries.flatten().map(|entry| entry.path()).filter(|entry| entry.join(MANIFEST).exists()).collect();
            recordings.sort();
        }
        for place in &recordings {
            let (migrations, problems) = Migrations::of(&Recording::open(place)?);
            problems.iter().for_each(|problem| complain(&anyhow!("{}: {}", place.display(), problem.text)));
            let name = place.file_name().unwrap_or(place.as_os_str());
            history.add(&name.to_string_lossy(), &migrations);
        }
        if history.is_empty() {
            bail!(WrongUse(format!("{}: no run in it was predicted and followed to its end", path.display())));
        }
    }
    Ok(history)
}

/// How a VM that runs was started, and what its QEMU says of migrating it, if a monitor is free.
fn started(vm: &str) -> anyhow::Result<Guest> {
    let found = find_vm(Path::new("/proc"), vm)?;
    let place = format!("/proc/{}/cmdline", found.pid);
    let command = String::from_utf8_lossy(&std::fs::read(&place).with_context(|| place.clone())?).into_owned();
    let driver = |address: &str| {
        let link = std::fs::read_link(Path::new("/sys/bus/pci/devices").join(address).join("driver")).ok()?;
        Some(link.file_name()?.to_string_lossy().into_owned())
    };
    let reasons = blocked_reasons(&found);
    let is_unasked = reasons.is_err();
    Ok(Guest {
        reasons: reasons.unwrap_or_default(),
        is_unasked,
        is_asked: true,
        ..Guest::of(&command, &place, driver)
    })
}

/// What the guest dirtied in the passes of an earlier migration, or as a file lists it.
fn curve(path: &Path) -> anyhow::Result<Measured> {
    if !path.is_dir() {
        return listed(path);
    }
    let (migrations, problems) = Migrations::of(&Recording::open(path)?);
    problems.iter().for_each(|problem| complain(&anyhow!("{}: {}", path.display(), problem.text)));
    let measured = Measured::of(&migration::measured::points(&migrations));
    Ok(measured.ok_or_else(|| {
        let place = path.display();
        WrongUse(format!("{place}: it has no pass of a migration without throttling, which the working set needs"))
    })?)
}

/// Lines of a window's length and what was dirtied in it; `#` begins a comment.
fn listed(path: &Path) -> anyhow::Result<Measured> {
    const MOST_BYTES: u64 = 1 << 20;
    let text = base::files::text(path, MOST_BYTES).with_context(|| path.display().to_string())?;
    let lines =
        text.lines().enumerate().map(|(number, line)| (number + 1, line.split('#').next().unwrap_or("").trim()));
    let mut points = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let wrong = |how: String| WrongUse(format!("{}:{number}: {how}", path.display()));
        let (window, dirty) = line
            .split_once(char::is_whitespace)
            .ok_or_else(|| wrong("write a window and what was dirtied in it, such as `1s 32M`".to_owned()))?;
        points.push((time(window).map_err(wrong)?, memory(dirty).map_err(wrong)? / PAGE_MEMORY_BYTES));
    }
    Ok(Measured::of(&points).ok_or_else(|| WrongUse(format!("{}: no window that is longer than 0", path.display())))?)
}
