//! What did somebody bring, and who reads which piece of it?
//!
//! In: a file of any kind, as people attach and paste it. Out: recordings whose parts have readers, and what nobody reads.
//!
//! ```text
//! file --normal--> lines --split--> pieces: traces, results, migrations, switches, a machine --recordings--> one for each run
//!                                   and what was typed, and the rest
//! ```
//! A file that is one piece as it stands is opened where it lies, however large. Anything else becomes private copies of its pieces,
//! each called by the file and its lines (`paste.txt:12-30`). Several pieces of one kind are several runs, in the order of the text:
//! two excerpts of traces have no clock in common.

mod commands;
mod excerpt;
mod file;
mod guest;
mod normal;
mod numbered;
mod origin;
mod printable;
mod recordings;
mod results;
mod signs;
mod split;
mod wrapped;

pub use file::{Error, Known, known, nothing_known, of_file};
pub use normal::{Line, Normal};
pub use origin::Origin;
pub use recordings::{Brought, open, parted, told};
pub use split::{Kind, Piece, Split, split};
