// What runs an operator in a cluster, as far as the graph decides it; the rest is the user's.
import { Document } from "yaml";
import { isKubernetes, kindsOf } from "../../model/dependent-model.js";
import type { ControllerModel, ProjectModel, ResourceModel } from "../../model/project-model.js";
import { digestOf } from "../../parts/digest.js";
import { RunParts, type PartMemory } from "../../parts/part-memory.js";
import { recallFiles, type OutputFile } from "../files/output-file.js";
import { emitAdmission } from "./emit-admission.js";
import { emitRbac } from "./emit-rbac.js";
import { fileOf } from "./manifests.js";

/** What is known of a project besides its model. */
export interface DeployOptions {
  /** What earlier runs came to. Default: nothing. */
  readonly parts?: PartMemory;
  /** What stands for each controller, but for the fields of its kinds, of which no right depends. Default: nothing does */
  readonly outlines?: readonly string[];
}

/** Emits the CRDs that the operator brings, what it may do, what nobody else may, and the kustomization that has all of it. */
export function emitDeploy(
  model: ProjectModel,
  { parts = new RunParts(), outlines }: DeployOptions = {},
): OutputFile[] {
  const kinds = new Map(model.controllers.flatMap(broughtKinds).map((kind) => [crdFileOf(kind), kind]));
  const crds = [...kinds].flatMap(([path, kind]) => crdFiles(path, kind, parts));
  const resources = [...crds.map(({ path }) => path.slice(FOLDER.length)).sort(), "rbac.yaml", "admission.yaml"];
  const emit = () => [...emitRbac(model), emitAdmission(model), emitKustomization(resources)];
  if (outlines === undefined) return [...crds, ...emit()];
  const key = digestOf(JSON.stringify([model.packageName, resources, outlines]));
  return [...crds, ...recallFiles(["deploy", key], parts, emit)];
}

function emitKustomization(resources: readonly string[]): OutputFile {
  const document = new Document({
    apiVersion: "kustomize.config.k8s.io/v1beta1",
    kind: "Kustomization",
    resources,
  });
  return fileOf(`${FOLDER}kustomization.yaml`, { documents: [document] });
}

const FOLDER = "deploy/generated/";

// The kinds of dependents come with the operators that act on them, whose versions of the CRDs must not be overwritten.
function broughtKinds({ primary, dependents }: ControllerModel): ResourceModel[] {
  return [primary, ...dependents.filter((each) => !isKubernetes(each)).flatMap(kindsOf)];
}

function crdFileOf({ plural, group }: ResourceModel): string {
  return `${FOLDER}crds/${plural}.${group}.yaml`;
}

function crdFiles(path: string, kind: ResourceModel, parts: PartMemory): OutputFile[] {
  const print = () => {
    const { crd } = kind;
    return crd === undefined
      ? []
      : [fileOf(path, { documents: [new Document(crd, { aliasDuplicateObjects: false })] })];
  };
  return kind.digest === undefined ? print() : recallFiles(["manifest", kind.digest], parts, print);
}
