/** The sheet of keys and gestures. */
import { useEffect, useRef } from "preact/hooks";
import { GESTURES, KEYS } from "../state/keys";
import { helpOpen } from "../state/store";

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class="help"
      aria-label="Keyboard and mouse"
      onClose={() => {
        helpOpen.value = false;
      }}
    >
      {/* The button has the focus, and what has the focus is scrolled into view: it stands at the top. */}
      <header>
        <h2>Keyboard</h2>
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </header>
      <Sheet rows={KEYS} />
      <h2>Mouse</h2>
      <Sheet rows={GESTURES} />
      <p>The address contains recording, view, window and filter: a copy of it opens what you see.</p>
    </dialog>
  );
}

function Sheet({ rows }: { rows: [string, string][] }) {
  return (
    <dl>
      {rows.map(([key, what]) => (
        <div key={key}>
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
  );
}
