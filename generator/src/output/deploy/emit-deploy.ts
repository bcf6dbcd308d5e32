// What runs an operator in a cluster, as far as the graph decides it; the rest is the user's.
import { Document } from "yaml";
import type { ProjectModel, ResourceModel } from "../../model/project-model.js";
import type { OutputFile } from "../files/output-file.js";
import { emitRbac, fileOf } from "./emit-rbac.js";

/** Emits the CRDs of the primaries, what the operator may do, and the kustomization that has both. */
export function emitDeploy(model: ProjectModel): OutputFile[] {
  const primaries = [...new Map(model.controllers.map(({ primary }) => [crdFileOf(primary), primary]))];
  const crds = primaries.flatMap(([path, { crd }]) => (crd === undefined ? [] : [crdFile(path, crd)]));
  const kustomization = new Document({
    apiVersion: "kustomize.config.k8s.io/v1beta1",
    kind: "Kustomization",
    resources: [...crds.map(({ path }) => path.slice(FOLDER.length)).sort(), "rbac.yaml"],
  });
  return [...crds, ...emitRbac(model), fileOf(`${FOLDER}kustomization.yaml`, { documents: [kustomization] })];
}

const FOLDER = "deploy/generated/";

function crdFileOf({ plural, group }: ResourceModel): string {
  return `${FOLDER}crds/${plural}.${group}.yaml`;
}

function crdFile(path: string, crd: object): OutputFile {
  return fileOf(path, { documents: [new Document(crd, { aliasDuplicateObjects: false })] });
}
