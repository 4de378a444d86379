/** Rates of packets: a number and a bar up to the ceiling, with diamonds for what others published. */
import type { Gauge, GaugeGroup } from "../data/types";
import { bitsPerSecond, packetsPerSecond } from "../maths/format";
import { Bar, Figures } from "./Gauge";

export function RateGauges({ groups }: { groups: GaugeGroup[] }) {
  // One scale for all: a longer bar is more packets.
  const end = Math.max(0, ...groups.flatMap(({ gauges }) => gauges.map(({ end_pps }) => end_pps)));
  return (
    <>
      {groups.map((group) => (
        <section key={group.title}>
          <p>
            <b>{group.title}</b>
          </p>
          <div class="gauges">
            {group.gauges.map((gauge) => (
              <Rate key={gauge.label} gauge={gauge} subject={group.title} end={end} />
            ))}
          </div>
        </section>
      ))}
    </>
  );
}

function Rate({ gauge, subject, end }: { gauge: Gauge; subject: string; end: number }) {
  const { label, all, each, ceiling, published_pps: published } = gauge;
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
        viewBox="-6 14 212 52"
        role="img"
        aria-label={`${label}, ${all.of}: ${figure} ${unit}, ${bits}`}
      >
        <Figures figure={figure} unit={unit} beside={bits} />
        <Bar
          share={place(all.pps)}
          fill="var(--soft)"
          ceiling={place(ceiling.pps)}
          published={published.map(place)}
        />
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
