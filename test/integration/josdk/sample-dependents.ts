// Dependents of Samples, as data: what a test states of one is what matters to it.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#runtime/base/wait-for.js";
import type { ControllerOptions } from "#runtime/codegen/define-controller.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import type { KubernetesDependent, WorkflowDefinition } from "#runtime/workflow/workflow-definition.js";
import type { DependentOutcome } from "#runtime/workflow/workflow-result.js";
import { ConfigMap, Sample, sampleController, type SampleReconciler } from "./sample-kind.js";
import type { TestOperator } from "./space.js";

/** What `desired` and the conditions of these dependents are called with. */
export interface SampleArguments {
  readonly primary: Sample;
  readonly secondary: { readonly [name: string]: KubernetesObject | undefined };
}

type Stated = Partial<Omit<KubernetesDependent, "desired" | "matcher">> & {
  desired?: ((args: SampleArguments) => unknown) | undefined;
  matcher?: unknown;
};

/** Builds a dependent: a ConfigMap named after the primary and the dependent, with the value of the primary. */
export function configOf(name: string, rest: Stated = {}): KubernetesDependent {
  const desired = ({ primary }: SampleArguments) => ({
    metadata: { name: `${primary.metadata.name}-${name}` },
    data: { value: primary.spec.value ?? "none" },
  });
  const dependent = { name, resource: ConfigMap.definition, dependsOn: [], isGarbageCollected: true, desired, ...rest };
  if (rest.mode === "readOnly" && rest.desired === undefined) delete (dependent as { desired?: unknown }).desired;
  return dependent as KubernetesDependent;
}

/** A controller of Samples with these dependents; its reconciler does nothing unless `rest` has one. */
export function dependentController(
  dependents: readonly KubernetesDependent[],
  {
    reconciler = { reconcile: () => {} },
    workflow,
    ...rest
  }: Partial<Omit<ControllerOptions<Sample, object, object>, "workflow">> & {
    reconciler?: SampleReconciler;
    workflow?: Partial<WorkflowDefinition>;
  } = {},
): ControllerDefinition {
  return sampleController(reconciler, {
    workflow: { primary: Sample.definition, dependents, ...workflow } as never,
    ...(rest as object),
  });
}

/** What became of a dependent in the last reconcile. */
export function outcomeOf({ events }: TestOperator, dependent: string): DependentOutcome | undefined {
  return events.at(-1)?.workflow?.dependents[dependent];
}

/** Waits until a reconcile leaves a dependent in such a state, and returns that. */
export function untilOutcome(
  running: TestOperator,
  dependent: string,
  kind: DependentOutcome["kind"],
): Promise<DependentOutcome> {
  return waitFor(`dependent "${dependent}" is ${kind}`, () => {
    const outcome = outcomeOf(running, dependent);
    return outcome?.kind === kind ? outcome : undefined;
  });
}

/** The requests that changed something: method, kind and name, status. */
export function writesOf({ requests }: Pick<TestOperator, "requests">): string[] {
  return requests
    .filter((request) => !request.startsWith("GET"))
    .map((request) => {
      const [method, path = "", status] = request.split(" ");
      return `${method} ${path.split("/").slice(-2).join("/")} ${status}`;
    });
}
