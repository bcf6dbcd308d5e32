// Formats resource claims as Go does in error messages.
import { type JsonObject, type JsonValue, isObject } from "../../json.js";
import { goMap } from "../../validation/fields.js";
import { type GoPart, type GoStruct, goForm } from "../../validation/immutable-fields.js";

const list = (struct: GoStruct): GoPart => ({ kind: "list", struct });
const pointer = (struct: GoStruct): GoPart => ({ kind: "pointer", struct });

const SELECTORS = list({ CEL: pointer({ Expression: "" }) });
const TOLERATIONS = list({ Key: "", Operator: "", Value: "", Effect: "", TolerationSeconds: null });
const CAPACITY = pointer({ Requests: null });
const WANTED: GoStruct = { DeviceClassName: "", Selectors: SELECTORS, AllocationMode: "", Count: 0 };
const REQUEST: GoStruct = {
  Name: "",
  Exactly: pointer({ ...WANTED, AdminAccess: null, Tolerations: TOLERATIONS, Capacity: CAPACITY }),
  FirstAvailable: list({ Name: "", ...WANTED, Tolerations: TOLERATIONS, Capacity: CAPACITY }),
};
const CLAIM: GoStruct = {
  Devices: {
    kind: "always",
    struct: {
      Requests: list(REQUEST),
      Constraints: list({ Requests: [], MatchAttribute: null, DistinctAttribute: null }),
      Config: list({ Requests: [], Opaque: pointer({ Driver: "", Parameters: null }) }),
    },
  },
};

const ALLOCATION: GoStruct = {
  Devices: {
    kind: "always",
    struct: {
      Results: list({
        ...{ Request: "", Driver: "", Pool: "", Device: "", AdminAccess: null, Tolerations: TOLERATIONS },
        ...{ BindingConditions: [], BindingFailureConditions: [], ShareID: null, ConsumedCapacity: null },
      }),
      Config: list({ Source: "", Requests: [], Opaque: pointer({ Driver: "", Parameters: null }) }),
    },
  },
  NodeSelector: null,
  AllocationTimestamp: null,
};

/** Formats the allocation of a claim. */
export function goAllocation(allocation: JsonObject): JsonObject {
  return goForm(ALLOCATION, allocation);
}

/** Formats the spec of a claim. */
export function goClaim({ spec }: JsonObject): JsonObject {
  return goForm(CLAIM, spec as JsonObject | undefined);
}

const METADATA = [
  ...["name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp"],
  ...["deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"],
  "managedFields",
];
const OWNER = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
const MANAGER = ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];

/** Formats metadata: fields in the order of the Go struct, maps sorted by key. */
export function goMetadata(metadata: JsonObject): JsonObject {
  const shown = inOrder(metadata, METADATA);
  for (const key of ["labels", "annotations"]) if (isObject(shown[key])) shown[key] = goMap(shown[key]);
  for (const [key, order] of [
    ["ownerReferences", OWNER],
    ["managedFields", MANAGER],
  ] as const)
    if (Array.isArray(shown[key])) shown[key] = shown[key].filter(isObject).map((item) => inOrder(item, order));
  return shown;
}

function inOrder(object: JsonObject, order: readonly string[]): JsonObject {
  return Object.fromEntries(
    order.filter((key) => object[key] !== undefined).map((key) => [key, object[key] as JsonValue]),
  );
}
