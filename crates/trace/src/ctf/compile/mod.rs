//! Classes become steps, and the integers that lengths and selectors refer to become registers.
//!
//! A stream's parts are compiled in the order in which they stand in a packet, so whatever a field refers to has been
//! compiled before it. CTF 1.8.3 section 7.3.2 gives the order in which scopes are searched.

mod body;
mod compounds;
mod references;
mod scalars;

use super::model::{Class, Role, Schema, Scope};
use super::program::{Op, Program, To};
use crate::Format;
use crate::facts::{FieldKind, FieldType};
use body::Body;
use references::Node;
use std::sync::Arc;

/// Most fields of one event, on all levels; nested types that double at each level would otherwise fill the memory.
const MOST_CLASSES: usize = 1 << 16;

/// Most fields of all events of a trace. A kernel's 2,500 tracepoints have 20,000.
const MOST_CLASSES_IN_ALL: usize = 1 << 20;

/// Compiles the parts of one stream and of its events.
pub(super) struct Compiler<'s> {
    schema: &'s Schema,
    /// What paths can lead to, by scope.
    roots: [Option<Node>; 6],
    /// The structures around the field being compiled, the innermost last, with the members compiled so far.
    open: Vec<Vec<(String, Node)>>,
    /// For each integer met so far: does something refer to it?
    referred: Vec<bool>,
    scope: Scope,
    body: Body,
    fields: Vec<FieldType>,
    /// Classes met in the current part.
    classes: usize,
    /// Classes met in the parts before.
    pub(crate) classes_before: usize,
    /// The clock that the time stamps are mapped to, where a field says it.
    pub clock: Option<String>,
    /// The shortest time stamp in an event header, in bits.
    pub(crate) shortest_time: Option<u8>,
}
/// What becomes of the values.
#[derive(Clone)]
enum Use {
    Reader,
    /// They are fields; the name so far.
    Field(String),
    /// They are printed as part of a field.
    Print,
}

impl<'s> Compiler<'s> {
    /// A compiler for one kind of stream of `schema`, of which `classes` were compiled before.
    pub(super) fn new(schema: &'s Schema, classes: usize) -> Self {
        Self {
            schema,
            roots: Default::default(),
            open: Vec::new(),
            referred: Vec::new(),
            scope: Scope::PacketHeader,
            body: Body::new(1),
            fields: Vec::new(),
            classes: 0,
            classes_before: classes,
            clock: None,
            shortest_time: None,
        }
    }

    /// Compiles a part that only the reader uses: the packet header, the packet context or the event header.
    ///
    /// # Errors
    /// A sentence, if a length or selector refers to nothing.
    pub(super) fn part(&mut self, scope: Scope, class: Option<&Arc<Class>>) -> Result<Program, String> {
        self.root(scope, class, Use::Reader)?;
        Ok(self.finish())
    }

    /// Compiles the three parts of an event after its header. Fields of the payload come first, then those of the
    /// contexts that have names of their own.
    ///
    /// # Errors
    /// A sentence, if a length or selector refers to nothing.
    pub(super) fn event(&mut self, parts: [(Scope, Option<&Arc<Class>>); 3]) -> Result<Program, String> {
        // What the event before was made of is not around this one.
        self.roots[Scope::StreamContext as usize..].fill(None);
        let mut context_fields = 0;
        for (scope, class) in parts {
            if scope == Scope::Payload {
                context_fields = self.fields.len();
            }
            self.root(scope, class, Use::Field(String::new()))?;
        }
        let (context, payload) = self.fields.split_at_mut(context_fields);
        for field in context {
            if payload.iter().any(|other| other.name == field.name) {
                field.name.insert_str(0, "context.");
            }
        }
        Ok(Program { context_fields, ..self.finish() })
    }

    fn root(&mut self, scope: Scope, class: Option<&Arc<Class>>, usage: Use) -> Result<(), String> {
        self.scope = scope;
        self.open.clear();
        let node = match class {
            Some(class) => Some(self.class(class, "", usage)?),
            None => None,
        };
        self.roots[scope as usize] = node;
        Ok(())
    }

