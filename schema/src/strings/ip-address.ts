import { isIPv4, isIPv6 } from "node:net";

/** An IP address as a number of so many bits: 32 or 128. */
export interface Address {
  readonly value: bigint;
  readonly size: 32 | 128;
}

/** An address, and how many of its bits name the network. */
export interface Network {
  readonly address: Address;
  readonly bits: number;
}

const MAPPED_IPV4 = 0xffffn;

/** Reads an IP address as rules do: without a zone, and no IPv4 address that is mapped to IPv6. */
export function parseAddress(text: string): Address | undefined {
  const address = readAddress(text);
  return address === undefined || isMapped(address) ? undefined : address;
}

/** Tells whether an IPv6 address stands for one of IPv4. */
export function isMapped({ value, size }: Address): boolean {
  return size === 128 && value >> 32n === MAPPED_IPV4;
}

/** Reads an IP address without a zone, as long as the numbers of IPv4 have no leading zeros. */
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

/** Reads a CIDR, whose address may have bits behind the network. */
export function parseNetwork(text: string): Network | undefined {
  const [, host = "", bits = ""] = /^([^/]*)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const address = parseAddress(host);
  return address === undefined || Number(bits) > address.size ? undefined : { address, bits: Number(bits) };
}

/** Tells whether a network contains an address. */
export function isInside({ value, size }: Address, { address, bits }: Network): boolean {
  const rest = BigInt(size - bits);
  return size === address.size && value >> rest === address.value >> rest;
}

/** Returns the text of an address as RFC 5952 wants it. */
export function canonicalTextOf({ value, size }: Address): string {
  const width = size === 32 ? 8n : 16n;
  const count = size === 32 ? 4 : 8;
  const parts = Array.from(
    { length: count },
    (_, index) => (value >> (width * BigInt(count - 1 - index))) & (2n ** width - 1n),
  );
  return size === 32 ? parts.join(".") : canonicalIPv6(parts.map((part) => part.toString(16)).join(":"));
}

// URLs write IPv6 addresses so.
function canonicalIPv6(text: string): string {
  return new URL(`http://[${text}]`).hostname.slice(1, -1);
}

function numberOf(parts: readonly number[], width: bigint): bigint {
  return parts.reduce((value, part) => (value << width) | BigInt(part), 0n);
}
