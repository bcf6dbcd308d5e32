/**
 * Compares versions by the priority that Kubernetes gives them: `v2`, `v1`, `v1beta2`, `v1beta1`, `v1alpha1`, then all others by name.
 *
 * https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#version-priority
 */
export function compareVersions(left: string, right: string): number {
  const [a, b] = [partsOf(left), partsOf(right)];
  if (a === undefined || b === undefined) {
    if (a === b) return left < right ? -1 : Number(left > right);
    return a === undefined ? 1 : -1;
  }
  return b.stability - a.stability || b.major - a.major || b.minor - a.minor;
}

const STABILITIES = ["alpha", "beta", undefined];

function partsOf(version: string) {
  const match = /^v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?$/.exec(version);
  if (match === null) return undefined;
  const [, major, stability, minor = "0"] = match;
  return { major: Number(major), stability: STABILITIES.indexOf(stability), minor: Number(minor) };
}
