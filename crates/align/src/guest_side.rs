//! What does a guest's own trace tell that the machine below saw as well?
//!
//! In: the guest's trace. Out: for each of its CPUs its own `kvm_exit` and `kvm_entry` events, the entries of its
//! interrupt handlers, its timers, and its accesses to MSRs, in order. Each of those exits is one that the machine below reflected;
//! each of those entries is a request that the machine below saw; a handler follows an injection; an access that exits
//! follows what the machine below did for it.

use super::host_side::NO_RIP;
use super::interrupts::Handler;
use super::registers::Access;
use std::collections::BTreeMap;
use trace::facts::EventType;
use trace::replay::Listener;
use trace::{Event, Facts, Reading, Request, Wanted};
use walk::Axis;
use walk::Part;
use walk::events::exit_reason::reason;
use walk::events::reasons::{Isa, Reason};
use walk::events::roles::{self, ROWS, Role};
use walk::events::vendor;

/// One CPU of the guest.
#[derive(Debug, Clone, Default)]
pub struct GuestCpu {
    pub exits: Vec<OwnExit>,
    /// Beginnings of its interrupt handlers, in order.
    pub handlers: Vec<Handler>,
    /// Its accesses to MSRs, in order.
    pub accesses: Vec<Access>,
    /// Its timers that expired, in order.
    pub expiries: Vec<Expiry>,
}

/// Tasks woken by timers that wait for a CPU at the same time; more are not followed.
const MOST_WOKEN: usize = 64;

/// A timer of the guest's expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// When its handler was called.
    pub at: u64,
    /// When the first task ran that it woke, on its own CPU.
    pub ran: Option<u64>,
}

/// A `kvm_exit` of the guest's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnExit {
    /// When the guest wrote it down, on its own clock.
    pub at: u64,
    /// Why its own guest stopped.
    pub reason: Reason,
    pub rip: u64,
    /// The `kvm_entry` of the same CPU before it and after the exit before, if there is one.
    pub entered: Option<u64>,
}

/// Reads it from a trace, by CPU.
pub fn read(part: &Part, axis: &Axis, ignored: &[String]) -> BTreeMap<u32, GuestCpu> {
    let trace = part.trace.as_ref();
    const ROLES: [Role; 5] = [Role::Exit, Role::Entry, Role::HrtimerExpire, Role::Waking, Role::Switch];
    let rows = ROWS.iter().filter(|row| ROLES.contains(&row.role));
    let wanted = |row: &roles::Row| {
        let names = row.names.iter().map(|name| (*name).to_owned()).filter(|name| !ignored.contains(name));
        let fields = row.fields.iter().map(|names| names.iter().map(|name| (*name).to_owned()).collect()).collect();
        Wanted { names: names.collect(), fields }
    };
    let (roles, mut events): (Vec<Role>, Vec<Wanted>) = rows.map(|row| (row.role, wanted(row))).unzip();
    events.push(Wanted { names: handlers(trace.facts(), ignored), fields: vec![vec!["vector".to_owned()]] });
    events.extend(ACCESSES.map(|name| accesses(trace.facts(), name, ignored)));
    let request = Request { events };
    let mut keeper = Keeper {
        axis,
        roles,
        isa: vendor::of(trace),
        entered: BTreeMap::new(),
        woken: BTreeMap::new(),
        cpus: BTreeMap::new(),
    };
    trace::replay(trace, &Reading { request: &request, fitted: None }, &mut keeper);
    keeper.cpus
}

/// Events that begin a handler of a known vector: `irq_vectors:local_timer_entry`, LTTng's `x86_irq_vectors_..`.
fn handlers(facts: &Facts, ignored: &[String]) -> Vec<String> {
    let begins = |event: &&EventType| {
        (event.system == "irq_vectors" || event.name.starts_with("x86_irq_vectors_"))
            && event.name.ends_with("_entry")
            && event.fields.iter().any(|field| field.name == "vector")
            && !ignored.contains(&event.name)
    };
    facts.event_types.iter().filter(begins).map(|event| event.name.clone()).collect()
}

/// Events of accesses to MSRs; kinds behind the handlers'.
const ACCESSES: [&str; 2] = ["read_msr", "write_msr"];

/// `msr:read_msr` or `msr:write_msr`.
fn accesses(facts: &Facts, name: &str, ignored: &[String]) -> Wanted {
    let is = |event: &&EventType| event.system == "msr" && event.name == name;
    let is_there = facts.event_types.iter().any(|event| is(&event)) && !ignored.iter().any(|one| one == name);
    let names = if is_there { vec![name.to_owned()] } else { Vec::new() };
    Wanted { names, fields: ["msr", "val"].map(|field| vec![field.to_owned()]).to_vec() }
}

/// What the timers of one CPU did to its tasks.
#[derive(Default)]
struct Woken {
    /// The last one has woken nobody, and the CPU has not changed its task since.
    wakes: bool,
    /// Tasks that timers woke and that have not run, with the timer's place.
    tasks: Vec<(i32, usize)>,
}

impl Woken {
    /// An event of a timer, or of the task that it may have woken.
    fn event(&mut self, expiries: &mut Vec<Expiry>, role: Role, event: &Event<'_>, at: u64) {
        match role {
            Role::HrtimerExpire => {
                expiries.push(Expiry { at, ran: None });
                self.wakes = true;
            }
            Role::Waking if self.wakes && self.tasks.len() < MOST_WOKEN => {
                self.wakes = false;
                self.tasks.push((event.or_zero(roles::waking::TID) as i32, expiries.len() - 1));
            }
            Role::Switch => {
                self.wakes = false;
                let next = event.or_zero(roles::switch::NEXT_TID) as i32;
                if let Some(place) = self.tasks.iter().position(|(tid, _)| *tid == next) {
                    let (_, expiry) = self.tasks.swap_remove(place);
                    expiries[expiry].ran = Some(at);
                }
            }
            _ => {}
        }
    }
}

struct Keeper<'a> {
    axis: &'a Axis,
    roles: Vec<Role>,
    isa: Isa,
    entered: BTreeMap<u32, u64>,
    woken: BTreeMap<u32, Woken>,
    cpus: BTreeMap<u32, GuestCpu>,
}

impl Listener for Keeper<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if event.is_loss() {
            self.entered.remove(&event.cpu);
            self.woken.remove(&event.cpu);
            return;
        }
        let at = self.axis.of_event(event.time_ns);
        let Some(role) = self.roles.get(usize::from(event.kind)) else {
            let cpu = self.cpus.entry(event.cpu).or_default();
            match usize::from(event.kind) - self.roles.len() {
                0 => cpu.handlers.push(Handler { at, vector: event.or_zero(0) as u8 }),
                kind => {
                    let (msr, write, value) = (event.or_zero(0) as u32, kind == 2, event.or_zero(1));
                    cpu.accesses.push(Access { at, msr, write, value });
                }
            }
            return;
        };
        match role {
            Role::Entry => {
                self.entered.insert(event.cpu, at);
                return;
            }
            Role::HrtimerExpire | Role::Waking | Role::Switch => {
                let expiries = &mut self.cpus.entry(event.cpu).or_default().expiries;
                return self.woken.entry(event.cpu).or_default().event(expiries, *role, event, at);
            }
            _ => {}
        }
        let reason = reason(event, roles::exit::REASON, roles::exit::ISA, roles::exit::REASON_NAME, self.isa);
        let (rip, entered) = (event.get(roles::exit::RIP).unwrap_or(NO_RIP), self.entered.remove(&event.cpu));
        self.cpus.entry(event.cpu).or_default().exits.push(OwnExit { at, reason, rip, entered });
    }
}
