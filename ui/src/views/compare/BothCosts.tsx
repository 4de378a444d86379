/** How expensive were chains, and exits of one reason, before and after: both on one pair of axes. */
import type { Aggregates, Axis } from "../../data/types";
import { binsByRow, keyOf } from "../../maths/bins";
import { curveOfBins } from "../../maths/curve";
import { counted, duration } from "../../maths/format";
import { shareAt } from "../../maths/quantile";
import { csv, number, rowsOf, sorted, tableOf, text } from "../../maths/rows";
import { witnessed } from "../../maths/witness";
import { go, hash } from "../../state/store";
import { undisturbedOf } from "../Costs";
import { Curves } from "../Curves";
import { Empty, Figure } from "../Figure";
import { useAnswer } from "../useAnswer";
import type { Sides } from "./Names";

type Points = [number, number][];

const CHAINS = "chains, L2 back to L2";
const X: Axis = { title: "1 in N costs this much or more", unit: "count", logarithmic: true };
const Y: Axis = { title: "cost", unit: "ns", logarithmic: true };

/** Quantiles as rarity: half of them are p50, one in a hundred is p99. */
function rarity(points: Points): Points {
  return points.filter(([share]) => share < 1).map(([share, value]) => [1 / (1 - share), value]);
}

/** Of one reason at one level: the vCPU with the longest time in it, because quantiles of several do not add up. */
function exitsOf({ report }: Sides["before"], wanted: string): { points: Points; count: number } {
  const rows = sorted(witnessed(report, rowsOf(tableOf(report, "flow.exits"))), "total_ns", true);
  const row = rows.find((row) => `${text(row, "level")} ${text(row, "reason")}` === wanted);
  const bins = binsByRow(rowsOf(tableOf(report, "flow.exit_bins")));
  const curve = row && curveOfBins("", bins.get(keyOf(row)) ?? [], number(row, "max_ns"))[0];
  return { points: rarity(curve?.points ?? []), count: curve?.count ?? 0 };
}

function chainsOf(sums: Aggregates | null): { points: Points; count: number } {
  const count = sums ? undisturbedOf(sums) : 0;
  return { points: count > 0 ? rarity(sums!.shares) : [], count };
}

export function BothCosts({ before, after }: Sides) {
  const { value: sums, error } = useAnswer(
    () => Promise.all([before.aggregates(null), after.aggregates(null)]),
    [before, after],
  );
  if (error) return <Empty title="The chains cannot be read">{error}</Empty>;
  if (!sums) return null;
  const reasons = ({ report }: Sides["before"]) =>
    sorted(witnessed(report, rowsOf(tableOf(report, "flow.exits"))), "total_ns", true).map(
      (row) => `${text(row, "level")} ${text(row, "reason")}`,
    );
  const theirs = new Set(reasons(after));
  const shared = [...new Set(reasons(before))].filter((reason) => theirs.has(reason));
  const hasChains = sums.every((side) => side && undisturbedOf(side) > 0);
  const choices = [...(hasChains ? [CHAINS] : []), ...shared];
  const what = choices.find((choice) => choice === hash.value.cost) ?? choices[0];
  if (!what) {
    return (
      <Empty title="The costs cannot be compared">
        Both recordings have no chain and no reason of an exit in common.
      </Empty>
    );
  }
  const sides = [before, after].map((side, i) =>
    what === CHAINS ? chainsOf(sums[i] ?? null) : exitsOf(side, what),
  );
  const words = sides.map(({ points, count }, i) => {
    const at = (share: number) =>
      shareAt(
        points.map(([rare, value]) => [1 - 1 / rare, value]),
        share,
      );
    const side = `${i === 0 ? "Before" : "After"}, ${counted(count, what === CHAINS ? "chain" : "exit")}`;
    if (points.length === 0) return `${side}: none has a known cost.`;
    return `${side}: half cost at most ${duration(at(0.5))}${count >= 100 ? `, 1 % more than ${duration(at(0.99))}` : ""}.`;
  });
  return (
    <Figure
      id="both-costs"
      title="How expensive, before and after?"
      csv={() =>
        csv(
          ["side", "one_in", "ns"],
          sides.flatMap(({ points }, i) =>
            points.map(([rare, value]) => [i === 0 ? "before" : "after", rare, value]),
          ),
        )
      }
      caption={`${words.join(" ")} Of the whole recordings.${what === CHAINS ? "" : " Of the vCPU with most time in them; each step is the upper end of a histogram bin."}`}
      tools={
        <select
          aria-label="Costs of"
          value={what}
          onChange={(event) => go({ cost: event.currentTarget.value })}
        >
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      }
    >
      <Curves
        title={`Costs of ${what}, before and after`}
        drawn={{
          x: X,
          y: Y,
          limits: [],
          curves: sides.map(({ points }, i) => ({
            label: i === 0 ? `before: ${before.id}` : `after: ${after.id}`,
            form: what === CHAINS ? "line" : "steps",
            mark: null,
            points,
          })),
        }}
      />
    </Figure>
  );
}
