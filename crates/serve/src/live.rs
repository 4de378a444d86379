//! A recording that is being made, as a stream of events: its last samples, each new one, and the end.
//!
//! ```text
//! event: recording   {"recording": id, "every_ns": ..}
//! event: sample      one of live.json; its id is the sample's number, so whoever comes back gets what is new
//! event: end         {"reason": "ended" | "silent"}
//! ```
//! The file is looked at as often as it is written: the recorder knows of no server.

use crate::folder::Folder;
use axum::response::sse::Event;
use base::gauges::{LIVE_FILE, Look};

use futures_util::stream::{Stream, unfold};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

/// The file is looked at twice for each time it is written, but not more or less often than this.
const LOOKS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

/// Samples of vCPUs or of a datapath: a stream passes on either.
type Gauges = base::gauges::Gauges<Look>;

/// What `live.json` of recordings holds, parsed once for all who watch: that of a host with a thousand VMs takes hundreds of
/// MB in memory, and a watcher that never reads keeps it.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    parsed: Mutex<HashMap<PathBuf, (SystemTime, Weak<Gauges>)>>,
}

impl Watched {
    /// What the file of the recording at `root` holds, and whether it is still written; `None` where there is none.
    pub(crate) fn read(&self, root: &Path) -> Option<(Arc<Gauges>, bool)> {
        let written = written(root)?;
        let age = SystemTime::now().duration_since(written).unwrap_or_default();
        // Held while a file is parsed, so that one is at a time.
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        parsed.retain(|_, (_, gauges)| gauges.strong_count() > 0);
        let known = parsed.get(root).filter(|(when, _)| *when == written).and_then(|(_, gauges)| gauges.upgrade());
        let gauges = match known {
            Some(gauges) => gauges,
            None => {
                let gauges = Arc::new(Gauges::read(root).ok()?);
                parsed.insert(root.to_owned(), (written, Arc::downgrade(&gauges)));
                gauges
            }
        };
        let live = gauges.is_live(age);
        Some((gauges, live))
    }
}

fn written(root: &Path) -> Option<SystemTime> {
    root.join(LIVE_FILE).metadata().ok()?.modified().ok()
}

/// The recording of the folder whose `live.json` was written last: its id and its directory.
pub(crate) fn latest(folder: &Folder) -> Option<(String, PathBuf)> {
    let found = folder.list().found.into_iter().filter_map(|found| {
        let root = found.recording.ok()?.root;
        Some((written(&root)?, found.id, root))
    });
    let (_, id, root) = found.max_by_key(|(written, ..)| *written)?;
    Some((id, root))
}

struct Watcher {
    root: PathBuf,
    watched: Arc<Watched>,
    /// What was read last, kept for others who read it.
    read: Option<Arc<Gauges>>,
    sent: Option<u64>,
    to_send: VecDeque<Said>,
    pause: Duration,
    looked: bool,
    /// The file was not there at the last look: a lab's directory is replaced by its whole recording at its end.
    missed: bool,
    over: bool,
}

enum Said {
    Recording(String),
    Sample(Arc<Gauges>, usize),
    End(&'static str),
}

/// What is said of the recording called `id` at `root`, from behind sample `sent` on.
pub(crate) fn events(
    id: &str,
    root: PathBuf,
    (watched, gauges): (Arc<Watched>, Arc<Gauges>),
    sent: Option<u64>,
) -> impl Stream<Item = Result<Event, Infallible>> + use<> {
    let (fastest, slowest) = LOOKS;
    let pause = Duration::from_nanos(gauges.every_ns / 2).clamp(fastest, slowest);
    let recording = serde_json::json!({ "recording": id, "every_ns": gauges.every_ns });
    let to_send = VecDeque::from([Said::Recording(recording.to_string())]);
    let watcher =
        Watcher { root, watched, read: Some(gauges), sent, to_send, pause, looked: false, missed: false, over: false };
    unfold(watcher, |mut watcher| async move {
        let said = watcher.next().await?;
        Some((Ok(event(said)), watcher))
    })
}

impl Watcher {
    async fn next(&mut self) -> Option<Said> {
        loop {
            if let Some(said) = self.to_send.pop_front() {
                return Some(said);
            }
            if self.over {
                return None;
            }
            if std::mem::replace(&mut self.looked, true) {
                tokio::time::sleep(self.pause).await;
            }
            let (root, watched) = (self.root.clone(), self.watched.clone());
            let read = tokio::task::spawn_blocking(move || watched.read(&root)).await;
            self.hear(read.ok().flatten());
        }
    }

