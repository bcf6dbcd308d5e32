// Where an object may be: its namespace and its name beside those of the path.
import { badRequest, forbidden, namespaceTerminating, notFound } from "../errors/status-error.js";
import { arrayAt, isObject, objectAt, stringAt, type JsonObject } from "../json.js";
import { resourceRefOf } from "../object/object-key.js";
import { isTerminating } from "../object/object-meta.js";
import type { Registry } from "../registry/registry.js";
import type { ServedResource } from "../registry/served-resource.js";
import type { WriteContext } from "./write-context.js";

/** Fails when nothing may be created here: the namespace or the type itself is missing or on its way out. */
export function checkCreationAllowed(
  registry: Registry,
  resource: ServedResource,
  object: { name: string; namespace: string | undefined },
): void {
  const { type } = resource;
  if (object.namespace !== undefined) {
    const namespace = registry.namespaces.get(object.namespace);
    if (namespace === undefined) throw notFound({ resource: "namespaces", group: "", name: object.namespace });
    if (isTerminating(namespace.object)) {
      throw namespaceTerminating(resourceRefOf(type, object.name), object.namespace);
    }
  }
  if (type.custom !== undefined && isCrdTerminating(type.custom.crd)) {
    const detail = "create not allowed while custom resource definition is terminating";
    throw forbidden(resourceRefOf(type, object.name), detail);
  }
}

function isCrdTerminating(crd: JsonObject): boolean {
  const conditions = arrayAt(objectAt(crd, "status"), "conditions") ?? [];
  return conditions.filter(isObject).some(({ type, status }) => type === "Terminating" && status === "True");
}

/** Makes the namespace of an object agree with the path; cluster-scoped objects lose theirs. */
export function settleNamespace(metadata: JsonObject, namespace: string | undefined): void {
  if (namespace === undefined) {
    delete metadata["namespace"];
    return;
  }
  checkNamespace(metadata, namespace);
  metadata["namespace"] = namespace;
}

/** Fails for metadata with another namespace than that of the path. */
export function checkNamespace(metadata: JsonObject | undefined, namespace: string | undefined): void {
  const given = stringAt(metadata, "namespace") ?? "";
  if (namespace !== undefined && given !== "" && given !== namespace)
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
}

/** Fails for an object with another namespace, or another name, than the path has. */
export function checkPlace({ namespace }: WriteContext, name: string, object: JsonObject): void {
  const metadata = objectAt(object, "metadata");
  checkNamespace(metadata, namespace);
  checkNameOfUrl(stringAt(metadata, "name") ?? "", name);
}

/** Fails for a body whose name is not the one in the path. */
export function checkNameOfUrl(given: string, name: string): void {
  if (given === "") throw nameUndeterminable(name);
  if (given !== name)
    throw badRequest(`the name of the object (${given}) does not match the name on the URL (${name})`);
}

/** Builds the failure of a body that names nothing. */
export function nameUndeterminable(name: string): Error {
  return badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
}
