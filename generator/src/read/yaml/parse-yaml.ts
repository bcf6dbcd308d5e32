import { FAILSAFE_SCHEMA, Type, loadAll } from "js-yaml";
import {
  type Alias,
  type Document,
  type DocumentOptions,
  Lexer,
  LineCounter,
  type Node,
  type Scalar,
  type SchemaOptions,
  type YAMLMap,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  parseAllDocuments,
  visit,
} from "yaml";
import {
  type Diagnostic,
  MOST_FOUND,
  type SourcePosition,
  formatPosition,
  hasErrors,
  positionAfter,
  quote,
} from "../../diagnostic.js";
import {
  DUPLICATE_DEPENDENT,
  DUPLICATE_KEY,
  YAML_ALIAS,
  YAML_KEY,
  YAML_MERGE,
  YAML_NUMBER,
  YAML_SCALAR,
  YAML_SYNTAX,
  YAML_TAG,
  YAML_TEXT,
} from "./rules.js";
import { TOO_DEEP, jsonError, markOfMerge, syntaxErrors } from "./syntax-errors.js";
import { BINARY_TAG, KUBECTL_SCALARS, parseJsonDocuments, readBinary, surprisingValueOf } from "./values.js";
import {
  MERGE_KEY,
  type YamlDocument,
  type YamlSource,
  createYamlDocument,
  formatPath,
  keyTextOf,
  positionOf,
} from "./yaml-document.js";

/** The documents of a file, and its diagnostics. */
export interface ParsedYaml {
  readonly documents: readonly YamlDocument[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Options of {@link parseYaml}. */
export interface ParseOptions {
  /** How plain scalars are read: with the core schema of YAML 1.2, or like kubectl. Default: core */
  readonly scalars?: Scalars;
}

/** The rules for scalars and tags. */
export type Scalars = "core" | "kubectl";

/** Parses all documents of a YAML or JSON text. Empty documents, and those with errors, are omitted. */
export function parseYaml(file: string, text: string, { scalars = "core" }: ParseOptions = {}): ParsedYaml {
  try {
    return parseDocuments(file, text, scalars);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { documents: [], diagnostics: [tooDeepAt({ file, line: 1, column: 1 })] };
  }
}

function tooDeepAt(position: SourcePosition): Diagnostic {
  return { ...YAML_SYNTAX.violation, message: TOO_DEEP, position };
}

const AS_KUBECTL: DocumentOptions & SchemaOptions = {
  schema: "failsafe",
  customTags: [
    ...KUBECTL_SCALARS.map(({ tag, pattern, read }) => ({ tag, default: true, test: pattern, resolve: read })),
    { tag: BINARY_TAG, resolve: readBinary },
  ],
};

/** Describes why a text is not valid JSON, and how to fix it. `error` is the error of `JSON.parse`. */
export function describeJsonError(file: string, text: string, error: SyntaxError): Diagnostic {
  const isOfJson = ({ rule, message }: Diagnostic) => rule === YAML_SYNTAX.id && !message.startsWith("invalid YAML");
  // YAML accepts a superset of JSON, so it may not find an error.
  return markOfMerge(file, text) ?? parseYaml(file, text).diagnostics.find(isOfJson) ?? jsonError(file, text, error);
}

function parseDocuments(file: string, text: string, scalars: Scalars): ParsedYaml {
  const deep = findTooDeep(text);
  if (deep !== undefined) return { documents: [], diagnostics: [tooDeepAt(positionAfter(file, text.slice(0, deep)))] };
  const lines = new LineCounter();
  // The library compares each key with all others; checkNodes finds duplicates in one pass and reports both positions.
  const parsed = parseAllDocuments(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    merge: true,
    ...(scalars === "core" ? {} : AS_KUBECTL),
  });
  const isBroken = parsed.some(({ errors }) => errors.length > 0);
  const mark = isBroken ? markOfMerge(file, text) : undefined;
  if (mark !== undefined) return { documents: [], diagnostics: [mark] };
  const documents: YamlDocument[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const [index, document] of ("empty" in parsed ? [] : parsed).entries()) {
    const number = parsed.length > 1 ? { number: index + 1 } : {};
    const source = { file, text, document: document as Document, lines, ...number };
    const errors = document.errors.length === 0 ? [] : syntaxErrors(source);
    if (errors.length === 0) errors.push(...checkNodes(source, scalars));
    diagnostics.push(...errors);
    if (hasErrors(errors)) continue;
    // AliasSizes has already limited the expanded size.
    const value: unknown = document.toJS({ maxAliasCount: -1 });
    if (value !== null && value !== undefined) documents.push(createYamlDocument({ file, value }, () => source));
  }
  return { documents, diagnostics };
}

/**
 * Parses manifests like kubectl, and warns about scalars that it probably reads in an unintended way.
 *
 * JSON is parsed as JSON. Otherwise, a fast parser reads the values and accepts what kubectl accepts. The parser with positions only runs if a
 * position is needed, if the fast parser finds an error, or if the text may require further checks. In text that only kubectl accepts, it has no
 * position for later values, and returns that of their nearest ancestor.
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

// Matches text that may require further checks: an anchor, a merge key, a list as a key, or a lone surrogate. Each pattern starts with a rare
// character and then looks behind it, so that most text is skipped quickly.
const NEEDS_CHECKS = new RegExp(
  [
    /&(?<=(?:^|[\s[{,])&)[^\s&,[\]{}]/,
    /<<(?<=(?:^|[\s[{,])<<)\s*:/,
    /\?(?<=(?:^|[\s[{,])\?)\s+(?:-\s|\[)/,
    // Prose may contain "[1]:", but not where a key starts.
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
  /** True if a scalar is read differently than in YAML 1.2. */
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

// js-yaml converts a key that is a mapping to this string.
function listener(event: string, { kind, result }: { kind?: string; result?: unknown }): void {
  if (event === "close" && kind === "mapping" && Object.hasOwn(result as object, "[object Object]"))
    throw new SyntaxError("a mapping is a key");
}

/** Returns the values of the non-empty documents; undefined if there is an error. */
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
        ...YAML_SCALAR.violation,
        message: `kubectl reads ${quote(source)} as ${surprise.value}`,
        position: positionOf(file, lines, range?.[0] ?? 0),
        hint: `use ${surprise.value}, or quote it if it is a string`,
      });
    },
  });
  return found;
}

