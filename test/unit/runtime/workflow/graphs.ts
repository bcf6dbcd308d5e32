// Random workflows for the properties of plans and runs.
import fc from "../../../support/fast-check.js";
import { defineResource } from "#runtime/api/define-resource.js";
import type { KubernetesDependent, WorkflowDefinition } from "#runtime/workflow/workflow-definition.js";

const facts = { group: "", version: "v1", scope: "Namespaced", hasStatusSubresource: false, isCustom: false } as const;

/** The primary kind of every workflow here. */
export const page = defineResource({
  ...facts,
  group: "example.com",
  kind: "Page",
  plural: "pages",
  hasStatusSubresource: true,
  isCustom: true,
  schema: {},
});

/** The kind of a dependent that has none of its own. */
export const configMap = defineResource({
  ...facts,
  kind: "ConfigMap",
  plural: "configmaps",
  schema: { type: "object", properties: { data: { type: "object", additionalProperties: { type: "string" } } } },
});

/** Builds a dependent from what matters to a test. */
export function dependentOf(name: string, rest: Partial<KubernetesDependent> = {}): KubernetesDependent {
  return {
    name,
    resource: configMap,
    dependsOn: [],
    desired: () => ({ metadata: { name }, data: { of: name } }),
    ...rest,
  };
}

/** Builds a workflow of the primary kind. */
export function workflowOf(dependents: readonly KubernetesDependent[]): WorkflowDefinition {
  return { primary: page, dependents };
}

/** Random acyclic graphs: for each node what it depends on, by index, declared in a random order. */
export const graphs: fc.Arbitrary<number[][]> = fc.integer({ min: 1, max: 8 }).chain((size) =>
  fc
    .tuple(
      fc.array(fc.array(fc.nat(7), { maxLength: 3 }), { minLength: size, maxLength: size }),
      fc.shuffledSubarray([...Array(size).keys()], { minLength: size }),
    )
    .map(([candidates, order]) =>
      // A node depends only on those that stand before it in a hidden order, so there is no cycle.
      candidates.map((needed, node) => {
        const place = order.indexOf(node);
        return [...new Set(needed.filter((other) => other < size && order.indexOf(other) < place))];
      }),
    ),
);

/** Names the nodes of a graph: n0, n1 and so on. */
export function dependentsOf(graph: number[][], rest: (index: number) => Partial<KubernetesDependent> = () => ({})) {
  return graph.map((needed, index) =>
    dependentOf(`n${index}`, { dependsOn: needed.map((other) => `n${other}`), ...rest(index) }),
  );
}
