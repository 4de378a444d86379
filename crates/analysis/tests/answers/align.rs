//! Are guests' traces put on the right place of the time line below, within the error that is stated?

mod counters;
mod generated;
mod hull;
mod hypercalls;
mod interrupts;
mod linux;
mod names;
mod options;
mod registers;
mod stages;
