// The kinds for random requests: a valid object, and random partial objects, most of which are valid.
import fc from "../fast-check.js";
import { RANDOM_CUSTOM_KINDS } from "./random-custom-kinds.js";
import type { RandomKind } from "./random-kind.js";
import { conditions, count, intOrString, labels, map, some, word } from "./random-values.js";
import { RANDOM_WORKLOADS } from "./random-workloads.js";

const selector = fc.constantFrom(
  { matchLabels: { app: "web" } },
  { matchExpressions: [{ key: "app", operator: "Exists" }] },
  {},
);

const servicePort = fc
  .tuple(
    fc.constantFrom(80, 81, 443),
    some({ name: word, protocol: fc.constantFrom("TCP", "UDP"), targetPort: intOrString }),
  )
  .map(([port, rest]) => ({ port, ...rest }));
const backend = { service: { name: "a", port: { number: 80 } } };
const ingressPath = fc.record({
  path: fc.constantFrom("/", "/a"),
  pathType: fc.constantFrom("Prefix", "Exact", "ImplementationSpecific"),
  backend: fc.constant(backend),
});
const peer = fc.constantFrom<object>(
  { podSelector: {} },
  { namespaceSelector: { matchLabels: labels } },
  { ipBlock: { cidr: "192.168.0.0/24" } },
);
const rule = fc.record({
  apiGroups: fc.constantFrom([""], ["apps"], []),
  resources: fc.constantFrom(["pods"], ["deployments", "pods/status"]),
  verbs: fc.constantFrom(["get"], ["*"], ["get", "list"], []),
});
const resourceMetric = {
  type: "Resource",
  resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } },
};

