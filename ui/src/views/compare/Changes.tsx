/** Exits of two recordings beside each other: a row for each level and reason, per second, per chain or per unit of work. */
import { levelState } from "../../draw/tokens";
import {
  apart,
  basesOf,
  type Change,
  changeIn,
  changes,
  type Judged,
  judge,
  type Per,
} from "../../maths/compare";
import { counted, duration, grouped, rate } from "../../maths/format";
import { csv, matches, rowsOf, tableOf } from "../../maths/rows";
import { witnessed } from "../../maths/witness";
import { go, hash } from "../../state/store";
import { Empty, Figure, Swatch } from "../Figure";
import { Filter, LongTable, SortHead } from "../TableBox";
import { lengthOf, type Sides } from "./Names";
import { useCompared } from "./useCompared";

type Row = Change & { judged: Judged | string };

const GROUPS = ["count", "time"] as const;

/** What a column is sorted by; its name stands in the address. */
const KEYS: Record<string, (row: Row) => number | string> = {
  level: ({ level }) => level,
  reason: ({ reason }) => reason,
  count_before: ({ before }) => before.count,
  count_after: ({ after }) => after.count,
  count_change: ({ before, after }) => part(before.count, after.count),
  time_before: ({ before }) => before.time_ns,
  time_after: ({ after }) => after.time_ns,
  time_change: ({ before, after }) => part(before.time_ns, after.time_ns),
  verdict: ({ judged }) => (typeof judged === "string" ? "~" : judged.verdict),
};

/** How far from what it was, either way: half counts as much as twice. */
function part(before: number, after: number): number {
  return before === after ? 0 : Math.abs(Math.log(after / before));
}

