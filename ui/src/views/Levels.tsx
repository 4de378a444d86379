/** The levels at a glance: which machines run inside each other, what leaves them, and where all their time goes. */
import type { LevelsData, Storey } from "../data/types";
import {
  ACROSS,
  ARROW,
  arrow,
  BAR,
  BOX,
  FALL,
  GAP,
  KEY,
  KEY_WIDTH,
  LANE,
  type Places,
  placesOf,
  thickness,
  VMM,
  WORDS,
} from "../draw/levels";
import { hueOf } from "../draw/tokens";
import { percent, perSecond, plain } from "../maths/format";

/** A wide picture is made no smaller than this, and scrolls in its box: its letters stay readable. */
const READABLE = 0.92;
const BOLD = { "font-weight": 600 };

export function Levels({ title, levels }: { title: string; levels: LevelsData }) {
  const places = placesOf(levels);
  const { width, height, column: columnWidth, columns, ground } = places;
  const own = levels.ground;
  // Where exits were not recorded, that nothing was seen in KVM says nothing.
  const known = (share: number) => (share === 0 && own.to_vmm_per_s === null ? "not known" : percent(share));
  const beside = ground + BOX / 2;
  return (
    <div class="wide" tabIndex={0} role="group" aria-label={title}>
      <svg
        class="picture levels"
        viewBox={`0 0 ${width} ${height}`}
        style={{ maxWidth: `${width}px`, minWidth: `${Math.round(width * READABLE)}px` }}
        role="img"
        aria-label={title}
      >
        {levels.columns.map((column, i) => {
          const x = i * (columnWidth + GAP);
          const top = (at: number) => ground - (column.storeys.length - at) * (BOX + FALL);
          return (
            <g key={column.title}>
              <text x={x} y={top(0) - 10} {...BOLD}>
                {column.title}{" "}
                <tspan class="faint" font-weight="400">
                  {column.about}
                </tspan>
              </text>
              {column.storeys.map((storey, at) => {
                const wide = columnWidth - LANE * at;
                const below = column.storeys[at + 1];
                return (
                  <g key={storey.level}>
                    <Box
                      x={x}
                      y={top(at)}
                      width={wide}
                      hue={storey.hue}
                      name={`${storey.level} guest`}
                      share={percent(storey.share)}
                    />
                    <Leaves
                      storey={storey}
                      x={x}
                      y={top(at) + BOX}
                      width={wide}
                      ground={ground}
                      outer={below?.level ?? null}
                      most={levels.most_per_s}
                    />
                  </g>
                );
              })}
            </g>
          );
        })}
        <Box
          x={0}
          y={ground}
          width={columns}
          hue="handling_l1"
          name={`${own.level}: KVM`}
          share={known(own.kvm_share)}
        />
        {own.to_vmm_per_s !== null && (
          <>
            <Arrow
              from={[columns, beside]}
              to={[columns + ACROSS, beside]}
              thick={thickness(own.to_vmm_per_s, levels.most_per_s)}
            />
            <text x={columns + ACROSS / 2 - 3} y={beside - 9} text-anchor="middle">
              {perSecond(own.to_vmm_per_s)}/s
            </text>
          </>
        )}
        <Box
          x={columns + ACROSS}
          y={ground}
          width={VMM}
          hue="userspace"
          name="VMM"
          share={known(own.vmm_share)}
        />
        <Time levels={levels} places={places} />
      </svg>
    </div>
  );
}

/** What leaves a box: down to the level below, and past it to the ground. */
function Leaves({
  storey,
  x,
  y,
  width,
  ground,
  outer,
  most,
}: {
  storey: Storey;
  x: number;
  y: number;
  width: number;
  ground: number;
  /** The level that handles some of its exits; null for the one above the ground. */
  outer: string | null;
  most: number;
}) {
  const { exits_per_s: exits, reflected_per_s: reflected, for_each: each } = storey;
  if (exits === null)
    return (
      <text class="faint" x={x + WORDS} y={y + 27}>
        exits/s not known
      </text>
    );
  const down = outer === null ? exits : reflected;
  const rest = Math.max(0, exits - (down ?? 0));
  const past = x + width - LANE / 2;
  return (
    <>
      {down !== null && (
        <>
          <Arrow from={[x + ARROW, y]} to={[x + ARROW, y + FALL]} thick={thickness(down, most)} />
          <text x={x + WORDS} y={y + 20}>
            {outer === null
              ? `${perSecond(down)} exit${down === 1 ? "" : "s"}/s`
              : `${perSecond(down)}/s handled by ${outer}`}
          </text>
        </>
      )}
      {each !== null && (
        <text x={x + WORDS} y={y + 36} {...BOLD}>
          {plain(each)} for each that it handles
        </text>
      )}
      {outer !== null && (
        <>
          <Arrow from={[past, y]} to={[past, ground]} thick={thickness(rest, most)} />
          <text x={past - 8} y={y + 20} text-anchor="end">
            {perSecond(rest)}/s
          </text>
        </>
      )}
    </>
  );
}

function Box({
  x,
  y,
  width,
  hue,
  name,
  share,
}: {
  x: number;
  y: number;
  width: number;
  hue: string;
  name: string;
  share: string;
}) {
  const middle = y + BOX / 2 + 4;
  return (
    <>
      <rect x={x} y={y} width={width} height={BOX} rx="4" fill="none" stroke="var(--soft)" />
      <rect x={x} y={y} width="10" height={BOX} rx="3" fill={hueOf(hue)} />
      <text x={x + 18} y={middle}>
        {name}
      </text>
      <text x={x + width - 10} y={middle} text-anchor="end" {...BOLD}>
        {share}
      </text>
    </>
  );
}

function Arrow({ from, to, thick }: { from: [number, number]; to: [number, number]; thick: number }) {
  const { shaft, head } = arrow(...from, ...to, thick);
  return (
    <>
      <path d={shaft} fill="none" stroke="var(--ink)" stroke-width={thick} />
      <path d={head} fill="var(--ink)" />
    </>
  );
}

/** One bar of all time, and its legend. */
function Time({ levels: { time }, places }: { levels: LevelsData; places: Places }) {
  const { width, bar, keysALine } = places;
  let along = 0;
  return (
    <>
      <text class="faint" y={bar - 8}>
        time of all vCPUs
      </text>
      {time.map(({ label, hue, share }, at) => {
        const x = along * width;
        along += share;
        const [keyX, keyY] = [
          (at % keysALine) * KEY_WIDTH,
          bar + BAR + 10 + Math.floor(at / keysALine) * KEY,
        ];
        return (
          <g key={label}>
            <rect
              x={x}
              y={bar}
              width={Math.max(0.5, share * width)}
              height={BAR}
              fill={hueOf(hue)}
              stroke="var(--page)"
              stroke-width="0.6"
            >
              <title>
                {label} {percent(share)}
              </title>
            </rect>
            <rect
              x={keyX}
              y={keyY}
              width="12"
              height="12"
              fill={hueOf(hue)}
              stroke="var(--soft)"
              stroke-width="0.5"
            />
            <text x={keyX + 18} y={keyY + 10.5}>
              {label} <tspan {...BOLD}>{percent(share)}</tspan>
            </text>
          </g>
        );
      })}
    </>
  );
}
