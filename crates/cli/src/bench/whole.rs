//! `kvmscope bench macro -- CMD`: a whole program, again and again.

use super::place::PlaceOptions;
use super::status::Status;
use anyhow::anyhow;
use base::bench::{Bench, Measured, Params};
use base::number::exact_bytes;
use clap::Args;
use lab::environment::{self, How};
use labs::bench::whole::{Took, least_max_rss_bytes, run};
use process::exit::{Exit, complain};
use process::interrupt::Interrupt;
use std::ffi::OsString;
use std::path::Path;

/// Time a whole program, with KVM's counters around each run
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope bench macro -- make -j8\n  \
    kvmscope bench macro --runs 5 --as L2 -o l2 -- iperf3 -c 192.168.1.1\n  \
    kvmscope bench macro --json -- true | jq '.sections[].tables.programs'\n\n\
    What CMD prints goes to stderr. Exits are those of all VMs of this host, and need root.\n\
    Exit status: 0 answered, 1 nothing could be measured, 2 wrong usage, 3 a finding at or above --fail-on;\n\
    that of CMD if it fails. With --json and without -o, no recording is kept.")]
pub(super) struct Macro {
    /// Number of runs; fewer than 3 give no interval
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), default_value = "3")]
    runs: u32,
    /// The command
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
    #[command(flatten)]
    place: PlaceOptions,
}

impl Macro {
    /// Runs the command, and says what it took.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let root = Path::new("/");
        let mut bench = Bench::new("macro", environment::here(How::default()));
        let mut place = self.place.begin("macro", None, Interrupt::watch()?)?;
        let status = Status::new(!self.place.no_progress, u64::from(self.runs));
        let least_rss_bytes = least_max_rss_bytes().unwrap_or(u64::MAX);
        let mut small = false;
        for number in 0..self.runs {
            let took = match run(&self.command, root) {
                Ok(took) if took.status == 0 => took,
                ended => {
                    drop(status);
                    place.interrupt.wait_if_asked();
                    place.abandon()?;
                    let took = ended?;
                    let run = number + 1;
                    complain(&anyhow!("run {run} of the command ended with {}; nothing is compared", took.status));
                    return Ok(Exit::Of(u8::try_from(took.status).unwrap_or(1)));
                }
            };
            small |= took.max_rss_bytes <= least_rss_bytes;
            self.add(&mut bench, number, &took);
            place.keep(&bench)?;
            status.done(format!("run {}", number + 1));
        }
        drop(status);
        if small {
            // All runs or none: a median of those that were larger would be of others.
            bench.results.retain(|measured| measured.name != "max_rss");
            let least = match least_rss_bytes {
                u64::MAX => "an unknown amount (the program `true` is missing)".to_owned(),
                bytes => exact_bytes(bytes),
            };
            bench.notes.push(format!("The command took less memory than {least}, the least that can be measured."));
        }
        place.finish(&bench, &self.place)
    }

    /// Adds a run: a result for each quantity, with a sample a run.
    fn add(&self, bench: &mut Bench, number: u32, took: &Took) {
        let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        let params = Params { command: Some(words.join(" ")), launch: number, ..Params::default() };
        let mut quantities = vec![
            ("real", "ns", took.real.as_nanos() as f64),
            ("user", "ns", took.user.as_nanos() as f64),
            ("sys", "ns", took.system.as_nanos() as f64),
            ("max_rss", "bytes", took.max_rss_bytes as f64),
            ("voluntary_switches", "count", took.voluntary_switches as f64),
            ("involuntary_switches", "count", took.involuntary_switches as f64),
        ];
        let exits = took.counters.as_ref().map(|grown| grown.get("exits").copied().unwrap_or(0));
        quantities.extend(exits.map(|exits| ("kvm_exits", "count", exits as f64)));
        for (name, unit, value) in quantities {
            let of_kvm = took.counters.as_ref().filter(|_| name == "kvm_exits");
            bench.results.push(Measured {
                name: name.to_owned(),
                params: params.clone(),
                unit: unit.to_owned(),
                samples: vec![value],
                counters: of_kvm.cloned().unwrap_or_default(),
                ..Measured::default()
            });
        }
    }
}
