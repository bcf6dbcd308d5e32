// Addresses and ranges of IPv4 and IPv6: what is wrong with a text, and which form it should have, in the words of Kubernetes 1.36.
import { isIPv6 } from "node:net";

const DOTTED = /^\d+(\.\d+){3}$/;
const MAPPED = 0xffffn << 32n;
const IP_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const CIDR_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

interface Address {
  readonly isSix: boolean;
  /** An address of IPv4 that is written as one of IPv6. */
  readonly isMapped: boolean;
  readonly hasLeadingZeros: boolean;
  readonly value: bigint;
}

interface Range {
  readonly address: Address;
  readonly length: number;
  readonly hasLeadingZeros: boolean;
}

function readAddress(text: string): Address | undefined {
  if (DOTTED.test(text)) {
    const parts = text.split(".");
    if (parts.some((part) => Number(part) > 255)) return undefined;
    const hasLeadingZeros = parts.some((part) => /^0\d/.test(part));
    return { isSix: false, isMapped: false, hasLeadingZeros, value: joined(parts.map(Number), 8n) };
  }
  if (!isIPv6(text) || text.includes("%")) return undefined;
  const groups = groupsOf(new URL(`http://[${text}]`).hostname.slice(1, -1));
  const value = joined(groups, 16n);
  return { isSix: true, isMapped: value >> 32n === MAPPED >> 32n, hasLeadingZeros: false, value };
}

function joined(parts: number[], bits: bigint): bigint {
  return parts.reduce((value, part) => (value << bits) + BigInt(part), 0n);
}

function groupsOf(canonical: string): number[] {
  const [before = [], after] = canonical.split("::").map((half) => half.split(":").filter((group) => group !== ""));
  const zeros = after === undefined ? 0 : 8 - before.length - after.length;
  return [...before, ...new Array<string>(zeros).fill("0"), ...(after ?? [])].map((group) =>
    Number.parseInt(group, 16),
  );
}

function readRange(text: string): Range | undefined {
  const [, address = "", length = ""] = /^([^/]*)\/(\d+)$/.exec(text) ?? [];
  const read = readAddress(address);
  if (read === undefined || Number(length) > bitsOf(read)) return undefined;
  return { address: read, length: Number(length), hasLeadingZeros: read.hasLeadingZeros || /^0\d/.test(length) };
}

const bitsOf = ({ isSix }: Address): number => (isSix ? 128 : 32);

function maskedBy(address: Address, length: number): bigint {
  const host = BigInt(bitsOf(address) - length);
  return (address.value >> host) << host;
}

/** The usual form of an address; a mapped one has that of IPv4. */
function textOf(address: Address, value = address.value): string {
  if (!address.isSix || address.isMapped)
    return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join(".");
  const groups = Array.from({ length: 8 }, (_, index) => ((value >> BigInt(112 - 16 * index)) & 0xffffn).toString(16));
  return new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1);
}

/** True for an address in whichever form. */
export function isAddress(text: string): boolean {
  return readAddress(text) !== undefined;
}

/** Lists what is wrong with an address of IPv4 or IPv6. */
export function addressProblems(text: string): string[] {
  const address = readAddress(text);
  if (address === undefined) return [IP_RULE];
  return [
    ...(address.hasLeadingZeros ? ["must not have leading 0s"] : []),
    ...(address.isMapped ? ["must not be an IPv4-mapped IPv6 address"] : []),
  ];
}

/** Lists what is wrong with an address that has to be in its usual form, too. */
export function exactAddressProblems(text: string): string[] {
  const problems = addressProblems(text);
  const address = readAddress(text);
  if (problems.length > 0 || address === undefined || textOf(address) === text) return problems;
  return [`must be in canonical form ("${textOf(address)}")`];
}

/** True for a range of addresses, whichever bits are set in it. */
export function isCidr(text: string): boolean {
  return readRange(text) !== undefined;
}

/** Lists what is wrong with a range of addresses. */
export function cidrProblems(text: string): string[] {
  const range = readRange(text);
  if (range === undefined) return [CIDR_RULE];
  if (range.hasLeadingZeros) return ["must not have leading 0s in IP or prefix length"];
  if (range.address.isMapped) return ["must not have an IPv4-mapped IPv6 address"];
  const isWhole = maskedBy(range.address, range.length) === range.address.value;
  return isWhole ? [] : ["must not have bits set beyond the prefix length"];
}

/** Lists what is wrong with a range that has to be in its usual form, too. */
export function exactCidrProblems(text: string): string[] {
  const problems = cidrProblems(text);
  const range = readRange(text);
  if (problems.length > 0 || range === undefined) return problems;
  const usual = `${textOf(range.address)}/${range.length}`;
  return usual === text ? [] : [`must be in canonical form ("${usual}")`];
}

/** True if a range lies within another and is smaller. */
export function isPartOf(part: string, whole: string): boolean {
  const [one, other] = [readRange(part), readRange(whole)];
  if (one === undefined || other === undefined || one.address.isSix !== other.address.isSix) return false;
  return one.length > other.length && maskedBy(one.address, other.length) === maskedBy(other.address, other.length);
}

/** Warns of an address at `path` that is not in its usual form. */
export function addressWarnings(path: string, text: string): string[] {
  const address = readAddress(text);
  if (address === undefined) return [];
  const usual = textOf(address);
  if (address.hasLeadingZeros || address.isMapped)
    return [`${path}: non-standard IP address "${text}" is invalid: use "${usual}"`];
  return address.isSix && usual !== text
    ? [`${path}: IPv6 address "${text}" should be in RFC 5952 canonical format ("${usual}")`]
    : [];
}

/** Warns of a range at `path` that is not in its usual form, or of which nobody knows whether it is an address. */
export function cidrWarnings(path: string, text: string): string[] {
  const range = readRange(text);
  if (range === undefined) return [];
  const { address, length } = range;
  const masked = maskedBy(address, length);
  const usual = `${textOf(address, masked)}/${length}`;
  const one = `${textOf(address)}/${bitsOf(address)}`;
  const warnings = [
    ...(masked === address.value
      ? []
      : [`${path}: CIDR value "${text}" is ambiguous in this context (should be "${usual}" or "${one}"?)`]),
    ...(range.hasLeadingZeros || address.isMapped
      ? [`${path}: non-standard CIDR value "${text}" is invalid: use "${usual}"`]
      : []),
  ];
  if (warnings.length > 0 || !address.isSix || usual === text) return warnings;
  return [`${path}: IPv6 CIDR value "${text}" should be in RFC 5952 canonical format ("${usual}")`];
}
