//! What the vCPUs of a host do right now: one interval after the other, as a block of text or on a screen.
//!
//! ```text
//! fold, in the kernel --read, read, ..--> Observer --> Frame: the difference of two readings --> text
//! /proc alone, where that is not allowed ---^                                              \---> Screen --lines--> terminal
//! a recording --window, window, ..--> Replay --^
//! ```
//! Nothing is recorded and nothing is changed; missing is missing, and never 0.

mod columns;
mod grid;
mod head;
mod observe;
mod proc;
mod processes;
mod reasons;
mod replay;
mod screen;
mod table;
#[cfg(feature = "terminal")]
mod terminal;

pub use observe::{Frame, Observer, Options};
pub use replay::Replay;
pub use screen::{Action, Key, Line, Screen, Style};
pub use table::text;
#[cfg(feature = "terminal")]
pub use terminal::{Shown, show};
