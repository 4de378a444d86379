/** Tools of a flame: one step up from the part that is open, and what is looked for in the picture. */
import { go, hash } from "../state/store";

interface Props {
  /** The part that is open, by the names from the top. */
  focus: string[];
  open: (path: string[]) => void;
  /** What the field says to those who cannot see it. */
  label: string;
}

export function FlameTools({ focus, open, label }: Props) {
  return (
    <>
      {focus.length > 0 && (
        <button type="button" onClick={() => open(focus.slice(0, -1))}>
          up
        </button>
      )}
      <input
        type="search"
        value={hash.value.q ?? ""}
        placeholder="Find: vmread"
        aria-label={label}
        onInput={(event) => go({ q: event.currentTarget.value })}
      />
    </>
  );
}
