import { hasErrors, type Diagnostic } from "../../diagnostic.js";
import { CrdReader } from "./crd-reader.js";
import type { BuiltinKind } from "./builtin-kinds.js";
import type { Crd, Located } from "./crd.js";
import { readOpenApiKinds } from "./open-api-kinds.js";
import { isRecord } from "../yaml/json.js";
import { parseManifests } from "../yaml/parse-manifests.js";
import type { ProjectFile } from "../project-files.js";
import type { YamlDocument } from "../yaml/yaml-document.js";

/** The CRDs of a file, and what is wrong with it. */
export interface CrdFile {
  readonly file: string;
  readonly crds: readonly Crd[];
  /** The kinds of an OpenAPI document. */
  readonly kinds: readonly BuiltinKind[];
  /** Whether a document says that it is a CRD, right or wrong, or the file describes kinds without a CRD. */
  readonly hasDefinitions: boolean;
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the CRDs of a file: in every document, and in lists. Other kinds are passed over. */
export function readCrds({ file, text }: ProjectFile): CrdFile {
  const kinds = readOpenApiKinds(file, text);
  if (kinds !== undefined) return { file, crds: [], kinds, hasDefinitions: kinds.length > 0, diagnostics: [] };
  const { documents, diagnostics: problems } = parseManifests(file, text);
  const diagnostics = [...problems];
  const crds: Crd[] = [];
  let hasDefinitions = hasErrors(problems);
  for (const document of documents)
    for (const { value, path } of objectsOf(document)) {
      if (!isRecord(value) || value["kind"] !== "CustomResourceDefinition") continue;
      hasDefinitions = true;
      const reader = new CrdReader(document, path);
      const crd = reader.read(value);
      diagnostics.push(...reader.diagnostics);
      if (crd !== undefined) crds.push(crd);
    }
  const template = hasErrors(diagnostics) ? helmTemplateProblem({ file, text }) : undefined;
  if (template !== undefined) return { file, crds: [], kinds: [], hasDefinitions: true, diagnostics: [template] };
  return { file, crds, kinds: [], hasDefinitions, diagnostics };
}

/** An action of a template where YAML has a line or a value; descriptions may have them, too, in the middle of a text. */
const HELM_ACTION = /^[ \t]*(?:- )?(?:[^\s#'"]+:[ \t]+)?(?=\{\{)/m;

/** Returns what is wrong with a template of Helm, in place of all the errors that YAML has for it. */
function helmTemplateProblem({ file, text }: ProjectFile): Diagnostic | undefined {
  const found = HELM_ACTION.exec(text);
  if (found === null) return undefined;
  const before = text.slice(0, found.index + found[0].length).split("\n");
  return {
    severity: "error",
    rule: "helm-template",
    message: `"{{" belongs to Helm: the file is a template, and no manifest`,
    position: { file, line: before.length, column: (before.at(-1) ?? "").length + 1 },
    hint: "render the chart and read the result: helm template CHART --include-crds | gen-operator types --out DIR -",
  };
}

/** Returns the objects of a document: itself, or the items if it is a list. */
function objectsOf({ value }: YamlDocument): Located[] {
  if (!isRecord(value)) return [];
  const { kind, items } = value;
  if (!Array.isArray(items) || typeof kind !== "string" || !kind.endsWith("List")) return [{ value, path: [] }];
  return items.map((item: unknown, index) => ({ value: item, path: ["items", index] }));
}
