// Validation with the order and messages of kube-apiserver (pkg/apis/flowcontrol/validation).
import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, arrayAt, memberOf, objectAt } from "../../json.js";
import { checkDomain } from "../../validation/fields.js";
import type { Strategy } from "../strategy.js";

export const flowSchemaStrategy: Strategy = {
  resetOnStatus: [".metadata", ".spec"],
  generation: "spec",
  checksMetadata: ["object"],
  validate: checkFlowSchema,
  validateStatus: checkFlowStatus,
};

const MAX_PRECEDENCE = 10_000;
const METHODS = ["ByNamespace", "ByUser"];
const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
const SUBJECTS: Record<string, string> = { Group: "group", ServiceAccount: "serviceAccount", User: "user" };

/** Validates the status of a FlowSchema or PriorityLevelConfiguration. */
export function checkFlowStatus(object: JsonObject): FieldError[] {
  const types = objectsAt(object, "status.conditions").map((condition) => textAt(condition, "type"));
  const path = "status.conditions";
  return types.flatMap((type, index) => [
    ...(types.indexOf(type) < index ? [duplicateError(`${path}[${index}].type`, type)] : []),
    ...(type === "" ? [requiredError(`${path}[${index}].type`)] : []),
  ]);
}

function checkFlowSchema(schema: JsonObject): FieldError[] {
  const spec = objectAt(schema, "spec") ?? {};
  const level = textAt(spec, "priorityLevelConfiguration.name");
  const method = objectAt(spec, "distinguisherMethod");
  const type = textAt(method ?? {}, "type");
  const at = "spec.priorityLevelConfiguration.name";
  return [
    ...checkPrecedence(textAt(schema, "metadata.name"), Number(memberOf(spec, "matchingPrecedence") ?? 0)),
    ...(method === undefined || METHODS.includes(type)
      ? []
      : [notSupportedError("spec.distinguisherMethod.type", { Type: type }, METHODS)]),
    ...(level === "" ? [requiredError(at, "must reference a priority level")] : checkDomain(at, level)),
    ...objectsAt(spec, "rules").flatMap((rule, index) => checkFlowRule(`spec.rules[${index}]`, rule)),
  ];
}

function checkPrecedence(name: string, precedence: number): FieldError[] {
  const wrong = (detail: string) => [invalidError("spec.matchingPrecedence", precedence, detail)];
  if (precedence <= 0) return wrong("must be a positive value");
  if (precedence > MAX_PRECEDENCE) return wrong(`must not be greater than ${MAX_PRECEDENCE}`);
  const isTheFirst = precedence === 1 && name !== "exempt";
  return isTheFirst ? wrong("only the schema named 'exempt' may have matchingPrecedence 1") : [];
}

function checkFlowRule(path: string, rule: JsonObject): FieldError[] {
  const [subjects, resources, others] = ["subjects", "resourceRules", "nonResourceRules"].map((key) =>
    objectsAt(rule, key),
  ) as [JsonObject[], JsonObject[], JsonObject[]];
  const detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
  return [
    ...(subjects.length === 0 ? [requiredError(`${path}.subjects`, "subjects must contain at least one value")] : []),
    ...subjects.flatMap((subject, index) => checkSubject(`${path}.subjects[${index}]`, subject)),
    ...(resources.length === 0 && others.length === 0 ? [requiredError(path, detail)] : []),
    ...resources.flatMap((one, index) => checkResources(`${path}.resourceRules[${index}]`, one)),
    ...others.flatMap((one, index) => checkUrls(`${path}.nonResourceRules[${index}]`, one)),
  ];
}

function checkSubject(path: string, subject: JsonObject): FieldError[] {
  const kind = textAt(subject, "kind");
  const own = Object.hasOwn(SUBJECTS, kind) ? SUBJECTS[kind] : undefined;
  if (own === undefined) return [notSupportedError(`${path}.kind`, kind, Object.keys(SUBJECTS))];
  const given = objectAt(subject, own);
  const strangers = ["ServiceAccount", "User", "Group"].filter(
    (other) => other !== kind && memberOf(subject, SUBJECTS[other] ?? "") !== undefined,
  );
  return [
    ...(given === undefined
      ? [requiredError(`${path}.${own}`, `${own} is required when subject kind is '${kind}'`)]
      : checkNamed(`${path}.${own}`, kind, given)),
    ...strangers.map((other) => {
      const key = SUBJECTS[other] ?? "";
      return forbiddenError(`${path}.${key}`, `${key} is forbidden when subject kind is not '${other}'`);
    }),
  ];
}

