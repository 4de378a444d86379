/** View 'Exits': which reasons cost most, per VM, vCPU and level; with a second recording, compare/Changes.tsx takes its place. */
import { useMemo, useRef } from "preact/hooks";
import type { Recording } from "../data/source";
import type { ColumnName } from "../data/tables";
import type { Finding, Report } from "../data/types";
import { levelState } from "../draw/tokens";
import { findingFor } from "../maths/about";
import { axisOf, type Bin, binsByRow, keyOf } from "../maths/bins";
import { mostExpensive } from "../maths/exits";
import { counted, duration, grouped, percent } from "../maths/format";
import { csv, matches, number, type RowOf, rowsOf, sorted, tableOf, text } from "../maths/rows";
import { witnessed } from "../maths/witness";
import { go, part } from "../state/store";
import { Empty, Figure, Swatch } from "./Figure";
import { Histogram } from "./Histogram";
import { limitsOf, SeenBy, seenBy } from "./SeenBy";
import { Filter, LongTable, SortHead } from "./TableBox";
import { useReport } from "./useReport";
import { useWidth } from "./useSize";

type Name = ColumnName<"flow.exits">;

const COLUMNS: [Name, string][] = [
  ["vm", "VM"],
  ["vcpu", "vCPU"],
  ["level", "Level"],
  ["reason", "Reason"],
  ["count", "Exits"],
  ["total_ns", "Total"],
  ["p50_ns", "p50"],
  ["p90_ns", "p90"],
  ["p99_ns", "p99"],
  ["max_ns", "Max"],
];
const QUANTILES: Name[] = ["p50_ns", "p90_ns", "p99_ns", "max_ns"];
/** Below this, VM and vCPU stand below the reason, so that the numbers are on the screen. */
const NARROW = 600;
const WORDS: Name[] = ["vm", "vcpu", "level", "reason"];

/** What a letter in the filter does not change. */
function ofReport(report: Report, witness: string | undefined) {
  const all = witnessed(report, rowsOf(tableOf(report, "flow.exits")), witness);
  const byKey = binsByRow(rowsOf(tableOf(report, "flow.exit_bins")));
  const bins = new Map<(typeof all)[number], Bin[]>();
  for (const row of all) {
    const its = byKey.get(keyOf(row));
    if (its) bins.set(row, its);
  }
  const isOne = (name: Name) => all.every((row) => row[name] === all[0]![name]);
  return { all, bins, oneVm: isOne("vm"), oneVcpu: isOne("vcpu") };
}

