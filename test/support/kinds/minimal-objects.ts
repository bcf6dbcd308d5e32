// A valid object of each built-in kind that can be applied, with only the required fields.
import type { JsonObject } from "#apiserver/json.js";

/** A kind with the required fields of an object other than its metadata. */
export interface MinimalObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly content: JsonObject;
  /** The name that objects of this kind must have. Default: any */
  readonly name?: string;
  /** Why objects of the kind must not be stored on a shared server; they are applied only with dryRun. */
  readonly isOnlyTried?: string;
}

/** A placeholder for the namespace of the object. */
export const OWN_NAMESPACE = "own-namespace";

const selector = { matchLabels: { app: "a" } };
const template = {
  metadata: { labels: { app: "a" } },
  spec: { containers: [{ name: "a", image: "nginx" }] },
};
const jobTemplate = { ...template, spec: { ...template.spec, restartPolicy: "Never" } };
const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" };
const subjects = [{ kind: "User", name: "a", apiGroup: "rbac.authorization.k8s.io" }];
const webhook = {
  name: "a.example.com",
  clientConfig: { url: "https://example.com/hook" },
  sideEffects: "None",
  admissionReviewVersions: ["v1"],
};
const matchConstraints = {
  resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
};
// A request for the common name "a". Its private key was discarded.
const CERTIFICATE_REQUEST =
  "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlHTE1EOENBUUF3RERFS01BZ0dBMVVFQXd3QllUQXFNQVVHQXl0bGNBTWhBTn" +
  "o5YXdkVkIwc1MwOHdkOGRvKwp0d21jcDdRdEt1UnJPZkZ0anZGNkRodFFvQUF3QlFZREsyVndBMEVBVmxrdGlXcGZjVlpyVFg3ODFlMzJNbFo4" +
  "Cmt3RmxhaVJtWHR1UFM0MnRrR005NEdaRnBvcVpwMDdydEVmTzYrbFJLY1IvNDFHRlZvaEU4bmxDNkZic0NRPT0KLS0tLS1FTkQgQ0VSVElGSU" +
  "NBVEUgUkVRVUVTVC0tLS0tCg==";
const CALLS = "the API server would call it";

