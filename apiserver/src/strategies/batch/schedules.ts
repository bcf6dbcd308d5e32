// Cron schedules, with the syntax and error messages of github.com/robfig/cron.
import { durationProblem } from "../../errors/go-duration.js";
import { quote } from "../../errors/go-format.js";

interface Field {
  readonly min: number;
  readonly max: number;
  /** Names of the values, starting with the smallest. */
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

/** Returns the error message of cron for an invalid schedule, or undefined. */
export function scheduleProblem(schedule: string): string | undefined {
  if (!/^(CRON_)?TZ=/.test(schedule)) return problemWithoutZone(schedule);
  const end = schedule.indexOf(" ");
  // cron panics here, and kube-apiserver returns the panic as validation error.
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
  // A range with a step but without an end extends to the maximum.
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

/** Returns the value of a name or number, or an error message. */
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

/** Reports whether a name is in the IANA time zone database; case-sensitive. */
export function isTimeZone(zone: string): boolean {
  try {
    const own = new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone;
    // Intl returns only the canonical name of an alias, so its case cannot be verified; all names start with a capital letter.
    return own.toLowerCase() === zone.toLowerCase() ? own === zone : /^[A-Z]/.test(zone);
  } catch {
    return false;
  }
}
