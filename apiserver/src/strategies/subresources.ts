// What may be written through subresources that change a part of an object.
import { type FieldError, WHOLE, forbiddenError } from "../errors/field-error.js";
import { quote } from "../errors/go-format.js";
import { type JsonObject, arrayAt, deepEqual, isObject, objectAt, stringAt } from "../json.js";
import type { ServedType } from "../builtin/served-type.js";
import { checkCertificateStatus } from "./certificates/certificate-status.js";
import { checkResize } from "./core/pod-resize.js";
import { checkPod } from "./pod-template/pod-spec.js";
import { isMirror } from "./pod-template/profile-annotations.js";
import { checkQuotaStatus } from "./core/resource-quota.js";

/** Checks what was written through a subresource of a built-in type; `undefined` for one without rules of its own. */
export function checkPart(
  { plural }: Pick<ServedType, "plural">,
  { object, live, subresource }: { object: JsonObject; live: JsonObject; subresource: string },
): FieldError[] | undefined {
  switch (`${plural}/${subresource}`) {
    case "pods/ephemeralcontainers":
      return isMirror(live)
        ? [forbiddenError(WHOLE, "static pods do not support ephemeral containers")]
        : [...checkPod(object, undefined), ...checkEphemeral(object, live)];
    case "resourcequotas/status":
      return checkQuotaStatus(object);
    case "pods/resize":
      return checkResize(object, live);
    case "certificatesigningrequests/approval":
    case "certificatesigningrequests/status":
      return checkCertificateStatus(object, live, subresource === "status" ? "status" : "approval");
    default:
      return undefined;
  }
}

function checkEphemeral(object: JsonObject, live: JsonObject): FieldError[] {
  const containersOf = (pod: JsonObject) =>
    (arrayAt(objectAt(pod, "spec"), "ephemeralContainers") ?? []).filter(isObject);
  const path = "spec.ephemeralContainers";
  const given = containersOf(object);
  return [
    ...containersOf(live).flatMap((before) => {
      const name = stringAt(before, "name") ?? "";
      const now = given.find((container) => container["name"] === name);
      if (now === undefined)
        return [forbiddenError(path, `existing ephemeral containers ${quote(name)} may not be removed\n`)];
      if (deepEqual(now, before)) return [];
      return [forbiddenError(path, `existing ephemeral containers ${quote(name)} may not be changed`)];
    }),
  ];
}
