//! `kvmscope plan nested`: CPU now, and CPU after a change of the nested setup.

use super::numbers::{cost, cycles, ghz, rate, share};
use crate::arguments::{Answered, OutputOptions, ReplaceOptions, Stdin, opened};
use analysis::facts::estimate::Estimate;
use analysis::nesting::measured::exits;
use analysis::nesting::plan::effects::{EFFECTS, effect};
use analysis::nesting::plan::{self, Rate, benched};
use analysis::{About, Answers, Case, Given};
use anyhow::bail;
use base::nearest::instead;
use base::recording::{Emulator, Recording};
use clap::{Args, ValueEnum};
use process::Progress;
use process::exit::{Exit, WrongUse, complain};
use process::interrupt::Interrupt;
use std::path::PathBuf;

/// Predict what VMCS shadowing, enlightened VMCS, APICv, fewer timer exits and other changes would save
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope plan nested fixtures/vmx-linux-shadow-off\n  \
    kvmscope plan nested --ghz 2.4 --c1 1350 --c2 20700 --rate CPUID=2000 --rate MSR=15000\n  \
    kvmscope plan nested --ghz 2.4 --c1 1350 --c2 20000..21500 --rate IO@user=800 --below hyperv\n  \
    kvmscope plan nested --ghz 2.4 --c1 1350 --d 16400 --rate TSC_DEADLINE=8000 --with shadow,timers\n  \
    kvmscope plan nested --bench fixtures/bench-svm --arch svm --ghz 2.4 --rate CPUID=500\n\n\
    The cost that nesting adds to an exit (--d) must be measured on the host, with kvmscope bench exits; it is never assumed.\n\
    Exit status: 0 answered, even if inputs are missing, 1 no answer, 2 wrong usage, 3 a finding at or above --fail-on.")]
pub(super) struct Nested {
    /// A recording of the host: its rates, chains and times are used; with --c1, or if L1 recorded itself, only its rates
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Exits per second of one vCPU: CPUID=5000; IO@user=300 if the VMM handles them; L1:MSR=2000 for exits of L1
    #[arg(long, value_name = "REASON=N", value_parser = rate, conflicts_with = "path")]
    rate: Vec<Rate>,
    /// A recording of `kvmscope bench exits` on that host, for values of --c1, --d and --cost that are not stated
    #[arg(long, value_name = "DIR")]
    bench: Option<PathBuf>,
    /// Cycles of a CPUID exit at L1, or a range: 1300..1400
    #[arg(long, value_name = "CYCLES", value_parser = cycles)]
    c1: Option<Estimate>,
    /// Cycles of a CPUID exit at L2; nesting adds the difference to --c1
    #[arg(long, value_name = "CYCLES", value_parser = cycles, conflicts_with = "d", requires = "c1")]
    c2: Option<Estimate>,
    /// Cycles that nesting adds to an exit
    #[arg(long, value_name = "CYCLES", value_parser = cycles)]
    d: Option<Estimate>,
    /// Cycles of another exit at L1, instead of those of CPUID
    #[arg(long, value_name = "REASON=CYCLES", value_parser = cost)]
    cost: Vec<(String, Estimate)>,
    /// Frequency of the time-stamp counter
    #[arg(long, value_name = "GHZ", value_parser = ghz)]
    ghz: Option<f64>,
    /// CPU share of the guest's own code, for one vCPU: 0.1 or 10%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    guest: Option<f64>,
    /// Virtualization extension that L1 uses [default: what the recording shows, else vmx]
    #[arg(long, value_name = "ISA")]
    arch: Option<Arch>,
    /// The hypervisor below L1
    #[arg(long, value_name = "WHO", default_value = "kvm")]
    below: Below,
    /// Changes to combine, by their names in the first table
    #[arg(long, value_name = "CHANGE", value_delimiter = ',', value_parser = change)]
    with: Vec<String>,
    #[arg(skip)]
    stdin: Stdin,
    #[command(flatten)]
    replace: ReplaceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Arch {
    Vmx,
    Svm,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Below {
    Kvm,
    Hyperv,
}

fn change(text: &str) -> Result<String, String> {
    let known: Vec<&str> = EFFECTS.iter().map(|effect| effect.id).collect();
    effect(text).map(|effect| effect.id.to_owned()).ok_or_else(|| instead(text, known.iter().copied()))
}

impl Nested {
    /// Predicts.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        self.output.check(1, self.replace.force)?;
        let interrupt = Interrupt::watch()?;
        if self.path.is_none() && self.rate.is_empty() {
            let how = "name a recording, or give rates: --ghz 2.4 --c1 1350 --c2 20700 --rate CPUID=2000";
            bail!(WrongUse(how.to_owned()));
        }
        let recording = match &self.path {
            Some(path) => opened(path, &self.stdin, &interrupt)?,
            None => Recording::of_nothing(concat!("kvmscope plan ", env!("CARGO_PKG_VERSION"))),
        };
        let (stated, emulated) = self.stated(&interrupt)?;
        let asked = plan::Asked {
            stated,
            emulated,
            svm: self.arch.map(|arch| arch == Arch::Svm),
            hyperv: self.below == Below::Hyperv,
            with: self.with.clone(),
        };
        let title = recording.title();
        let progress = Progress::new(true);
        let given = Given::query(asked);
        let case = Case::new(analysis::open(recording)?, given).with_progress(progress.hear());
        let Answers { sections, problems, failed } = Answers::about(&case, &[About::Plan]);
        progress.finish();
        failed.into_iter().for_each(|error| complain(&error.into()));
        if sections.is_empty() {
            bail!("{title} has no exits of guests; record some: kvmscope record --seconds 10");
        }
        let answered = Answered::of(case.input().recording.clone(), sections, problems);
        self.output.end("plan", &[answered], &interrupt)
    }

    /// What the user stated, completed by the bench; and what emulated that.
    fn stated(&self, interrupt: &Interrupt) -> anyhow::Result<(plan::Stated, Option<Emulator>)> {
        if let (Some(c1), Some(c2)) = (self.c1, self.c2)
            && c2.high <= c1.low
        {
            let how = "the exit of a nested guest (--c2) costs at least what the same exit costs at L1 (--c1); were they swapped?";
            bail!(WrongUse(how.to_owned()));
        }
        let from_c2 = || Some(self.c2?.less(self.c1?));
        let mut stated = plan::Stated {
            c1: self.c1,
            d: self.d.or_else(from_c2),
            costs: self.cost.clone(),
            hz: self.ghz,
            measured: None,
            rates: self.rate.clone(),
            guest: self.guest,
        };
        let Some(path) = &self.bench else { return Ok((stated, None)) };
        let input = analysis::open(opened(path, &self.stdin, interrupt)?)?;
        stated.measured = benched::add(&mut stated, &exits::rows(&input.benches));
        if stated.measured.is_none() {
            let why = "no CPUID exit that KVM saw both without and with nesting, so D stays unknown";
            bail!(
                "{} measured {why}; docs/read/plan.md describes where to run kvmscope bench exits",
                input.recording.title()
            );
        }
        Ok((stated, input.recording.emulated))
    }
}
