import { readFile } from "node:fs/promises";
import { parseAllDocuments } from "yaml";
import { arrayAt, clone, isObject, objectAt, stringAt, type JsonObject } from "../json.js";
import { apiVersionOf } from "../object/object-key.js";
import type { Registry } from "../registry/registry.js";
import type { ServedResource } from "../registry/served-resource.js";
import { createObject } from "../write/create.js";
import { ownContext } from "../write/write-context.js";

/** Objects, or a file of YAML or JSON that has some. */
export type ObjectSource = string | object;

/** Creates CustomResourceDefinitions, and waits until they are served. */
export async function installDefinitions(registry: Registry, sources: readonly ObjectSource[]): Promise<void> {
  for (const source of sources) {
    const definitions = (await readObjects(source)).filter(({ kind }) => kind === "CustomResourceDefinition");
    if (definitions.length === 0) throw new Error(`no CustomResourceDefinition in ${describe(source)}`);
    for (const definition of definitions) await install(registry, definition, describe(source));
  }
  // Establishing takes a few microtasks.
  await new Promise((resolve) => setImmediate(resolve));
}

/** Creates objects of any kind that is served, in their order; those that say no namespace go to `default`. */
export async function installObjects(registry: Registry, sources: readonly ObjectSource[]): Promise<void> {
  for (const source of sources) {
    for (const object of await readObjects(source)) {
      await install(registry, object, describe(source));
      if (object["kind"] === "CustomResourceDefinition") await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

async function install(registry: Registry, given: JsonObject, where: string): Promise<void> {
  const object = clone(given);
  const resource = resourceFor(registry, object);
  const name = `${String(object["kind"])} ${stringAt(objectAt(object, "metadata"), "name") ?? ""}`;
  if (resource === undefined)
    throw new Error(`${where}: ${name}: the kind ${String(object["apiVersion"])} is not served`);
  const namespace = resource.type.namespaced
    ? (stringAt(objectAt(object, "metadata"), "namespace") ?? "default")
    : undefined;
  try {
    resource.rules.decode(object);
    await createObject(ownContext(registry, resource, namespace), object);
  } catch (error) {
    throw new Error(`${where}: ${name} cannot be created: ${(error as Error).message}`, { cause: error });
  }
}

function resourceFor(registry: Registry, { apiVersion, kind }: JsonObject): ServedResource | undefined {
  const resources = [...registry.resources];
  return resources.find(
    ({ type }) => type.kind === kind && apiVersionOf(type) === apiVersion && type.verbs.includes("create"),
  );
}

async function readObjects(source: ObjectSource): Promise<JsonObject[]> {
  const values: unknown[] =
    typeof source === "string"
      ? parseAllDocuments(await readFile(source, "utf8")).map((document) => document.toJS() as unknown)
      : [source];
  return values.filter(isObject).flatMap((value) => (value["kind"] === "List" ? itemsOf(value) : [value]));
}

function itemsOf(list: JsonObject): JsonObject[] {
  return (arrayAt(list, "items") ?? []).filter(isObject);
}

function describe(source: ObjectSource): string {
  return typeof source === "string" ? source : "the given object";
}
