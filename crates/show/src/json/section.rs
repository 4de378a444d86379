//! A Section's parts as JSON, each borrowed and written in place.

use base::figure::{
    Axis, Column, Drawing, Dumbbell, DumbbellGroup, Figure, Flow, Form, Gauge, Ground, Hop, Key, MatrixRow, On,
    Reading, Removed, Side, SpanGroup, SpanRow, Standing, Step, Stop, Storey, TimePart, Waterfall,
};
use base::{Finding, Section, Table};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::json;
use std::collections::HashMap;

/// A section, with the recording it is of where there are several.
pub(super) struct Shown<'a> {
    pub section: &'a Section,
    pub of: Option<String>,
    /// The rank of each finding of the recording, by its id.
    pub ranks: &'a HashMap<String, usize>,
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let section = self.section;
        let mut map = serializer.serialize_map(None)?;
        if let Some(of) = &self.of {
            map.serialize_entry("recording", of)?;
        }
        map.serialize_entry("id", section.id)?;
        map.serialize_entry("question", section.question)?;
        map.serialize_entry("about", &section.about)?;
        map.serialize_entry("summary", &section.summary)?;
        map.serialize_entry("findings", &Findings(&section.findings, self.ranks))?;
        map.serialize_entry("tables", &Tables(&section.tables))?;
        map.serialize_entry("figures", &Figures(&section.figures))?;
        map.serialize_entry("controls", &section.controls)?;
        map.serialize_entry("unknown", &section.unknown)?;
        map.serialize_entry("next", &section.next)?;
        map.end()
    }
}

/// A section without its tables: what is small.
pub(super) struct Words<'a> {
    pub section: &'a Section,
    /// The rank of each finding of the recording, by its id.
    pub ranks: &'a HashMap<String, usize>,
}

impl Serialize for Words<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let section = self.section;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("findings", &Findings(&section.findings, self.ranks))?;
        map.serialize_entry("figures", &Figures(&section.figures))?;
        map.serialize_entry("controls", &section.controls)?;
        map.serialize_entry("unknown", &section.unknown)?;
        map.end()
    }
}

struct Findings<'a>(&'a [Finding], &'a HashMap<String, usize>);

impl Serialize for Findings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(findings, ranks) = self;
        serializer.collect_seq(findings.iter().map(|finding| FindingShown { finding, ranks }))
    }
}

struct Figures<'a>(&'a [Figure]);

impl Serialize for Figures<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(FigureShown))
    }
}

struct FindingShown<'a> {
    finding: &'a Finding,
    ranks: &'a HashMap<String, usize>,
}

impl Serialize for FindingShown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let finding = self.finding;
        let id = finding.id();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &id)?;
        map.serialize_entry("rank", &self.ranks.get(&id))?;
        map.serialize_entry("rule", finding.rule)?;
        map.serialize_entry("subject", &finding.subject)?;
        map.serialize_entry("severity", &finding.severity)?;
        map.serialize_entry("level", &finding.level.to_string())?;
        map.serialize_entry("title", &finding.title)?;
        map.serialize_entry("evidence", &finding.evidence)?;
        map.serialize_entry("cost", &finding.cost)?;
        map.serialize_entry("gives_back", &finding.gives_back)?;
        map.serialize_entry("explains", &finding.explains)?;
        map.serialize_entry("why", &finding.why)?;
        map.serialize_entry("changes", &finding.changes)?;
        map.serialize_entry("fix", &finding.fix)?;
        map.serialize_entry("undo", &finding.undo)?;
        map.serialize_entry("needs", &finding.needs)?;
        map.serialize_entry("source", finding.source)?;
        map.end()
    }
}

struct FigureShown<'a>(&'a Figure);

