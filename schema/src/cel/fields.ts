// The fields of a schema as validation rules name them: reserved words are escaped, and the type and names of a resource are always declared.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-names-in-cel
import { memberSchema, type Schema } from "../values/schema.js";

/** The reserved words of CEL: https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax */
export const RESERVED_WORDS: ReadonlySet<string> = new Set([
  ...["true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"],
  ...["let", "loop", "package", "namespace", "return", "var", "void", "while"],
]);

const ESCAPABLE = /^[a-zA-Z_][a-zA-Z0-9_./-]*$/;

// Literals and operators, which cannot follow a dot.
const UNNAMEABLE: ReadonlySet<string> = new Set(["true", "false", "null", "in"]);

const ESCAPES: { readonly [part: string]: string } = {
  __: "__underscores__",
  ".": "__dot__",
  "-": "__dash__",
  "/": "__slash__",
};

/** Returns whether a rule can also select a field by its unescaped name although the name is a reserved word. */
export function isPlainlyNamed(name: string): boolean {
  return RESERVED_WORDS.has(name) && !UNNAMEABLE.has(name);
}

/** Returns the escaped name of a field; undefined if rules cannot select it. */
export function escapeName(name: string): string | undefined {
  if (RESERVED_WORDS.has(name)) return `__${name}__`;
  if (!ESCAPABLE.test(name)) return undefined;
  return name.replace(/__|[./-]/g, (part) => ESCAPES[part] ?? part);
}

type Properties = NonNullable<Schema["properties"]>;

const TEXT: Schema = { type: "string" };
const RESOURCE: Properties = {
  apiVersion: TEXT,
  kind: TEXT,
  metadata: { type: "object", properties: { name: TEXT, generateName: TEXT } },
};

/**
 * Returns the fields of a resource that are visible to rules: its own properties if its schema declares apiVersion, kind, metadata.name, and
 * metadata.generateName as strings; otherwise its properties with the standard declarations of apiVersion, kind, and metadata.
 */
export function resourceFields(properties: Properties = {}): Properties {
  const { apiVersion, kind, metadata } = properties;
  const { name, generateName } = metadata?.type === "object" ? (metadata.properties ?? {}) : {};
  const isWhole = [apiVersion, kind, name, generateName].every((field) => field?.type === "string");
  return isWhole ? properties : { ...properties, ...RESOURCE };
}

/** A step of a path: a declared field, a key of a map, or an index of a list. */
export type Step =
  { readonly kind: "field" | "key"; readonly name: string } | { readonly kind: "index"; readonly index: number };

const STEP = /\.([^.[\]]+)|\['((?:[^'\\]|\\.)*)'\]/y;

/** Parses the `fieldPath` of a rule, such as `.spec['a.b']`; returns undefined if the schema has no such field. */
export function parseFieldPath(path: string, schema: Schema): readonly Step[] | undefined {
  const steps: Step[] = [];
  let node: Schema | undefined = schema;
  let index = 0;
  while (index < path.length) {
    STEP.lastIndex = index;
    const [match, plain, quoted = ""]: readonly (string | undefined)[] = STEP.exec(path) ?? [];
    if (match === undefined) return undefined;
    const name = plain ?? quoted.replace(/\\(.)/g, "$1");
    const isField: boolean = node.properties !== undefined;
    node = memberSchema(isField ? { properties: node.properties! } : node, name);
    if (node === undefined) return undefined;
    steps.push({ kind: isField ? "field" : "key", name });
    index += match.length;
  }
  return steps;
}
