//! Stretches along an axis, a row for each: what lasted from when to when, or between which bounds something was said to lie.
//!
//! ```text
//! run 0   519.0 ms   ····██████●██████···×··    inside 348.1 ms to 635.2 ms
//! run 1    1.4 s     ····█████████████···×·●    above
//! run 2        -     ····█████████████···×··    not known: nothing is drawn, least of all a 0
//!                    0                      2 s
//! ```

use super::{Axis, Edge, Scale};
use serde::{Serialize, Serializer};
use serde_json::json;

/// Rows on one axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpanGroup {
    /// Heading, such as a quantity or a run.
    pub title: String,
    /// Along the page.
    pub x: Axis,
    /// The rows, from the top.
    pub rows: Vec<SpanRow>,
    /// Limits on the axis.
    pub limits: Vec<Edge>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpanRow {
    /// What it is of.
    pub label: String,
    /// Its number in words, or `-`.
    pub value: String,
    /// A remark at its end, or empty.
    pub note: String,
    /// What is drawn as stretches, those of one row beside each other.
    pub stretches: Vec<Stretch>,
    /// Single values.
    pub signs: Vec<Sign>,
}

/// From one value of the axis to another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stretch {
    /// Where it begins.
    pub from: f64,
    /// Where it ends; `None` where it never does.
    pub to: Option<f64>,
    /// What all of its kind are, for the legend.
    pub what: String,
    /// Name of the state that decides how they look, or empty.
    pub hue: String,
}

/// A value of the axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sign {
    /// Where.
    pub at: f64,
    /// What all of its shape are, for the legend.
    pub what: String,
    /// What tells it from others.
    pub shape: Shape,
}

crate::named! {
    /// How a single value looks.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Shape {
        /// What was.
        Dot = "dot",
        /// What was most likely.
        Bar = "bar",
        /// What somebody else said.
        Cross = "cross",
    }
}

/// One entry of a legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key<'g> {
    /// Of stretches: their hue.
    Hue(&'g str),
    /// Of single values.
    Shape(Shape),
}

/// A part of a scale in which nothing can be told apart.
const LOST: f64 = 0.05;

pub(super) fn with_keys<S: Serializer>(groups: &[SpanGroup], serializer: S) -> Result<S::Ok, S::Error> {
    let keys = SpanGroup::keys(groups).into_iter().map(|(what, key)| match key {
        Key::Hue(hue) => json!({"what": what, "hue": hue, "shape": null}),
        Key::Shape(shape) => json!({"what": what, "hue": null, "shape": shape}),
    });
    json!({"spans": groups, "keys": keys.collect::<Vec<_>>()}).serialize(serializer)
}

impl SpanGroup {
    /// The scale of its axis among `groups`: around all stretches, single values and limits of those with this axis, so that what is equally
    /// long below each other is the same. One that would be lost on it has its own.
    pub fn scale(&self, groups: &[Self]) -> Scale {
        let own = self.x.scale(self.values());
        let all = self.x.scale(groups.iter().filter(|group| group.x == self.x).flat_map(Self::values));
        if all.place(own.to) < LOST { own } else { all }
    }

    /// Everything that stands along its axis.
    fn values(&self) -> impl Iterator<Item = f64> {
        let stretches = self.rows.iter().flat_map(|row| &row.stretches).flat_map(|one| [Some(one.from), one.to]);
        let signs = self.rows.iter().flat_map(|row| &row.signs).map(|sign| sign.at);
        stretches.flatten().chain(signs).chain(self.limits.iter().map(|limit| limit.value))
    }

    /// What stretches and single values of `groups` mean, each once, in the order in which they come.
    pub fn keys(groups: &[Self]) -> Vec<(&str, Key<'_>)> {
        let rows = || groups.iter().flat_map(|group| &group.rows);
        let stretches = rows().flat_map(|row| &row.stretches).map(|one| (one.what.as_str(), Key::Hue(&one.hue)));
        let signs = rows().flat_map(|row| &row.signs).map(|sign| (sign.what.as_str(), Key::Shape(sign.shape)));
        let mut keys: Vec<(&str, Key<'_>)> = Vec::new();
        for key in stretches.chain(signs) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_holds_what_is_known_and_a_legend_names_each_kind_once() {
        let stretch = |from, to, what: &str| Stretch {
            from,
            to,
            what: what.into(),
            hue: if what == "gap" { "unknown" } else { "" }.into(),
        };
        let row = |stretches, signs| SpanRow {
            label: "run 0".into(),
            value: String::new(),
            note: String::new(),
            stretches,
            signs,
        };
        let sign = Sign { at: 14.0, what: "it was".into(), shape: Shape::Dot };
        let group = SpanGroup {
            title: "total".into(),
            x: Axis { title: "time".into(), unit: "ns", is_logarithmic: false },
            rows: vec![
                row(vec![stretch(1.0, Some(4.0), "said"), stretch(4.0, Some(5.0), "gap")], vec![sign.clone()]),
                row(vec![stretch(3.0, None, "said")], vec![sign]),
            ],
            limits: vec![Edge { label: "limit".into(), value: 6.0 }],
        };
        let own = group.scale(std::slice::from_ref(&group));
        assert_eq!((own.from, own.to), (0.0, 15.0));
        let longer = SpanGroup { rows: vec![row(vec![stretch(0.0, Some(90.0), "said")], Vec::new())], ..group.clone() };
        let other = SpanGroup { x: Axis { unit: "count", ..group.x.clone() }, ..longer.clone() };
        let all = [group.clone(), longer, other];
        assert_eq!([0, 1, 2].map(|at| all[at].scale(&all).to), [100.0; 3]);
        assert_eq!(all[0].scale(&[group.clone(), all[2].clone()]).to, 15.0, "of another axis");
        let far = SpanGroup { rows: vec![row(vec![stretch(0.0, Some(900.0), "said")], Vec::new())], ..group.clone() };
        assert_eq!(group.scale(&[group.clone(), far]).to, 15.0, "it would be lost");
        let keys = [("said", Key::Hue("")), ("gap", Key::Hue("unknown")), ("it was", Key::Shape(Shape::Dot))];
        assert_eq!(SpanGroup::keys(&[group]), keys);
    }
}
