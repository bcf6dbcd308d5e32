/** Reviews: kinds whose create returns an answer and stores nothing. */
import { checkExpression, checkValueCount, isSelectorOperator } from "../validation/fields.js";
import type { ServedType } from "../builtin/served-type.js";
import { type FieldError, invalidError, requiredError } from "../errors/field-error.js";
import { quote } from "../errors/go-format.js";
import { badRequest, invalid } from "../errors/status-error.js";
import { type JsonObject, arrayAt, isObject, objectAt, stringAt } from "../json.js";
import { now } from "../object/object-meta.js";
import { checkSelectorSyntax } from "../read/selectors.js";
import type { Identity } from "./authenticator.js";
import type { AccessAttributes, PolicyRule } from "./authorizer.js";
import { ISSUER } from "./service-account-tokens.js";
import { type UserInfo, userObject } from "./user.js";

const INVALID = "invalid bearer token";
/** The requester of a review, and the sources of its answer. */
interface ReviewContext {
  readonly user: UserInfo;
  readonly identity: Identity;
  /** The namespace of the path. */
  readonly namespace: string | undefined;
}

/** Validates a review and returns it unchanged. Throws the errors of kube-apiserver. */
export function checkedReview({ kind }: ServedType, review: JsonObject, namespace: string | undefined): JsonObject {
  const spec = objectAt(review, "spec") ?? {};
  if (kind === "SelfSubjectRulesReview" && (stringAt(spec, "namespace") ?? "") === "")
    throw badRequest("no namespace on request");
  if (kind === "TokenReview" && (stringAt(spec, "token") ?? "") === "")
    throw badRequest("token is required for TokenReview in authentication");
  if (kind.endsWith("AccessReview"))
    checkAccessReview(kind, { spec, metadata: objectAt(review, "metadata") ?? {} }, namespace);
  return review;
}

/** Returns a validated review with its status. */
export function answerReview({ kind }: ServedType, review: JsonObject, context: ReviewContext): JsonObject {
  const spec = objectAt(review, "spec") ?? {};
  switch (kind) {
    case "SelfSubjectReview":
      return { ...review, metadata: { creationTimestamp: now() }, status: { userInfo: userObject(context.user) } };
    case "SelfSubjectRulesReview":
      return { ...review, metadata: {}, spec: {}, status: rulesReview(stringAt(spec, "namespace") ?? "", context) };
    case "TokenReview":
      return { ...review, status: tokenReview(stringAt(spec, "token") ?? "", context) };
    default:
      return { ...review, status: accessReview(kind, spec, context) };
  }
}

function checkAccessReview(
  kind: string,
  { spec, metadata }: { spec: JsonObject; metadata: JsonObject },
  namespace: string | undefined,
): void {
  const { username, groups } = askedUser(spec);
  const isLocal = kind === "LocalSubjectAccessReview";
  const errors = [
    ...checkAttributes(spec),
    ...(kind === "SelfSubjectAccessReview" || username !== "" || groups.length > 0
      ? []
      : [invalidError("spec.user", "", "at least one of user or group must be specified")]),
    ...checkMetadata(metadata, isLocal),
    ...(isLocal ? checkLocal(spec, namespace ?? "") : []),
  ];
  if (errors.length > 0) throw invalid({ kind: "", group: "authorization.k8s.io", name: "" }, errors);
}

function accessReview(kind: string, spec: JsonObject, { user, identity }: ReviewContext): JsonObject {
  const asked = kind === "SelfSubjectAccessReview" ? user : askedUser(spec);
  const { allowed, reason } = identity.authorizer.decide(asked, attributesOf(spec));
  const evaluationError = ignoredSelectors(objectAt(spec, "resourceAttributes"));
  return {
    allowed,
    ...(reason === undefined ? {} : { reason }),
    ...(evaluationError === undefined ? {} : { evaluationError }),
  };
}

function askedUser(spec: JsonObject): UserInfo {
  return { username: stringAt(spec, "user") ?? "", groups: (arrayAt(spec, "groups") ?? []).map(String) };
}

function checkAttributes(spec: JsonObject): FieldError[] {
  const ofResource = objectAt(spec, "resourceAttributes");
  const ofPath = objectAt(spec, "nonResourceAttributes");
  if (ofResource !== undefined) {
    const both = "cannot be specified in combination with resourceAttributes";
    return [
      ...(ofPath === undefined ? [] : [invalidError("spec.nonResourceAttributes", goPath(ofPath), both)]),
      ...["fieldSelector", "labelSelector"].flatMap((name) => checkSelector(name, objectAt(ofResource, name))),
    ];
  }
  if (ofPath !== undefined) return [];
  const detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
  return [invalidError("spec.resourceAttributes", null, detail)];
}

function checkSelector(name: string, selector: JsonObject | undefined): FieldError[] {
  if (selector === undefined) return [];
  const path = `spec.resourceAttributes.${name}`;
  const raw = stringAt(selector, "rawSelector") ?? "";
  const requirements = arrayAt(selector, "requirements") ?? [];
  if (raw !== "" && requirements.length > 0)
    return [invalidError(`${path}.rawSelector`, raw, "may not specified at the same time as requirements")];
  if (raw !== "") return [];
  if (requirements.length > 0)
    return requirements
      .filter(isObject)
      .flatMap((requirement, index) =>
        checkRequirement(`${path}.requirements[${index}]`, requirement, { isLabel: name === "labelSelector" }),
      );
  return [requiredError(`${path}.requirements`, `when ${path} is specified, requirements or rawSelector is required`)];
}

