//! Live migrations that a recording holds: sessions of QEMU's machine protocol, and what was said before.
//!
//! ```text
//! source session: migrate .. MIGRATION_PASS .. query-migrate .. STOP .. completed    \
//! target session: migrate-incoming .. RESUME                                          >-- Migration, one for each run
//! prediction.json                                                                       said
//! heartbeat: what was seen of the guest's memory on both sides                          of the last migration that had begun by then
//! network: packets that went to the guest meanwhile     of the migration that began meanwhile
//! moved-memory: is it what it was?                      the same
//! text: virsh domjobinfo, info migrate             one more, of sums alone
//! text: vmstate_downtime of source and target      the sides of the migration during which they were printed, or of the one there is
//! ```
//! Events carry the time of QEMU's own host, to the microsecond; answers the time at which they came. Fields are looked for by name:
//! what a QEMU does not tell is missing, never 0 (7.2 and 10.0 differ, qapi/migration.json).

mod dark;
mod found;
mod method;
pub mod pieces;
mod session;
mod train;

pub use dark::REPORTED_ERROR_NS;
pub use train::Train;

use base::heartbeat::Heartbeat;
use base::hibernation::Hibernation;
use base::method::Method;
use base::moved_memory::MovedMemory;
use base::prediction::Prediction;
use base::processes::Processes;
use base::qmp::ENDS;
use host::migrated::{Account, Side, account};
use serde_json::Value;

#[derive(Debug, Default)]
pub struct Migrations {
    /// In the order in which they began.
    pub list: Vec<Migration>,
    /// Jobs of libvirt that are no migration out of a host: guests that are saved, dumped or come in.
    pub jobs: Vec<Account>,
    /// What was said before.
    pub said: Option<Prediction>,
    /// Why a guest cannot be migrated, by its QEMU.
    pub blocked: Vec<String>,
    /// Guests that were saved to files and woken.
    pub hibernation: Option<Hibernation>,
    /// What was said before of these.
    pub said_of_files: Option<Prediction>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Migration {
    /// When the source was told to, CLOCK_REALTIME.
    pub began_ns: u64,
    pub began: Began,
    /// No event told of passes: they began somewhere between two answers, the second of which is taken.
    pub passes_are_polled: bool,
    /// The guest's CPUs are emulated, or not, as far as its QEMU was asked.
    pub is_emulated: Option<bool>,
    /// How its memory went over, by what the source was told; `None` where sums alone are known.
    pub method: Option<Method>,
    /// How long the guest may be dark for what is left, as the source was told last: its `downtime-limit`.
    pub downtime_limit_ns: Option<u64>,
    /// How much may be sent in a second, as the source was told last: its `max-bandwidth`.
    pub max_bytes_per_s: Option<u64>,
    /// Where its memory went: the `uri` of `migrate`.
    pub uri: Option<String>,
    /// What must be alike on both sides and was told to one of them alone, by its name, and whether that was the source.
    pub one_sided: Vec<(String, bool)>,
    /// When each pass began, by its number, from 1.
    pub passes: Vec<(u64, u64)>,
    /// When the source stopped the guest.
    pub stopped_ns: Option<u64>,
    /// When it was held between that and the switch-over, and until when.
    pub held_ns: Option<(u64, u64)>,
    /// Whether the source runs the guest after all was over, if it was asked.
    pub runs_on_source: Option<bool>,
    /// When the target let it run.
    pub resumed_ns: Option<u64>,
    /// How it ended and when: `completed`, `failed`, `cancelled`.
    pub ended: Option<(u64, String)>,
    /// What the source answered meanwhile, and when.
    pub polls: Vec<(u64, Poll)>,
    /// Passes, where sums alone are known, the final one counted.
    pub counted_passes: Option<u64>,
    /// What else its text says of it.
    pub notes: Vec<String>,
    /// Who printed these sums; `None` for one whose session was recorded.
    pub by: Option<account::By>,
    /// When the guest itself stopped and went on, seen from outside.
    pub heartbeat: Option<Heartbeat>,
    /// What packets to the guest saw meanwhile.
    pub train: Option<Train>,
    /// How long all vCPUs of the guest waited for pages at the same time after it had switched to post-copy, as the target counts it.
    pub blocktime_ms: Option<u64>,
    /// Whether the guest's memory on the target is what it was.
    pub memory: Option<MovedMemory>,
    /// What the operating system told of both sides meanwhile.
    pub processes: Option<Processes>,
    pub source: Option<Side>,
    pub target: Option<Side>,
    /// What the guest counted its work with, on the source and then on the target.
    pub counted: [Vec<Counted>; 2],
    /// The machines that its source and its target were recorded on.
    pub machines: [Option<String>; 2],
    /// By how much the clocks of these two may differ, beyond what a recording of one machine knows.
    pub clocks: Clocks,
}

/// A word of the guest's memory with which it counts its work, modulo 2^32.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// CLOCK_REALTIME when it was read.
    pub at_ns: u64,
    pub address: String,
    pub count: u32,
}

/// By how much the clocks of source and target may differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Clocks {
    #[default]
    One,
    /// Of two hosts, by what the kernels of both say of their distance from UTC.
    Within(u64),
    /// Of two hosts, and nobody said.
    Assumed,
}

/// How it is known when a migration began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Began {
    /// The command was recorded, or QEMU told of it by an event.
    #[default]
    Told,
    /// Out of how long it had gone on when QEMU was asked, with this error.
    Counted {
        /// At most.
        error_ns: u64,
    },
    /// It was under way when it was first heard of: `began_ns` is when that was.
    Before,
}