impl Serialize for FigureShown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let figure = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &figure.id)?;
        map.serialize_entry("title", &figure.title)?;
        map.serialize_entry("caption", &figure.caption)?;
        // A figure is what fits on a page, so its items may pass through values.
        match &figure.drawing {
            Drawing::Bars(groups) => {
                let bar = |bar: &base::figure::Bar| json!({"label": bar.label, "value": bar.value, "note": bar.note, "hue": bar.hue});
                let groups = groups.iter().map(|group| {
                    let bars: Vec<_> = group.bars.iter().map(bar).collect();
                    let span = group.span.map(|span| json!({"from_ns": span.from_ns, "to_ns": span.to_ns}));
                    json!({"title": group.title, "unit": group.unit, "total": group.total, "bars": bars, "span": span})
                });
                map.serialize_entry("drawing", "bars")?;
                map.serialize_entry("groups", &groups.collect::<Vec<_>>())?;
            }
            Drawing::Topology(panels) => {
                let cpu = |cpu: &base::figure::CpuBox| json!({"cpu": cpu.cpu, "chips": cpu.chips, "hues": cpu.hues, "contended": cpu.contended});
                let cores = |node: &base::figure::NodeBox| -> Vec<Vec<_>> {
                    node.cores.iter().map(|core| core.iter().map(cpu).collect()).collect()
                };
                let panels = panels.iter().map(|panel| {
                    let nodes = panel.nodes.iter().map(|node| json!({"title": node.title, "cores": cores(node)}));
                    let links: Vec<&str> = panel.links.iter().map(|link| link.text.as_str()).collect();
                    let arrows: Vec<_> =
                        panel.links.iter().map(|link| json!({"from": link.from, "to": link.to})).collect();
                    json!({"title": panel.title, "nodes": nodes.collect::<Vec<_>>(), "links": links, "arrows": arrows})
                });
                map.serialize_entry("drawing", "topology")?;
                map.serialize_entry("panels", &panels.collect::<Vec<_>>())?;
            }
            Drawing::Points(groups) => {
                let groups = groups.iter().map(|group| {
                    let points = group.points.iter().map(|point| {
                        let (low, high) = point.interval.unzip();
                        json!({"label": point.label, "value": point.value, "low": low, "high": high,
                               "mark": point.mark.name(), "source": point.source})
                    });
                    json!({"title": group.title, "unit": group.unit, "points": points.collect::<Vec<_>>()})
                });
                map.serialize_entry("drawing", "points")?;
                map.serialize_entry("scales", &groups.collect::<Vec<_>>())?;
            }
            Drawing::Histogram(drawn) => {
                let kinds = drawn.kinds.iter().map(|kind| json!({"label": kind.label, "hue": kind.hue}));
                let bins = drawn.bins.iter().map(|bin| json!({"from": bin.from, "to": bin.to, "counts": bin.counts}));
                let limits = drawn.limits.iter().map(|limit| json!({"label": limit.label, "value": limit.value}));
                map.serialize_entry("drawing", "histogram")?;
                map.serialize_entry("x", &axis(&drawn.x))?;
                map.serialize_entry("counted", drawn.counted)?;
                map.serialize_entry("kinds", &kinds.collect::<Vec<_>>())?;
                map.serialize_entry("bins", &bins.collect::<Vec<_>>())?;
                map.serialize_entry("limits", &limits.collect::<Vec<_>>())?;
            }
            Drawing::Curves(drawn) => {
                let curves = drawn.curves.iter().map(|curve| {
                    let (form, mark, below) = match curve.form {
                        Form::Line => ("line", None, None),
                        Form::Steps => ("steps", None, None),
                        Form::StepsBelow(value) => ("steps", None, Some(value)),
                        Form::Points(mark) => ("points", Some(mark.name()), None),
                    };
                    json!({"label": curve.label, "form": form, "mark": mark, "below": below, "points": curve.points})
                });
                let limits = drawn.limits.iter().map(|limit| {
                    let on = if limit.on == On::X { "x" } else { "y" };
                    json!({"label": limit.label, "on": on, "value": limit.value, "until": limit.until})
                });
                map.serialize_entry("drawing", "curves")?;
                map.serialize_entry("x", &axis(&drawn.x))?;
                map.serialize_entry("y", &axis(&drawn.y))?;
                map.serialize_entry("curves", &curves.collect::<Vec<_>>())?;
                map.serialize_entry("limits", &limits.collect::<Vec<_>>())?;
            }
            Drawing::Heat(drawn) => {
                let rows = drawn.rows.iter().map(|row| json!({"label": row.label, "cells": row.cells}));
                map.serialize_entry("drawing", "heat")?;
                map.serialize_entry("x", &axis(&drawn.x))?;
                map.serialize_entry("from", &drawn.ends.0)?;
                map.serialize_entry("to", &drawn.ends.1)?;
                map.serialize_entry("what", &drawn.what)?;
                map.serialize_entry("unit", drawn.unit)?;
                map.serialize_entry("most", &drawn.most)?;
                map.serialize_entry("rows", &rows.collect::<Vec<_>>())?;
            }
            Drawing::Flows(flows) => {
                map.serialize_entry("drawing", "flows")?;
                map.serialize_entry("flows", &flows.iter().map(flow).collect::<Vec<_>>())?;
            }
            Drawing::Gauges(groups) => {
                let groups = groups.iter().map(|group| {
                    let gauges: Vec<_> = group.gauges.iter().map(gauge).collect();
                    json!({"title": group.title, "gauges": gauges})
                });
                map.serialize_entry("drawing", "gauges")?;
                map.serialize_entry("dials", &groups.collect::<Vec<_>>())?;
            }
            Drawing::Spans(groups) => {
                map.serialize_entry("drawing", "spans")?;
                map.serialize_entry("spans", &groups.iter().map(spans).collect::<Vec<_>>())?;
                let keys = SpanGroup::keys(groups).into_iter().map(|(what, key)| match key {
                    Key::Hue(hue) => json!({"what": what, "hue": hue, "shape": null}),
                    Key::Shape(shape) => json!({"what": what, "hue": null, "shape": shape.name()}),
                });
                map.serialize_entry("keys", &keys.collect::<Vec<_>>())?;
            }
            Drawing::Levels(drawn) => {
                map.serialize_entry("drawing", "levels")?;
                map.serialize_entry("columns", &drawn.columns.iter().map(column).collect::<Vec<_>>())?;
                map.serialize_entry("ground", &ground(&drawn.ground))?;
                let part = |part: &TimePart| json!({"label": part.label, "hue": part.hue, "share": part.share});
                map.serialize_entry("time", &drawn.time.iter().map(part).collect::<Vec<_>>())?;
                map.serialize_entry("most_per_s", &drawn.most_per_s())?;
            }
            Drawing::Waterfall(all) => {
                let removed = |one: &Removed| json!({"finding": one.finding, "rule": one.rule, "share": one.share});
                let step = |step: &Step| {
                    json!({"label": step.label, "hue": step.hue, "share": step.share, "given_back": step.given_back(),
                           "note": step.note(), "removed": step.removed.iter().map(removed).collect::<Vec<_>>()})
                };
                let whole = |whole: &Waterfall| json!({"title": whole.title, "steps": whole.steps.iter().map(step).collect::<Vec<_>>()});
                map.serialize_entry("drawing", "waterfall")?;
                map.serialize_entry("wholes", &all.iter().map(whole).collect::<Vec<_>>())?;
            }
            Drawing::Matrix(drawn) => {
                let row = |row: &MatrixRow| {
                    let cells: Vec<_> = row.cells.iter().map(|cell| cell.map(Standing::name)).collect();
                    json!({"label": row.label, "about": row.about, "cells": cells, "findings": row.findings})
                };
                map.serialize_entry("drawing", "matrix")?;
                map.serialize_entry("columns", &drawn.columns)?;
                map.serialize_entry("rows", &drawn.rows.iter().map(row).collect::<Vec<_>>())?;
            }
            Drawing::Dumbbells(groups) => {
                map.serialize_entry("drawing", "dumbbells")?;
                map.serialize_entry("dumbbells", &groups.iter().map(dumbbells).collect::<Vec<_>>())?;
                let keys = DumbbellGroup::keys(groups).into_iter().map(|key| {
                    let (mark, sure) = key;
                    json!({"what": DumbbellGroup::say(key), "mark": mark.name(), "sure": sure.name()})
                });
                map.serialize_entry("looks", &keys.collect::<Vec<_>>())?;
            }
        }
        map.end()
    }
}

