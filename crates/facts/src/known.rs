//! A number that may be given, assumed, read or measured never goes without its source.

/// A value, and where it comes from: `given`, a file, a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Known<T> {
    pub value: T,
    pub from: String,
}

impl<T> Known<T> {
    pub fn given(value: T) -> Self {
        Self { value, from: "given".to_owned() }
    }
}
