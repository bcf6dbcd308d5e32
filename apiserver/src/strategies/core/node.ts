import { at, objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  internalError,
  invalidError,
} from "../../errors/field-error.js";
import { quote } from "../../errors/go-format.js";
import {
  type JsonObject,
  arrayAt,
  clone,
  compareText,
  deepEqual,
  isObject,
  memberOf,
  objectAt,
  stringAt,
} from "../../json.js";
import { cidrWarnings, isCidr } from "../../validation/addresses.js";
import { checkCidr, checkQualifiedName, checkRequiredOneOf } from "../../validation/fields.js";
import { goForm } from "../../validation/immutable-fields.js";
import { labelValueProblems } from "../../validation/names.js";
import type { DefaultingContext, Strategy } from "../strategy.js";
import { checkAmount } from "./resource-quota.js";

export const nodeStrategy: Strategy = {
  checksMetadata: ["object", "change"],
  createsWithStatus: true,
  defaults: defaultNode,
  dropFields(node, old) {
    delete objectAt(node, "spec")?.["configSource"];
    // A stored status.config is kept.
    if (objectAt(objectAt(old, "status"), "config") === undefined) delete objectAt(node, "status")?.["config"];
  },
  validate: checkNode,
  validateStatus: checkNodeUpdate,
  warnings: nodeWarnings,
};

const NOT_READY = "node.kubernetes.io/not-ready";

function defaultNode(node: JsonObject, { uid }: DefaultingContext): void {
  const status = objectAt(node, "status");
  if (status?.["capacity"] !== undefined) status["allocatable"] ??= clone(status["capacity"]);
  const spec = objectAt(node, "spec") ?? {};
  agreeOnRanges(spec);
  if (uid === undefined) return;
  const taints = arrayAt(spec, "taints") ?? [];
  const isTainted = taints.some((taint) => isObject(taint) && taint["key"] === NOT_READY);
  const added = isTainted ? [] : [{ key: NOT_READY, effect: "NoSchedule" }];
  node["spec"] = { ...spec, taints: [...taints, ...added] };
}

function nodeWarnings(node: JsonObject): string[] {
  const spec = objectAt(node, "spec");
  return [
    ...(objectAt(spec, "configSource") === undefined ? [] : ["spec.configSource: the feature is removed"]),
    ...(textAt(node, "spec.externalID") === ""
      ? []
      : ["spec.externalID: this field is deprecated, and is unused by Kubernetes"]),
    ...(arrayAt(spec, "podCIDRs") ?? []).flatMap((range, index) =>
      cidrWarnings(`spec.podCIDRs[${index}]`, String(range)),
    ),
  ];
}

const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

function checkNode(node: JsonObject, old: JsonObject | undefined): FieldError[] {
  return [...checkNewNode(node), ...(old === undefined ? [] : checkNodeUpdate(node, old))];
}

const KEPT_RANGES = 'node updates may not change podCIDR except from "" to valid';
const KEPT_PROVIDER = 'node updates may not change providerID except from "" to valid';

/** Validates an update of a Node or of its status. As in kube-apiserver, taints and capacity are validated again, so their errors appear twice. */
function checkNodeUpdate(node: JsonObject, old: JsonObject): FieldError[] {
  const [ranges, before] = [node, old].map(rangesOf) as [string[], string[]];
  const changed = ranges.length === before.length ? before.filter((one, index) => one !== ranges[index]) : [""];
  const [provider, externalId] = ["spec.providerID", "spec.externalID"] as const;
  const oldProvider = textAt(old, provider);
  return [
    ...checkOffer(node),
    ...checkAddressesOnce(objectsAt(node, "status.addresses")),
    ...(before.length === 0 ? [] : changed.map(() => forbiddenError("spec.podCIDRs", KEPT_RANGES))),
    ...(oldProvider === "" || textAt(node, provider) === oldProvider ? [] : [forbiddenError(provider, KEPT_PROVIDER)]),
    ...checkTaints(node),
    ...(textAt(node, externalId) === textAt(old, externalId) ? [] : [forbiddenError(externalId, "may not be updated")]),
  ];
}

function checkAddressesOnce(addresses: JsonObject[]): FieldError[] {
  const shown = addresses.map((address) => goForm({ Type: "", Address: "" }, address));
  return shown.flatMap((one, index) =>
    shown.slice(0, index).some((other) => deepEqual(one, other))
      ? [duplicateError(`status.addresses[${index}]`, one)]
      : [],
  );
}

function rangesOf(node: JsonObject): string[] {
  return (arrayAt(objectAt(node, "spec"), "podCIDRs") ?? []).map(String);
}

