// What may be written to the status of a built-in kind.
import { type FieldError, forbiddenError, invalidError, requiredError } from "../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../json.js";
import { objectsAt, textAt } from "../builtin/read-path.js";
import type { ServedType } from "../builtin/served-type.js";
import { addressProblems } from "../validation/addresses.js";
import { checkApiServiceStatus } from "./apiregistration/api-service.js";
import { checkFlowStatus } from "./flowcontrol/flow-schema.js";
import { checkNodeUpdate } from "./core/node.js";
import { checkIp, checkNotNegative, checkOneOf } from "../validation/fields.js";
import { subdomainProblems } from "../validation/names.js";
import { checkDisruptionBudgetStatus } from "./autoscaling/horizontal-pod-autoscaler.js";
import { checkServiceStatus } from "./core/service.js";
import { checkJobStatus } from "./batch/job-status.js";
import { checkPart } from "./subresources.js";
import { checkWorkloadStatus } from "./apps/workload-status.js";
import { checkDeviceClaimStatus } from "./resource/resource-claim-status.js";
import { checkConditions } from "../validation/conditions.js";
import { checkPodStatus } from "./core/pod-status.js";
import { checkAttachmentStatus, checkClaimStatus } from "./core/storage-status.js";

type StatusRule = (object: JsonObject, live: JsonObject) => FieldError[];

const RULES: Record<string, StatusRule> = {
  APIService: checkApiServiceStatus,
  Service: checkServiceAddresses,
  Ingress: checkAddresses,
  Job: checkJobStatus,
  Pod: checkPodStatus,
  HorizontalPodAutoscaler: checkAutoscalerStatus,
  PodDisruptionBudget: checkDisruptionBudgetStatus,
  FlowSchema: checkFlowStatus,
  Node: checkNodeUpdate,
  PersistentVolumeClaim: checkClaimStatus,
  ReplicationController: (object, live) => checkWorkloadStatus("ReplicationController", object, live),
  ResourceClaim: checkDeviceClaimStatus,
  ValidatingAdmissionPolicy: checkPolicyStatus,
  VolumeAttachment: checkAttachmentStatus,
  PriorityLevelConfiguration: checkFlowStatus,
};

/** Lists what is wrong with a status of a built-in type, and with what it changes. */
export function validateBuiltinStatus(type: ServedType, object: JsonObject, live: JsonObject): FieldError[] {
  if (type.group === "apps") return checkWorkloadStatus(type.kind, object, live);
  const rule = RULES[type.kind];
  return rule === undefined ? (checkPart(type, { object, live, subresource: "status" }) ?? []) : rule(object, live);
}

function checkAddresses(object: JsonObject): FieldError[] {
  return objectsAt(object, "status.loadBalancer.ingress").flatMap((ingress, index) => {
    const path = `status.loadBalancer.ingress[${index}]`;
    const [ip, hostname] = [textAt(ingress, "ip"), textAt(ingress, "hostname")];
    const isAddress = addressProblems(hostname).length === 0 ? ["must be a DNS name, not an IP address"] : [];
    const problems = hostname === "" ? [] : [...subdomainProblems(hostname), ...isAddress];
    return [
      ...(ip === "" ? [] : checkIp(`${path}.ip`, ip)),
      ...problems.map((detail) => invalidError(`${path}.hostname`, hostname, detail)),
    ];
  });
}

function checkServiceAddresses(service: JsonObject): FieldError[] {
  const forbidden = checkServiceStatus(service);
  return forbidden.length > 0 ? forbidden : [...checkAddresses(service), ...checkModes(service)];
}

function checkModes(service: JsonObject): FieldError[] {
  return objectsAt(service, "status.loadBalancer.ingress").flatMap((ingress, index) => {
    const path = `status.loadBalancer.ingress[${index}].ipMode`;
    const mode = memberOf(ingress, "ipMode");
    const hasAddress = textAt(ingress, "ip") !== "";
    if (hasAddress && mode === undefined) return [requiredError(path, "must be specified when `ip` is set")];
    if (hasAddress) return checkOneOf(path, mode, ["Proxy", "VIP"]);
    return mode === undefined ? [] : [forbiddenError(path, "may not be specified when `ip` is not set")];
  });
}

function checkAutoscalerStatus(autoscaler: JsonObject): FieldError[] {
  const status = objectAt(autoscaler, "status");
  return ["currentReplicas", "desiredReplicas"].flatMap((name) =>
    checkNotNegative(`status.${name}`, memberOf(status, name)),
  );
}

// What may be written to the status of a ValidatingAdmissionPolicy.

/** Checks the status of a ValidatingAdmissionPolicy. */
function checkPolicyStatus(policy: JsonObject): FieldError[] {
  return [
    ...objectsAt(policy, "status.typeChecking.expressionWarnings").flatMap((warning, index) =>
      ["warning", "fieldRef"]
        .filter((key) => (key === "fieldRef" ? textAt(warning, key).trim() : textAt(warning, key)) === "")
        .map((key) => requiredError(`status.typeChecking.expressionWarnings[${index}].${key}`)),
    ),
    ...checkConditions("status.conditions", objectsAt(policy, "status.conditions")),
  ];
}
