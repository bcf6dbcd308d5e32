import { digestOf } from "../../parts/digest.js";
import type { PartMemory } from "../../parts/part-memory.js";
import type { Place } from "../yaml/yaml-document.js";
import type { Crd, CrdVersion } from "./crd.js";
import { exactAsText } from "./schema/exact-integers.js";
import { readCrds, type CrdFile } from "./read-crds.js";

/** What is known of a CRD without its schemas. */
interface CrdOutline extends Omit<Crd, "versions" | "document" | "placeOf" | "keyAt" | "findProblems"> {
  readonly versions: readonly Omit<CrdVersion, "schema">[];
}

/** A file with a text that may not be needed. */
export interface CrdSource {
  readonly file: string;
  /** Stands for what the file holds. */
  readonly digest: string;
  readText(): string;
}

/** Tells whether an earlier run has read what a file holds. */
export function hasReadCrds({ file, digest }: Pick<CrdSource, "file" | "digest">, parts: PartMemory): boolean {
  return parts.has(PART, digestOf(file, digest));
}

const PART = "crds";

/** Reads the CRDs of a file. If an earlier run has read the same file, its text is read only when somebody looks at a schema. */
export function recallCrds(source: CrdSource, parts: PartMemory): CrdFile {
  const { file, digest } = source;
  const key = digestOf(file, digest);
  let content: CrdFile | undefined;
  const read = () => (content ??= readCrds({ file, text: source.readText() }));
  const crdAt = (index: number): Crd => {
    const crd = read().crds[index];
    if (crd === undefined) throw new Error(`${file} has fewer CRDs than it had`);
    return crd;
  };
  const { outlines, hasKinds, hasDefinitions, diagnostics } = parts.recall(PART, key, () => {
    const { crds, kinds, hasDefinitions, diagnostics } = read();
    return { outlines: crds.map(outlineOf), hasKinds: kinds.length > 0, hasDefinitions, diagnostics };
  });
  // The description of a cluster's kinds is no matter of single schemas.
  if (hasKinds) return read();
  const crds = outlines.map((outline, index) => {
    const placeOf = () => parts.recall("place", digestOf(key, String(index)), (): Place => crdAt(index).placeOf());
    const findProblems = () =>
      parts.recall("definition", digestOf(key, String(index)), () => crdAt(index).findProblems());
    return completed(outline, { crd: () => crdAt(index), placeOf, findProblems });
  });
  return { file, crds, kinds: [], hasDefinitions, diagnostics };
}

function outlineOf({
  versions,
  document,
  placeOf: _placeOf,
  keyAt: _keyAt,
  findProblems: _,
  ...outline
}: Crd): CrdOutline {
  return {
    ...outline,
    digest: digestOf(JSON.stringify(document, exactAsText)),
    versions: versions.map(({ schema: _schema, ...version }) => version),
  };
}

interface Completion extends Pick<Crd, "placeOf" | "findProblems"> {
  crd(): Crd;
}

function completed(outline: CrdOutline, { crd, placeOf, findProblems }: Completion): Crd {
  return {
    ...outline,
    versions: outline.versions.map((version, index) => ({
      ...version,
      get schema() {
        return crd().versions[index]!.schema;
      },
    })),
    get document() {
      return crd().document;
    },
    placeOf,
    findProblems,
    keyAt: (path) => crd().keyAt(path),
  };
}
