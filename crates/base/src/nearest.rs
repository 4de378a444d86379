//! A name that is not there, and the one that was probably meant.

/// Names longer than this are not compared: nobody types them, and a trace may hold any.
const LONGEST: usize = 64;

/// Names that are listed where none is near; more would hide the sentence before them.
const MOST_LISTED: usize = 16;

/// What a person can do about `asked`, which is none of `known`: the nearest one, or what there is.
pub fn instead<'a>(asked: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.into_iter().collect();
    known.sort_unstable();
    known.dedup();
    if let Some(near) = nearest(asked, known.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    let mut listed: Vec<String> = known.iter().take(MOST_LISTED).map(|&name| name.to_owned()).collect();
    match known.len() {
        0 => "none exist".to_owned(),
        1 => format!("there is {}", known[0]),
        all if all > listed.len() => {
            listed.push(format!("{} more", all - listed.len()));
            format!("there are {}", crate::number::list(&listed))
        }
        _ => format!("there are {}", crate::number::list(&listed)),
    }
}

/// The one of `known` that is a typing mistake away from `asked`: a third of its letters at most, case apart.
pub fn nearest<'a>(asked: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = asked.to_lowercase().chars().collect();
    if wanted.is_empty() || wanted.len() > LONGEST {
        return None;
    }
    let near = known.into_iter().filter(|name| name.len() <= LONGEST).filter_map(|name| {
        let letters: Vec<char> = name.to_lowercase().chars().collect();
        let distance = distance(&wanted, &letters);
        (distance <= wanted.len().max(letters.len()) / 3).then_some((distance, name))
    });
    near.min().map(|(_, name)| name)
}

/// Letters to insert, delete, replace or swap with their neighbour (optimal string alignment).
fn distance(one: &[char], other: &[char]) -> usize {
    let mut rows = vec![(0..=other.len()).collect::<Vec<usize>>()];
    for (i, letter) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, candidate) in other.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(letter != candidate);
            let mut least = replaced.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == other[j - 1] && one[i - 1] == *candidate {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_offered_or_what_there_is() {
        assert_eq!(instead("kvm_exti", ["kvm_entry", "kvm_exit"]), "did you mean `kvm_exit`?");
        assert_eq!(instead("x", ["kvm_entry", "kvm_exit"]), "there are kvm_entry and kvm_exit");
        assert_eq!(instead("x", [""; 0]), "none exist");
    }

    #[test]
    fn a_typing_mistake_is_near_and_another_name_is_not() {
        let known = ["kvm_entry", "kvm_exit", "sched_switch", "L1", "web"];
        for (asked, near) in
            [("kvm_exti", "kvm_exit"), ("KVM_EXIT", "kvm_exit"), ("sched_swich", "sched_switch"), ("wbe", "web")]
        {
            assert_eq!(nearest(asked, known), Some(near), "{asked}");
        }
        for asked in ["", "nosuch", "x", &"long".repeat(100)] {
            assert_eq!(nearest(asked, known), None, "{asked}");
        }
    }

    #[test]
    fn many_names_are_counted_and_not_all_listed() {
        let names: Vec<String> = (100..140).map(|number| format!("vm{number}")).collect();
        let said = instead("nosuch", names.iter().map(String::as_str));
        assert!(said.starts_with("there are vm100, vm101, ") && said.ends_with(" and 24 more"), "{said}");
    }
}
