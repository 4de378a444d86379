//! Do two sets of measurements rank differently, whatever their distribution? Mann-Whitney U.
//!
//! ```text
//! before   7 8 9            U = pairs in which the value before is the larger one, ties count half
//! after          11 12      0 of 6 here: every value after is larger than every value before
//! ```
//! p is the share of all ways to deal the same values into two sets that look at least as lopsided. It is counted where one
//! set is small and no values are tied; else the normal approximation with corrections for ties and continuity serves.
//!
//! Source: H. B. Mann, D. R. Whitney, "On a test of whether one of two random variables is stochastically larger than the
//! other", Annals of Mathematical Statistics 18 (1947); for ties M. Hollander, D. A. Wolfe, "Nonparametric Statistical
//! Methods", 4.1. The complementary error function: Abramowitz and Stegun 7.1.26, off by less than 2e-7.

/// One set of so few is counted exactly,
const FEW: usize = 8;
/// if both together are no more than these.
const TOGETHER: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranks {
    /// Pairs in which the value before is larger.
    pub u: f64,
    /// Probability of ranks as lopsided as these if nothing changed, to either side.
    pub p: f64,
}

/// Compares the ranks of two sets; `None` if one of them is empty.
pub fn mann_whitney(before: &[f64], after: &[f64]) -> Option<Ranks> {
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let larger = |a: f64, b: f64| f64::midpoint(f64::from(u8::from(a > b)), f64::from(u8::from(a >= b)));
    let u: f64 = before.iter().map(|a| after.iter().map(|b| larger(*a, *b)).sum::<f64>()).sum();
    let (n1, n2) = (before.len(), after.len());
    let most = u.max((n1 * n2) as f64 - u);
    let ties = ties(before, after);
    let exact = ties == 0.0 && n1.min(n2) <= FEW && n1 + n2 <= TOGETHER;
    let p = if exact { 2.0 * counted(n1, n2, most as usize) } else { approximated(n1 as f64, n2 as f64, most, ties) };
    Some(Ranks { u, p: p.min(1.0) })
}

/// The sum of t^3 - t over groups of t equal values.
fn ties(before: &[f64], after: &[f64]) -> f64 {
    let mut all = [before, after].concat();
    all.sort_by(f64::total_cmp);
    all.chunk_by(|a, b| a == b).map(|group| (group.len() as f64).powi(3) - group.len() as f64).sum()
}

/// The share of ways to deal n1 + n2 different values that give U of `least` or more.
fn counted(n1: usize, n2: usize, least: usize) -> f64 {
    let (few, many) = (n1.min(n2), n1.max(n2));
    // ways[k][u]: ways in which k of the values dealt so far are of the smaller set, with that U. The value of rank r,
    // if it is the k-th of the smaller set, stands above r - k of the other.
    let mut ways = vec![vec![0.0; few * many + 1]; few + 1];
    ways[0][0] = 1.0;
    for rank in 0..few + many {
        for k in (1..=few.min(rank + 1)).rev() {
            let above = rank + 1 - k;
            if above > many {
                continue;
            }
            for u in (above..=few * many).rev() {
                ways[k][u] += ways[k - 1][u - above];
            }
        }
    }
    let all: f64 = ways[few].iter().sum();
    ways[few][least.min(few * many)..].iter().sum::<f64>() / all
}

fn approximated(n1: f64, n2: f64, most: f64, ties: f64) -> f64 {
    let n = n1 + n2;
    let variance = n1 * n2 / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    erfc((most - n1 * n2 / 2.0 - 0.5) / variance.sqrt() / std::f64::consts::SQRT_2)
}

/// 1 - erf(x).
/// The complementary error function.
pub fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let terms = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    terms.into_iter().fold(0.0, |sum, term| (sum + term) * t) * (-x * x).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scipy_says_the_same() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ranks/scipy.json");
        let scipy: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let cases = scipy["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 13);
        for case in cases {
            let values = |side: &str| -> Vec<f64> {
                case[side].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
            };
            let ours = mann_whitney(&values("before"), &values("after")).unwrap();
            assert_eq!(ours.u, case["u"].as_f64().unwrap(), "{case}");
            assert!((ours.p - case["p"].as_f64().unwrap()).abs() < 1e-6, "{}: {case}", ours.p);
        }
    }

    #[test]
    fn nothing_has_no_ranks_and_equal_values_no_difference() {
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert_eq!(mann_whitney(&[7.0; 5], &[7.0; 5]).unwrap().p, 1.0);
    }
}
