import { type KubernetesObject, type Schema, type StatusCondition, builtinKindOf } from "../base/kubernetes-object.js";

/** The fields of a CustomResourceDefinition that the runtime reads. */
export interface CustomResourceDefinition extends KubernetesObject {
  readonly spec: {
    readonly scope: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly CrdVersion[];
    /** Whether unspecified fields are preserved. Only set in definitions that were created before `apiextensions.k8s.io/v1`. */
    readonly preserveUnknownFields?: boolean;
  };
  readonly status?: { readonly conditions?: readonly StatusCondition[] };
}

/** A version of a CustomResourceDefinition. */
export interface CrdVersion {
  readonly name: string;
  readonly served: boolean;
  /** Required since `apiextensions.k8s.io/v1`. */
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
