//! One value as one line of JSON: the small files of a recording.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Reads a file of at most so many bytes; a longer one is cut, and so is none.
pub(crate) fn read<Value: DeserializeOwned>(input: impl Read, most_bytes: u64) -> Result<Value> {
    Ok(serde_json::from_reader(input.take(most_bytes))?)
}

/// Reads a file whose value names this schema.
pub(crate) fn read_as<Value: DeserializeOwned>(
    path: &Path,
    most_bytes: u64,
    schema: &str,
    of: impl Fn(&Value) -> &str,
) -> Result<Value> {
    let value: Value = read(crate::files::open(path)?, most_bytes)?;
    if of(&value) == schema {
        return Ok(value);
    }
    let reason = format!("its schema is `{}`; this version reads `{schema}`", of(&value));
    Err(Error::new(ErrorKind::InvalidData, reason))
}

/// Gives a type that names its schema `read` and `write`, with the `SCHEMA` and `MOST_BYTES` of its module.
macro_rules! read_and_write {
    ($kind:ident) => {
        impl $kind {
            /// Reads a file.
            ///
            /// # Errors
            /// If it cannot be read, or is none.
            pub fn read(path: &std::path::Path) -> std::io::Result<Self> {
                $crate::json_line::read_as(path, MOST_BYTES, SCHEMA, |read: &Self| &read.schema)
            }

            /// Writes the file.
            ///
            /// # Errors
            /// If the operating system refuses.
            pub fn write(&self, path: &std::path::Path) -> std::io::Result<()> {
                $crate::json_line::write(self, path)
            }
        }
    };
}
pub(crate) use read_and_write;

/// Writes the file, and makes the directory that it lies in.
pub(crate) fn write(value: &impl Serialize, path: &Path) -> Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    std::fs::write(path, text)
}
