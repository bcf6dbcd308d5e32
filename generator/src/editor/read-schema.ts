import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { didYouMean, quote, type Diagnostic } from "../diagnostic.js";
import { buildKindSchema } from "./kind-schema.js";
import { readBuiltinKinds, withKinds } from "../input/crd/builtin-kinds.js";
import { readCrds } from "../input/crd/read-crds.js";
import { listCrdFiles, readProjectFile } from "../input/project-files.js";
import { buildCatalog, parseKind, type ResourceCatalog } from "../model/build/resource-catalog.js";
import { packageFile } from "../package-file.js";
import type { ResourceModel } from "../model/project-model.js";

/** The JSON Schema of workflow specs, as it is published. */
export async function readWorkflowSchema(): Promise<string> {
  return readFile(packageFile("data/workflow.schema.json"), "utf8");
}

/** Returns the JSON Schema of a kind of a project or of Kubernetes: `WebPage`, `Deployment`, `example.com/v1/WebPage`. */
export async function readKindSchema(
  project: string,
  name: string,
): Promise<{ readonly schema?: object; readonly diagnostics: readonly Diagnostic[] }> {
  const root = resolve(project);
  const read = await Promise.all((await listCrdFiles(root)).map((file) => readProjectFile(root, file)));
  const parsed = read.map((file) => ("rule" in file ? { crds: [], kinds: [], diagnostics: [file] } : readCrds(file)));
  const diagnostics = parsed.flatMap((each) => [...each.diagnostics]);
  const catalog = buildCatalog(
    parsed.flatMap(({ crds }) => crds),
    withKinds(
      await readBuiltinKinds(),
      parsed.flatMap(({ kinds }) => kinds),
    ),
  );
  const resource = findKind(catalog, name);
  if (resource !== undefined) return { schema: buildKindSchema(resource), diagnostics };
  const kinds = catalog.names.map((each) => parseKind(each).kind);
  const problem: Diagnostic = {
    severity: "error",
    rule: "unknown-kind",
    message: `neither crds/ nor Kubernetes has a kind ${quote(name)}`,
    ...didYouMean(name, name.includes("/") ? catalog.names : kinds),
  };
  return { diagnostics: [...diagnostics, problem] };
}

// A kind alone is the one of the project before that of Kubernetes, in the version that is stored.
function findKind(catalog: ResourceCatalog, name: string): ResourceModel | undefined {
  if (name.includes("/")) return catalog.find(parseKind(name));
  const custom = catalog.custom.filter(({ kind }) => kind === name);
  if (custom.length > 0) return custom.find(({ isStorage }) => isStorage) ?? custom[0];
  const names = catalog.names.map(parseKind).filter(({ kind }) => kind === name);
  const stable = names.find(({ version }) => /^v\d+$/.test(version)) ?? names[0];
  return stable === undefined ? undefined : catalog.find(stable);
}
