//! What names and ids of vCPU threads say, where nothing else tells whose they are.

/// A VMM creates the threads of its vCPUs one after the other, with few others between: the id of one that is further
/// from its predecessor's than this is no sign that they belong together.
const NEAR: i32 = 16;

/// The nearest VM must be nearer than the next by this factor, or the thread may be either's.
const CLEARLY: i32 = 4;

/// A thread's name without the vCPU's number, and that number.
///
/// QEMU names them `CPU 0/KVM` (accel/kvm/kvm-accel-ops.c, `-name debug-threads=on`), Firecracker `fc_vcpu 0`, Cloud
/// Hypervisor `vcpu0`, crosvm `crosvm_vcpu0`.
pub fn split(comm: &str) -> (String, Option<u32>) {
    if let Some((number, kind)) = comm.strip_prefix("CPU ").and_then(|rest| rest.split_once('/'))
        && let Some(number) = digits(number)
    {
        return (format!("CPU/{kind}"), Some(number));
    }
    let base = comm.trim_end_matches(|letter: char| letter.is_ascii_digit());
    match digits(&comm[base.len()..]) {
        Some(number) if base.trim_end().ends_with("vcpu") => (base.trim_end().to_owned(), Some(number)),
        _ => (comm.to_owned(), None),
    }
}

/// The number of the vCPU whose guest a thread of this name runs by translating its code: QEMU without KVM names them
/// `CPU 0/TCG` (accel/tcg/tcg-accel-ops-mttcg.c, QEMU 7.2).
pub fn translated(comm: &str) -> Option<u32> {
    comm.strip_prefix("CPU ")?.strip_suffix("/TCG").and_then(digits)
}

/// The number of the vCPU that a thread of this name runs with KVM.
pub fn of_kvm(comm: &str) -> Option<u32> {
    comm.strip_prefix("CPU ")?.strip_suffix("/KVM").and_then(digits)
}

fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A VM in the making.
struct Group {
    lowest: i32,
    last_tid: i32,
    last_number: u32,
}

/// Whether two of `threads` have the same vCPU number.
pub fn collide(threads: &[(i32, Option<u32>)]) -> bool {
    let mut numbers: Vec<u32> = threads.iter().filter_map(|(_, number)| *number).collect();
    numbers.sort_unstable();
    numbers.windows(2).any(|pair| pair[0] == pair[1])
}

/// The lowest thread of the VM of each of `threads` (id and vCPU number), which have one name and come in the order of
/// ids.
///
/// If all numbers differ, they are one VM. Else vCPUs of a VM are created in the order of their numbers: a thread joins the VM
/// whose last thread is near and has a lower number, unless another such VM is nearly as near; then, and without a number,
/// it is a VM of its own.
pub fn grouped(threads: &[(i32, Option<u32>)]) -> Vec<i32> {
    let all_known = threads.iter().all(|(_, number)| number.is_some());
    if let (true, false, Some((lowest, _))) = (all_known, collide(threads), threads.first()) {
        return vec![*lowest; threads.len()];
    }
    let mut groups: Vec<Group> = Vec::new();
    let mut reachable: Vec<usize> = Vec::new();
    let mut lowest = Vec::with_capacity(threads.len());
    for (tid, number) in threads {
        let joined = number.and_then(|number| {
            // Ids only grow: a group that is out of reach stays out of it, and so few are looked at.
            let distance = |at: &usize| tid.saturating_sub(groups[*at].last_tid);
            reachable.retain(|at| distance(at) <= NEAR * CLEARLY);
            let lower = reachable.iter().filter(|at| groups[**at].last_number < number);
            let mut near: Vec<(i32, usize)> = lower.map(|at| (distance(at), *at)).collect();
            near.sort_unstable();
            match near[..] {
                [(distance, at)] if distance <= NEAR => Some(at),
                [(distance, at), (next, _), ..] if distance <= NEAR && next >= CLEARLY.saturating_mul(distance) => {
                    Some(at)
                }
                _ => None,
            }
        });
        match (joined, number) {
            (Some(at), Some(number)) => {
                (groups[at].last_tid, groups[at].last_number) = (*tid, *number);
                lowest.push(groups[at].lowest);
            }
            // A thread without a number takes part in no VM but its own.
            (_, number) => {
                let last_number = number.unwrap_or(u32::MAX);
                reachable.push(groups.len());
                groups.push(Group { lowest: *tid, last_tid: *tid, last_number });
                lowest.push(*tid);
            }
        }
    }
    lowest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_numbers_of_vcpus() {
        let parts = |comm: &str| {
            let (base, number) = split(comm);
            format!("{base} {number:?}")
        };
        assert_eq!(parts("CPU 12/KVM"), "CPU/KVM Some(12)");
        assert_eq!(parts("fc_vcpu 3"), "fc_vcpu Some(3)");
        assert_eq!(parts("vcpu0"), "vcpu Some(0)");
        for other in ["qemu-system-x86", "worker7", "CPU x/KVM", "vcpu", "", "CPU /KVM", "vcpu99999999999"] {
            assert_eq!(parts(other), format!("{other} None"));
        }
        let numbers = ["CPU 3/TCG", "CPU 3/KVM", "CPU /TCG", "ALL CPUs/TCG"].map(translated);
        assert_eq!(numbers, [Some(3), None, None, None]);
    }

    fn groups(threads: &[(i32, u32)]) -> Vec<i32> {
        let threads: Vec<(i32, Option<u32>)> = threads.iter().map(|(tid, number)| (*tid, Some(*number))).collect();
        grouped(&threads)
    }

    #[test]
    fn threads_join_the_vm_that_they_were_created_with() {
        assert_eq!(groups(&[(100, 0), (101, 1), (900, 2)]), [100, 100, 100], "all numbers differ: one VM");
        assert_eq!(groups(&[(100, 0), (200, 0), (201, 1)]), [100, 200, 200]);
        assert_eq!(groups(&[(100, 0), (101, 1), (110, 0), (111, 1), (112, 2)]), [100, 100, 110, 110, 110]);
        assert_eq!(groups(&[(100, 0), (103, 3), (200, 0), (202, 2)]), [100, 100, 200, 200], "some never ran");
        assert_eq!(groups(&[(16336, 0), (16343, 0), (16344, 0)]), [16336, 16343, 16344]);
    }

    /// Each line of a text may name another thread. Looking at all VMs for each thread would take minutes here.
    #[test]
    fn threads_without_number_look_at_their_neighbours_alone() {
        let threads: Vec<(i32, Option<u32>)> = (0..300_000).map(|tid| (tid, Some(0))).collect();
        assert_eq!(grouped(&threads).len(), threads.len());
        let far_apart: Vec<(i32, Option<u32>)> = (0..300_000).map(|tid| (100 * tid, Some(tid as u32 % 2))).collect();
        assert_eq!(grouped(&far_apart).len(), far_apart.len());
    }

    #[test]
    fn a_thread_that_may_be_of_two_vms_is_a_vm_of_its_own() {
        assert_eq!(groups(&[(100, 0), (101, 0), (102, 1), (103, 1)]), [100, 101, 102, 103], "created at the same time");
        assert_eq!(groups(&[(100, 0), (200, 0), (900, 1)]), [100, 200, 900], "far from both");
        assert_eq!(grouped(&[(7, None), (8, None)]), [7, 8]);
        assert!(grouped(&[]).is_empty());
    }
}
