//! What a question is narrowed to: a level, a VM, a vCPU, a window of time; and events to leave out.

use super::instant;
use analysis::{Given, TraceHints};
use base::{Level, Span};
use clap::Args;
use process::exit::WrongUse;

/// Options that narrow a question.
#[derive(Args)]
#[command(next_help_heading = "Narrow the question")]
pub(crate) struct Narrow {
    /// Only rows of this level: L0, L1, L2, ... or L?
    #[arg(long)]
    level: Option<Level>,
    /// Only this VM, by its name in the report
    #[arg(long, value_name = "NAME")]
    vm: Option<String>,
    /// Only this vCPU
    #[arg(long, value_name = "N")]
    vcpu: Option<u32>,
    /// Level whose trace is counted and drawn, where several levels recorded: L1 [default: the outermost]
    #[arg(long, value_name = "LEVEL")]
    witness: Option<Level>,
    /// From this time on, in seconds since the first event
    #[arg(long, value_name = "SECONDS", value_parser = instant)]
    from: Option<u64>,
    /// Until this time, in seconds since the first event
    #[arg(long, value_name = "SECONDS", value_parser = instant)]
    to: Option<u64>,
    /// Treat this event as if it had not been recorded; repeatable
    #[arg(long, value_name = "EVENT")]
    ignore_event: Vec<String>,
    /// Call the VM of this vCPU thread NAME; repeatable
    #[arg(long, value_name = "TID=NAME", value_parser = vm_name)]
    vm_map: Vec<(i32, String)>,
}

impl Narrow {
    /// The same as the questions take it.
    pub(crate) fn given(&self) -> Result<Given, WrongUse> {
        let window = match (self.from, self.to) {
            (None, None) => None,
            (from, to) => Some(Span { from_ns: from.unwrap_or(0), to_ns: to.unwrap_or(u64::MAX) }),
        };
        if window.is_some_and(|window| window.length_ns() == 0) {
            return Err(WrongUse("--from must be before --to".to_owned()));
        }
        Ok(Given {
            narrow: base::Narrow {
                level: self.level,
                vm: self.vm.clone(),
                vcpu: self.vcpu,
                window,
                witness: self.witness,
            },
            traces: TraceHints {
                ignore_events: self.ignore_event.clone(),
                vm_map: self.vm_map.clone(),
                symbols: Vec::new(),
            },
            ..Given::default()
        })
    }
}

fn vm_name(text: &str) -> Result<(i32, String), String> {
    let pair = text.split_once('=').and_then(|(tid, name)| Some((tid.parse().ok()?, name)));
    match pair {
        Some((_, name)) if name.chars().any(char::is_control) => {
            Err("a name has no line ends or other controls".to_owned())
        }
        Some((tid, name)) if !name.is_empty() => Ok((tid, name.to_owned())),
        _ => Err("write the thread id of a vCPU and a name, such as 4711=web".to_owned()),
    }
}
