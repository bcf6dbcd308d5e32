import fc from "../fast-check.js";
import { some } from "./random-values.js";

const environment = fc.array(
  fc.constantFrom<object>(
    { name: "A", value: "1" },
    { name: "A", value: "2" },
    { name: "B", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
    { name: "C", valueFrom: { configMapKeyRef: { name: "a", key: "k" } } },
    { name: "D" },
  ),
  { maxLength: 3 },
);

const ports = fc.array(
  fc.constantFrom<object>(
    { containerPort: 80 },
    { containerPort: 80, protocol: "UDP" },
    { containerPort: 81, name: "http" },
    { containerPort: 0 },
  ),
  { maxLength: 2 },
);

const resources = fc.constantFrom<object>(
  { requests: { cpu: "100m", memory: "1Gi" } },
  { limits: { cpu: "0.5" } },
  { requests: { cpu: 1 }, limits: { cpu: "1000m", memory: "1024Mi" } },
  { requests: { cpu: 2 }, limits: { cpu: 1 } },
  {},
);

const probe = fc.constantFrom<object>(
  { httpGet: { path: "/", port: 80 } },
  { tcpSocket: { port: "http" }, periodSeconds: 5 },
  { exec: { command: ["true"] }, failureThreshold: 0 },
);

const container = some({
  image: fc.constantFrom("nginx:1", "nginx", "nginx:latest", ""),
  imagePullPolicy: fc.constantFrom("Always", "IfNotPresent", "Sometimes"),
  command: fc.constantFrom(["sh"], []),
  args: fc.constantFrom(["-c", "true"], ["x"]),
  env: environment,
  ports,
  resources,
  readinessProbe: probe,
  livenessProbe: probe,
  volumeMounts: fc.constantFrom([{ name: "v", mountPath: "/v" }], []),
  securityContext: fc.constantFrom<object>({ runAsUser: 1 }, { privileged: true }, {}),
});

const volumes = fc.array(
  fc.constantFrom<object>(
    { name: "v", emptyDir: {} },
    { name: "v", configMap: { name: "a" } },
    { name: "w", secret: { secretName: "a" } },
    { name: "w" },
    { name: "p", persistentVolumeClaim: { claimName: "a" } },
  ),
  { maxLength: 2 },
);

/** A partial pod spec. If it has containers, the first one is called `web`. */
export const randomPodSpec = some({
  containers: fc
    .tuple(container, fc.option(container, { freq: 3 }))
    .map(([web, other]) => [
      { name: "web", ...web },
      ...(other === null ? [] : [{ name: "side", image: "busybox:1", ...other }]),
    ]),
  initContainers: fc.constantFrom([{ name: "init", image: "busybox:1" }], []),
  volumes,
  restartPolicy: fc.constantFrom("Always", "Never", "OnFailure"),
  terminationGracePeriodSeconds: fc.constantFrom(0, 30, 5),
  nodeSelector: fc.constantFrom<object>({ disk: "ssd" }, {}),
  serviceAccountName: fc.constantFrom("a", "default"),
  hostNetwork: fc.boolean(),
  securityContext: fc.constantFrom<object>({ runAsNonRoot: true }, {}, { fsGroup: 1 }),
  tolerations: fc.constantFrom<object[]>(
    [{ key: "a", operator: "Exists" }],
    [{ operator: "Exists", effect: "NoSchedule" }],
    [],
  ),
  dnsPolicy: fc.constantFrom("ClusterFirst", "Default"),
});