export function Changes({ before, after }: Sides) {
  const { value: compared, error, loading } = useCompared(before, after);
  const rowsOfSide = ({ report }: Sides["before"]) =>
    witnessed(report, rowsOf(tableOf(report, "flow.exits")));
  const lacking = [before, after].find((side) => rowsOfSide(side).length === 0 || lengthOf(side) === 0);
  if (lacking) {
    return (
      <Empty title="These two cannot be compared">
        {lacking.id} contains no exits with times. Run <code>kvmscope record</code> on the host (L0) to record
        them.
      </Empty>
    );
  }
  const seconds: [number, number] = [lengthOf(before) / 1e9, lengthOf(after) / 1e9];
  const bases = basesOf([before.report, after.report], seconds, compared);
  const per = bases.find(({ id }) => id === hash.value.per) ?? bases[0]!;
  const names = apart(before.id, after.id);
  const filter = hash.value.q ?? "";
  const all: Row[] = changes(
    { rows: rowsOfSide(before), units: per.before },
    { rows: rowsOfSide(after), units: per.after },
  ).map((change) => ({ ...change, judged: judge(compared, per, change.level, change.reason) }));
  const sort = hash.value.sort ?? "";
  const key = KEYS[sort];
  const descending = hash.value.asc !== "1";
  const rows = all
    .filter(({ level, reason }) => matches({ level, reason }, filter))
    .sort((a, b) => (key ? ordered(key(a), key(b), descending) : mostTime(b) - mostTime(a)));
  const why = [...new Set(all.flatMap(({ judged }) => (typeof judged === "string" ? [judged] : [])))];
  return (
    <Figure
      id="changes"
      title={`What changed in the exits, per ${per.unit}?`}
      picture={false}
      note={error ? `There are no verdicts: ${error}` : loading ? "Reading the comparison …" : ""}
      csv={() =>
        csv(
          [
            "level",
            "reason",
            `before_per_${per.unit}`,
            `after_per_${per.unit}`,
            `before_ns_per_${per.unit}`,
            `after_ns_per_${per.unit}`,
            "verdict",
            "interval",
          ],
          rows.map(({ level, reason, before, after, judged }) => [
            level,
            reason,
            before.count,
            after.count,
            before.time_ns,
            after.time_ns,
            ...(typeof judged === "string" ? [null, null] : [judged.verdict, judged.interval]),
          ]),
        )
      }
      caption={`Before: ${before.id}, ${duration(seconds[0] * 1e9)}${unitsOf(per, "before")}. After: ${after.id}, ${duration(seconds[1] * 1e9)}${unitsOf(per, "after")}. Each row is one reason at one level, summed over VMs and vCPUs. Time runs from an exit to the next entry, without time off the CPU. Verdicts are those of kvmscope compare: these are two runs, and whether other runs would differ too takes several recordings a side.${why.length > 0 ? ` A dash: ${why.join("; ")}.` : ""}`}
      tools={
        <>
          <select
            aria-label="Divided by"
            value={per.id}
            onChange={(event) => go({ per: event.currentTarget.value })}
          >
            {bases.map(({ id, unit }) => (
              <option key={id} value={id}>
                per {unit}
              </option>
            ))}
          </select>
          <Filter example="L1 msr" />
        </>
      }
    >
      <LongTable
        title="Table of changes"
        count={rows.length}
        heads={2}
        head={
          <>
            <tr>
              <Head name="level" title="Level" rows={2} />
              <Head name="reason" title="Reason" rows={2} />
              <th class="number" colspan={3}>
                Exits per {per.unit}
              </th>
              <th class="number" colspan={3}>
                Time in them per {per.unit}
              </th>
              <Head name="verdict" title="Verdict" rows={2} />
            </tr>
            <tr>
              {GROUPS.flatMap((group) => [
                <Head
                  key={`${group}b`}
                  name={`${group}_before`}
                  title="Before"
                  of={before.id}
                  short={names[0]}
                />,
                <Head
                  key={`${group}a`}
                  name={`${group}_after`}
                  title="After"
                  of={after.id}
                  short={names[1]}
                />,
                <Head key={`${group}c`} name={`${group}_change`} title="Change" />,
              ])}
            </tr>
          </>
        }
        row={(i) => {
          const { level, reason, before, after, judged } = rows[i]!;
          return (
            <tr key={`${level}/${reason}`}>
              <td class="level">
                <Swatch state={levelState(level)} /> {level}
              </td>
              <td>
                <b>{reason}</b>
              </td>
              <td class="number">{rate(before.count)}</td>
              <td class="number">{rate(after.count)}</td>
              <td class="number">{changeIn(before.count, after.count)}</td>
              <td class="number">{duration(Math.round(before.time_ns))}</td>
              <td class="number">{duration(Math.round(after.time_ns))}</td>
              <td class="number">{changeIn(before.time_ns, after.time_ns)}</td>
              <td class="verdict">
                {typeof judged === "string" ? (
                  <span title={judged}>–</span>
                ) : (
                  <>
                    {judged.verdict} <small>{judged.interval}</small>
                  </>
                )}
              </td>
            </tr>
          );
        }}
      />
      {rows.length < all.length && (
        <p class="soft">
          {grouped(rows.length)} of {counted(all.length, "row")}, filtered by "{filter}".
        </p>
      )}
    </Figure>
  );
}

const mostTime = ({ before, after }: Row) => Math.max(before.time_ns, after.time_ns);

function ordered(a: number | string, b: number | string, descending: boolean): number {
  if (typeof a === "string") return a.localeCompare(String(b)) * (descending ? 1 : -1);
  // Infinite both: one is new, the other is gone.
  const by = a === b ? 0 : a - Number(b);
  return descending ? -by : by;
}

/** `, 149 chains`: how many a side is divided by, where that is not its length. */
function unitsOf({ id, unit, before, after }: Per, side: "before" | "after"): string {
  if (id === "second") return "";
  const count = side === "before" ? before : after;
  // `exits of L2`, and GB stay GB.
  const plural = /^[a-z]+/.test(unit) ? unit.replace(/^[a-z]+/, (word) => `${word}s`) : unit;
  return `, ${grouped(count)} ${plural}`;
}

interface HeadProps {
  name: string;
  title: string;
  /** The recording, and what of its name fits. */
  of?: string;
  short?: string;
  rows?: number;
}

function Head({ name, title, of, short, rows = 1 }: HeadProps) {
  const on = hash.value.sort === name;
  const descending = hash.value.asc !== "1";
  const isText = ["level", "reason", "verdict"].includes(name);
  return (
    <SortHead
      title={title}
      isText={isText}
      sorted={on ? (descending === !isText ? "descending" : "ascending") : "none"}
      sort={() => go({ sort: name, asc: on && descending ? "1" : null })}
      rows={rows}
      below={short}
      full={of}
    />
  );
}