    fn hear(&mut self, read: Option<(Arc<Gauges>, bool)>) {
        let missed_before = std::mem::replace(&mut self.missed, read.is_none());
        if read.is_none() && !missed_before {
            return;
        }
        let live = read.as_ref().is_some_and(|(_, live)| *live);
        self.read = read.map(|(gauges, _)| gauges);
        let ended = self.read.as_ref().is_some_and(|gauges| gauges.ended);
        if let Some(gauges) = &self.read {
            for (place, sample) in gauges.samples.iter().enumerate() {
                if self.sent.is_none_or(|sent| sample.number() > sent) {
                    self.sent = Some(sample.number());
                    self.to_send.push_back(Said::Sample(gauges.clone(), place));
                }
            }
        }
        if !live {
            self.to_send.push_back(Said::End(if ended { "ended" } else { "silent" }));
            self.over = true;
        }
    }
}

fn event(said: Said) -> Event {
    match said {
        Said::Recording(text) => Event::default().event("recording").data(text),
        Said::Sample(gauges, place) => {
            let sample = &gauges.samples[place];
            Event::default().event("sample").id(sample.number().to_string()).data(json(sample))
        }
        Said::End(reason) => Event::default().event("end").data(json(&serde_json::json!({ "reason": reason }))),
    }
}

/// A sample is numbers and names, which JSON has room for.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said until the end.
    async fn heard(root: &Path, sent: Option<u64>) -> Vec<String> {
        let to_send = VecDeque::new();
        let pause = Duration::from_millis(5);
        let (root, watched) = (root.to_owned(), Arc::<Watched>::default());
        let mut watcher =
            Watcher { root, watched, read: None, sent, to_send, pause, looked: false, missed: false, over: false };
        let mut all = Vec::new();
        while let Some(said) = watcher.next().await {
            all.push(match said {
                Said::Recording(text) => text,
                Said::Sample(gauges, place) => gauges.samples[place].number().to_string(),
                Said::End(reason) => reason.to_owned(),
            });
        }
        all
    }

    fn gauges(numbers: std::ops::Range<u64>, ended: bool) -> String {
        let sample = |number| {
            format!(
                r#"{{"number":{number},"from_ns":0,"to_ns":1,"seen_share":1,"events_per_second":1,"vcpus":0,
                    "shares":{{}},"vms":[],"lost_events":0,"bytes":0}}"#
            )
        };
        let samples: Vec<String> = numbers.map(sample).collect();
        let samples = samples.join(",");
        format!(r#"{{"schema":"kvmscope-live/1","every_ns":1000000,"ended":{ended},"samples":[{samples}]}}"#)
    }

    #[tokio::test]
    async fn each_sample_is_said_once_and_then_the_end() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join(LIVE_FILE);
        std::fs::write(&file, gauges(0..3, false)).unwrap();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            let beside = file.with_extension("new");
            std::fs::write(&beside, gauges(2..5, true)).unwrap();
            std::fs::rename(beside, file).unwrap();
        });
        assert_eq!(heard(place.path(), Some(0)).await, ["1", "2", "3", "4", "ended"]);
        writer.join().unwrap();
    }

    #[test]
    fn a_file_is_parsed_once_for_all_who_watch() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join(LIVE_FILE);
        let watched = Watched::default();
        let read = || watched.read(place.path()).unwrap().0;
        std::fs::write(&file, gauges(0..3, false)).unwrap();
        let (one, other) = (read(), read());
        assert!(Arc::ptr_eq(&one, &other));
        std::fs::write(&file, gauges(0..4, false)).unwrap();
        let later = SystemTime::now() + Duration::from_secs(2);
        std::fs::File::open(&file).unwrap().set_modified(later).unwrap();
        assert_eq!((one.samples.len(), read().samples.len()), (3, 4));
    }

    #[tokio::test]
    async fn a_file_that_is_being_replaced_is_looked_for_again() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().to_owned();
        let pause = Duration::from_millis(5);
        let (watched, to_send) = (Arc::<Watched>::default(), VecDeque::new());
        let mut watcher = Watcher {
            root: root.clone(),
            watched: watched.clone(),
            read: None,
            sent: Some(0),
            to_send,
            pause,
            looked: false,
            missed: false,
            over: false,
        };
        watcher.hear(None);
        assert!(!watcher.over && watcher.to_send.is_empty());
        std::fs::write(root.join(LIVE_FILE), gauges(0..2, true)).unwrap();
        watcher.hear(watched.read(&root));
        let said = watcher.to_send.make_contiguous();
        assert!(matches!(said, [Said::Sample(_, 1), Said::End("ended")]) && watcher.over);
    }

    #[tokio::test]
    async fn a_recorder_that_was_killed_falls_silent() {
        let place = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(place.path().join(LIVE_FILE)).unwrap();
        std::fs::write(place.path().join(LIVE_FILE), gauges(0..2, false)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
        assert_eq!(heard(place.path(), None).await, ["0", "1", "silent"]);
        std::fs::remove_file(place.path().join(LIVE_FILE)).unwrap();
        assert_eq!(heard(place.path(), None).await, ["silent"]);
    }
}
