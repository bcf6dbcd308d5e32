// The numbers in the status of workloads.
import { type FieldError, invalidError } from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { checkNotNegative } from "../../validation/fields.js";

interface StatusRule {
  /** Numbers that may not be negative. */
  counts: string[];
  /** Of these, the ones that `replicas` limits. */
  ofReplicas?: string[];
  /** What the number of available replicas is compared with, as its message names it. */
  ready?: string;
}

// validation.ValidateDeploymentStatus and its like, Kubernetes 1.36.
const STATUS_RULES: Record<string, StatusRule> = {
  Deployment: {
    counts: [
      ...["observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas"],
      ...["unavailableReplicas", "terminatingReplicas", "collisionCount"],
    ],
    ofReplicas: ["updatedReplicas", "readyReplicas", "availableReplicas"],
    ready: "readyReplicas",
  },
  ReplicaSet: {
    counts: [
      ...["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "terminatingReplicas"],
      "observedGeneration",
    ],
    ofReplicas: ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
    ready: "readyReplicas",
  },
  ReplicationController: {
    counts: ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"],
    ofReplicas: ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
    ready: "readyReplicas",
  },
  StatefulSet: {
    counts: [
      ...["replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
      ...["observedGeneration", "collisionCount"],
    ],
    ofReplicas: ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
    ready: "status.readyReplicas",
  },
  DaemonSet: {
    counts: [
      ...["currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"],
      ...["observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"],
    ],
  },
};

/** Checks the numbers in the status of a Deployment, ReplicaSet, ReplicationController, StatefulSet or DaemonSet; other kinds have no such rules. */
export function checkWorkloadStatus(kind: string, object: JsonObject, live: JsonObject): FieldError[] {
  const rule = STATUS_RULES[kind];
  if (rule === undefined) return [];
  const status = objectAt(object, "status") ?? {};
  const { counts, ofReplicas = [], ready } = rule;
  const exceeds = (name: string, limit: string, shown: string): FieldError[] => {
    const count = numberOf(status, name);
    return count > numberOf(status, limit)
      ? [invalidError(`status.${name}`, count, `cannot be greater than ${shown}`)]
      : [];
  };
  return [
    ...counts.flatMap((name) => checkNotNegative(`status.${name}`, memberOf(status, name))),
    ...ofReplicas.flatMap((name) => exceeds(name, "replicas", "status.replicas")),
    ...(ready === undefined ? [] : exceeds("availableReplicas", "readyReplicas", ready)),
    ...(counts.includes(COLLISIONS) ? checkCollisions(status, objectAt(live, "status")) : []),
  ];
}

const COLLISIONS = "collisionCount";

// Names that were taken are counted up.
function checkCollisions(status: JsonObject, before: JsonObject | undefined): FieldError[] {
  const [count, old] = [memberOf(status, COLLISIONS), memberOf(before, COLLISIONS)];
  const isLess = typeof old === "number" && (typeof count !== "number" || count < old);
  return isLess ? [invalidError(`status.${COLLISIONS}`, count ?? 0, "cannot be decremented")] : [];
}

function numberOf(status: JsonObject, name: string): number {
  const value = memberOf(status, name);
  return typeof value === "number" ? value : 0;
}
