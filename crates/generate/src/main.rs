//! Writes a story to a file: `generate vmx-no-shadowing --format tracedat7-le-64-zstd -o DIR`, or a huge one:
//! `generate --huge 10GB -o FILE`.

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use generate::scenario::{self, Scenario};
use generate::{Generation, Story, Target, Vendor, fleet, huge};
use std::path::PathBuf;
use trace::write::tracedat::Compression;

/// Writes traces whose truth is known.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    instead: Option<Instead>,
    /// The scenario, or `random`.
    scenario: Option<String>,
    /// Lists scenarios and formats.
    #[arg(long)]
    list: bool,
    /// Writes every scenario in every format, each scenario in a directory of its own: seeds for fuzzing.
    #[arg(long)]
    all: bool,
    /// The format.
    #[arg(long, default_value = "tracedat7-le-64-zstd")]
    format: String,
    /// The seed that varies times and choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The kernel it happens on, as `5.10`; each scenario has one of its own.
    #[arg(long, value_parser = kernel)]
    kernel: Option<Generation>,
    /// Whose virtualisation: `vmx` or `svm`; each scenario has one of its own.
    #[arg(long, value_parser = vendor)]
    vendor: Option<Vendor>,
    /// Prints the truth instead of writing a file.
    #[arg(long)]
    truth: bool,
    /// The directory to write to; with --huge the file.
    #[arg(short, long, default_value = ".")]
    output: PathBuf,
    /// Repeats the scenario in one uncompressed trace.dat until its pages take so much: `10GB`, `500MB`.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    huge: Option<u64>,
    /// In place of a scenario: everything at once on a host with so many vCPUs, four in each VM.
    #[arg(long, value_name = "NUMBER", conflicts_with = "scenario", value_parser = clap::value_parser!(u32).range(1..=4_096))]
    vcpus: Option<u32>,
}

#[derive(Subcommand)]
enum Instead {
    /// Writes small recordings of many hosts, and beside them truth.json: which hosts and which kernel are worse.
    Fleet {
        /// The directory to write to.
        directory: PathBuf,
        /// How many recordings.
        #[arg(long, default_value_t = 1_000)]
        recordings: usize,
        /// How many hosts they are of; of each as many recordings as there are [default: as many as recordings].
        #[arg(long)]
        hosts: Option<usize>,
        /// The seed that varies times and choices.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Nothing is worse anywhere.
        #[arg(long)]
        alike: bool,
    },
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if let Some(Instead::Fleet { directory, recordings, hosts, seed, alike }) = arguments.instead {
        let fleet = fleet::Fleet { recordings, hosts: hosts.unwrap_or(recordings), seed, alike };
        let truth = fleet.write(&directory)?;
        println!("{}", truth.display());
        return Ok(());
    }
    if arguments.list {
        list();
        return Ok(());
    }
    if arguments.all {
        return all(&arguments);
    }
    let story = match (&arguments.scenario, arguments.vcpus, arguments.huge) {
        (Some(name), ..) => story(name, &arguments)?,
        (None, Some(vcpus), _) => scenario::wide(vcpus, arguments.seed),
        (None, None, Some(_)) => story("vmx-no-shadowing", &arguments)?,
        (None, None, None) => bail!("name a scenario, or --list them"),
    };
    if arguments.truth {
        print!("{}", story.truth);
        return Ok(());
    }
    if let Some(bytes) = arguments.huge {
        huge::write(&story, bytes, Compression::None, &arguments.output)?;
        return Ok(());
    }
    let target = Target::named(&arguments.format)
        .with_context(|| format!("there is no format {}; --list shows them", arguments.format))?;
    std::fs::create_dir_all(&arguments.output)?;
    let path = story.write(target, &arguments.output)?;
    println!("{}", path.display());
    Ok(())
}

/// `10GB` in bytes; units are powers of ten.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => 1,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        other => return Err(format!("`{other}` is no unit; write KB, MB or GB")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("`{digits}` is no number"))?;
    number.checked_mul(unit).ok_or_else(|| format!("{text} is too much"))
}

fn list() {
    for Scenario { name, about, .. } in scenario::ALL {
        println!("{name:20} {about}");
    }
    println!("{:20} everything at once, vendor and kernel too, as the seed wants it", "random");
    for target in Target::all() {
        println!("--format {}", target.name());
    }
}

fn all(arguments: &Arguments) -> anyhow::Result<()> {
    for scenario in scenario::ALL {
        let directory = arguments.output.join(scenario.name);
        std::fs::create_dir_all(&directory)?;
        let story = scenario.run(arguments.seed);
        for target in Target::all() {
            println!("{}", story.write(target, &directory)?.display());
        }
    }
    Ok(())
}

fn kernel(text: &str) -> Result<Generation, String> {
    let known = Generation::ALL.map(Generation::release).join(", ");
    Generation::named(text).ok_or_else(|| format!("{text} is none of those known by major and minor number: {known}"))
}

fn vendor(text: &str) -> Result<Vendor, String> {
    match text {
        "vmx" => Ok(Vendor::Vmx),
        "svm" => Ok(Vendor::Svm),
        _ => Err("write vmx or svm".into()),
    }
}

fn story(name: &str, arguments: &Arguments) -> anyhow::Result<Story> {
    if name == "random" {
        return Ok(scenario::random(arguments.seed));
    }
    let scenario = Scenario::named(name).with_context(|| format!("there is no scenario {name}; --list shows them"))?;
    let vendor = arguments.vendor.unwrap_or(scenario.vendors[0]);
    let kernel = arguments.kernel.unwrap_or(scenario.usual);
    scenario.run_on(vendor, kernel, arguments.seed).with_context(|| format!("{name} cannot happen there"))
}
