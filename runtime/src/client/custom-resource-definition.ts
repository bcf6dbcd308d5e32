import { type KubernetesObject, type Schema, type StatusCondition, builtinKindOf } from "../base/kubernetes-object.js";

/** What the runtime reads of a CustomResourceDefinition. */
export interface CustomResourceDefinition extends KubernetesObject {
  readonly spec: {
    readonly scope: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly CrdVersion[];
    /** Whether fields that no schema has are kept; only definitions from before `apiextensions.k8s.io/v1` say so. */
    readonly preserveUnknownFields?: boolean;
  };
  readonly status?: { readonly conditions?: readonly StatusCondition[] };
}

/** A version of a kind, as a CustomResourceDefinition has it. */
export interface CrdVersion {
  readonly name: string;
  readonly served: boolean;
  /** Every definition that was created in `apiextensions.k8s.io/v1` has it. */
  readonly schema?: { readonly openAPIV3Schema?: Schema };
  readonly subresources?: { readonly status?: object };
}

/** The kind of CustomResourceDefinitions. */
export const customResourceDefinition = builtinKindOf<CustomResourceDefinition>({
  group: "apiextensions.k8s.io",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  scope: "Cluster",
});
