//! Files that name the code of machines: `--symbols L1=System.map,0x1c000000`.

use analysis::facts::names::{self, GivenSymbols};
use anyhow::anyhow;
use clap::Args;
use std::path::PathBuf;

/// Names of functions.
#[derive(Args)]
#[command(next_help_heading = "Names of functions")]
pub(crate) struct SymbolFiles {
    /// Resolve a machine's code addresses by its /proc/kallsyms, System.map or /proc/modules; repeatable. A System.map needs SLIDE, the
    /// KASLR offset, unless the guest's halts determine it
    #[arg(long, value_name = "LEVEL=FILE[,SLIDE]", value_parser = file)]
    symbols: Vec<SymbolFile>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SymbolFile {
    machine: String,
    path: PathBuf,
    slide: Option<u64>,
}

impl SymbolFiles {
    /// Reads them.
    pub(crate) fn read(&self) -> anyhow::Result<Vec<GivenSymbols>> {
        let read = |file: &SymbolFile| {
            let text = names::text(&file.path).map_err(|error| anyhow!("{}: {error}", file.path.display()))?;
            Ok(GivenSymbols { machine: file.machine.clone(), file: file.path.clone(), text, slide: file.slide })
        };
        self.symbols.iter().map(read).collect()
    }
}

fn file(text: &str) -> Result<SymbolFile, String> {
    let wrong = || "write a level and a file, such as L1=System.map or L1=System.map,0x1c000000".to_owned();
    let (machine, rest) = text.split_once('=').filter(|(machine, _)| !machine.is_empty()).ok_or_else(wrong)?;
    let slide = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let (path, slide) = match rest.rsplit_once(',').and_then(|(path, hex)| Some((path, slide(hex)?))) {
        Some((path, slide)) => (path, Some(slide)),
        None => (rest, None),
    };
    if path.is_empty() {
        return Err(wrong());
    }
    Ok(SymbolFile { machine: machine.to_owned(), path: path.into(), slide })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slide_stands_behind_a_comma_and_a_name_may_hold_one() {
        let read = |text: &str| file(text).map(|file| (file.machine, file.path, file.slide));
        assert_eq!(read("L1=a,b"), Ok(("L1".into(), "a,b".into(), None)));
        assert_eq!(read("L1:web=map,0x200000"), Ok(("L1:web".into(), "map".into(), Some(0x20_0000))));
        assert!(["L1", "=map", "L1=", "L1=,0x10"].iter().all(|text| file(text).is_err()));
    }
}
