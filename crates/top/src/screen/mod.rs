//! What is shown on a terminal, and what each key does to it. Nothing here knows a terminal: keys come in, lines go out.
//!
//! ```text
//! Frame --push--> samples, the last 300 --one, or the sum of all since the start--> Grid --sort, filter--> lines
//! Key ----key---> view, VM, sort, filter, place among the samples
//! ```

mod lines;
mod sum;
#[cfg(test)]
mod tests;

pub use lines::{Line, Style};

use super::grid::View;
use super::observe::Frame;
use analysis::flow::live::Vcpu;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Intervals that are kept to step back to.
const MOST_SAMPLES: usize = 300;

/// The shortest and the longest interval that can be asked for.
const DELAYS_S: std::ops::RangeInclusive<f64> = 0.2..=60.0;

/// A key as it is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Letter(char),
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
}

/// What the program has to do about a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action {
    Quit,
    /// From now on intervals are so long.
    SetInterval(Duration),
    /// The last seconds become a recording.
    Freeze,
}

/// An interval that is kept.
struct Sample {
    frame: Frame,
    every: Duration,
    /// When it ended, as it is shown.
    time: String,
}

/// How a view is sorted, once somebody has chosen.
#[derive(Clone, Copy)]
struct Sort {
    by: &'static str,
    is_reversed: bool,
}

/// What is being typed.
enum Prompt {
    Filter(String),
    Delay(String),
}

/// All that is shown.
pub struct Screen {
    samples: VecDeque<Sample>,
    /// The sums of all intervals, kept or not.
    since_start: Vec<Vcpu>,
    is_since_start: bool,
    /// How far the one that is shown lies behind the latest; `None` follows it.
    behind: Option<usize>,
    view: View,
    sorts: BTreeMap<&'static str, Sort>,
    /// Only this VM.
    vm: Option<String>,
    filter: String,
    prompt: Option<Prompt>,
    has_help: bool,
    selected: usize,
    every: Duration,
    message: String,
    /// Of the screen as it was drawn last.
    size: (usize, usize),
    is_ascii: bool,
}

impl Screen {
    /// An empty screen of intervals of that length, of all VMs or of the one that is observed; in ASCII alone where the terminal shows no more.
    pub fn new(every: Duration, is_of_one: bool, is_ascii: bool) -> Self {
        Self {
            samples: VecDeque::new(),
            since_start: Vec::new(),
            is_since_start: false,
            behind: None,
            view: if is_of_one { View::Vcpus } else { View::Vms },
            sorts: BTreeMap::new(),
            vm: None,
            filter: String::new(),
            prompt: None,
            has_help: false,
            selected: 0,
            every,
            message: String::new(),
            size: (80, 24),
            is_ascii,
        }
    }

    /// Adds an interval that ended at `time`. Where one is looked at, that one stays.
    pub fn push(&mut self, frame: Frame, time: String) {
        sum::add(&mut self.since_start, &frame.vcpus);
        self.samples.push_back(Sample { frame, every: self.every, time });
        if self.samples.len() > MOST_SAMPLES {
            self.samples.pop_front();
        }
        if let Some(behind) = &mut self.behind {
            *behind = (*behind + 1).min(self.samples.len() - 1);
        }
    }

    /// A word in the last line, until the next key.
    pub fn say(&mut self, message: &str) {
        message.clone_into(&mut self.message);
    }

    /// Whether an interval of an earlier time is looked at.
    fn is_paused(&self) -> bool {
        self.behind.is_some()
    }

    fn sample(&self) -> Option<&Sample> {
        let latest = self.samples.len().checked_sub(1)?;
        self.samples.get(latest.saturating_sub(self.behind.unwrap_or(0)))
    }

