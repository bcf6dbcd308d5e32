// What Go's net/netip says of a text that is no address and no network.
import { quote } from "./quote.js";

/** Returns why a text is no IP address, zones allowed; undefined if it is one. */
export function findAddressProblem(text: string): string | undefined {
  const problem = problemOf(text);
  return problem === undefined ? undefined : `ParseAddr(${quote(text)}): ${problem}`;
}

/** Returns why a text is no CIDR; undefined if it is one. */
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

function problemOf(text: string): string | undefined {
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
