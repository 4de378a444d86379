//! Facts that single questions compute once for a case, each under its own type.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// At most one value of each type, computed when it is first asked for.
#[derive(Default)]
pub(crate) struct Memo(Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Memo {
    /// The value of this type; whoever asks meanwhile waits for it, and other types do not.
    pub(crate) fn get<T: Any + Send + Sync>(&self, compute: impl FnOnce() -> T) -> Arc<T> {
        let cell = {
            let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let cell = cells.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(OnceLock::<Arc<T>>::new()));
            Arc::clone(cell)
        };
        let cell = cell.downcast::<OnceLock<Arc<T>>>().expect("cells are made under the type that they hold");
        Arc::clone(cell.get_or_init(|| Arc::new(compute())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_computed_once() {
        let memo = Memo::default();
        let first = memo.get(|| 1_u8);
        assert!(Arc::ptr_eq(&first, &memo.get(|| 2_u8)));
        assert_eq!((*first, *memo.get(|| 3_u16)), (1, 3));
    }
}
