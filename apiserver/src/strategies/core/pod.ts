import { compareQuantities } from "@gen-operator/schema";
import { type JsonObject, type JsonValue, arrayAt, isObject, memberOf, objectAt, stringAt } from "../../json.js";
import { askedByContainers } from "../shared/resource-requests.js";

const EVICTION_TAINTS = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const COMPUTE_RESOURCES = ["cpu", "memory"];

const MAX_IMAGE = 255;
const PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
/** The name of an image, with its tag and its digest; what is no such name has no tag that could be the latest. */
const IMAGE = new RegExp(
  `^(?:(?:[a-zA-Z0-9](?:[-.a-zA-Z0-9]*[a-zA-Z0-9])?|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?/)?(${PART}(?:/${PART})*)(?::([A-Za-z0-9_][-A-Za-z0-9_.]{0,127}))?(?:@([A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,}))?$`,
);

/** Sets the pull policy of a container: Always for the tag latest, which no tag means, else IfNotPresent. */
export function defaultPullPolicy(holder: JsonObject, keys: { image: string; policy: string }): void {
  if (memberOf(holder, keys.policy) !== undefined) return;
  const image = stringAt(holder, keys.image) ?? "";
  const [name = "", tag, digest] = IMAGE.exec(image)?.slice(1) ?? [];
  const isName = name !== "" && name.length <= MAX_IMAGE;
  const isLatest = isName && (tag === "latest" || (tag === undefined && digest === undefined));
  holder[keys.policy] = isLatest ? "Always" : "IfNotPresent";
}

/** Gives a volume without source an emptyDir. */
export function defaultVolumeSource(volume: JsonObject): void {
  if (Object.keys(volume).every((key) => key === "name")) volume["emptyDir"] = {};
}

const OLD_ANNOTATIONS = ["alpha", "beta"].flatMap((stage) =>
  ["init-containers", "init-container-statuses"].map((name) => `pod.${stage}.kubernetes.io/${name}`),
);

/** Takes annotations off a Pod or a template, in place, that told of containers before there were members for them. */
export function dropOldAnnotations(pod: JsonObject): void {
  const metadata = objectAt(pod, "metadata");
  const annotations = objectAt(metadata, "annotations");
  if (metadata === undefined || annotations === undefined) return;
  for (const key of OLD_ANNOTATIONS) delete annotations[key];
  if (Object.keys(annotations).length === 0) delete metadata["annotations"];
}

// One address stands for all that do not begin with it, as nodes of old told one alone; all of them stand for a missing one.
function agreeOnAddresses(status: JsonObject): void {
  const ip = stringAt(status, "podIP") ?? "";
  const [first] = (arrayAt(status, "podIPs") ?? []).filter(isObject);
  const firstIp = first === undefined ? undefined : (stringAt(first, "ip") ?? "");
  if (ip !== "" && ip !== firstIp) status["podIPs"] = [{ ip }];
  else if (ip === "" && firstIp !== undefined && firstIp !== "") status["podIP"] = firstIp;
}

/** Sets what Kubernetes sets in Pods, but not in pod templates. */
export function defaultPod(pod: JsonObject, { isAdmitted, isNew }: { isAdmitted: boolean; isNew: boolean }): void {
  const spec = objectAt(pod, "spec");
  if (spec === undefined) return;
  spec["enableServiceLinks"] ??= true;
  // No container is given less time than a second.
  if (isAdmitted && Number(spec["terminationGracePeriodSeconds"]) < 0) spec["terminationGracePeriodSeconds"] = 1;
  for (const container of containersOf(spec)) {
    requestLimits(container);
    if (spec["hostNetwork"] === true) defaultHostPorts(container);
  }
  defaultPodResources(spec);
  const status = objectAt(pod, "status") ?? {};
  agreeOnAddresses(status);
  if (isNew) status["phase"] ??= "Pending";
  status["qosClass"] ??= qosClassOf(spec);
  pod["status"] = status;
}

function containersOf(spec: JsonObject): JsonObject[] {
  return ["initContainers", "containers"].flatMap((list) => (arrayAt(spec, list) ?? []).filter(isObject));
}

function requestLimits(container: JsonObject): void {
  const resources = objectAt(container, "resources");
  const limits = objectAt(resources, "limits");
  if (resources === undefined || limits === undefined) return;
  resources["requests"] = { ...limits, ...objectAt(resources, "requests") };
}

const SHARED = /^(cpu|memory|hugepages-.+)$/;

/** A Pod with limits of its own asks for what its containers ask for, and for what it may use. */
function defaultPodResources(spec: JsonObject): void {
  const resources = objectAt(spec, "resources");
  if (resources === undefined) return;
  const [limits, requests] = [objectAt(resources, "limits") ?? {}, objectAt(resources, "requests") ?? {}];
  if (Object.keys(limits).length + Object.keys(requests).length === 0) return;
  for (const [name, quantity] of Object.entries(askedByContainers(spec, "limits"))) {
    if (name.startsWith("hugepages-") && memberOf(requests, name) === undefined) limits[name] ??= quantity;
  }
  if (Object.keys(limits).length === 0) return;
  const asked = Object.entries(askedByContainers(spec, "requests"));
  const shared = asked.filter(([name]) => SHARED.test(name) && !name.startsWith("hugepages-"));
  const ofLimits = Object.entries(limits).filter(([name]) => SHARED.test(name));
  resources["limits"] = limits;
  resources["requests"] = { ...Object.fromEntries([...ofLimits, ...shared]), ...requests };
}

function defaultHostPorts(container: JsonObject): void {
  for (const port of (arrayAt(container, "ports") ?? []).filter(isObject)) {
    const containerPort = memberOf(port, "containerPort");
    if (containerPort !== undefined) port["hostPort"] ??= containerPort;
  }
}

/** Lets a Pod stay for a while on a node that is not ready or out of reach. */
export function defaultTolerations(spec: JsonObject): void {
  const tolerations = arrayAt(spec, "tolerations") ?? [];
  for (const key of EVICTION_TAINTS) {
    if (tolerations.some((toleration) => toleratesEviction(toleration, key))) continue;
    tolerations.push({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 });
  }
  spec["tolerations"] = tolerations;
}

function toleratesEviction(toleration: JsonValue, taint: string): boolean {
  if (!isObject(toleration)) return false;
  const effect = stringAt(toleration, "effect") ?? "";
  const key = stringAt(toleration, "key") ?? "";
  return (effect === "NoExecute" || effect === "") && (key === taint || key === "");
}

/** Computes the quality-of-service class of a pod from the requests and limits of its containers. */
export function qosClassOf(spec: JsonObject): string {
  const own = objectAt(spec, "resources");
  const resources = own === undefined ? containersOf(spec).map((container) => objectAt(container, "resources")) : [own];
  const amount = (of: JsonObject | undefined, list: string, name: string) => {
    const value = memberOf(objectAt(of, list), name);
    // What is negative is refused later.
    return value === undefined || value === "0" || String(value).startsWith("-") ? undefined : String(value);
  };
  const hasAny = resources.some((one) =>
    COMPUTE_RESOURCES.some((name) => amount(one, "limits", name) ?? amount(one, "requests", name)),
  );
  if (!hasAny) return "BestEffort";
  const isGuaranteed = resources.every((one) =>
    COMPUTE_RESOURCES.every((name) => {
      const limit = amount(one, "limits", name);
      const request = amount(one, "requests", name);
      return limit !== undefined && request !== undefined && compareQuantities(limit, request) === 0;
    }),
  );
  return isGuaranteed ? "Guaranteed" : "Burstable";
}
