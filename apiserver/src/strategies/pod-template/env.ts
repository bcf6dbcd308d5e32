// Environment variables of containers.
import { textAt } from "../../builtin/read-path.js";
import { type FieldError, invalidError, requiredError, textNotSupportedError } from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import {
  checkConfigKey,
  checkDomain,
  checkLabelName,
  checkQualifiedName,
  checkRequiredDomain,
} from "../../validation/fields.js";
import { checkPath } from "../shared/volume-sources.js";

const VARIABLE_NAME = /^[ -<>-~]+$/;
const VARIABLE_RULE =
  "a valid environment variable name must consist only of printable ASCII characters other than '='";

type SourceRule = (path: string, source: JsonObject) => FieldError[];

const SOURCES: Record<string, SourceRule> = {
  fieldRef: (path, source) => checkFieldReference(path, source, FIELDS),
  resourceFieldRef: (path, source) => checkResourceReference(path, source),
  configMapKeyRef: checkKeyOf,
  secretKeyRef: checkKeyOf,
  fileKeyRef: (path, source) => [
    ...checkVariableName(`${path}.key`, textAt(source, "key")),
    ...checkLabelName(`${path}.volumeName`, memberOf(source, "volumeName")),
    ...checkPath(`${path}.path`, textAt(source, "path")),
  ],
};
const NO_SOURCE =
  "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";

export function checkVariable(path: string, variable: JsonObject): FieldError[] {
  const from = objectAt(variable, "valueFrom");
  return [
    ...checkVariableName(`${path}.name`, textAt(variable, "name")),
    ...(from === undefined ? [] : checkSources(`${path}.valueFrom`, from, textAt(variable, "value"))),
  ];
}

/** Validates envFrom. As in kube-apiserver, errors refer to the list if a source has no index. */
export function checkVariableSources(path: string, sources: JsonObject[]): FieldError[] {
  return sources.flatMap((source, index) => {
    const given = ["configMapRef", "secretRef"].filter((key) => objectAt(source, key) !== undefined);
    const none = "must specify one of: `configMapRef` or `secretRef`";
    const detail = given.length === 0 ? none : "may not have more than one field specified at a time";
    const prefix = textAt(source, "prefix");
    return [
      ...(prefix === "" ? [] : checkVariableName(`${path}[${index}].prefix`, prefix)),
      ...given.flatMap((key) => checkRequiredDomain(`${path}[${index}].${key}.name`, textAt(source, `${key}.name`))),
      ...(given.length === 1 ? [] : [invalidError(path, "", detail)]),
    ];
  });
}

function checkVariableName(field: string, name: string): FieldError[] {
  if (name === "") return [requiredError(field)];
  return VARIABLE_NAME.test(name) ? [] : [invalidError(field, name, VARIABLE_RULE)];
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
/** Other fields of the downward API; whether they are supported depends on where they are used. */
const OTHER_FIELDS = [
  ...["metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase"],
];
const SUBSCRIPT = /^(.+?)\['(.*)'\]$/s;

/** Validates a fieldRef; the field must be in `supported`. */
export function checkFieldReference(path: string, reference: JsonObject, supported: string[]): FieldError[] {
  const [version, field] = [textAt(reference, "apiVersion"), textAt(reference, "fieldPath")];
  const at = `${path}.fieldPath`;
  const unknown = (detail: string) => [invalidError(at, field, `error converting fieldPath: ${detail}`)];
  if (field === "") return [requiredError(at)];
  if (version !== "" && version !== "v1") return unknown(`unsupported pod version: ${version}`);
  const [, holder, key = ""] = SUBSCRIPT.exec(field) ?? [];
  if (holder === "metadata.annotations") return checkQualifiedName(path, key.toLowerCase());
  if (holder === "metadata.labels") return checkQualifiedName(path, key);
  if (holder !== undefined) return unknown(`field label does not support subscript: ${field}`);
  // Legacy name of spec.nodeName.
  const named = field === "spec.host" ? "spec.nodeName" : field;
  if (![...FIELDS, ...OTHER_FIELDS].includes(named)) return unknown(`field label not supported: ${field}`);
  return supported.includes(named) ? [] : [textNotSupportedError(at, named, supported)];
}

const RESOURCES = ["cpu", "ephemeral-storage", "memory"].map((name) => `limits.${name}`);
const SHOWN_RESOURCES = [...RESOURCES, ...RESOURCES.map((name) => name.replace("limits", "requests"))];
const OF_BYTES = [
  "1",
  ..."kMGTPE".split("").map((unit) => `1${unit}`),
  ..."KMGTPE".split("").map((unit) => `1${unit}i`),
];
const DIVISORS: [of: RegExp, divisors: string[], shown: string][] = [
  [/^(limits|requests)\.cpu$/, ["1m", "1"], "1m and 1 are supported with the cpu resource"],
  [/^(limits|requests)\.memory$/, OF_BYTES, `${OF_BYTES.join(", ")} are supported with the memory resource`],
  [
    /^(limits|requests)\.ephemeral-storage$/,
    OF_BYTES,
    `${OF_BYTES.join(", ")} are supported with the local ephemeral storage resource`,
  ],
  [/^(limits|requests)\.hugepages-/, OF_BYTES, `${OF_BYTES.join(", ")} are supported with the hugepages resource`],
];

/** Validates a resourceFieldRef. */
export function checkResourceReference(
  path: string,
  reference: JsonObject,
  { needsContainer = false } = {},
): FieldError[] {
  const [name, divisor] = [textAt(reference, "resource"), textAt(reference, "divisor")];
  const [, divisors = [], shown] = DIVISORS.find(([of]) => of.test(name)) ?? [];
  const fits = divisor === "" || divisor === "0" || shown === undefined || divisors.includes(divisor);
  const field = `${path}.resource`;
  const isShown = SHOWN_RESOURCES.includes(name) || /^(limits|requests)\.hugepages-/.test(name);
  return [
    ...(needsContainer && textAt(reference, "containerName") === ""
      ? [requiredError(`${path}.containerName`)]
      : name === ""
        ? [requiredError(field)]
        : isShown
          ? []
          : [textNotSupportedError(field, name, SHOWN_RESOURCES)]),
    ...(fits ? [] : [invalidError(`${path}.divisor`, name, `only divisor's values ${shown}`)]),
  ];
}
