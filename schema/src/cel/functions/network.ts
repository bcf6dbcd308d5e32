// The Kubernetes CEL libraries for IP addresses and CIDRs, which follow Go's net/netip, and for URLs, which follow url.ParseRequestURI.
import type { CelMap } from "@bufbuild/cel";
import {
  canonicalTextOf,
  findAddressProblem,
  findNetworkProblem,
  isInside,
  parseAddress,
  parseNetwork,
  type Address,
  type Network,
} from "../../strings/ip-address.js";
import { quote } from "../../strings/escape.js";
import { spendText } from "../budget.js";
import { fieldOf, typesOf, valueOfKind, type FunctionsOf } from "../kubernetes-value.js";
import { findUrlProblem } from "../../strings/formats.js";

const RANGES = {
  isUnspecified: ["0.0.0.0/32", "::/128"],
  isLoopback: ["127.0.0.0/8", "::1/128"],
  isLinkLocalMulticast: ["224.0.0.0/24", "ff02::/16"],
  isLinkLocalUnicast: ["169.254.0.0/16", "fe80::/10"],
} as const;

const NOT_GLOBAL = [
  ...[...RANGES.isUnspecified, ...RANGES.isLoopback, ...RANGES.isLinkLocalUnicast],
  ...["255.255.255.255/32", "224.0.0.0/4", "ff00::/8"],
];

/** `ip`, `isIP`, `cidr`, `isCIDR`, and the methods of addresses and networks. */
export const networkFunctions: FunctionsOf = (library) => {
  const { celFunc, celMethod } = library;
  const { BOOL, STRING, INT, MAP } = typesOf(library);
  const ip = (address: Address) => valueOfKind(library, "ip", { text: canonicalTextOf(address) });
  const cidr = ({ address, bits }: Network) =>
    valueOfKind(library, "cidr", { text: `${canonicalTextOf(address)}/${bits}` });
  const addressOf = (value: CelMap | string): Address =>
    readOrThrow(typeof value === "string" ? value : fieldOf<string>(value, "ip", "text"), parseAddress, addressProblem);
  const networkOf = (value: CelMap | string): Network =>
    readOrThrow(
      typeof value === "string" ? value : fieldOf<string>(value, "cidr", "text"),
      parseNetwork,
      networkProblem,
    );
  const inAny = (value: CelMap, ranges: readonly string[]) =>
    ranges.some((range) => isInside(addressOf(value), networkOf(range)));
  const containsCidr = (outer: Network, inner: Network) => inner.bits >= outer.bits && isInside(inner.address, outer);
  return [
    celFunc("ip", [STRING], MAP, (text) => ip(addressOf(text))),
    celFunc("isIP", [STRING], BOOL, (text) => readPaid(text, parseAddress) !== undefined),
    celFunc("ip.isCanonical", [STRING], BOOL, (text) => canonicalTextOf(addressOf(text)) === text),
    celMethod("family", MAP, [], INT, function () {
      return addressOf(this).size === 32 ? 4n : 6n;
    }),
    ...Object.entries(RANGES).map(([name, ranges]) =>
      celMethod(name, MAP, [], BOOL, function () {
        return inAny(this, ranges);
      }),
    ),
    celMethod("isGlobalUnicast", MAP, [], BOOL, function () {
      return !inAny(this, NOT_GLOBAL);
    }),
    celFunc("cidr", [STRING], MAP, (text) => cidr(networkOf(text))),
    celFunc("isCIDR", [STRING], BOOL, (text) => readPaid(text, parseNetwork) !== undefined),
    celMethod("containsIP", MAP, [STRING], BOOL, function (address) {
      if (parseAddress(address) === undefined) throw new Error("no such overload");
      return isInside(addressOf(address), networkOf(this));
    }),
    celMethod("containsIP", MAP, [MAP], BOOL, function (address) {
      return isInside(addressOf(address), networkOf(this));
    }),
    celMethod("containsCIDR", MAP, [STRING], BOOL, function (inner) {
      return containsCidr(networkOf(this), networkOf(inner));
    }),
    celMethod("containsCIDR", MAP, [MAP], BOOL, function (inner) {
      return containsCidr(networkOf(this), networkOf(inner));
    }),
    celMethod("ip", MAP, [], MAP, function () {
      return ip(networkOf(this).address);
    }),
    celMethod("masked", MAP, [], MAP, function () {
      const { address, bits } = networkOf(this);
      const rest = BigInt(address.size - bits);
      return cidr({ address: { ...address, value: (address.value >> rest) << rest }, bits });
    }),
    celMethod("prefixLength", MAP, [], INT, function () {
      return BigInt(networkOf(this).bits);
    }),
  ];
};

