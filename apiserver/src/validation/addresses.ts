// Addresses and ranges of IPv4 and IPv6: what is wrong with a text, and which form it should have, in the words of Kubernetes 1.36.
import { type Address, canonicalTextOf, isMapped, readAddress } from "@gen-operator/schema";

const DOTTED = /^\d+(\.\d+){3}$/;
const IP_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const CIDR_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/** An address as it is written. */
interface WrittenAddress {
  readonly address: Address;
  readonly hasLeadingZeros: boolean;
}

interface Range extends WrittenAddress {
  readonly length: number;
}

// Go once read leading zeros as decimal.
function read(text: string): WrittenAddress | undefined {
  const plain = DOTTED.test(text) ? text.replace(/\b0+(?=\d)/g, "") : text;
  const address = readAddress(plain);
  return address && { address, hasLeadingZeros: plain !== text };
}

function readRange(text: string): Range | undefined {
  const [, host = "", length = ""] = /^([^/]*)\/(\d+)$/.exec(text) ?? [];
  const written = read(host);
  if (written === undefined || Number(length) > written.address.size) return undefined;
  const hasLeadingZeros = written.hasLeadingZeros || /^0\d/.test(length);
  return { address: written.address, length: Number(length), hasLeadingZeros };
}

function maskedBy({ value, size }: Address, length: number): bigint {
  const host = BigInt(size - length);
  return (value >> host) << host;
}

/** The usual form of an address; a mapped one has that of IPv4. */
function textOf(address: Address, value = address.value): string {
  return canonicalTextOf(isMapped(address) ? { value: value & 0xffff_ffffn, size: 32 } : { ...address, value });
}

/** True for an address in whichever form. */
export function isAddress(text: string): boolean {
  return read(text) !== undefined;
}

/** Gives the usual form of an address; any other text stays as it is. */
export function usualAddress(text: string): string {
  const written = read(text);
  return written === undefined ? text : textOf(written.address);
}

/** The family of an address in whichever form, of which a mapped one is one of IPv4; undefined for what is none. */
export function familyOf(text: string): "IPv4" | "IPv6" | undefined {
  const address = read(text)?.address;
  return address && (address.size === 32 || isMapped(address) ? "IPv4" : "IPv6");
}

/** Lists what is wrong with an address of IPv4 or IPv6. */
export function addressProblems(text: string): string[] {
  const written = read(text);
  if (written === undefined) return [IP_RULE];
  return [
    ...(written.hasLeadingZeros ? ["must not have leading 0s"] : []),
    ...(isMapped(written.address) ? ["must not be an IPv4-mapped IPv6 address"] : []),
  ];
}

/** Lists what is wrong with an address that has to be in its usual form, too. */
export function exactAddressProblems(text: string): string[] {
  const problems = addressProblems(text);
  const written = read(text);
  if (problems.length > 0 || written === undefined || textOf(written.address) === text) return problems;
  return [`must be in canonical form ("${textOf(written.address)}")`];
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
  if (isMapped(range.address)) return ["must not have an IPv4-mapped IPv6 address"];
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
  if (one === undefined || other === undefined || one.address.size !== other.address.size) return false;
  return one.length > other.length && maskedBy(one.address, other.length) === maskedBy(other.address, other.length);
}

/** Warns of an address at `path` that is not in its usual form. */
export function addressWarnings(path: string, text: string): string[] {
  const written = read(text);
  if (written === undefined) return [];
  const { address, hasLeadingZeros } = written;
  const usual = textOf(address);
  if (hasLeadingZeros || isMapped(address))
    return [`${path}: non-standard IP address "${text}" is invalid: use "${usual}"`];
  return address.size === 128 && usual !== text
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
  const one = `${textOf(address)}/${address.size}`;
  const warnings = [
    ...(masked === address.value
      ? []
      : [`${path}: CIDR value "${text}" is ambiguous in this context (should be "${usual}" or "${one}"?)`]),
    ...(range.hasLeadingZeros || isMapped(address)
      ? [`${path}: non-standard CIDR value "${text}" is invalid: use "${usual}"`]
      : []),
  ];
  if (warnings.length > 0 || address.size === 32 || usual === text) return warnings;
  return [`${path}: IPv6 CIDR value "${text}" should be in RFC 5952 canonical format ("${usual}")`];
}
