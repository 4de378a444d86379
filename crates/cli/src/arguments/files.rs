//! Files beside what is printed: `--csv DIR`, and whether they may replace what is there.

use crate::exit::WrongUse;
use crate::interrupt::Interrupt;
use crate::staging::Staging;
use base::Section;
use clap::{Args, ValueHint};
use std::path::{Path, PathBuf};

/// Options of every command whose answer has tables.
#[derive(Args)]
pub struct FileOptions {
    /// Also write each table as a CSV file into DIR
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    csv: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

impl FileOptions {
    /// Whether tables are wanted.
    pub fn wants_tables(&self) -> bool {
        self.csv.is_some()
    }

    /// Refuses a directory that cannot be written, before the work for it is done.
    pub fn check(&self) -> Result<(), WrongUse> {
        self.csv.as_deref().map_or(Ok(()), |directory| Staging::check_directory(directory, self.force))
    }

    /// Refuses a file that cannot be written.
    pub fn check_file(&self, file: &Path) -> Result<(), WrongUse> {
        Staging::check_file(file, self.force)
    }

    /// Writes the tables, if they are wanted.
    pub fn write_tables(&self, sections: &[Section], interrupt: &Interrupt) -> anyhow::Result<()> {
        let Some(directory) = &self.csv else { return Ok(()) };
        Staging::new(interrupt).directory(directory, |partial| show::csv::write_csv(sections, partial)).map(drop)
    }
}
