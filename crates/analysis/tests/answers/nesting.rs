//! Setup of machines: the bundled hosts, and the same with one file changed.

mod docs;
mod hosts;
mod hygiene;
mod log;
mod price;
mod rules;
mod tree;
