// Two versions of an operator one after the other, for the tests of what the second does about the first.
import { waitFor } from "#runtime/base/wait-for.js";
import type { KubernetesDependent, WorkflowDefinition } from "#runtime/workflow/definition/workflow-definition.js";
import { configOf, dependentController } from "../josdk/sample-dependents.js";
import { Sample, Secret } from "../josdk/sample-kind.js";
import { spacesOf, type Space } from "../josdk/space.js";

/** A namespace with the controllers of Kubernetes. */
export const openSpace = spacesOf({ simulate: true });
/** Where a primary notes its dependents. */
export const ANNOTATION = "inventory.gen-operator.dev/sample";
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
  return { ...configOf(name), resource: Secret.definition, desired: desired as never, ...rest };
}

/** The names that a primary notes. */
export async function notedIn(space: Space, name = "one"): Promise<string[]> {
  const text = (await space.get(Sample, name))?.metadata.annotations?.[ANNOTATION];
  return text === undefined ? [] : (JSON.parse(text) as { name: string }[]).map(({ name }) => name);
}

/** Runs a first version until it has made its dependents, and stops it. */
export async function runFirst(space: Space, dependents: readonly KubernetesDependent[]): Promise<void> {
  await using running = await space.start([dependentController(dependents)]);
  await space.create(Sample, sample());
  await waitFor("all is made", () => running.events.at(-1)?.workflow?.isReady === true);
  await running.quiet();
}

/** Starts the version after it. */
export function startSecond(
  space: Space,
  dependents: readonly KubernetesDependent[],
  workflow: Partial<WorkflowDefinition> = {},
) {
  return space.start([dependentController(dependents, { workflow })]);
}
