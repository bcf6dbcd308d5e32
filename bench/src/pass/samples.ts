// The operators whose passes are measured. A sample of fixtures/samples needs only an entry in `samples`.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { ControllerDefinition } from "@gen-operator/runtime/codegen";
import { parseAllDocuments } from "yaml";
import { repositoryRoot } from "#test/support/repository.js";
import { graphDefinition } from "../workflow/graph.js";
import { bulkController } from "./bulk-controller.js";
import { type Services, startConsole, startDatabase } from "./services.js";

/** An object to create. The namespace `default` is replaced by that of the benchmark. */
export interface SampleObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: object };
  readonly [member: string]: unknown;
}

/** An operator and the objects to create for it. */
export interface PassSample {
  readonly name: string;
  /** Imports the controllers when the sample is measured, so that a failing import affects only this sample. */
  readonly load: () => Promise<readonly ControllerDefinition[]>;
  readonly crds: readonly object[];
  /** The primaries and their prerequisites, in the order of their creation. */
  readonly objects: readonly SampleObject[];
  /** The expected number of dependents. */
  readonly children: number;
  /** Starts the external services of the operator, and returns the objects to create for them. Default: none */
  readonly startServices?: () => Promise<Services>;
}

const NAMESPACED = { name: "example", namespace: "default" };

/**
 * The part of a sample that is not derived. Its CRDs are those in its folder, and its controllers are exported by `generated/index.js` unless listed.
 */
type SampleEntry = Pick<PassSample, "objects" | "children" | "startServices"> & {
  readonly controllers?: readonly { readonly module: string; readonly name: string }[];
};

const samples: { readonly [name: string]: SampleEntry } = {
  webpage: {
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
  podwatch: {
    objects: [
      { apiVersion: "v1", kind: "Node", metadata: { name: "one", labels: { "topology.kubernetes.io/zone": "a" } } },
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { ...NAMESPACED, labels: { "example.com/watched-by": NAMESPACED.name } },
        spec: { containers: [{ name: "main", image: "main" }] },
      },
      { apiVersion: "example.com/v1", kind: "PodWatch", metadata: NAMESPACED, spec: { mode: "active", node: "one" } },
    ],
    children: 0,
  },
  tomcat: {
    objects: [
      { apiVersion: "example.com/v1", kind: "Tomcat", metadata: NAMESPACED, spec: { version: "11.0" } },
      {
        apiVersion: "example.com/v1",
        kind: "Webapp",
        metadata: { ...NAMESPACED, name: "shop" },
        spec: { tomcat: NAMESPACED.name, contextPath: "shop", url: "https://archives.example.com/shop.war" },
      },
    ],
    children: 3,
  },
  bulk: {
    objects: [
      {
        apiVersion: "example.com/v1",
        kind: "Fleet",
        metadata: NAMESPACED,
        spec: { image: "nginx:1.29", members: [{ name: "east" }, { name: "west" }] },
      },
    ],
    children: 4,
  },
  standalone: {
    controllers: [
      { module: "generated/index.js", name: "siteController" },
      { module: "preview/controller.js", name: "previewController" },
    ],
    objects: [
      { apiVersion: "example.com/v1", kind: "Site", metadata: NAMESPACED, spec: { html: "<h1>Hello</h1>" } },
      {
        apiVersion: "example.com/v1",
        kind: "Preview",
        metadata: { ...NAMESPACED, name: "preview" },
        spec: { image: "nginx:1.29" },
      },
    ],
    children: 6,
  },
  external: {
    objects: [
      {
        apiVersion: "example.com/v1",
        kind: "Tenant",
        metadata: NAMESPACED,
        spec: { plan: "team", users: { ann: "admin", bob: "reader" } },
      },
      {
        apiVersion: "example.com/v1",
        kind: "Zone",
        metadata: NAMESPACED,
        spec: { domain: "example.com", hasReplica: true, records: { www: "192.0.2.1" } },
      },
    ],
    // Two ConfigMaps, and the one that stores the id of the external resource.
    children: 3,
    startServices: startConsole,
  },
  "mysql-schema": {
    objects: [
      { apiVersion: "example.com/v1", kind: "MySQLSchema", metadata: NAMESPACED, spec: { encoding: "utf8mb4" } },
    ],
    children: 1,
    startServices: startDatabase,
  },
};

/** All operators whose passes are measured: the samples that exist, and bulk dependents with 1, 10, and 100 objects. */
export const passSamples: readonly PassSample[] = [
  ...Object.entries(samples)
    .filter(([name]) => existsSync(folderOf(name)))
    .map(([name, entry]) => sampleOf(name, entry)),
  ...[1, 10, 100].map(bulkOf),
];

function sampleOf(name: string, { controllers, ...rest }: SampleEntry): PassSample {
  return {
    name,
    ...rest,
    crds: crdsOf(name),
    load: async () => {
      if (controllers === undefined) return (await exportOf(name, "generated/index.js", "controllers")) as never;
      return Promise.all(
        controllers.map(async (each) => (await exportOf(name, each.module, each.name)) as ControllerDefinition),
      );
    },
  };
}

// Imported by path, so that adding a sample requires only an entry above.
async function exportOf(sample: string, module: string, name: string): Promise<unknown> {
  const path = join(folderOf(sample), "dist/src", module);
  const found = ((await import(pathToFileURL(path).href)) as { readonly [name: string]: unknown })[name];
  if (found === undefined) throw new Error(`${path} exports no ${name}`);
  return found;
}

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
  const folder = join(folderOf(sample), "crds");
  return readdirSync(folder).flatMap((file) =>
    parseAllDocuments(readFileSync(join(folder, file), "utf8")).map((document) => document.toJS() as object),
  );
}

function folderOf(sample: string): string {
  return join(repositoryRoot, "fixtures/samples", sample);
}
