import {
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  visit,
  type Alias,
  type Node,
  type Scalar,
  type YAMLMap,
} from "yaml";
import { formatPosition, MOST_FOUND, quote, type Diagnostic } from "../../diagnostic.js";
import { BINARY_TAG } from "../yaml/kubectl-scalars.js";
import type { Scalars } from "../yaml/parse-yaml.js";
import { formatPath, keyTextOf, MERGE_KEY, positionOf, type YamlSource } from "../yaml/yaml-document.js";

/** How many values the aliases of one document may stand for. */
const MAX_EXPANDED = 100_000;

/** How many aliases a document may have; the library searches the whole document for the anchor of each. */
const MAX_ALIASES = 1000;

/** Finds what YAML allows and no spec means: keys that come twice, aliases that expand without end, tags of applications. */
export function checkNodes(source: YamlSource, scalars: Scalars): Diagnostic[] {
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
      if (problem !== undefined) diagnostics.push({ ...at(source, alias), rule: "yaml-alias", message: problem });
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
      rule: "yaml-tag",
      ...(scalars === "kubectl" && node.tag.startsWith("!")
        ? { severity: "warning", message: `kubectl ignores the YAML tag ${quote(node.tag)}` }
        : { message: `${quote(node.tag)} is read as a YAML tag, which has no meaning here` }),
      hint: 'put a text that starts with "!" into quotes',
    },
  ];
}

function isKnownTag(tag: string): boolean {
  return /^tag:yaml\.org,2002:(?:str|int|float|bool|null|map|seq|merge)$/.test(tag) || tag === "!";
}

function duplicateKeys(map: YAMLMap, ancestors: readonly unknown[], source: YamlSource): Diagnostic[] {
  const first = new Map<string, YAMLMap["items"][number]>();
  const path = pathOf(ancestors);
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
        rule: isDependent ? "duplicate-dependent" : "duplicate-key",
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
    return [{ ...at(source, firstKeyIn(key)), rule: "yaml-key", message }];
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
    return [{ ...at(source, isNode(value) && value.range != null ? value : key), rule: "yaml-merge", message }];
  });
}

/** Finds what no JSON can say: numbers that are none, and halves of characters, which no file can hold. */
function unreadableValue(scalar: Scalar, source: YamlSource): Diagnostic[] {
  const { value } = scalar;
  if (typeof value === "number" && !Number.isFinite(value))
    return [{ ...at(source, scalar), rule: "yaml-number", message: `${scalar.source} is no number of JSON` }];
  if (typeof value !== "string" || !/\p{Surrogate}/u.test(value)) return [];
  const message = `${quote(value)} has half of a character: \\ud800 to \\udfff stand for characters only in pairs`;
  return [{ ...at(source, scalar), rule: "yaml-text", message }];
}

function pathOf(ancestors: readonly unknown[]): (string | number)[] {
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
  return { severity: "error" as const, position: positionOf(file, lines, offset) };
}