const RANDOM_CONFIGURATION: RandomKind[] = [
  {
    path: "$cm",
    kind: "ConfigMap",
    base: { data: { a: "1" } },
    part: some({ data: map, binaryData: fc.constantFrom({ bin: "AA==" }, {}, { a: "AA==" }), immutable: fc.boolean() }),
  },
  {
    path: "$secret",
    kind: "Secret",
    base: { stringData: { a: "1" } },
    part: some({
      data: fc.constantFrom({ a: "MQ==" }, { b: "" }, {}, { c: "Mg==", a: "MQ==" }),
      stringData: map,
      type: fc.constantFrom("Opaque", "kubernetes.io/tls", "example.com/own"),
      immutable: fc.boolean(),
    }),
  },
  {
    path: "$svc",
    kind: "Service",
    base: { spec: { selector: labels, ports: [{ port: 80 }] } },
    part: some({
      spec: some({
        selector: fc.constantFrom(labels, { app: "x" }, {}),
        ports: fc.array(servicePort, { maxLength: 3 }),
        type: fc.constantFrom("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"),
        clusterIP: fc.constantFrom("None", ""),
        externalName: fc.constant("example.com"),
        sessionAffinity: fc.constantFrom("ClientIP", "None"),
        publishNotReadyAddresses: fc.boolean(),
      }),
    }),
    status: some({ loadBalancer: fc.constantFrom({ ingress: [{ ip: "192.0.2.1" }] }, {}), conditions }),
  },
  {
    path: "$ingress",
    kind: "Ingress",
    base: { spec: { defaultBackend: backend } },
    part: some({
      spec: some({
        ingressClassName: word,
        rules: fc.array(
          fc.record({
            host: fc.constantFrom("a.example.com", "*.example.com"),
            http: fc.record({ paths: fc.array(ingressPath, { maxLength: 2 }) }),
          }),
          { maxLength: 2 },
        ),
        tls: fc.constantFrom([{ hosts: ["a.example.com"], secretName: "a" }], []),
      }),
    }),
    status: some({ loadBalancer: fc.constantFrom({ ingress: [{ ip: "192.0.2.1" }] }, {}) }),
  },
  {
    path: "$netpol",
    kind: "NetworkPolicy",
    base: { spec: { podSelector: {} } },
    part: some({
      spec: some({
        podSelector: selector,
        policyTypes: fc.constantFrom(["Ingress"], ["Egress", "Ingress"], []),
        ingress: fc.array(
          some({
            from: fc.array(peer, { maxLength: 2 }),
            ports: fc.constantFrom([{ port: 80 }], [{ port: "http", protocol: "UDP" }]),
          }),
          { maxLength: 2 },
        ),
        egress: fc.array(some({ to: fc.array(peer, { maxLength: 1 }) }), { maxLength: 1 }),
      }),
    }),
  },
  {
    path: "$pdb",
    kind: "PodDisruptionBudget",
    base: { spec: { minAvailable: 1, selector: { matchLabels: labels } } },
    part: some({
      spec: some({
        minAvailable: intOrString,
        maxUnavailable: intOrString,
        selector,
        unhealthyPodEvictionPolicy: fc.constantFrom("AlwaysAllow", "IfHealthyBudget"),
      }),
    }),
    status: some({
      disruptionsAllowed: count,
      currentHealthy: count,
      desiredHealthy: count,
      expectedPods: count,
      conditions,
    }),
  },
  {
    path: "$sa",
    kind: "ServiceAccount",
    base: {},
    part: some({
      automountServiceAccountToken: fc.boolean(),
      secrets: fc.array(fc.record({ name: word }), { maxLength: 2 }),
      imagePullSecrets: fc.array(fc.record({ name: word }), { maxLength: 2 }),
    }),
  },
  {
    path: "$pvc",
    kind: "PersistentVolumeClaim",
    base: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
    part: some({
      spec: some({
        accessModes: fc.constantFrom(["ReadWriteOnce"], ["ReadWriteMany"], []),
        storageClassName: fc.constantFrom("fast", ""),
        resources: fc.constantFrom(
          { requests: { storage: "1Gi" } },
          { requests: { storage: "2Gi" } },
          { requests: {} },
        ),
        volumeMode: fc.constantFrom("Filesystem", "Block"),
        volumeName: word,
      }),
    }),
    status: some({ phase: fc.constantFrom("Bound", "Pending"), capacity: fc.constantFrom({ storage: "1Gi" }, {}) }),
  },
  {
    path: "$hpa",
    kind: "HorizontalPodAutoscaler",
    base: { spec: { maxReplicas: 3, scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "a" } } },
    part: some({
      spec: some({
        minReplicas: count,
        maxReplicas: count,
        metrics: fc.constantFrom([resourceMetric], []),
        behavior: fc.constantFrom<object>(
          { scaleDown: { stabilizationWindowSeconds: 10 } },
          {},
          { scaleUp: { policies: [] } },
        ),
      }),
    }),
    status: some({ currentReplicas: count, desiredReplicas: count }),
  },
  { path: "$role", kind: "Role", base: { rules: [] }, part: some({ rules: fc.array(rule, { maxLength: 2 }) }) },
  {
    path: "$rolebinding",
    kind: "RoleBinding",
    base: { roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" } },
    part: some({
      subjects: fc.array(
        fc.constantFrom<object>(
          { kind: "User", name: "a" },
          { kind: "ServiceAccount", name: "a", namespace: "default" },
          { kind: "Group", name: "g", apiGroup: "rbac.authorization.k8s.io" },
        ),
        { maxLength: 2 },
      ),
    }),
  },
  {
    path: "$lease",
    kind: "Lease",
    base: {},
    part: some({
      spec: some({
        holderIdentity: word,
        leaseDurationSeconds: count,
        leaseTransitions: count,
        renewTime: fc.constantFrom("2024-01-01T00:00:00.000000Z", "2024-01-01T00:00:00Z"),
      }),
    }),
  },
];

/** All kinds for random requests. */
export const RANDOM_KINDS: RandomKind[] = [...RANDOM_CONFIGURATION, ...RANDOM_WORKLOADS, ...RANDOM_CUSTOM_KINDS];
