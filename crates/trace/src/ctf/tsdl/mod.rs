//! What does a TSDL text (the metadata of CTF 1.8) describe?
//!
//! In: the text. Out: a [`Schema`], or an error with the file, the byte and the line.
//! ```text
//! lexer: text -> words      parser: words -> statements      types: words -> classes      here: blocks -> Schema
//! ```
//! Grammar and meaning: CTF 1.8.3 sections 4 to 8 and appendix C. `callsite` blocks say nothing about events.

mod lexer;
mod parser;
mod scalars;
mod types;

use super::metadata::Metadata;
use super::model::{ClockClass, EventClass, Schema, StreamClass};
use crate::{Error, Format};
use lexer::Word;
use parser::{Parser, Statement, Value};

/// Reads a TSDL text.
///
/// # Errors
/// If the text is damaged or uses a type that nothing declares.
pub(super) fn parse(metadata: &Metadata) -> Result<Schema, Error> {
    let mut parser = Parser::new(metadata)?;
    let mut schema = Schema::new(Format::Ctf1);
    let mut events = Vec::new();
    loop {
        if parser.takes(";") {
            continue;
        }
        let Word::Name(keyword) = parser.peek().clone() else {
            if *parser.peek() == Word::End {
                break;
            }
            return Err(parser.instead_of("a block or a declaration"));
        };
        if parser.declaration()? {
            continue;
        }
        match keyword.as_str() {
            "trace" | "env" | "clock" | "stream" | "event" | "callsite" => {
                parser.next();
            }
            _ => return Err(parser.instead_of("a block (trace, env, clock, stream, event) or a declaration")),
        }
        let statements = parser.block()?;
        match keyword.as_str() {
            "trace" => trace(&mut schema, statements),
            "env" => env(&mut schema, statements),
            "clock" => schema.clocks.push(clock(&parser, statements)?),
            "stream" => schema.streams.push(stream(&parser, statements)?),
            "event" => events.push(event(&parser, statements)?),
            _ => {}
        }
        parser.expect(";")?;
    }
    if schema.streams.is_empty() {
        schema.streams.push(StreamClass::default());
    }
    for (stream_id, event) in events {
        let only = schema.streams.len() == 1;
        let home = schema.streams.iter_mut().find(|stream| match stream_id {
            Some(id) => stream.id == id,
            None => only || stream.id == 0,
        });
        // An event of a stream that nothing describes cannot occur.
        if let Some(stream) = home {
            stream.events.push(event);
        }
    }
    Ok(schema)
}

fn dotted(names: &[String]) -> String {
    names.join(".")
}

fn trace(schema: &mut Schema, statements: Vec<Statement>) {
    for statement in statements {
        if let Statement::Type(names, class) = statement
            && dotted(&names) == "packet.header"
        {
            schema.packet_header = Some(class);
        }
    }
}

fn env(schema: &mut Schema, statements: Vec<Statement>) {
    for statement in statements {
        if let Statement::Assign(names, value, _) = statement {
            schema.env.insert(dotted(&names), value.to_string());
        }
    }
}

fn clock(parser: &Parser<'_>, statements: Vec<Statement>) -> Result<ClockClass, Error> {
    // CTF 1.8.3 section 8: the frequency is 1 GHz and the offsets are 0 where nothing is said.
    let mut clock =
        ClockClass { id: String::new(), name: String::new(), frequency: 1_000_000_000, offset_s: 0, offset_ticks: 0 };
    for statement in statements {
        let Statement::Assign(names, value, place) = statement else { continue };
        match dotted(&names).as_str() {
            "name" => clock.name = value.to_string(),
            "freq" => clock.frequency = unsigned(parser, &value, place)?.max(1),
            "offset_s" => clock.offset_s = signed(parser, &value, place)?,
            "offset" => clock.offset_ticks = signed(parser, &value, place)?,
            _ => {}
        }
    }
    clock.id.clone_from(&clock.name);
    Ok(clock)
}

fn stream(parser: &Parser<'_>, statements: Vec<Statement>) -> Result<StreamClass, Error> {
    let mut stream = StreamClass::default();
    for statement in statements {
        match statement {
            Statement::Assign(names, value, place) if dotted(&names) == "id" => {
                stream.id = unsigned(parser, &value, place)?;
            }
            Statement::Type(names, class) => match dotted(&names).as_str() {
                "packet.context" => stream.packet_context = Some(class),
                "event.header" => stream.event_header = Some(class),
                "event.context" => stream.event_context = Some(class),
                _ => {}
            },
            Statement::Assign(..) => {}
        }
    }
    Ok(stream)
}

/// The event, and the stream it says it belongs to.
fn event(parser: &Parser<'_>, statements: Vec<Statement>) -> Result<(Option<u64>, EventClass), Error> {
    let mut stream_id = None;
    let mut event = EventClass::default();
    for statement in statements {
        match statement {
            Statement::Assign(names, value, place) => match dotted(&names).as_str() {
                "id" => event.id = unsigned(parser, &value, place)?,
                "stream_id" => stream_id = Some(unsigned(parser, &value, place)?),
                "name" => event.name = value.to_string(),
                _ => {}
            },
            Statement::Type(names, class) => match dotted(&names).as_str() {
                "context" => event.context = Some(class),
                "fields" => event.payload = Some(class),
                _ => {}
            },
        }
    }
    Ok((stream_id, event))
}

fn unsigned(parser: &Parser<'_>, value: &Value, place: usize) -> Result<u64, Error> {
    let number = if let Value::Number(number) = value { u64::try_from(*number).ok() } else { None };
    number.ok_or_else(|| parser.damaged(place, "an unsigned number of 64 bits", value.to_string()))
}

fn signed(parser: &Parser<'_>, value: &Value, place: usize) -> Result<i64, Error> {
    let number = if let Value::Number(number) = value { i64::try_from(*number).ok() } else { None };
    number.ok_or_else(|| parser.damaged(place, "a number of 64 bits", value.to_string()))
}
