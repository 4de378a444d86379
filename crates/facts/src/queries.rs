//! What the user asks of single questions: each question knows its own type, the facts know none of them.

use std::any::{Any, TypeId, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// At most one value of each type.
#[derive(Clone, Default)]
pub struct Queries(BTreeMap<TypeId, (&'static str, Arc<dyn Any + Send + Sync>)>);

impl Queries {
    /// States `value`, in place of another of its type.
    pub fn set<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), (type_name::<T>(), Arc::new(value)));
    }

    /// The value of this type, if one was stated.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>()).and_then(|(_, value)| value.downcast_ref())
    }
}

impl fmt::Debug for Queries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.values().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_one_value_and_its_own() {
        let mut queries = Queries::default();
        queries.set(1_u8);
        queries.set("chain");
        queries.set(2_u8);
        assert_eq!(
            (queries.get::<u8>(), queries.get::<&str>(), queries.get::<u16>()),
            (Some(&2), Some(&"chain"), None)
        );
    }
}
