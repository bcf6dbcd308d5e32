import { isLabelSelector } from "../base/validation.js";
import { ADDRESS, LOOPBACK_ADDRESS, bindAddressOf, loopbackAddressOf } from "./http-endpoint.js";

/** The value of a setting. Durations are in milliseconds. */
export type SettingValue = string | number | boolean | readonly string[];

/** The type of a setting. */
export interface SettingType {
  /** A description of valid values, for messages. */
  readonly words: string;
  /** The JSON Schema of valid values. */
  readonly schema: { readonly [keyword: string]: unknown };
  /** Parses a string or a YAML value; undefined if it is invalid. */
  read(given: unknown): SettingValue | undefined;
}

const UNITS: { readonly [unit: string]: number } = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const DURATION = "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$";

const NAMESPACE = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$";
const FIELD = String.raw`[^=!,\\]+(==|=|!=)([^\\,=]|\\[\\,=])*`;
const FIELDS = `^(${FIELD}(,${FIELD})*)?$`;

/** The path of a file. */
export const file: SettingType = {
  words: "a path",
  schema: { type: "string", minLength: 1 },
  read: (given) => textIn(given) || undefined,
};

/** A boolean, or the string `true` or `false`. */
export const boolean: SettingType = {
  words: "true or false",
  schema: { type: "boolean" },
  read(given) {
    if (typeof given === "string" && /^(true|false)$/i.test(given)) return given.toLowerCase() === "true";
    return typeof given === "boolean" ? given : undefined;
  },
};

/** A duration such as `500ms`, `15s` or `1h30m`, parsed to milliseconds. */
export const duration: SettingType = {
  words: 'a duration such as "500ms", "15s" or "1h30m"',
  schema: { type: "string", pattern: DURATION },
  read(given) {
    if (typeof given !== "string" || !new RegExp(DURATION).test(given)) return undefined;
    const parts = [...given.matchAll(/([0-9.]+)([a-z]+)/g)];
    return Math.round(parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * UNITS[unit!]!, 0));
  },
};

/** A duration of at least one second, or 0. */
export const secondsOrOff: SettingType = {
  ...duration,
  words: 'a duration of 1s or more, such as "20s", or "0s" for none',
  read(given) {
    const value = duration.read(given);
    return value === 0 || Number(value) >= 1_000 ? value : undefined;
  },
};

/** The name of a namespace (a DNS label). */
export const namespace = textLike(NAMESPACE, 'the name of a namespace: lower-case letters, digits and "-"');

/** The name of an object (a DNS subdomain). */
export const objectName = textLike(
  "^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$",
  'the name of a Kubernetes object: lower-case letters, digits, "-" and "."',
);

/** A label selector, which may be empty. */
export const labelSelector: SettingType = {
  words: 'a label selector such as "app=web,tier!=cache"',
  schema: { type: "string" },
  read(given) {
    const stated = textIn(given);
    return stated !== undefined && isLabelSelector(stated) ? stated : undefined;
  },
};

/** A field selector, which may be empty. */
export const fieldSelector = textLike(FIELDS, 'a field selector such as "metadata.name!=main"');

/** Names of namespaces, as a list or separated by commas. */
export const namespaces: SettingType = {
  words: "a list of namespaces, or namespaces with commas between; one at least",
  schema: { type: "array", minItems: 1, items: namespace.schema },
  read(given) {
    // Allow a trailing comma.
    const items: unknown = typeof given === "string" ? given.split(",").flatMap((each) => each.trim() || []) : given;
    if (!Array.isArray(items) || items.length === 0) return undefined;
    return items.every((each) => typeof each === "string" && namespace.read(each) !== undefined) ? items : undefined;
  },
};

/** A bind address. */
export const address = addressBy(bindAddressOf, ADDRESS);

/** A loopback bind address. */
export const localAddress = addressBy(loopbackAddressOf, LOOPBACK_ADDRESS);

/** An integer. */
export function integer(least: number): SettingType {
  const schema = { type: "integer", minimum: least };
  return { words: `a whole number, ${least} at least`, schema, read: numberReader(Number.isInteger, least) };
}

/** A number. */
export function number(least: number, most?: number): SettingType {
  const words = most === undefined ? `a number, ${least} at least` : `a number from ${least} to ${most}`;
  const schema = { type: "number", minimum: least, ...(most !== undefined && { maximum: most }) };
  return { words, schema, read: numberReader(Number.isFinite, least, most) };
}

/** One of a list of words, case-insensitive. */
export function choice(...of: readonly string[]): SettingType {
  const read = (given: unknown) => of.find((each) => typeof given === "string" && each === given.toLowerCase());
  return { words: `one of ${of.join(", ")}`, schema: { enum: of }, read };
}

/** Parses the value of a setting. Throws an error that describes valid values. */
export function readSetting(type: SettingType, given: unknown): SettingValue {
  const value = type.read(given);
  if (value === undefined) throw new Error(`is ${JSON.stringify(given)}, and has to be ${type.words}`);
  return value;
}

// YAML parses an unquoted 0 as a number.
function textIn(given: unknown): string | undefined {
  const stated = typeof given === "number" ? String(given) : given;
  return typeof stated === "string" ? stated : undefined;
}

function textLike(pattern: string, words: string): SettingType {
  const expression = new RegExp(pattern);
  const read = (given: unknown) => {
    const stated = textIn(given);
    return stated !== undefined && expression.test(stated) ? stated : undefined;
  };
  return { words, schema: { type: "string", pattern }, read };
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
