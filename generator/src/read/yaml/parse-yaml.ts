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

/** What a file holds, and what is wrong with it. */
export interface ParsedYaml {
  readonly documents: readonly YamlDocument[];
  readonly diagnostics: readonly Diagnostic[];
}

/** How a text is parsed. */
export interface ParseOptions {
  /** How plain scalars are read: as YAML 1.2 says, or as kubectl does. Default: core */
  readonly scalars?: Scalars;
}

/** The reader whose rules hold for scalars and tags. */
export type Scalars = "core" | "kubectl";

/** Parses all documents of a YAML or JSON text; empty ones, and those with errors, are left out. */
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

/** Says where a text is no JSON, and what to do; `error` is what `JSON.parse` threw. */
export function describeJsonError(file: string, text: string, error: SyntaxError): Diagnostic {
  const isOfJson = ({ rule, message }: Diagnostic) => rule === YAML_SYNTAX.id && !message.startsWith("not YAML");
  // YAML accepts more.
  return markOfMerge(file, text) ?? parseYaml(file, text).diagnostics.find(isOfJson) ?? jsonError(file, text, error);
}

function parseDocuments(file: string, text: string, scalars: Scalars): ParsedYaml {
  const deep = findTooDeep(text);
  if (deep !== undefined) return { documents: [], diagnostics: [tooDeepAt(positionAfter(file, text.slice(0, deep)))] };
  const lines = new LineCounter();
  // The library compares each key with all others; checkNodes does it in one pass and names both places.
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
    // The size that aliases stand for was limited above.
    const value: unknown = document.toJS({ maxAliasCount: -1 });
    if (value !== null && value !== undefined) documents.push(createYamlDocument({ file, value }, () => source));
  }
  return { documents, diagnostics };
}

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
        ...YAML_SCALAR.violation,
        message: `kubectl reads ${quote(source)} as ${surprise.value}`,
        position: positionOf(file, lines, range?.[0] ?? 0),
        hint: `write ${surprise.value}, or put it into quotes if it is a text`,
      });
    },
  });
  return found;
}

/** How many values the aliases of one document may stand for. */
const MAX_EXPANDED = 100_000;

/** How many aliases a document may have; the library searches the whole document for the anchor of each. */
const MAX_ALIASES = 1000;

/** Finds what YAML allows and no spec means: keys that come twice, aliases that expand without end, tags of applications. */
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
  // A tag stands before its value, which may be empty and far away.
  const offset = source.text.lastIndexOf(node.tag, node.range?.[0] ?? 0);
  return [
    {
      ...at(source, node),
      ...(offset < 0 ? {} : { position: positionOf(source.file, source.lines, offset) }),
      ...YAML_TAG.violation,
      ...(scalars === "kubectl" && node.tag.startsWith("!")
        ? { severity: "warning", message: `kubectl ignores the YAML tag ${quote(node.tag)}` }
        : { severity: "error", message: `${quote(node.tag)} is read as a YAML tag, which has no meaning here` }),
      hint: 'put a text that starts with "!" into quotes',
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
        ? `${isDependent ? "dependent" : "key"} ${quote(key)} is given twice`
        : `keys ${earlierText} and ${text} are both ${quote(key)} in JSON, so kubectl drops one of them`;
    return [
      {
        ...at(source, pair.key),
        ...(isDependent ? DUPLICATE_DEPENDENT : DUPLICATE_KEY).violation,
        message: `${said}, first at ${formatPosition(position)}`,
        path: formatPath([...path, key]),
        hint: isDependent
          ? "give one of the two another name, or delete it"
          : isCollection(pair.value) && isCollection(earlier.value)
            ? `put the entries of both under one ${quote(key)}, and delete the other`
            : "keep one of the two",
      },
    ];
  });
}

/** Returns a key as it is written where quotes and the spelling of a number make a difference. */
function sourceTextOf({ key }: YAMLMap["items"][number]): string {
  if (!isScalar(key)) return String(key);
  return typeof key.value === "string" ? quote(key.value) : (key.source ?? String(key.value));
}

/** Finds keys that JSON cannot have, and that kubectl refuses. */
function wrongKeys(map: YAMLMap, source: YamlSource): Diagnostic[] {
  const { document } = source;
  return map.items.flatMap(({ key }): Diagnostic[] => {
    const given = isAlias(key) ? key.resolve(document) : key;
    if (!isCollection(given)) return [];
    const message = `a ${isMap(given) ? "mapping" : "list"} cannot be a key: kubectl takes texts, numbers and booleans`;
    return [{ ...at(source, firstKeyIn(key)), ...YAML_KEY.violation, message }];
  });
}

