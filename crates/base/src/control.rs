//! What a reader may set of an answer, for which nothing has to be read again.

use serde::Serialize;

/// One thing to set: a slider where all values are numbers, else a choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Control {
    /// Under which it is set: `vnfs`.
    pub id: String,
    /// Its label, with the unit: `Frame size, bytes`.
    pub title: String,
    /// What it can be set to, in their order.
    pub values: Vec<String>,
    /// The place of the one that the answer is for.
    pub chosen: usize,
}

impl Control {
    /// One that is `now`, which is put where it belongs if it is none of `values`: numbers by size, others first.
    pub fn new(id: &str, title: &str, values: impl IntoIterator<Item = String>, now: &str) -> Self {
        let mut values: Vec<String> = values.into_iter().collect();
        let chosen = values.iter().position(|value| value == now).unwrap_or_else(|| {
            let number = |text: &str| text.parse::<f64>().ok();
            let is_below = |value: &String| number(value).zip(number(now)).is_some_and(|(value, now)| value < now);
            let place = values.iter().take_while(|value| is_below(value)).count();
            values.insert(place, now.to_owned());
            place
        });
        Self { id: id.to_owned(), title: title.to_owned(), values, chosen }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_is_now_is_one_of_its_values() {
        let sizes = || ["64", "512", "1518"].map(str::to_owned);
        let of = |now: &str| {
            let control = Control::new("size", "Frame size, bytes", sizes(), now);
            (control.values.join(" "), control.chosen)
        };
        assert_eq!(of("512"), ("64 512 1518".to_owned(), 1));
        assert_eq!(of("600"), ("64 512 600 1518".to_owned(), 2));
        assert_eq!(of("9000"), ("64 512 1518 9000".to_owned(), 3));
        assert_eq!(of("imix"), ("imix 64 512 1518".to_owned(), 0));
    }
}
