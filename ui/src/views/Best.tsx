/** The changes that give most back: how much, what, the first command of the first, and the way to its card below. */
import type { Finding, Report } from "../data/types";
import { bestOf, between } from "../maths/findings";
import { amount, percent } from "../maths/format";
import { go } from "../state/store";
import { MARKS } from "./severity";

export function Best({ report }: { report: Report }) {
  const best = bestOf(report);
  if (best.length === 0) return null;
  const title = best.some(({ gives_back }) => gives_back) ? "What gives most back" : "What to change first";
  return (
    <section class="best" aria-label={title}>
      <h2>{title}</h2>
      <ol>
        {best.map((finding, i) => (
          <li key={finding.id} class={finding.severity}>
            <b class="much">{much(finding)}</b>
            <span class="of">{of(finding)}</span>
            <p>
              <i aria-hidden="true">{MARKS[finding.severity]}</i> {finding.title}
            </p>
            {i === 0 && finding.fix[0] && <pre tabIndex={0}>{finding.fix[0]}</pre>}
            <button type="button" class="link" onClick={() => go({ finding: finding.id })}>
              {finding.rule}: {finding.fix.length > 0 ? "what to run" : "what was seen"}
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}

function much({ gives_back, cost, severity }: Finding): string {
  if (gives_back) return gives_back.low > 0 ? percent(gives_back.share) : `up to ${percent(gives_back.high)}`;
  if (cost.value === null) return severity;
  return amount(cost.value, cost.unit.split(" ")[0] ?? "");
}

function of({ gives_back, cost }: Finding): string {
  // The page says at its top whose times are not real.
  if (gives_back) {
    const unit = gives_back.unit.replace(/^share |, emulated.*$/g, "");
    return gives_back.low > 0 ? `${unit}, ${between(gives_back)}` : unit;
  }
  if (cost.value === null) return "its cost is unknown";
  const [first, ...rest] = cost.unit.split(" ");
  return (["ns", "share", "bytes", "bytes/s"].includes(first!) ? rest : [first, ...rest]).join(" ");
}
