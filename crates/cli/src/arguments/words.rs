//! Options whose values are words: the names of an enum's variants.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// One of `all` by its name.
pub(crate) fn named<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    described(all.map(|one| (one, "")), name)
}

/// The same, where `--help` says what each is; nothing is said of one with an empty text.
pub(crate) fn described<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [(T, &'static str); N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let value = |(one, help): (T, &'static str)| {
        let value = PossibleValue::new(name(one));
        if help.is_empty() { value } else { value.help(help) }
    };
    PossibleValuesParser::new(all.map(value))
        .map(move |word| all.iter().find(|(one, _)| name(*one) == word).expect("clap takes no other word").0)
}
