// Metadata of object templates: only labels and annotations are allowed.
import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { type FieldError, forbiddenError } from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { checkAnnotations, checkLabels } from "../../validation/fields.js";

/** Field names as kube-apiserver prints them. */
const OWN: { readonly [member: string]: string } = {
  name: "name",
  generateName: "generateName",
  namespace: "namespace",
  selfLink: "selfLink",
  uid: "uID",
  resourceVersion: "resourceVersion",
  generation: "generation",
  creationTimestamp: "creationTimestamp",
  deletionTimestamp: "deletionTimestamp",
  deletionGracePeriodSeconds: "deletionGracePeriodSeconds",
  ownerReferences: "ownerReferences",
  finalizers: "finalizers",
  managedFields: "managedFields",
};

/** Validates the metadata of a template at `path`. */
export function checkTemplateMetadata(path: string, metadata: JsonObject): FieldError[] {
  const isSet = (key: string) => (memberOf(metadata, key) ?? null) !== null || wasGivenEmpty(metadata, key);
  return [
    ...checkAnnotations(objectAt(metadata, "annotations") ?? {}, `${path}.annotations`),
    ...checkLabels(objectAt(metadata, "labels") ?? {}, `${path}.labels`),
    ...Object.entries(OWN)
      .filter(([key]) => isSet(key))
      .map(([, shown]) => forbiddenError(`${path}.${shown}`, "cannot be set")),
  ];
}
