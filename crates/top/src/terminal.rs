//! The screen on a terminal: keys in, changed lines out. The terminal is put back however this ends: by `q`, a signal, an error, a panic, a
//! connection that is lost.

use super::observe::Frame;
use super::screen::{Action, Key, Line, Screen, Style};
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{
    Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{execute, queue};
use std::io::{self, Write, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often is looked whether a signal has come.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Of a terminal that says nothing of its size, as one behind a serial line or a program: that of the first ones.
const DEFAULT_SIZE: (u16, u16) = (80, 24);

/// What a screen shows, and has done.
pub trait Shown {
    /// The interval of that length that ends now, and its time in words; `None` where there are no more.
    ///
    /// # Errors
    /// If nothing can be observed.
    fn observe(&mut self, every: Duration) -> anyhow::Result<Option<(Frame, String)>>;

    /// Has the last seconds saved; what comes of it, in words.
    fn freeze(&mut self) -> String;

    /// What was saved or failed since it was asked last, in words.
    fn news(&mut self) -> Option<String>;
}

/// Shows intervals of `every`, until `q`, Ctrl-C or `stop`; where there are no more, those that were shown stay.
///
/// # Errors
/// If the terminal refuses, or nothing can be observed.
pub fn show(screen: &mut Screen, mut every: Duration, shown: &mut impl Shown, stop: &AtomicBool) -> anyhow::Result<()> {
    let _terminal = Guard::take()?;
    let (mut canvas, mut due) = (Canvas::default(), Instant::now() + every);
    canvas.draw(screen)?;
    while !stop.load(Ordering::Relaxed) {
        if Instant::now() >= due {
            match shown.observe(every)? {
                Some((frame, time)) => screen.push(frame, time),
                None => screen.say("the recording ends here: Left and Right go through it, q ends"),
            }
            // What a stopped program (SIGSTOP) missed is not caught up on.
            due = (due + every).max(Instant::now());
            canvas.draw(screen)?;
        }
        if let Some(news) = shown.news() {
            screen.say(&news);
            canvas.draw(screen)?;
        }
        if !poll(due.saturating_duration_since(Instant::now()).min(LOOK_EVERY))? {
            continue;
        }
        let action = match read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => match key_of(key) {
                Pressed::Key(key) => screen.key(key),
                Pressed::Interrupt => Some(Action::Quit),
                Pressed::Nothing => None,
            },
            _ => None,
        };
        match action {
            Some(Action::Quit) => break,
            Some(Action::SetInterval(asked)) => (every, due) = (asked, Instant::now() + asked),
            Some(Action::Freeze) => screen.say(&shown.freeze()),
            None => {}
        }
        canvas.draw(screen)?;
    }
    Ok(())
}

enum Pressed {
    Key(Key),
    Interrupt,
    Nothing,
}

fn key_of(key: KeyEvent) -> Pressed {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return if key.code == KeyCode::Char('c') { Pressed::Interrupt } else { Pressed::Nothing };
    }
    Pressed::Key(match key.code {
        KeyCode::Char(letter) => Key::Letter(letter),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return Pressed::Nothing,
    })
}

/// What is on the terminal: only lines that differ are canvas again, which readers of screens and slow connections thank us for.
#[derive(Default)]
struct Canvas {
    size: (u16, u16),
    lines: Vec<Line>,
}

impl Canvas {
    fn draw(&mut self, screen: &mut Screen) -> io::Result<()> {
        let size = match size()? {
            (0, _) | (_, 0) => DEFAULT_SIZE,
            size => size,
        };
        let lines = screen.lines(size.0.into(), size.1.into());
        let mut out = stdout().lock();
        if size != self.size {
            queue!(out, Clear(ClearType::All))?;
            (self.size, self.lines) = (size, Vec::new());
        }
        for (at, line) in lines.iter().enumerate().filter(|(at, line)| self.lines.get(*at) != Some(line)) {
            let style = match line.style {
                Style::Plain => Attribute::Reset,
                Style::Reversed => Attribute::Reverse,
                Style::Bold => Attribute::Bold,
                Style::Dim => Attribute::Dim,
            };
            queue!(out, MoveTo(0, at as u16), SetAttribute(style), Print(&line.text), SetAttribute(Attribute::Reset))?;
            queue!(out, Clear(ClearType::UntilNewLine))?;
        }
        self.lines = lines;
        out.flush()
    }
}

/// The terminal while it is ours.
struct Guard;

impl Guard {
    fn take() -> io::Result<Self> {
        enable_raw_mode()?;
        let taken = Self;
        // The message of a panic would be lost with the screen that it is printed on.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        execute!(stdout(), EnterAlternateScreen, Hide, DisableLineWrap)?;
        Ok(taken)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        restore();
    }
}

/// A terminal that is gone cannot be put back, and need not be.
fn restore() {
    let _ = execute!(stdout(), EnableLineWrap, Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}
