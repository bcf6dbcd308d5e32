// Fields that Kubernetes 1.36 reads and forgets before it checks the object: those of features that are switched off, and what it has no use for.
import { isObject, type JsonObject } from "../../json.js";
import { at, objectsAt } from "../read-path.js";
import { podTemplatePathOf } from "../type-facts.js";

const OF_PODS = ["schedulingGroup"];

/** By plural and group: where the fields are, and their names. */
const DISABLED: { readonly [type: string]: { readonly holder: string; readonly fields: readonly string[] } } = {
  "leases.coordination.k8s.io": { holder: "spec", fields: ["preferredHolder", "strategy"] },
  "csidrivers.storage.k8s.io": { holder: "spec", fields: ["preventPodSchedulingIfMissing"] },
  "pods.": { holder: "spec", fields: OF_PODS },
  "podtemplates.": { holder: "template.spec", fields: OF_PODS },
};

/** Takes such fields off an object. */
export function dropFields(type: { readonly plural: string; readonly group: string }, object: JsonObject): void {
  if (type.plural === "serviceaccounts" && type.group === "") keepNames(objectsAt(object, "secrets"));
  const template = podTemplatePathOf(type);
  const disabled =
    template === undefined ? DISABLED[`${type.plural}.${type.group}`] : { holder: `${template}.spec`, fields: OF_PODS };
  if (disabled === undefined) return;
  const holder = at(object, disabled.holder);
  if (isObject(holder)) for (const field of disabled.fields) delete holder[field];
}

function keepNames(references: readonly JsonObject[]): void {
  for (const reference of references)
    for (const member of Object.keys(reference)) if (member !== "name") delete reference[member];
}
