// What may be written through subresources that change a part of an object.
import { forbiddenError, invalidError, type FieldError } from "../../../errors/field-error.js";
import { quote } from "../../../errors/quote.js";
import { arrayAt, deepEqual, isObject, objectAt, stringAt, type JsonObject } from "../../../json.js";
import type { ServedType } from "../../served-type.js";
import { checkQuotaStatus } from "../quota-rules.js";
import { checkPod } from "../pods/pod-rules.js";

const VERDICTS = ["Approved", "Denied"];

/** Checks what was written through a subresource of a built-in type; `undefined` for one without rules of its own. */
export function checkPart(
  { plural }: Pick<ServedType, "plural">,
  { object, live, subresource }: { object: JsonObject; live: JsonObject; subresource: string },
): FieldError[] | undefined {
  switch (`${plural}/${subresource}`) {
    case "pods/ephemeralcontainers":
      return [...checkPod(object, undefined), ...checkEphemeral(object, live)];
    case "resourcequotas/status":
      return checkQuotaStatus(object);
    case "pods/resize":
      return checkPod(object, undefined);
    case "certificatesigningrequests/approval":
    case "certificatesigningrequests/status":
      return checkVerdicts(object, live, subresource);
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

/** A verdict is given through /approval, and stays. */
function checkVerdicts(object: JsonObject, live: JsonObject, subresource: string): FieldError[] {
  const before = typesOf(live);
  const now = typesOf(object);
  const isApproval = subresource === "approval";
  const fixed = isApproval ? VERDICTS : [...VERDICTS, "Failed"];
  const removed = [...VERDICTS, "Failed"].filter((type) => before.includes(type) && !now.includes(type));
  const added = isApproval ? [] : VERDICTS.filter((type) => now.includes(type) && !before.includes(type));
  const path = "status.conditions";
  const isContradictory = now.includes("Approved") && now.includes("Denied");
  const certificate = stringAt(objectAt(object, "status"), "certificate") ?? "";
  const isPem = Buffer.from(certificate, "base64").toString("latin1").includes("-----BEGIN CERTIFICATE-----");
  const pemRule = "must contain at least one CERTIFICATE PEM block";
  return [
    ...(certificate === "" || isPem ? [] : [invalidError("status.certificate", "<certificate data>", pemRule)]),
    ...(isContradictory ? [contradiction(now)] : []),
    ...removed
      .filter((type) => fixed.includes(type) || isApproval)
      .map((type) => forbiddenError(path, `updates may not remove a condition of type ${quote(type)}`)),
    ...added.map((type) => forbiddenError(path, `updates may not add a condition of type ${quote(type)}`)),
  ];
}

function contradiction(types: string[]): FieldError {
  const last = Math.max(types.indexOf("Approved"), types.indexOf("Denied"));
  return {
    reason: "FieldValueInvalid",
    field: "status.conditions",
    message: `Invalid value: ${quote(types[last] ?? "")}: Approved and Denied conditions are mutually exclusive`,
  };
}

function typesOf(object: JsonObject): string[] {
  const conditions = arrayAt(objectAt(object, "status"), "conditions") ?? [];
  return conditions.filter(isObject).map((condition) => stringAt(condition, "type") ?? "");
}
