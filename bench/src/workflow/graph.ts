// The primary of the workflow benchmarks. Its spec does not affect its dependents, so a new generation does not change them.
import { createResource, defineResource } from "@gen-operator/runtime/codegen";
import type { KubernetesObject, ObjectMeta, ResourceDefinition } from "@gen-operator/runtime/codegen";

/** The namespace of all objects of the benchmark. */
export const NAMESPACE = "bench";

/** A primary whose dependents form a graph. */
export class Graph implements KubernetesObject {
  declare readonly apiVersion: "bench.example.com/v1";
  declare readonly kind: "Graph";
  declare metadata: ObjectMeta;
  declare spec: { readonly round?: number; readonly size?: number };

  static readonly definition: ResourceDefinition<Graph> = defineResource({
    group: "bench.example.com",
    version: "v1",
    kind: "Graph",
    plural: "graphs",
    scope: "Namespaced",
    hasStatusSubresource: false,
    isCustom: true,
    schema: { type: "object" },
  });

  static create(init: { metadata: ObjectMeta; spec: Graph["spec"] }): Graph {
    return createResource(Graph.definition, init);
  }
}

/** The path of the Graph collection. */
export const GRAPHS_PATH = `/apis/bench.example.com/v1/namespaces/${NAMESPACE}/graphs`;

/** The path of the ConfigMap collection, which contains the dependents. */
export const MAPS_PATH = `/api/v1/namespaces/${NAMESPACE}/configmaps`;

/** The CRD of Graph. */
export const graphDefinition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "graphs.bench.example.com" },
  spec: {
    group: "bench.example.com",
    scope: "Namespaced",
    names: { kind: "Graph", listKind: "GraphList", plural: "graphs", singular: "graph" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                properties: {
                  round: { type: "integer", description: "Counts up; nothing depends on it" },
                  size: { type: "integer", minimum: 0, description: "How many items a bulk dependent has" },
                },
              },
            },
          },
        },
      },
    ],
  },
};
