//! A migration alone: watched without a trace of this host, which needs neither root nor tracefs.

use super::Record;
use super::until::Until;
use base::Utc;
use base::recording::{Live, Moment};
use process::exit::{Exit, WrongUse};
use process::interrupt::{Interrupt, remove};
use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

impl Record {
    pub(super) fn run_untraced(&self) -> anyhow::Result<Exit> {
        let now = Utc::of(SystemTime::now());
        let destination = self.destination.of("record", now)?;
        let status = super::Status::new(self.quiet, false);
        let interrupt = Interrupt::watch()?;
        let mut live = interrupt.making(
            || Live::begin(&destination, self.manifest(now)),
            |live| {
                let root = live.root().to_owned();
                move || remove(&root)
            },
        )?;
        let machine = self.machine.id.as_str();
        self.beside.describe().into_iter().for_each(|what| status.say(what));
        let before = self.beside.before(live.root(), machine);
        let asked = interrupt.hold();
        live.note_clocks(lab::clocks::pair(machine, Moment::Begin));
        let begun = before.and_then(|before| match self.beside.start_untraced(live.root(), machine) {
            Ok(watching) => Ok((before, watching)),
            Err(error) => Err(before.stopped(error)),
        });
        let (before, watching) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                live.abandon()?;
                return Err(error.into());
            }
        };
        if asked.load(Ordering::Relaxed) {
            watching.end();
            before.end();
            live.abandon()?;
            return Ok(Exit::Interrupted);
        }
        live.with([watching.parts, before.parts].concat())?;
        let watched = watching.watched;
        status.say(&format!("watching from now on: {}; {}", watched.through.join(", "), self.ends()));
        let are_over = || self.ends_with_migration() && watched.are_over();
        let mut until = Until::new(self.seconds.map(Duration::from_nanos), asked);
        let mut recorders = watching.recorders;
        recorders.extend(before.recorders);
        let ended = until.run(&self.command).and_then(|()| {
            while !until.is_over()? && !are_over() {
                std::thread::sleep(super::POLL);
            }
            Ok(())
        });
        let (mut parts, mut failed) = (watching.kept, ended.err());
        for recorder in recorders {
            match recorder.stop() {
                Ok(made) => parts.extend(made),
                Err(error) => failed = failed.or(Some(error.into())),
            }
        }
        live.note_clocks(lab::clocks::pair(machine, Moment::End));
        let recording = match failed {
            None => live.finish(parts)?,
            Some(error) if error.is::<WrongUse>() => {
                live.abandon()?;
                return Err(error);
            }
            Some(error) => return self.ended_early(live, error),
        };
        let place = self.destination.finished(&recording, &interrupt)?;
        if !self.quiet {
            let seconds = until.elapsed().as_secs_f64();
            let mut out = std::io::stdout().lock();
            // The recording is there whether or not anybody reads this.
            let _ = writeln!(
                out,
                "watched for {seconds:.1} s into {0}\nexplain it with: kvmscope report {0}",
                place.display()
            );
        }
        Ok(until.status().map_or(Exit::Answered, Exit::Of))
    }
}
