// The kinds that the scenarios of JOSDK are about.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { defineController, type ControllerOptions } from "#runtime/api/define-controller.js";
import { defineWorkflow } from "#runtime/api/define-workflow.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import type { Reconciler } from "#runtime/reconcile/reconciler.js";
import { classOf, customDefinition, type CrdObject } from "../../support/kinds/kind-definitions.js";

export { ConfigMap, Secret, type DataObject } from "../../support/runtime/config-maps.js";

/** The primary of most scenarios. */
export interface Sample extends KubernetesObject {
  spec: { value?: string; other?: string; number?: number; references?: string[] };
  status?: SampleStatus;
}

/** What reconcilers write about a Sample. */
export interface SampleStatus {
  value?: string;
  message?: string;
  count?: number;
  observedGeneration?: number;
}

const text = { type: "string" };
const integer = { type: "integer" };
const sampleSchema = {
  type: "object",
  properties: {
    spec: {
      type: "object",
      properties: { value: text, other: text, number: integer, references: { type: "array", items: text } },
    },
    status: {
      type: "object",
      properties: { value: text, message: text, count: integer, observedGeneration: integer },
    },
  },
};

/** Returns the definition of a kind, which has the fields of these unless another schema is given. */
export function crdOf(
  kind: string,
  scope: "Namespaced" | "Cluster",
  schema: CrdObject["spec"]["versions"][number]["schema"]["openAPIV3Schema"] = sampleSchema,
) {
  const plural = `${kind.toLowerCase()}s`;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.josdk.example.com` },
    spec: {
      group: "josdk.example.com",
      scope,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          subresources: { status: {} },
          ...(schema === sampleSchema ? { selectableFields: [{ jsonPath: ".spec.value" }] } : {}),
          schema: { openAPIV3Schema: schema },
        },
      ],
    },
  } as const satisfies CrdObject & { readonly [member: string]: unknown };
}

export const sampleCrd = crdOf("Sample", "Namespaced");
export const clusterSampleCrd = crdOf("ClusterSample", "Cluster");

export const Sample = classOf<Sample>(customDefinition(sampleCrd));
export const ClusterSample = classOf<Sample>(customDefinition(clusterSampleCrd));

/** A reconciler of Samples. */
export type SampleReconciler<Secondary = object> = Reconciler<Sample, Secondary, SampleStatus>;

/** A controller for Samples without dependents, unless `rest` brings a workflow. */
export function sampleController<Secondary>(
  reconciler: SampleReconciler<Secondary>,
  rest: Partial<ControllerOptions<Sample, Secondary, SampleStatus>> = {},
): ControllerDefinition {
  return defineController({
    name: "sample",
    workflow: defineWorkflow(Sample),
    retry: { initialIntervalMs: 20, maxIntervalMs: 100, maxRetries: 10 },
    ...rest,
    reconciler,
  });
}
