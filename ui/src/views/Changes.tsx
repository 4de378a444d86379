/** Exits of two recordings beside each other: a row for each level and reason, per second, before, after and the change. */
import type { Recording } from "../data/source";
import { levelState } from "../draw/tokens";
import { changeIn, changes } from "../maths/compare";
import { counted, duration, grouped, rate } from "../maths/format";
import { csv, matches, rowsOf, tableOf } from "../maths/rows";
import { hash } from "../state/store";
import { Empty, Figure, Swatch } from "./Figure";
import { Filter, TableBox } from "./TableBox";

/** Exits of a recording and its length; without a timeline it has no rates. */
function sideOf(recording: Recording) {
  const span = recording.timeline?.span;
  const seconds = span ? (span.to_ns - span.from_ns) / 1e9 : 0;
  return { rows: rowsOf(tableOf(recording.report, "flow.exits")), seconds };
}

export function Changes({ before, after }: { before: Recording; after: Recording }) {
  const [first, second] = [sideOf(before), sideOf(after)];
  const lacking = [
    { side: first, id: before.id },
    { side: second, id: after.id },
  ].find(({ side }) => side.rows.length === 0 || side.seconds === 0);
  if (lacking) {
    return (
      <Empty title="These two cannot be compared">
        {lacking.id} contains no exits with times. Run <code>kvmscope record</code> on the host (L0) to record
        them.
      </Empty>
    );
  }
  const filter = hash.value.q ?? "";
  const all = changes(first, second).sort(
    (a, b) => Math.max(b.before.time_ns, b.after.time_ns) - Math.max(a.before.time_ns, a.after.time_ns),
  );
  const rows = all.filter(({ level, reason }) => matches({ level, reason }, filter));
  return (
    <Figure
      id="changes"
      title="What changed in the exits?"
      picture={false}
      csv={() =>
        csv(
          ["level", "reason", "before_per_s", "after_per_s", "before_ns_per_s", "after_ns_per_s"],
          rows.map(({ level, reason, before, after }) => [
            level,
            reason,
            before.count,
            after.count,
            before.time_ns,
            after.time_ns,
          ]),
        )
      }
      caption={`Before: ${before.id}, ${duration(first.seconds * 1e9)}. After: ${after.id}, ${duration(second.seconds * 1e9)}. Each row is one reason at one level, summed over VMs and vCPUs and divided by the length of its recording. Time runs from an exit to the next entry, without time off the CPU. These are two runs: kvmscope compare ${before.id} ${after.id} says what differs between them by more than each varies within itself; whether other runs would differ too takes several recordings a side.`}
      tools={<Filter example="L1 msr" />}
    >
      <TableBox title="Table of changes">
        <thead>
          <tr>
            <th rowspan={2}>Level</th>
            <th rowspan={2}>Reason</th>
            <th class="number" colspan={3}>
              Exits per second
            </th>
            <th class="number" colspan={3}>
              Time in them per second
            </th>
          </tr>
          <tr>
            {[0, 1].flatMap((half) =>
              ["Before", "After", "Change"].map((title) => (
                <th class="number" key={`${half}${title}`}>
                  {title}
                </th>
              )),
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ level, reason, before, after }) => (
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
            </tr>
          ))}
        </tbody>
      </TableBox>
      {rows.length < all.length && (
        <p class="soft">
          {grouped(rows.length)} of {counted(all.length, "row")}, filtered by "{filter}".
        </p>
      )}
    </Figure>
  );
}
