//! Structures, arrays, variants and optional fields.

use super::body::Body;
use super::references::Node;
use super::{Compiler, Use};
use crate::ctf::model::{Choice, Class, Integer, Leb, Length, Path};
use crate::ctf::program::{Arm, Op, To, order_key};
use crate::facts::FieldKind;
use std::sync::Arc;

impl Compiler<'_> {
    pub(super) fn structure(
        &mut self,
        align: u32,
        members: &[(String, Arc<Class>)],
        usage: Use,
    ) -> Result<Node, String> {
        self.body.align(align);
        self.open.push(Vec::new());
        let printing = matches!(usage, Use::Print);
        if printing {
            self.emit(Op::Literal("{ ".to_owned()));
        }
        for (at, (name, member)) in members.iter().enumerate() {
            let shown = self.shown(name);
            let usage = match &usage {
                Use::Field(prefix) if prefix.is_empty() => Use::Field(shown.to_owned()),
                Use::Field(prefix) => Use::Field(format!("{prefix}.{shown}")),
                other => other.clone(),
            };
            if printing {
                let separator = if at > 0 { ", " } else { "" };
                self.emit(Op::Literal(format!("{separator}{shown} = ")));
            }
            let node = self.class(member, name, usage)?;
            if let Some(open) = self.open.last_mut() {
                open.push((name.clone(), node));
            }
        }
        if printing {
            self.emit(Op::Literal(" }".to_owned()));
        }
        Ok(Node::Struct(self.open.pop().unwrap_or_default()))
    }

    /// Compiles a field whose value is what its steps print.
    pub(super) fn printed(
        &mut self,
        name: &str,
        kind: FieldKind,
        inside: impl FnOnce(&mut Self) -> Result<Node, String>,
    ) -> Result<Node, String> {
        let field = self.field(name, kind, &[]);
        self.body.rebase();
        let outer = std::mem::replace(&mut self.body, Body::new(1));
        self.body.base = outer.base;
        let node = inside(self);
        self.body.rebase();
        let inner = std::mem::replace(&mut self.body, outer);
        self.body.base = inner.base;
        self.emit(Op::Printed { fields: vec![field], body: inner.ops });
        node
    }

    pub(super) fn array(
        &mut self,
        length: &Length,
        align: u32,
        element: &Arc<Class>,
        usage: Use,
    ) -> Result<Node, String> {
        let count = self.count(length)?;
        self.body.align(align);
        self.body.rebase();
        let printing = matches!(usage, Use::Print);
        let of_chars = matches!(element.as_ref(), Class::Integer(integer) if integer.text && integer.bits == 8);
        // Every element starts as aligned as the first if their size is a multiple of the alignment.
        let keeps_alignment = match element.as_ref() {
            Class::Integer(Integer { bits, align, .. }) => u32::from(*bits).is_multiple_of(*align).then_some(*align),
            Class::Float(float) => u32::from(float.bits).is_multiple_of(float.align).then_some(float.align),
            _ => None,
        };
        let base = keeps_alignment.unwrap_or(1);
        if printing {
            self.emit(Op::Literal(if of_chars { "" } else { "[ " }.to_owned()));
        }
        let outer = std::mem::replace(&mut self.body, Body::new(base));
        let node = self.class(element, "", usage);
        self.body.rebase();
        let inner = std::mem::replace(&mut self.body, outer);
        let node = node?;
        let list = printing && !of_chars;
        self.emit(Op::Repeat { count, body: inner.ops, list });
        if list {
            self.emit(Op::Literal(" ]".to_owned()));
        }
        self.body.base = base;
        Ok(node)
    }

    pub(super) fn variant(&mut self, selector: &Path, options: &[Choice], usage: Use) -> Result<Node, String> {
        let Node::Integer { register, signed, labels } = self.find(selector)? else {
            return Err(format!("the selector `{}` is no integer", selector.names.join(".")));
        };
        let usage = match usage {
            Use::Field(name) => match common_kind(options) {
                Some(kind) => {
                    let field = self.field(&name, kind, &[]);
                    return self.switch(register, signed, &labels, options, |this, choice| {
                        let before = this.fields.len();
                        let node = this.class(&choice.class, &choice.name, Use::Field(name.clone()))?;
                        this.join_fields(before, field);
                        Ok(node)
                    });
                }
                None => {
                    return self.printed(&name, FieldKind::Text, |this| {
                        this.switch(register, signed, &labels, options, |this, choice| {
                            this.class(&choice.class, &choice.name, Use::Print)
                        })
                    });
                }
            },
            other => other,
        };
        self.switch(register, signed, &labels, options, |this, choice| {
            this.class(&choice.class, &choice.name, usage.clone())
        })
    }

    /// Lets what the last step reads for the field added since `before` be read for `field` instead.
    fn join_fields(&mut self, before: usize, field: u32) {
        let added = before as u32;
        if self.fields.len() > before {
            let labels = std::mem::take(&mut self.fields[before].labels);
            self.fields[field as usize].labels.extend(labels);
            self.fields.truncate(before);
        }
        let rename = |to: &mut To| {
            if *to == To::Field(added) {
                *to = To::Field(field);
            }
        };
        for op in &mut self.body.ops {
            match op {
                Op::Int { to, .. } | Op::Float { to, .. } | Op::Fixed { to, .. } => rename(to),
                Op::Leb { to, .. } | Op::Text { to, .. } | Op::Counted { to, .. } => to.iter_mut().for_each(rename),
                _ => {}
            }
        }
    }

    fn switch(
        &mut self,
        register: u32,
        signed: bool,
        labels: &[(i128, i128, String)],
        options: &[Choice],
        mut inside: impl FnMut(&mut Self, &Choice) -> Result<Node, String>,
    ) -> Result<Node, String> {
        self.body.rebase();
        let base = self.body.base;
        let mut arms = Vec::new();
        let mut nodes = Vec::new();
        for choice in options {
            let named =
                || labels.iter().filter(|label| label.2 == choice.name).map(|label| (label.0, label.1)).collect();
            let ranges = choice.ranges.clone().unwrap_or_else(named);
            let outer = std::mem::replace(&mut self.body, Body::new(base));
            let node = inside(self, choice);
            self.body.rebase();
            let inner = std::mem::replace(&mut self.body, outer);
            nodes.push((choice.name.clone(), node?));
            arms.push(Arm { ranges: keys(&ranges, signed), body: inner.ops, signed });
        }
        self.emit(Op::Switch { register, arms, must_match: true });
        self.body.base = 1;
        Ok(Node::Variant(nodes))
    }

    pub(super) fn optional(
        &mut self,
        selector: &Path,
        ranges: &[(i128, i128)],
        class: &Arc<Class>,
        name: &str,
        usage: Use,
    ) -> Result<Node, String> {
        let Node::Integer { register, signed, .. } = self.find(selector)? else {
            return Err(format!("the selector `{}` is no integer", selector.names.join(".")));
        };
        self.body.rebase();
        let base = self.body.base;
        let outer = std::mem::replace(&mut self.body, Body::new(base));
        let node = self.class(class, name, usage);
        self.body.rebase();
        let inner = std::mem::replace(&mut self.body, outer);
        let node = node?;
        let arms = vec![Arm { ranges: keys(ranges, signed), body: inner.ops, signed }];
        self.emit(Op::Switch { register, arms, must_match: false });
        self.body.base = 1;
        Ok(node)
    }
}

