//! The answers to all questions, whose tables are exported.

use crate::exit::complain;
use crate::progress::Progress;
use analysis::{Ask, Input, Options, QUESTIONS};
use anyhow::anyhow;
use base::Section;

/// Asks every question; one that fails is said on stderr and does not cost the others.
pub fn answers(input: &Input, options: &Options, progress: bool) -> anyhow::Result<Vec<Section>> {
    let mut progress = Progress::new(progress);
    let (mut sections, mut failed) = (Vec::new(), Vec::new());
    for question in QUESTIONS {
        let mut hear = |done, all| progress.at(done, all);
        match (question.answer)(&mut Ask { input, options, progress: &mut hear }) {
            Ok(answer) => sections.extend(answer.map(|answer| answer.section)),
            Err(error) => failed.push(anyhow!("{error}")),
        }
    }
    drop(progress);
    if sections.is_empty() {
        let nothing = || anyhow!("the recording has no data for any question");
        return Err(failed.into_iter().next().unwrap_or_else(nothing));
    }
    failed.iter().for_each(complain);
    Ok(sections)
}
