// Pod annotations with meaning for the API server: deletion cost, mirror Pods, and legacy security profiles.
import { at, textAt } from "../../builtin/read-path.js";
import { type FieldError, forbiddenError, invalidError } from "../../errors/field-error.js";
import { quote } from "../../errors/go-format.js";
import { type JsonObject, deepEqual, memberOf, objectAt, stringAt } from "../../json.js";
import { placedContainers } from "./placed-containers.js";
import { checkRelative } from "./projected-volumes.js";
import { checkArmor } from "./security-context.js";

/** Prefix of the legacy annotation with the AppArmor profile of a container. */
export const ARMOR = "container.apparmor.security.beta.kubernetes.io/";
/** Prefix of the legacy annotation with the seccomp profile of a container. */
export const SECCOMP = "container.seccomp.security.alpha.kubernetes.io/";
/** Legacy annotation with the seccomp profile of all containers. */
export const SECCOMP_OF_POD = "seccomp.security.alpha.kubernetes.io/pod";
const [LOCAL, DEFAULT, UNCONFINED, DOCKER] = ["localhost/", "runtime/default", "unconfined", "docker/default"];
const COST = "controller.kubernetes.io/pod-deletion-cost";
const MIRROR = "kubernetes.io/config.mirror";
const UNPLACED = "must set spec.nodeName if mirror pod annotation is set";
const [MIN_INT32, MAX_INT32] = [-2_147_483_648, 2_147_483_647];
/** Warning for AppArmor annotations. */
export const ARMOR_ADVICE = 'deprecated since v1.30; use the "appArmorProfile" field instead';

function annotationsOf(pod: JsonObject): JsonObject {
  return objectAt(objectAt(pod, "metadata"), "annotations") ?? {};
}

/** True for a mirror Pod, which represents a static Pod of a kubelet. */
export function isMirror(pod: JsonObject): boolean {
  return memberOf(annotationsOf(pod), MIRROR) !== undefined;
}

/** Validates annotations of a Pod or Pod template; `path` is that of the annotations. */
export function checkProfileAnnotations(path: string, pod: JsonObject): FieldError[] {
  const names = placedContainers("", objectAt(pod, "spec") ?? {}).map(({ container }) => textAt(container, "name"));
  const told = Object.entries(annotationsOf(pod)).map(([key, value]) => [key, String(value)] as const);
  const isSeccomp = (key: string) => key === SECCOMP_OF_POD || key.startsWith(SECCOMP);
  const isPlaced = textAt(pod, "spec.nodeName") !== "";
  return [
    ...told.flatMap(([key, value]) =>
      key === MIRROR && !isPlaced ? [invalidError(`${path}[${key}]`, value, UNPLACED)] : [],
    ),
    ...told.flatMap(([key, value]) =>
      key === COST && !isInt32(value) ? [invalidError(`${path}[${key}]`, value, "must be a 32bit integer")] : [],
    ),
    ...told.flatMap(([key, value]) => (isSeccomp(key) ? checkSeccompTold(`${path}.${key}`, value) : [])),
    ...told.flatMap(([key, value]) => {
      if (!key.startsWith(ARMOR)) return [];
      const [field, name] = [`${path}[${key}]`, key.slice(ARMOR.length)];
      const isKnown = ["", DEFAULT, UNCONFINED].includes(value) || value.startsWith(LOCAL);
      return [
        ...(names.includes(name) ? [] : [invalidError(field, name, "container not found")]),
        ...(isKnown ? [] : [invalidError(field, value, `invalid AppArmor profile name: ${quote(value)}`)]),
      ];
    }),
  ];
}

// Neither a plus sign nor leading zeros are allowed.
function isInt32(text: string): boolean {
  return /^(0|[1-9]\d*|-\d+)$/.test(text) && Number(text) >= MIN_INT32 && Number(text) <= MAX_INT32;
}

function checkSeccompTold(field: string, value: string): FieldError[] {
  if ([DEFAULT, DOCKER, UNCONFINED].includes(value)) return [];
  if (value.startsWith(LOCAL)) return checkRelative(field, value.slice(LOCAL.length));
  return [invalidError(field, value, "must be a valid seccomp profile")];
}

interface Told {
  readonly what: "seccomp" | "apparmor";
  readonly profile: JsonObject | undefined;
  readonly annotation: string | undefined;
}

