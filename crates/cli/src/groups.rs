//! The program's own help: commands in groups by what one wants to do.

use clap::Command;

/// Every command that is not hidden, once.
const GROUPS: &[(&str, &[&str])] = &[
    ("Look", &["report", "check", "explain", "compare", "history", "serve", "cut", "export"]),
    ("Record", &["record", "snapshot", "join", "pack"]),
    ("Act", &["apply", "undo"]),
    ("Predict", &["plan", "budget"]),
    ("Many hosts", &["agent", "fleet"]),
    ("Measure", &["bench", "lab", "clocks"]),
    ("Shells and scripts", &["completions", "schema", "help"]),
];

/// `program` with its help in these groups.
pub(crate) fn grouped(program: Command) -> Command {
    let mut help = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (group, names) in GROUPS {
        help += &format!("\n{group}:\n");
        for name in *names {
            let about = program.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            let about = about.unwrap_or_else(|| "Print the help of a command".to_owned());
            help += &format!("  {name:<11}  {about}\n");
        }
    }
    program.help_template(help + "\nOptions:\n{options}{after-help}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_is_in_one_group_and_fits_a_terminal() {
        let program = crate::Program::command();
        for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            assert_eq!(
                GROUPS.iter().flat_map(|(_, names)| *names).filter(|known| **known == name).count(),
                1,
                "{name}"
            );
            let about = command.get_about().map_or(0, |about| about.to_string().len());
            assert!((1..=65).contains(&about), "{name}: 80 columns, {about} letters");
        }
    }
}
