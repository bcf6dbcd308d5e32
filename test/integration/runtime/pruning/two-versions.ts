// Two versions of an operator one after the other, for the tests of what the second does about the first.
import { waitFor } from "#apiserver/wait-for.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import type { KubernetesDependent, WorkflowDefinition } from "#runtime/workflow/workflow-definition.js";
import { configOf, dependentController } from "../dependents/sample-dependents.js";
import { Sample, Secret } from "../sample-kind.js";
import { spacesOf, type Space, type TestOperator } from "../space.js";

/** A namespace with the controllers of Kubernetes. */
export const openSpace = spacesOf({ simulate: true });
/** A finalizer that keeps an object until the test takes it off. */
export const HOLD = "example.com/hold";
/** What a test creates as its primary. */
export const sample = (value = "first") => ({ metadata: { name: "one" }, spec: { value } });

/** A Secret named after the primary and the dependent. */
export function secretOf(name: string, rest: Partial<KubernetesDependent> = {}): KubernetesDependent {
  const desired = ({ primary }: { primary: Sample }) => ({
    metadata: { name: `${primary.metadata.name}-${name}` },
    data: { value: Buffer.from(primary.spec.value ?? "").toString("base64") },
  });
  return { ...configOf(name), resource: Secret.definition, desired, ...rest };
}

/** Says that Secrets of these dependents may be left. */
export const removedSecrets = (...names: readonly string[]) => ({
  removed: Object.fromEntries(
    names.map((name) => [name, { resource: Secret.definition, deletion: "ordered" as const }]),
  ),
});

/** Waits until a reconcile has left the workflow ready, and nothing happens any more. */
export async function untilReady(running: TestOperator): Promise<void> {
  await waitFor("all is made", () => running.events.at(-1)?.workflow?.isReady === true);
  await running.quiet();
}

/** Runs a first version until it has made its dependents, and stops it. */
export async function runFirst(
  space: Space,
  dependents: readonly KubernetesDependent[],
  primary = sample(),
): Promise<void> {
  await using running = await space.start([dependentController(dependents)]);
  await space.create(Sample, primary);
  await untilReady(running);
}

/** Starts the version after it. */
export function startSecond(
  space: Space,
  dependents: readonly KubernetesDependent[],
  workflow: Partial<WorkflowDefinition> = {},
  rest: Pick<ControllerDefinition, "workflows"> = {},
) {
  return space.start([dependentController(dependents, { workflow, ...rest })]);
}
