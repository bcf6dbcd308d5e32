import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DependentModel, ProjectModel, ResourceModel } from "#generator/model/project-model.js";
import { emitProject } from "#generator/output/emit-project.js";
import type { OutputFile } from "#generator/output/output-file.js";
import { repositoryRoot } from "./repository.js";
import { builtinResource, resourcesOfCrds } from "./resource-models.js";

/** A sample operator below `fixtures/samples`: an example, a golden and a program at once. */
export interface Sample {
  readonly name: string;
  readonly folder: string;
  /** Generates the sample into memory. */
  generate(): Promise<OutputFile[]>;
}

/** Returns all samples. */
export function listSamples(): Sample[] {
  const folder = join(repositoryRoot, "fixtures/samples/webpage");
  return [{ name: "webpage", folder, generate: () => emitProject(webPageProject(folder)) }];
}

/** Reads the primary kind of a sample. */
export function readSamplePrimary(folder: string): ResourceModel {
  const crdFile = "crds/webpages.example.com.yaml";
  const [primary] = resourcesOfCrds(readFileSync(join(folder, crdFile), "utf8"));
  if (primary === undefined) throw new Error(`${crdFile} has no CRD`);
  return { ...primary, crdFile };
}

function webPageProject(folder: string): ProjectModel {
  const webPage = readSamplePrimary(folder);
  const configMap = builtinResource("", "v1", "ConfigMap");
  const service = builtinResource("", "v1", "Service");
  const deployment = builtinResource("apps", "v1", "Deployment");
  const ingress = builtinResource("networking.k8s.io", "v1", "Ingress");
  const dependents = [
    dependentOf("configMap", configMap),
    {
      ...dependentOf("deployment", deployment, ["configMap"]),
      conditions: { readyPostcondition: { kind: "builtin", name: "ready" } },
    },
    { ...dependentOf("service", service, ["deployment"]), waitsFor: ["configMap", "deployment"] },
    {
      ...dependentOf("ingress", ingress, ["service"]),
      waitsFor: ["configMap", "deployment", "service"],
      conditions: {
        reconcilePrecondition: {
          kind: "when",
          expression: "primary.spec.exposed === true",
          names: ["primary"],
          position: { file: "workflow.yaml", line: 1, column: 1 },
        },
      },
    },
  ] as const satisfies readonly DependentModel[];
  return {
    resources: [configMap, service, deployment, webPage, ingress],
    controllers: [{ name: "webpage", primary: webPage, dependents, settings: {}, specFile: "workflow.yaml" }],
  };
}

/** Returns a dependent that waits for what it depends on. */
export function dependentOf(name: string, resource: ResourceModel, dependsOn: readonly string[] = []): DependentModel {
  return { name, resource, dependsOn, waitsFor: dependsOn, isGarbageCollected: true, conditions: {} };
}
