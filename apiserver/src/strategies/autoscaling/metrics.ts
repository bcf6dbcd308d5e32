import { textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, memberOf, objectAt } from "../../json.js";
import { checkLabel, checkPathSegment, checkRequiredSegment } from "../../validation/fields.js";
import { containerResourceProblems } from "../pod-template/resources.js";

interface Source {
  readonly key: string;
  check(path: string, source: JsonObject): FieldError[];
}

// In the order of the error message of kube-apiserver.
const SOURCES: Record<string, Source> = {
  ContainerResource: {
    key: "containerResource",
    check: (path, source) => [
      ...(textAt(source, "container") === ""
        ? [requiredError(`${path}.container`, "must specify a container")]
        : checkLabel(`${path}.container`, textAt(source, "container"))),
      ...containerResourceProblems(textAt(source, "name") || "cpu").map((detail) =>
        invalidError(`${path}.name`, textAt(source, "name"), detail),
      ),
      ...checkResource(path, source),
    ],
  },
  External: { key: "external", check: checkExternal },
  Object: { key: "object", check: checkObject },
  Pods: { key: "pods", check: checkPods },
  Resource: { key: "resource", check: checkResource },
};

const CHECKED = ["Object", "External", "Pods", "Resource", "ContainerResource"];

export function checkMetric(path: string, metric: JsonObject): FieldError[] {
  const type = memberOf(metric, "type") ?? "";
  const source = Object.hasOwn(SOURCES, String(type)) ? SOURCES[String(type)] : undefined;
  const keys = Object.values(SOURCES).map(({ key }) => key);
  const given = keys.filter((key) => memberOf(metric, key) !== undefined);
  // Only the first source is validated if there are several.
  const first = CHECKED.map((kind) => SOURCES[kind]).find((one) => one !== undefined && given.includes(one.key));
  const unsupported = notSupportedError(`${path}.type`, type, Object.keys(SOURCES));
  return [
    ...(type === "" ? [requiredError(`${path}.type`, "must specify a metric source type")] : []),
    // kube-apiserver reports this error twice.
    ...(source === undefined ? [unsupported, unsupported] : []),
    ...(source === undefined || given.includes(source.key)
      ? []
      : [requiredError(`${path}.${source.key}`, "must populate information for the given metric source")]),
    ...(first === undefined ? [] : first.check(`${path}.${first.key}`, objectAt(metric, first.key) ?? {})),
    ...(given.length === 1
      ? []
      : given
          .filter((key) => key !== source?.key)
          .map((key) => forbiddenError(`${path}.${key}`, "must populate the given metric source only"))),
  ];
}

function checkResource(path: string, source: JsonObject): FieldError[] {
  const target = objectAt(source, "target") ?? {};
  const [utilization, value] = ["averageUtilization", "averageValue"].map((key) => memberOf(target, key));
  const at = `${path}.target`;
  return [
    ...(textAt(source, "name") === "" ? [requiredError(`${path}.name`, "must specify a resource name")] : []),
    ...checkTarget(at, target),
    ...(utilization === undefined && value === undefined
      ? [requiredError(`${at}.averageUtilization`, "must set either a target raw value or a target utilization")]
      : []),
    ...(utilization !== undefined && value !== undefined
      ? [forbiddenError(`${at}.averageValue`, "may not set both a target raw value and a target utilization")]
      : []),
  ];
}

function checkPods(path: string, source: JsonObject): FieldError[] {
  const target = objectAt(source, "target") ?? {};
  return [
    ...checkIdentifier(`${path}.metric`, source),
    ...checkTarget(`${path}.target`, target),
    ...(memberOf(target, "averageValue") !== undefined
      ? []
      : [requiredError(`${path}.target.averageValue`, "must specify a positive target averageValue")]),
  ];
}

function checkObject(path: string, source: JsonObject): FieldError[] {
  const described = objectAt(source, "describedObject") ?? {};
  const target = objectAt(source, "target") ?? {};
  const [value, average] = ["value", "averageValue"].map((key) => memberOf(target, key));
  const detail = "must set either a target value or averageValue";
  return [
    ...checkReference(`${path}.describedObject`, described, { needsGroup: false }),
    ...checkIdentifier(`${path}.metric`, source),
    ...checkTarget(`${path}.target`, target),
    ...(value === undefined && average === undefined ? [requiredError(`${path}.target.averageValue`, detail)] : []),
  ];
}

function checkExternal(path: string, source: JsonObject): FieldError[] {
  const target = objectAt(source, "target") ?? {};
  const [value, average] = ["value", "averageValue"].map((key) => memberOf(target, key));
  return [
    ...checkIdentifier(`${path}.metric`, source),
    ...checkTarget(`${path}.target`, target),
    ...(value === undefined && average === undefined
      ? [requiredError(`${path}.target.averageValue`, "must set either a target value for metric or a per-pod target")]
      : []),
    ...(value !== undefined && average !== undefined
      ? [forbiddenError(`${path}.target.value`, "may not set both a target value for metric and a per-pod target")]
      : []),
  ];
}

function checkIdentifier(path: string, source: JsonObject): FieldError[] {
  const [field, name] = [`${path}.name`, textAt(source, "metric.name")];
  if (name === "") return [requiredError(field, "must specify a metric name")];
  return checkPathSegment(field, name);
}

const TARGET_TYPES = new Set<JsonValue>(["Utilization", "Value", "AverageValue"]);

function checkTarget(path: string, target: JsonObject): FieldError[] {
  const type = memberOf(target, "type") ?? "";
  const utilization = memberOf(target, "averageUtilization");
  return [
    ...(type === "" ? [requiredError(`${path}.type`, "must specify a metric target type")] : []),
    ...(TARGET_TYPES.has(type)
      ? []
      : [invalidError(`${path}.type`, type, "must be either Utilization, Value, or AverageValue")]),
    ...["value", "averageValue"].flatMap((key) => {
      const amount = memberOf(target, key);
      return amount === undefined || isPositive(amount)
        ? []
        : [invalidError(`${path}.${key}`, amount, "must be positive")];
    }),
    ...(typeof utilization === "number" ? checkUtilization(path, utilization) : []),
  ];
}

function checkUtilization(path: string, utilization: number): FieldError[] {
  return utilization < 1 ? [invalidError(`${path}.averageUtilization`, utilization, "must be greater than 0")] : [];
}

function isPositive(amount: JsonValue | undefined): boolean {
  return amount !== undefined && amount !== null && !/^-|^[+0.]*[a-zA-Z]*$/.test(String(amount));
}

/** Validates kind, name, and apiVersion of an object reference in an autoscaler. */
export function checkReference(path: string, reference: JsonObject, { needsGroup = true } = {}): FieldError[] {
  const apiVersion = textAt(reference, "apiVersion");
  const parts = apiVersion.split("/");
  const field = `${path}.apiVersion`;
  return [
    ...["kind", "name"].flatMap((key) => checkRequiredSegment(`${path}.${key}`, textAt(reference, key))),
    ...(parts.length > 2 ? [invalidError(field, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)] : []),
    ...(!needsGroup || parts.length > 2 || (parts.length === 2 && parts[0] !== "")
      ? []
      : [invalidError(field, apiVersion, "apiVersion must specify API group")]),
  ];
}
