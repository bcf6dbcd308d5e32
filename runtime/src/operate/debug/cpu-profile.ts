// Loaded when somebody asks for a profile.
import { Session } from "node:inspector/promises";
import { sleep } from "../../base/clock.js";

/** Follows for a while what the process spends its time on, until the signal is aborted; returns a profile as Chrome's DevTools read it. */
export async function recordCpuProfile(durationMs: number, signal: AbortSignal): Promise<string> {
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.start");
    await sleep(durationMs, signal);
    const { profile } = await session.post("Profiler.stop");
    return JSON.stringify(profile);
  } finally {
    // Whatever still runs ends with the session.
    session.disconnect();
  }
}
