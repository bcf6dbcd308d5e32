// The validation of built-in kinds that users meet: what is required, what cannot be changed, what contradicts itself. Not all
// that Kubernetes checks.
import type { FieldError } from "../errors/field-error.js";
import type { JsonObject } from "../json.js";
import type { ServedType } from "../builtin/served-type.js";
import { checkMutatingBinding, checkValidatingBinding } from "./admissionregistration/admission-policy-binding.js";
import { checkMutatingPolicy, checkValidatingPolicy } from "./admissionregistration/admission-policy.js";
import { checkWebhooks } from "./admissionregistration/webhook-configuration.js";
import { checkSigningRequest } from "./certificates/certificate-signing-request.js";
import { checkAddress, checkRuntimeClass, checkServiceRange } from "./networking/service-cidr.js";
import { checkApiService } from "./apiregistration/api-service.js";
import { checkEndpointSlice, checkEndpoints } from "./core/endpoints.js";
import { checkFlowSchema, checkPriorityLevel } from "./flowcontrol/flow-schema.js";
import { checkNode } from "./core/node.js";
import * as rare from "./core/replication-controller.js";
import * as configuration from "./core/config-map.js";
import { checkEvent, checkNewEvent } from "./core/event.js";
import { checkSecret } from "./core/secret.js";
import * as devices from "./resource/resource-claim.js";
import { checkResourceSlice } from "./resource/resource-slice.js";
import { checkIngress, checkIngressClass, checkNetworkPolicy } from "./networking/ingress.js";
import { checkNewPod } from "./pod-template/pod-spec.js";
import { checkQuota } from "./core/resource-quota.js";
import * as scheduling from "./autoscaling/horizontal-pod-autoscaler.js";
import { checkService } from "./core/service.js";
import * as storage from "./core/persistent-volume-claim.js";
import { checkAttributesClass, checkDriver, checkDriversOfNode } from "./storage/csi-driver.js";
import { checkVolume, checkVolumeAttachment } from "./core/persistent-volume.js";
import { checkCronJob, checkJob } from "./batch/job.js";
import { checkLimitRange } from "./core/limit-range.js";
import * as workload from "./apps/workload.js";

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
