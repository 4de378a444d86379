/** The rate that a measured chain carried without losing a packet: one number, its interval, and of which chain. */
import type { Report } from "../data/types";
import { lacksNonDrop, nonDrop } from "../maths/nondrop";

export function WithoutLoss({ report }: { report: Report }) {
  const found = nonDrop(report);
  if (!found && !lacksNonDrop(report)) return null;
  return (
    <section class="best" aria-label="Rate without loss">
      <h2>Rate without loss (NDR)</h2>
      {found ? (
        <>
          <b class="much">{found.much}</b>
          <span class="of">{found.interval}</span>
          <p>
            {found.chain}. {found.others}
          </p>
        </>
      ) : (
        <p>
          Unknown: rates are those at full load. The lab finds it with <code>--search ndr</code>.
        </p>
      )}
    </section>
  );
}
