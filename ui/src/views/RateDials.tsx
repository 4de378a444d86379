/** Rates of packets on dials: the hand, the ceiling as a mark, and diamonds for what others published. */
import type { Gauge, GaugeGroup } from "../data/types";
import { bitsPerSecond, packetsPerSecond } from "../maths/format";
import { onDial } from "../maths/gauges";
import { Face } from "./Dial";

/** How far out diamonds are. */
const DIAMONDS = 96;

export function RateDials({ groups }: { groups: GaugeGroup[] }) {
  return (
    <>
      {groups.map((group) => (
        <section key={group.title}>
          <p>
            <b>{group.title}</b>
          </p>
          <div class="dials">
            {group.gauges.map((gauge) => (
              <Dial key={gauge.label} gauge={gauge} subject={group.title} />
            ))}
          </div>
        </section>
      ))}
    </>
  );
}

function Dial({ gauge, subject }: { gauge: Gauge; subject: string }) {
  const { label, all, each, ceiling, published_pps: published, end_pps: end } = gauge;
  const place = (pps: number) => (end > 0 ? pps / end : 0);
  const [figure = "", unit = ""] = packetsPerSecond(all.pps).split(" ");
  const bits = bitsPerSecond(all.bits_per_s);
  const most = `ceiling ${packetsPerSecond(ceiling.pps)}, ${ceiling.resource}`;
  return (
    <div class="rate">
      <b>{label}</b>
      <svg
        class="picture"
        data-heading={`${subject}, ${label}, ${all.of}, ${most}`}
        viewBox="-104 -102 208 180"
        role="img"
        aria-label={`${label}, ${all.of}: ${figure} ${unit}, ${bits}`}
      >
        <Face
          share={place(all.pps)}
          fill="var(--soft)"
          figure={figure}
          unit={unit}
          end={packetsPerSecond(end).split(" ")[0]!}
          marks={[place(ceiling.pps)]}
        />
        <text class="faint" y="46" text-anchor="middle" font-size="12">
          {bits}
        </text>
        {published.map((pps) => {
          const { x, y } = onDial(place(pps), DIAMONDS);
          return <path key={pps} d={`M${x - 5} ${y}l5-5l5 5l-5 5z`} fill="var(--ink)" />;
        })}
      </svg>
      <span>{all.of}</span>
      {each && <span>{`${each.of} ${packetsPerSecond(each.pps)}, ${bitsPerSecond(each.bits_per_s)}`}</span>}
      <span class="soft">{most}</span>
      {published.length > 0 && (
        <span class="soft">{`◆ published ${published.map((pps) => Number((pps / 1e6).toPrecision(3))).join(", ")} Mpps`}</span>
      )}
    </div>
  );
}
