import { objectsAt, textAt } from "../../builtin/read-path.js";
import { type FieldError, duplicateError, invalidError, notSupportedError } from "../../errors/field-error.js";
import { type JsonObject, arrayAt, deepEqual, memberOf, objectAt } from "../../json.js";
import { checkOneOf } from "../../validation/fields.js";
import { checkKept } from "../../validation/immutable-fields.js";
import type { Strategy } from "../strategy.js";

export const csiDriverStrategy: Strategy = {
  generation: "spec-from-zero",
  allowsUnconditionalUpdate: false,
  returnsDeletedObject: true,
  dropFields(driver) {
    delete objectAt(driver, "spec")?.["preventPodSchedulingIfMissing"];
  },
  validate: checkDriver,
  warnings: driverWarnings,
};

const LEAST_TOKEN_SECONDS = 600;
const MOST_TOKEN_SECONDS = 2 ** 32;
const LEAST_UPDATE_SECONDS = 10;

function checkDriver(driver: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(driver, "spec") ?? {};
  const requests = objectsAt(spec, "tokenRequests");
  const [period, inSecrets] = ["nodeAllocatableUpdatePeriodSeconds", "serviceAccountTokenInSecrets"] as const;
  const [seconds, place] = [memberOf(spec, period), memberOf(spec, inSecrets) ?? null];
  const modes = arrayAt(spec, "volumeLifecycleModes") ?? [];
  const unused = `${inSecrets} is set but no tokenRequests are specified`;
  return [
    ...checkOneOf("spec.fsGroupPolicy", memberOf(spec, "fsGroupPolicy"), ["File", "None", "ReadWriteOnceWithFSType"]),
    ...checkTokenRequests("spec.tokenRequests", requests),
    ...modes
      .filter((mode) => mode !== "Persistent" && mode !== "Ephemeral")
      .map((mode) => notSupportedError("spec.volumeLifecycleModes", mode, ["Persistent", "Ephemeral"])),
    ...(typeof seconds === "number" && seconds < LEAST_UPDATE_SECONDS
      ? [invalidError(`spec.${period}`, seconds, `must be greater than or equal to ${LEAST_UPDATE_SECONDS} seconds`)]
      : []),
    ...(place !== null && requests.length === 0 ? [invalidError(`spec.${inSecrets}`, place, unused)] : []),
    ...(old === undefined ? [] : checkDriverKept(spec, objectAt(old, "spec") ?? {})),
  ];
}

function checkDriverKept(spec: JsonObject, old: JsonObject): FieldError[] {
  const [attach, modes] = ["attachRequired", "volumeLifecycleModes"] as const;
  const shown = (one: JsonObject, key: string) => memberOf(one, key) ?? null;
  return [
    // kube-apiserver uses this field name.
    ...checkKept("spec.attachedRequired", shown(spec, attach), shown(old, attach)),
    ...checkKept(`spec.${modes}`, shown(spec, modes), shown(old, modes)),
  ];
}

function checkTokenRequests(path: string, requests: JsonObject[]): FieldError[] {
  const audiences = new Set<string>();
  return requests.flatMap((request, index) => {
    const audience = textAt(request, "audience");
    if (audiences.has(audience)) return [duplicateError(`${path}[${index}].audience`, audience)];
    audiences.add(audience);
    const seconds = memberOf(request, "expirationSeconds");
    const field = `${path}[${index}].expirationSeconds`;
    if (typeof seconds !== "number") return [];
    return [
      ...(seconds < LEAST_TOKEN_SECONDS
        ? [invalidError(field, seconds, "may not specify a duration less than 10 minutes")]
        : []),
      ...(seconds > MOST_TOKEN_SECONDS
        ? [invalidError(field, seconds, "may not specify a duration larger than 2^32 seconds")]
        : []),
    ];
  });
}

function driverWarnings(driver: JsonObject, old: JsonObject | undefined): string[] {
  const spec = objectAt(driver, "spec") ?? {};
  const requests = objectsAt(spec, "tokenRequests");
  const isOpen = requests.length > 0 && memberOf(spec, "serviceAccountTokenInSecrets") === undefined;
  const isSame = old !== undefined && deepEqual(requests, objectsAt(old, "spec.tokenRequests"));
  return isOpen && !isSame
    ? [
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in " +
          "volume attributes",
      ]
    : [];
}
