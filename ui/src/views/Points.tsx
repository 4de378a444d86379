/** Single numbers on a logarithmic scale: ours as dots in their interval, those that others published as diamonds. */
import type { PointGroup, SpanGroup, SpanRow } from "../data/types";
import { amount, hasWords } from "../maths/format";
import { Spans } from "./Spans";

/** Groups of one unit have one scale. */
export function Points({ groups }: { groups: PointGroup[] }) {
  return <Spans groups={groups.map(spansOf)} />;
}

function spansOf({ title, unit, points }: PointGroup): SpanGroup {
  const rows = points.map(
    ({ label, value, low, high, mark, source }): SpanRow => ({
      label,
      value: amount(value, unit),
      note: [mark, source].filter(Boolean).join(", "),
      stretches: low === null ? [] : [{ from: low, to: high, what: "", hue: "" }],
      signs: [{ at: value, what: mark, shape: mark }],
    }),
  );
  const named = hasWords(unit) ? title : `${title}, ${unit}`;
  return { title: named, x: { title: "logarithmic", unit, logarithmic: true }, rows, limits: [] };
}
