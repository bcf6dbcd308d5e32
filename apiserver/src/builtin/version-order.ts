const KUBERNETES_VERSION = /^v(\d+)(?:(alpha|beta)(\d+))?$/;

/** Orders API versions as discovery lists them: v2, v1, v1beta2, v1beta1, v1alpha1, then all others by name. */
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