function checkOffer(node: JsonObject): FieldError[] {
  const features = (arrayAt(objectAt(node, "status"), "declaredFeatures") ?? []).map(String);
  return [
    ...["capacity", "allocatable"].flatMap((key) =>
      Object.entries(objectAt(objectAt(node, "status"), key) ?? {}).flatMap(([name, amount]) =>
        checkAmount(`status.${key}.${name}`, name, amount),
      ),
    ),
    ...features.flatMap((feature, index) =>
      checkFeature(`status.declaredFeatures[${index}]`, feature, features[index - 1]),
    ),
  ];
}

const FEATURE = /^[A-Z][a-zA-Z0-9]*(\/[a-zA-Z][a-zA-Z0-9]*)*$/;

const FEATURE_RULE =
  "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), " +
  "and contain only alphanumeric characters and slashes";

const MAX_FEATURE = 253;

function checkFeature(field: string, feature: string, before: string | undefined): FieldError[] {
  const tooLong =
    Buffer.byteLength(feature) > MAX_FEATURE ? `must be no more than ${MAX_FEATURE} characters` : undefined;
  const problem = tooLong ?? (FEATURE.test(feature) ? undefined : FEATURE_RULE);
  const isUnsorted = before !== undefined && compareText(before, feature) > 0;
  return [
    ...(problem === undefined
      ? []
      : [invalidError(field, feature, `invalid feature name ${quote(feature)}: ${problem}`)]),
    ...(before === feature ? [duplicateError(field, feature)] : []),
    ...(isUnsorted ? [invalidError(field, feature, "list must be sorted alphabetically")] : []),
  ];
}

function checkTaints(node: JsonObject): FieldError[] {
  const seen = new Set<string>();
  return objectsAt(node, "spec.taints").flatMap((taint, index) => {
    const path = `metadata.taints[${index}]`;
    const [key, value, effect] = ["key", "value", "effect"].map((name) => textAt(taint, name)) as [
      string,
      string,
      string,
    ];
    const pair = `${effect}/${key}`;
    const isTaken = seen.has(pair);
    seen.add(pair);
    const problems = labelValueProblems(value);
    const shown = { Key: key, Value: value, Effect: effect, TimeAdded: memberOf(taint, "timeAdded") ?? null };
    return [
      ...checkQualifiedName(`${path}.key`, key),
      ...(problems.length === 0 ? [] : [invalidError(`${path}.value`, value, problems.join(";"))]),
      ...checkRequiredOneOf(`${path}.effect`, effect, EFFECTS),
      ...(isTaken ? [twice(path, shown)] : []),
    ];
  });
}

const SWAP = "metadata.nodeSwapStatus.capacity";

function checkNewNode(node: JsonObject): FieldError[] {
  const all = rangesOf(node);
  const swap = at(node, "status.nodeInfo.swap.capacity");
  return [
    ...checkTaints(node),
    ...checkOffer(node),
    ...(typeof swap === "number" && swap <= 0 ? [invalidError(SWAP, swap, "must be greater than zero")] : []),
    ...all.flatMap((range, index) => checkCidr(`spec.podCIDRs[${index}]`, range)),
    ...checkFamilies("spec.podCIDRs", all),
  ];
}

// Two CIDRs must be of different IP families.
function checkFamilies(field: string, ranges: string[]): FieldError[] {
  if (ranges.length < 2) return [];
  const broken = ranges.findIndex((range) => !isCidr(range));
  const families = new Set(ranges.map((range) => range.includes(":")));
  const cause = `invalid CIDR[${broken}]: <nil> (invalid CIDR address: ${ranges[broken]})`;
  const detail = "may specify no more than one CIDR for each IP family";
  return [
    ...(broken < 0
      ? []
      : [internalError(field, `invalid PodCIDRs. failed to check with dual stack with error:${cause}`)]),
    ...(broken >= 0 || families.size < 2 || ranges.length > 2 ? [invalidError(field, ranges, detail)] : []),
  ];
}

function twice(path: string, taint: JsonObject): FieldError {
  const error = duplicateError(path, taint);
  return { ...error, message: `${error.message}: taints must be unique by key and effect pair` };
}

/** Synchronizes podCIDR and podCIDRs; podCIDR takes precedence. */
function agreeOnRanges(spec: JsonObject): void {
  const range = stringAt(spec, "podCIDR") ?? "";
  const [first] = arrayAt(spec, "podCIDRs") ?? [];
  if (range !== "" && range !== first) spec["podCIDRs"] = [range];
  else if (typeof first === "string" && first !== "") spec["podCIDR"] = first;
}
