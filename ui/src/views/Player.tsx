/** What plays a recording back: start and stop, speed, position, and the way to its live gauges. */
import { go, recordings } from "../state/store";
import { Wall } from "./Wall";

interface Props {
  /** Of the recording. */
  id: string;
  playing: boolean;
  play: () => void;
  speeds: number[];
  speed: number;
  /** What the position is of. */
  label: string;
  words?: string;
  value: number;
  most: number;
  step?: number;
  seek: (to: number) => void;
}

export function Player({
  id,
  playing,
  play,
  speeds,
  speed,
  label,
  words,
  value,
  most,
  step = 1,
  seek,
}: Props) {
  return (
    <>
      <button type="button" aria-pressed={playing} onClick={play}>
        {playing ? "Pause" : "Play"}
      </button>
      <select
        aria-label="Speed"
        value={String(speed)}
        onChange={(event) => go({ speed: event.currentTarget.value })}
      >
        {speeds.map((it) => (
          <option key={it} value={String(it)}>
            {it}×
          </option>
        ))}
      </select>
      <input
        type="range"
        min="0"
        max={most}
        step={step}
        aria-label={label}
        aria-valuetext={words}
        value={value}
        onInput={(event) => seek(Number(event.currentTarget.value))}
      />
      {recordings.value?.some((it) => it.id === id && it.live) && (
        <button type="button" onClick={() => go({ live: id }, true)}>
          Live
        </button>
      )}
      <Wall />
    </>
  );
}
