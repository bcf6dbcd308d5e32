import { resourceNameOf } from "../builtin/resource-name.js";
import { restStrategyOf } from "../builtin/rest-strategy.js";
import { type ServedType, discoveredTypes } from "../builtin/served-type.js";
import {
  mutatingAdmissionPolicyStrategy,
  validatingAdmissionPolicyStrategy,
} from "./admissionregistration/admission-policy.js";
import {
  mutatingAdmissionPolicyBindingStrategy,
  validatingAdmissionPolicyBindingStrategy,
} from "./admissionregistration/admission-policy-binding.js";
import {
  mutatingWebhookConfigurationStrategy,
  validatingWebhookConfigurationStrategy,
} from "./admissionregistration/webhook-configuration.js";
import { customResourceDefinitionStrategy } from "./apiextensions/custom-resource-definition.js";
import { apiServiceStrategy } from "./apiregistration/api-service.js";
import { controllerRevisionStrategy } from "./apps/controller-revision.js";
import { daemonSetStrategy } from "./apps/daemon-set.js";
import { deploymentStrategy } from "./apps/deployment.js";
import { replicaSetStrategy } from "./apps/replica-set.js";
import { statefulSetStrategy } from "./apps/stateful-set.js";
import { reviewStrategy } from "./authorization/review.js";
import { horizontalPodAutoscalerStrategy } from "./autoscaling/horizontal-pod-autoscaler.js";
import { cronJobStrategy } from "./batch/cron-job.js";
import { jobStrategy } from "./batch/job.js";
import { certificateSigningRequestStrategy } from "./certificates/certificate-signing-request.js";
import { leaseStrategy } from "./coordination/lease.js";
import { bindingStrategy } from "./core/binding.js";
import { configMapStrategy } from "./core/config-map.js";
import { endpointsStrategy } from "./core/endpoints.js";
import { eventStrategy, newEventStrategy } from "./core/event.js";
import { limitRangeStrategy } from "./core/limit-range.js";
import { namespaceStrategy } from "./core/namespace.js";
import { nodeStrategy } from "./core/node.js";
import { persistentVolumeStrategy } from "./core/persistent-volume.js";
import { persistentVolumeClaimStrategy } from "./core/persistent-volume-claim.js";
import { podStrategy } from "./core/pod.js";
import { podTemplateStrategy } from "./core/pod-template.js";
import { replicationControllerStrategy } from "./core/replication-controller.js";
import { resourceQuotaStrategy } from "./core/resource-quota.js";
import { secretStrategy } from "./core/secret.js";
import { serviceStrategy } from "./core/service.js";
import { serviceAccountStrategy } from "./core/service-account.js";
import { endpointSliceStrategy } from "./discovery/endpoint-slice.js";
import { flowSchemaStrategy } from "./flowcontrol/flow-schema.js";
import { priorityLevelConfigurationStrategy } from "./flowcontrol/priority-level-configuration.js";
import { ingressStrategy } from "./networking/ingress.js";
import { ingressClassStrategy } from "./networking/ingress-class.js";
import { ipAddressStrategy } from "./networking/ip-address.js";
import { networkPolicyStrategy } from "./networking/network-policy.js";
import { serviceCidrStrategy } from "./networking/service-cidr.js";
import { runtimeClassStrategy } from "./node/runtime-class.js";
import { podDisruptionBudgetStrategy } from "./policy/pod-disruption-budget.js";
import { clusterRoleStrategy, roleStrategy } from "./rbac/role.js";
import { clusterRoleBindingStrategy, roleBindingStrategy } from "./rbac/role-binding.js";
import { deviceClassStrategy } from "./resource/device-class.js";
import { resourceClaimStrategy } from "./resource/resource-claim.js";
import { resourceClaimTemplateStrategy } from "./resource/resource-claim-template.js";
import { resourceSliceStrategy } from "./resource/resource-slice.js";
import { priorityClassStrategy } from "./scheduling/priority-class.js";
import { csiDriverStrategy } from "./storage/csi-driver.js";
import { csiNodeStrategy } from "./storage/csi-node.js";
import { csiStorageCapacityStrategy } from "./storage/csi-storage-capacity.js";
import { storageClassStrategy } from "./storage/storage-class.js";
import { volumeAttachmentStrategy } from "./storage/volume-attachment.js";
import { volumeAttributesClassStrategy } from "./storage/volume-attributes-class.js";
import type { Strategy } from "./strategy.js";