/** Validates that legacy annotations and fields of a Pod or Pod template agree; `path` is that of the spec. */
export function checkProfilesMatch(path: string, pod: JsonObject): FieldError[] {
  const annotations = annotationsOf(pod);
  const spec = objectAt(pod, "spec") ?? {};
  const told = (key: string) => stringAt(annotations, key);
  const context = objectAt(spec, "securityContext");
  const [seccomp, armor] = [objectAt(context, "seccompProfile"), objectAt(context, "appArmorProfile")];
  const placed = placedContainers(path, spec).map(({ at: place, container }) => ({
    place: `${place}.securityContext`,
    name: textAt(container, "name"),
    own: objectAt(container, "securityContext"),
  }));
  const ofPod = { what: "seccomp", profile: seccomp, annotation: told(SECCOMP_OF_POD) } as const;
  return [
    ...checkMatch(`${path}.securityContext.seccompProfile`, ofPod),
    ...placed.flatMap(({ place, name, own }) => {
      const annotation = told(SECCOMP + name);
      const profile = objectAt(own, "seccompProfile");
      return checkMatch(`${place}.seccompProfile`, { what: "seccomp", profile, annotation });
    }),
    ...(textAt(spec, "os.name") === "windows" ? [] : placed).flatMap(({ place, name, own }) => {
      const annotation = told(ARMOR + name);
      const profile = objectAt(own, "appArmorProfile") ?? armor;
      return checkMatch(`${place}.appArmorProfile`, { what: "apparmor", profile, annotation });
    }),
  ];
}

function checkMatch(path: string, { what, profile, annotation }: Told): FieldError[] {
  if (profile === undefined || annotation === undefined) return [];
  const [type, local] = [textAt(profile, "type"), memberOf(profile, "localhostProfile")];
  const no = (field: string, part: string) => [
    forbiddenError(`${path}.${field}`, `${what} ${part} in annotation and field must match`),
  ];
  const isDefault = annotation === DEFAULT || (what === "seccomp" && annotation === DOCKER);
  if (type === "Unconfined" && annotation !== UNCONFINED) return no("type", "type");
  if (type === "RuntimeDefault" && !isDefault) return no("type", "type");
  if (type !== "Localhost") return [];
  if (!annotation.startsWith(LOCAL)) return no("type", "type");
  return annotation.slice(LOCAL.length) === local ? [] : no("localhostProfile", "profile");
}

/** Validates that AppArmor and mirror Pod annotations are unchanged. */
export function checkProfilesKept(pod: JsonObject, old: JsonObject): FieldError[] {
  const [now, before] = [annotationsOf(pod), annotationsOf(old)];
  return [...new Set([...Object.keys(before), ...Object.keys(now)])].flatMap((key) => {
    const what = key.startsWith(ARMOR) ? "AppArmor annotations" : key === MIRROR ? "mirror pod annotation" : undefined;
    if (what === undefined || memberOf(now, key) === memberOf(before, key)) return [];
    const how = Object.hasOwn(before, key) ? "remove or update" : "add";
    return [forbiddenError(`metadata.annotations[${key}]`, `may not ${how} ${what}`)];
  });
}

/** Copies legacy AppArmor annotations of a new Pod to its fields, in place; returns warnings. */
export function copyArmor(pod: JsonObject): string[] {
  const [spec, annotations] = [objectAt(pod, "spec") ?? {}, annotationsOf(pod)];
  const ofPod = at(spec, "securityContext.appArmorProfile");
  if (textAt(spec, "os.name") === "windows") return [];
  return placedContainers("spec", spec).flatMap(({ container }) => {
    const key = ARMOR + textAt(container, "name");
    const told = stringAt(annotations, key);
    if (told === undefined || at(container, "securityContext.appArmorProfile") !== undefined) return [];
    const profile = armorOf(told);
    if (profile !== undefined && deepEqual(profile, ofPod ?? null)) return [];
    if (profile !== undefined)
      container["securityContext"] = { ...objectAt(container, "securityContext"), appArmorProfile: profile };
    return [`metadata.annotations[${key}]: ${ARMOR_ADVICE}`];
  });
}

function armorOf(told: string): JsonObject | undefined {
  if (told === UNCONFINED) return { type: "Unconfined" };
  if (told === DEFAULT) return { type: "RuntimeDefault" };
  if (!told.startsWith(LOCAL)) return undefined;
  const profile = { type: "Localhost", localhostProfile: told.slice(LOCAL.length) };
  return checkArmor("", profile).length === 0 ? profile : undefined;
}
