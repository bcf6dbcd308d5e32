// Versions that Kubernetes 1.36 can decode, including some that it no longer serves.
const VERSIONS: Record<string, string> = {
  "": "v1",
  "admissionregistration.k8s.io": "v1 v1alpha1 v1beta1",
  apps: "v1 v1beta1 v1beta2",
  "authentication.k8s.io": "v1 v1alpha1 v1beta1",
  "authorization.k8s.io": "v1 v1beta1",
  autoscaling: "v1 v2",
  batch: "v1 v1beta1",
  "certificates.k8s.io": "v1 v1alpha1 v1beta1",
  "coordination.k8s.io": "v1 v1alpha2 v1beta1",
  "discovery.k8s.io": "v1 v1beta1",
  "events.k8s.io": "v1 v1beta1",
  extensions: "v1beta1",
  "flowcontrol.apiserver.k8s.io": "v1 v1beta1 v1beta2 v1beta3",
  "internal.apiserver.k8s.io": "v1alpha1",
  "networking.k8s.io": "v1 v1beta1",
  "node.k8s.io": "v1 v1alpha1 v1beta1",
  policy: "v1 v1beta1",
  "rbac.authorization.k8s.io": "v1 v1alpha1 v1beta1",
  "resource.k8s.io": "v1 v1alpha3 v1beta1 v1beta2",
  "scheduling.k8s.io": "v1 v1alpha2 v1beta1",
  "storage.k8s.io": "v1 v1alpha1 v1beta1",
  "storagemigration.k8s.io": "v1beta1",
};
// Decoded by the API servers of these groups only.
const OF_EXTENSIONS: Record<string, string> = {
  "apiextensions.k8s.io": "v1beta1",
  "apiregistration.k8s.io": "v1beta1",
};
/** Kinds that were in this group before they moved to their current one. */
const MOVED = { group: "extensions", kinds: ["DaemonSet", "Deployment", "Ingress", "NetworkPolicy", "ReplicaSet"] };

/** Returns the group versions that can be decoded. */
export function decodedVersions(): { group: string; version: string }[] {
  return Object.entries(VERSIONS).flatMap(([group, versions]) =>
    versions.split(" ").map((version) => ({ group, version })),
  );
}

/** Reports whether a built-in kind of one group can be decoded from the given version of its own or its former group. */
export function isDecoded(kind: { group: string; kind: string }, given: { group: string; version: string }): boolean {
  const isOfGroup = given.group === kind.group || (given.group === MOVED.group && MOVED.kinds.includes(kind.kind));
  if (OF_EXTENSIONS[given.group] === given.version) return isOfGroup;
  return (
    isOfGroup && decodedVersions().some(({ group, version }) => group === given.group && version === given.version)
  );
}
const KUBERNETES_VERSION = /^v(\d+)(?:(alpha|beta)(\d+))?$/;

/** Compares API versions by priority, as discovery lists them: v2, v1, v1beta2, v1beta1, v1alpha1, then all others by name. */
export function compareVersions(a: string, b: string): number {
  const [x, y] = [rankOf(a), rankOf(b)];
  if (x === undefined && y === undefined) return a < b ? -1 : a > b ? 1 : 0;
  if (x === undefined) return 1;
  if (y === undefined) return -1;
  return y.stability - x.stability || y.major - x.major || y.minor - x.minor;
}

function rankOf(version: string): { stability: number; major: number; minor: number } | undefined {
  const match = KUBERNETES_VERSION.exec(version);
  if (match === null) return undefined;
  const [, major, stage, minor] = match;
  const stability = stage === undefined ? 2 : stage === "beta" ? 1 : 0;
  return { stability, major: Number(major), minor: Number(minor ?? 0) };
}
