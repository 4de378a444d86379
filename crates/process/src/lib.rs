//! How a command behaves as a process: which status it ends with and what it says then, what Ctrl-C does, how files appear whole or not at
//! all, and the lines and bars that tell how far it is.

pub mod exit;
pub mod interrupt;
mod lines;
mod progress;
mod staging;

pub use lines::Lines;
pub use progress::Progress;
pub use staging::Staging;
