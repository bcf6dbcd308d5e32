// Kubernetes' library of URLs, which follows Go's url.ParseRequestURI.
import { findUrlProblem } from "../../strings/formats.js";
import { spendText } from "../budget.js";
import { fieldOf, typesOf, valueOfKind, type FunctionsOf } from "../kubernetes-value.js";

const URL_PARTS = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?]*))?([^?]*)(?:\?(.*))?$/s;
const URL_HOST = /^(?:\[([^\]]*)\]|([^:]*))(?::(.*))?$/s;

/** `url`, `isURL` and the parts of a URL. */
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
  // What may not stand in a path is escaped, and what is escaped stays.
  const EscapedPath = path.replace(/[^\w!#$%&'()*+,\-./:;=?@[\]~]+/gu, encodeURIComponent);
  const Host = authority.slice(authority.lastIndexOf("@") + 1);
  const [, bracketed, plain = "", Port = ""] = URL_HOST.exec(Host) ?? [];
  return { text, Scheme: Scheme.toLowerCase(), Host, Hostname: bracketed ?? plain, Port, EscapedPath, Query };
}
