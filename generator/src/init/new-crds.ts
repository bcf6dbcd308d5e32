import { basename, parse } from "node:path";
import { checkDuplicateKind } from "../check/kinds.js";
import { type Diagnostic, hasErrors } from "../diagnostic.js";
import { type KindName, formatKind } from "../model/resolved-project.js";
import { type Crd, readCrdFiles, readCrds } from "../read/crd/read-crds.js";
import { NO_CRDS } from "../read/crd/rules.js";
import { findCrdFiles, readProjectFile } from "../read/project-files.js";
import type { Inputs } from "../read/read-inputs.js";

/** A kind that can be the primary of a new controller. */
export interface PrimaryKind {
  /** The kind as in a spec, for example `example.com/v1/WebPage`. */
  readonly name: string;
  readonly kind: string;
  readonly scope: "Namespaced" | "Cluster";
}

/** A file with CRDs, or with kinds without a CRD, to add to a project. */
export interface NewCrdFile {
  /** Path of the source file. */
  readonly file: string;
  /** Path in the project, for example `crds/webpages.example.com.yaml`. */
  readonly path: string;
  readonly text: string;
  /** The kinds in the file, each in its storage version, or in another served version. */
  readonly kinds: readonly PrimaryKind[];
}

/** Assigns paths in the project. Names that differ only in case get different paths, because some file systems are case-insensitive. */
function withPaths<File extends { readonly file: string }>(files: readonly File[]): (File & { path: string })[] {
  const taken = new Set<string>();
  return files.map((each) => {
    // Standard input has no file name.
    const { name, ext } = parse(/^<.*>$/.test(each.file) ? "crds.yaml" : basename(each.file));
    let path = `crds/${name}${ext}`;
    for (let number = 2; taken.has(path.toLowerCase()); number += 1) path = `crds/${name}-${number}${ext}`;
    taken.add(path.toLowerCase());
    return { ...each, path };
  });
}

/** The files to add to a project, with their diagnostics. */
export interface NewCrds {
  readonly files: readonly NewCrdFile[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Finds the CRDs in the input of a command. The project need not exist yet. Files without a CRD are skipped. */
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
  // An existing file is not overwritten.
  const added = files.filter(({ path }) => !present.some(isOf(path))).flatMap(({ file }) => crds.filter(isOf(file)));
  return { files, diagnostics: [...diagnostics, ...checkDuplicateKind([...present, ...added])] };
}

const NOTHING_SERVED: Diagnostic = {
  ...NO_CRDS.violation,
  message: "no CustomResourceDefinition has a served version",
};

function primaryOf({ versions, group, kind, scope }: Crd): PrimaryKind[] {
  const served = versions.filter(({ isServed }) => isServed);
  const version = served.find(({ isStorage }) => isStorage) ?? served[0];
  return version === undefined ? [] : [namesOf({ group, version: version.name, kind, scope })];
}

function namesOf({ scope, ...kind }: KindName & Pick<PrimaryKind, "scope">): PrimaryKind {
  return { name: formatKind(kind), kind: kind.kind, scope };
}

/** Problems of existing files are reported by generate. */
async function readPresentCrds(project: string): Promise<Crd[]> {
  const found = await findCrdFiles(project);
  if (!Array.isArray(found)) return [];
  const read = await Promise.all(found.map((file) => readProjectFile(project, file)));
  return read.flatMap((file) => ("rule" in file ? [] : readCrds(file).crds));
}
