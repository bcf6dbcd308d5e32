// The values that texts of a schema's formats stand for.
import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import { loadLibrary } from "./library.js";

const SECOND = 1_000_000_000n;
const TIME = /^(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d{2}:\d{2})?)?$/;
const PART = /(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-zµ\u03bc]+)/g;

// Nanoseconds; longer names start like one of these.
const UNITS: readonly (readonly [pattern: RegExp, nanoseconds: bigint])[] = [
  [/^(ns|nano)/i, 1n],
  [/^(us|µs|\u03bcs|micro)/i, 1_000n],
  [/^(ms|milli)/i, 1_000_000n],
  [/^s/i, SECOND],
  [/^m/i, 60n * SECOND],
  [/^h/i, 3_600n * SECOND],
  [/^d/i, 86_400n * SECOND],
  [/^w/i, 604_800n * SECOND],
];

/** Returns the bytes of a text in base64. */
export function decodeBase64(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, "base64"));
}

/** Returns the time of a text of the format `date` or `date-time`; undefined if it is none. */
export function parseTime(text: string): Timestamp | undefined {
  const [, date, time = "00:00:00", fraction = "", zone = "Z"] = TIME.exec(text) ?? [];
  const milliseconds = Date.parse(`${date}T${time}${zone.toUpperCase()}`);
  return Number.isNaN(milliseconds) ? undefined : timeOf(BigInt(milliseconds / 1000), Number(fraction.padEnd(9, "0")));
}

/** Returns a time from the seconds since 1970. */
export function timeOf(seconds: bigint, nanos = 0): Timestamp {
  const { create, TimestampSchema } = loadLibrary();
  return create(TimestampSchema, { seconds, nanos });
}

/** Returns the duration of a text such as `1h30m` or `2 weeks`; undefined if it is none. */
export function parseDuration(text: string): Duration | undefined {
  const parts = [...text.matchAll(PART)].map(([, count = "", unit = ""]) => nanosecondsOf(count, unit));
  if (parts.includes(undefined) || (parts.length === 0 && Number(text) !== 0)) return undefined;
  const sum = (parts as bigint[]).reduce((total, part) => total + part, 0n) * (text.startsWith("-") ? -1n : 1n);
  const { create, DurationSchema } = loadLibrary();
  return create(DurationSchema, { seconds: sum / SECOND, nanos: Number(sum % SECOND) });
}

function nanosecondsOf(count: string, unit: string): bigint | undefined {
  const nanoseconds = UNITS.find(([pattern]) => pattern.test(unit))?.[1];
  if (nanoseconds === undefined) return undefined;
  const [whole = "", fraction = ""] = count.split(".");
  return BigInt(whole) * nanoseconds + (BigInt(fraction) * nanoseconds) / 10n ** BigInt(fraction.length);
}
