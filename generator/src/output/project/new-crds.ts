import { basename, parse } from "node:path";

/** A kind that a controller of a new spec can have as its primary. */
export interface PrimaryKind {
  /** As a spec names it: `example.com/v1/WebPage`. */
  readonly name: string;
  readonly kind: string;
  readonly scope: "Namespaced" | "Cluster";
}

/** A file with CRDs, or with kinds that have none, which a project is to get. */
export interface NewCrdFile {
  /** Where it comes from. */
  readonly file: string;
  /** Where it goes: `crds/webpages.example.com.yaml`. */
  readonly path: string;
  readonly text: string;
  /** Each kind in the version that is stored, or in another one that is served. */
  readonly kinds: readonly PrimaryKind[];
}

/** Gives files their paths in a project. Files of one name get paths of their own, as some file systems do not tell upper from lower case. */
export function withPaths<File extends { readonly file: string }>(files: readonly File[]): (File & { path: string })[] {
  const taken = new Set<string>();
  return files.map((each) => {
    // Standard input has no name.
    const { name, ext } = parse(/^<.*>$/.test(each.file) ? "crds.yaml" : basename(each.file));
    let path = `crds/${name}${ext}`;
    for (let number = 2; taken.has(path.toLowerCase()); number += 1) path = `crds/${name}-${number}${ext}`;
    taken.add(path.toLowerCase());
    return { ...each, path };
  });
}
