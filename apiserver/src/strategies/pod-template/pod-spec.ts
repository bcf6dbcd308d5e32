import { objectsAt } from "../../builtin/read-path.js";
import type { FieldError } from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { checkAnnotations, checkLabels, checkOneOf } from "../../validation/fields.js";
import { checkContainers, checkHostNetwork } from "./containers.js";
import { checkHostProcess, checkSystem } from "./operating-system.js";
import {
  checkAliases,
  checkClaims,
  checkClasses,
  checkFileVariables,
  checkHostUsers,
  checkNames,
  checkNoEphemeral,
  checkPlacing,
} from "./pod-fields.js";
import { checkProfileAnnotations, checkProfilesMatch } from "./profile-annotations.js";
import { checkPodResources } from "./resources.js";
import { checkAffinity, checkSpread, checkTolerations } from "./scheduling.js";
import { checkPodSecurity } from "./security-context.js";
import { type PodOfVolumes, checkVolumes } from "./volumes.js";

const OF_TEMPLATE: PodOfVolumes = { isPod: false, name: "" };

/** Validates a Pod spec at `path`. `claims` are volumes that a controller adds; they replace volumes with the same name. */
export function checkPodSpec(
  path: string,
  spec: JsonObject,
  { claims = [], pod = OF_TEMPLATE }: { claims?: JsonObject[]; pod?: PodOfVolumes },
): FieldError[] {
  const isReplaced = (volume: JsonObject) => claims.some(({ name }) => name === memberOf(volume, "name"));
  const volumes = [...claims, ...objectsAt(spec, "volumes").filter((volume) => !isReplaced(volume))];
  const { errors, usable } = checkVolumes(`${path}.volumes`, volumes, pod);
  return [
    ...errors,
    ...checkClaims(path, spec),
    ...checkContainers(path, spec, usable),
    ...checkOneOf(`${path}.restartPolicy`, memberOf(spec, "restartPolicy"), ["Always", "OnFailure", "Never"]),
    ...checkPodResources(`${path}.resources`, spec),
    ...checkHostNetwork(path, spec),
    ...checkPlacing(path, spec),
    ...checkPodSecurity(path, spec),
    ...checkAffinity(path, spec),
    ...checkSpread(path, spec),
    ...checkHostProcess(path, spec),
    ...checkHostUsers(path, spec),
    ...checkNames(path, spec),
    ...checkTolerations(path, spec),
    ...checkAliases(path, spec),
    ...checkClasses(path, spec),
    ...checkSystem(path, spec),
    ...checkFileVariables(path, spec),
  ];
}

/** Validates a Pod template at `path`. */
export function checkPodTemplate(path: string, template: JsonObject, claims: JsonObject[] = []): FieldError[] {
  const spec = objectAt(template, "spec") ?? {};
  return [
    ...checkTemplateLabels(path, template),
    ...checkProfileAnnotations(`${path}.annotations`, template),
    ...checkPodSpec(`${path}.spec`, spec, { claims }),
    ...checkProfilesMatch(`${path}.spec`, template),
    ...checkNoEphemeral(`${path}.spec`, spec, "ephemeral containers not allowed in pod template"),
  ];
}

/** Validates labels and annotations of a Pod template. As in kube-apiserver, their path does not contain `metadata`. */
export function checkTemplateLabels(path: string, template: JsonObject): FieldError[] {
  const metadata = objectAt(template, "metadata");
  return [
    ...checkLabels(objectAt(metadata, "labels") ?? {}, `${path}.labels`),
    ...checkAnnotations(objectAt(metadata, "annotations") ?? {}, `${path}.annotations`),
  ];
}
