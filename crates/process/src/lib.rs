//! How a command behaves as a process: which status it ends with and what it says then, what Ctrl-C does, how files appear whole or not at
//! all, the lines and bars that tell how far it is, and how wide its page is.

pub mod carry;
pub mod exit;
pub mod interrupt;
mod lines;
mod page;
mod progress;
mod staging;

pub use lines::Lines;
pub use page::PageOptions;
pub use progress::Progress;
pub use staging::Staging;
