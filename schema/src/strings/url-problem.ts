import { quote } from "./quote.js";

const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*)?:/;

/** Returns what Go's url.ParseRequestURI says of a text that is no URL; undefined if it is one. */
export function findUrlProblem(text: string): string | undefined {
  const problem = problemOf(text);
  return problem === undefined ? undefined : `parse ${quote(text)}: ${problem}`;
}

function problemOf(text: string): string | undefined {
  if (/[\u0000-\u001f\u007f]/.test(text)) return "net/url: invalid control character in URL";
  if (text === "") return "empty url";
  if (text === "*") return undefined;
  const [prefix = "", scheme] = SCHEME.exec(text) ?? [];
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
