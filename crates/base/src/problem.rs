//! What was wrong with the input, where, and how much of it was passed over?
//!
//! Damage is never fatal and never silent: a reader notes a [`Problem`] and goes on. Equal problems are counted
//! together, so that a file with a million bad pages gives one line and a count.

use serde::Serialize;

/// One kind of damage at one place, or at many places counted together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file as the user named it, with the part inside it where that helps.
    pub file: String,
    /// Byte offset in the file of the first occurrence, where one is known.
    pub offset: Option<u64>,
    /// What should have been there.
    pub expected: String,
    /// What was there.
    pub found: String,
    /// Bytes that could not be read because of it, over all occurrences.
    pub bytes_skipped: u64,
    /// How often; 0 for what the file does not say or holds besides, and damages nothing.
    pub count: u64,
    /// The same as one sentence for people.
    pub text: String,
}

impl Problem {
    /// A problem seen once.
    pub fn at(
        file: impl Into<String>,
        offset: impl Into<Option<u64>>,
        expected: impl Into<String>,
        found: impl Into<String>,
        bytes_skipped: u64,
        text: impl Into<String>,
    ) -> Self {
        Self {
            file: file.into(),
            offset: offset.into(),
            expected: expected.into(),
            found: found.into(),
            bytes_skipped,
            count: 1,
            text: text.into(),
        }
    }

    /// What people should know of a file that is not damaged.
    pub fn remark(
        file: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self { count: 0, ..Self::at(file, None, expected, found, 0, text) }
    }
}

/// Problems, equal ones counted together, with a cap on how many different ones are kept.
#[derive(Debug, Clone, Default)]
pub struct Problems {
    list: Vec<Problem>,
    beyond_cap: u64,
}

/// How many different problems are kept; more are only counted. A person reads the first dozen.
const CAP: usize = 200;

impl Problems {
    /// Notes one problem. It joins an earlier one of the same file that expected the same thing.
    pub fn note(&mut self, problem: Problem) {
        let same = self.list.iter().position(|p| p.file == problem.file && p.expected == problem.expected);
        match same {
            Some(index) => {
                // Sizes can be claims of a damaged file, so their sum may be absurd.
                let known = &mut self.list[index];
                known.count = known.count.saturating_add(problem.count);
                known.bytes_skipped = known.bytes_skipped.saturating_add(problem.bytes_skipped);
            }
            None if self.list.len() < CAP => self.list.push(problem),
            None => self.beyond_cap = self.beyond_cap.saturating_add(problem.count),
        }
    }

    /// Notes all of `others`.
    pub fn extend(&mut self, others: impl IntoIterator<Item = Problem>) {
        for problem in others {
            self.note(problem);
        }
    }

    /// The kept ones, in the order in which they were first met.
    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    /// How many occurrences were not kept because too many different problems came before them.
    pub fn beyond_cap(&self) -> u64 {
        self.beyond_cap
    }

    /// True if nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_problems_are_one_line_with_a_count() {
        let mut problems = Problems::default();
        for offset in [4096, 8192] {
            problems.note(Problem::at("a.dat", offset, "a page of 4,096 bytes", "17 bytes", 17, "short page"));
        }
        assert_eq!(problems.list().len(), 1);
        assert_eq!((problems.list()[0].count, problems.list()[0].bytes_skipped), (2, 34));
        assert_eq!(problems.list()[0].offset, Some(4096), "the first place is kept");
    }

    #[test]
    fn different_problems_are_capped_and_the_rest_counted() {
        let mut problems = Problems::default();
        for n in 0..CAP + 5 {
            problems.note(Problem::at(format!("f{n}"), None, "x", "y", 0, "z"));
        }
        assert_eq!((problems.list().len(), problems.beyond_cap()), (CAP, 5));
    }
}
