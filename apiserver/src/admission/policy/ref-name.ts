import type { ResourceRef } from "../../errors/status-error.js";
import { stringAt } from "../../json.js";
import { metadataOf } from "../../object/object-meta.js";
import type { AdmittedWrite } from "../admission.js";

/** Returns how a refusal by a policy names the object of a write. */
export function refName({ context, name, object }: AdmittedWrite): ResourceRef {
  const { type } = context.resource;
  const generated = object === undefined ? undefined : stringAt(metadataOf(object), "generateName");
  return { resource: type.plural, group: type.group, name: name || generated || "Unknown" };
}
