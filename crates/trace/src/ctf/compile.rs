//! Classes become steps, and the integers that lengths and selectors refer to become registers.
//!
//! A stream's parts are compiled in the order in which they stand in a packet, so whatever a field refers to has been
//! compiled before it. CTF 1.8.3 section 7.3.2 gives the order in which scopes are searched.

use super::bits::Shape;
use super::model::{Choice, Class, Integer, Leb, Length, Path, Role, Schema, Scope};
use super::program::{Arm, Count, Op, Program, To, order_key};
use crate::facts::{FieldKind, FieldType};
use std::sync::Arc;

/// Most fields of one event, on all levels; nested types that double at each level would otherwise fill the memory.
const MOST_CLASSES: usize = 1 << 16;

/// Compiles the parts of one stream and of its events.
pub struct Compiler<'s> {
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
    /// The clock that the time stamps are mapped to, where a field says it.
    pub clock: Option<String>,
    /// The shortest time stamp in an event header, in bits.
    pub shortest_time: Option<u8>,
}

/// What a path can lead to.
#[derive(Debug, Clone)]
enum Node {
    Integer { register: u32, signed: bool, labels: Arc<[(i128, i128, String)]> },
    Struct(Vec<(String, Node)>),
    Variant(Vec<(String, Node)>),
    Nothing,
}

/// Steps being emitted.
struct Body {
    ops: Vec<Op>,
    /// Bits since the base.
    at: u64,
    /// The base is a multiple of so many bits.
    base: u32,
}

/// What becomes of the values.
#[derive(Clone)]
enum Use {
    /// They are the reader's own.
    Reader,
    /// They are fields; the name so far.
    Field(String),
    /// They are printed as part of a field.
    Print,
}

impl Body {
    fn new(base: u32) -> Self {
        Self { ops: Vec::new(), at: 0, base }
    }

    /// Moves to the next multiple of `bits`.
    fn align(&mut self, bits: u32) {
        if bits <= self.base {
            self.at = self.at.next_multiple_of(u64::from(bits.max(1)));
            return;
        }
        self.rebase();
        if bits > self.base {
            self.ops.push(Op::Align(bits));
            self.base = bits;
        }
    }

    /// Makes the present position the base.
    fn rebase(&mut self) {
        if self.at > 0 {
            self.ops.push(Op::Advance(self.at));
            self.base = self.base.min(1 << self.at.trailing_zeros().min(16));
            self.at = 0;
        }
    }

    /// Position of the next fixed-size step, near enough to the base.
    fn place(&mut self) -> u32 {
        if u32::try_from(self.at).is_err() {
            self.rebase();
        }
        self.at as u32
    }
}

impl<'s> Compiler<'s> {
    /// A compiler for one kind of stream of `schema`.
    pub fn new(schema: &'s Schema) -> Self {
        Self {
            schema,
            roots: Default::default(),
            open: Vec::new(),
            referred: Vec::new(),
            scope: Scope::PacketHeader,
            body: Body::new(1),
            fields: Vec::new(),
            classes: 0,
            clock: None,
            shortest_time: None,
        }
    }

    /// Compiles a part that only the reader uses: the packet header, the packet context or the event header.
    ///
    /// # Errors
    /// A sentence, if a length or selector refers to nothing.
    pub fn part(&mut self, scope: Scope, class: Option<&Arc<Class>>) -> Result<Program, String> {
        self.root(scope, class, Use::Reader)?;
        Ok(self.finish())
    }

    /// Compiles the three parts of an event after its header. Fields of the payload come first, then those of the
    /// contexts that have names of their own.
    ///
    /// # Errors
    /// A sentence, if a length or selector refers to nothing.
    pub fn event(&mut self, parts: [(Scope, Option<&Arc<Class>>); 3]) -> Result<Program, String> {
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
        self.classes = 0;
        let body = std::mem::replace(&mut self.body, Body::new(1));
        Program { ops: body.ops, fields: std::mem::take(&mut self.fields), context_fields: 0 }
    }

