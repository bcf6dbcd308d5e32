import { FAILSAFE_SCHEMA, loadAll, Type } from "js-yaml";
import { isScalar, LineCounter, parseAllDocuments, visit, type Document, type Scalar } from "yaml";
import { quote, type Diagnostic } from "../../diagnostic.js";
import { parseJsonDocuments } from "./json.js";
import { KUBECTL_SCALARS, surprisingValueOf } from "./kubectl-scalars.js";
import { parseYaml, type ParsedYaml } from "./parse-yaml.js";
import { createYamlDocument, positionOf, type YamlSource } from "./yaml-document.js";

/**
 * Parses manifests as kubectl does, and warns where it reads something else than was probably meant.
 *
 * JSON is read as JSON, and else a fast parser reads the values, which accepts what kubectl accepts. The parser that knows positions runs
 * only if a position is asked for, if the fast one finds an error, or if the text may have what needs a closer look. It has no place for
 * what follows a text that only kubectl accepts, and names the nearest value around that.
 */
export function parseManifests(file: string, text: string): ParsedYaml {
  const read = loadJson(text) ?? (NEEDS_CHECKS.test(text) ? undefined : loadValues(text));
  if (read === undefined) return parseYaml(file, text, { scalars: "kubectl" });
  let sources: readonly YamlSource[] | undefined;
  const sourceAt = (index: number): YamlSource => {
    sources ??= parseSources(file, text);
    return sources[index] ?? { file, text, document: EMPTY, lines: new LineCounter() };
  };
  const documents = read.values.map((value, index) => createYamlDocument({ file, value }, () => sourceAt(index)));
  const diagnostics = read.hasSurprises ? documents.flatMap((_, index) => surprisesIn(sourceAt(index))) : [];
  return { documents, diagnostics };
}

// What a closer look is needed for, or what looks like it: an anchor, a merge key, a list as a key, half of a character.
// Each begins with the sign that is rare, and then looks what is before it: so nearly all of a text is passed over at once.
const NEEDS_CHECKS = new RegExp(
  [
    /&(?<=(?:^|[\s[{,])&)[^\s&,[\]{}]/,
    /<<(?<=(?:^|[\s[{,])<<)\s*:/,
    /\?(?<=(?:^|[\s[{,])\?)\s+(?:-\s|\[)/,
    // Prose may have "[1]:" anywhere but where a key begins.
    /\[(?<=(?:^|[{,]|[-?][ \t]|!\S{0,100}[ \t])[ \t]*\[)[^\]]{0,1000}\]\s{0,100}:/,
    /\\(?:u|U0000)[dD][89a-fA-F]/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "m",
);

const EMPTY = { contents: null, errors: [] } as unknown as Document;

interface LoadedValues {
  readonly values: readonly unknown[];
  /** Whether something is read otherwise than YAML 1.2 says. */
  readonly hasSurprises: boolean;
}

function loadJson(text: string): LoadedValues | undefined {
  const values = parseJsonDocuments(text)?.filter((value) => value !== null);
  return values && { values, hasSurprises: false };
}

let hasSurprises = false;

const SCHEMA = FAILSAFE_SCHEMA.extend({
  implicit: KUBECTL_SCALARS.map(
    ({ tag, pattern, read }) =>
      new Type(tag, {
        kind: "scalar",
        resolve: (text: string) => pattern.test(text),
        construct: (text: string) => {
          const value = read(text);
          if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError("no number of JSON");
          hasSurprises ||= surprisingValueOf(text) !== undefined;
          return value;
        },
      }),
  ),
});

// js-yaml gives a key that is a mapping this name.
function listener(event: string, { kind, result }: { kind?: string; result?: unknown }): void {
  if (event === "close" && kind === "mapping" && Object.hasOwn(result as object, "[object Object]"))
    throw new SyntaxError("a mapping is a key");
}

/** Returns the values of the documents that are not empty; undefined if there is any error. */
function loadValues(text: string): LoadedValues | undefined {
  hasSurprises = false;
  try {
    const values = loadAll(text, null, { schema: SCHEMA, listener }).filter(
      (value) => value !== null && value !== undefined,
    );
    return { values, hasSurprises };
  } catch {
    return undefined;
  }
}

function parseSources(file: string, text: string): YamlSource[] {
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
  return ("empty" in parsed ? [] : parsed).flatMap((document, index): YamlSource[] => {
    const { contents } = document;
    if (contents === null || (isScalar(contents) && contents.value === null)) return [];
    const number = parsed.length > 1 ? { number: index + 1 } : {};
    return [{ file, text, document: document as Document, lines, ...number }];
  });
}

function surprisesIn({ file, document, lines }: YamlSource): Diagnostic[] {
  const found: Diagnostic[] = [];
  visit(document, {
    Scalar: (_, { type, source = "", range }: Scalar) => {
      const surprise = type === "PLAIN" ? surprisingValueOf(source) : undefined;
      if (surprise === undefined) return;
      found.push({
        severity: "warning",
        rule: "yaml-scalar",
        message: `kubectl reads ${quote(source)} as ${surprise.value}`,
        position: positionOf(file, lines, range?.[0] ?? 0),
        hint: `write ${surprise.value}, or put it into quotes if it is a text`,
      });
    },
  });
  return found;
}
