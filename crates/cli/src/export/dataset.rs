//! `--dataset`: recordings are added to one data set, which only the full build can write.

use process::exit::WrongUse;

/// Refuses, where this build has no Parquet, and places that only Python reaches.
pub(super) fn check(place: &std::path::Path) -> Result<(), WrongUse> {
    super::columns::check()?;
    match place.to_str() {
        Some(url) if is_url(url) => Err(WrongUse(format!(
            "--dataset {url}: this program writes to directories of this machine; for other stores there is Python: \
             kvmscope.fleet.analyse([RECORDING, ..], \"{url}\")"
        ))),
        _ => Ok(()),
    }
}

fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
    })
}

#[cfg(feature = "full")]
pub(super) use full::Adding;
#[cfg(not(feature = "full"))]
pub(super) use slim::Adding;

#[cfg(feature = "full")]
mod full {
    use analysis::{Case, Given};
    use anyhow::anyhow;
    use base::number::many;
    use base::plain::plain;
    use base::recording::Recording;
    use fleet::{Local, Outcome};
    use process::Progress;
    use process::exit::{WrongUse, complain, print};
    use process::interrupt::Interrupt;
    use std::path::Path;

    /// A data set that recordings are added to, and what was done so far.
    pub(crate) struct Adding<'a> {
        local: Local,
        interrupt: &'a Interrupt,
        force: bool,
        added: u64,
        there: u64,
    }

    impl<'a> Adding<'a> {
        /// To the data set in `place`; with `force` recordings that are there are written once more.
        pub(crate) fn to(place: &Path, force: bool, interrupt: &'a Interrupt) -> anyhow::Result<Self> {
            let local = Local::create(place).map_err(|error| match error {
                fleet::Error::NoDataset(why) => anyhow::Error::new(WrongUse(why)),
                other => other.into(),
            })?;
            Ok(Self { local, interrupt, force, added: 0, there: 0 })
        }

        /// Adds one, called `source` by the user; nothing is analysed where it is there already.
        pub(crate) fn add(
            &mut self,
            source: &str,
            recording: Recording,
            given: &Given,
            hear: &Progress,
        ) -> anyhow::Result<()> {
            let title = recording.title();
            let (id, digest) = fleet::identity(&recording, given)?;
            if self.local.has(&id) && !self.force {
                self.there += 1;
                print(&plain(&format!("{title}: already there as recording {} of host {}", id.recording, id.host)))?;
                return Ok(());
            }
            let case = Case::new(analysis::open(recording)?, given.clone()).with_progress(hear.hear());
            let added = fleet::added(&case, &digest);
            hear.finish();
            let added = added?;
            added.failed.iter().for_each(|failed| complain(&anyhow!("{title}: {failed}")));
            let outcome = self.interrupt.whole(|| self.local.add(&added, source))?;
            let how = if outcome == Outcome::Added { "added" } else { "replaced" };
            self.added += 1;
            print(&plain(&format!("{title}: {how} as recording {} of host {}", id.recording, id.host)))?;
            Ok(())
        }

        /// Keeps why a recording is not there.
        pub(crate) fn fail(&self, source: &str, error: &anyhow::Error) -> anyhow::Result<()> {
            Ok(self.local.fail(source, &error.to_string())?)
        }

        pub(crate) fn finish(&self, place: &Path, failed: u64) -> std::io::Result<()> {
            let failed = if failed == 0 { String::new() } else { format!(", {failed} not: table fleet.failures") };
            let added = many(self.added, "recording");
            print(&plain(&format!("{}: {added} added, {} already there{failed}", place.display(), self.there)))
        }
    }
}

#[cfg(not(feature = "full"))]
mod slim {
    use analysis::Given;
    use base::recording::Recording;
    use process::Progress;
    use process::interrupt::Interrupt;
    use std::convert::Infallible;
    use std::marker::PhantomData;
    use std::path::Path;

    /// There is none in this build: [`check`](super::check) refuses.
    pub(crate) struct Adding<'a>(Infallible, PhantomData<&'a Interrupt>);

    impl<'a> Adding<'a> {
        pub(crate) fn to(place: &Path, _: bool, _: &'a Interrupt) -> anyhow::Result<Self> {
            super::check(place)?;
            anyhow::bail!("{}: this build writes no data sets", place.display())
        }

        pub(crate) fn add(&mut self, _: &str, _: Recording, _: &Given, _: &Progress) -> anyhow::Result<()> {
            match self.0 {}
        }

        pub(crate) fn fail(&self, _: &str, _: &anyhow::Error) -> anyhow::Result<()> {
            match self.0 {}
        }

        pub(crate) fn finish(&self, _: &Path, _: u64) -> std::io::Result<()> {
            match self.0 {}
        }
    }
}