// Operators that this version does not know are accepted.
function checkRequirement(path: string, requirement: JsonObject, { isLabel }: { isLabel: boolean }): FieldError[] {
  if (isLabel) return checkExpression(path, requirement, { takesAnyOperator: true });
  const { operator, values } = { operator: stringAt(requirement, "operator"), values: arrayAt(requirement, "values") };
  return [
    ...((stringAt(requirement, "key") ?? "") === "" ? [requiredError(`${path}.key`, "must be specified")] : []),
    ...checkValueCount(`${path}.values`, operator, values ?? []),
  ];
}

function checkMetadata({ managedFields: _, ...metadata }: JsonObject, isLocal: boolean): FieldError[] {
  const { namespace: __, ...rest } = metadata;
  if (Object.keys(isLocal ? rest : metadata).length === 0) return [];
  const detail = isLocal ? "must be empty except for namespace" : "must be empty";
  return [invalidError("metadata", { ...metadata, ...(_ === undefined ? {} : { managedFields: _ }) }, detail)];
}

function checkLocal(spec: JsonObject, namespace: string): FieldError[] {
  const ofPath = objectAt(spec, "nonResourceAttributes");
  const ofResource = objectAt(spec, "resourceAttributes");
  const given = stringAt(ofResource, "namespace") ?? "";
  if (ofPath !== undefined)
    return [invalidError("spec.nonResourceAttributes", goPath(ofPath), "disallowed on this kind of request")];
  if (given === namespace || ofResource === undefined) return [];
  return [invalidError("spec.resourceAttributes.namespace", given, "must match metadata.namespace")];
}

function goPath(attributes: JsonObject): JsonObject {
  return { Path: stringAt(attributes, "path") ?? "", Verb: stringAt(attributes, "verb") ?? "" };
}

function attributesOf(spec: JsonObject): AccessAttributes {
  const ofPath = objectAt(spec, "nonResourceAttributes");
  if (ofPath !== undefined) return { verb: stringAt(ofPath, "verb") ?? "", path: stringAt(ofPath, "path") ?? "" };
  const given = objectAt(spec, "resourceAttributes");
  const text = (member: string): string => stringAt(given, member) ?? "";
  return {
    verb: text("verb"),
    group: text("group"),
    resource: text("resource"),
    subresource: text("subresource"),
    namespace: text("namespace"),
    name: text("name"),
  };
}

function rulesReview(namespace: string, { user, identity }: ReviewContext): JsonObject {
  // The administrator's rules come from the ClusterRoleBinding cluster-admin, as for any other group.
  const rules = identity.authorizer.rulesFor(user, namespace);
  const resourceRules = rules.filter(({ nonResourceURLs }) => nonResourceURLs.length === 0);
  const nonResourceRules = rules.filter(({ nonResourceURLs }) => nonResourceURLs.length > 0);
  return {
    resourceRules: resourceRules.map(resourceRuleOf),
    nonResourceRules: nonResourceRules.map(({ verbs, nonResourceURLs }) => ({
      verbs: [...verbs],
      nonResourceURLs: [...nonResourceURLs],
    })),
    incomplete: false,
  };
}

function resourceRuleOf({ verbs, apiGroups, resources, resourceNames }: PolicyRule): JsonObject {
  return {
    verbs: [...verbs],
    apiGroups: [...apiGroups],
    resources: [...resources],
    ...(resourceNames.length === 0 ? {} : { resourceNames: [...resourceNames] }),
  };
}

function tokenReview(token: string, { identity }: ReviewContext): JsonObject {
  const user = identity.authenticator.userOf(token);
  if (user === undefined) {
    const missing = identity.tokens.missingAccountOf(token);
    const detail = missing === undefined ? undefined : `serviceaccounts ${quote(missing)} not found`;
    return { user: {}, error: detail === undefined ? INVALID : `[${INVALID}, ${detail}]` };
  }
  return { authenticated: true, user: userObject(user), audiences: [ISSUER] };
}

// Selectors that cannot be parsed are ignored in the decision and reported in evaluationError.

/** Returns the evaluationError for ignored selectors; undefined if all were parsed. */
function ignoredSelectors(attributes: JsonObject | undefined): string | undefined {
  const texts = ["fieldSelector", "labelSelector"].flatMap((name) => {
    const ignored = ignoredPart(name, objectAt(attributes, name) ?? {});
    return ignored === undefined ? [] : [`spec.resourceAttributes.${name} ${ignored} due to parse error`];
  });
  return texts.length === 0 ? undefined : texts.join("; ");
}

function ignoredPart(name: string, selector: JsonObject): "ignored" | "partially ignored" | undefined {
  const raw = stringAt(selector, "rawSelector") ?? "";
  if (raw !== "") return isReadable(name, raw) ? undefined : "ignored";
  const requirements = (arrayAt(selector, "requirements") ?? []).filter(isObject);
  const isUnderstood = name === "labelSelector" ? isLabelRequirement : isFieldRequirement;
  const understood = requirements.filter(isUnderstood).length;
  if (understood === requirements.length) return undefined;
  return understood === 0 ? "ignored" : "partially ignored";
}

function isReadable(name: string, selector: string): boolean {
  try {
    checkSelectorSyntax({ labelSelector: "", fieldSelector: "", [name]: selector });
    return true;
  } catch {
    return false;
  }
}

function isLabelRequirement({ operator = "" }: JsonObject): boolean {
  return isSelectorOperator(operator);
}

// A field requirement supports a single value.
function isFieldRequirement(requirement: JsonObject): boolean {
  const isOfValues = ["In", "NotIn"].includes(String(requirement["operator"]));
  return isOfValues && arrayAt(requirement, "values")?.length === 1;
}
