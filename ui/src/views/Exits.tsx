/** View 'Exits': which reasons cost most, per VM, vCPU and level; with a second recording, what changed. */
import type { Recording } from "../data/source";
import type { Report, Table } from "../data/types";
import { levelState } from "../draw/tokens";
import { counted, duration, grouped, percent } from "../maths/format";
import { findingFor } from "../maths/named";
import { byReason, csv, matches, number, type Row, rowsOf, sorted, text } from "../maths/rows";
import { go, hash } from "../state/store";
import { Empty, Figure, Swatch } from "./Figure";
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
  const oneVm = new Set(all.map((row) => text(row, "vm"))).size === 1;
  const columns = COLUMNS.filter(([name]) => name !== "vm" || !oneVm);
  const second = other ? byReason(rowsOf(tableOf(other.report, "exits"))) : null;
  // The other recording has a time of its own: what is compared is all of both.
  const here = byReason(rowsOf(tableOf(recording.report, "exits")));
  const most = Math.max(1, ...rows.map((row) => number(row, "total_ns")));
  const slowest = Math.max(2, ...all.map((row) => number(row, "max_ns")));
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
          ? `${counted(exits, "exit")} took ${duration(total)}; ${text(top, "reason")} at ${text(top, "level")} most of it, ${percent(number(top, "total_ns") / Math.max(1, total))}. Total is from exit to next entry, less time off the CPU. The strip shows p50, p90, p99 and the maximum on one log scale.${second ? " Differences compare level and reason over both whole recordings, summed over VMs and vCPUs." : ""}`
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
              {columns.map(([name, title]) => (
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
                </th>
              ))}
              <th>Spread</th>
              {second && <th class="number">Other: exits</th>}
              {second && <th class="number">Difference</th>}
              <th>Removed by</th>
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
                  <td>{text(row, "vcpu")}</td>
                  <td class="level">
                    <Swatch state={levelState(text(row, "level"))} /> {text(row, "level")}
                  </td>
                  <td>
                    <b>{reason}</b>
                  </td>
                  <td class="number">{grouped(number(row, "count"))}</td>
                  <td class="number bar">
                    <i style={{ width: `${(100 * number(row, "total_ns")) / most}%` }} />
                    {duration(number(row, "total_ns"))}
                  </td>
                  {["p50_ns", "p90_ns", "p99_ns", "max_ns"].map((name) => (
                    <td class="number" key={name}>
                      {duration(number(row, name))}
                    </td>
                  ))}
                  <td>
                    <Spread row={row} slowest={slowest} />
                  </td>
                  {second && <Difference a={here.get(key)?.count ?? 0} b={second.get(key)?.count ?? 0} />}
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
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </Figure>
  );
}

function Difference({ a, b }: { a: number; b: number }) {
  const change = b - a;
  return (
    <>
      <td class="number">{grouped(b)}</td>
      <td class="number">
        {change === 0
          ? "same"
          : `${change > 0 ? "+" : "−"}${grouped(Math.abs(change))}${a > 0 ? ` (${((100 * change) / a).toFixed(0)} %)` : ""}`}
      </td>
    </>
  );
}

/** Quantiles as marks on a log scale from 1 us to the slowest exit of the table. */
function Spread({ row, slowest }: { row: Row; slowest: number }) {
  const from = 3;
  const to = Math.max(from + 1, Math.log10(slowest));
  const x = (name: string) =>
    2 + (Math.max(0, Math.log10(Math.max(1, number(row, name))) - from) / (to - from)) * 116;
  return (
    <svg class="spread" width="120" height="16" aria-hidden="true">
      <line x1={x("p50_ns")} x2={x("max_ns")} y1="8" y2="8" stroke="var(--soft)" />
      <rect
        x={x("p50_ns")}
        width={Math.max(1, x("p90_ns") - x("p50_ns"))}
        y="5"
        height="6"
        fill="var(--ink)"
      />
      <line x1={x("p99_ns")} x2={x("p99_ns")} y1="3" y2="13" stroke="var(--ink)" stroke-width="1.5" />
      <circle cx={x("max_ns")} cy="8" r="2" fill="var(--page)" stroke="var(--ink)" />
    </svg>
  );
}
