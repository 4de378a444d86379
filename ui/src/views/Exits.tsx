/** View 'Exits': which reasons cost most, per VM, vCPU and level; with a second recording, what changed. */
import type { Recording } from "../data/source";
import type { Report, Table } from "../data/types";
import { levelState } from "../draw/tokens";
import { axisOf, binsByRow, keyOf } from "../maths/bins";
import { counted, duration, grouped, percent } from "../maths/format";
import { findingFor } from "../maths/named";
import { byReason, csv, matches, number, rowsOf, sorted, text } from "../maths/rows";
import { go, hash } from "../state/store";
import { Empty, Figure, Swatch } from "./Figure";
import { Histogram } from "./Histogram";
import { useReport } from "./useReport";

const COLUMNS: [string, string][] = [
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
const QUANTILES = ["p50_ns", "p90_ns", "p99_ns", "max_ns"];
const WORDS = ["vm", "vcpu", "level", "reason"];

export function tableOf(report: Report, name: string): Table | undefined {
  return report.sections.map((section) => section.tables[name]).find((table) => table !== undefined);
}

export function Exits({ recording, other }: { recording: Recording; other: Recording | null }) {
  const { report, note, window } = useReport(recording);
  const all = rowsOf(tableOf(report, "exits"));
  if (all.length === 0) {
    return (
      <Empty title="No exits">
        {window
          ? "Nothing left the guest in this span of time."
          : "The recording holds no kvm_exit events. Record on the host, at L0, to get them: kvmscope record."}
      </Empty>
    );
  }
  const filter = hash.value.q ?? "";
  const sort = hash.value.sort ?? "total_ns";
  const descending = hash.value.asc !== "1";
  const rows = sorted(
    all.filter((row) => matches(row, filter)),
    sort,
    descending,
  );
  const total = rows.reduce((sum, row) => sum + number(row, "total_ns"), 0);
  const exits = rows.reduce((sum, row) => sum + number(row, "count"), 0);
  const oneVcpu = new Set(all.map((row) => text(row, "vcpu"))).size === 1;
  const oneVm = new Set(all.map((row) => text(row, "vm"))).size === 1;
  const second = other ? byReason(rowsOf(tableOf(other.report, "exits"))) : null;
  // The other recording has a time of its own: what is compared is all of both.
  const here = byReason(rowsOf(tableOf(recording.report, "exits")));
  const most = Math.max(1, ...rows.map((row) => number(row, "total_ns")));
  // The bars tell p90, and the CSV has it.
  const hidden = [oneVm ? "vm" : "", oneVcpu ? "vcpu" : "", "p90_ns", ...(second ? QUANTILES : [])];
  const columns = COLUMNS.filter(([name]) => !hidden.includes(name));
  const gone = second ? [...second.keys()].filter((key) => !here.has(key)) : [];
  const bins = binsByRow(rowsOf(tableOf(report, "exit_bins")));
  const axis = axisOf(rows.flatMap((row) => [bins.get(keyOf(row)) ?? []]));
  const top = sorted(rows, "total_ns", true)[0];
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
        top
          ? `${counted(exits, "exit")} took ${duration(total)}; ${text(top, "reason")} at ${text(top, "level")} most of it, ${percent(number(top, "total_ns") / Math.max(1, total))}. Total is from exit to next entry, less time off the CPU. The bars count exits by how long they took, from ${duration(axis.from)} to ${duration(axis.to)} on one log scale, heights as square roots; ticks below are p50 and p99.${second ? ` Differences compare level and reason over both whole recordings, summed over VMs and vCPUs.${gone.length > 0 ? ` Only the other has ${gone.join(", ")}.` : ""}` : ""}`
          : "No row has all of these words."
      }
      tools={
        <input
          type="search"
          value={filter}
          placeholder="Filter: L1 vmread"
          aria-label="Filter rows"
          onInput={(event) => go({ q: event.currentTarget.value })}
        />
      }
    >
      <div class="table-box" tabIndex={0} role="region" aria-label="Table of exits">
        <table class="numbers">
          <thead>
            <tr>
              {columns.map(([name, title]) => [
                <th
                  key={name}
                  class={WORDS.includes(name) ? "" : "number"}
                  aria-sort={sort === name ? (descending ? "descending" : "ascending") : "none"}
                >
                  <button
                    type="button"
                    onClick={() => go({ sort: name, asc: sort === name && descending ? "1" : null })}
                  >
                    {title}
                    {sort === name ? (descending ? " ▾" : " ▴") : ""}
                  </button>
                </th>,
                second && (name === "count" || name === "total_ns") && (
                  <th key={`other ${name}`} class="number">
                    Other
                  </th>
                ),
                second && (name === "count" || name === "total_ns") && (
                  <th key={`difference ${name}`} class="number">
                    Difference
                  </th>
                ),
              ])}
              <th>Removed by</th>
              <th>
                <span class="axis-ends">
                  <span>{duration(axis.from)}</span>
                  <span>{duration(axis.to)}</span>
                </span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => {
              const reason = text(row, "reason");
              const key = `${text(row, "level")} ${reason}`;
              const finding = findingFor(recording.report, text(row, "vm"), reason);
              return (
                <tr key={`${text(row, "vm")}/${text(row, "vcpu")}/${key}`}>
                  {!oneVm && (
                    <td class="vm" title={text(row, "vm")}>
                      {text(row, "vm")}
                    </td>
                  )}
                  {!oneVcpu && <td>{text(row, "vcpu")}</td>}
                  <td class="level">
                    <Swatch state={levelState(text(row, "level"))} /> {text(row, "level")}
                  </td>
                  <td>
                    <b>{reason}</b>
                  </td>
                  <td class="number">{grouped(number(row, "count"))}</td>
                  {second && (
                    <Difference
                      a={here.get(key)?.count ?? 0}
                      b={second.get(key)?.count ?? 0}
                      print={grouped}
                    />
                  )}
                  <td class="number bar">
                    <i style={{ width: `${(100 * number(row, "total_ns")) / most}%` }} />
                    {duration(number(row, "total_ns"))}
                  </td>
                  {second ? (
                    <Difference
                      a={here.get(key)?.total_ns ?? 0}
                      b={second.get(key)?.total_ns ?? 0}
                      print={duration}
                    />
                  ) : (
                    QUANTILES.filter((name) => !hidden.includes(name)).map((name) => (
                      <td class="number" key={name}>
                        {duration(number(row, name))}
                      </td>
                    ))
                  )}
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
                    <Histogram row={row} bins={bins.get(keyOf(row)) ?? []} axis={axis} />
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </Figure>
  );
}

/** What the other recording has, and how far that is from this one. */
function Difference({ a, b, print }: { a: number; b: number; print: (value: number) => string }) {
  const change = b - a;
  const sign = change > 0 ? "+" : "−";
  const share = a > 0 ? ` (${sign}${((100 * Math.abs(change)) / a).toFixed(0)} %)` : "";
  return (
    <>
      <td class="number soft">{print(b)}</td>
      <td class="number">{change === 0 ? "same" : `${sign}${print(Math.abs(change))}${share}`}</td>
    </>
  );
}
