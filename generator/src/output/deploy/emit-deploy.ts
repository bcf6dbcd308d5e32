// What runs an operator in a cluster, as far as the graph decides it; the rest is the user's.
import { Document } from "yaml";
import { isRecord } from "../../model/schema/raw-schema.js";
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
  /**
   * Whether the project installs its CRDs by a kustomization of their own. Default: false, as in projects of earlier versions. Their
   * kustomization keeps the CRDs, as whatever prunes would delete them with all custom resources.
   */
  readonly hasCrdsFolder?: boolean;
}

/** Emits the CRDs that the operator brings, what it may do, what nobody else may, and the kustomization that has all of it. */
export function emitDeploy(
  model: ProjectModel,
  { parts = new RunParts(), outlines, hasCrdsFolder = false }: DeployOptions = {},
): OutputFile[] {
  const kinds = new Map(model.controllers.flatMap(broughtKinds).map((kind) => [crdFileOf(kind), kind]));
  const crds = [...kinds].flatMap(([path, kind]) => crdFiles(path, kind, parts));
  const definitions = crds.map(({ path }) => path.slice(FOLDER.length)).sort();
  const resources = [...(hasCrdsFolder ? [] : definitions), "rbac.yaml", "admission.yaml"];
  const emit = () => [
    ...emitRbac(model),
    emitAdmission(model),
    emitKustomization(FOLDER, resources),
    emitKustomization(
      `${FOLDER}crds/`,
      definitions.map((path) => path.slice("crds/".length)),
    ),
  ];
  if (outlines === undefined) return [...crds, ...emit()];
  const key = digestOf(JSON.stringify([model.packageName, resources, definitions, outlines]));
  return [...crds, ...recallFiles(["deploy", key], parts, emit)];
}

function emitKustomization(folder: string, resources: readonly string[]): OutputFile {
  const document = new Document({
    apiVersion: "kustomize.config.k8s.io/v1beta1",
    kind: "Kustomization",
    resources,
  });
  return fileOf(`${folder}kustomization.yaml`, { documents: [document] });
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
      : [fileOf(path, { documents: [new Document(withoutPruning(crd), { aliasDuplicateObjects: false })] })];
  };
  return kind.digest === undefined ? print() : recallFiles(["manifest", kind.digest], parts, print);
}

type Json = { readonly [field: string]: unknown };

const ARGO_CD = "argocd.argoproj.io/sync-options";
const FLUX = "kustomize.toolkit.fluxcd.io/prune";

// Deleting a CRD deletes all custom resources of its kind. Annotations that the user sets take precedence.
function withoutPruning(crd: object): object {
  const metadata = recordIn({ ...crd }, "metadata");
  const annotations = recordIn(metadata, "annotations");
  const stated = typeof annotations[ARGO_CD] === "string" ? annotations[ARGO_CD].split(",") : [];
  const added = ["Prune=false", "Delete=false"].filter(
    (option) => !stated.some((each) => each.trim().startsWith(option.slice(0, option.indexOf("=") + 1))),
  );
  const kept = { [FLUX]: "disabled", ...annotations, [ARGO_CD]: [...stated, ...added].join(",") };
  return { ...crd, metadata: { ...metadata, annotations: kept } };
}

function recordIn(object: Json, field: string): Json {
  const value = object[field];
  return isRecord(value) ? value : {};
}
