//! Which symbols name the code of a machine?
//!
//! In:  what the user gave (`--symbols L1=System.map`), the machine's trace, files of its directory in the recording, and
//! where it halted. Out: symbols, or why there are none.
//!
//! ```text
//! given by the user --> kallsyms in a trace.dat of the machine --> <machine>/host/*/proc/kallsyms --> <machine>/System.map
//! given by the user  +  <machine>/modules  +  <machine>/host/*/proc/modules: what no function is named of
//! ```
//! The first that names a function counts. Addresses of a System.map are those of linking: the slide is the one that the
//! user gave, else the one between it and the recording's own kallsyms, else the one that the places of its halts tell.

use crate::Given;
use crate::Input;
use align::symbols::{KERNEL, Symbols};
use base::recording::PartKind;
use std::io;
use std::path::{Path, PathBuf};
use walk::Part;

/// Symbols that the user gave for a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenSymbols {
    /// Its id, name or level: `L1`.
    pub machine: String,
    pub file: PathBuf,
    /// Its text: of `/proc/kallsyms`, `System.map` or `/proc/modules`.
    pub text: String,
    /// How far above its linked address the kernel was put.
    pub slide: Option<u64>,
}

impl GivenSymbols {
    /// True if it names the code of `part`'s machine.
    fn is_of(&self, input: &Input, part: &Part) -> bool {
        let machine = input.recording.machines.iter().find(|machine| machine.id == part.machine);
        let name = machine.and_then(|machine| machine.name.as_deref());
        [Some(part.machine.as_str()), name, Some(&part.level.to_string())].contains(&Some(&self.machine))
    }

    /// True if the text names a function or a module.
    fn names_something(&self) -> bool {
        let any = Symbols::parse(self.text.clone()).is_some();
        any || Symbols::default().with_modules(&self.text).has_modules()
    }
}

/// What cannot be used of that which the user gave, each with its file.
pub fn unused(input: &Input, given: &Given) -> Vec<(String, String)> {
    let why = |symbols: &GivenSymbols| {
        let file = symbols.file.display().to_string();
        let GivenSymbols { machine, .. } = symbols;
        if !input.parts.iter().any(|part| symbols.is_of(input, part)) {
            let why = format!(
                "{file} is not used: the recording has no trace of {machine}; add one with --part {machine}=FILE, or \
                 join a recording made inside it"
            );
            return Some((file, why));
        }
        (!symbols.names_something()).then(|| {
            let why = format!(
                "{file} has no kernel addresses; the kernel shows them only to root: copy /proc/kallsyms as root in \
                 {machine}"
            );
            (file, why)
        })
    };
    given.traces.symbols.iter().filter_map(why).collect()
}

/// A symbol file longer than this is something else; kallsyms of large kernels have 20 MB.
const MOST_BYTES: u64 = 64 << 20;

/// The text of a file of symbols.
///
/// # Errors
/// If it cannot be read, or is too long to be one.
pub fn text(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&base::files::read(path, MOST_BYTES)?).into_owned())
}

/// The symbols of `part`'s machine, which halted at `halts`.
///
/// # Errors
/// If there are some that cannot be used: a sentence that says what to do.
pub fn symbols(input: &Input, given: &Given, part: &Part, halts: &[u64]) -> Result<Option<Symbols>, String> {
    let files: Vec<&GivenSymbols> = given.traces.symbols.iter().filter(|file| file.is_of(input, part)).collect();
    let beside = |name: &str| read(&input.recording.root.join(&part.machine).join(name));
    let hosts = input.recording.parts.iter().filter(|other| other.kind == PartKind::Host);
    let hosts = hosts.filter(|other| other.machine == part.machine).map(|other| input.recording.root.join(&other.path));
    let hosts: Vec<PathBuf> = hosts.collect();
    let kept = |name: &str| hosts.iter().find_map(|host| read(&host.join("proc").join(name)));
    let modules: Vec<String> = files.iter().map(|file| file.text.clone()).chain(beside("modules")).collect();
    let modules = modules.into_iter().chain(kept("modules")).collect::<Vec<_>>().join("\n");
    let modules = |symbols: Symbols| symbols.with_modules(&modules);
    // One trace of a machine names the code in its others: a perf.data has no symbols, the trace.dat beside it has.
    let own = || {
        let others = input.parts.iter().filter(|other| other.machine == part.machine);
        let traces = std::iter::once(part).chain(others).filter_map(|part| part.trace.kallsyms());
        traces.chain(kept("kallsyms")).find_map(Symbols::parse)
    };
    for file in &files {
        if let Some(symbols) = Symbols::parse(file.text.clone()) {
            let slide = file.slide.or_else(|| symbols.slide_to(&own()?));
            let file = file.file.display().to_string();
            return placed(symbols, slide, halts, (&part.machine, &file)).map(modules).map(Some);
        }
    }
    if let Some(symbols) = own() {
        return Ok(Some(modules(symbols)));
    }
    let Some(symbols) = beside("System.map").and_then(Symbols::parse) else { return Ok(None) };
    let file = format!("{}/System.map", part.machine);
    placed(symbols, None, halts, (&part.machine, &file)).map(modules).map(Some)
}

/// Where the machine halted, by what the machine below saw.
pub fn halts(alignment: &align::Alignment) -> Vec<u64> {
    use walk::events::reasons::Class;
    let sites = alignment.cpus.iter().flat_map(|cpu| cpu.vcpu.sites.keys());
    let halts = sites.filter(|(reason, rip)| reason.class() == Class::Halt && *rip >= KERNEL);
    let mut halts: Vec<u64> = halts.map(|(_, rip)| *rip).collect();
    halts.sort_unstable();
    halts.dedup();
    halts
}

/// Puts symbols where the kernel was.
fn placed(
    symbols: Symbols,
    slide: Option<u64>,
    halts: &[u64],
    (machine, file): (&str, &str),
) -> Result<Symbols, String> {
    match slide.or_else(|| symbols.slide_by(halts)) {
        Some(slide) => Ok(symbols.slid(slide)),
        None if !symbols.may_be_linked() => Ok(symbols),
        None => Err(format!(
            "{file} is not used: the KASLR offset of {machine} is unknown, because no HLT exit identifies it; give \
             the difference between _stext in its /proc/kallsyms and in the file: --symbols \
             {machine}={file},0x1c000000"
        )),
    }
}

fn read(path: &Path) -> Option<String> {
    // A pipe in a recording would be waited for.
    std::fs::metadata(path).ok().filter(|about| about.is_file()).and_then(|_| text(path).ok())
}