fn flow(flow: &Flow) -> serde_json::Value {
    let stop = |stop: &Stop| {
        let side = if stop.side == Side::Above { "above" } else { "below" };
        json!({"label": stop.label, "side": side, "share": stop.share})
    };
    let hop = |hop: &Hop| {
        let fullest = hop.fullest.as_ref().map(|fullest| json!({"resource": fullest.resource, "share": fullest.share}));
        json!({"path": hop.path, "from": stop(&hop.from), "to": stop(&hop.to), "above": hop.above, "below": hop.below,
               "pps": hop.pps, "bits_per_s": hop.bits_per_s, "fullest": fullest, "fullness": hop.fullness().name(),
               "crossings": hop.crossings(), "count": hop.count})
    };
    json!({"title": flow.title, "boundary": flow.boundary, "above": flow.above, "below": flow.below,
           "most_bits_per_s": flow.most_bits_per_s, "hops": flow.hops.iter().map(hop).collect::<Vec<_>>()})
}

fn spans(group: &SpanGroup) -> serde_json::Value {
    let row = |row: &SpanRow| {
        let stretches =
            row.stretches.iter().map(|one| json!({"from": one.from, "to": one.to, "what": one.what, "hue": one.hue}));
        let signs = row.signs.iter().map(|sign| json!({"at": sign.at, "what": sign.what, "shape": sign.shape.name()}));
        json!({"label": row.label, "value": row.value, "note": row.note,
               "stretches": stretches.collect::<Vec<_>>(), "signs": signs.collect::<Vec<_>>()})
    };
    let limits = group.limits.iter().map(|limit| json!({"label": limit.label, "value": limit.value}));
    json!({"title": group.title, "x": axis(&group.x), "rows": group.rows.iter().map(row).collect::<Vec<_>>(),
           "limits": limits.collect::<Vec<_>>()})
}

