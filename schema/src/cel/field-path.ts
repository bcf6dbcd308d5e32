import { memberSchema, type Schema } from "../values/schema.js";

/** One step of the way to a value: to a declared field, to an entry of a map, or to an item of a list. */
export type Step =
  { readonly kind: "field" | "key"; readonly name: string } | { readonly kind: "index"; readonly index: number };

const STEP = /\.([^.[\]]+)|\['((?:[^'\\]|\\.)*)'\]/y;

/** Reads the `fieldPath` of a rule, such as `.spec['a.b']`, below a schema; undefined if the schema has no such field. */
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
