// How Kubernetes shows a claim of devices.
import type { JsonObject } from "../../../json.js";
import { goForm, type GoPart, type GoStruct } from "../kept-rules.js";

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
      Constraints: list({ Requests: null, MatchAttribute: null, DistinctAttribute: null }),
      Config: list({ Requests: null, Opaque: pointer({ Driver: "", Parameters: null }) }),
    },
  },
};

const ALLOCATION: GoStruct = {
  Devices: {
    kind: "always",
    struct: {
      Results: list({
        ...{ Request: "", Driver: "", Pool: "", Device: "", AdminAccess: null, Tolerations: TOLERATIONS },
        ...{ BindingConditions: null, BindingFailureConditions: null, ShareID: null, ConsumedCapacity: null },
      }),
      Config: list({ Source: "", Requests: null, Opaque: pointer({ Driver: "", Parameters: null }) }),
    },
  },
  NodeSelector: null,
  AllocationTimestamp: null,
};

/** Shows what a claim was given. */
export function goAllocation(allocation: JsonObject): JsonObject {
  return goForm(ALLOCATION, allocation);
}

/** Shows the spec of what holds it. */
export function goClaim({ spec }: JsonObject): JsonObject {
  return goForm(CLAIM, spec as JsonObject | undefined);
}
