//! Writes a story to a file: `generate vmx-no-shadowing --format tracedat7-le-64-zstd -o DIR`.

use anyhow::{Context, bail};
use clap::Parser;
use generate::scenario::{self, Scenario};
use generate::{Story, Target};
use std::path::PathBuf;

/// Writes traces whose truth is known.
#[derive(Parser)]
struct Arguments {
    /// The scenario, or `random`.
    scenario: Option<String>,
    /// Lists scenarios and formats.
    #[arg(long)]
    list: bool,
    /// The format.
    #[arg(long, default_value = "tracedat7-le-64-zstd")]
    format: String,
    /// The seed that varies times and choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The directory to write to.
    #[arg(short, long, default_value = ".")]
    output: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.list {
        list();
        return Ok(());
    }
    let Some(name) = &arguments.scenario else {
        bail!("name a scenario, or --list them");
    };
    let story = story(name, arguments.seed)?;
    let target = Target::named(&arguments.format)
        .with_context(|| format!("there is no format {}; --list shows them", arguments.format))?;
    std::fs::create_dir_all(&arguments.output)?;
    let path = story.write(target, &arguments.output)?;
    println!("{}", path.display());
    Ok(())
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

fn story(name: &str, seed: u64) -> anyhow::Result<Story> {
    if name == "random" {
        return Ok(scenario::random(seed));
    }
    let scenario = Scenario::named(name).with_context(|| format!("there is no scenario {name}; --list shows them"))?;
    Ok(scenario.run(seed))
}
