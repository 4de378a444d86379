//! The results of a recording, read.

use super::{Breach, CacheUse, Edges, Found, Known, Noise, Samples, read};
use base::recording::result_file::LOOKED_AT;
use base::recording::{PartKind, Recording, ResultFile};
use base::{Level, Problem};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

#[derive(Debug, Clone, Default)]
pub struct ResultFiles {
    /// Each file, in the order of the manifest.
    pub list: Vec<SampleFile>,
    /// Files that could not be read.
    pub unread: u64,
}

#[derive(Debug, Clone)]
pub struct SampleFile {
    /// The file, as the user names it.
    pub path: String,
    pub machine: String,
    pub level: Level,
    pub kind: ResultFile,
    /// Of each thread or CPU.
    pub samples: Vec<Samples>,
    /// How caches were used, by groups of CPUs.
    pub cache_use: Vec<CacheUse>,
    /// What became of the edges, of interrupts.
    pub edges: Option<Edges>,
    /// The sample after which the program broke off.
    pub breach: Option<Breach>,
    /// What the program itself found out about its longest sample, line by line.
    pub analysis: Vec<String>,
    /// Noise of each CPU, of osnoise.
    pub noise: Vec<Noise>,
    /// What else it said of its samples; and of a run that met nothing, where it looked.
    pub said: Option<String>,
    pub nothing: Option<String>,
}

impl ResultFiles {
    /// Reads the results of `recording`; what cannot be read becomes a problem.
    pub fn of(recording: &Recording) -> (Self, Vec<Problem>) {
        let (mut results, mut problems) = (Self::default(), Vec::new());
        for part in recording.parts.iter().filter(|part| part.kind == PartKind::Samples) {
            let path = part.path.display().to_string();
            let mut found = Found { file: path.clone(), ..Found::default() };
            let known = Known { ns_per_tick: recording.ns_per_tick(&part.machine) };
            match read_file(&recording.root.join(&part.path), known, &mut found) {
                Ok(kind) => {
                    let (machine, level) = (part.machine.clone(), recording.level_of(&part.machine));
                    let Found { samples, cache_use, edges, breach, analysis, noise, said, nothing, .. } = found;
                    results.list.push(SampleFile {
                        path,
                        machine,
                        level,
                        kind,
                        samples,
                        cache_use,
                        edges,
                        breach,
                        analysis,
                        noise,
                        said,
                        nothing,
                    });
                }
                Err(problem) => {
                    results.unread += 1;
                    problems.push(*problem);
                }
            }
            problems.extend(found.problems.list().iter().cloned());
        }
        (results, problems)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn each(&self) -> impl Iterator<Item = (&SampleFile, &Samples)> {
        self.list.iter().flat_map(|file| file.samples.iter().map(move |samples| (file, samples)))
    }
}

fn read_file(path: &Path, known: Known, found: &mut Found) -> Result<ResultFile, Box<Problem>> {
    let file = found.file.clone();
    let io = |error: std::io::Error| {
        Box::new(Problem::at(file.clone(), None, "a result", "none", 0, format!("{file}: {error}")))
    };
    let mut input = base::files::open(path).map_err(io)?;
    let mut first = Vec::new();
    input.by_ref().take(LOOKED_AT).read_to_end(&mut first).map_err(io)?;
    let Some(kind) = ResultFile::of(&first) else {
        let text = format!(
            "{file} is no result of cyclictest, oslat, jitterdebugger, rtla, hwlatdetect, tscdeadline_latency or vm-trace"
        );
        let (expected, skipped) = ("a result of a latency test", first.len() as u64);
        return Err(Box::new(Problem::at(file.clone(), 0, expected, "something else", skipped, text)));
    };
    input.seek(SeekFrom::Start(0)).map_err(io)?;
    read(kind, &mut BufReader::new(input), known, found);
    Ok(kind)
}
