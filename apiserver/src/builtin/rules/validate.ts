// The validation of built-in kinds that users meet: what is required, what cannot be changed, what contradicts itself. Not all
// that Kubernetes checks.
import type { FieldError } from "../../errors/field-error.js";
import type { JsonObject } from "../../json.js";
import type { ServedType } from "../served-type.js";
import { checkMutatingBinding, checkValidatingBinding } from "./admission/binding-rules.js";
import { checkMutatingPolicy, checkValidatingPolicy } from "./admission/policy-rules.js";
import { checkWebhooks } from "./admission/webhook-rules.js";
import { checkSigningRequest } from "./certificates/certificate-rules.js";
import { checkAddress, checkRuntimeClass, checkServiceRange } from "./cluster/address-rules.js";
import { checkApiService } from "./cluster/api-service-rules.js";
import { checkEndpointSlice, checkEndpoints } from "./cluster/endpoint-rules.js";
import { checkFlowSchema, checkPriorityLevel } from "./cluster/flow-rules.js";
import { checkNode } from "./cluster/node-rules.js";
import * as rare from "./cluster/rare-rules.js";
import * as configuration from "./configuration-rules.js";
import { checkEvent, checkNewEvent } from "./configuration/event-rules.js";
import { checkSecret } from "./configuration/secret-rules.js";
import * as devices from "./devices/device-rules.js";
import { checkResourceSlice } from "./devices/slice-rules.js";
import { checkIngress, checkIngressClass, checkNetworkPolicy } from "./network-rules.js";
import { checkNewPod } from "./pods/pod-rules.js";
import { checkQuota } from "./quota-rules.js";
import * as scheduling from "./scheduling-rules.js";
import { checkService } from "./services/service-rules.js";
import * as storage from "./storage-rules.js";
import { checkAttributesClass, checkDriver, checkDriversOfNode } from "./storage/driver-rules.js";
import { checkVolume, checkVolumeAttachment } from "./storage/volume-rules.js";
import { checkCronJob, checkJob } from "./workload/job-rules.js";
import { checkLimitRange } from "./workload/limit-range-rules.js";
import * as workload from "./workload/workload-rules.js";

type Rule = (object: JsonObject, old: JsonObject | undefined) => FieldError[];

// By `Kind` or `Kind.group`.
const RULES: Record<string, Rule> = {
  Pod: checkNewPod,
  Service: checkService,
  ConfigMap: configuration.checkConfigMap,
  Secret: checkSecret,
  Event: (object) => checkEvent(object),
  PersistentVolumeClaim: storage.checkClaim,
  ResourceQuota: checkQuota,
  LimitRange: (object) => checkLimitRange(object),
  "Deployment.apps": (object, old) => workload.checkWorkload("Deployment", object, old),
  "ReplicaSet.apps": (object, old) => workload.checkWorkload("ReplicaSet", object, old),
  "StatefulSet.apps": (object, old) => workload.checkWorkload("StatefulSet", object, old),
  "DaemonSet.apps": (object, old) => workload.checkWorkload("DaemonSet", object, old),
  "ControllerRevision.apps": rare.checkRevision,
  PersistentVolume: checkVolume,
  PodTemplate: (object) => rare.checkTemplate(object),
  ReplicationController: (object) => rare.checkReplicationController(object),
  "VolumeAttachment.storage.k8s.io": checkVolumeAttachment,
  "VolumeAttributesClass.storage.k8s.io": checkAttributesClass,
  "CSIDriver.storage.k8s.io": checkDriver,
  "CSINode.storage.k8s.io": checkDriversOfNode,
  "ResourceSlice.resource.k8s.io": checkResourceSlice,
  "DeviceClass.resource.k8s.io": (object) => devices.checkDeviceClass(object),
  "ResourceClaim.resource.k8s.io": devices.checkResourceClaim,
  "ResourceClaimTemplate.resource.k8s.io": devices.checkClaimTemplate,
  "IPAddress.networking.k8s.io": checkAddress,
  Node: checkNode,
  Endpoints: (object) => checkEndpoints(object),
  "EndpointSlice.discovery.k8s.io": checkEndpointSlice,
  "APIService.apiregistration.k8s.io": (object) => checkApiService(object),
  "RuntimeClass.node.k8s.io": checkRuntimeClass,
  "ServiceCIDR.networking.k8s.io": checkServiceRange,
  "FlowSchema.flowcontrol.apiserver.k8s.io": (object) => checkFlowSchema(object),
  "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io": (object) => checkPriorityLevel(object),
  "Job.batch": checkJob,
  "CronJob.batch": checkCronJob,
  "HorizontalPodAutoscaler.autoscaling": (object) => scheduling.checkAutoscaler(object),
  "Event.events.k8s.io": checkNewEvent,
  "Lease.coordination.k8s.io": (object) => configuration.checkLease(object),
  "Ingress.networking.k8s.io": checkIngress,
  "NetworkPolicy.networking.k8s.io": (object) => checkNetworkPolicy(object),
  "IngressClass.networking.k8s.io": checkIngressClass,
  "Role.rbac.authorization.k8s.io": (object) => configuration.checkRole("Role", object),
  "ClusterRole.rbac.authorization.k8s.io": (object) => configuration.checkRole("ClusterRole", object),
  "RoleBinding.rbac.authorization.k8s.io": (object, old) => configuration.checkRoleBinding("RoleBinding", object, old),
  "ClusterRoleBinding.rbac.authorization.k8s.io": (object, old) =>
    configuration.checkRoleBinding("ClusterRoleBinding", object, old),
  "PodDisruptionBudget.policy": (object) => scheduling.checkDisruptionBudget(object),
  "MutatingWebhookConfiguration.admissionregistration.k8s.io": (object) => checkWebhooks(object),
  "ValidatingWebhookConfiguration.admissionregistration.k8s.io": (object) => checkWebhooks(object),
  "ValidatingAdmissionPolicy.admissionregistration.k8s.io": (object) => checkValidatingPolicy(object),
  "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io": (object) => checkValidatingBinding(object),
  "MutatingAdmissionPolicy.admissionregistration.k8s.io": (object) => checkMutatingPolicy(object),
  "MutatingAdmissionPolicyBinding.admissionregistration.k8s.io": (object) => checkMutatingBinding(object),
  "PriorityClass.scheduling.k8s.io": scheduling.checkPriorityClass,
  "StorageClass.storage.k8s.io": storage.checkStorageClass,
  "CSIStorageCapacity.storage.k8s.io": storage.checkStorageCapacity,
  "CertificateSigningRequest.certificates.k8s.io": checkSigningRequest,
};

/** Lists what is wrong with a defaulted object of a built-in type, on update also with what it changes. */
export function validateBuiltin(type: ServedType, object: JsonObject, old?: JsonObject): FieldError[] {
  return RULES[type.group === "" ? type.kind : `${type.kind}.${type.group}`]?.(object, old) ?? [];
}
