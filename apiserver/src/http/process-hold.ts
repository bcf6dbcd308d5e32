// An open server keeps its process alive. A test that forgot to close it would hang without a word, so the word is said when nothing else is left.
import type { Listener } from "./listener.js";

const open = new Set<Listener>();

/** Lets a listener keep the process alive, and says so on standard error where nothing else does, until the returned function is called. */
export function holdProcess(listener: Listener): () => void {
  if (open.size === 0) process.on("beforeExit", tell);
  open.add(listener);
  return () => {
    if (!open.delete(listener) || open.size > 0) return;
    process.off("beforeExit", tell);
  };
}

function tell(): void {
  for (const listener of open) {
    listener.ref();
    process.stderr.write(
      `the API server at ${listener.url} keeps this process alive: call its close(), or start it with unref: true\n`,
    );
  }
  open.clear();
  process.off("beforeExit", tell);
}
