import { randomUUID } from "node:crypto";
import type { ServedType } from "../builtin/served-type.js";
import { userObject } from "../identity/user.js";
import type { JsonObject } from "../json.js";
import type { AdmittedWrite } from "./admission.js";

const OPTIONS_KINDS = { CREATE: "CreateOptions", UPDATE: "UpdateOptions", DELETE: "DeleteOptions" } as const;

/** A write, converted to the version that a webhook expects. */
export interface SeenWrite {
  write: AdmittedWrite;
  /** The type in that version. */
  type: ServedType;
  object: JsonObject | null;
  oldObject: JsonObject | null;
}

/** Builds the AdmissionReview (admission.k8s.io/v1) of a write and returns it with its uid. */
export function reviewOf({ write, type, object, oldObject }: SeenWrite): { uid: string; review: JsonObject } {
  const { context, operation, name, subresource } = write;
  const uid = randomUUID();
  const { namespace, isDryRun, options } = context;
  const requested = context.resource.type;
  const request: JsonObject = {
    uid,
    kind: kindOf(type, write),
    resource: resourceOf(type),
    ...(subresource === "" ? {} : { subResource: subresource }),
    requestKind: kindOf(requested, write),
    requestResource: resourceOf(requested),
    ...(subresource === "" ? {} : { requestSubResource: subresource }),
    ...(name === "" ? {} : { name }),
    ...(namespace === undefined ? {} : { namespace }),
    operation,
    userInfo: userObject(context.user),
    object,
    oldObject,
    dryRun: isDryRun,
    options:
      operation === "CONNECT" ? null : { ...options, kind: OPTIONS_KINDS[operation], apiVersion: "meta.k8s.io/v1" },
  };
  return { uid, review: { kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", request } };
}

function kindOf(type: ServedType, { part, subresource }: AdmittedWrite): JsonObject {
  if (subresource === "scale") return { group: "autoscaling", version: "v1", kind: "Scale" };
  const { group, version, kind } = part?.type ?? type;
  return { group, version, kind };
}

function resourceOf({ group, version, plural }: ServedType): JsonObject {
  return { group, version, resource: plural };
}
