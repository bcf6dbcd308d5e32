import { selectorMatches } from "../../validation/fields.js";
import { type JsonObject, objectAt, stringAt } from "../../json.js";
import { apiVersionOf } from "../../object/object-meta.js";
import type { Registry, ServedResource } from "../../registry/registry.js";
import type { AdmittedWrite } from "../admission.js";
import type { Policy, PolicyBinding } from "./policy.js";

/**
 * Returns the param objects to evaluate a policy with, one after the other; `undefined` stands for an evaluation without params. Throws an Error if
 * params are missing and parameterNotFoundAction is Deny, or if the namespace of the paramRef does not fit the scope of the paramKind.
 */
export function paramsOf(
  { paramKind }: Policy,
  { paramRef }: PolicyBinding,
  { context }: AdmittedWrite,
): readonly (JsonObject | undefined)[] {
  const kind = paramKind === undefined ? undefined : resourceOf(paramKind, context.registry);
  if (kind === undefined || paramRef === undefined) return [undefined];
  const [name, given] = [stringAt(paramRef, "name") ?? "", stringAt(paramRef, "namespace") ?? ""];
  if (given !== "" && !kind.type.namespaced)
    throw new Error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
  const namespace = given || (context.namespace ?? "");
  if (kind.type.namespaced && namespace === "")
    throw new Error("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources");
  const prefix = kind.type.namespaced ? `${namespace}/` : "";
  const selector = objectAt(paramRef, "selector");
  const found =
    name === ""
      ? kind.store.list(prefix).filter(({ object }) => selectorMatches(selector ?? {}, labelsOf(object)))
      : [kind.store.get(`${prefix}${name}`)].filter((stored) => stored !== undefined);
  if (found.length > 0 || stringAt(paramRef, "parameterNotFoundAction") === "Allow")
    return found.map((stored) => kind.read(stored).object);
  throw new Error("no params found for policy binding with `Deny` parameterNotFoundAction");
}

/** Returns an error message if the paramKind of a policy is not served; undefined otherwise. */
export function paramKindProblem({ paramKind }: Policy, registry: Registry): string | undefined {
  if (paramKind === undefined || resourceOf(paramKind, registry) !== undefined) return undefined;
  const { apiVersion, kind } = paramKind;
  return `failed to configure policy: failed to find resource referenced by paramKind: '${apiVersion}, Kind=${kind}'`;
}

/** Returns the resource of a paramKind; undefined if it is not served. */
export function resourceOf(
  { apiVersion, kind }: NonNullable<Policy["paramKind"]>,
  { resources }: Registry,
): ServedResource | undefined {
  return [...resources].find(({ type }) => type.kind === kind && apiVersionOf(type) === apiVersion);
}

function labelsOf(object: JsonObject): JsonObject {
  return objectAt(objectAt(object, "metadata"), "labels") ?? {};
}
