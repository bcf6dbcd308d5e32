// Deployments as an API server sends them: 4.5 kB each, two fifths of which are managed fields. They are written by overwriting digits in a copy of a
// template, so that the server uses little CPU time compared to its clients.

/** The number of Deployments of each owner. */
export const DEPLOYMENTS_PER_OWNER = 10;

/** The number of namespaces that the Deployments are distributed over. */
export const NAMESPACES = 20;

/** The numbers that distinguish a Deployment. */
export interface DeploymentNumbers {
  readonly index: number;
  readonly version: number;
}

/** Writes Deployments of equal length. */
export interface DeploymentText {
  readonly length: number;
  /** Writes a Deployment at `offset`. */
  write(target: Buffer, offset: number, numbers: DeploymentNumbers): void;
}

const INDEX = "######";
const OWNER = "@@@@@@";
const NAMESPACE = "~~";
const VERSION = "^^^^^^^^";

/** Creates a template with text around each Deployment, such as that of a watch event. `hasType` includes apiVersion and kind. */
export function createDeploymentText({
  before = "",
  after = "",
  hasType = true,
}: { before?: string; after?: string; hasType?: boolean } = {}): DeploymentText {
  const { kind, apiVersion, ...rest } = deployment();
  const object = JSON.stringify(hasType ? { kind, apiVersion, ...rest } : rest);
  const template = Buffer.from(before + object + after, "latin1");
  const [indexes, owners, namespaces, versions] = [INDEX, OWNER, NAMESPACE, VERSION].map((mark) =>
    placesOf(template, mark),
  ) as [number[], number[], number[], number[]];
  return {
    length: template.length,
    write(target, offset, { index, version }) {
      template.copy(target, offset);
      const owner = Math.floor(index / DEPLOYMENTS_PER_OWNER);
      for (const place of indexes) writeDigits(target, offset + place + INDEX.length, index);
      for (const place of owners) writeDigits(target, offset + place + OWNER.length, owner);
      for (const place of namespaces) writeDigits(target, offset + place + NAMESPACE.length, owner % NAMESPACES);
      for (const place of versions) writeDigits(target, offset + place + VERSION.length, version);
    },
  };
}

/** Returns the namespace of an owner and its Deployments. */
export function namespaceOf(owner: number): string {
  return `team-${String(owner % NAMESPACES).padStart(2, "0")}`;
}

/** Returns the name of an owner. */
export function ownerName(owner: number): string {
  return `shop-${String(owner).padStart(6, "0")}`;
}

// Overwrites each placeholder with as many digits. The leading zeros remain from the first object.
function writeDigits(target: Buffer, end: number, value: number): void {
  for (let place = end - 1; ; place--) {
    const byte = target[place];
    if (byte !== 0x23 && byte !== 0x40 && byte !== 0x7e && byte !== 0x5e) return;
    target[place] = 0x30 + (value % 10);
    value = Math.floor(value / 10);
  }
}

function placesOf(template: Buffer, mark: string): number[] {
  const places: number[] = [];
  for (let at = template.indexOf(mark); at !== -1; at = template.indexOf(mark, at + mark.length)) places.push(at);
  return places;
}