// Where a mapping begins is not where its range does.
function firstKeyIn(key: unknown): unknown {
  return isMap(key) ? (key.items[0]?.key ?? key) : key;
}

/** Finds `<<:` with something else than mappings. */
function wrongMerges(map: YAMLMap, source: YamlSource): Diagnostic[] {
  const { document } = source;
  const isMapping = (node: unknown) => isMap(isAlias(node) ? node.resolve(document) : node);
  return map.items.flatMap((pair): Diagnostic[] => {
    if (keyTextOf(pair) !== MERGE_KEY) return [];
    const { key, value } = pair;
    const merged = isAlias(value) ? value.resolve(document) : value;
    if (isMap(merged) || (isSeq(merged) && merged.items.every(isMapping))) return [];
    const message = '"<<" merges mappings only: expected an alias, a mapping, or a list of these';
    return [{ ...at(source, isNode(value) && value.range != null ? value : key), ...YAML_MERGE.violation, message }];
  });
}

/** Finds what no JSON can say: numbers that are none, and halves of characters, which no file can hold. */
function unreadableValue(scalar: Scalar, source: YamlSource): Diagnostic[] {
  const { value } = scalar;
  if (typeof value === "number" && !Number.isFinite(value))
    return [{ ...at(source, scalar), ...YAML_NUMBER.violation, message: `${scalar.source} is no number of JSON` }];
  if (typeof value !== "string" || !/\p{Surrogate}/u.test(value)) return [];
  const message = `${quote(value)} has half of a character: \\ud800 to \\udfff stand for characters only in pairs`;
  return [{ ...at(source, scalar), ...YAML_TEXT.violation, message }];
}

function pathOfNode(ancestors: readonly unknown[]): (string | number)[] {
  return ancestors.flatMap((node, index): (string | number)[] => {
    if (isPair(node)) return [keyTextOf(node)];
    const next = ancestors[index + 1];
    return isCollection(node) && !isMap(node) && isNode(next) ? [node.items.indexOf(next)] : [];
  });
}

/** Adds up how many values the aliases of a document stand for. */
class AliasSizes {
  readonly #source: YamlSource;
  readonly #sizes = new Map<Node, number>();
  #total = 0;
  #count = 0;

  constructor(source: YamlSource) {
    this.#source = source;
  }

  /** Counts one alias; returns its problem, if it has one. */
  add(alias: Alias, ancestors: readonly unknown[]): string | undefined {
    if (++this.#count > MAX_ALIASES) return `more than ${MAX_ALIASES} aliases`;
    const target = alias.resolve(this.#source.document);
    if (target === undefined) return `${quote(`*${alias.source}`)} refers to an anchor that is not defined before it`;
    if (ancestors.includes(target)) return `${quote(`*${alias.source}`)} refers to a value that contains it`;
    this.#total += this.#sizeOf(target);
    return this.#total > MAX_EXPANDED ? `aliases stand for more than ${MAX_EXPANDED} values` : undefined;
  }

  #sizeOf(node: unknown): number {
    if (isPair(node)) return this.#sizeOf(node.key) + this.#sizeOf(node.value);
    if (isAlias(node)) return this.#sizeOf(node.resolve(this.#source.document));
    if (!isNode(node) || isScalar(node)) return 1;
    const known = this.#sizes.get(node);
    if (known !== undefined) return known;
    // An anchor that contains itself is reported where its alias is; here it must only end.
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

/** How deep brackets, and entries on one line (`- - -`), may nest. The parser calls itself for each level, and overflows the stack at about 800. */
const MOST_LEVELS = 500;
const LONG_LINE = new RegExp(`(?:[-?][ \\t]+){${MOST_LEVELS}}`);

// Tokens of the library that stand for no text: a document, an error in brackets, and that the next token is a plain scalar.
const MARKS: ReadonlySet<string> = new Set(["\u0002", "\u0018"]);
const SCALAR = "\u001f";

/** Returns the offset where a text nests too deeply to be parsed; undefined if it does not. A stack that overflows may end the whole process. */
function findTooDeep(text: string): number | undefined {
  // Nearly no text has so many brackets, or such a line.
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