function checkNamed(path: string, kind: string, subject: JsonObject): FieldError[] {
  const [name, namespace] = [textAt(subject, "name"), textAt(subject, "namespace")];
  const isAccount = kind === "ServiceAccount";
  return [
    ...(name === "" ? [requiredError(`${path}.name`)] : []),
    ...(isAccount && name !== "" && name !== "*" ? checkDomain(`${path}.name`, name) : []),
    ...(isAccount && namespace === ""
      ? [requiredError(`${path}.namespace`, "must specify namespace for service account")]
      : []),
  ];
}

function checkVerbs(path: string, rule: JsonObject): FieldError[] {
  const verbs = (arrayAt(rule, "verbs") ?? []).map(String);
  if (verbs.length === 0) return [requiredError(`${path}.verbs`, "verbs must contain at least one value")];
  if (verbs.includes("*")) return checkAlone(`${path}.verbs`, verbs, "verbs");
  return verbs.every((verb) => VERBS.includes(verb)) ? [] : [notSupportedError(`${path}.verbs`, verbs, VERBS)];
}

function checkAlone(path: string, values: string[], what: string): FieldError[] {
  if (values.length < 2 || !values.includes("*")) return [];
  return [invalidError(path, values, `if '*' is present, must not specify other ${what}`)];
}

function checkResources(path: string, rule: JsonObject): FieldError[] {
  const [groups, resources, namespaces] = ["apiGroups", "resources", "namespaces"].map((key) =>
    (arrayAt(rule, key) ?? []).map(String),
  ) as [string[], string[], string[]];
  const isNowhere = namespaces.length === 0 && memberOf(rule, "clusterScope") !== true;
  return [
    ...checkVerbs(path, rule),
    ...(groups.length === 0
      ? [requiredError(`${path}.apiGroups`, "resource rules must supply at least one api group")]
      : checkAlone(`${path}.apiGroups`, groups, "api groups")),
    ...(resources.length === 0
      ? [requiredError(`${path}.resources`, "resource rules must supply at least one resource")]
      : checkAlone(`${path}.resources`, resources, "resources")),
    ...(isNowhere
      ? [
          requiredError(
            `${path}.namespaces`,
            "resource rules that are not cluster scoped must supply at least one namespace",
          ),
        ]
      : checkAlone(`${path}.namespaces`, namespaces, "namespaces")),
  ];
}

function checkUrls(path: string, rule: JsonObject): FieldError[] {
  const urls = (arrayAt(rule, "nonResourceURLs") ?? []).map(String);
  const at = `${path}.nonResourceURLs`;
  return [
    ...checkVerbs(path, rule),
    ...(urls.length === 0 ? [requiredError(at, "nonResourceURLs must contain at least one value")] : []),
    ...(urls.includes("*")
      ? checkAlone(at, urls, "non-resource URLs")
      : urls.flatMap((url, index) => checkUrl(`${at}[${index}]`, url))),
  ];
}

function checkUrl(path: string, url: string): FieldError[] {
  if (url === "") return [invalidError(path, url, "must not be empty")];
  const stars = url.split("*").length - 1;
  const isInside = stars > 1 || (stars === 1 && !url.endsWith("/*"));
  const problems = [
    ...(url.startsWith("/") ? [] : ["must start with slash"]),
    ...(url.includes(" ") ? ["must not contain white-space"] : []),
    ...(url.includes("//") ? ["must not contain double slash"] : []),
    ...(isInside ? ["wildcard can only do suffix matching"] : []),
  ];
  return problems.slice(0, 1).map((detail) => invalidError(path, url, detail));
}
