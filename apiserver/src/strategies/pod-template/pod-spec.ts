import { type FieldError, forbiddenError } from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { checkContainers, checkHostNetwork, checkImage } from "./containers.js";
import { checkAnnotations, checkLabels, checkOneOf } from "../../validation/fields.js";
import { checkPodUpdate } from "../core/pod-update.js";
import { checkAffinity, checkSpread } from "./scheduling.js";
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
import { checkProfileAnnotations, checkProfilesKept, checkProfilesMatch } from "./profile-annotations.js";
import { checkPodResources } from "./resources.js";
import { checkPodSecurity } from "./security-context.js";
import { checkHostProcess, checkSystem } from "./operating-system.js";
import { checkTolerations } from "./tolerations.js";
import { type PodOfVolumes, checkVolumes } from "./volumes.js";

const OF_TEMPLATE: PodOfVolumes = { isPod: false, name: "" };

/** Checks a pod spec at `path`; absent ones count as empty. `claims` are volumes that it gets from elsewhere, and that count first. */
function checkPodSpec(
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

/** Checks a template of Pods at `path`. */
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

/** Checks the labels and annotations of a template of Pods at `path`, which Kubernetes leaves `metadata` out of. */
export function checkTemplateLabels(path: string, template: JsonObject): FieldError[] {
  const metadata = objectAt(template, "metadata");
  return [
    ...checkLabels(objectAt(metadata, "labels") ?? {}, `${path}.labels`),
    ...checkAnnotations(objectAt(metadata, "annotations") ?? {}, `${path}.annotations`),
  ];
}

/** Checks a Pod that is not there yet, or an update of one. */
export function checkNewPod(pod: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(pod, "spec") ?? {};
  return [
    ...checkPod(pod, old),
    ...(old === undefined ? [...checkNewSpec(spec), ...checkProfilesMatch("spec", pod)] : []),
  ];
}

function checkNewSpec(spec: JsonObject): FieldError[] {
  const isHeld = textAt(spec, "nodeName") !== "" && objectsAt(spec, "schedulingGates").length > 0;
  return [
    ...checkNoEphemeral("spec", spec, "cannot be set on create"),
    ...(isHeld ? [forbiddenError("spec.nodeName", "cannot be set until all schedulingGates have been cleared")] : []),
  ];
}

// Of Pods alone, not of templates.
function checkImages(spec: JsonObject): FieldError[] {
  return ["initContainers", "containers"].flatMap((list) =>
    objectsAt(spec, list).flatMap((container, index) => checkImage(`spec.${list}[${index}]`, container)),
  );
}

/** Checks a Pod, and on update that it only changes what a Pod may change. */
export function checkPod(pod: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(pod, "spec") ?? {};
  const ofAnnotations = checkProfileAnnotations("metadata.annotations", pod);
  const errors = [
    ...ofAnnotations,
    ...checkPodSpec("spec", spec, { pod: { isPod: true, name: textAt(pod, "metadata.name") } }),
    ...checkTokens(spec),
    ...checkImages(spec),
    // Kubernetes looks at annotations twice on an update.
    ...(old === undefined ? [] : [...checkProfilesKept(pod, old), ...ofAnnotations]),
  ];
  const oldSpec = objectAt(old, "spec");
  return oldSpec === undefined ? errors : [...errors, ...checkPodUpdate(spec, oldSpec)];
}

// A token is one of the account that a Pod has.
function checkTokens(spec: JsonObject): FieldError[] {
  if (textAt(spec, "serviceAccountName") !== "") return [];
  const detail = "must not be specified when serviceAccountName is not set";
  return objectsAt(spec, "volumes").flatMap((volume, index) =>
    objectsAt(volume, "projected.sources").flatMap((source, place) =>
      objectAt(source, "serviceAccountToken") === undefined
        ? []
        : [forbiddenError(`spec.volumes[${index}].projected.sources[${place}].serviceAccountToken`, detail)],
    ),
  );
}