/** Maximum number of values that the aliases of a document expand to. */
const MAX_EXPANDED = 100_000;

/** Maximum number of aliases in a document. The library searches the whole document for the anchor of each alias. */
const MAX_ALIASES = 1000;

/** Reports valid YAML that is not meaningful in a spec: duplicate keys, aliases that expand without limit, and application tags. */
function checkNodes(source: YamlSource, scalars: Scalars): Diagnostic[] {
  const diagnostics: Diagnostic[] = [];
  const sizes = new AliasSizes(source);
  visit(source.document, {
    Map: (_, map, ancestors) => {
      if (diagnostics.length >= MOST_FOUND) return visit.BREAK;
      diagnostics.push(
        ...duplicateKeys(map, [...ancestors, map], source).slice(0, MOST_FOUND),
        ...wrongMerges(map, source),
        ...wrongKeys(map, source),
        ...unknownTag(map, source, scalars),
      );
      return undefined;
    },
    Alias: (_, alias, ancestors) => {
      const problem = sizes.add(alias, ancestors);
      if (problem !== undefined) diagnostics.push({ ...at(source, alias), ...YAML_ALIAS.violation, message: problem });
      return problem === undefined ? undefined : visit.BREAK;
    },
    Node: (_, node) => {
      if (diagnostics.length >= MOST_FOUND) return visit.BREAK;
      if (isScalar(node)) diagnostics.push(...unreadableValue(node, source));
      diagnostics.push(...unknownTag(node, source, scalars));
      return undefined;
    },
  });
  return diagnostics.slice(0, MOST_FOUND);
}

