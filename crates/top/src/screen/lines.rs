//! The screen as lines, each as long as the terminal is wide at most.

use super::{Prompt, Sample, Screen};
use crate::grid::{Grid, View, fitted};
use crate::table::wrapped;
use analysis::flow::live::{Vcpu, Vm};

/// A line, and how it stands out. There is no colour: a terminal without any shows the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    pub style: Style,
}

/// How a line stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Plain,
    /// Heads of columns, and the row that is selected.
    Reversed,
    /// Who waits too long.
    Bold,
    Dim,
}

/// Lines above the rows: the host, the views, the heads.
const ABOVE: usize = 3;
/// Lines below them: the worst, and what it stands on.
const BELOW: usize = 2;

const HELP: &[&str] = &[
    "1 2 3 4        VMs, vCPUs, reasons, who took time",
    "up down j k    select; Page Up, Page Down, Home, End",
    "Enter          only the VM of the selected row      Escape  back",
    "< >            sort by the column beside            R       the other way round",
    "/              rows in which a text stands          a       the sum since the start",
    "Space          pause, and follow again              left right  step through the last 300 intervals",
    "d              length of an interval in seconds     f       save the last seconds as a recording (--flight)",
    "q              quit",
    "",
    "RDY% is CPU Ready: it could run and had no CPU. TORN% is the part of it in which another vCPU of the VM ran. - is unknown, never 0.",
    "docs/use/live.md says what every column is, and what this host cannot tell.",
    "",
];

impl Screen {
    /// Exactly `height` lines for a terminal of that size.
    pub fn lines(&mut self, width: usize, height: usize) -> Vec<Line> {
        self.size = (width, height);
        let mut lines = if self.has_help { self.help(width) } else { self.table(width) };
        lines.truncate(height);
        lines.resize(height, line("", Style::Plain));
        lines.into_iter().map(|line| Line { text: fitted(&line.text, width), ..line }).collect()
    }

    /// Rows that the screen has room for.
    pub(super) fn rows_shown(&self) -> usize {
        self.size.1.saturating_sub(ABOVE + BELOW).max(1)
    }

    /// What is shown: an interval, or all of them.
    fn vcpus(&self) -> &[Vcpu] {
        match self.sample() {
            Some(_) if self.is_since_start => &self.since_start,
            Some(sample) => &sample.frame.vcpus,
            None => &[],
        }
    }

    /// The rows of the view, sorted and filtered.
    pub(super) fn grid(&self, width: usize) -> Grid {
        let history = |vm: &str| self.ready_before(vm);
        let mut grid = Grid::of(self.view, self.vcpus(), self.vm.as_deref(), width, &history);
        let sort = self.sort();
        grid.sort(sort.by, sort.is_reversed);
        grid.filter(&self.filter);
        grid
    }

    /// How much of its time a VM was ready in the intervals up to the one that is shown, the latest last.
    fn ready_before(&self, vm: &str) -> Vec<Option<f64>> {
        /// Of each as many as a row has room for.
        const MOST: usize = 12;
        if self.is_ascii {
            return Vec::new();
        }
        let end = self.samples.len().saturating_sub(self.behind.unwrap_or(0));
        let ready = |sample: &Sample| Vm::of(&sample.frame.vcpus).into_iter().find(|known| known.name == vm)?.ready;
        self.samples.range(end.saturating_sub(MOST)..end).map(ready).collect()
    }

    fn table(&self, width: usize) -> Vec<Line> {
        let grid = self.grid(width);
        let room = self.rows_shown();
        let selected = self.selected.min(grid.rows.len().saturating_sub(1));
        // The selected row stays on the screen.
        let first = selected.saturating_sub(room - 1);
        let head = self.sample().map_or_else(
            || "the first interval is not over yet".to_owned(),
            |sample| sample.frame.head.line(sample.every),
        );
        let mut lines = vec![line(head, Style::Plain), line(self.state(), Style::Dim)];
        lines.push(line(format!("{:<width$}", grid.head_line(Some(self.sort().by))), Style::Reversed));
        for (at, row) in grid.rows.iter().enumerate().skip(first).take(room) {
            let style = match (at == selected, row.is_marked) {
                (true, _) => Style::Reversed,
                (false, true) => Style::Bold,
                (false, false) => Style::Plain,
            };
            lines.push(line(format!("{:<width$}", grid.row_line(row)), style));
        }
        if grid.rows.is_empty() && self.sample().is_some() {
            lines.push(line(self.nothing(), Style::Plain));
        }
        lines.resize(ABOVE + room, line("", Style::Plain));
        lines.push(line(self.worst(), Style::Bold));
        lines.push(line(self.bottom(), Style::Dim));
        lines
    }

