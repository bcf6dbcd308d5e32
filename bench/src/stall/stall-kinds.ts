// The kinds and the dependents of the benchmark of stalls.
import type { KubernetesObject } from "@gen-operator/runtime/codegen";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { builtinDefinition, customDefinition } from "#test/support/kinds/kind-definitions.js";

/** The primary: it says which version its dependents have. */
export interface Holder extends KubernetesObject {
  spec: { version: number };
}

/** What is large: the items of a bulk dependent, a list that is written by PUT, or one object. */
export type StallCase = "bulk" | "list" | "object";

/** How many items there are of everything. */
export const ITEMS = 10_000;

/** The namespace of all objects of the benchmark. */
export const NAMESPACE = "bench";

const number = { type: "integer" };
const texts = { type: "object", additionalProperties: { type: "string" } };
const items = { type: "array", items: { type: "object", properties: { name: { type: "string" }, value: number } } };

/** The definitions of the primary and of what holds a list or texts. */
export const crds = [
  crdOf("Holder", "holders", { version: number }),
  crdOf("Shelf", "shelves", { items, texts }),
] as const;

const [holder, shelf] = crds.map(customDefinition) as [
  ReturnType<typeof customDefinition>,
  ReturnType<typeof customDefinition>,
];
const configMap = builtinDefinition("v1", "ConfigMap");

type Args = { readonly primary: Holder };

const dependents: {
  readonly [name in StallCase]: Partial<KubernetesDependent> & { desired: (args: Args) => unknown };
} = {
  bulk: {
    resource: configMap,
    bulk: {},
    desired: ({ primary: { spec } }) =>
      Object.fromEntries(
        numbers().map((index) => [
          `item-${index}`,
          { metadata: { name: nameOf(index) }, data: { index: `${index} ${index === 0 ? spec.version : ""}` } },
        ]),
      ),
  },
  list: {
    resource: shelf,
    serverSideApply: false,
    desired: ({ primary: { spec } }) => ({
      metadata: { name: "shelf" },
      spec: { items: numbers().map((index) => ({ name: nameOf(index), value: index === 7 ? spec.version : 0 })) },
    }),
  },
  object: {
    resource: shelf,
    desired: ({ primary: { spec } }) => ({
      metadata: { name: "shelf" },
      spec: { texts: Object.fromEntries(numbers().map((index) => [nameOf(index), textOf(index, spec.version)])) },
    }),
  },
};

/** Returns the controller of a case. */
export function controllerOf(name: StallCase): ControllerDefinition {
  const dependent = { name: "made", dependsOn: [], ...dependents[name] };
  return {
    name: "holder",
    workflow: { primary: holder, dependents: [dependent as unknown as KubernetesDependent] },
    maxReconciliationIntervalMs: 0,
  };
}

/** The paths of the primary, and of a dependent of a case: the first item, or the one object. */
export function pathsOf(name: StallCase): { readonly holders: string; readonly dependent: string } {
  const custom = `/apis/bench.example.com/v1/namespaces/${NAMESPACE}`;
  const dependent =
    name === "bulk" ? `/api/v1/namespaces/${NAMESPACE}/configmaps/${nameOf(1)}` : `${custom}/shelves/shelf`;
  return { holders: `${custom}/holders`, dependent };
}

function numbers(): number[] {
  return Array.from({ length: ITEMS }, (_, index) => index);
}

function nameOf(index: number): string {
  return `item-${String(index).padStart(5, "0")}`;
}

// As many as make 1.4 MB together with their names and what is managed of them.
function textOf(index: number, version: number): string {
  return `${index === 7 ? version : index} `.padEnd(100, "x");
}

function crdOf(kind: string, plural: string, properties: object) {
  const spec = { type: "object", properties };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.bench.example.com` },
    spec: {
      group: "bench.example.com",
      scope: "Namespaced" as const,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [
        {
          ...{ name: "v1", served: true, storage: true },
          schema: { openAPIV3Schema: { type: "object", properties: { spec } } },
        },
      ],
    },
  };
}
