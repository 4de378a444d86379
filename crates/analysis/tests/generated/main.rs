//! Does every format give the answer that the generator knows to be true?

mod answer;
mod equal;
mod limits;