function readPaid<Value>(text: string, parse: (text: string) => Value | undefined): Value | undefined {
  spendText(text);
  return parse(text);
}

function readOrThrow<Value>(
  text: string,
  parse: (text: string) => Value | undefined,
  problemOf: (text: string) => string,
): Value {
  const value = readPaid(text, parse);
  if (value === undefined) throw new Error(problemOf(text));
  return value;
}

function addressProblem(text: string): string {
  const problem = findAddressProblem(text);
  if (problem !== undefined) return `IP Address ${quote(text)} parse error during conversion from string: ${problem}`;
  if (text.includes("%")) return `IP address ${quote(text)} with zone value is not allowed`;
  return `IPv4-mapped IPv6 address ${quote(text)} is not allowed`;
}

function networkProblem(text: string): string {
  const step = "network address parse error during conversion from string";
  const problem = findNetworkProblem(text);
  return `${step}: ${problem === undefined ? `IPv4-mapped IPv6 address ${quote(text)} is not allowed` : `${step}: ${problem}`}`;
}

const URL_PARTS = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?]*))?([^?]*)(?:\?(.*))?$/s;
const URL_HOST = /^(?:\[([^\]]*)\]|([^:]*))(?::(.*))?$/s;

/** `url`, `isURL`, and the accessors of URLs. */
export const urlFunctions: FunctionsOf = (library) => {
  const { celFunc, celMethod } = library;
  const { BOOL, STRING, MAP } = typesOf(library);
  const parts = ["Scheme", "Host", "Hostname", "Port", "EscapedPath"] as const;
  return [
    celFunc("url", [STRING], MAP, (text) => {
      const problem = urlProblem(text);
      if (problem !== undefined) throw new Error(`URL parse error during conversion from string: ${problem}`);
      return valueOfKind(library, "url", urlPartsOf(text));
    }),
    celFunc("isURL", [STRING], BOOL, (text) => urlProblem(text) === undefined),
    ...parts.map((part) =>
      celMethod(`get${part}`, MAP, [], STRING, function () {
        return fieldOf<string>(this, "url", part);
      }),
    ),
    celMethod("getQuery", MAP, [], MAP, function () {
      const query = new URLSearchParams(fieldOf<string>(this, "url", "Query"));
      return new Map([...new Set(query.keys())].map((name) => [name, query.getAll(name)]));
    }),
  ];
};

function urlProblem(text: string): string | undefined {
  spendText(text);
  return findUrlProblem(text);
}

function urlPartsOf(text: string) {
  const [, Scheme = "", authority = "", path = "", Query = ""] = URL_PARTS.exec(text.replace(/#.*$/s, "")) ?? [];
  // Percent-encode characters that are invalid in a path; existing escapes are kept.
  const EscapedPath = path.replace(/[^\w!#$%&'()*+,\-./:;=?@[\]~]+/gu, encodeURIComponent);
  const Host = authority.slice(authority.lastIndexOf("@") + 1);
  const [, bracketed, plain = "", Port = ""] = URL_HOST.exec(Host) ?? [];
  return { text, Scheme: Scheme.toLowerCase(), Host, Hostname: bracketed ?? plain, Port, EscapedPath, Query };
}
