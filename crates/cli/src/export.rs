//! `kvmscope export`: a recording for the viewers and tools that people have.
//!
//! In: recordings and how they are narrowed. Out: files of each, each whole or not there. Pictures come from a flow that is drawn,
//! tables from the answers to all questions.

mod columns;
mod dataset;
mod targets;

use crate::arguments::{BudgetOption, Narrow, Recordings, SymbolFiles, is_dash};
use analysis::facts::ledger::asked;
use analysis::facts::ledger::model::Flow;
use analysis::facts::timeline::draw_first;
use analysis::flow::tables::sampled_stacks;
use analysis::{Answers, Case, Given};
use anyhow::{anyhow, bail};
use base::number::{exact_bytes, many, thousands};
use base::plain::plain;
use base::recording::{Emulator, Recording};
use base::timeline::Stacks;
use clap::{ArgGroup, Args, ValueEnum};
use process::Progress;
use process::Staging;
use process::exit::{Exit, complain, is_wrong_use, note, print};
use process::interrupt::Interrupt;
use show::folded;
use show::perfetto;
use show::picture::{Fit, Picture};
use show::speedscope;
use std::io::Write;
use std::path::Path;
use targets::{Names, Targets};

/// Write a recording for Perfetto, flame graphs, CSV, Parquet ..
#[derive(Args)]
#[command(group(ArgGroup::new("format").required(true).multiple(true)))]
#[command(after_help = "Examples:\n  \
    kvmscope export trace.dat --perfetto web.pftrace\n  \
    kvmscope export trace.dat --from 1.5 --to 2 --vm web --perfetto short.pftrace\n  \
    kvmscope export trace.dat --folded - | flamegraph.pl > web.svg\n  \
    kvmscope export trace.dat --folded exits.txt --weight count --speedscope web.speedscope.json\n  \
    kvmscope export trace.dat --csv tables\n  \
    kvmscope export trace.dat --parquet columns\n  \
    kvmscope export nightly/* --dataset fleet\n  \
    kvmscope export before after --perfetto '{}.pftrace' --csv 'tables-{}'\n\n\
    With several PATHs, {} is replaced by the name of each.\n\
    docs/use/report.md describes each format.\n\
    Exit status: 0 written, 1 nothing could be written, 2 wrong usage, 130 Ctrl-C (no files are left behind).")]
pub(crate) struct Export {
    #[command(flatten)]
    recordings: Recordings,
    #[command(flatten)]
    targets: Targets,
    /// Weight of the stacks of --folded: time, count, or samples of counters
    #[arg(long, value_name = "WHAT", default_value = "ns", requires = "folded")]
    weight: Weight,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Maximum number of slices, the earliest first [default: what the viewer can handle]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    most_slices: Option<u64>,
    /// No progress bar on stderr
    #[arg(long)]
    no_progress: bool,
    #[command(flatten)]
    narrow: Narrow,
    #[command(flatten)]
    symbols: SymbolFiles,
    #[command(flatten)]
    budget: BudgetOption,
}

#[derive(Clone, Copy, ValueEnum)]
enum Weight {
    Ns,
    Count,
    Samples,
}

impl Export {
    /// Writes all files that are asked for. Of several recordings each is written that can be.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let mut given = self.narrow.given()?;
        given.traces.symbols = self.symbols.read()?;
        given.budget = self.budget.read()?;
        let wanted = self.recordings.wanted();
        self.targets.check(wanted.len() > 1)?;
        if self.targets.parquet.is_some() || self.targets.arrow.is_some() {
            columns::check()?;
        }
        self.targets.dataset.as_deref().map_or(Ok(()), dataset::check)?;
        let interrupt = Interrupt::watch()?;
        let staging = Staging::new(&interrupt);
        let mut adding = match &self.targets.dataset {
            Some(place) => Some(dataset::Adding::to(place, self.force, &interrupt)?),
            None => None,
        };
        let (mut names, mut exports, mut failed) = (Names::default(), Vec::new(), Vec::new());
        for wanted in &wanted {
            match self.recordings.open(wanted, &interrupt) {
                Ok(recording) => {
                    let targets = self.targets.of(&names.of(&recording));
                    targets.check_vacant(self.force)?;
                    exports.push((wanted, recording, targets));
                }
                Err(error) if is_wrong_use(&error) => return Err(error),
                Err(error) => {
                    adding.as_ref().map_or(Ok(()), |adding| adding.fail(&wanted.to_string(), &error))?;
                    failed.push(error);
                }
            }
        }
        let mut written = 0;
        for (wanted, recording, targets) in exports {
            let added = match &mut adding {
                Some(adding) => self.add(adding, &wanted.to_string(), recording.clone(), &given),
                None => Ok(()),
            };
            match added.and_then(|()| self.write(&staging, recording, &targets, &given)) {
                Ok(()) => written += 1,
                Err(error) if is_wrong_use(&error) => return Err(error),
                Err(error) => failed.push(error),
            }
        }
        if let (Some(adding), Some(place)) = (&adding, &self.targets.dataset) {
            adding.finish(place, failed.len() as u64)?;
        }
        let last = failed.pop();
        failed.iter().for_each(complain);
        match last {
            Some(last) if written == 0 => Err(last),
            last => {
                last.iter().for_each(complain);
                Ok(Exit::Answered)
            }
        }
    }

    /// Adds a recording to the data set; why it is not there is kept in the data set, too.
    fn add(
        &self,
        adding: &mut dataset::Adding<'_>,
        source: &str,
        recording: Recording,
        given: &Given,
    ) -> anyhow::Result<()> {
        let added = adding.add(source, recording, given, &Progress::new(!self.no_progress));
        if let Err(error) = &added {
            adding.fail(source, error)?;
        }
        added
    }

    fn write(
        &self,
        staging: &Staging<'_>,
        recording: Recording,
        targets: &Targets,
        given: &Given,
    ) -> anyhow::Result<()> {
        if targets.pictured().is_empty() && targets.tabled().is_empty() {
            return Ok(());
        }
        let progress = Progress::new(!self.no_progress);
        let case = Case::new(analysis::open(recording)?, given.clone()).with_progress(progress.hear());
        let input = case.input();
        if !input.problems.is_empty() {
            let problems = many(input.problems.len() as u64, "problem");
            let title = input.recording.title();
            note(&format!("kvmscope: {problems} in the recording {title}; `kvmscope report` lists them"));
        }
        if !targets.pictured().is_empty() {
            self.draw(staging, &case, &progress, targets)?;
        }
        if !targets.tabled().is_empty() {
            self.tables(staging, &case, &progress, targets)?;
        }
        Ok(())
    }

    /// Says what was written: on stdout, unless a file goes there.
    fn say(&self, place: &Path, length: Option<u64>, what: &str) -> std::io::Result<()> {
        let length = length.map_or(String::new(), |length| format!("{}, ", exact_bytes(length)));
        if self.targets.pictured().into_iter().any(is_dash) {
            let place = if is_dash(place) { "stdout".into() } else { place.display().to_string() };
            note(&plain(&format!("{place}: {length}{what}")));
            Ok(())
        } else {
            print(&plain(&format!("{}: {length}{what}", place.display())))
        }
    }

    fn draw(&self, staging: &Staging<'_>, case: &Case, progress: &Progress, targets: &Targets) -> anyhow::Result<()> {
        // Stacks are summed while the ledger is; only what is drawn slice by slice is kept, and no more of it than fits.
        let time =
            targets.speedscope.is_some() || (targets.folded.is_some() && !matches!(self.weight, Weight::Samples));
        let sums = if time { case.stacks() } else { &[] };
        let (input, given, flow) = (case.input(), case.given(), case.ledger());
        let mut hear = |done, all| case.hear(done, all);
        check_vcpus(flow)?;
        asked::check(flow, input, given)?;
        let most = |most| self.most_slices.unwrap_or(most);
        let perfetto_most = targets.perfetto.as_ref().map(|_| most(perfetto::MOST_SLICES));
        let most_drawn = perfetto_most.max(targets.speedscope.as_ref().map(|_| most(speedscope::MOST_SLICES)));
        let drawn = most_drawn.map(|most| draw_first(input, given, flow, most, &mut hear));
        progress.finish();
        let emulated = input.recording.emulated.map(Emulator::name);
        let narrow = &given.narrow;
        let picture = drawn.as_ref().map(|drawn| Picture { drawn, emulated, narrow });
        let shown = folded::Shown { host: flow.host(), emulated, narrow };
        let samples = sampled_stacks(flow, given);
        if let (Some(file), Some(picture)) = (&targets.perfetto, &picture) {
            let fit = picture.fit_all(most(perfetto::MOST_SLICES));
            let mut written = None;
            let length = put(staging, file, |out| {
                written = Some(perfetto::write(out, picture, &fit)?);
                Ok(())
            })?;
            let drawn = drawn_of(picture, &fit, written);
            self.say(file, length, &format!("{drawn}; open it in ui.perfetto.dev"))?;
            warn_left_out(file, &fit);
        }
        if let Some(file) = &targets.folded {
            let stacks = match self.weight {
                Weight::Ns => folded::stacks(sums, shown, folded::Weight::Time),
                Weight::Count => folded::stacks(sums, shown, folded::Weight::Count),
                Weight::Samples => sampled(&samples)?.clone(),
            };
            let length = put(staging, file, |out| folded::write(out, &stacks))?;
            self.say(file, length, &format!("{}; flamegraph.pl draws them", many(stacks.len() as u64, "stack")))?;
        }
        if let (Some(file), Some(picture)) = (&targets.speedscope, &picture) {
            let fit = picture.fit(most(speedscope::MOST_SLICES));
            let title = input.recording.title();
            let time = folded::stacks(sums, shown, folded::Weight::Time);
            let summed = speedscope::Summed { time: &time, samples: &samples };
            let length = put(staging, file, |out| speedscope::write(out, picture, &fit, &title, summed))?;
            self.say(file, length, &format!("{}; open it in speedscope", drawn_of(picture, &fit, None)))?;
            warn_left_out(file, &fit);
        }
        Ok(())
    }

    fn tables(&self, staging: &Staging<'_>, case: &Case, progress: &Progress, targets: &Targets) -> anyhow::Result<()> {
        let Answers { sections, failed, .. } = Answers::of(case);
        progress.finish();
        let mut failed = failed.into_iter();
        if sections.is_empty() {
            let nothing = || anyhow!("the recording has no data for any question");
            return Err(failed.next().map_or_else(nothing, Into::into));
        }
        failed.for_each(|error| complain(&error.into()));
        // Tables of several recordings are read together, and each row says which one it is of.
        let several = self.recordings.wanted().len() > 1;
        let recording = several.then(|| show::json::path_of(&case.input().recording));
        let recording = recording.as_deref();
        if let Some(directory) = &targets.csv {
            let fill = |partial: &Path| show::csv::write_csv(&sections, recording, partial);
            let files = staging.directory(directory, fill)?;
            self.say(directory, None, &many(files, "table"))?;
        }
        let emulated = case.input().recording.emulated.map(Emulator::name);
        for (directory, format) in
            [(&targets.parquet, columns::Format::Parquet), (&targets.arrow, columns::Format::Arrow)]
        {
            let Some(directory) = directory else { continue };
            let fill = |partial: &Path| columns::write(&sections, recording, emulated, partial, format);
            let files = staging.directory(directory, fill)?;
            self.say(directory, None, &many(files, "table"))?;
        }
        Ok(())
    }
}

/// A picture without a vCPU is no answer.
fn check_vcpus(flow: &Flow) -> anyhow::Result<()> {
    let mut lowest = flow.parts.iter().filter(|part| part.twin_of.is_none() && part.aligned.is_none());
    if lowest.all(|part| part.vcpus.is_empty()) {
        bail!("no vCPU ran in this recording; record while one runs: kvmscope record --seconds 10");
    }
    Ok(())
}

/// Samples, if there are any.
fn sampled(samples: &Stacks) -> anyhow::Result<&Stacks> {
    if samples.is_empty() {
        bail!(
            "the recording has no samples of counters; record some together with KVM's events: perf record -a -k \
             mono -e cycles -e 'kvm:*' -e sched:sched_switch -o perf.data sleep 10"
        );
    }
    Ok(samples)
}

/// Fills a file, or stdout; returns its length where it is a file.
fn put(
    staging: &Staging<'_>,
    file: &Path,
    fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> anyhow::Result<Option<u64>> {
    if !is_dash(file) {
        return staging.file(file, fill).map(Some);
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    fill(&mut out)?;
    out.flush()?;
    Ok(None)
}

/// What of the picture was drawn: of a Perfetto file, which has the lanes beside those of the vCPUs, and chains, what was
/// `written`; and what was left out.
fn drawn_of(picture: &Picture<'_>, fit: &Fit, written: Option<perfetto::Written>) -> String {
    let mut lanes = many(picture.lanes().len() as u64, "vCPU");
    let others: usize = picture.beside().iter().map(|(_, lanes)| lanes.len()).sum();
    if written.is_some() && others > 0 {
        lanes = format!("{lanes} and {}", many(others as u64, "other lane"));
    }
    let left_out = match fit.left_out {
        0 => String::new(),
        count => {
            let end_s = fit.window.to_ns as f64 / 1e9;
            format!(", {} more after {end_s:.6} s left out (--from, --to, --most-slices)", thousands(count))
        }
    };
    let written = written.unwrap_or(perfetto::Written { slices: fit.slices, chains: 0 });
    let of_them =
        if written.chains > 0 { format!(", {} of them chains", thousands(written.chains)) } else { String::new() };
    format!("{} of {lanes}{of_them}{left_out}", many(written.slices, "slice"))
}

/// Warns that a file ends before what was asked for does.
fn warn_left_out(file: &Path, fit: &Fit) {
    if fit.left_out > 0 {
        let end_s = fit.window.to_ns as f64 / 1e9;
        note(&format!(
            "kvmscope: {} ends at {end_s:.6} s: {} after that {} left out; --from and --to choose another window, \
             --most-slices another number",
            if is_dash(file) { "stdout".into() } else { file.display().to_string() },
            many(fit.left_out, "slice"),
            if fit.left_out == 1 { "is" } else { "are" },
        ));
    }
}