    fn finish(&mut self) -> Program {
        self.body.rebase();
        self.classes_before += std::mem::take(&mut self.classes);
        let body = std::mem::replace(&mut self.body, Body::new(1));
        Program { ops: body.ops, fields: std::mem::take(&mut self.fields), context_fields: 0 }
    }

    fn emit(&mut self, op: Op) {
        self.body.ops.push(op);
    }

    /// A new field, or the one of that name where the arms of a variant share it.
    fn field(&mut self, name: &str, kind: FieldKind, labels: &[(i128, i128, String)]) -> u32 {
        self.fields.push(FieldType { name: name.to_owned(), kind, labels: labels.to_vec() });
        self.fields.len() as u32 - 1
    }

    fn class(&mut self, class: &Class, name: &str, usage: Use) -> Result<Node, String> {
        self.classes += 1;
        if self.classes > MOST_CLASSES {
            return Err(format!("more than {MOST_CLASSES} fields in one event"));
        }
        if self.classes_before + self.classes > MOST_CLASSES_IN_ALL {
            return Err(format!("more than {MOST_CLASSES_IN_ALL} fields in all events"));
        }
        match class {
            Class::Integer(integer) => self.integer(integer, name, &usage),
            Class::Leb(leb) => self.leb(leb, name, &usage),
            Class::Float(float) => Ok(self.float(float, &usage)),
            Class::Text { unit, order } => Ok(self.text(*unit, *order, &usage)),
            Class::Counted { length, text } => self.counted(length, *text, &usage),
            Class::Struct { align, members } => self.structure(*align, members, usage),
            Class::Array { length, element, .. } => match usage {
                Use::Field(name) => {
                    self.printed(&name, FieldKind::Text, |this| this.array(length, class.align(), element, Use::Print))
                }
                usage => self.array(length, class.align(), element, usage),
            },
            Class::Variant { selector, options } => self.variant(selector, options, usage),
            Class::Optional { selector, ranges, class } => self.optional(selector, ranges, class, name, usage),
        }
    }

    /// What a scalar is read for beside its roles.
    fn purpose(&mut self, usage: &Use, kind: FieldKind, labels: &[(i128, i128, String)]) -> Option<To> {
        match usage {
            Use::Reader => None,
            Use::Field(name) => Some(To::Field(self.field(name, kind, labels))),
            Use::Print => Some(To::Print),
        }
    }

    /// CTF 1.8 writers put an underscore before names that could be keywords.
    fn shown<'n>(&self, name: &'n str) -> &'n str {
        if self.schema.format == Format::Ctf1 { name.strip_prefix('_').unwrap_or(name) } else { name }
    }

    fn roles(&self, name: &str, stated: &[Role]) -> Vec<Role> {
        let mut roles = stated.to_vec();
        if self.schema.names_are_roles() {
            roles.extend(Role::of_name(self.scope, name));
        }
        // CTF has no role for these two; LTTng, perf and barectf use the names, babeltrace2 with an underscore before.
        match (self.scope, name.strip_prefix('_').unwrap_or(name)) {
            (Scope::PacketContext, "cpu_id") => roles.push(Role::Cpu),
            (Scope::StreamContext | Scope::EventContext, "tid" | "vtid") => roles.push(Role::Tid),
            _ => {}
        }
        roles
    }

    fn role_purpose(&mut self, role: Role, bits: u8, clock: Option<&String>) -> To {
        if matches!(role, Role::Time | Role::Begin) && self.clock.is_none() {
            self.clock = clock.cloned();
        }
        if role == Role::Time && self.scope == Scope::EventHeader {
            self.shortest_time = Some(self.shortest_time.map_or(bits, |shortest| shortest.min(bits)));
            return To::Time;
        }
        // CTF 2 has one role for time stamps; in a packet context it says when the packet begins.
        To::Role(if role == Role::Time { Role::Begin } else { role })
    }
}