    /// Does what a key is for; what the program has to do about it is returned.
    pub fn key(&mut self, key: Key) -> Option<Action> {
        self.message.clear();
        if let Some(prompt) = self.prompt.take() {
            return self.typed(prompt, key);
        }
        if self.has_help {
            self.has_help = false;
            return (key == Key::Letter('q')).then_some(Action::Quit);
        }
        match key {
            Key::Letter('q') => return Some(Action::Quit),
            Key::Letter('?' | 'H') => self.has_help = true,
            Key::Letter(digit @ '1'..='4') => self.show(View::ALL[digit as usize - '1' as usize]),
            Key::Letter('<') => self.sort_beside(-1),
            Key::Letter('>') => self.sort_beside(1),
            Key::Letter('R') => {
                let sort = self.sort();
                self.sorts.insert(self.view.name(), Sort { is_reversed: !sort.is_reversed, ..sort });
            }
            Key::Letter('f') => return Some(Action::Freeze),
            Key::Letter('/') => self.prompt = Some(Prompt::Filter(self.filter.clone())),
            Key::Letter('d') => self.prompt = Some(Prompt::Delay(String::new())),
            Key::Letter('a') => self.is_since_start = !self.is_since_start,
            Key::Letter(' ') => self.behind = if self.is_paused() { None } else { Some(0) },
            Key::Left => self.step(1),
            Key::Right => self.step(-1),
            Key::Up | Key::Letter('k') => self.select(-1),
            Key::Down | Key::Letter('j') => self.select(1),
            Key::PageUp => self.select(-(self.rows_shown() as isize)),
            Key::PageDown => self.select(self.rows_shown() as isize),
            Key::Home => self.selected = 0,
            Key::End => self.selected = usize::MAX,
            Key::Enter => self.enter(),
            Key::Escape | Key::Backspace => self.leave(),
            Key::Letter(_) => "? lists the keys".clone_into(&mut self.message),
        }
        self.selected = self.selected.min(self.grid(self.size.0).rows.len().saturating_sub(1));
        None
    }

    /// What is typed ends with Enter; Escape takes it back.
    fn typed(&mut self, mut prompt: Prompt, key: Key) -> Option<Action> {
        let (Prompt::Filter(text) | Prompt::Delay(text)) = &mut prompt;
        match key {
            Key::Letter(letter) => text.push(letter),
            Key::Backspace => drop(text.pop()),
            Key::Escape => return None,
            Key::Enter => {
                match prompt {
                    Prompt::Filter(text) => (self.filter, self.selected) = (text, 0),
                    Prompt::Delay(text) => return self.set_interval(&text),
                }
                return None;
            }
            _ => {}
        }
        self.prompt = Some(prompt);
        None
    }

    fn set_interval(&mut self, text: &str) -> Option<Action> {
        match text.trim().parse::<f64>().ok().filter(|seconds| DELAYS_S.contains(seconds)) {
            Some(seconds) => {
                self.every = Duration::from_secs_f64(seconds);
                Some(Action::SetInterval(self.every))
            }
            None => {
                self.message = format!("an interval is {} to {} s", DELAYS_S.start(), DELAYS_S.end());
                None
            }
        }
    }

    fn show(&mut self, view: View) {
        (self.view, self.selected) = (view, 0);
    }

    /// From a VM to its vCPUs; the other views to those of the VM of the row.
    fn enter(&mut self) {
        let grid = self.grid(self.size.0);
        let Some(row) = grid.rows.get(self.selected) else { return };
        self.vm = Some(row.vm.clone());
        if self.view == View::Vms {
            self.show(View::Vcpus);
        }
    }

    /// Back: from the filter, from the VM, to the list of VMs.
    fn leave(&mut self) {
        if !self.filter.is_empty() {
            self.filter.clear();
        } else if self.vm.take().is_some() {
            self.show(View::Vms);
        } else {
            self.view = View::Vms;
        }
    }

    /// Goes so many intervals back; forward beyond the latest follows again.
    fn step(&mut self, back: isize) {
        let behind = self.behind.unwrap_or(0);
        self.behind = behind.checked_add_signed(back).map(|behind| behind.min(self.samples.len().saturating_sub(1)));
    }

    fn select(&mut self, by: isize) {
        self.selected = self.selected.saturating_add_signed(by);
    }

    fn sort(&self) -> Sort {
        let first = Sort { by: self.view.default_sort(), is_reversed: false };
        self.sorts.get(self.view.name()).copied().unwrap_or(first)
    }

    fn sort_beside(&mut self, by: isize) {
        let heads: Vec<&'static str> = self.grid(self.size.0).heads.iter().map(|head| head.text).collect();
        let now = self.sort();
        let at = heads.iter().position(|head| *head == now.by).unwrap_or(0);
        let next = at.saturating_add_signed(by).min(heads.len().saturating_sub(1));
        if let Some(head) = heads.get(next) {
            self.sorts.insert(self.view.name(), Sort { by: head, ..now });
        }
    }
}
