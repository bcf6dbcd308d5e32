// What no schema states of the built-in kinds and the API server does all the same (1.36), as far as it matters to a comparison: inside of
// lists and objects that are replaced as a whole, where what the server fills in or leaves out cannot be told by who owns it.
// Recorded in fixtures/live-objects; test/integration/runtime/writes/match-every-kind.test.ts finds what is missing.
import type { JsonValue, Schema } from "@gen-operator/runtime/codegen";

/** Facts by the short names of definitions. */
interface Facts<Fact> {
  readonly [definition: string]: Fact;
}

// What the API server fills in.
const DEFAULTS: Facts<{ readonly [property: string]: JsonValue }> = {
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

// What is kept when it is zero, false or empty, because it is a pointer in Go: of these alone nothing differs from zero. Structs with declared
// fields always are.
const KEEPS_ZERO: Facts<readonly string[]> = {
  ClusterTrustBundleProjection: ["name", "optional", "signerName"],
  ConfigMapEnvSource: ["optional"],
  ConfigMapKeySelector: ["optional"],
  ConfigMapProjection: ["optional"],
  CustomResourceDefinitionVersion: ["deprecationWarning"],
  CustomResourceSubresourceScale: ["labelSelectorPath"],
  CustomResourceSubresources: ["status"],
  Device: ["allNodes", "allowMultipleAllocations", "bindsToNode", "nodeName"],
  DeviceAttribute: ["bool", "int", "string", "version"],
  DeviceConstraint: ["distinctAttribute", "matchAttribute"],
  DeviceToleration: ["tolerationSeconds"],
  DownwardAPIVolumeFile: ["mode"],
  Endpoint: ["hostname", "nodeName", "zone"],
  EndpointAddress: ["nodeName"],
  EndpointConditions: ["ready", "serving", "terminating"],
  EndpointPort: ["appProtocol", "name", "port", "protocol"],
  ExactDeviceRequest: ["adminAccess"],
  FileKeySelector: ["optional"],
  HTTPIngressPath: ["pathType"],
  JSONSchemaProps: [
    "$ref",
    "additionalItems",
    "additionalProperties",
    "default",
    "example",
    "items",
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
  MatchResources: ["matchPolicy"],
  MetricTarget: ["averageUtilization"],
  NamedRuleWithOperations: ["scope"],
  NetworkPolicyPort: ["endPort", "port", "protocol"],
  NodeAllocatableResourceMapping: ["capacityKey"],
  ObjectMeta: ["deletionGracePeriodSeconds"],
  OwnerReference: ["blockOwnerDeletion", "controller"],
  ParamRef: ["parameterNotFoundAction"],
  PersistentVolumeClaimSpec: ["storageClassName", "volumeAttributesClassName", "volumeMode"],
  PersistentVolumeClaimStatus: ["currentVolumeAttributesClassName"],
  PodCertificateProjection: ["maxExpirationSeconds"],
  PodDNSConfigOption: ["value"],
  PodFailurePolicyOnExitCodesRequirement: ["containerName"],
  RuleWithOperations: ["scope"],
  SecretEnvSource: ["optional"],
  SecretKeySelector: ["optional"],
  SecretProjection: ["optional"],
  ServiceAccountTokenProjection: ["expirationSeconds"],
  SuccessPolicyRule: ["succeededCount", "succeededIndexes"],
  TokenRequest: ["expirationSeconds"],
  Toleration: ["tolerationSeconds"],
  TypedLocalObjectReference: ["apiGroup"],
  TypedObjectReference: ["apiGroup", "namespace"],
  Validation: ["reason"],
  ValidationRule: ["optionalOldSelf", "reason"],
};

/** Returns the schema of a definition with what no schema states of its fields. Another definition of the name may lack one of these. */
export function withUnstatedFacts(definition: string, schema: Schema): Schema {
  const properties = { ...schema.properties };
  const add = (name: string, fact: Partial<Schema>): void => {
    if (properties[name] !== undefined) properties[name] = { ...properties[name], ...fact };
  };
  for (const [name, value] of Object.entries(DEFAULTS[definition] ?? {})) add(name, { default: value });
  for (const name of KEEPS_ZERO[definition] ?? []) add(name, { "x-gen-operator-keeps-zero": true });
  return schema.properties === undefined ? schema : { ...schema, properties };
}