fn dumbbells(group: &DumbbellGroup) -> serde_json::Value {
    let row = |row: &Dumbbell| {
        let (low, high) = row.interval.unzip();
        json!({"label": row.label, "before": row.before, "after": row.after, "low": low, "high": high, "change": row.change,
               "verdict": row.verdict, "sure": row.sure.name(), "mark": row.mark.name(), "hue": row.hue})
    };
    json!({"title": group.title, "x": axis(&group.x), "rows": group.rows.iter().map(row).collect::<Vec<_>>()})
}

fn gauge(gauge: &Gauge) -> serde_json::Value {
    let reading = |one: &Reading| json!({"of": one.of, "pps": one.pps, "bits_per_s": one.bits_per_s});
    let ceiling = json!({"pps": gauge.ceiling.pps, "resource": gauge.ceiling.resource});
    json!({"label": gauge.label, "all": reading(&gauge.all), "each": gauge.each.as_ref().map(reading), "ceiling": ceiling,
           "published_pps": gauge.published_pps, "end_pps": gauge.end_pps()})
}

fn column(column: &Column) -> serde_json::Value {
    let storey = |storey: &Storey| {
        json!({"level": storey.level, "hue": storey.hue, "share": storey.share, "exits_per_s": storey.exits_per_s,
               "reflected_per_s": storey.reflected_per_s, "for_each": storey.for_each})
    };
    json!({"title": column.title, "about": column.about, "storeys": column.storeys.iter().map(storey).collect::<Vec<_>>()})
}

fn ground(ground: &Ground) -> serde_json::Value {
    json!({"level": ground.level, "kvm_share": ground.kvm_share, "vmm_share": ground.vmm_share,
           "to_vmm_per_s": ground.to_vmm_per_s})
}

fn axis(axis: &Axis) -> serde_json::Value {
    json!({"title": axis.title, "unit": axis.unit, "logarithmic": axis.is_logarithmic})
}

struct Tables<'a>(&'a [Table]);

impl Serialize for Tables<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|table| (table.spec.name, TableShown(table))))
    }
}

/// A table, as an object of its columns and rows.
pub(super) struct TableShown<'a>(pub &'a Table);

impl Serialize for TableShown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("version", &self.0.spec.version)?;
        map.serialize_entry("columns", self.0.spec.columns)?;
        map.serialize_entry("rows", &self.0.rows)?;
        map.end()
    }
}