export function Exits({ recording }: { recording: Recording }) {
  const { report, note, window } = useReport(recording);
  const seen = { report, rows: rowsOf(tableOf(report, "flow.exits")) };
  const witness = seenBy(seen);
  const { all, bins, oneVm, oneVcpu } = useMemo(() => ofReport(report, witness), [report, witness]);
  const sort = COLUMNS.find(([name]) => name === part("sort"))?.[0] ?? "total_ns";
  const descending = part("asc") !== "1";
  const filter = part("q") ?? "";
  const box = useRef<HTMLDivElement>(null);
  const narrow = useWidth(box) < NARROW;
  const inOrder = useMemo(() => sorted(all, sort, descending), [all, sort, descending]);
  const { rows, sums, longest, axis, hasBins } = useMemo(() => {
    const rows = inOrder.filter((row) => matches(row, filter));
    return {
      rows,
      sums: mostExpensive(rows),
      longest: rows.reduce((longest, row) => Math.max(longest, number(row, "total_ns")), 1),
      axis: axisOf(rows.map((row) => bins.get(row) ?? [])),
      hasBins: rows.some((row) => bins.has(row)),
    };
  }, [inOrder, filter, bins]);
  /** What would remove a reason's exits, looked for once. */
  const known = useMemo(() => new Map<string, Finding | undefined>(), [recording]);
  const removedBy = (vm: string, reason: string) => {
    const key = `${vm}\t${reason}`;
    if (!known.has(key)) known.set(key, findingFor(recording.report, vm, reason));
    return known.get(key);
  };
  if (all.length === 0) {
    return (
      <Empty title="No exits">
        {window
          ? "No guest exited in this window."
          : "The recording contains no kvm_exit events. Run kvmscope record on the host (L0) to record them."}
      </Empty>
    );
  }
  // The bars show p90, and the CSV has it.
  const hidden: Name[] = ["p90_ns"];
  if (oneVm || narrow) hidden.push("vm");
  if (oneVcpu || narrow) hidden.push("vcpu");
  const columns = COLUMNS.filter(([name]) => !hidden.includes(name));
  return (
    <Figure
      id="exits"
      title="Which exits cost most?"
      note={note}
      picture={false}
      csv={() =>
        csv(
          COLUMNS.map(([name]) => name),
          rows.map((row) => COLUMNS.map(([name]) => row[name] ?? null)),
        )
      }
      caption={
        sums.most
          ? `${counted(sums.exits, "exit")} took ${duration(sums.total_ns)}; the most expensive reason is ${sums.most.reason} of ${sums.most.level} with ${duration(sums.most.total_ns)}, ${percent(sums.most.total_ns / Math.max(1, sums.total_ns))} of that. Total runs from an exit to the next entry, without time off the CPU.${limitsOf(seen)} ${hasBins ? `The bars show how many exits took how long, from ${duration(axis.from)} to ${duration(axis.to)} on one logarithmic scale; their heights are square roots of the counts, and the ticks below are p50 and p99.` : ""}`
          : "No row matches the filter."
      }
      tools={
        <>
          <SeenBy {...seen} />
          <Filter example="L1 msr" />
        </>
      }
    >
      <div ref={box}>
        <LongTable
          title="Table of exits"
          last="wide"
          count={rows.length}
          head={
            <tr>
              {columns.map(([name, title]) => (
                <SortHead
                  key={name}
                  title={title}
                  isText={WORDS.includes(name)}
                  sorted={sort === name ? (descending ? "descending" : "ascending") : "none"}
                  sort={() => go({ sort: name, asc: sort === name && descending ? "1" : null })}
                />
              ))}
              <th>Removed by</th>
              <th>
                <span class="axis-ends">
                  <span>{duration(axis.from)}</span>
                  <span>{duration(axis.to)}</span>
                </span>
              </th>
            </tr>
          }
          row={(i) => {
            const row = rows[i]!;
            const reason = text(row, "reason");
            const finding = removedBy(text(row, "vm"), reason);
            return (
              <tr key={`${i}`}>
                {!hidden.includes("vm") && (
                  <td class="vm" title={text(row, "vm")}>
                    {text(row, "vm")}
                  </td>
                )}
                {!hidden.includes("vcpu") && <td>{text(row, "vcpu")}</td>}
                <td class="level">
                  <Swatch state={levelState(text(row, "level"))} /> {text(row, "level")}
                </td>
                <td>
                  <b>{reason}</b>
                  {narrow && !(oneVm && oneVcpu) && (
                    <small class="of-lane">{laneOf(row, oneVm, oneVcpu)}</small>
                  )}
                </td>
                <td class="number">{grouped(number(row, "count"))}</td>
                <td class="number bar">
                  <i style={{ width: `calc(${number(row, "total_ns") / longest} * (100% - 14px))` }} />
                  {duration(number(row, "total_ns"))}
                </td>
                {QUANTILES.filter((name) => !hidden.includes(name)).map((name) => (
                  <td class="number" key={name}>
                    {duration(number(row, name))}
                  </td>
                ))}
                <td>
                  {finding && (
                    <button
                      type="button"
                      class="link"
                      title={finding.title}
                      onClick={() => go({ view: "findings", finding: finding.id }, true)}
                    >
                      {finding.rule}
                    </button>
                  )}
                </td>
                <td>
                  <Histogram row={row} bins={bins.get(row) ?? []} axis={axis} />
                </td>
              </tr>
            );
          }}
        />
      </div>
    </Figure>
  );
}

function laneOf(row: RowOf<"flow.exits", "vm" | "vcpu">, oneVm: boolean, oneVcpu: boolean): string {
  return [oneVm ? "" : text(row, "vm"), oneVcpu ? "" : `vCPU ${text(row, "vcpu")}`].filter(Boolean).join(" ");
}