/// The kind that all options have, if they are scalars of one kind.
fn common_kind(options: &[Choice]) -> Option<FieldKind> {
    let mut kinds = options.iter().map(|choice| match choice.class.as_ref() {
        Class::Integer(Integer { signed: true, .. }) | Class::Leb(Leb { signed: true, .. }) => Some(FieldKind::Signed),
        Class::Integer(_) | Class::Leb(_) => Some(FieldKind::Unsigned),
        Class::Float(_) => Some(FieldKind::Float),
        Class::Text { .. } | Class::Counted { text: true, .. } => Some(FieldKind::Text),
        Class::Counted { text: false, .. } => Some(FieldKind::Bytes),
        _ => None,
    });
    let first = kinds.next()??;
    kinds.all(|kind| kind == Some(first)).then_some(first)
}

/// Ranges of a selector as [`order_key`]s; what lies outside of 64 bits cannot occur.
fn keys(ranges: &[(i128, i128)], signed: bool) -> Vec<(u64, u64)> {
    let (least, most) = if signed { (i128::from(i64::MIN), i128::from(i64::MAX)) } else { (0, i128::from(u64::MAX)) };
    let meets = |range: &&(i128, i128)| range.0 <= most && range.1 >= least;
    let key = |value: i128| order_key(value.clamp(least, most) as u64, signed);
    ranges.iter().filter(meets).map(|(first, last)| (key(*first), key(*last))).collect()
}
