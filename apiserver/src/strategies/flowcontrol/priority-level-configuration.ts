// Validation with the order and messages of kube-apiserver (pkg/apis/flowcontrol/validation).
import { textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import type { Strategy } from "../strategy.js";
import { checkFlowStatus } from "./flow-schema.js";

export const priorityLevelConfigurationStrategy: Strategy = {
  resetOnStatus: [".metadata", ".spec"],
  generation: "spec",
  checksMetadata: ["object"],
  validate: checkPriorityLevel,
  validateStatus: checkFlowStatus,
};

const MAX_QUEUES = 10_000_000;
const MAX_HASH_BITS = 60;

function checkPriorityLevel(level: JsonObject): FieldError[] {
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

// Shuffle sharding deals queues from a 60-bit hash, which must have enough entropy for the hand size.
function problemsOfHand(hand: number, queues: number): string[] {
  if (hand <= 0) return ["must be positive"];
  if (hand > queues) return [`should not be greater than queues (${queues})`];
  const bits = Math.ceil(Math.log2(queues) * hand);
  if (bits <= MAX_HASH_BITS) return [];
  return [
    `required entropy bits of deckSize ${queues} and handSize ${hand} should not be greater than ${MAX_HASH_BITS}`,
  ];
}
