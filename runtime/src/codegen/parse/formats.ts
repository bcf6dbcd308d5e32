// The formats that the API server checks in a custom resource. It ignores any other.
import { isIPv4, isIPv6 } from "node:net";

type FormatCheck = (text: string) => boolean;

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const EMAIL = /^([^<>]*<)?[^\s@<>()[\],;:\\"]+@[^\s@<>()[\],;:\\"]+>?$/;
const SEPARATED_MAC = /^[0-9a-f]{2}([-:])[0-9a-f]{2}(\1[0-9a-f]{2}){4}((\1[0-9a-f]{2}){2})?$/i;
const DOTTED_MAC = /^[0-9a-f]{4}(\.[0-9a-f]{4}){2,3}$/i;
const DATE_TIME = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;
const UNIT =
  /^(ns|nanos?|us|µs|μs|micros?|ms|millis?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)$/i;
const HOST_PART = /^[0-9\p{L}\p{S}]([-0-9\p{L}\p{S}]{0,61}[0-9\p{L}\p{S}])?$/u;
// Longer texts have none of these formats but `uri` and `byte`, whose checks take linear time.
const LONGEST = 1024;

const checks = new Map<string, FormatCheck>([
  ["bsonobjectid", (text) => /^[0-9a-f]{24}$/i.test(text)],
  ["uri", isRequestUri],
  ["email", (text) => text.length <= LONGEST && EMAIL.test(text)],
  ["hostname", isHostname],
  ["ipv4", isLooseIPv4],
  ["ipv6", isZonelessIPv6],
  ["cidr", isCidr],
  ["mac", (text) => SEPARATED_MAC.test(text) || DOTTED_MAC.test(text)],
  ["uuid", (text) => isUuid(text, "[0-9a-f]{4}", "[0-9a-f]{4}")],
  ["uuid3", (text) => isUuid(text, "3[0-9a-f]{3}", "[0-9a-f]{4}")],
  ["uuid4", (text) => isUuid(text, "4[0-9a-f]{3}", "[89ab][0-9a-f]{3}")],
  ["uuid5", (text) => isUuid(text, "5[0-9a-f]{3}", "[89ab][0-9a-f]{3}")],
  ["isbn", (text) => isIsbn10(text) || isIsbn13(text)],
  ["isbn10", isIsbn10],
  ["isbn13", isIsbn13],
  ["creditcard", isCreditCard],
  ["ssn", (text) => /^\d{3}[- ]\d{2}[- ]\d{4}$/.test(text)],
  ["hexcolor", (text) => /^#?([0-9a-f]{3}|[0-9a-f]{6})$/i.test(text)],
  ["rgbcolor", isRgb],
  ["byte", isBase64],
  ["date", isDate],
  ["duration", isDuration],
  ["datetime", isDateTime],
  ["k8sshortname", (text) => text.length <= 63 && LABEL.test(text)],
  ["k8slongname", (text) => text.length <= 253 && text.split(".").every((label) => LABEL.test(label))],
]);

/** Tells whether a text has a format; true for a format that the API server does not check. */
export function hasFormat(text: string, format: string): boolean {
  return checks.get(format.replaceAll("-", ""))?.(text) ?? true;
}

function isRequestUri(text: string): boolean {
  if (text.startsWith("/")) return !/[\s\u0000-\u001f]/.test(text);
  return /^[a-z][a-z0-9+.-]*:/i.test(text) && URL.canParse(text.replace(/^([a-z][a-z0-9+.-]*):(?!\/)/i, "$1:/"));
}

function isHostname(text: string): boolean {
  if (text.length > 255) return false;
  const parts = text.split(".");
  return (
    parts.every((part) => HOST_PART.test(part)) && (parts.length === 1 || /^\p{L}{2,63}$/u.test(parts.at(-1) ?? ""))
  );
}

// Kubernetes still reads leading zeros as decimal.
function isLooseIPv4(text: string): boolean {
  return text.length <= LONGEST && isIPv4(text.replace(/\b0+(?=\d)/g, ""));
}

function isZonelessIPv6(text: string): boolean {
  return isIPv6(text) && !text.includes("%");
}

function isCidr(text: string): boolean {
  const slash = text.lastIndexOf("/");
  const [address, bits] = [text.slice(0, slash), text.slice(slash + 1)];
  if (slash === -1 || !/^\d{1,3}$/.test(bits)) return false;
  return (isLooseIPv4(address) && Number(bits) <= 32) || (isZonelessIPv6(address) && Number(bits) <= 128);
}

function isUuid(text: string, third: string, fourth: string): boolean {
  return new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${third}-?${fourth}-?[0-9a-f]{12}$`, "i").test(text);
}

function isRgb(text: string): boolean {
  const parts = /^rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$/.exec(text.slice(0, LONGEST))?.slice(1);
  return text.length <= LONGEST && parts !== undefined && parts.every((part) => Number(part) <= 255);
}

// Go's durations, and the same with longer units, as in "2 weeks".
function isDuration(text: string): boolean {
  if (text === "0") return true;
  if (text.length > LONGEST) return false;
  if (/^[+-]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/.test(text)) return true;
  const units = [...text.matchAll(/\d+\s*([A-Za-zµμ]+)/g)].map((match) => match[1] ?? "");
  return units.length > 0 && units.every((unit) => UNIT.test(unit));
}

function isBase64(text: string): boolean {
  const body = text.replace(/[\r\n]/g, "");
  return body !== "" && body.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(body);
}

function isDate(text: string): boolean {
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text) ?? [];
  if (year === undefined) return false;
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  return date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day);
}

function isDateTime(text: string): boolean {
  const [, date = "", hour, minute, second] = DATE_TIME.exec(text) ?? [];
  return isDate(date) && Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60;
}

function isIsbn10(text: string): boolean {
  const digits = text.replace(/[\s-]/g, "");
  if (!/^\d{9}[\dX]$/.test(digits)) return false;
  return sumOf(digits, (digit, index) => (digit === "X" ? 10 : Number(digit)) * (10 - index)) % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replace(/[\s-]/g, "");
  return (
    /^\d{13}$/.test(digits) && sumOf(digits, (digit, index) => Number(digit) * (index % 2 === 0 ? 1 : 3)) % 10 === 0
  );
}

function isCreditCard(text: string): boolean {
  const digits = text.replace(/[\s-]/g, "");
  if (!/^\d{13,16}$/.test(digits)) return false;
  const doubled = (digit: string, index: number) => {
    const value = Number(digit) * ((digits.length - index) % 2 === 0 ? 2 : 1);
    return value > 9 ? value - 9 : value;
  };
  return sumOf(digits, doubled) % 10 === 0;
}

function sumOf(digits: string, valueOf: (digit: string, index: number) => number): number {
  return [...digits].reduce((sum, digit, index) => sum + valueOf(digit, index), 0);
}
