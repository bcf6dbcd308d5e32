import { LineCounter, parseAllDocuments, type Document, type DocumentOptions, type SchemaOptions } from "yaml";
import { hasErrors, positionAfter, type Diagnostic, type SourcePosition } from "../../diagnostic.js";
import { checkNodes } from "../crd/check-nodes.js";
import { BINARY_TAG, KUBECTL_SCALARS, readBinary } from "./kubectl-scalars.js";
import { findTooDeep } from "./nesting.js";
import { jsonError, markOfMerge, syntaxErrors, TOO_DEEP } from "./syntax-errors.js";
import { createYamlDocument, type YamlDocument } from "./yaml-document.js";

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
  return { severity: "error", rule: "yaml-syntax", message: TOO_DEEP, position };
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
  const isOfJson = ({ rule, message }: Diagnostic) => rule === "yaml-syntax" && !message.startsWith("not YAML");
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
    const errors = syntaxErrors(source);
    if (errors.length === 0) errors.push(...checkNodes(source, scalars));
    diagnostics.push(...errors);
    if (hasErrors(errors)) continue;
    // The size that aliases stand for was limited above.
    const value: unknown = document.toJS({ maxAliasCount: -1 });
    if (value !== null && value !== undefined) documents.push(createYamlDocument({ file, value }, () => source));
  }
  return { documents, diagnostics };
}
