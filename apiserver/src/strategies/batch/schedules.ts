// Schedules of CronJobs, as github.com/robfig/cron reads them and in its words.
import { durationProblem } from "../../errors/go-duration.js";
import { quote } from "../../errors/go-format.js";

interface Field {
  readonly min: number;
  readonly max: number;
  /** Names of values, the first for the smallest. */
  readonly names?: readonly string[];
}

const FIELDS: readonly Field[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: "jan feb mar apr may jun jul aug sep oct nov dec".split(" ") },
  { min: 0, max: 6, names: "sun mon tue wed thu fri sat".split(" ") },
];

const DESCRIPTORS = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
const EVERY = "@every ";
const MAX_INTEGER = 2n ** 63n - 1n;

/** Returns what cron says of a schedule that it cannot read. */
export function scheduleProblem(schedule: string): string | undefined {
  if (!/^(CRON_)?TZ=/.test(schedule)) return problemWithoutZone(schedule);
  const end = schedule.indexOf(" ");
  // cron panics here, and the check of the CronJob says so.
  if (end === -1) return "invalid schedule format: runtime error: slice bounds out of range [:-1]";
  const zone = schedule.slice(schedule.indexOf("=") + 1, end);
  if (zone !== "" && zone !== "Local" && !isTimeZone(zone))
    return `provided bad location ${zone}: unknown time zone ${zone}`;
  return problemWithoutZone(schedule.slice(end).trim());
}

function problemWithoutZone(schedule: string): string | undefined {
  if (schedule.startsWith("@")) return descriptorProblem(schedule);
  const fields = schedule.split(/\s+/).filter((field) => field !== "");
  if (fields.length !== FIELDS.length)
    return `expected exactly ${FIELDS.length} fields, found ${fields.length}: [${fields.join(" ")}]`;
  for (const [index, field] of FIELDS.entries())
    for (const range of (fields[index] ?? "").split(",").filter((range) => range !== "")) {
      const problem = rangeProblem(range, field);
      if (problem !== undefined) return problem;
    }
  return undefined;
}

function descriptorProblem(descriptor: string): string | undefined {
  if (DESCRIPTORS.includes(descriptor)) return undefined;
  if (!descriptor.startsWith(EVERY)) return `unrecognized descriptor: ${descriptor}`;
  const problem = durationProblem(descriptor.slice(EVERY.length));
  return problem === undefined ? undefined : `failed to parse duration ${descriptor}: ${problem}`;
}

function rangeProblem(range: string, field: Field): string | undefined {
  const [ends = "", step, ...moreSteps] = range.split("/");
  const [low = "", high, ...moreEnds] = ends.split("-");
  const isAny = low === "*" || low === "?";
  if (!isAny && moreEnds.length > 0) return `too many hyphens: ${range}`;
  const first = isAny ? field.min : valueOf(low, field);
  if (typeof first === "string") return first;
  // A step without an end goes on to the last value.
  const last = isAny || (high === undefined && step !== undefined) ? field.max : valueOf(high ?? low, field);
  if (typeof last === "string") return last;
  if (moreSteps.length > 0) return `too many slashes: ${range}`;
  const by = step === undefined ? 1 : numberOf(step);
  if (typeof by === "string") return by;
  if (first < field.min) return `beginning of range (${first}) below minimum (${field.min}): ${range}`;
  if (last > field.max) return `end of range (${last}) above maximum (${field.max}): ${range}`;
  if (first > last) return `beginning of range (${first}) beyond end of range (${last}): ${range}`;
  return by === 0 ? `step of range should be a positive number: ${range}` : undefined;
}

/** The value of a name or a number, or what is said of another text. */
function valueOf(text: string, { min, names = [] }: Field): number | string {
  const index = names.indexOf(text.toLowerCase());
  return index === -1 ? numberOf(text) : min + index;
}

function numberOf(text: string): number | string {
  const failed = (detail: string) =>
    `failed to parse int from ${text}: strconv.Atoi: parsing ${quote(text)}: ${detail}`;
  if (!/^[+-]?\d+$/.test(text)) return failed("invalid syntax");
  if (BigInt(text.replace("+", "")) > MAX_INTEGER) return failed("value out of range");
  return Number(text);
}

/** Whether a text names a time zone of the IANA database, in its capital and small letters. */
export function isTimeZone(zone: string): boolean {
  try {
    const own = new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone;
    // Of another name of a zone only its own name is known, but every name begins with a capital.
    return own.toLowerCase() === zone.toLowerCase() ? own === zone : /^[A-Z]/.test(zone);
  } catch {
    return false;
  }
}
