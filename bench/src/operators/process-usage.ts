// Reads the resource usage of processes from /proc; Linux only.
import { readdirSync, readFileSync } from "node:fs";

/** The resource usage of a process and its descendants. */
export interface Usage {
  cpuSeconds: number;
  residentMb: number;
  peakMb: number;
}

/** Clock ticks per second (USER_HZ), which Linux fixes at 100 in its interface to programs. */
const TICKS_PER_SECOND = 100;

/** Returns the resource usage of a process and its running descendants. */
export function readUsage(pid: number): Usage {
  const usage: Usage = { cpuSeconds: 0, residentMb: 0, peakMb: 0 };
  for (const each of treeOf(pid)) {
    const stat = readStat(each);
    const status = readText(`/proc/${each}/status`);
    if (stat === undefined || status === undefined) continue;
    usage.cpuSeconds += stat.cpuSeconds;
    usage.residentMb += megabytesAt(status, "VmRSS");
    usage.peakMb += megabytesAt(status, "VmHWM");
  }
  return usage;
}

function treeOf(root: number): number[] {
  const parents = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => [Number(name), readStat(Number(name))?.parent] as const);
  const tree = [root];
  for (const pid of tree) tree.push(...parents.filter(([, parent]) => parent === pid).map(([child]) => child));
  return tree;
}

function readStat(pid: number): { parent: number; cpuSeconds: number } | undefined {
  const text = readText(`/proc/${pid}/stat`);
  if (text === undefined) return undefined;
  // The second field is the name of the program in parentheses, and may contain spaces.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [parent, user, system] = [fields[1], fields[11], fields[12]].map(Number) as [number, number, number];
  return { parent, cpuSeconds: (user + system) / TICKS_PER_SECOND };
}

function megabytesAt(status: string, field: string): number {
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1];
  return Number(kilobytes ?? 0) / 1024;
}

/** Returns undefined if the process has exited in the meantime. */
function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