/// An answer to `query-migrate`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Poll {
    pub error: Option<String>,
    /// As QEMU counts it.
    pub total_ms: Option<u64>,
    /// As QEMU counts it.
    pub downtime_ms: Option<u64>,
    /// Sent until then.
    pub transferred_bytes: Option<u64>,
    pub zero_pages: Option<u64>,
    pub normal_pages: Option<u64>,
    /// Still to be sent.
    pub remaining_bytes: Option<u64>,
    pub page_bytes: Option<u64>,
    /// How much of its time is taken from the guest, in percent.
    pub throttle_percent: Option<u64>,
    /// Pages that the target asked for after the switch to post-copy.
    pub requested_pages: Option<u64>,
    /// All of the guest's memory.
    pub total_bytes: Option<u64>,
    /// Still to be sent of disks.
    pub disk_remaining_bytes: Option<u64>,
    /// Pages that the guest dirtied in a second, or bytes, by who counts so.
    pub dirty_pages_per_s: Option<u64>,
    pub dirty_bytes_per_s: Option<f64>,
    /// Sent in a second.
    pub sent_bytes_per_s: Option<f64>,
}

impl Poll {
    pub(super) fn of(answer: &Value) -> Self {
        let ram = &answer["ram"];
        Self {
            error: answer["error-desc"].as_str().map(str::to_owned),
            total_ms: answer["total-time"].as_u64(),
            downtime_ms: answer["downtime"].as_u64(),
            transferred_bytes: ram["transferred"].as_u64(),
            zero_pages: ram["duplicate"].as_u64(),
            normal_pages: ram["normal"].as_u64(),
            remaining_bytes: ram["remaining"].as_u64(),
            page_bytes: ram["page-size"].as_u64(),
            throttle_percent: answer["cpu-throttle-percentage"].as_u64(),
            requested_pages: ram["postcopy-requests"].as_u64(),
            ..Self::default()
        }
    }
}

impl Migration {
    /// One of which sums alone are known.
    fn of_account(account: Account) -> Self {
        let poll = Poll {
            error: account.error,
            total_ms: account.total_ms,
            downtime_ms: account.downtime_ms,
            transferred_bytes: account.transferred_bytes,
            zero_pages: account.zero_pages,
            normal_pages: account.normal_pages,
            remaining_bytes: account.remaining_bytes,
            page_bytes: account.page_bytes,
            throttle_percent: account.throttle_percent,
            total_bytes: account.total_bytes,
            disk_remaining_bytes: account.disk_remaining_bytes,
            dirty_pages_per_s: account.dirty_pages_per_s,
            dirty_bytes_per_s: account.dirty_bytes_per_s,
            sent_bytes_per_s: account.sent_bytes_per_s,
            ..Poll::default()
        };
        let has_ended = is_over(&account.status);
        Self {
            polls: vec![(0, poll)],
            ended: has_ended.then_some((0, account.status)),
            counted_passes: account.passes,
            notes: account.notes,
            by: Some(account.by),
            ..Self::default()
        }
    }

    /// Whether a side of it may have been printed at that time: what has no times was printed by hand, afterwards.
    fn was_at(&self, at_ns: u64) -> bool {
        let end_ns = self.ended.as_ref().map_or(u64::MAX, |(end_ns, _)| end_ns.saturating_add(CLOCKS_NS));
        self.by.is_some() || (self.began_ns.saturating_sub(CLOCKS_NS)..=end_ns).contains(&at_ns)
    }

    /// From the command until the guest ran on the target; after post-copy until its last page was there.
    pub fn total_ns(&self) -> Option<u64> {
        let resumed_ns = self.resumed_ns.filter(|_| self.began != Began::Before)?;
        let came_ns = self.ended.as_ref().filter(|_| self.method == Some(Method::Postcopy)).map(|(at_ns, _)| *at_ns);
        came_ns.map_or(resumed_ns, |came_ns| came_ns.max(resumed_ns)).checked_sub(self.began_ns)
    }

    /// The last answer that has something.
    pub fn last<T>(&self, of: impl Fn(&Poll) -> Option<T>) -> Option<T> {
        self.polls.iter().rev().find_map(|(_, poll)| of(poll))
    }

    /// The first answer that came at `at_ns` or later.
    pub fn poll_at(&self, at_ns: u64) -> Option<&Poll> {
        let place = self.polls.partition_point(|(came_ns, _)| *came_ns < at_ns);
        self.polls.get(place).map(|(_, poll)| poll)
    }

    /// The answers that came from then until then, with their times.
    pub fn polls_in(&self, from_ns: u64, until_ns: u64) -> &[(u64, Poll)] {
        let place = |at_ns: u64| self.polls.partition_point(|(came_ns, _)| *came_ns < at_ns);
        let from = place(from_ns);
        &self.polls[from..place(until_ns).max(from)]
    }

    /// Whether the guest was moved.
    pub fn is_completed(&self) -> bool {
        self.ended.as_ref().is_some_and(|(_, how)| how == "completed")
    }
}

/// Whether a migration of that status goes on no more; one of post-copy that lost its other side waits to be recovered.
fn is_over(status: &str) -> bool {
    ENDS.contains(&status) || status == "postcopy-paused"
}

/// Hosts that keep time by NTP differ by less.
pub const CLOCKS_NS: u64 = 100_000_000;
