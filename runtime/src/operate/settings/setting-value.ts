import { ADDRESS, bindAddressOf, LOOPBACK_ADDRESS, loopbackAddressOf } from "../http/bind-address.js";
import type { SettingType } from "./setting-table.js";

/** What a setting is set to: durations are milliseconds. */
export type SettingValue = string | number | boolean | readonly string[];

const UNITS: { readonly [unit: string]: number } = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/;

/** Reads what somebody wrote for a setting, as a text or as YAML has it; throws an error that says what it has to be. */
export function readSetting(type: SettingType, given: unknown): SettingValue {
  const isText = typeof given === "string";
  switch (type.kind) {
    case "text":
    case "address": {
      // YAML has a number where somebody means the text 0.
      const text = typeof given === "number" ? String(given) : given;
      if (typeof text === "string" && (type.kind === "text" || isAddress(text, type.reach))) return text;
      break;
    }
    case "boolean":
      if (typeof given === "boolean") return given;
      if (isText && /^(true|false)$/i.test(given)) return given.toLowerCase() === "true";
      break;
    case "integer":
    case "number": {
      const value = isText && given.trim() !== "" ? Number(given) : given;
      const isWhole = type.kind === "number" || Number.isInteger(value);
      if (typeof value === "number" && Number.isFinite(value) && isWhole && isWithin(type, value)) return value;
      break;
    }
    case "duration":
      if (isText && DURATION.test(given)) return millisecondsOf(given);
      break;
    case "list": {
      // A comma at the end is no mistake.
      const items: unknown = isText ? given.split(",").flatMap((each) => each.trim() || []) : given;
      if (Array.isArray(items) && items.length > 0 && items.every((each) => typeof each === "string" && each !== ""))
        return items as string[];
      break;
    }
    case "choice":
      if (isText && type.of.includes(given)) return given;
  }
  throw new Error(`is ${JSON.stringify(given)}, and has to be ${wordsOf(type)}`);
}

/** Returns in words what a setting may be. */
export function wordsOf(type: SettingType): string {
  switch (type.kind) {
    case "text":
      return "a text";
    case "boolean":
      return "true or false";
    case "integer":
      return `a whole number, ${type.least} at least`;
    case "number":
      return type.most === undefined
        ? `a number, ${type.least} at least`
        : `a number from ${type.least} to ${type.most}`;
    case "duration":
      return 'a duration such as "500ms", "15s" or "1h30m"';
    case "list":
      return "a list of texts, or texts with commas between; one at least";
    case "address":
      return type.reach === "all" ? ADDRESS : LOOPBACK_ADDRESS;
    case "choice":
      return `one of ${type.of.join(", ")}`;
  }
}

function isAddress(text: string, reach: "all" | "machine"): boolean {
  try {
    (reach === "all" ? bindAddressOf : loopbackAddressOf)("", text);
    return true;
  } catch {
    return false;
  }
}

function isWithin(type: SettingType & { readonly least: number }, value: number): boolean {
  const most = type.kind === "number" ? type.most : undefined;
  return value >= type.least && value <= (most ?? Infinity);
}

function millisecondsOf(text: string): number {
  let milliseconds = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g))
    milliseconds += Number(amount) * UNITS[unit!]!;
  return Math.round(milliseconds);
}