    /// Why there is no row.
    fn nothing(&self) -> String {
        if !self.filter.is_empty() {
            return format!(" no row has \"{}\"; Escape takes the filter away", self.filter);
        }
        match (self.view, &self.vm) {
            (View::Takers, _) => " nobody took time in this interval, or nothing tells".to_owned(),
            (View::Reasons, _) => " no exit in this interval, or nothing tells".to_owned(),
            (_, Some(vm)) => format!(" {vm} was not seen in this interval; Escape shows all VMs"),
            (_, None) => " no vCPU ran or was known in this interval".to_owned(),
        }
    }

    /// Which views there are, and what of them is shown.
    fn state(&self) -> String {
        let name = |(at, view): (usize, &View)| {
            let is_shown = *view == self.view;
            if is_shown { format!("[{} {}]", at + 1, view.name()) } else { format!(" {} {} ", at + 1, view.name()) }
        };
        let mut state = View::ALL.iter().enumerate().map(name).collect::<Vec<_>>().join(" ");
        if let Some(vm) = &self.vm {
            state += &format!("  of {vm}");
        }
        if !self.filter.is_empty() {
            state += &format!("  with \"{}\"", self.filter);
        }
        if self.is_since_start {
            state += "  since the start";
        } else if let (Some(behind), Some(sample)) = (self.behind, self.sample()) {
            state += &format!("  paused at {}, {} of {}", sample.time, self.samples.len() - behind, self.samples.len());
        }
        state
    }

    /// The VM that waits most for a CPU, in words, where that is more than anybody likes.
    fn worst(&self) -> String {
        let vms = Vm::of(self.vcpus());
        let worst = vms.into_iter().filter(|vm| vm.ready.is_some_and(|ready| ready >= crate::grid::WORRYING_READY));
        let Some(worst) = worst.max_by(|a, b| a.ready.partial_cmp(&b.ready).unwrap_or(std::cmp::Ordering::Equal))
        else {
            return String::new();
        };
        let ready = 100.0 * worst.ready.unwrap_or_default();
        let by = worst.taken.map_or_else(String::new, |(by, share)| format!("; {by} took {:.1} %", 100.0 * share));
        format!("! {} was ready without a CPU for {ready:.1} % of its time{by}", worst.name)
    }

    /// What is typed, what was wrong, or what the numbers stand on.
    fn bottom(&self) -> String {
        match &self.prompt {
            Some(Prompt::Filter(text)) => return format!("rows with: {text}_"),
            Some(Prompt::Delay(text)) => return format!("seconds of an interval: {text}_"),
            None if !self.message.is_empty() => return self.message.clone(),
            None => {}
        }
        let floor = self.sample().and_then(|sample| sample.frame.floor.first()).and_then(|line| line.lines().next());
        format!("? help  q quit  {}", floor.unwrap_or_default())
    }

    fn help(&self, width: usize) -> Vec<Line> {
        let floor = self.sample().map(|sample| sample.frame.floor.as_slice()).unwrap_or_default();
        let keys = HELP.iter().map(|text| (*text).to_owned());
        let said = floor.iter().flat_map(|text| wrapped(text, width));
        keys.flat_map(|text| if text.is_empty() { vec![text] } else { broken(&text, width) })
            .chain(said)
            .map(|text| line(text, Style::Plain))
            .collect()
    }
}

/// A line of the help: columns stay where they fit.
fn broken(text: &str, width: usize) -> Vec<String> {
    if text.chars().count() <= width { vec![text.to_owned()] } else { wrapped(text, width) }
}

fn line(text: impl Into<String>, style: Style) -> Line {
    Line { text: text.into(), style }
}
