//! Time lines and sums for speedscope, its own JSON format.
//!
//! ```text
//! profile 1      all vCPUs, summed: the stacks of folded.rs, weighted by ns
//! profile 2..    a vCPU each in time order: level, state, reason open and close
//! last           samples of counters, where the recording has some
//! ```
//! Source: speedscope's file-format-spec.ts (version 0.0.1): `evented` profiles need events in time order that nest,
//! `sampled` ones a weight per stack. What misleads in a name becomes U+FFFD ([`base::plain`]).

use crate::picture::{Fit, Picture};
use base::plain::plain;
use base::timeline::{LaneId, Stacks, Timeline};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, Write};

/// Speedscope keeps a file in memory as text, and a slice takes some 200 bytes of it.
pub const MOST_SLICES: u64 = 500_000;

#[derive(Clone, Copy)]
pub struct Summed<'a> {
    pub time: &'a Stacks,
    /// Samples of counters; none where nothing was sampled.
    pub samples: &'a Stacks,
}

/// Writes what `picture` shows of `fit`, and what is `summed`, under `title`.
///
/// # Errors
/// If `out` refuses.
pub fn write(out: &mut dyn Write, picture: &Picture<'_>, fit: &Fit, title: &str, summed: Summed<'_>) -> io::Result<()> {
    let Summed { time, samples } = summed;
    let mut frames = Frames::default();
    write!(out, "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",")?;
    write!(out, "\"name\":{},\"exporter\":\"kvmscope\",\"activeProfileIndex\":0,", json!(plain(title)))?;
    write!(out, "\"profiles\":[")?;
    let time = sampled("all vCPUs, summed", "nanoseconds", time, &mut frames);
    crate::json::safe::to_writer(&mut *out, &time)?;
    for lane in picture.lanes() {
        writeln!(out, ",")?;
        evented(out, picture, fit, lane, &mut frames)?;
    }
    if !samples.is_empty() {
        writeln!(out, ",")?;
        crate::json::safe::to_writer(&mut *out, &sampled("samples of counters", "none", samples, &mut frames))?;
    }
    let named: Vec<Value> = frames.names.iter().map(|name| json!({ "name": plain(name) })).collect();
    writeln!(out, "],\"shared\":{{\"frames\":{}}}}}", Value::from(named))
}

/// Frames by name, numbered in the order in which they are met.
#[derive(Default)]
struct Frames {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Frames {
    fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }
}

fn sampled(name: &str, unit: &str, stacks: &Stacks, frames: &mut Frames) -> Value {
    let samples: Vec<Vec<usize>> =
        stacks.keys().map(|stack| stack.iter().map(|frame| frames.number(frame)).collect()).collect();
    let weights: Vec<u64> = stacks.values().copied().collect();
    let end: u64 = weights.iter().sum();
    json!({
        "type": "sampled", "name": name, "unit": unit, "startValue": 0, "endValue": end,
        "samples": samples, "weights": weights,
    })
}

fn evented(out: &mut dyn Write, picture: &Picture<'_>, fit: &Fit, lane: LaneId, frames: &mut Frames) -> io::Result<()> {
    let of = &picture.drawn.timeline.lanes()[lane.0 as usize];
    let name = json!(plain(&format!("{} {}", picture.vm_title(&of.group), of.title)));
    write!(out, "{{\"type\":\"evented\",\"name\":{name},\"unit\":\"nanoseconds\",")?;
    write!(out, "\"startValue\":{},\"endValue\":{},\"events\":[", fit.window.from_ns, fit.window.to_ns)?;
    let kinds = picture.kinds();
    let mut open: Vec<usize> = Vec::new();
    let (mut at_ns, mut between) = (fit.window.from_ns, "");
    let mut event = |kind: char, frame: usize, at_ns: u64| -> io::Result<()> {
        write!(out, "{between}{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{at_ns}}}")?;
        between = ",\n";
        Ok(())
    };
    for piece in picture.pieces(lane, fit.window) {
        let kind = &kinds[usize::from(piece.state.0)];
        let title = &picture.drawn.timeline.states()[usize::from(piece.state.0)].title;
        let mut stack = vec![frames.number(&picture.row_title(kind.row)), frames.number(title)];
        stack.extend((!piece.cause.is_empty()).then(|| frames.number(piece.cause)));
        // What stays open: the same frames from the outside in, unless a gap lies between.
        let same = open.iter().zip(&stack).take_while(|(before, after)| before == after).count();
        let same = if piece.span.from_ns == at_ns { same } else { 0 };
        while open.len() > same {
            event('C', open[open.len() - 1], at_ns)?;
            open.pop();
        }
        for frame in &stack[same..] {
            event('O', *frame, piece.span.from_ns)?;
            open.push(*frame);
        }
        at_ns = piece.span.to_ns;
    }
    for frame in open.iter().rev() {
        event('C', *frame, at_ns)?;
    }
    write!(out, "]}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folded::{Shown, Weight, stacks};
    use crate::witness::{FIXTURES, answered, summed};
    use base::{Level, Narrow, Span};

    fn written(picture: &Picture<'_>, most: u64, summed: Summed<'_>) -> Value {
        let mut out = Vec::new();
        write(&mut out, picture, &picture.fit(most), "test", summed).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    /// Time in each stack of an evented profile; its events must be in order and nest.
    fn times(profile: &Value, frames: &[&str]) -> Stacks {
        let mut stacks = Stacks::new();
        let mut open: Vec<String> = Vec::new();
        let mut last_ns = profile["startValue"].as_u64().unwrap();
        for event in profile["events"].as_array().unwrap() {
            let at_ns = event["at"].as_u64().unwrap();
            if at_ns > last_ns {
                *stacks.entry(open.clone()).or_default() += at_ns - last_ns;
                last_ns = at_ns;
            }
            assert_eq!(at_ns, last_ns, "in order");
            let frame = frames[event["frame"].as_u64().unwrap() as usize].to_owned();
            match event["type"].as_str().unwrap() {
                "O" => open.push(frame),
                _ => assert_eq!(open.pop(), Some(frame), "nested"),
            }
        }
        assert!(open.is_empty());
        stacks.remove(&Vec::new());
        stacks
    }

    #[test]
    fn a_vcpus_time_line_has_the_time_of_its_folded_stacks() {
        for name in FIXTURES {
            let (drawn, _) = answered(name);
            let window = Some(Span { from_ns: 50_000_000, to_ns: 300_000_000 });
            for narrow in [Narrow::default(), Narrow { window, level: Some(Level::At(1)), ..Narrow::default() }] {
                let picture = Picture { drawn: &drawn, emulated: None, narrow: &narrow };
                let shown = Shown { host: Level::L0, emulated: None, narrow: &narrow };
                let expected = stacks(&summed(name, &narrow), shown, Weight::Time);
                let file = written(&picture, MOST_SLICES, Summed { time: &expected, samples: &Stacks::new() });
                let named = file["shared"]["frames"].as_array().unwrap().iter();
                let frames: Vec<&str> = named.map(|frame| frame["name"].as_str().unwrap()).collect();
                let profiles = file["profiles"].as_array().unwrap();
                assert_eq!(profiles.len(), 1 + drawn.vcpus.len());
                for (profile, of) in profiles[1..].iter().zip(&drawn.vcpus) {
                    let lane = [of.vm.clone(), format!("vCPU {}", of.vcpu)];
                    let of_lane = expected.iter().filter(|(stack, ns)| stack[..2] == lane && **ns > 0);
                    let expected: Stacks = of_lane.map(|(stack, ns)| (stack[2..].to_vec(), *ns)).collect();
                    assert_eq!(times(profile, &frames), expected, "{name}");
                }
                let weights = profiles[0]["weights"].as_array().unwrap().iter().filter_map(Value::as_u64);
                assert_eq!(weights.sum::<u64>(), expected.values().sum::<u64>(), "{name}");
            }
        }
    }

    #[test]
    fn names_do_not_mislead() {
        let mut drawn = crate::witness::drawn("nested-svm-toy");
        let evil = "\u{202e}web\u{200b}";
        let lane = base::timeline::Lane { group: evil.into(), ..drawn.timeline.lanes()[0].clone() };
        drawn.vcpus.truncate(1);
        let mut timeline = base::timeline::Columns::new(drawn.timeline.states().to_vec());
        let lane = timeline.add_lane(lane);
        timeline.push(lane, 0, base::timeline::StateId(0), evil);
        timeline.end(lane, 1_000);
        drawn.timeline = timeline;
        let narrow = Narrow::default();
        let picture = Picture { drawn: &drawn, emulated: None, narrow: &narrow };
        let samples = Stacks::from([(vec![evil.to_owned(), "L0".to_owned()], 7)]);
        let mut out = Vec::new();
        write(&mut out, &picture, &picture.fit(9), evil, Summed { time: &Stacks::new(), samples: &samples }).unwrap();
        let file = String::from_utf8(out).unwrap();
        assert!(!file.contains(['\u{202e}', '\u{200b}']), "{file}");
        assert!(file.matches("\u{fffd}web\u{fffd}").count() >= 3, "{file}");
    }

    #[test]
    fn samples_are_a_profile_of_their_own() {
        let (drawn, _) = answered("nested-svm-toy");
        let narrow = Narrow::default();
        let picture = Picture { drawn: &drawn, emulated: None, narrow: &narrow };
        let samples = Stacks::from([(vec!["web".to_owned(), "L0".to_owned()], 7)]);
        let file = written(&picture, 100, Summed { time: &Stacks::new(), samples: &samples });
        let last = file["profiles"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&last["weights"], &last["unit"]), (&json!([7]), &json!("none")));
    }
}
