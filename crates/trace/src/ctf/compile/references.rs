//! What lengths and selectors refer to, and the registers that carry it there.

use super::Compiler;
use crate::ctf::model::{Length, Path};
use crate::ctf::program::{Count, Op, Program, To};
use std::sync::Arc;

/// What a path can lead to.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Integer { register: u32, signed: bool, labels: Arc<[(i128, i128, String)]> },
    Struct(Vec<(String, Node)>),
    Variant(Vec<(String, Node)>),
    Nothing,
}

impl Compiler<'_> {
    /// Numbers the registers that something refers to, drops the others; returns how many are left.
    pub(crate) fn settle_registers<'p>(&self, programs: impl Iterator<Item = &'p mut Program>) -> usize {
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

    pub(super) fn register(&mut self) -> u32 {
        self.referred.push(false);
        self.referred.len() as u32 - 1
    }

    pub(super) fn count(&mut self, length: &Length) -> Result<Count, String> {
        match length {
            Length::Fixed(count) => Ok(Count::Is(*count)),
            Length::Field(path) => match self.find(path)? {
                Node::Integer { register, .. } => Ok(Count::Register(register)),
                _ => Err(format!("the length `{}` is no integer", path.names.join("."))),
            },
        }
    }

    /// What a path leads to; an integer there gets a register.
    pub(super) fn find(&mut self, path: &Path) -> Result<Node, String> {
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
