// Finds the binaries of a real control plane. As in envtest, the first match is used: TEST_ASSET_KUBE_APISERVER and the like (a full path),
// $KUBEBUILDER_ASSETS, the cache that test/control-plane/build.ts fills, and /usr/local/kubebuilder/bin.
import { accessSync, constants, readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../repository.js";
import { userCache } from "./user-cache.js";

/** The binaries of a control plane, with the Go packages to build them from. */
export const binaryPackages = {
  etcd: "go.etcd.io/etcd/server/v3",
  "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
  "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
  kubectl: "k8s.io/kubernetes/cmd/kubectl",
} as const;

/** Additional tools that a few tests need and are skipped without, with the Go package, and the folder of the module that pins it. */
export const toolPackages = {
  helm: { package: "helm.sh/helm/v4/cmd/helm", module: "test/control-plane/helm" },
} as const;

/** The name of a binary of the control plane, or of a tool. */
export type BinaryName = keyof typeof binaryPackages | keyof typeof toolPackages;

/** Returns the version of Kubernetes that test/control-plane/go.mod pins, with its leading "v". */
export function kubernetesVersion(): string {
  const goMod = readFileSync(join(repositoryRoot, "test/control-plane/go.mod"), "utf8");
  const version = /^\s*(?:require )?k8s\.io\/kubernetes (v\S+)/m.exec(goMod)?.[1];
  if (version === undefined) throw new Error("test/control-plane/go.mod does not require k8s.io/kubernetes");
  return version;
}

/** Returns the cache folder of built binaries, outside of the checkout. */
export function binaryCache(environment = process.env): string {
  return join(userCache(environment), "control-plane", kubernetesVersion());
}

/** Returns the path of a binary; undefined if it is not found. */
export function findBinary(name: BinaryName, environment = process.env): string | undefined {
  const named = environment[`TEST_ASSET_${name.toUpperCase().replaceAll("-", "_")}`];
  const assets = environment["KUBEBUILDER_ASSETS"];
  const candidates = [
    ...(named ? [named] : []),
    ...(assets ? [join(assets, name)] : []),
    join(binaryCache(environment), name),
    join("/usr/local/kubebuilder/bin", name),
  ];
  return candidates.find(isExecutable);
}

/** Returns the path of a binary; throws an error with instructions if it is not found. */
export function findBinaryOrThrow(name: BinaryName): string {
  const path = findBinary(name);
  if (path !== undefined) return path;
  throw new Error(
    `${name} not found: run "node test/dist/control-plane/build.js" (needs Go), or set KUBEBUILDER_ASSETS to a folder that has it`,
  );
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
