/** Which findings are gone, which are new, and which are still there. */
import type { Finding } from "../../data/types";
import { findingsOfBoth } from "../../maths/both";
import { counted } from "../../maths/format";
import { MARKS } from "../severity";
import type { Sides } from "./Names";

export function BothFindings({ before, after }: Sides) {
  const { gone, fresh, stay } = findingsOfBoth(before.report, after.report);
  return (
    <section class="page both-findings">
      <h2 class="heading">
        {counted(gone.length, "finding")} gone, {fresh.length} new, {stay.length} still there
      </h2>
      <p class="soft">
        From {before.id} to {after.id}. A finding is the same where rule and subject are, but for the number
        of a process. One that is gone is not one that was fixed: the other recording may lack what it was
        seen by, or the load.
      </p>
      <List title="Gone" findings={gone} none="Nothing that was found before is missing after." />
      <List title="New" findings={fresh} none="Nothing was found that was not found before." />
      <List title="Still there" findings={stay} none="No finding of before is found after." />
    </section>
  );
}

function List({ title, findings, none }: { title: string; findings: Finding[]; none: string }) {
  return (
    <>
      <h3>{title}</h3>
      {findings.length === 0 ? (
        <p class="soft">{none}</p>
      ) : (
        <ul class="told">
          {findings.map((finding) => (
            <li key={finding.id}>
              <span class={`severity ${finding.severity}`}>
                <i aria-hidden="true">{MARKS[finding.severity]}</i> {finding.severity}
              </span>{" "}
              {finding.title} <code class="rule">{finding.rule}</code>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
