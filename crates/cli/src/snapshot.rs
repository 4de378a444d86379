//! `kvmscope snapshot`: what a machine says of itself, as a recording.
//!
//! In: `/proc` and `/sys` of this machine, or a tree that holds copies of them. Out: a recording whose parts are two
//! samples, `host/0` and `host/1`, because most of what counts is a rate; a copied tree does not move and gives one.

use crate::arguments::{DestinationOptions, machine, span};
use anyhow::bail;
use base::number::{exact_bytes, many};
use base::recording::{Machine, Part, PartKind, PartState, Recording};
use base::utc::Utc;
use clap::{Args, ValueHint};
use host::snapshot::{FILES, How};
use lab::snapshot::{More, Taken, monotonic_ns, take_more};
use process::exit::{Exit, WrongUse};
use process::interrupt::Interrupt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Sampling closer than this measures the sampling: a sweep over a large host takes some 100 ms.
const LEAST_SPAN_NS: u64 = 500_000_000;

/// Copy this host's settings and counters into a recording
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope snapshot\n  \
    kvmscope snapshot -o before --span 10\n  \
    kvmscope snapshot -o ticket-4711.kvmscope\n  \
    kvmscope snapshot --as L1:web -o web\n  \
    kvmscope snapshot --root sosreport-host1 -o host1\n\n\
    Passwords and other secrets on command lines are replaced by [redacted]; docs/use/record.md has the rule.\n\
    Exit status: 0 taken, 1 nothing could be read, 2 wrong usage.")]
pub(crate) struct Snapshot {
    #[command(flatten)]
    destination: DestinationOptions,
    /// Directory with proc and sys; anything other than / is a copied tree, of which one sample is taken
    #[arg(long, value_name = "DIR", default_value = "/", value_hint = ValueHint::DirPath)]
    root: PathBuf,
    /// Seconds between the two samples; 0 takes only one
    #[arg(long, value_name = "SECONDS", value_parser = span, default_value = "2")]
    span: u64,
    /// Level of this machine, and its name, where it is a guest: L1, L1:web
    #[arg(long = "as", value_name = "LEVEL[:NAME]", value_parser = machine, default_value = Machine::RECORDED)]
    machine: Machine,
    /// Also read which NUMA nodes hold the memory of VMs; stalls large guests while it reads
    #[arg(long)]
    numa_maps: bool,
    /// Also copy the names of the kernel's functions, for profiles of this machine as a guest
    #[arg(long)]
    kallsyms: bool,
}

impl Snapshot {
    /// Takes the samples and says what they hold.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        if self.span > 0 && self.span < LEAST_SPAN_NS {
            bail!(WrongUse("samples less than 0.5 s apart are not meaningful; --span 0 takes a single one".to_owned()));
        }
        let more = More { on_request: self.on_request(), ..More::of(&self.root) };
        let samples = if self.span > 0 && more.here.is_some() { 2 } else { 1 };
        let utc = Utc::of(SystemTime::now());
        let destination = self.destination.of("snapshot", utc)?;
        let interrupt = Interrupt::watch()?;
        let draft = interrupt.draft(&destination)?;
        let (mut parts, mut taken) = (Vec::new(), Taken::default());
        for sample in 0..samples {
            // From the end of the first: on a busy host it takes long, and what it read last would be read again too soon.
            std::thread::sleep(Duration::from_nanos(sample * self.span));
            let path = Path::new(&self.machine.id).join("host").join(sample.to_string());
            taken = take_more(&self.root, &draft.part(&path)?, &more, &monotonic_ns)?;
            parts.push(part(path, &self.machine));
        }
        if taken.files == 0 {
            bail!("{}: no file of a snapshot found", self.root.display());
        }
        let recording = Recording {
            machines: vec![Machine { identity: host::identity(&self.root), ..self.machine.clone() }],
            parts,
            ..Recording::made(concat!("kvmscope snapshot ", env!("CARGO_PKG_VERSION")), utc.stamp())
        };
        let recording = interrupt.whole(|| draft.finish(recording))?;
        let place = self.destination.finished(&Recording { root: destination.path, ..recording }, &interrupt)?;
        writeln!(std::io::stdout(), "{}", self.said(&place, samples, taken))?;
        Ok(Exit::Answered)
    }

    /// The patterns of the list that the options ask for.
    fn on_request(&self) -> std::collections::BTreeSet<&'static str> {
        let asked = |pattern: &str| match pattern.rsplit('/').next() {
            Some("numa_maps") => self.numa_maps,
            Some("kallsyms") => self.kallsyms,
            _ => false,
        };
        let on_request = FILES.iter().filter(|wanted| wanted.how == How::OnRequest).map(|wanted| wanted.pattern);
        on_request.filter(|pattern| asked(pattern)).collect()
    }

    fn said(&self, place: &Path, samples: u64, taken: Taken) -> String {
        let each = if samples > 1 { format!("{samples} samples of ") } else { String::new() };
        let files = many(taken.files as u64, "file");
        let missing = match taken.unreadable {
            0 => String::new(),
            count => format!("; {count} more could not be read, see {}/host/0/unreadable.txt", self.machine.id),
        };
        format!("{}: {each}{files}, {}{missing}", place.display(), exact_bytes(taken.bytes))
    }
}

fn part(path: PathBuf, machine: &Machine) -> Part {
    let clock = Some("monotonic".to_owned());
    Part { path, machine: machine.id.clone(), kind: PartKind::Host, clock, state: PartState::Complete }
}
