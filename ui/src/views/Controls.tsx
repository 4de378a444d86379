/** What a reader may set of a section: it is computed anew as soon as anything moves. */
import { useEffect, useState } from "preact/hooks";
import type { Recording } from "../data/source";
import type { Control, Section } from "../data/types";
import { isSlider, settings } from "../maths/controls";

/** The section as it is set now, and the row of controls that sets it. */
export function useControls(recording: Recording, section: Section) {
  const [chosen, choose] = useState<Record<string, string>>({});
  const [answer, setAnswer] = useState<{ section: Section; error: string | null }>({ section, error: null });
  const wanted = settings(section.controls ?? [], chosen);
  const key = JSON.stringify(wanted);
  useEffect(() => {
    if (Object.keys(wanted).length === 0 || !recording.set) {
      setAnswer({ section, error: null });
      return;
    }
    const newer = new AbortController();
    recording.set(section.id, wanted, newer.signal).then(
      (computed) => !newer.signal.aborted && setAnswer({ section: computed, error: null }),
      (error: Error) => !newer.signal.aborted && setAnswer((before) => ({ ...before, error: error.message })),
    );
    return () => newer.abort();
  }, [recording, section, key]);
  const controls =
    section.controls?.length && recording.set ? (
      <Controls
        controls={section.controls}
        chosen={chosen}
        choose={choose}
        error={answer.error}
        isChanged={Object.keys(wanted).length > 0}
      />
    ) : null;
  return { section: answer.section, controls };
}

function Controls({
  controls,
  chosen,
  choose,
  error,
  isChanged,
}: {
  controls: Control[];
  chosen: Record<string, string>;
  choose: (chosen: Record<string, string>) => void;
  error: string | null;
  isChanged: boolean;
}) {
  return (
    <form class="controls" aria-label="What if" onSubmit={(event) => event.preventDefault()}>
      {controls.map((control) => {
        const value = chosen[control.id] ?? control.values[control.chosen]!;
        const set = (to: string) => choose({ ...chosen, [control.id]: to });
        return (
          <div key={control.id} class="control">
            <label for={`control-${control.id}`}>{control.title}</label>
            {isSlider(control) ? (
              <>
                <input
                  id={`control-${control.id}`}
                  type="range"
                  min={0}
                  max={control.values.length - 1}
                  value={control.values.indexOf(value)}
                  aria-valuetext={value}
                  onInput={(event) => set(control.values[Number(event.currentTarget.value)]!)}
                />
                <output>{value}</output>
              </>
            ) : (
              <select
                id={`control-${control.id}`}
                value={value}
                onChange={(event) => set(event.currentTarget.value)}
              >
                {control.values.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            )}
          </div>
        );
      })}
      <button type="button" disabled={!isChanged} onClick={() => choose({})}>
        Reset
      </button>
      {error && (
        <p class="note" role="alert">
          {error}
        </p>
      )}
    </form>
  );
}
