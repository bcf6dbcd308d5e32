import type { ClassicLevel } from "classic-level";
import type { StoredState, StoredWrite } from "../storage/store.js";
import { damaged, problemOf } from "./open-level.js";
import { COMPACTED, readVersion, SECRET, STATE_KEY, unsealed, VERSION, type FolderState } from "./records.js";

/** What a folder holds. */
export interface FolderContent {
  readonly state: FolderState;
  readonly secrets: Map<string, string>;
  /** The objects and their history; undefined in a new folder. */
  readonly restored: StoredState | undefined;
}

/**
 * Reads a folder as a whole.
 *
 * @throws an error that names what is damaged: nothing is left out silently.
 */
export async function readFolder(level: ClassicLevel, path: string): Promise<FolderContent> {
  const [compacted, secrets] = [new Map<string, number>(), new Map<string, string>()];
  const writes: StoredWrite[] = [];
  let state: FolderState | undefined;
  for await (const [key, value] of entriesOf(level, path)) {
    const text = unsealed(value);
    if (text === undefined) throw damaged(path, `${key} is not what was written`);
    if (key === STATE_KEY) state = JSON.parse(text) as FolderState;
    else if (key.startsWith(SECRET)) secrets.set(key.slice(SECRET.length), text);
    else if (key.startsWith(COMPACTED)) compacted.set(key.slice(COMPACTED.length), Number(text));
    else writes.push({ revision: Number(key.slice(VERSION.length)), ...readVersion(text) });
  }
  if (state === undefined) {
    if (writes.length > 0) throw damaged(path, "it says nothing of its state");
    return { state: { format: 1, revision: 0, versions: 0, sum: 0 }, secrets, restored: undefined };
  }
  checkState(path, state, writes);
  return {
    state,
    secrets,
    restored: state.revision === 0 ? undefined : { revision: state.revision, compacted, writes },
  };
}

function checkState(path: string, { format, versions, sum }: FolderState, writes: readonly StoredWrite[]): void {
  if (format !== 1) throw new Error(`the data folder ${path} was written by a newer version of this package`);
  const found = writes.reduce((total, { revision }) => total + revision, 0);
  if (writes.length === versions && found === sum) return;
  throw damaged(path, `it has ${writes.length} of ${versions} versions of objects`);
}

async function* entriesOf(level: ClassicLevel, path: string): AsyncGenerator<[string, string]> {
  try {
    yield* level.iterator();
  } catch (error) {
    throw damaged(path, problemOf(error));
  }
}
