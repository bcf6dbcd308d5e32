import { readFile } from "node:fs/promises";
import { setImmediate } from "../clock.js";
import { type JsonObject, arrayAt, clone, isObject, objectAt, stringAt } from "../json.js";
import { quote } from "../errors/go-format.js";
import { isDefinition } from "../object/conditions.js";
import { apiVersionOf, keyOf } from "../object/object-meta.js";
import type { Registry, ServedResource } from "../registry/registry.js";
import { type WriteContext, ownContext } from "../write/write-context.js";
import { createObject, updateObject } from "../write/write-object.js";
import { yamlLibrary } from "../yaml-library.js";

/** An object, or the path of a YAML or JSON file with objects. */
export type ObjectSource = string | object;

/** Objects to install. Stored objects with a revision up to `before` are from a previous run. */
export interface ObjectSources {
  readonly sources: readonly ObjectSource[];
  readonly before: number;
}

/** Creates CustomResourceDefinitions, or updates the spec of those from a previous run, and waits until they are served. */
export async function installDefinitions(registry: Registry, { sources, before }: ObjectSources): Promise<void> {
  for (const source of sources) {
    const definitions = (await readObjects(source)).filter(({ kind }) => kind === "CustomResourceDefinition");
    if (definitions.length === 0) throw new Error(`no CustomResourceDefinition found in ${describe(source)}`);
    for (const definition of definitions) await install(registry, definition, { where: describe(source), before });
  }
  // Establishing a CRD takes a few microtasks.
  await new Promise((resolve) => setImmediate(resolve));
}

/**
 * Creates objects of any served kind, in order. The namespace defaults to `default`. Objects from a previous run are kept, except that the spec of a
 * CustomResourceDefinition is updated.
 */
export async function installObjects(registry: Registry, { sources, before }: ObjectSources): Promise<void> {
  for (const source of sources) {
    for (const object of await readObjects(source)) {
      await install(registry, object, { where: describe(source), before });
      if (object["kind"] === "CustomResourceDefinition") await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

async function install(
  registry: Registry,
  given: JsonObject,
  { where, before }: { where: string; before: number },
): Promise<void> {
  const object = clone(given);
  const resource = resourceFor(registry, object);
  const named = `${String(object["kind"])} ${quote(stringAt(objectAt(object, "metadata"), "name") ?? "")}`;
  if (resource === undefined)
    throw new Error(
      `${where}: cannot install ${named}: the API server does not serve kind ${quote(`${String(object["apiVersion"])}/${String(object["kind"])}`)}; install its CustomResourceDefinition first`,
    );
  const namespace = resource.type.namespaced
    ? (stringAt(objectAt(object, "metadata"), "namespace") ?? "default")
    : undefined;
  try {
    resource.rules.decode(object);
    const context = ownContext(registry, resource, namespace);
    const key = keyOf({ namespace, name: stringAt(objectAt(object, "metadata"), "name") ?? "" });
    if ((resource.store.get(key)?.revision ?? Infinity) > before) await createObject(context, object);
    else if (isDefinition(resource.type)) await replaceSpec(context, key, object);
  } catch (error) {
    throw new Error(`${where}: cannot install ${named}: ${(error as Error).message}`, { cause: error });
  }
}

async function replaceSpec(context: WriteContext, name: string, { spec = {} }: JsonObject): Promise<void> {
  const change = (live: JsonObject): { object: JsonObject; isTracked: boolean } => ({
    object: { ...clone(live), spec: clone(spec) },
    isTracked: false,
  });
  await updateObject(context, { name, subresource: "", isPut: false, change });
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
      ? yamlLibrary()
          .parseAllDocuments(await readFile(source, "utf8"))
          .map((document) => document.toJS() as unknown)
      : [source];
  return values.filter(isObject).flatMap((value) => (value["kind"] === "List" ? itemsOf(value) : [value]));
}

function itemsOf(list: JsonObject): JsonObject[] {
  return (arrayAt(list, "items") ?? []).filter(isObject);
}

function describe(source: ObjectSource): string {
  return typeof source === "string" ? source : "the given object";
}
