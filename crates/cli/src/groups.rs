//! The program's own help: commands in groups by what one wants to do.

use clap::Command;

/// Every command that is not hidden, once.
const GROUPS: &[(&str, &[&str])] = &[
    ("Look", &["top", "report", "check", "explain", "compare", "history", "serve", "cut", "export"]),
    ("Record", &["record", "snapshot", "join", "pack"]),
    ("Act", &["apply", "undo"]),
    ("Predict", &["plan", "budget"]),
    ("Many hosts", &["agent", "fleet"]),
    ("Measure", &["bench", "lab", "clocks"]),
    ("Shells and scripts", &["completions", "schema", "help"]),
];

/// `program` with its help in these groups.
pub(crate) fn grouped(mut program: Command) -> Command {
    // Then it has its command `help`, too.
    program.build();
    let mut help = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (group, names) in GROUPS {
        help += &format!("\n{group}:\n");
        for command in names.iter().filter_map(|name| program.find_subcommand(name)) {
            let about = command.get_about().map_or(String::new(), ToString::to_string);
            help += &format!("  {:<11}  {about}\n", command.get_name());
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
            let places = GROUPS.iter().flat_map(|(_, names)| *names).filter(|known| **known == name);
            assert_eq!(places.count(), 1, "{name}");
            let about = command.get_about().map_or(0, |about| about.to_string().len());
            assert!((1..=65).contains(&about), "{name}: 80 columns, {about} letters");
        }
    }
}
