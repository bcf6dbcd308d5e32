// The operators whose passes are counted. A sample of fixtures/samples gets its line in `samples`, and its project a line in the
// references of bench/tsconfig.json and in the imports of package.json.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ControllerDefinition } from "@gen-operator/runtime/codegen";
import { parseAllDocuments } from "yaml";
import { repositoryRoot } from "#test/support/repository.js";
import { graphDefinition } from "../workflow/graph.js";
import { bulkController } from "./bulk-controller.js";

/** An object to create; one with a namespace is put into that of the benchmark. */
export interface SampleObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: object };
  readonly [member: string]: unknown;
}

/** An operator, and what it gets to work on. */
export interface PassSample {
  readonly name: string;
  /** Its controllers; imported when it is measured, so that one that cannot be loaded costs no other its figures. */
  readonly load: () => Promise<readonly ControllerDefinition[]>;
  readonly crds: readonly object[];
  /** In the order in which they are created; the primaries are among them. */
  readonly objects: readonly SampleObject[];
  /** How many dependents there are in the end. */
  readonly children: number;
}

const NAMESPACED = { name: "example", namespace: "default" };

const samples: readonly PassSample[] = [
  {
    name: "webpage",
    load: async () => (await import("#webpage/generated/index.js")).controllers,
    crds: crdsOf("webpage"),
    objects: [
      {
        apiVersion: "example.com/v1",
        kind: "WebPage",
        metadata: NAMESPACED,
        spec: { html: "<h1>Hello</h1>", exposed: true, host: "example.com" },
      },
    ],
    children: 4,
  },
  {
    name: "podwatch",
    load: async () => (await import("#podwatch/generated/index.js")).controllers,
    crds: crdsOf("podwatch"),
    objects: [
      { apiVersion: "v1", kind: "Node", metadata: { name: "one", labels: { "topology.kubernetes.io/zone": "a" } } },
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { ...NAMESPACED, labels: { "example.com/watched-by": NAMESPACED.name } },
        spec: { containers: [{ name: "main", image: "main" }] },
      },
      {
        apiVersion: "example.com/v1",
        kind: "PodWatch",
        metadata: NAMESPACED,
        spec: { mode: "active", node: "one" },
      },
    ],
    children: 0,
  },
  // Add further samples here.
];

/** All operators whose passes are counted: the samples, and a bulk dependent of 1, 10 and 100 objects. */
export const passSamples: readonly PassSample[] = [...samples, ...[1, 10, 100].map(bulkOf)];

function bulkOf(size: number): PassSample {
  return {
    name: `bulk of ${size}`,
    load: async () => [bulkController],
    crds: [graphDefinition],
    objects: [{ apiVersion: "bench.example.com/v1", kind: "Graph", metadata: NAMESPACED, spec: { size } }],
    children: size,
  };
}

function crdsOf(sample: string): object[] {
  const folder = join(repositoryRoot, "fixtures/samples", sample, "crds");
  return readdirSync(folder).flatMap((file) =>
    parseAllDocuments(readFileSync(join(folder, file), "utf8")).map((document) => document.toJS() as object),
  );
}
