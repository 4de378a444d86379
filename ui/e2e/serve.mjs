// Servers of the steps: the program's own, or the stand-in.
import { spawn } from "node:child_process";
import { resolve } from "node:path";

/** A server of `folder` on a free port, and the address that it prints. */
export async function start({ program, folder, mock }) {
  const [command, args] = mock
    ? [process.execPath, [resolve(import.meta.dirname, "../mock/server.mjs"), folder, "0"]]
    : [program, ["serve", folder, "--port", "0"]];
  const child = spawn(command, args, { env: { ...process.env, KVMSCOPE: program } });
  let said = "";
  const address = new Promise((found, failed) => {
    child.stdout.on("data", (bytes) => {
      said += bytes;
      const at = said.match(/http:\/\/\S+/)?.[0];
      if (at) found(at);
    });
    child.stderr.on("data", (bytes) => {
      said += bytes;
    });
    child.on("exit", (code) => failed(new Error(`${command} ended with ${code}: ${said}`)));
  });
  return { child, base: await address };
}
