/** Which exits of L1 one exit of L2 causes, before and after: counted, so real on an emulated machine too. */
import type { Dumbbell, DumbbellGroup } from "../../data/types";
import { changeIn } from "../../maths/compare";
import { grouped } from "../../maths/format";
import { bandsOf, undisturbedChains } from "../../maths/multiplication";
import { csv, rowsOf, tableOf } from "../../maths/rows";
import { witnessed } from "../../maths/witness";
import { Dumbbells } from "../Dumbbells";
import { Empty, Figure } from "../Figure";
import type { Sides } from "./Names";

/** Rows of a reason that are drawn, and reasons. */
const ROWS = 10;
const REASONS = 6;

interface Side {
  /** Complete chains by reason. */
  chains: Map<string, number>;
  /** Exits of L1 for each of them, by reason and reason of L1. */
  each: Map<string, number>;
}

function sideOf({ report }: Sides["before"]): Side {
  const chains = undisturbedChains(witnessed(report, rowsOf(tableOf(report, "flow.chains"))));
  const bands = bandsOf(witnessed(report, rowsOf(tableOf(report, "flow.chain_exits"))));
  const each = new Map(
    bands.map(({ from, to, value }) => [`${from}\t${to}`, value / Math.max(1, chains.get(from) ?? 1)]),
  );
  return { chains, each };
}

export function BothMultiplications({ before, after }: Sides) {
  const [one, two] = [sideOf(before), sideOf(after)];
  const reasons = [...one.chains.keys()]
    .filter((reason) => (one.chains.get(reason) ?? 0) > 0 && (two.chains.get(reason) ?? 0) > 0)
    .sort((a, b) => two.chains.get(b)! + one.chains.get(b)! - two.chains.get(a)! - one.chains.get(a)!);
  if (reasons.length === 0) {
    return (
      <Empty title="The multiplications cannot be compared">
        Both recordings have no reason of an exit of L2 in common that L1 handled.
      </Empty>
    );
  }
  const groups = reasons.map((reason): DumbbellGroup => {
    const names = [...new Set([...one.each.keys(), ...two.each.keys()])].filter((key) =>
      key.startsWith(`${reason}\t`),
    );
    const pair = (label: string, before: number, after: number): Dumbbell => ({
      label,
      before,
      after,
      low: null,
      high: null,
      change: changeIn(before, after),
      verdict: "counted, without a verdict",
      sure: "unknown",
      mark: "measured",
      hue: label === "all exits of L1" ? "" : "L1",
    });
    const sum = (side: Side) => names.reduce((sum, key) => sum + (side.each.get(key) ?? 0), 0);
    const rows = names
      .map((key) => pair(key.split("\t")[1]!, one.each.get(key) ?? 0, two.each.get(key) ?? 0))
      .sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before));
    return {
      title: `${reason} of L2: ${grouped(one.chains.get(reason)!)} before, ${grouped(two.chains.get(reason)!)} after`,
      x: { title: "exits of L1 for each exit of L2", unit: "count", logarithmic: false },
      rows: [pair("all exits of L1", sum(one), sum(two)), ...rows],
    };
  });
  const drawn = groups.slice(0, REASONS).map((group) => ({ ...group, rows: group.rows.slice(0, ROWS) }));
  const all = groups[0]!.rows[0]!;
  return (
    <Figure
      id="both-multiplications"
      title="Which exits of L1 does one exit of L2 cause, before and after?"
      csv={() =>
        csv(
          ["l2_reason", "l1_exit", "before", "after"],
          groups.flatMap(({ title, rows }) =>
            rows.map(({ label, before, after }) => [title.split(" of L2")[0]!, label, before, after]),
          ),
        )
      }
      caption={`One exit of L2 for ${reasons[0]} caused ${all.before.toFixed(1)} exits of L1 before and ${all.after.toFixed(1)} after. Means over all complete chains of each recording; a mean has no verdict here, that of the median stands in Compared.${groups.length > drawn.length ? ` The ${drawn.length} most frequent of ${groups.length} reasons are drawn, CSV has all.` : ""}`}
    >
      <Dumbbells
        groups={drawn}
        looks={[{ what: "after, counted: no verdict", mark: "measured", sure: "unknown" }]}
      />
    </Figure>
  );
}
