import { quote } from "./go-format.js";

const UNITS = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];
const MAX_INTEGER = 2n ** 63n - 1n;

/** Returns the error of Go's time.ParseDuration; undefined for a valid duration. */
export function durationProblem(text: string): string | undefined {
  const invalid = `time: invalid duration ${quote(text)}`;
  let rest = text.replace(/^[-+]/, "");
  if (rest === "0") return undefined;
  if (rest === "") return invalid;
  while (rest !== "") {
    const [amount = "", whole = "", fraction = ""] = /^(\d*)(?:\.(\d*))?/.exec(rest) ?? [];
    if (whole + fraction === "" || BigInt(whole || "0") > MAX_INTEGER) return invalid;
    const [unit] = /^[^\d.]*/.exec(rest.slice(amount.length)) ?? [""];
    if (unit === "") return `time: missing unit in duration ${quote(text)}`;
    if (!UNITS.includes(unit)) return `time: unknown unit ${quote(unit)} in duration ${quote(text)}`;
    rest = rest.slice(amount.length + unit.length);
  }
  return undefined;
}
