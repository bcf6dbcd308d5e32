import {
  type JsonObject,
  type JsonValue,
  arrayAt,
  clone,
  isObject,
  memberOf,
  objectAt,
  setMember,
  stringAt,
} from "../../json.js";

/** Moves the plain texts of a Secret into its data, encoded. */
export function encodeStringData(secret: JsonObject): void {
  const plain = objectAt(secret, "stringData");
  delete secret["stringData"];
  if (plain === undefined || Object.keys(plain).length === 0) return;
  const data = objectAt(secret, "data") ?? {};
  for (const [key, text] of Object.entries(plain)) {
    setMember(data, key, Buffer.from(String(text), "utf8").toString("base64"));
  }
  secret["data"] = data;
}

/** Gives a Namespace the label of its name and, when it is created, its finalizer. */
export function defaultNamespace(namespace: JsonObject, isCreate: boolean): void {
  const metadata = objectAt(namespace, "metadata") ?? {};
  const name = stringAt(metadata, "name");
  if (name !== undefined) {
    metadata["labels"] = { ...objectAt(metadata, "labels"), "kubernetes.io/metadata.name": name };
  }
  if (!isCreate) return;
  const spec = objectAt(namespace, "spec") ?? {};
  const finalizers = arrayAt(spec, "finalizers") ?? [];
  if (!finalizers.includes("kubernetes")) spec["finalizers"] = [...finalizers, "kubernetes"];
  namespace["spec"] = spec;
}

/** Adds a finalizer that holds an object while it is in use. */
export function protectByFinalizer(object: JsonObject, finalizer: string): void {
  const metadata = objectAt(object, "metadata") ?? {};
  const finalizers = arrayAt(metadata, "finalizers") ?? [];
  if (!finalizers.includes(finalizer)) metadata["finalizers"] = [...finalizers, finalizer];
}

/** Sets the group of a User or Group that a role is bound to. */
export function defaultSubject(subject: JsonObject): void {
  if (memberOf(subject, "apiGroup") !== undefined) return;
  if (subject["kind"] === "User" || subject["kind"] === "Group") subject["apiGroup"] = "rbac.authorization.k8s.io";
}

/** Lists the directions that a NetworkPolicy rules. */
export function defaultPolicyTypes(spec: JsonObject): void {
  spec["policyTypes"] ??= arrayAt(spec, "egress") === undefined ? ["Ingress"] : ["Ingress", "Egress"];
}

/** Derives the default limits and requests of a LimitRange for containers from its bounds. */
export function defaultLimitRangeItem(item: JsonObject): void {
  if (item["type"] !== "Container") return;
  const limits = { ...objectAt(item, "max"), ...objectAt(item, "default") };
  const requests = { ...objectAt(item, "min"), ...limits, ...objectAt(item, "defaultRequest") };
  if (Object.keys(limits).length > 0) item["default"] = limits;
  if (Object.keys(requests).length > 0) item["defaultRequest"] = requests;
}

/** Sets what a webhook leaves open. */
export function defaultWebhook(webhook: JsonObject, isMutating: boolean): void {
  webhook["failurePolicy"] ??= "Fail";
  webhook["matchPolicy"] ??= "Equivalent";
  webhook["namespaceSelector"] ??= {};
  webhook["objectSelector"] ??= {};
  webhook["timeoutSeconds"] ??= 10;
  if (isMutating) webhook["reinvocationPolicy"] ??= "Never";
  defaultRuleScopes(webhook, "rules");
  const service = objectAt(objectAt(webhook, "clientConfig"), "service");
  if (service !== undefined) service["port"] ??= 443;
}

/** Sets what an admission policy leaves open. */
export function defaultAdmissionPolicy(spec: JsonObject): void {
  spec["failurePolicy"] ??= "Fail";
}

/** Lets the resources that an admission policy matches be all that its rules name. */
export function defaultMatchResources(resources: JsonObject): void {
  resources["matchPolicy"] ??= "Equivalent";
  resources["namespaceSelector"] ??= {};
  resources["objectSelector"] ??= {};
  defaultRuleScopes(resources, "resourceRules");
  defaultRuleScopes(resources, "excludeResourceRules");
}

function defaultRuleScopes(holder: JsonObject, list: string): void {
  for (const rule of (arrayAt(holder, list) ?? []).filter(isObject)) rule["scope"] ??= "*";
}

/** Puts the verdicts on a CertificateSigningRequest back that /status does not write, unless their number shows that somebody tried. */
export function keepVerdicts(request: JsonObject, old: JsonObject): void {
  const conditions = arrayAt(objectAt(request, "status"), "conditions");
  const isOf = (verdict: string) => (condition: JsonValue) => isObject(condition) && condition["type"] === verdict;
  for (const verdict of ["Approved", "Denied"]) {
    const before = (arrayAt(objectAt(old, "status"), "conditions") ?? []).filter(isOf(verdict));
    if (conditions === undefined || conditions.filter(isOf(verdict)).length !== before.length) continue;
    for (const [index, condition] of conditions.entries())
      if (isOf(verdict)(condition)) conditions[index] = clone(before.shift() as JsonValue);
  }
}

/** Gives the conditions of a CertificateSigningRequest their times: those of before, or now. */
export function stampConditions(request: JsonObject, old: JsonObject | undefined, now: string): void {
  const conditionsOf = (object: JsonObject | undefined) =>
    (arrayAt(objectAt(object, "status"), "conditions") ?? []).filter(isObject);
  for (const condition of conditionsOf(request)) {
    const same = conditionsOf(old).find(
      ({ type, status }) => type === condition["type"] && status === condition["status"],
    );
    condition["lastTransitionTime"] ??= same?.["lastTransitionTime"] ?? now;
    condition["lastUpdateTime"] ??= now;
  }
}

/** Asks for one device where that is counted and nothing is said. */
export function defaultDeviceCount(request: JsonObject): void {
  if ((request["allocationMode"] ?? "ExactCount") === "ExactCount") request["count"] ??= 1;
}

/** Keeps both fields for the addresses of the Pods of a Node equal: the one of old counts before the first of several. */
export function agreeOnRanges(spec: JsonObject): void {
  const range = stringAt(spec, "podCIDR") ?? "";
  const [first] = arrayAt(spec, "podCIDRs") ?? [];
  if (range !== "" && range !== first) spec["podCIDRs"] = [range];
  else if (typeof first === "string" && first !== "") spec["podCIDR"] = first;
}
