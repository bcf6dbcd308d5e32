import { RequestExpressions } from "@gen-operator/schema/cel";
import type { Authorizer } from "../../identity/authorizer.js";
import { authenticatedUser } from "../../identity/user.js";
import { type JsonObject, isObject, objectAt } from "../../json.js";
import { apiVersionOf, isNamespace } from "../../object/object-meta.js";
import { scaleOf } from "../../object/scale.js";
import type { ServedResource } from "../../registry/registry.js";
import type { AdmittedWrite } from "../admission.js";
import { reviewOf } from "../review.js";

/** Cost budget for all expressions of a policy, in CEL cost units. */
const POLICY_BUDGET = 10_000_000;

/** Cost budget for all match conditions, in CEL cost units. */
const CONDITION_BUDGET = 2_500_000;

/** The inputs of CEL expressions about a write. */
export interface Seen {
  readonly write: AdmittedWrite;
  /** The resource in the version that matched. */
  readonly seen: ServedResource;
  readonly authorizer: Authorizer;
  readonly params?: JsonObject | undefined;
  readonly variables?: readonly { readonly name: string; readonly expression: string }[];
}

/** Prepares the expressions about a write: `object`, `oldObject`, `request`, `params`, `namespaceObject`, `variables`, and `authorizer`. */
export function expressionsOf(seen: Seen): RequestExpressions {
  return prepare(seen, { budget: POLICY_BUDGET, namespaceObject: namespaceOf(seen.write) });
}

/** Prepares the match conditions of a webhook or policy: `variables` is empty and `namespaceObject` is null. */
export function conditionExpressionsOf(seen: Seen): RequestExpressions {
  return prepare({ ...seen, variables: [] }, { budget: CONDITION_BUDGET, namespaceObject: null });
}

function prepare(
  { write, seen, authorizer, params, variables = [] }: Seen,
  { budget, namespaceObject }: { budget: number; namespaceObject: JsonObject | null },
): RequestExpressions {
  const { context, name, subresource } = write;
  const { resource, user, namespace = "" } = context;
  const { type } = resource;
  const form = (object: JsonObject | undefined) => (object === undefined ? null : shown(object, { write, seen }));
  const { review } = reviewOf({ write, type: seen.type, object: null, oldObject: null });
  const { uid: _uid, object: _object, oldObject: _old, ...request } = objectAt(review, "request") ?? {};
  return new RequestExpressions(
    {
      values: {
        object: form(write.object),
        oldObject: form(write.oldObject),
        request,
        params: params ?? null,
        namespaceObject,
      },
      variables,
      requested: { group: type.group, resource: type.plural, subresource, namespace, name },
      authorize: ({ user: asked, ...question }) => {
        const decision = authorizer.decide(asked === undefined ? user : authenticatedUser(asked), question);
        return { allowed: decision.allowed, reason: decision.reason ?? "" };
      },
    },
    budget,
  );
}

/** Returns an object as expressions see it: in the version that matched, or as a Scale for the scale subresource. */
export function shown(object: JsonObject, { write, seen }: { write: AdmittedWrite; seen: ServedResource }): JsonObject {
  const { resource } = write.context;
  if (write.part !== undefined) return object;
  if (write.subresource === "scale") return scaleOf(resource.type, { object }, { needsReplicas: false });
  const inVersion = resource.formIn(seen, object);
  return { ...inVersion, kind: seen.type.kind, apiVersion: apiVersionOf(seen.type) };
}

// namespaceObject is null for Namespaces.
function namespaceOf({ context }: AdmittedWrite): JsonObject | null {
  const { registry, resource, namespace } = context;
  if (namespace === undefined || isNamespace(resource.type)) return null;
  const found = registry.namespaces.get(namespace)?.object;
  if (!isObject(found)) return null;
  const { managedFields: _managed, ownerReferences: _owners, ...metadata } = objectAt(found, "metadata") ?? {};
  return { metadata, ...(isObject(found["spec"]) ? { spec: found["spec"] } : {}), status: found["status"] ?? {} };
}