const STRATEGIES: { readonly [resource: string]: Strategy } = {
  bindings: bindingStrategy,
  configmaps: configMapStrategy,
  endpoints: endpointsStrategy,
  events: eventStrategy,
  limitranges: limitRangeStrategy,
  namespaces: namespaceStrategy,
  nodes: nodeStrategy,
  persistentvolumeclaims: persistentVolumeClaimStrategy,
  persistentvolumes: persistentVolumeStrategy,
  pods: podStrategy,
  podtemplates: podTemplateStrategy,
  replicationcontrollers: replicationControllerStrategy,
  resourcequotas: resourceQuotaStrategy,
  secrets: secretStrategy,
  serviceaccounts: serviceAccountStrategy,
  services: serviceStrategy,
  "mutatingadmissionpolicies.admissionregistration.k8s.io": mutatingAdmissionPolicyStrategy,
  "mutatingadmissionpolicybindings.admissionregistration.k8s.io": mutatingAdmissionPolicyBindingStrategy,
  "mutatingwebhookconfigurations.admissionregistration.k8s.io": mutatingWebhookConfigurationStrategy,
  "validatingadmissionpolicies.admissionregistration.k8s.io": validatingAdmissionPolicyStrategy,
  "validatingadmissionpolicybindings.admissionregistration.k8s.io": validatingAdmissionPolicyBindingStrategy,
  "validatingwebhookconfigurations.admissionregistration.k8s.io": validatingWebhookConfigurationStrategy,
  "customresourcedefinitions.apiextensions.k8s.io": customResourceDefinitionStrategy,
  "apiservices.apiregistration.k8s.io": apiServiceStrategy,
  "controllerrevisions.apps": controllerRevisionStrategy,
  "daemonsets.apps": daemonSetStrategy,
  "deployments.apps": deploymentStrategy,
  "replicasets.apps": replicaSetStrategy,
  "statefulsets.apps": statefulSetStrategy,
  "selfsubjectreviews.authentication.k8s.io": reviewStrategy,
  "tokenreviews.authentication.k8s.io": reviewStrategy,
  "localsubjectaccessreviews.authorization.k8s.io": reviewStrategy,
  "selfsubjectaccessreviews.authorization.k8s.io": reviewStrategy,
  "selfsubjectrulesreviews.authorization.k8s.io": reviewStrategy,
  "subjectaccessreviews.authorization.k8s.io": reviewStrategy,
  "horizontalpodautoscalers.autoscaling": horizontalPodAutoscalerStrategy,
  "cronjobs.batch": cronJobStrategy,
  "jobs.batch": jobStrategy,
  "certificatesigningrequests.certificates.k8s.io": certificateSigningRequestStrategy,
  "leases.coordination.k8s.io": leaseStrategy,
  "endpointslices.discovery.k8s.io": endpointSliceStrategy,
  "events.events.k8s.io": newEventStrategy,
  "flowschemas.flowcontrol.apiserver.k8s.io": flowSchemaStrategy,
  "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": priorityLevelConfigurationStrategy,
  "ingressclasses.networking.k8s.io": ingressClassStrategy,
  "ingresses.networking.k8s.io": ingressStrategy,
  "ipaddresses.networking.k8s.io": ipAddressStrategy,
  "networkpolicies.networking.k8s.io": networkPolicyStrategy,
  "servicecidrs.networking.k8s.io": serviceCidrStrategy,
  "runtimeclasses.node.k8s.io": runtimeClassStrategy,
  "poddisruptionbudgets.policy": podDisruptionBudgetStrategy,
  "clusterrolebindings.rbac.authorization.k8s.io": clusterRoleBindingStrategy,
  "clusterroles.rbac.authorization.k8s.io": clusterRoleStrategy,
  "rolebindings.rbac.authorization.k8s.io": roleBindingStrategy,
  "roles.rbac.authorization.k8s.io": roleStrategy,
  "deviceclasses.resource.k8s.io": deviceClassStrategy,
  "resourceclaims.resource.k8s.io": resourceClaimStrategy,
  "resourceclaimtemplates.resource.k8s.io": resourceClaimTemplateStrategy,
  "resourceslices.resource.k8s.io": resourceSliceStrategy,
  "priorityclasses.scheduling.k8s.io": priorityClassStrategy,
  "csidrivers.storage.k8s.io": csiDriverStrategy,
  "csinodes.storage.k8s.io": csiNodeStrategy,
  "csistoragecapacities.storage.k8s.io": csiStorageCapacityStrategy,
  "storageclasses.storage.k8s.io": storageClassStrategy,
  "volumeattachments.storage.k8s.io": volumeAttachmentStrategy,
  "volumeattributesclasses.storage.k8s.io": volumeAttributesClassStrategy,
};

const ORDINARY: Strategy = {};

/** Returns the strategy of a built-in type; an empty one if it has none. */
export function strategyOf(type: { readonly plural: string; readonly group: string }): Strategy {
  return STRATEGIES[resourceNameOf(type)] ?? ORDINARY;
}

let memoisedTypes: ServedType[] | undefined;

/** Returns all built-in types in discovery order. */
export function builtinTypes(): ServedType[] {
  memoisedTypes ??= discoveredTypes().map((type) => {
    const hasStatus = type.subresources.some(({ name }) => name === "status");
    return { ...type, strategy: restStrategyOf(strategyOf(type), { hasStatus }) };
  });
  return memoisedTypes;
}
