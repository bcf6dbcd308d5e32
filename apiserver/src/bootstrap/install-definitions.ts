import { readFile } from "node:fs/promises";
import { parseAllDocuments } from "yaml";
import { clone, isObject, type JsonObject } from "../json.js";
import type { Registry } from "../registry/registry.js";
import type { ServedResource } from "../registry/served-resource.js";
import { createObject } from "../write/create.js";
import { ownContext } from "../write/write-context.js";

/** Creates CustomResourceDefinitions from objects and from files of YAML or JSON, and waits until they are served. */
export async function installDefinitions(registry: Registry, sources: readonly (string | object)[]): Promise<void> {
  const resource = registry.find({
    group: "apiextensions.k8s.io",
    version: "v1",
    plural: "customresourcedefinitions",
  }) as ServedResource;
  for (const source of sources) {
    const definitions = typeof source === "string" ? await readDefinitions(source) : [source as JsonObject];
    for (const definition of definitions) {
      const object = clone(definition);
      resource.rules.decode(object);
      await createObject(ownContext(registry, resource), object);
    }
  }
  // Establishing takes a few microtasks.
  await new Promise((resolve) => setImmediate(resolve));
}

async function readDefinitions(file: string): Promise<JsonObject[]> {
  const documents = parseAllDocuments(await readFile(file, "utf8"));
  const objects = documents.map((document) => document.toJS() as unknown).filter(isObject);
  const definitions = objects.filter(({ kind }) => kind === "CustomResourceDefinition");
  if (definitions.length === 0) throw new Error(`no CustomResourceDefinition in ${file}`);
  return definitions;
}
