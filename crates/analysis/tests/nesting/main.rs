//! Setup of machines: the bundled hosts, and the same with one file changed.

mod docs;
mod hosts;
mod price;
mod rules;
mod tree;
