/** The window as other viewers read it: opened in the Perfetto UI, or saved. Only a server makes it. */
import { openInPerfetto } from "../../data/perfetto";
import type { Recording } from "../../data/source";
import { counted, instant } from "../../maths/format";
import { notice, shown } from "../../state/store";

/** What is shown, in the Perfetto UI; nothing where no server has it. */
export function Perfetto({ recording }: { recording: Recording }) {
  if (!recording.perfetto) return null;
  const open = async () => {
    const { t0, t1 } = shown.value;
    notice.value = "Opening ui.perfetto.dev …";
    try {
      const made = recording.perfetto!(t0, t1);
      await openInPerfetto(
        made.then((it) => it.buffer),
        `${recording.id}, ${instant(t0)} to ${instant(t1)}`,
      );
      const { left_out } = await made;
      notice.value =
        left_out > 0
          ? `Opened in Perfetto, without the last ${counted(left_out, "slice")}.`
          : "Opened in Perfetto.";
    } catch (error) {
      notice.value = (error as Error).message;
    }
  };
  const save = async () => {
    const { t0, t1 } = shown.value;
    notice.value = "Making the trace …";
    try {
      const { buffer, left_out } = await recording.perfetto!(t0, t1);
      const name = `${recording.id}.pftrace`;
      saveAs(new Blob([buffer], { type: "application/octet-stream" }), name);
      notice.value = `${name} was saved${left_out > 0 ? `, without the last ${counted(left_out, "slice")}` : ""}.`;
    } catch (error) {
      notice.value = (error as Error).message;
    }
  };
  return (
    <>
      <button
        type="button"
        onClick={() => void open()}
        title="Opens what is shown in ui.perfetto.dev, in another tab. That page comes from the network; the trace stays in the browser."
      >
        Perfetto ↗
      </button>
      <button
        type="button"
        onClick={() => void save()}
        title="Saves what is shown as a file that Perfetto reads. It needs no network."
      >
        Save trace
      </button>
    </>
  );
}

function saveAs(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
