// String formats that Kubernetes validates; it ignores all others. URIs are parsed like Go's url.ParseRequestURI, with its error messages.
// https://github.com/kubernetes/kube-openapi/tree/master/pkg/validation/strfmt
import { isIPv4, isIPv6 } from "node:net";
import { quote } from "./escape.js";

type FormatCheck = (text: string) => boolean;

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
// A single label may contain a hyphen only after its first character; otherwise the last of several labels has at least two letters.
const HOST_LABEL = "[0-9\\p{L}\\p{S}]([-0-9\\p{L}\\p{S}]{0,61}[0-9\\p{L}\\p{S}])?";
const HOSTNAME = new RegExp(`^([0-9\\p{L}\\p{S}](-?[0-9\\p{L}\\p{S}]{0,62})?|(${HOST_LABEL}\\.)+\\p{L}{2,63})$`, "u");
const EMAIL = /^([^<>]*<)?(?:[^\s@<>()[\],;:\\"]+|"(?:[^"\\]|\\[^])*")@[^\s@<>()[\],;:\\"]+>?$/;
const RGB = /^rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$/;
const SEPARATED_MAC = /^[0-9a-f]{2}([-:])[0-9a-f]{2}(\1[0-9a-f]{2}){4}((\1[0-9a-f]{2}){2})?$/i;
const DOTTED_MAC = /^[0-9a-f]{4}(\.[0-9a-f]{4}){2,3}$/i;
const DATE_TIME = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;
// Letters beyond ASCII are escaped here as esbuild escapes them in strings: with a single one, V8 may store the whole bundle with two bytes per
// character.
const GO_DURATION = /^[+-]?((\d+(\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+$/;
// The lookbehind makes a match start at the first digit of a number; without it, long numbers take quadratic time.
const COUNTED_UNIT = /(?<!\d)(\d+)[\t\n\f\r ]*([A-Za-z\u00b5]+)/g;
// The patterns match prefixes of long unit names, such as "seconds".
const DURATION_UNIT = /^(ns|us|\u00b5s|ms|[smhdw]|hr|wk)$|^(nano|micro|milli|sec|min|hour|day|week)/i;
const MAX_INT64 = 2n ** 63n - 1n;

const checks = new Map<string, FormatCheck>([
  ["bsonobjectid", (text) => /^[0-9a-f]{24}$/i.test(text)],
  ["uri", (text) => findUrlProblem(text) === undefined],
  ["email", (text) => EMAIL.test(text)],
  ["hostname", (text) => text.length <= 255 && HOSTNAME.test(text)],
  ["ipv4", isDottedAddress],
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
  [
    "rgbcolor",
    (text) =>
      RGB.exec(text)
        ?.slice(1)
        .every((part) => Number(part) <= 255) ?? false,
  ],
  ["byte", isBase64],
  ["password", () => true],
  ["date", isDate],
  ["duration", isDuration],
  ["datetime", isDateTime],
  ["k8sshortname", (text) => text.length <= 63 && DNS_LABEL.test(text)],
  ["k8slongname", (text) => text.length <= 253 && DNS_SUBDOMAIN.test(text)],
]);

const NUMBER_FORMATS: { readonly [type: string]: readonly string[] } = {
  integer: ["int32", "int64"],
  number: ["float", "double"],
};

/** Validates a string against a format; returns undefined if the API server does not validate the format. */
export function hasFormat(text: string, format: string): boolean | undefined {
  return checks.get(format.replaceAll("-", ""))?.(text);
}

/** Returns whether Kubernetes validates a format for values of a type. */
export function isKnownFormat(format: string, type: unknown = "string"): boolean {
  if (type === "string") return checks.has(format.replaceAll("-", ""));
  return typeof type === "string" && NUMBER_FORMATS[type]?.includes(format) === true;
}

function isLooseIPv4(text: string): boolean {
  // Kubernetes still parses leading zeros as decimal.
  return isIPv4(text.replace(/\b0+(?=\d)/g, ""));
}

// An IPv6 address with an embedded IPv4 address also contains dots.
function isDottedAddress(text: string): boolean {
  return isLooseIPv4(text) || (isZonelessIPv6(text) && text.includes("."));
}

function isZonelessIPv6(text: string): boolean {
  return isIPv6(text) && !text.includes("%");
}

function isCidr(text: string): boolean {
  const [, address = "", bits = ""] = /^(.+)\/(\d{1,3})$/.exec(text) ?? [];
  return (isLooseIPv4(address) && Number(bits) <= 32) || (isZonelessIPv6(address) && Number(bits) <= 128);
}

function isUuid(text: string, third: string, fourth: string): boolean {
  return new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${third}-?${fourth}-?[0-9a-f]{12}$`, "i").test(text);
}

// A single known unit suffices, as in "2 weeks, 3 moons". A number beyond int64 makes the duration invalid.
function isDuration(text: string): boolean {
  if (/^[+-]?0$/.test(text) || GO_DURATION.test(text)) return true;
  let hasUnit = false;
  for (const [, count = "", unit = ""] of text.matchAll(COUNTED_UNIT)) {
    const digits = count.replace(/^0+(?=\d)/, "");
    if (digits.length > 19 || BigInt(digits) > MAX_INT64) return false;
    hasUnit ||= DURATION_UNIT.test(unit);
  }
  return hasUnit;
}

function isBase64(text: string): boolean {
  return text !== "" && text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
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
  const sum = [...digits].reduce(
    (total, digit, index) => total + (digit === "X" ? 10 : Number(digit)) * (10 - index),
    0,
  );
  return sum % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replace(/[\s-]/g, "");
  if (!/^\d{13}$/.test(digits)) return false;
  const sum = [...digits].reduce((total, digit, index) => total + Number(digit) * (index % 2 === 0 ? 1 : 3), 0);
  return sum % 10 === 0;
}

function isCreditCard(text: string): boolean {
  const digits = text.replace(/[\s-]/g, "");
  if (!/^\d{13,16}$/.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, digit, index) => {
    const doubled = Number(digit) * (index % 2 === 0 ? 1 : 2);
    return total + (doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return sum % 10 === 0;
}

const URL_SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*)?:/;

/** Returns the error of Go's url.ParseRequestURI, for url() and isURL() of CEL; undefined for a valid URL. */
export function findUrlProblem(text: string): string | undefined {
  const problem = urlProblemOf(text);
  return problem === undefined ? undefined : `parse ${quote(text)}: ${problem}`;
}

function urlProblemOf(text: string): string | undefined {
  if (/[\u0000-\u001f\u007f]/.test(text)) return "net/url: invalid control character in URL";
  if (text === "") return "empty url";
  if (text === "*") return undefined;
  const [prefix = "", scheme] = URL_SCHEME.exec(text) ?? [];
  if (prefix === ":") return "missing protocol scheme";
  const [rest = ""] = text.slice(prefix.length).split("?");
  if (!rest.startsWith("/")) return scheme === undefined ? "invalid URI for request" : undefined;
  if (scheme === undefined || !rest.startsWith("//")) return escapeProblem(rest);
  const [, authority = "", path = ""] = /^\/\/([^/]*)(.*)$/s.exec(rest) ?? [];
  return authorityProblem(authority) ?? escapeProblem(path);
}

function authorityProblem(authority: string): string | undefined {
  const sign = authority.lastIndexOf("@");
  const problem = hostProblem(authority.slice(sign + 1));
  if (problem !== undefined || sign === -1) return problem;
  const user = authority.slice(0, sign);
  return /^[\w\-.:~!$&'()*+,;=%@]*$/.test(user) ? escapeProblem(user) : "net/url: invalid userinfo";
}

function hostProblem(host: string): string | undefined {
  if (host.startsWith("[")) {
    const end = host.lastIndexOf("]");
    if (end === -1) return "missing ']' in host";
    return portProblem(host.slice(end + 1)) ?? nameProblem(host.slice(0, end + 1));
  }
  const colon = host.lastIndexOf(":");
  return (colon === -1 ? undefined : portProblem(host.slice(colon))) ?? nameProblem(host);
}

function portProblem(port: string): string | undefined {
  return /^(:\d*)?$/.test(port) ? undefined : `invalid port ${quote(port)} after host`;
}

function nameProblem(host: string): string | undefined {
  const [odd] = /%(?!25|[89A-Fa-f][0-9A-Fa-f]).{0,2}|[^\w\-.~!$&'()*+,;=:[\]<>"%\u0080-\uffff]/s.exec(host) ?? [];
  if (odd === undefined) return undefined;
  return odd.startsWith("%") ? `invalid URL escape ${quote(odd)}` : `invalid character ${quote(odd)} in host name`;
}

function escapeProblem(text: string): string | undefined {
  const [odd] = /%(?![0-9A-Fa-f]{2}).{0,2}/s.exec(text) ?? [];
  return odd === undefined ? undefined : `invalid URL escape ${quote(odd)}`;
}
