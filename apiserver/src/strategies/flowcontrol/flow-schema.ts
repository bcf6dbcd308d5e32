// What kube-apiserver demands of the kinds that share out its capacity, in its order and words (pkg/apis/flowcontrol/validation).
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, arrayAt, memberOf, objectAt } from "../../json.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { checkDomain } from "../../validation/fields.js";

const MAX_PRECEDENCE = 10_000;
const MAX_QUEUES = 10_000_000;
const MAX_HASH_BITS = 60;
const METHODS = ["ByNamespace", "ByUser"];
const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
const SUBJECTS: Record<string, string> = { Group: "group", ServiceAccount: "serviceAccount", User: "user" };

/** Checks the status of a FlowSchema or a PriorityLevelConfiguration. */
export function checkFlowStatus(object: JsonObject): FieldError[] {
  const types = objectsAt(object, "status.conditions").map((condition) => textAt(condition, "type"));
  const path = "status.conditions";
  return types.flatMap((type, index) => [
    ...(types.indexOf(type) < index ? [duplicateError(`${path}[${index}].type`, type)] : []),
    ...(type === "" ? [requiredError(`${path}[${index}].type`)] : []),
  ]);
}

/** Checks a FlowSchema. */
export function checkFlowSchema(schema: JsonObject): FieldError[] {
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

/** Checks a PriorityLevelConfiguration. */
export function checkPriorityLevel(level: JsonObject): FieldError[] {
  const spec = objectAt(level, "spec") ?? {};
  const [limited, exempt] = [objectAt(spec, "limited"), objectAt(spec, "exempt")];
  const type = textAt(spec, "type");
  const isTheExempt = textAt(level, "metadata.name") === "exempt";
  return [
    ...(isTheExempt === (type === "Exempt")
      ? []
      : [invalidError("spec.type", type, "must be 'Exempt' if and only if `name` is 'exempt'")]),
    ...checkOfType(type, { limited, exempt }),
  ];
}

interface LevelParts {
  readonly limited: JsonObject | undefined;
  readonly exempt: JsonObject | undefined;
}

function checkOfType(type: string, { limited, exempt }: LevelParts): FieldError[] {
  if (type === "") return [requiredError("spec.type")];
  if (type === "Exempt") {
    return [
      ...(limited === undefined ? [] : [forbiddenError("spec.limited", "must be nil if the type is not Limited")]),
      ...(exempt === undefined ? [] : checkShares("spec.exempt", exempt)),
    ];
  }
  if (type !== "Limited") return [notSupportedError("spec.type", type, ["Exempt", "Limited"])];
  return [
    ...(exempt === undefined ? [] : [forbiddenError("spec.exempt", "must be nil if the type is Limited")]),
    ...(limited === undefined
      ? [requiredError("spec.limited", "must not be empty when type is Limited")]
      : checkLimited("spec.limited", limited)),
  ];
}

function checkShares(path: string, shares: JsonObject): FieldError[] {
  const [nominal, lendable] = ["nominalConcurrencyShares", "lendablePercent"].map((key) =>
    Number(memberOf(shares, key) ?? 0),
  ) as [number, number];
  const isPart = lendable >= 0 && lendable <= 100;
  return [
    ...(nominal < 0
      ? [invalidError(`${path}.nominalConcurrencyShares`, nominal, "must be a non-negative integer")]
      : []),
    ...(isPart ? [] : [invalidError(`${path}.lendablePercent`, lendable, "must be between 0 and 100, inclusive")]),
  ];
}

function checkLimited(path: string, limited: JsonObject): FieldError[] {
  const borrowed = memberOf(limited, "borrowingLimitPercent");
  const isNegative = typeof borrowed === "number" && borrowed < 0;
  return [
    ...checkResponse(`${path}.limitResponse`, objectAt(limited, "limitResponse") ?? {}),
    ...checkShares(path, limited),
    ...(isNegative
      ? [invalidError(`${path}.borrowingLimitPercent`, borrowed, "if specified, must be a non-negative integer")]
      : []),
  ];
}

function checkResponse(path: string, response: JsonObject): FieldError[] {
  const type = textAt(response, "type");
  const queuing = objectAt(response, "queuing");
  if (type === "") return [requiredError(`${path}.type`)];
  if (type === "Reject") {
    const detail = "must be nil if limited.limitResponse.type is not Limited";
    return queuing === undefined ? [] : [forbiddenError(`${path}.queuing`, detail)];
  }
  if (type !== "Queue") return [notSupportedError(`${path}.type`, type, ["Queue", "Reject"])];
  return queuing === undefined
    ? [requiredError(`${path}.queuing`, "must not be empty if limited.limitResponse.type is Limited")]
    : checkQueuing(`${path}.queuing`, queuing);
}

function checkQueuing(path: string, queuing: JsonObject): FieldError[] {
  const [length, queues, hand] = ["queueLengthLimit", "queues", "handSize"].map((key) =>
    Number(memberOf(queuing, key) ?? 0),
  ) as [number, number, number];
  const isMany = queues > MAX_QUEUES;
  return [
    ...(length > 0 ? [] : [invalidError(`${path}.queueLengthLimit`, length, "must be positive")]),
    ...(queues > 0 ? [] : [invalidError(`${path}.queues`, queues, "must be positive")]),
    ...(isMany ? [invalidError(`${path}.queues`, queues, `must not be greater than ${MAX_QUEUES}`)] : []),
    ...problemsOfHand(hand, queues).map((detail) => invalidError(`${path}.handSize`, hand, detail)),
  ];
}

// A request is dealt a hand of queues by a hash of 60 bits: these must suffice to choose the hand.
function problemsOfHand(hand: number, queues: number): string[] {
  if (hand <= 0) return ["must be positive"];
  if (hand > queues) return [`should not be greater than queues (${queues})`];
  const bits = Math.ceil(Math.log2(queues) * hand);
  if (bits <= MAX_HASH_BITS) return [];
  return [
    `required entropy bits of deckSize ${queues} and handSize ${hand} should not be greater than ${MAX_HASH_BITS}`,
  ];
}