function unknownTag(node: Node, source: YamlSource, scalars: Scalars): Diagnostic[] {
  if (isAlias(node) || node.tag === undefined || isKnownTag(node.tag)) return [];
  if (scalars === "kubectl" && isScalar(node) && node.tag === BINARY_TAG) return [];
  // A tag precedes its value, which may be empty and far away.
  const offset = source.text.lastIndexOf(node.tag, node.range?.[0] ?? 0);
  return [
    {
      ...at(source, node),
      ...(offset < 0 ? {} : { position: positionOf(source.file, source.lines, offset) }),
      ...YAML_TAG.violation,
      ...(scalars === "kubectl" && node.tag.startsWith("!")
        ? { severity: "warning", message: `kubectl ignores the YAML tag ${quote(node.tag)}` }
        : { severity: "error", message: `YAML tag ${quote(node.tag)} is not allowed` }),
      hint: 'remove the tag, or quote a string that starts with "!"',
    },
  ];
}

function isKnownTag(tag: string): boolean {
  return /^tag:yaml\.org,2002:(?:str|int|float|bool|null|map|seq|merge)$/.test(tag) || tag === "!";
}

function duplicateKeys(map: YAMLMap, ancestors: readonly unknown[], source: YamlSource): Diagnostic[] {
  const first = new Map<string, YAMLMap["items"][number]>();
  const path = pathOfNode(ancestors);
  return map.items.flatMap((pair): Diagnostic[] => {
    const key = keyTextOf(pair);
    const earlier = first.get(key);
    if (earlier === undefined) {
      first.set(key, pair);
      return [];
    }
    const isDependent = path.length === 2 && path[0] === "spec" && path[1] === "dependents";
    const { position } = at(source, earlier.key);
    const [text, earlierText] = [sourceTextOf(pair), sourceTextOf(earlier)];
    const said =
      text === earlierText
        ? `duplicate ${isDependent ? "dependent" : "key"} ${quote(key)}`
        : `keys ${earlierText} and ${text} are both ${quote(key)} in JSON, so kubectl drops one of them`;
    return [
      {
        ...at(source, pair.key),
        ...(isDependent ? DUPLICATE_DEPENDENT : DUPLICATE_KEY).violation,
        message: `${said}, first at ${formatPosition(position)}`,
        path: formatPath([...path, key]),
        hint: isDependent
          ? "rename or remove one of the two"
          : isCollection(pair.value) && isCollection(earlier.value)
            ? `move the entries of both to one ${quote(key)}, and remove the other`
            : "remove one of the two",
      },
    ];
  });
}

/** Formats a key so that quotes and the notation of a number are visible. */
function sourceTextOf({ key }: YAMLMap["items"][number]): string {
  if (!isScalar(key)) return String(key);
  return typeof key.value === "string" ? quote(key.value) : (key.source ?? String(key.value));
}

/** Reports keys that JSON does not have, and that kubectl rejects. */
function wrongKeys(map: YAMLMap, source: YamlSource): Diagnostic[] {
  const { document } = source;
  return map.items.flatMap(({ key }): Diagnostic[] => {
    const given = isAlias(key) ? key.resolve(document) : key;
    if (!isCollection(given)) return [];
    const message = `a ${isMap(given) ? "mapping" : "list"} cannot be a key: must be a string, a number or a boolean`;
    return [{ ...at(source, firstKeyIn(key)), ...YAML_KEY.violation, message }];
  });
}

// The range of a block mapping does not start at its first key.
function firstKeyIn(key: unknown): unknown {
  return isMap(key) ? (key.items[0]?.key ?? key) : key;
}

/** Reports `<<:` with a value other than mappings. */
function wrongMerges(map: YAMLMap, source: YamlSource): Diagnostic[] {
  const { document } = source;
  const isMapping = (node: unknown) => isMap(isAlias(node) ? node.resolve(document) : node);
  return map.items.flatMap((pair): Diagnostic[] => {
    if (keyTextOf(pair) !== MERGE_KEY) return [];
    const { key, value } = pair;
    const merged = isAlias(value) ? value.resolve(document) : value;
    if (isMap(merged) || (isSeq(merged) && merged.items.every(isMapping))) return [];
    const message = '"<<" can merge mappings only: must be an alias, a mapping, or a list of these';
    return [{ ...at(source, isNode(value) && value.range != null ? value : key), ...YAML_MERGE.violation, message }];
  });
}

