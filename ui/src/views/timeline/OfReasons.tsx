/** Reasons of the slices in an area, what took longest first: a report file has none. */
import type { Reasons, State } from "../../data/types";
import { counted, duration, grouped } from "../../maths/format";

export function OfReasons({ reasons: { reasons, left_out }, states }: { reasons: Reasons; states: State[] }) {
  return (
    <>
      {reasons.length > 0 && (
        <table class="numbers">
          <thead>
            <tr>
              <th>Reason</th>
              <th>State</th>
              <th class="number">Slices</th>
              <th class="number">Time</th>
            </tr>
          </thead>
          <tbody>
            {reasons.map(({ state, detail, slices, time_ns }) => (
              <tr key={`${state}/${detail}`}>
                <td>
                  <b>{detail}</b>
                </td>
                <td>{states[state]!.title}</td>
                <td class="number">{grouped(slices)}</td>
                <td class="number">{duration(time_ns)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {left_out > 0 && <p class="soft">and {counted(left_out, "other reason")} that took less</p>}
    </>
  );
}
