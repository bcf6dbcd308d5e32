/** Objects of one kind: each valid one compiles as a typed literal, each invalid one does not. */
export interface Manifests {
  readonly kind: string;
  /** The module that exports the class of the kind. */
  readonly module: string;
  readonly valid: readonly string[];
  /** What is wrong, and the literal. */
  readonly invalid: readonly (readonly [string, string])[];
}

/** Objects of a built-in kind. */
export const deployments: Manifests = {
  kind: "Deployment",
  module: "@gen-operator/kinds/apps/v1",
  valid: [
    `{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", labels: { app: "web" } },
       spec: { replicas: 2, selector: { matchLabels: { app: "web" } }, strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: 0 } },
         template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "web", image: "nginx", ports: [{ containerPort: 80, protocol: "TCP" }],
           resources: { limits: { cpu: 1, memory: "64Mi" } }, livenessProbe: { httpGet: { port: "http", path: "/" } } }] } } } }`,
    `{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", creationTimestamp: "2024-01-01T00:00:00Z" },
       spec: { selector: {}, template: {} }, status: { replicas: 1, conditions: [{ type: "Available", status: "True" }] } }`,
  ],
  invalid: [
    [
      "unknown field",
      `{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "x" }, spec: { selector: {}, template: {}, replica: 1 } }`,
    ],
    [
      "wrong type",
      `{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "x" }, spec: { selector: {}, template: {}, replicas: "1" } }`,
    ],
    [
      "missing required field",
      `{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "x" }, spec: { template: {} } }`,
    ],
    [
      "value outside the enum",
      `{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "x" }, spec: { selector: {}, template: {}, strategy: { type: "Rolling" } } }`,
    ],
    ["other kind", `{ apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name: "x" } }`],
    [
      "a date object",
      `{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "x", creationTimestamp: new Date(0) } }`,
    ],
  ],
};

/** Objects of a kind of cert-manager. */
export const certificates: Manifests = {
  kind: "Certificate",
  module: "./src/generated/resources/cert-manager.io/v1/certificate.js",
  valid: [
    `{ apiVersion: "cert-manager.io/v1", kind: "Certificate", metadata: { name: "site", namespace: "web" },
       spec: { secretName: "site-tls", dnsNames: ["site.example.com"], issuerRef: { name: "letsencrypt", kind: "ClusterIssuer" } } }`,
    `{ apiVersion: "cert-manager.io/v1", kind: "Certificate", metadata: { name: "ca" },
       spec: { isCA: true, commonName: "ca", secretName: "ca", duration: "8760h", privateKey: { algorithm: "ECDSA", size: 256, rotationPolicy: "Always" },
         usages: ["digital signature", "key encipherment"], issuerRef: { name: "selfsigned" } },
       status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2024-01-01T00:00:00Z", reason: "Ready", message: "" }] } }`,
  ],
  invalid: [
    [
      "unknown field",
      `{ apiVersion: "cert-manager.io/v1", kind: "Certificate", metadata: { name: "x" }, spec: { secretName: "x", issuerRef: { name: "x" }, dnsName: ["x"] } }`,
    ],
    [
      "wrong type",
      `{ apiVersion: "cert-manager.io/v1", kind: "Certificate", metadata: { name: "x" }, spec: { secretName: "x", issuerRef: { name: "x" }, dnsNames: "x" } }`,
    ],
    [
      "missing required field",
      `{ apiVersion: "cert-manager.io/v1", kind: "Certificate", metadata: { name: "x" }, spec: { secretName: "x" } }`,
    ],
    [
      "value outside the enum",
      `{ apiVersion: "cert-manager.io/v1", kind: "Certificate", metadata: { name: "x" }, spec: { secretName: "x", issuerRef: { name: "x" }, privateKey: { algorithm: "DSA" } } }`,
    ],
  ],
};

/** Objects of a kind of CloudNativePG. */
export const clusters: Manifests = {
  kind: "Cluster",
  module: "./src/generated/resources/postgresql.cnpg.io/v1/cluster.js",
  valid: [
    `{ apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", metadata: { name: "db" }, spec: { instances: 3, storage: { size: "1Gi" } } }`,
    `{ apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", metadata: { name: "db" },
       spec: { instances: 1, imageName: "postgres:17", primaryUpdateStrategy: "unsupervised", storage: { size: "1Gi", storageClass: "fast" },
         resources: { requests: { cpu: "500m", memory: "1Gi" } }, bootstrap: { initdb: { database: "app", owner: "app" } },
         postgresql: { parameters: { max_connections: "100" } } } }`,
  ],
  invalid: [
    [
      "unknown field",
      `{ apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", metadata: { name: "x" }, spec: { instances: 1, storages: {} } }`,
    ],
    [
      "wrong type",
      `{ apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", metadata: { name: "x" }, spec: { instances: "1" } }`,
    ],
    ["missing required field", `{ apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", metadata: { name: "x" } }`],
    [
      "value outside the enum",
      `{ apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", metadata: { name: "x" }, spec: { instances: 1, primaryUpdateStrategy: "never" } }`,
    ],
  ],
};
