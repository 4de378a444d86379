/** View 'Gauges' of a measured service chain: the samples of its trials played back, one after the other. */
import { useEffect, useState } from "preact/hooks";
import type { RateLook } from "../data/live";
import { go, hash } from "../state/store";
import { Player } from "./Player";
import { Rates } from "./Rates";

const SPEEDS = [0.5, 1, 2, 4, 16];

export function Replay({ id, looks }: { id: string; looks: RateLook[] }) {
  const last = looks.length - 1;
  const asked = Number(hash.value.at ?? 1);
  const start = asked >= 0 && asked <= 1 ? Math.round(asked * last) : last;
  const [index, setIndex] = useState(start);
  const [playing, setPlaying] = useState(false);
  const speed = SPEEDS.find((it) => String(it) === hash.value.speed) ?? 1;
  const now = looks[index]!;
  useEffect(() => {
    if (!playing) return;
    // A bar jumps as it did on the wall: nothing moves in between, for nothing was counted there.
    const length = (now.to_ns - now.from_ns) / 1e6 / speed;
    const timer = setTimeout(() => {
      if (index < last) setIndex(index + 1);
      else setPlaying(false);
    }, length);
    return () => clearTimeout(timer);
  }, [playing, index, speed, last, now]);
  const seek = (to: number) => {
    setIndex(to);
    go({ at: (to / Math.max(1, last)).toFixed(4) });
  };
  return (
    <Rates
      id="replay"
      looks={looks}
      index={index}
      tools={
        <Player
          id={id}
          playing={playing}
          play={() => {
            if (index >= last) setIndex(0);
            setPlaying(!playing);
          }}
          speeds={SPEEDS}
          speed={speed}
          label="Sample"
          words={`${index + 1} of ${looks.length}`}
          value={index}
          most={last}
          seek={seek}
        />
      }
    />
  );
}
