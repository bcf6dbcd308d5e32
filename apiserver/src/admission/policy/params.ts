import { selectorMatches } from "../../builtin/rules/field-rules.js";
import { objectAt, stringAt, type JsonObject } from "../../json.js";
import { apiVersionOf } from "../../object/object-key.js";
import type { AdmittedWrite } from "../admission.js";
import type { PolicyBinding, ValidatingPolicy } from "./policy.js";

/** Returns the objects that a policy is asked with, one after the other; `undefined` stands for none. Throws an Error if they cannot be found. */
export function paramsOf(
  { paramKind }: ValidatingPolicy,
  { paramRef }: PolicyBinding,
  { context }: AdmittedWrite,
): readonly (JsonObject | undefined)[] {
  if (paramKind === undefined || paramRef === undefined) return [undefined];
  const { registry } = context;
  const kind = [...registry.resources].find(
    ({ type }) => type.kind === paramKind.kind && apiVersionOf(type) === paramKind.apiVersion,
  );
  if (kind === undefined)
    throw new Error(
      `failed to find resource referenced by paramKind: '${paramKind.apiVersion}, Kind=${paramKind.kind}'`,
    );
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

function labelsOf(object: JsonObject): JsonObject {
  return objectAt(objectAt(object, "metadata"), "labels") ?? {};
}
