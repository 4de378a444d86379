//! Is the memory of a guest that was moved what it was?

use super::rules::{Rule, Run};
use base::moved_memory::MovedMemory;
use base::number::{counted, thousands};
use base::{Evidence, Severity, Table, TableSpec, table};
use facts::migrations::Migration;
use facts::rule::Hit;

pub(super) const MEMORY: TableSpec = table! {
    migration.moved_memory version 1:
    "The memory of the guest of one run, once it was stopped on the target. Pages are of 4 KiB: `compared` were compared with the source's, \
     `foretold` with what the guest's program had written to them by then, `left_out` are written unpredictably; \
          `differing` are not what they should be.";
    key_u64("") run, count compared, count foretold, count left_out, count differing, text first_differing;
};

pub(super) const RULES: &[Rule] = &[Rule {
    id: "MIG-MEMORY",
    per: "run",
    looks_at: "Whether the guest's memory on the target is what it was on the source, page by page.",
    why: "Something that the guest wrote did not arrive: it goes on with damaged memory, whatever else the migration says. Emulation (TCG) before QEMU 9.0 loses writes to pages whose dirty bits were fetched for a whole block of memory at once.",
    fix: &["qemu-system-x86_64 --version   # before 9.0: an update, or KVM instead of TCG"],
    source: "cpu_physical_memory_sync_dirty_bitmap in include/exec/ram_addr.h, QEMU 7.2 and 9.0",
    ..Rule::checked_by(damaged)
}];

/// Pages that were held against something.
fn held(memory: &MovedMemory) -> u64 {
    memory.compared.saturating_add(memory.foretold)
}

fn damaged((run, migration, _): Run<'_>) -> Option<Hit> {
    let memory = migration.memory.as_ref().filter(|memory| memory.differing > 0)?;
    let title = format!(
        "The guest's memory is damaged: {} of {} are not what they should be",
        thousands(memory.differing),
        counted(held(memory), "page", "pages")
    );
    let seen =
        format!("the first lies at {}", memory.first_differing.first().map_or(String::new(), |at| format!("{at:#x}")));
    Some(Hit::new(format!("run {run}"), Severity::High, title).with(Evidence::in_table(seen, "migration.moved_memory")))
}

pub(super) fn table(migrations: &[Migration]) -> Table {
    let mut table = Table::new(&MEMORY);
    for (run, migration) in migrations.iter().enumerate() {
        let Some(memory) = &migration.memory else { continue };
        let first: Vec<String> = memory.first_differing.iter().map(|address| format!("{address:#x}")).collect();
        table.push(vec![
            (run as u64).into(),
            memory.compared.into(),
            memory.foretold.into(),
            memory.left_out.into(),
            memory.differing.into(),
            first.join(" ").into(),
        ]);
    }
    table
}

/// `All 16,386 pages of the guest's memory that were compared are what they should be.` Of all moves in one; `None` where one is not.
pub(super) fn sentence(migrations: &[Migration]) -> Option<String> {
    let memories: Vec<&MovedMemory> = migrations.iter().filter_map(|migration| migration.memory.as_ref()).collect();
    if memories.is_empty() || memories.iter().any(|memory| memory.differing > 0) {
        return None;
    }
    let pages = counted(memories.iter().fold(0, |sum: u64, memory| sum.saturating_add(held(memory))), "page", "pages");
    let of_runs = if memories.len() > 1 { format!(" in {} moves", memories.len()) } else { String::new() };
    Some(format!("All {pages} of the guest's memory that were compared{of_runs} are what they should be."))
}

#[cfg(test)]
mod tests {
    use super::super::waits::Splits;
    use super::*;

    #[test]
    fn memory_that_differs_is_found_with_its_first_page() {
        let moved = |addresses: &[u64]| {
            let mut memory = MovedMemory { compared: 16_000, foretold: 384, left_out: 2, ..MovedMemory::default() };
            addresses.iter().for_each(|address| memory.differs(*address));
            Migration { memory: Some(memory), ..Migration::default() }
        };
        let (good, bad) = (moved(&[]), moved(&[0x20_3000, 0x20_5000]));
        let splits = Splits::default();
        assert!(damaged((0, &good, &splits)).is_none());
        let said = "All 32,768 pages of the guest's memory that were compared in 2 moves are what they should be.";
        assert_eq!(sentence(&[good.clone(), good.clone()]).as_deref(), Some(said));
        assert_eq!(sentence(&[good.clone(), bad.clone()]), None);
        let hit = damaged((0, &bad, &splits)).unwrap();
        assert_eq!(hit.title, "The guest's memory is damaged: 2 of 16,384 pages are not what they should be");
        let rows = table(&[good, bad]).rows;
        assert_eq!(rows[1][4..], [2_u64.into(), "0x203000 0x205000".to_owned().into()]);
    }
}