const table: {
  readonly [apiVersion: string]: { readonly [kind: string]: Omit<MinimalObject, "apiVersion" | "kind"> };
} = {
  v1: {
    ConfigMap: { content: {} },
    Endpoints: { content: {} },
    Event: {
      content: { involvedObject: { kind: "Pod", name: "a", namespace: OWN_NAMESPACE }, reason: "Reason" },
    },
    LimitRange: { content: { spec: { limits: [{ type: "Container" }] } } },
    Namespace: { content: {}, isOnlyTried: "namespaces stay until a controller removes what is in them" },
    Node: { content: {} },
    PersistentVolume: {
      content: { spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/a" } } },
    },
    PersistentVolumeClaim: {
      content: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
    },
    Pod: { content: { spec: template.spec } },
    PodTemplate: { content: { template } },
    ReplicationController: { content: { spec: { selector: { app: "a" }, template } } },
    ResourceQuota: { content: {} },
    Secret: { content: {} },
    Service: { content: { spec: { ports: [{ port: 80 }] } } },
    ServiceAccount: { content: {} },
  },
  "apiregistration.k8s.io/v1": {
    APIService: {
      name: "v1.a.example.com",
      content: { spec: { group: "a.example.com", version: "v1", groupPriorityMinimum: 100, versionPriority: 10 } },
      isOnlyTried: CALLS,
    },
  },
  "apps/v1": {
    ControllerRevision: { content: { revision: 1, data: { a: 1 } } },
    DaemonSet: { content: { spec: { selector, template } } },
    Deployment: { content: { spec: { selector, template } } },
    ReplicaSet: { content: { spec: { selector, template } } },
    StatefulSet: { content: { spec: { selector, template, serviceName: "a" } } },
  },
  "autoscaling/v1": {
    HorizontalPodAutoscaler: {
      content: { spec: { maxReplicas: 3, scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "a" } } },
    },
  },
  "autoscaling/v2": {
    HorizontalPodAutoscaler: {
      content: { spec: { maxReplicas: 3, scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "a" } } },
    },
  },
  "batch/v1": {
    CronJob: { content: { spec: { schedule: "* * * * *", jobTemplate: { spec: { template: jobTemplate } } } } },
    Job: { content: { spec: { template: jobTemplate } } },
  },
  "coordination.k8s.io/v1": { Lease: { content: {} } },
  "discovery.k8s.io/v1": { EndpointSlice: { content: { addressType: "IPv4", endpoints: [] } } },
  "events.k8s.io/v1": {
    Event: {
      content: {
        eventTime: "2026-01-01T00:00:00.000000Z",
        reportingController: "example.com/a",
        reportingInstance: "a",
        action: "Act",
        reason: "Reason",
        type: "Normal",
        regarding: { kind: "Pod", name: "a", namespace: OWN_NAMESPACE },
      },
    },
  },
  "flowcontrol.apiserver.k8s.io/v1": {
    FlowSchema: { content: { spec: { priorityLevelConfiguration: { name: "global-default" } } } },
    PriorityLevelConfiguration: {
      content: {
        spec: { type: "Limited", limited: { nominalConcurrencyShares: 5, limitResponse: { type: "Reject" } } },
      },
    },
  },
  "networking.k8s.io/v1": {
    IPAddress: {
      name: "10.9.8.7",
      content: { spec: { parentRef: { group: "", resource: "services", namespace: "default", name: "a" } } },
    },
    Ingress: { content: { spec: { defaultBackend: { service: { name: "a", port: { number: 80 } } } } } },
    IngressClass: { content: { spec: { controller: "example.com/a" } } },
    NetworkPolicy: { content: { spec: { podSelector: {} } } },
    ServiceCIDR: { content: { spec: { cidrs: ["10.99.0.0/24"] } } },
  },
  "node.k8s.io/v1": { RuntimeClass: { content: { handler: "a" } } },
  "policy/v1": { PodDisruptionBudget: { content: { spec: { minAvailable: 1, selector } } } },
  "rbac.authorization.k8s.io/v1": {
    ClusterRole: { content: { rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }] } },
    ClusterRoleBinding: { content: { roleRef, subjects } },
    Role: { content: { rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }] } },
    RoleBinding: { content: { roleRef, subjects } },
  },
  "scheduling.k8s.io/v1": { PriorityClass: { content: { value: 1 } } },
  "storage.k8s.io/v1": {
    CSIDriver: { content: { spec: {} } },
    CSINode: { content: { spec: { drivers: [{ name: "a.example.com", nodeID: "a" }] } } },
    CSIStorageCapacity: { content: { storageClassName: "a" } },
    StorageClass: { content: { provisioner: "example.com/a" } },
    VolumeAttachment: {
      content: { spec: { attacher: "a.example.com", nodeName: "a", source: { persistentVolumeName: "a" } } },
    },
    VolumeAttributesClass: { content: { driverName: "a.example.com", parameters: { a: "b" } } },
  },
  "admissionregistration.k8s.io/v1": {
    MutatingWebhookConfiguration: { content: { webhooks: [webhook] }, isOnlyTried: CALLS },
    ValidatingWebhookConfiguration: { content: { webhooks: [webhook] }, isOnlyTried: CALLS },
    ValidatingAdmissionPolicy: {
      content: { spec: { matchConstraints, validations: [{ expression: "true" }] } },
    },
    ValidatingAdmissionPolicyBinding: {
      content: { spec: { policyName: "nothing", validationActions: ["Warn"] } },
    },
    MutatingAdmissionPolicy: {
      content: {
        spec: {
          matchConstraints,
          reinvocationPolicy: "Never",
          mutations: [{ patchType: "ApplyConfiguration", applyConfiguration: { expression: "Object{}" } }],
        },
      },
    },
    MutatingAdmissionPolicyBinding: { content: { spec: { policyName: "nothing" } } },
  },
  "apiextensions.k8s.io/v1": {
    CustomResourceDefinition: {
      name: "gadgets.laws.example.com",
      content: {
        spec: {
          group: "laws.example.com",
          scope: "Namespaced",
          names: { kind: "Gadget", plural: "gadgets" },
          versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
        },
      },
    },
  },
  "certificates.k8s.io/v1": {
    CertificateSigningRequest: {
      content: { spec: { request: CERTIFICATE_REQUEST, signerName: "example.com/a", usages: ["digital signature"] } },
      isOnlyTried: "the request is not for a certificate that exists",
    },
  },
  "resource.k8s.io/v1": {
    DeviceClass: { content: { spec: {} } },
    ResourceClaim: { content: { spec: {} } },
    ResourceClaimTemplate: { content: { spec: { spec: {} } } },
    ResourceSlice: {
      content: {
        spec: { driver: "a.example.com", nodeName: "a", pool: { name: "a", generation: 1, resourceSliceCount: 1 } },
      },
    },
  },
};

/** The minimal objects of all kinds. */
export const minimalObjects: readonly MinimalObject[] = Object.entries(table).flatMap(([apiVersion, kinds]) =>
  Object.entries(kinds).map(([kind, facts]) => ({ apiVersion, kind, ...facts })),
);
