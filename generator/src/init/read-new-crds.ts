import { hasErrors, type Diagnostic } from "../diagnostic.js";
import type { Crd } from "../input/crd/crd.js";
import { readCrdFiles } from "../input/crd/read-crd-files.js";
import { readCrds } from "../input/crd/read-crds.js";
import { findCrdFiles, readProjectFile } from "../input/project-files.js";
import type { Inputs } from "../input/source/read-inputs.js";
import { formatKind, type KindName } from "../model/build/resource-catalog.js";
import { checkDuplicateKind } from "../model/rules/kinds/duplicate-kind.js";
import { withPaths, type NewCrdFile, type PrimaryKind } from "../output/project/new-crds.js";

/** The files that a project is to get, and what is wrong with them. */
export interface NewCrds {
  readonly files: readonly NewCrdFile[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Finds the CRDs in what a command was given for a project, which need not exist yet. Files without a CRD are passed over. */
export async function readNewCrds(project: string, read: Inputs): Promise<NewCrds> {
  const { crds, kinds, diagnostics } = readCrdFiles(read);
  if (hasErrors(diagnostics)) return { files: [], diagnostics };
  const isOf = (file: string) => (each: { readonly file?: string }) => each.file === file;
  const files = withPaths(
    read.files.flatMap(({ file, text }) => {
      const own = [...crds.filter(isOf(file)).flatMap(primaryOf), ...kinds.filter(isOf(file)).map(namesOf)];
      return own.length === 0 ? [] : [{ file, text, kinds: own }];
    }),
  );
  if (files.length === 0) return { files, diagnostics: [...diagnostics, NOTHING_SERVED] };
  const present = await readPresentCrds(project);
  // A file that is there already stays as it is.
  const added = files.filter(({ path }) => !present.some(isOf(path))).flatMap(({ file }) => crds.filter(isOf(file)));
  return { files, diagnostics: [...diagnostics, ...checkDuplicateKind([...present, ...added])] };
}

const NOTHING_SERVED: Diagnostic = {
  severity: "error",
  rule: "no-crds",
  message: "no CustomResourceDefinition has a version that is served",
};

function primaryOf({ versions, group, kind, scope }: Crd): PrimaryKind[] {
  const served = versions.filter(({ isServed }) => isServed);
  const version = served.find(({ isStorage }) => isStorage) ?? served[0];
  return version === undefined ? [] : [namesOf({ group, version: version.name, kind, scope })];
}

function namesOf({ scope, ...kind }: KindName & Pick<PrimaryKind, "scope">): PrimaryKind {
  return { name: formatKind(kind), kind: kind.kind, scope };
}

/** What is wrong with these, generating tells. */
async function readPresentCrds(project: string): Promise<Crd[]> {
  const found = await findCrdFiles(project);
  if (!Array.isArray(found)) return [];
  const read = await Promise.all(found.map((file) => readProjectFile(project, file)));
  return read.flatMap((file) => ("rule" in file ? [] : readCrds(file).crds));
}
