import { didYouMean, quote, type Diagnostic } from "../diagnostic.js";
import { checkSchema } from "./crd/schema/check-schema.js";
import { isRecord } from "./yaml/json.js";
import { parseYaml } from "./yaml/parse-yaml.js";
import { pathInProject, readProjectFile } from "./project-files.js";
import type { WorkflowSpec } from "./workflow-spec.js";

/** A file that an external dependent names for the type of its resources. */
export interface ExternalFile {
  /** Relative to the project. */
  readonly path: string;
  /** The type that is meant; absent if the file has a schema. */
  readonly typeName?: string;
  /** The schema in it. */
  readonly schema?: { readonly [keyword: string]: unknown };
  /** What is wrong with it; those without a position are about what the spec says. */
  readonly problems: readonly Diagnostic[];
}

/** Reads the files that external dependents name, by the texts that the specs have for them. `texts` take the place of what is on disk. */
export async function readExternalFiles(
  project: string,
  workflows: readonly WorkflowSpec[],
  texts: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, ExternalFile>> {
  const all = workflows.flatMap(({ dependents }) => [...dependents.values()].flatMap(({ external }) => external ?? []));
  const types = new Set(
    all.flatMap(({ type, desiredType, state }) => [type, desiredType, state?.type].flatMap((each) => each ?? [])),
  );
  const schemas = new Set(all.flatMap(({ schema }) => schema ?? []));
  const readText = (path: string) => readTextOf(path, project, texts);
  const read = [
    ...[...types].map(async (type) => [type, await readType(type, readText)] as const),
    ...[...schemas].map(async (path) => [path, await readSchema(path, readText)] as const),
  ];
  return new Map(await Promise.all(read));
}

type ReadText = (path: string) => Promise<string | Diagnostic>;

async function readType(type: string, readText: ReadText): Promise<ExternalFile> {
  const [path = "", typeName = ""] = type.split("#");
  const text = await readText(path);
  if (typeof text !== "string") return { path, typeName, problems: [text] };
  if (exportsType(text, typeName)) return { path, typeName, problems: [] };
  const hint = didYouMean(typeName, exportedTypesOf(text))?.hint ?? `declare it: export interface ${typeName} { … }`;
  return { path, typeName, problems: [problem(`${quote(path)} exports no ${quote(typeName)}`, hint)] };
}

async function readSchema(path: string, readText: ReadText): Promise<ExternalFile> {
  const text = await readText(path);
  if (typeof text !== "string") return { path, problems: [text] };
  const { documents, diagnostics } = parseYaml(path, text);
  if (diagnostics.length > 0) return { path, problems: diagnostics };
  const [document] = documents;
  const schema = document?.value;
  if (document === undefined || !isRecord(schema) || schema["type"] !== "object" || !isRecord(schema["properties"]))
    return {
      path,
      problems: [problem(`${quote(path)} is no schema of an object`, "state type: object and properties:")],
    };
  const problems = checkSchema(schema).map(({ path: inside, message }) => ({
    ...problem(message.replace("a CustomResourceDefinition", "an external resource")),
    ...document.valueAt(inside),
  }));
  return { path, schema, problems };
}

async function readTextOf(
  path: string,
  project: string,
  texts: ReadonlyMap<string, string>,
): Promise<string | Diagnostic> {
  const file = pathInProject(project, path);
  if (file === undefined) return problem(`${quote(path)} is outside the project`);
  const text = texts.get(file);
  if (text !== undefined) return text;
  const read = await readProjectFile(project, file);
  return "rule" in read ? problem(read.message) : read.text;
}

function problem(message: string, hint?: string): Diagnostic {
  return { severity: "error", rule: "external-type", message, ...(hint === undefined ? {} : { hint }) };
}

// What is generated imports it, so the compiler says what a search in the text misses.
function exportsType(text: string, name: string): boolean {
  return exportedTypesOf(text).includes(name) || /\bexport\s+(?:type\s+)?\*\s+from\b/.test(text);
}

function exportedTypesOf(text: string): string[] {
  const declared = text.matchAll(/\bexport\s+(?:declare\s+)?(?:abstract\s+)?(?:interface|type|class|enum)\s+([\w$]+)/g);
  const lists = text.matchAll(/\bexport\s+(?:type\s+)?\{([^}]*)\}/g);
  return [
    ...[...declared].map(([, name = ""]) => name),
    ...[...lists].flatMap(([, list = ""]) => list.match(/[\w$]+/g) ?? []),
  ];
}
