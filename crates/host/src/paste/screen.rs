//! `top`, of processes or of threads (`-H`): columns by the header, because everybody sets them otherwise.

use super::{Pasted, Text};
use crate::machine::{Screen, TopRow};

/// `PID USER PR NI ...` and the rows below it. Blank lines between rows are part of the screen, two of them end it.
pub(super) fn top(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let header: Vec<&str> = text.at(at).split_whitespace().collect();
    let column = |name: &str| header.iter().position(|known| *known == name);
    let (Some(0), Some(share), Some(command)) = (column("PID"), column("%CPU"), column("COMMAND")) else { return 0 };
    let [state, time, processor] = ["S", "TIME+", "P"].map(column);
    let mut screen = Screen { place: text.place(at), ..Screen::default() };
    let mut end = at + 1;
    while end < text.lines.len() {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        let told =
            cells.first().and_then(|pid| pid.parse::<i32>().ok()).zip(cells.get(share).and_then(|cell| percent(cell)));
        let Some((pid, share)) = told.filter(|_| cells.len() > command) else { break };
        // Columns after the command stand at the row's end, where the terminal was wide enough for them.
        let behind = processor.filter(|column| *column > command);
        let last = behind.and_then(|_| cells.get(command + 1..)?.last()?.parse().ok());
        let until = cells.len() - usize::from(last.is_some());
        end += 1;
        if !pasted.may_take_row() {
            continue;
        }
        screen.rows.push(TopRow {
            place: text.place(end - 1),
            pid,
            process: None,
            state: state.and_then(|column| cells.get(column)?.chars().next()).unwrap_or('?'),
            share: Some(share),
            average: false,
            wait: None,
            time_cs: time.and_then(|column| hundredths(cells.get(column)?)),
            command: cells[command..until].join(" "),
            last_cpu: match behind {
                Some(_) => last,
                None => processor.and_then(|column| cells.get(column)?.parse().ok()),
            },
        });
    }
    if end == at + 1 {
        return 0;
    }
    pasted.machine.screens.push(screen);
    end - at
}

/// `17.9`, or `17,9` where the language writes it so, as a share of one CPU.
fn percent(cell: &str) -> Option<f64> {
    cell.replace(',', ".")
        .parse::<f64>()
        .ok()
        .filter(|percent| (0.0..1e6).contains(percent))
        .map(|percent| percent / 100.0)
}

/// `153:31.10`: minutes, seconds, hundredths.
fn hundredths(cell: &str) -> Option<u64> {
    let (minutes, seconds) = cell.split_once(':')?;
    let (seconds, hundredths) = seconds.split_once(['.', ','])?;
    let [minutes, seconds, hundredths] = [minutes, seconds, hundredths].map(|part| part.parse::<u64>().ok());
    minutes?.checked_mul(60)?.checked_add(seconds?)?.checked_mul(100)?.checked_add(hundredths?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_minutes_and_hundredths() {
        assert_eq!(hundredths("1:35.98"), Some(9_598));
        assert_eq!(hundredths("153:31.10"), Some(921_110));
        assert_eq!(hundredths("1.5"), None);
        assert_eq!(percent("17,9"), Some(0.179));
    }
}
