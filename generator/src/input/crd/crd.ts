import type { Diagnostic } from "../../diagnostic.js";
import type { Place, YamlPath } from "../yaml/yaml-document.js";

/** A CustomResourceDefinition whose names and versions were checked. */
export interface Crd {
  readonly file: string;
  readonly group: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly listKind: string;
  readonly scope: "Namespaced" | "Cluster";
  readonly versions: readonly CrdVersion[];
  /** Stands for the whole definition; absent if nobody remembers what it comes to. */
  readonly digest?: string;
  /** The whole definition as written; integers that JavaScript rounds are bigints. */
  readonly document: object;
  /** Returns where the name of the definition is. */
  placeOf(): Place;
  /** Returns where the key of something in the definition is, or of the nearest thing around it that is there. */
  keyAt(path: YamlPath): Place;
  /** Lists what an API server refuses or drops of the definition, as errors, and rules that `parse` skips, as warnings. */
  findProblems(): readonly Diagnostic[];
}

/** One version of a CustomResourceDefinition. */
export interface CrdVersion {
  readonly name: string;
  readonly isServed: boolean;
  readonly isStorage: boolean;
  readonly hasStatusSubresource: boolean;
  /** The paths of the subresource `scale`, if there is one. */
  readonly scale?: {
    readonly specReplicasPath: string;
    readonly statusReplicasPath: string;
    readonly labelSelectorPath?: string;
  };
  readonly deprecationWarning?: string;
  /** What its objects can be selected by besides their name and namespace: `spec.color`. */
  readonly selectableFields: readonly string[];
  readonly schema: { readonly [keyword: string]: unknown };
}

/** A value of a document with the way to it. */
export interface Located {
  readonly value: unknown;
  readonly path: YamlPath;
}
