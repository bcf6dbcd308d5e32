import { digestOf } from "../../parts/digest.js";
import type { PartMemory } from "../../parts/part-memory.js";
import type { ProjectFile } from "../project-files.js";
import type { Place } from "../yaml/yaml-document.js";
import type { Crd, CrdVersion } from "./crd.js";
import { readCrds, type CrdFile } from "./read-crds.js";

/** What is known of a CRD without its schemas. */
interface CrdOutline extends Omit<Crd, "versions" | "document" | "placeOf"> {
  readonly versions: readonly Omit<CrdVersion, "schema">[];
}

/** Reads the CRDs of a file. If an earlier run has read the same text, it is parsed only when somebody looks at a schema. */
export function recallCrds(source: ProjectFile, parts: PartMemory): CrdFile {
  const { file, text } = source;
  const key = digestOf(file, text);
  let read: CrdFile | undefined;
  const crdAt = (index: number): Crd => {
    read ??= readCrds(source);
    const crd = read.crds[index];
    if (crd === undefined) throw new Error(`${file} has fewer CRDs than it had`);
    return crd;
  };
  const { outlines, hasKinds, hasDefinitions, diagnostics } = parts.recall("crds", key, () => {
    read ??= readCrds(source);
    const { crds, kinds, hasDefinitions, diagnostics } = read;
    return { outlines: crds.map(outlineOf), hasKinds: kinds.length > 0, hasDefinitions, diagnostics };
  });
  // The description of a cluster's kinds is no matter of single schemas.
  if (hasKinds) return (read ??= readCrds(source));
  const crds = outlines.map((outline, index) => {
    const placeOf = () => parts.recall("place", digestOf(key, String(index)), (): Place => crdAt(index).placeOf());
    return completed(outline, { crd: () => crdAt(index), placeOf });
  });
  return { file, crds, kinds: [], hasDefinitions, diagnostics };
}

function outlineOf({ versions, document, placeOf: _placeOf, ...outline }: Crd): CrdOutline {
  return {
    ...outline,
    digest: digestOf(JSON.stringify(document)),
    versions: versions.map(({ schema: _schema, ...version }) => version),
  };
}

function completed(outline: CrdOutline, { crd, placeOf }: { crd(): Crd; placeOf(): Place }): Crd {
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
  };
}
