// Where the variables of a container come from.
import { invalidError, notSupportedError, requiredError, type FieldError } from "../../../errors/field-error.js";
import { memberOf, objectAt, type JsonObject } from "../../../json.js";
import { textAt } from "../../read-path.js";
import { checkConfigKey, checkDomain, checkRequired } from "../field-rules.js";

type SourceRule = (path: string, source: JsonObject) => FieldError[];

const SOURCES: Record<string, SourceRule> = {
  fieldRef: (path, source) => checkFieldPath(`${path}.fieldPath`, textAt(source, "fieldPath")),
  resourceFieldRef: (path, source) => checkRequired(`${path}.resource`, memberOf(source, "resource")),
  configMapKeyRef: checkKeyOf,
  secretKeyRef: checkKeyOf,
  fileKeyRef: (path, source) => checkRequired(`${path}.key`, memberOf(source, "key")),
};
const NO_SOURCE =
  "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";

/** Checks a variable of a container. */
export function checkVariable(path: string, variable: JsonObject): FieldError[] {
  const from = objectAt(variable, "valueFrom");
  return [
    ...checkRequired(`${path}.name`, memberOf(variable, "name")),
    ...(from === undefined ? [] : checkSources(`${path}.valueFrom`, from, textAt(variable, "value"))),
  ];
}

/** Checks what variables of a container come from all at once. */
export function checkVariables(path: string, source: JsonObject): FieldError[] {
  const given = ["configMapRef", "secretRef"].filter((key) => objectAt(source, key) !== undefined);
  if (given.length === 1) return [];
  const none = "must specify one of: `configMapRef` or `secretRef`";
  return [invalidError(path, "", given.length === 0 ? none : "may not have more than one field specified at a time")];
}

function checkSources(path: string, from: JsonObject, value: string): FieldError[] {
  const given = Object.entries(SOURCES).filter(([key]) => objectAt(from, key) !== undefined);
  const problem =
    given.length === 0
      ? NO_SOURCE
      : value !== ""
        ? "may not be specified when `value` is not empty"
        : given.length > 1
          ? "may not have more than one field specified at a time"
          : undefined;
  return [
    ...given.flatMap(([key, check]) => check(`${path}.${key}`, objectAt(from, key) ?? {})),
    ...(problem === undefined ? [] : [invalidError(path, "", problem)]),
  ];
}

function checkKeyOf(path: string, source: JsonObject): FieldError[] {
  const [name, key] = [textAt(source, "name"), textAt(source, "key")];
  return [
    ...checkDomain(`${path}.name`, name),
    ...(key === "" ? [requiredError(`${path}.key`)] : checkConfigKey(`${path}.key`, key)),
  ];
}

const FIELDS = [
  ...["metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"],
  ...["status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"],
];
/** Fields that a volume can show, and a variable cannot. */
const FIELDS_OF_VOLUMES = [
  ...["metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase"],
];
const SUBSCRIPT = /^metadata\.(annotations|labels)\['.*'\]$/;

function checkFieldPath(path: string, field: string): FieldError[] {
  if (field === "") return [requiredError(path)];
  if (FIELDS.includes(field) || SUBSCRIPT.test(field)) return [];
  return FIELDS_OF_VOLUMES.includes(field)
    ? [notSupportedError(path, field, FIELDS)]
    : [invalidError(path, field, `error converting fieldPath: field label not supported: ${field}`)];
}