/** Reports values that JSON cannot represent: numbers that are not finite, and lone surrogates. */
function unreadableValue(scalar: Scalar, source: YamlSource): Diagnostic[] {
  const { value } = scalar;
  if (typeof value === "number" && !Number.isFinite(value))
    return [
      { ...at(source, scalar), ...YAML_NUMBER.violation, message: `invalid value ${scalar.source}: not a JSON number` },
    ];
  if (typeof value !== "string" || !/\p{Surrogate}/u.test(value)) return [];
  const message = `invalid string ${quote(value)}: \\ud800 to \\udfff must occur in surrogate pairs`;
  return [{ ...at(source, scalar), ...YAML_TEXT.violation, message }];
}

function pathOfNode(ancestors: readonly unknown[]): (string | number)[] {
  return ancestors.flatMap((node, index): (string | number)[] => {
    if (isPair(node)) return [keyTextOf(node)];
    const next = ancestors[index + 1];
    return isCollection(node) && !isMap(node) && isNode(next) ? [node.items.indexOf(next)] : [];
  });
}

/** Adds up the number of values that the aliases of a document expand to. */
class AliasSizes {
  readonly #source: YamlSource;
  readonly #sizes = new Map<Node, number>();
  #total = 0;
  #count = 0;

  constructor(source: YamlSource) {
    this.#source = source;
  }

  /** Counts an alias. Returns its problem, or undefined. */
  add(alias: Alias, ancestors: readonly unknown[]): string | undefined {
    if (++this.#count > MAX_ALIASES) return `too many aliases: must be at most ${MAX_ALIASES}`;
    const target = alias.resolve(this.#source.document);
    if (target === undefined) return `${quote(`*${alias.source}`)} refers to an anchor that is not defined before it`;
    if (ancestors.includes(target)) return `${quote(`*${alias.source}`)} refers to a value that contains it`;
    this.#total += this.#sizeOf(target);
    return this.#total > MAX_EXPANDED ? `aliases expand to more than ${MAX_EXPANDED} values` : undefined;
  }

  #sizeOf(node: unknown): number {
    if (isPair(node)) return this.#sizeOf(node.key) + this.#sizeOf(node.value);
    if (isAlias(node)) return this.#sizeOf(node.resolve(this.#source.document));
    if (!isNode(node) || isScalar(node)) return 1;
    const known = this.#sizes.get(node);
    if (known !== undefined) return known;
    // A recursive anchor is reported at its alias; here the recursion only has to terminate.
    this.#sizes.set(node, 1);
    const items: unknown[] = isCollection(node) ? node.items : [];
    const size = items.reduce<number>((sum, item) => Math.min(sum + this.#sizeOf(item), MAX_EXPANDED + 1), 1);
    this.#sizes.set(node, size);
    return size;
  }
}

function at({ file, lines }: YamlSource, node: unknown) {
  const offset = isNode(node) ? (node.range?.[0] ?? 0) : 0;
  return { position: positionOf(file, lines, offset) };
}

/**
 * Maximum depth of brackets, and of block entries on one line (`- - -`). The parser is recursive, and its stack overflows at a depth of about 800.
 */
const MOST_LEVELS = 500;
const LONG_LINE = new RegExp(`(?:[-?][ \\t]+){${MOST_LEVELS}}`);

// Control tokens of the lexer that have no text: the start of a document, an error in a flow collection, and the marker before a plain scalar.
const MARKS: ReadonlySet<string> = new Set(["\u0002", "\u0018"]);
const SCALAR = "\u001f";

/** Returns the offset at which a text is nested too deeply to be parsed; undefined if it is not. A stack overflow could end the process. */
function findTooDeep(text: string): number | undefined {
  // Fast path: hardly any text has so many brackets, or such a line.
  if ((text.match(/[[{]/g)?.length ?? 0) < MOST_LEVELS && !LONG_LINE.test(text)) return undefined;
  let [offset, brackets, entries] = [0, 0, 0];
  let isScalar = false;
  for (const token of new Lexer().lex(text)) {
    if (MARKS.has(token)) continue;
    if (token === SCALAR) {
      isScalar = true;
      continue;
    }
    if (!isScalar) {
      if (token === "[" || token === "{") brackets++;
      else if (token === "]" || token === "}") brackets--;
      else if (token === "-" || token === "?") entries++;
      else if (token.startsWith("\n") || token.startsWith("\r")) entries = 0;
      if (brackets + entries > MOST_LEVELS) return offset;
    }
    isScalar = false;
    offset += token.length;
  }
  return undefined;
}
