//! A peer that does everything it can: each of the twelve rules has a test of its name, and a process of its own flips bytes.

mod monkey;
mod peer;
mod rules;
mod waiting;
mod window;
