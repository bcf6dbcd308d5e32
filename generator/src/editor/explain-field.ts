import { isRecord } from "../read/yaml/values.js";
import { readWorkflowSchema } from "./read-schema.js";

type Node = { readonly [keyword: string]: unknown };

/** A field of a spec. */
interface Field {
  /** Path of the field, for example `spec.dependents.NAME.onImmutable`. */
  readonly path: string;
  readonly name: string;
  readonly schema: Node;
}

/** Lists the names of the fields below `spec` in a workflow.yaml. */
export async function listFieldNames(): Promise<string[]> {
  return [...new Set((await readFields()).map(({ name }) => name))];
}

/** Explains a field of a spec, by name or path, at each of its paths. Undefined if there is no such field. */
export async function explainField(name: string): Promise<string | undefined> {
  const fields = (await readFields()).filter((field) => field.name === name || field.path === name);
  if (fields.length === 0) return undefined;
  const places = fields.map(({ path, schema }) => {
    const { title, description, examples } = schema;
    const example: unknown = Array.isArray(examples) ? examples[0] : undefined;
    return [
      path,
      ...(typeof description === "string" ? [`  ${description}`] : []),
      ...(typeof title === "string" ? [`  Value: ${title}`] : []),
      ...("default" in schema && !String(description).includes("Default:")
        ? [`  Default: ${JSON.stringify(schema["default"])}`]
        : []),
      ...(example === undefined ? [] : [`  Example: ${name.split(".").at(-1)}: ${JSON.stringify(example)}`]),
    ].join("\n");
  });
  return [...places, 'All fields, with an example of each: "The workflow spec" in README.md of gen-operator.'].join(
    "\n\n",
  );
}

async function readFields(): Promise<Field[]> {
  const root = JSON.parse(await readWorkflowSchema()) as Node;
  const found = new Map<string, Field>();
  const visit = (given: unknown, path: string, isAbove: ReadonlySet<unknown>): void => {
    const node = resolve(root, given);
    if (!isRecord(node) || isAbove.has(node)) return;
    const above = new Set(isAbove).add(node);
    for (const [name, child] of Object.entries(isRecord(node["properties"]) ? node["properties"] : {})) {
      const inner = `${path}.${name}`;
      // Alternatives for the same field share its description.
      if (!found.has(inner)) found.set(inner, { path: inner, name, schema: describe(root, child) });
      visit(child, inner, above);
    }
    visit(node["additionalProperties"], `${path}.NAME`, above);
    visit(node["items"], `${path}[]`, above);
    for (const keyword of ["if", "then", "else"]) visit(node[keyword], path, above);
    for (const keyword of ["allOf", "anyOf", "oneOf"])
      for (const each of Array.isArray(node[keyword]) ? (node[keyword] as unknown[]) : []) visit(each, path, above);
  };
  visit(isRecord(root["properties"]) ? root["properties"]["spec"] : undefined, "spec", new Set());
  return [...found.values()];
}

function resolve(root: Node, node: unknown): unknown {
  if (!isRecord(node) || typeof node["$ref"] !== "string") return node;
  const steps = node["$ref"].split("/").slice(1);
  return steps.reduce<unknown>((at, step) => (isRecord(at) ? at[step] : undefined), root);
}

/** Returns the schema of a field, merged with the definition that it references. */
function describe(root: Node, schema: unknown): Node {
  if (!isRecord(schema)) return {};
  const shared = (Array.isArray(schema["allOf"]) ? (schema["allOf"] as unknown[]) : [schema])
    .map((each) => resolve(root, each))
    .filter(isRecord);
  return { ...shared[0], ...schema };
}
