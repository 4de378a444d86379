//! Which programs measure inside the guest, and how are they called?
//!
//! Intervals and limits are for a guest that is emulated, a hundred times slower than a real one: its programs would else
//! keep up with nothing. The options of cyclictest are those of KVM4NFV's runs (`-a -p 99 -m -q -h`). Only jitterdebugger
//! keeps when each sample was taken.

use crate::machine::needs::Need;
use crate::rt::measurement::{Leaves, Measures};
use lab::Error;
use std::path::PathBuf;
use std::time::Duration;

/// What must be installed.
pub(super) const NEEDS: &[Need] = &[
    ("jitterdebugger", "jitterdebugger"),
    ("jittersamples", "jitterdebugger-utils"),
    ("cyclictest", "rt-tests"),
    ("rtla", "rtla"),
];

/// A program in the guest.
struct Tool {
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// The option that takes how long it measures, and the unit behind the number; none if it does not measure itself.
    lasts: Option<(&'static str, &'static str)>,
    leaves: Kept,
}

enum Kept {
    Nothing,
    Prints(&'static str),
    Writes { path: &'static str, file: &'static str },
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "jitterdebugger",
        program: "jitterdebugger",
        arguments: &["-p", "98", "-i", "1000", "-s", "-o", "/tmp/jitterdebugger"],
        lasts: Some(("-D", "s")),
        leaves: Kept::Nothing,
    },
    Tool {
        name: "jittersamples",
        program: "jittersamples",
        arguments: &["-f", "csv", "/tmp/jitterdebugger"],
        lasts: None,
        leaves: Kept::Writes { path: "/tmp/jitterdebugger/samples.csv", file: "jitterdebugger.csv" },
    },
    Tool {
        name: "cyclictest",
        program: "cyclictest",
        // Latencies above 50 ms overflow: a guest that had no CPU for so long has some.
        arguments: &[
            "-a",
            "-t",
            "1",
            "-p",
            "99",
            "-i",
            "1000",
            "-m",
            "-q",
            "-h",
            "50000",
            "--json=/tmp/cyclictest.json",
        ],
        lasts: Some(("-D", "")),
        leaves: Kept::Writes { path: "/tmp/cyclictest.json", file: "cyclictest.json" },
    },
    Tool {
        name: "rtla timerlat",
        program: "rtla",
        arguments: &["timerlat", "hist", "-p", "2000", "-b", "10", "-E", "5000"],
        lasts: Some(("-d", "s")),
        leaves: Kept::Prints("timerlat.txt"),
    },
    Tool {
        name: "rtla osnoise",
        program: "rtla",
        // What is shorter than 100 us is the emulator's own noise.
        arguments: &["osnoise", "hist", "-p", "200000", "-r", "180000", "-T", "100", "-b", "10", "-E", "5000"],
        lasts: Some(("-d", "s")),
        leaves: Kept::Prints("osnoise.txt"),
    },
];

/// How long the programs measure together, each for so many seconds.
pub(super) fn measuring(seconds: u64) -> Duration {
    Duration::from_secs(seconds) * TOOLS.iter().filter(|tool| tool.lasts.is_some()).count() as u32
}

/// The programs, each of which measures so long; they are looked for in `directories`.
pub(super) fn programs(seconds: u64, directories: &[PathBuf]) -> Result<Vec<Measures>, Error> {
    TOOLS.iter().map(|tool| tool.found(seconds, directories)).collect()
}

impl Tool {
    fn found(&self, seconds: u64, directories: &[PathBuf]) -> Result<Measures, Error> {
        let path = directories.iter().map(|directory| directory.join(self.program)).find(|path| path.is_file());
        let path = path.ok_or_else(|| Error::Absent(format!("{} is in no directory of PATH", self.program)))?;
        let path = path.canonicalize().map_err(|error| Error::io(&path, error))?;
        let mut arguments: Vec<String> = self.arguments.iter().map(|argument| (*argument).to_owned()).collect();
        arguments
            .extend(self.lasts.iter().flat_map(|(option, unit)| [(*option).to_owned(), format!("{seconds}{unit}")]));
        let leaves = match self.leaves {
            Kept::Nothing => Leaves::Nothing,
            Kept::Prints(file) => Leaves::Prints(file.to_owned()),
            Kept::Writes { path, file } => Leaves::Writes(path.into(), file.to_owned()),
        };
        Ok(Measures { name: self.name.to_owned(), path, arguments, leaves })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_and_told_how_long_they_measure() {
        let place = tempfile::tempdir().unwrap();
        let error = programs(3, &[place.path().to_owned()]).unwrap_err().to_string();
        assert!(error.contains("jitterdebugger"), "{error}");
        NEEDS.iter().for_each(|(name, _)| std::fs::write(place.path().join(name), b"").unwrap());
        let found = programs(3, &[PathBuf::from("/nonexistent"), place.path().to_owned()]).unwrap();
        let words: Vec<String> = found.iter().map(|program| program.arguments.join(" ")).collect();
        assert!(words[0].ends_with("-D 3s") && words[2].ends_with("-D 3") && words[4].ends_with("-d 3s"), "{words:?}");
        assert_eq!((words[1].as_str(), measuring(3)), ("-f csv /tmp/jitterdebugger", Duration::from_secs(12)));
    }
}
