// What no schema states of the built-in kinds and the API server does all the same (1.36), as far as it matters to a comparison: inside of
// lists and objects that are replaced as a whole, where what the server fills in or leaves out cannot be told by who owns it.
// Recorded in fixtures/live-objects; test/integration/runtime/match-every-kind.test.ts finds what is missing.
import type { JsonValue } from "../base/kubernetes-object.js";

/** What the API server fills in, by the name of the type and of the field. */
export const UNSTATED_DEFAULTS: { readonly [definition: string]: { readonly [property: string]: JsonValue } } = {
  DeviceSubRequest: { allocationMode: "ExactCount", count: 1 },
  EndpointPort: { name: "", protocol: "TCP" },
  ExactDeviceRequest: { allocationMode: "ExactCount", count: 1 },
  MatchResources: { matchPolicy: "Equivalent", namespaceSelector: {}, objectSelector: {} },
  NamedRuleWithOperations: { scope: "*" },
  NetworkPolicyPort: { protocol: "TCP" },
  ObjectFieldSelector: { apiVersion: "v1" },
  PersistentVolumeClaim: { apiVersion: "v1", kind: "PersistentVolumeClaim", status: { phase: "Pending" } },
  PersistentVolumeClaimSpec: { volumeMode: "Filesystem" },
  PodFailurePolicyOnPodConditionsPattern: { status: "True" },
  ResourceFieldSelector: { divisor: "0" },
  RoleRef: { apiGroup: "rbac.authorization.k8s.io" },
  RuleWithOperations: { scope: "*" },
  ServiceAccountTokenProjection: { expirationSeconds: 3600 },
  // Where it is a subject that has one: of a user or a group.
  Subject: { apiGroup: "rbac.authorization.k8s.io" },
};

// Scalars that are kept when they are zero, false or empty, because they are pointers in Go: of these alone nothing differs from zero.
const KEEPS_ZERO: { readonly [definition: string]: readonly string[] } = {
  ClusterTrustBundleProjection: ["name", "optional", "signerName"],
  ConfigMapEnvSource: ["optional"],
  ConfigMapKeySelector: ["optional"],
  ConfigMapProjection: ["optional"],
  CustomResourceDefinitionVersion: ["deprecationWarning"],
  CustomResourceSubresourceScale: ["labelSelectorPath"],
  Device: ["allNodes", "allowMultipleAllocations", "bindsToNode", "nodeName"],
  DeviceConstraint: ["distinctAttribute", "matchAttribute"],
  DeviceToleration: ["tolerationSeconds"],
  DownwardAPIVolumeFile: ["mode"],
  Endpoint: ["hostname", "nodeName", "zone"],
  EndpointAddress: ["nodeName"],
  EndpointConditions: ["ready", "serving", "terminating"],
  EndpointPort: ["appProtocol", "name", "port", "protocol"],
  ExactDeviceRequest: ["adminAccess"],
  HTTPIngressPath: ["pathType"],
  JSONSchemaProps: [
    "$ref",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
  ],
  KeyToPath: ["mode"],
  MetricTarget: ["averageUtilization"],
  NetworkPolicyPort: ["endPort", "protocol"],
  ObjectMeta: ["deletionGracePeriodSeconds"],
  OwnerReference: ["blockOwnerDeletion", "controller"],
  PersistentVolumeClaimSpec: ["storageClassName", "volumeAttributesClassName", "volumeMode"],
  PodCertificateProjection: ["maxExpirationSeconds"],
  PodDNSConfigOption: ["value"],
  PodFailurePolicyOnExitCodesRequirement: ["containerName"],
  SecretEnvSource: ["optional"],
  SecretKeySelector: ["optional"],
  SecretProjection: ["optional"],
  ServiceAccountTokenProjection: ["expirationSeconds"],
  SuccessPolicyRule: ["succeededCount", "succeededIndexes"],
  TokenRequest: ["expirationSeconds"],
  Toleration: ["tolerationSeconds"],
  TypedLocalObjectReference: ["apiGroup"],
  TypedObjectReference: ["apiGroup", "namespace"],
  ValidationRule: ["optionalOldSelf", "reason"],
};

/** Tells whether a scalar that is zero, false or empty is stored as such, and not left out. */
export function keepsZero(definition: string, property: string): boolean {
  return KEEPS_ZERO[definition]?.includes(property) === true;
}
