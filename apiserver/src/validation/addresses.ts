// Validation and canonicalization of IPv4 and IPv6 addresses and CIDRs, with the error messages of Kubernetes 1.36.
import { type Address, canonicalTextOf, isMapped, readAddress } from "@gen-operator/schema";

const DOTTED = /^\d+(\.\d+){3}$/;
const IP_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const CIDR_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/** A parsed IP address. */
interface WrittenAddress {
  readonly address: Address;
  readonly hasLeadingZeros: boolean;
}

interface Range extends WrittenAddress {
  readonly length: number;
}

// Leading zeros are parsed as decimal, as Go did before 1.17.
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

/** Formats an IP in canonical form; an IPv4-mapped IPv6 address is formatted as IPv4. */
function textOf(address: Address, value = address.value): string {
  return canonicalTextOf(isMapped(address) ? { value: value & 0xffff_ffffn, size: 32 } : { ...address, value });
}

/** True for a valid IP in any form. */
export function isAddress(text: string): boolean {
  return read(text) !== undefined;
}

/** Canonicalizes an IP; other strings are returned unchanged. */
export function usualAddress(text: string): string {
  const written = read(text);
  return written === undefined ? text : textOf(written.address);
}

/** Returns the IP family; an IPv4-mapped IPv6 address is IPv4. Returns undefined for an invalid IP. */
export function familyOf(text: string): "IPv4" | "IPv6" | undefined {
  const address = read(text)?.address;
  return address && (address.size === 32 || isMapped(address) ? "IPv4" : "IPv6");
}

/** Returns the problems of an IP. */
export function addressProblems(text: string): string[] {
  const written = read(text);
  if (written === undefined) return [IP_RULE];
  return [
    ...(written.hasLeadingZeros ? ["must not have leading 0s"] : []),
    ...(isMapped(written.address) ? ["must not be an IPv4-mapped IPv6 address"] : []),
  ];
}

/** Returns the problems of an IP that must be in canonical form. */
export function exactAddressProblems(text: string): string[] {
  const problems = addressProblems(text);
  const written = read(text);
  if (problems.length > 0 || written === undefined || textOf(written.address) === text) return problems;
  return [`must be in canonical form ("${textOf(written.address)}")`];
}

/** True for a CIDR, even if bits beyond the prefix length are set. */
export function isCidr(text: string): boolean {
  return readRange(text) !== undefined;
}

/** Returns the problems of a CIDR. */
export function cidrProblems(text: string): string[] {
  const range = readRange(text);
  if (range === undefined) return [CIDR_RULE];
  if (range.hasLeadingZeros) return ["must not have leading 0s in IP or prefix length"];
  if (isMapped(range.address)) return ["must not have an IPv4-mapped IPv6 address"];
  const isWhole = maskedBy(range.address, range.length) === range.address.value;
  return isWhole ? [] : ["must not have bits set beyond the prefix length"];
}

/** Returns the problems of a CIDR that must be in canonical form. */
export function exactCidrProblems(text: string): string[] {
  const problems = cidrProblems(text);
  const range = readRange(text);
  if (problems.length > 0 || range === undefined) return problems;
  const usual = `${textOf(range.address)}/${range.length}`;
  return usual === text ? [] : [`must be in canonical form ("${usual}")`];
}

/** True if a CIDR is a proper subset of another one. */
export function isPartOf(part: string, whole: string): boolean {
  const [one, other] = [readRange(part), readRange(whole)];
  if (one === undefined || other === undefined || one.address.size !== other.address.size) return false;
  return one.length > other.length && maskedBy(one.address, other.length) === maskedBy(other.address, other.length);
}

/** Warns about an IP at `path` that is not in canonical form. */
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

/** Warns about a CIDR at `path` that is not in canonical form, or has bits set beyond its prefix length. */
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
