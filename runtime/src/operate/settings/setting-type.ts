import { ADDRESS, bindAddressOf, LOOPBACK_ADDRESS, loopbackAddressOf } from "../http/bind-address.js";

/** What a setting is set to: durations are milliseconds. */
export type SettingValue = string | number | boolean | readonly string[];

/** What a setting may be. */
export interface SettingType {
  /** In words. */
  readonly words: string;
  /** As JSON Schema. */
  readonly schema: { readonly [keyword: string]: unknown };
  /** Reads what somebody wrote, as a text or as YAML has it; undefined if it is something else. */
  read(given: unknown): SettingValue | undefined;
}

const UNITS: { readonly [unit: string]: number } = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const DURATION = "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$";

/** Any text. */
export const text: SettingType = { words: "a text", schema: { type: "string" }, read: textIn };

/** The path of a file. */
export const file: SettingType = {
  words: "a path",
  schema: { type: "string", minLength: 1 },
  read: (given) => textIn(given) || undefined,
};

/** True or false, as a text as well. */
export const boolean: SettingType = {
  words: "true or false",
  schema: { type: "boolean" },
  read(given) {
    if (typeof given === "string" && /^(true|false)$/i.test(given)) return given.toLowerCase() === "true";
    return typeof given === "boolean" ? given : undefined;
  },
};

/** Such as `500ms`, `15s` or `1h30m`; kept in milliseconds. */
export const duration: SettingType = {
  words: 'a duration such as "500ms", "15s" or "1h30m"',
  schema: { type: "string", pattern: DURATION },
  read(given) {
    if (typeof given !== "string" || !new RegExp(DURATION).test(given)) return undefined;
    const parts = [...given.matchAll(/([0-9.]+)([a-z]+)/g)];
    return Math.round(parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * UNITS[unit!]!, 0));
  },
};

/** Texts, in a list or with commas between. */
export const list: SettingType = {
  words: "a list of texts, or texts with commas between; one at least",
  schema: { type: "array", minItems: 1, items: { type: "string", minLength: 1 } },
  read(given) {
    // A comma at the end is no mistake.
    const items: unknown = typeof given === "string" ? given.split(",").flatMap((each) => each.trim() || []) : given;
    if (!Array.isArray(items) || items.length === 0) return undefined;
    return items.every((each) => typeof each === "string" && each !== "") ? (items as string[]) : undefined;
  },
};

/** Where a server listens. */
export const address = addressBy(bindAddressOf, ADDRESS);

/** Where a server listens that only this machine reaches. */
export const localAddress = addressBy(loopbackAddressOf, LOOPBACK_ADDRESS);

/** A whole number. */
export function integer(least: number): SettingType {
  const schema = { type: "integer", minimum: least };
  return { words: `a whole number, ${least} at least`, schema, read: numberReader(Number.isInteger, least) };
}

/** A number, which may have a fraction. */
export function number(least: number, most?: number): SettingType {
  const words = most === undefined ? `a number, ${least} at least` : `a number from ${least} to ${most}`;
  const schema = { type: "number", minimum: least, ...(most !== undefined && { maximum: most }) };
  return { words, schema, read: numberReader(Number.isFinite, least, most) };
}

/** One of a few words, in any case. */
export function choice(...of: readonly string[]): SettingType {
  const read = (given: unknown) => of.find((each) => typeof given === "string" && each === given.toLowerCase());
  return { words: `one of ${of.join(", ")}`, schema: { enum: of }, read };
}

/** Reads what somebody wrote for a setting; throws an error that says what it has to be. */
export function readSetting(type: SettingType, given: unknown): SettingValue {
  const value = type.read(given);
  if (value === undefined) throw new Error(`is ${JSON.stringify(given)}, and has to be ${type.words}`);
  return value;
}

// YAML has a number where somebody means the text 0.
function textIn(given: unknown): string | undefined {
  const stated = typeof given === "number" ? String(given) : given;
  return typeof stated === "string" ? stated : undefined;
}

function addressBy(parse: (setting: string, text: string) => unknown, words: string): SettingType {
  const read = (given: unknown) => {
    const stated = textIn(given);
    try {
      if (stated !== undefined) parse("", stated);
      return stated;
    } catch {
      return undefined;
    }
  };
  return { words, schema: { type: "string" }, read };
}

function numberReader(fits: (value: number) => boolean, least: number, most = Infinity): SettingType["read"] {
  return (given) => {
    const value = typeof given === "string" && given.trim() !== "" ? Number(given) : given;
    return typeof value === "number" && fits(value) && value >= least && value <= most ? value : undefined;
  };
}
