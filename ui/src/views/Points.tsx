/** Single numbers on a logarithmic scale: ours as dots in their interval, those that others published as diamonds. */
import type { PointGroup, SpanRow } from "../data/types";
import { amount, hasWords } from "../maths/format";
import { Spans } from "./Spans";

export function Points({ group: { title, unit, points } }: { group: PointGroup }) {
  const rows = points.map(
    ({ label, value, low, high, mark, source }): SpanRow => ({
      label,
      value: amount(value, unit),
      note: `${mark}, ${source}`,
      stretches: low === null ? [] : [{ from: low, to: high, what: "", hue: "" }],
      signs: [{ at: value, what: mark, shape: mark }],
    }),
  );
  const named = hasWords(unit) ? title : `${title}, ${unit}`;
  return (
    <Spans group={{ title: named, x: { title: "logarithmic", unit, logarithmic: true }, rows, limits: [] }} />
  );
}
