// Parses IP addresses and CIDRs like Go's net/netip, with its error messages.
import { isIPv4, isIPv6 } from "node:net";
import { quote } from "./escape.js";

/** An IP address as a number of 32 or 128 bits. */
export interface Address {
  readonly value: bigint;
  readonly size: 32 | 128;
}

/** An address with a prefix length in bits. */
export interface Network {
  readonly address: Address;
  readonly bits: number;
}

const MAPPED_IPV4 = 0xffffn;

/** Parses an IP address for CEL, which rejects zones and IPv4-mapped IPv6 addresses. */
export function parseAddress(text: string): Address | undefined {
  const address = readAddress(text);
  return address === undefined || isMapped(address) ? undefined : address;
}

/** Returns whether an address is an IPv4-mapped IPv6 address. */
export function isMapped({ value, size }: Address): boolean {
  return size === 128 && value >> 32n === MAPPED_IPV4;
}

/** Parses an IP address without a zone. Leading zeros in IPv4 octets are invalid. */
export function readAddress(text: string): Address | undefined {
  if (isIPv4(text)) return { value: numberOf(text.split(".").map(Number), 8n), size: 32 };
  if (!isIPv6(text) || text.includes("%")) return undefined;
  const groups = canonicalIPv6(text);
  const [head = "", tail] = groups.split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length;
  const all = [...left, ...Array.from({ length: zeros }, () => "0"), ...right].map((part) => Number.parseInt(part, 16));
  return { value: numberOf(all, 16n), size: 128 };
}

/** Parses a CIDR. Bits after the prefix may be set. */
export function parseNetwork(text: string): Network | undefined {
  const [, host = "", bits = ""] = /^([^/]*)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const address = parseAddress(host);
  return address === undefined || Number(bits) > address.size ? undefined : { address, bits: Number(bits) };
}

/** Returns whether a network contains an address. */
export function isInside({ value, size }: Address, { address, bits }: Network): boolean {
  const rest = BigInt(size - bits);
  return size === address.size && value >> rest === address.value >> rest;
}

/** Formats an address as in RFC 5952. */
export function canonicalTextOf({ value, size }: Address): string {
  const width = size === 32 ? 8n : 16n;
  const count = size === 32 ? 4 : 8;
  const parts = Array.from(
    { length: count },
    (_, index) => (value >> (width * BigInt(count - 1 - index))) & (2n ** width - 1n),
  );
  return size === 32 ? parts.join(".") : canonicalIPv6(parts.map((part) => part.toString(16)).join(":"));
}

// URLs contain the canonical form of IPv6 addresses.
function canonicalIPv6(text: string): string {
  return new URL(`http://[${text}]`).hostname.slice(1, -1);
}

function numberOf(parts: readonly number[], width: bigint): bigint {
  return parts.reduce((value, part) => (value << width) | BigInt(part), 0n);
}

/** Returns the error of netip.ParseAddr, which accepts zones; undefined for a valid address. */
export function findAddressProblem(text: string): string | undefined {
  const problem = syntaxProblemOf(text);
  return problem === undefined ? undefined : `ParseAddr(${quote(text)}): ${problem}`;
}

/** Returns the error of netip.ParsePrefix; undefined for a valid CIDR. */
export function findNetworkProblem(text: string): string | undefined {
  const slash = text.lastIndexOf("/");
  const problem = slash === -1 ? "no '/'" : partProblem(text.slice(0, slash), text.slice(slash + 1));
  return problem === undefined ? undefined : `netip.ParsePrefix(${quote(text)}): ${problem}`;
}

function partProblem(host: string, bits: string): string | undefined {
  const problem = findAddressProblem(host);
  if (problem !== undefined) return problem;
  if (host.includes("%")) return "IPv6 zones cannot be present in a prefix";
  if (!/^(\d|[1-9]\d+)$/.test(bits)) return `bad bits after slash: ${quote(bits)}`;
  return Number(bits) > (host.includes(":") ? 128 : 32) ? "prefix length out of range" : undefined;
}

function syntaxProblemOf(text: string): string | undefined {
  const [sign] = /[.:%]/.exec(text) ?? [];
  if (sign === undefined) return "unable to parse IP";
  if (sign === "%") return "missing IPv6 address";
  return sign === "." ? findIPv4Problem(text) : findIPv6Problem(text);
}

function findIPv4Problem(text: string): string | undefined {
  let [value, digits, fields] = [0, 0, 0];
  for (let index = 0; index < text.length; index++) {
    const character = text[index] as string;
    if (/\d/.test(character)) {
      if (digits === 1 && value === 0) return "IPv4 field has octet with leading zero";
      value = value * 10 + Number(character);
      digits++;
      if (value > 255) return "IPv4 field has value >255";
    } else if (character === ".") {
      if (digits === 0 || index === text.length - 1)
        return at("IPv4 field must have at least one digit", text.slice(index));
      if (fields === 3) return "IPv4 address too long";
      [value, digits, fields] = [0, 0, fields + 1];
    } else return at("unexpected character", text.slice(index));
  }
  return fields < 3 ? "IPv4 address too short" : undefined;
}

function findIPv6Problem(text: string): string | undefined {
  const zone = text.indexOf("%");
  if (zone === text.length - 1) return "zone must be a non-empty string";
  let rest = zone === -1 ? text : text.slice(0, zone);
  let hasEllipsis = rest.startsWith("::");
  if (hasEllipsis) rest = rest.slice(2);
  let fields = 0;
  for (; fields < 8 && rest !== ""; fields++) {
    const [group = ""] = /^[0-9a-fA-F]*/.exec(rest) ?? [];
    if (group.length > 4) return at("each group must have 4 or less digits", rest);
    if (group === "") return at("each colon-separated field must have at least one digit", rest);
    if (rest[group.length] === ".") {
      if (!hasEllipsis && fields !== 6)
        return at("embedded IPv4 address must replace the final 2 fields of the address", rest);
      if (fields > 6) return at("too many hex fields to fit an embedded IPv4 at the end of the address", rest);
      const problem = findIPv4Problem(rest);
      if (problem !== undefined) return problem;
      fields += 2;
      rest = "";
      break;
    }
    rest = rest.slice(group.length);
    if (rest === "") continue;
    if (!rest.startsWith(":")) return at("unexpected character, want colon", rest);
    if (rest === ":") return at("colon must be followed by more characters", rest);
    rest = rest.slice(1);
    if (!rest.startsWith(":")) continue;
    if (hasEllipsis) return at("multiple :: in address", rest);
    hasEllipsis = true;
    rest = rest.slice(1);
  }
  if (rest !== "") return at("trailing garbage after address", rest);
  if (fields < 8) return hasEllipsis ? undefined : "address string too short";
  return hasEllipsis ? "the :: must expand to at least one field of zeros" : undefined;
}

function at(problem: string, rest: string): string {
  return `${problem} (at ${quote(rest)})`;
}
