//! `kvmscope schema`: what every table is, whatever a recording holds.

use anyhow::bail;
use base::TableSpec;
use base::nearest::instead;
use clap::{Args, ValueEnum};
use process::exit::{Exit, WrongUse};
use std::io::Write;

/// Print the columns of all tables, as a JSON schema
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope schema > kvmscope.schema.json\n  \
    kvmscope schema --table flow.exits\n  \
    kvmscope schema --format validation\n\n\
    docs/formats/tables.md has the same for people, and docs/formats/validation.md what the models of plans predict of published results.\n\
    Exit status: 0 printed, 2 wrong usage.")]
pub(crate) struct Schema {
    /// Only this table: SECTION.TABLE, such as flow.exits
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Format of the output: json, markdown, typescript; or validation, the page of the models of plans
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A JSON schema.
    Json,
    /// The page docs/formats/tables.md.
    Markdown,
    /// The module ui/src/data/tables.ts.
    Typescript,
    /// The page docs/formats/validation.md.
    Validation,
}

impl Schema {
    /// Prints it.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        if let (Format::Validation, Some(name)) = (self.format, &self.table) {
            bail!(WrongUse(format!("--table {name}: docs/formats/validation.md is not about a table")));
        }
        let all: Vec<&TableSpec> = analysis::tables().collect();
        let wanted = match &self.table {
            None => all,
            Some(name) => match all.iter().find(|spec| spec.address() == *name) {
                Some(spec) => vec![*spec],
                None => {
                    let names: Vec<String> = all.iter().map(|spec| spec.address()).collect();
                    // Several questions may have a table of one name, which alone is no address.
                    let same: Vec<String> =
                        all.iter().filter(|spec| spec.name == name).map(|spec| spec.address()).collect();
                    let instead = match same.is_empty() {
                        true => instead(name, names.iter().map(String::as_str)),
                        false => format!("did you mean {}?", same.join(" or ")),
                    };
                    bail!(WrongUse(format!("--table {name}: no answer has such a table; {instead}")));
                }
            },
        };
        let text = match (self.format, wanted.as_slice()) {
            (Format::Json, [spec]) => serde_json::to_string_pretty(&show::schema::table(spec))? + "\n",
            (Format::Json, all) => {
                let sections: Vec<&str> = analysis::QUESTIONS.iter().map(|question| question.id).collect();
                serde_json::to_string_pretty(&show::schema::document(all, &sections))? + "\n"
            }
            (Format::Markdown, wanted) => show::schema::markdown(wanted),
            (Format::Typescript, wanted) => show::schema::typescript(wanted),
            (Format::Validation, _) => analysis::validation::page(),
        };
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(Exit::Answered)
    }
}