    /// Numbers the registers that something refers to, drops the others; returns how many are left.
    pub fn settle_registers<'p>(&self, programs: impl Iterator<Item = &'p mut Program>) -> usize {
        let mut next = 0;
        let numbers: Vec<Option<u32>> = self
            .referred
            .iter()
            .map(|referred| {
                referred.then(|| {
                    next += 1;
                    next - 1
                })
            })
            .collect();
        for program in programs {
            renumber(&mut program.ops, &numbers);
        }
        next as usize
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
        match class {
            Class::Integer(integer) => self.integer(integer, name, &usage),
            Class::Leb(leb) => self.leb(leb, name, &usage),
            Class::Float(float) => {
                self.body.align(float.align);
                let at = self.body.place();
                let mut shape = Shape::new(float.bits, false, float.order);
                shape.high_first ^= float.swapped;
                shape.bytes_swapped = float.swapped;
                if let Some(to) = self.purpose(&usage, FieldKind::Float, &[]) {
                    self.emit(Op::Float { at, shape, to });
                }
                self.body.at += u64::from(float.bits);
                Ok(Node::Nothing)
            }
            Class::Text { unit, order } => {
                self.body.align(8);
                self.body.rebase();
                let to = self.purpose(&usage, FieldKind::Text, &[]).into_iter().collect();
                let big = *order == crate::format::Endian::Big;
                self.emit(Op::Text { unit: *unit, big, to });
                self.body.base = 8;
                Ok(Node::Nothing)
            }
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

    fn register(&mut self) -> u32 {
        self.referred.push(false);
        self.referred.len() as u32 - 1
    }

    fn roles(&self, name: &str, stated: &[Role]) -> Vec<Role> {
        let mut roles = stated.to_vec();
        if self.schema.names_are_roles() {
            roles.extend(Role::of_name(self.scope, name));
        }
        // CTF has no role for these two; LTTng, perf and barectf use the names.
        match (self.scope, name) {
            (Scope::PacketContext, "cpu_id") => roles.push(Role::Cpu),
            (Scope::StreamContext | Scope::EventContext, "tid" | "_tid" | "vtid" | "_vtid") => roles.push(Role::Tid),
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

    fn integer(&mut self, integer: &Integer, name: &str, usage: &Use) -> Result<Node, String> {
        self.body.align(integer.align);
        let at = self.body.place();
        let mut shape = Shape::new(integer.bits, integer.signed, integer.order);
        shape.high_first ^= integer.swapped;
        shape.bytes_swapped = integer.swapped;
        let mut roles = self.roles(name, &integer.roles);
        // A mapped integer in an event header is its time, whatever its name.
        if self.scope == Scope::EventHeader && integer.clock.is_some() && roles.is_empty() {
            roles.push(Role::Time);
        }
        for role in roles {
            let to = self.role_purpose(role, integer.bits, integer.clock.as_ref());
            self.emit(Op::Int { at, shape, to });
        }
        let kind = if integer.signed { FieldKind::Signed } else { FieldKind::Unsigned };
        if let Some(to) = self.purpose(usage, kind, &integer.labels) {
            let to = if to == To::Print && integer.text { To::Char } else { to };
            self.emit(Op::Int { at, shape, to });
        }
        let register = self.register();
        self.emit(Op::Int { at, shape, to: To::Register(register) });
        self.body.at += u64::from(integer.bits);
        Ok(Node::Integer { register, signed: integer.signed, labels: integer.labels.as_slice().into() })
    }

    fn leb(&mut self, leb: &Leb, name: &str, usage: &Use) -> Result<Node, String> {
        self.body.align(8);
        self.body.rebase();
        let register = self.register();
        let mut to = vec![To::Register(register)];
        for role in self.roles(name, &leb.roles) {
            to.push(self.role_purpose(role, 64, None));
        }
        let kind = if leb.signed { FieldKind::Signed } else { FieldKind::Unsigned };
        to.extend(self.purpose(usage, kind, &leb.labels));
        self.emit(Op::Leb { signed: leb.signed, to });
        self.body.base = 8;
        Ok(Node::Integer { register, signed: leb.signed, labels: leb.labels.as_slice().into() })
    }

    fn counted(&mut self, length: &Length, text: bool, usage: &Use) -> Result<Node, String> {
        self.body.align(8);
        let kind = if text { FieldKind::Text } else { FieldKind::Bytes };
        let purpose = self.purpose(usage, kind, &[]);
        let count = self.count(length)?;
        match count {
            Count::Is(bytes) if bytes < 1 << 24 => {
                let at = self.body.place();
                if let Some(to) = purpose {
                    self.emit(Op::Fixed { at, bytes: bytes as u32, text, to });
                }
                self.body.at += bytes * 8;
            }
            bytes => {
                self.body.rebase();
                self.emit(Op::Counted { bytes, text, to: purpose.into_iter().collect() });
                self.body.base = 8;
            }
        }
        Ok(Node::Nothing)
    }

    fn structure(&mut self, align: u32, members: &[(String, Arc<Class>)], usage: Use) -> Result<Node, String> {
        self.body.align(align);
        self.open.push(Vec::new());
        let printing = matches!(usage, Use::Print);
        if printing {
            self.emit(Op::Literal("{ ".to_owned()));
        }
        for (at, (name, member)) in members.iter().enumerate() {
            let shown = shown(name);
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
    fn printed(
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

    fn array(&mut self, length: &Length, align: u32, element: &Arc<Class>, usage: Use) -> Result<Node, String> {
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

    fn count(&mut self, length: &Length) -> Result<Count, String> {
        match length {
            Length::Fixed(count) => Ok(Count::Is(*count)),
            Length::Field(path) => match self.find(path)? {
                Node::Integer { register, .. } => Ok(Count::Register(register)),
                _ => Err(format!("the length `{}` is no integer", path.names.join("."))),
            },
        }
    }

    fn variant(&mut self, selector: &Path, options: &[Choice], usage: Use) -> Result<Node, String> {
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

    fn optional(
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

    /// What a path leads to; an integer there gets a register.
    fn find(&mut self, path: &Path) -> Result<Node, String> {
        let first = path.names.first().ok_or("a variant without a selector")?;
        let found = match path.scope {
            Some(scope) if scope == self.scope && !self.open.is_empty() => {
                self.open.first().and_then(|members| descend_members(members, &path.names))
            }
            Some(scope) => self.roots[scope as usize].as_ref().and_then(|root| descend(root, &path.names)),
            None => {
                let around = self.open.iter().rev().find(|members| members.iter().any(|(name, _)| name == first));
                match around {
                    Some(members) => descend_members(members, &path.names),
                    None => self.roots.iter().rev().flatten().find_map(|root| descend(root, &path.names)),
                }
            }
        };
        let node = found.cloned().ok_or_else(|| {
            let names = path.names.join(".");
            format!("`{names}`, which no field before it is called")
        })?;
        if let Node::Integer { register, .. } = &node {
            self.referred[*register as usize] = true;
        }
        Ok(node)
    }
}

fn descend<'n>(node: &'n Node, names: &[String]) -> Option<&'n Node> {
    match (node, names) {
        (Node::Integer { .. }, []) => Some(node),
        (Node::Struct(members), _) => descend_members(members, names),
        (Node::Variant(options), _) => descend_members(options, names)
            // CTF 2 does not name the option on the way.
            .or_else(|| options.iter().find_map(|(_, option)| descend(option, names))),
        _ => None,
    }
}

fn descend_members<'n>(members: &'n [(String, Node)], names: &[String]) -> Option<&'n Node> {
    let (first, rest) = names.split_first()?;
    members.iter().rev().find(|(name, _)| name == first).and_then(|(_, node)| descend(node, rest))
}

/// CTF 1.8 writers put an underscore before names that could be keywords.
fn shown(name: &str) -> &str {
    name.strip_prefix('_').unwrap_or(name)
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

fn renumber(ops: &mut Vec<Op>, numbers: &[Option<u32>]) {
    let number = |register: u32| numbers.get(register as usize).copied().flatten();
    let keeps = |to: &mut To| match to {
        To::Register(register) => match number(*register) {
            Some(number) => {
                *register = number;
                true
            }
            None => false,
        },
        _ => true,
    };
    let count = |count: &mut Count| {
        if let Count::Register(register) = count {
            *register = number(*register).unwrap_or(0);
        }
    };
    ops.retain_mut(|op| match op {
        Op::Int { to, .. } => keeps(to),
        _ => true,
    });
    for op in ops {
        match op {
            Op::Leb { to, .. } => to.retain_mut(keeps),
            Op::AdvanceTimes(times, _) => count(times),
            Op::Counted { bytes, .. } => count(bytes),
            Op::Repeat { count: times, body, .. } => {
                count(times);
                renumber(body, numbers);
            }
            Op::Printed { body, .. } => renumber(body, numbers),
            Op::Switch { register, arms, .. } => {
                *register = number(*register).unwrap_or(0);
                for arm in arms {
                    renumber(&mut arm.body, numbers);
                }
            }
            _ => {}
        }
    }
}
