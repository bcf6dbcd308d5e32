import type { ResourceRef } from "../../errors/status-error.js";
import { stringAt } from "../../json.js";
import { metadataOf } from "../../object/object-meta.js";
import type { AdmittedWrite } from "../admission.js";

/** Returns the reference to the object of a write in the error of a policy denial. */
export function refName({ context, name, object }: AdmittedWrite): ResourceRef {
  const { type } = context.resource;
  const generated = object === undefined ? undefined : stringAt(metadataOf(object), "generateName");
  return { resource: type.plural, group: type.group, name: name || generated || "Unknown" };
}
