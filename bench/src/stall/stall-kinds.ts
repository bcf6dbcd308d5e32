// The kinds and dependents of the stall benchmark.
import type { KubernetesObject } from "@gen-operator/runtime/codegen";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { builtinDefinition, customDefinition } from "#test/support/kinds/kind-definitions.js";

/** The primary. Its spec contains the version of its dependents. */
export interface Holder extends KubernetesObject {
  spec: { version: number };
}

/** The large data: the items of a bulk dependent, a list that is written by PUT, or a single object. */
export type StallCase = "bulk" | "list" | "object";

/** The number of items in each case. */
export const ITEMS = 10_000;

/** The namespace of all objects of the benchmark. */
export const NAMESPACE = "bench";

const number = { type: "integer" };
const texts = { type: "object", additionalProperties: { type: "string" } };
const items = { type: "array", items: { type: "object", properties: { name: { type: "string" }, value: number } } };

/** The CRDs of the primary, and of the dependent with a list or strings. */
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

/** Returns the paths of the primaries and of one dependent: the first item, or the single object. */
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

// A string such that all items, including their names and managed fields, take 1.4 MB.
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
