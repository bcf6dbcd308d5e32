import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ClassicLevel } from "classic-level";

const DAMAGE_KEY = "damage";

/**
 * Opens the LevelDB of a folder.
 *
 * LevelDB leaves out what it cannot read of its log and starts from nothing without its file CURRENT; here both are failures, also the next time.
 */
export async function openLevel(path: string): Promise<ClassicLevel> {
  const { ClassicLevel } = await loadLibrary();
  const files = await readdir(path);
  if (!files.includes("CURRENT") && files.some((file) => /\.(ldb|log)$/.test(file)))
    throw damaged(path, "the file CURRENT is missing");
  const level = new ClassicLevel(path, { keyEncoding: "utf8", valueEncoding: "utf8" });
  try {
    await level.open();
  } catch (error) {
    throw openFailure(path, error);
  }
  const damage = (await level.get(DAMAGE_KEY)) ?? (await lostBytes(path));
  if (damage === undefined) return level;
  await level.put(DAMAGE_KEY, damage, { sync: true });
  await level.close();
  throw damaged(path, damage);
}

// What LevelDB leaves out it tells in its own log, which is new with every start.
async function lostBytes(path: string): Promise<string | undefined> {
  const text = await readFile(join(path, "LOG"), "utf8").catch(() => "");
  return /^.* ([^ ]+: dropping \d+ bytes; .*)$/m.exec(text)?.[1];
}

/** Returns what a failure of LevelDB says of its cause. */
export function problemOf(error: unknown): string {
  const { cause, message } = error as Error;
  return cause instanceof Error ? cause.message : message;
}

/** Returns the failure of a folder that is damaged. */
export function damaged(path: string, what: string): Error {
  return new Error(
    `the data folder ${path} is damaged: ${what}. Restore a copy of it, or delete it to start from nothing`,
  );
}

// Who keeps nothing does without it.
async function loadLibrary(): Promise<typeof import("classic-level")> {
  try {
    return await import("classic-level");
  } catch (error) {
    throw new Error("a data folder needs the package classic-level: npm install classic-level", { cause: error });
  }
}

function openFailure(path: string, error: unknown): Error {
  const problem = problemOf(error);
  const code = (error as { cause?: { code?: string } }).cause?.code;
  if (code === "LEVEL_LOCKED") {
    return new Error(`the data folder ${path} is in use by another server: stop it, or choose another folder`, {
      cause: error,
    });
  }
  if (code === "LEVEL_CORRUPTION") return damaged(path, problem);
  return new Error(`the data folder ${path} cannot be opened: ${problem}`, { cause: error });
}
