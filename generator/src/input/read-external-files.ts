import type { Diagnostic } from "../diagnostic.js";
import { parseYaml } from "./parse-yaml.js";
import { pathInProject, readProjectFile } from "./project-files.js";
import type { WorkflowSpec } from "./workflow-spec.js";
import type { YamlDocument } from "./yaml-document.js";

/** A file that an external dependent names for the type of its resources. */
export interface ExternalFile {
  /** Its text; absent if it cannot be read. */
  readonly text?: string;
  /** Its only document, if it is YAML or JSON. */
  readonly document?: YamlDocument;
  /** What is wrong with it. */
  readonly problems: readonly Diagnostic[];
}

/** Reads the files that external dependents name, by the paths that the specs have for them. */
export async function readExternalFiles(
  project: string,
  workflows: readonly WorkflowSpec[],
): Promise<ReadonlyMap<string, ExternalFile>> {
  const paths = new Set(
    workflows.flatMap(({ dependents }) =>
      [...dependents.values()].flatMap(({ external }) => pathsOf(external?.type, external?.schema)),
    ),
  );
  const read = [...paths].map(async (path) => [path, await readExternalFile(project, path)] as const);
  return new Map(await Promise.all(read));
}

/** Returns the file of a type such as `src/database.ts#Database`, and its name. */
export function partsOfType(type: string): { readonly file: string; readonly name: string } {
  const [file = "", name = ""] = type.split("#");
  return { file, name };
}

function pathsOf(type: string | undefined, schema: string | undefined): string[] {
  return [...(type === undefined ? [] : [partsOfType(type).file]), ...(schema === undefined ? [] : [schema])];
}

async function readExternalFile(project: string, path: string): Promise<ExternalFile> {
  const file = pathInProject(project, path);
  const outside = { severity: "error", rule: "unreadable-file", message: `"${path}" is outside the project` } as const;
  if (file === undefined) return { problems: [outside] };
  const read = await readProjectFile(project, file);
  if ("rule" in read) return { problems: [read] };
  if (!/\.(?:ya?ml|json)$/.test(path)) return { text: read.text, problems: [] };
  const { documents, diagnostics } = parseYaml(file, read.text);
  const [document] = documents;
  return { text: read.text, problems: diagnostics, ...(document === undefined ? {} : { document }) };
}