function deployment() {
  const labels = {
    "app.kubernetes.io/component": "frontend",
    "app.kubernetes.io/instance": `shop-${OWNER}`,
    "app.kubernetes.io/name": "storefront",
    "app.kubernetes.io/version": "2.14.1",
  };
  return {
    kind: "Deployment",
    apiVersion: "apps/v1",
    metadata: {
      name: `storefront-${INDEX}`,
      namespace: `team-${NAMESPACE}`,
      uid: `6f1c2b9e-52c4-4c7e-9d0a-000000${INDEX}`,
      resourceVersion: VERSION,
      generation: 3,
      creationTimestamp: "2026-05-04T09:12:44Z",
      labels,
      annotations: { "deployment.kubernetes.io/revision": "3" },
      ownerReferences: [
        {
          apiVersion: "example.com/v1",
          kind: "Shop",
          name: `shop-${OWNER}`,
          uid: `91d5b0a4-1f5e-4b52-8a51-000000${OWNER}`,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields: managedFields(),
    },
    spec: {
      replicas: 3,
      selector: { matchLabels: { "app.kubernetes.io/instance": `shop-${OWNER}` } },
      template: {
        metadata: { creationTimestamp: null, labels },
        spec: {
          containers: [
            {
              name: "storefront",
              image: `registry.example.com/shop/storefront:2.14.1-${INDEX}`,
              ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
              env: [
                { name: "SHOP", value: `shop-${OWNER}` },
                { name: "POD_NAME", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } } },
              ],
              resources: { limits: { memory: "256Mi" }, requests: { cpu: "100m", memory: "128Mi" } },
              livenessProbe: probe("/healthz"),
              terminationMessagePath: "/dev/termination-log",
              terminationMessagePolicy: "File",
              imagePullPolicy: "IfNotPresent",
            },
          ],
          restartPolicy: "Always",
          terminationGracePeriodSeconds: 30,
          dnsPolicy: "ClusterFirst",
          serviceAccountName: "storefront",
          serviceAccount: "storefront",
          securityContext: {},
          schedulerName: "default-scheduler",
        },
      },
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "25%", maxSurge: "25%" } },
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
    },
    status: {
      observedGeneration: 3,
      replicas: 3,
      updatedReplicas: 3,
      readyReplicas: 3,
      availableReplicas: 3,
      conditions: [
        condition("Available", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        condition(
          "Progressing",
          "NewReplicaSetAvailable",
          `ReplicaSet "storefront-${INDEX}-7c9d" has successfully progressed.`,
        ),
      ],
    },
  };
}

function probe(path: string) {
  return {
    httpGet: { path, port: "http", scheme: "HTTP" },
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  };
}

function condition(type: string, reason: string, message: string) {
  const time = "2026-05-04T09:13:02Z";
  return { type, status: "True", lastUpdateTime: time, lastTransitionTime: time, reason, message };
}

function managedFields() {
  const label = (name: string) => `f:app.kubernetes.io/${name}`;
  const labels = Object.fromEntries(["component", "instance", "name", "version"].map((name) => [label(name), {}]));
  const probeFields = {
    "f:failureThreshold": {},
    "f:httpGet": { "f:path": {}, "f:port": {}, "f:scheme": {} },
    "f:periodSeconds": {},
    "f:successThreshold": {},
    "f:timeoutSeconds": {},
  };
  const status = (type: string) => ({
    [`k:{"type":"${type}"}`]: {
      ".": {},
      "f:lastTransitionTime": {},
      "f:lastUpdateTime": {},
      "f:message": {},
      "f:reason": {},
      "f:status": {},
      "f:type": {},
    },
  });
  return [
    {
      manager: "shop-operator",
      operation: "Apply",
      apiVersion: "apps/v1",
      time: "2026-05-04T09:12:44Z",
      fieldsType: "FieldsV1",
      fieldsV1: {
        "f:metadata": {
          "f:labels": labels,
          "f:ownerReferences": { [`k:{"uid":"91d5b0a4-1f5e-4b52-8a51-000000${OWNER}"}`]: {} },
        },
        "f:spec": {
          "f:replicas": {},
          "f:selector": {},
          "f:template": {
            "f:metadata": { "f:labels": labels },
            "f:spec": {
              "f:containers": {
                'k:{"name":"storefront"}': {
                  ".": {},
                  "f:env": {
                    'k:{"name":"POD_NAME"}': { ".": {}, "f:name": {}, "f:valueFrom": {} },
                    'k:{"name":"SHOP"}': { ".": {}, "f:name": {}, "f:value": {} },
                  },
                  "f:image": {},
                  "f:livenessProbe": probeFields,
                  "f:name": {},
                  "f:ports": { 'k:{"containerPort":8080,"protocol":"TCP"}': { ".": {}, "f:name": {} } },
                  "f:resources": { "f:limits": { "f:memory": {} }, "f:requests": { "f:cpu": {}, "f:memory": {} } },
                },
              },
              "f:serviceAccountName": {},
            },
          },
        },
      },
    },
    {
      manager: "kube-controller-manager",
      operation: "Update",
      apiVersion: "apps/v1",
      time: "2026-05-04T09:13:02Z",
      fieldsType: "FieldsV1",
      fieldsV1: {
        "f:metadata": { "f:annotations": { ".": {}, "f:deployment.kubernetes.io/revision": {} } },
        "f:status": {
          "f:availableReplicas": {},
          "f:conditions": { ".": {}, ...status("Available"), ...status("Progressing") },
          "f:observedGeneration": {},
          "f:readyReplicas": {},
          "f:replicas": {},
          "f:updatedReplicas": {},
        },
      },
      subresource: "status",
    },
  ];
}
