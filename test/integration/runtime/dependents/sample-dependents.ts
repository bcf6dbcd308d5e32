// Dependents of Samples, as data: what a test states of one is what matters to it.
import type { KubernetesObject, ResourceClass } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { ControllerOptions } from "#runtime/api/define-controller.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import type {
  ExternalDependent,
  KubernetesDependent,
  WorkflowDefinition,
} from "#runtime/workflow/workflow-definition.js";
import type { DependentOutcome } from "#runtime/workflow/run.js";
import { configMapsWith, type Stated as StatedOf, type StatedArguments } from "../../../support/runtime/config-maps.js";
import { assert } from "../../../support/suite.js";
import { ConfigMap, Sample, sampleController, type SampleReconciler } from "../sample-kind.js";
import type { Space, TestOperator } from "../space.js";

/** What `desired` and the conditions of these dependents are called with. */
export type SampleArguments = StatedArguments<Sample>;

/** What a test states of a dependent. */
export type Stated = StatedOf<Sample>;

/** Builds a dependent: a ConfigMap named after the primary and the dependent, with the value of the primary. */
export const configOf = configMapsWith<Sample>(({ spec: { value = "none" } }) => ({ value }));

/** As many ConfigMaps as the primary says, each with its value. */
export function bulkOf(name: string, rest: Stated = {}): KubernetesDependent {
  return configOf(name, {
    bulk: {},
    desired: ({ primary: { metadata, spec } }) =>
      Object.fromEntries(
        Array.from({ length: spec.number ?? 0 }, (_, index) => [
          `item-${index}`,
          { metadata: { name: `${metadata.name}-${name}-${index}` }, data: { value: spec.value ?? "none" } },
        ]),
      ),
    ...rest,
  });
}

/** The values of the ConfigMaps of the tests, by their names. */
export async function valuesIn(space: Space): Promise<{ [name: string]: string | undefined }> {
  const configMaps = await space.list(ConfigMap);
  return Object.fromEntries(configMaps.map(({ metadata, data }) => [metadata.name, data?.["value"]]));
}

/** What `valuesIn` returns when as many items of a bulk dependent are there. */
export const wantedOf = (name: string, number: number, value = "first") =>
  Object.fromEntries(Array.from({ length: number }, (_, index) => [`one-${name}-${index}`, value]));

/** Waits until the ConfigMaps of the tests have these values, and none else is there. */
export async function untilValues(space: Space, expected: { [name: string]: string }): Promise<void> {
  let last: object = {};
  const isReached = async () => JSON.stringify((last = await valuesIn(space))) === JSON.stringify(expected);
  await waitFor("the objects are as wanted", isReached).catch(() => assert.equal(last, expected));
}

/** A controller of Samples with these dependents; its reconciler does nothing unless `rest` has one. */
export function dependentController(
  dependents: readonly (KubernetesDependent | ExternalDependent)[],
  {
    reconciler = { reconcile: () => {} },
    workflow,
    ...rest
  }: Partial<Omit<ControllerOptions<Sample, object, object>, "workflow" | "reconciler">> & {
    reconciler?: SampleReconciler<SampleArguments["secondary"]>;
    workflow?: Partial<WorkflowDefinition>;
  } = {},
): ControllerDefinition {
  return sampleController(reconciler, {
    workflow: { primary: Sample.definition, dependents, ...workflow },
    ...(rest as object),
  });
}

/** What became of a dependent in the last reconcile. */
export function outcomeOf({ events }: TestOperator, dependent: string): DependentOutcome | undefined {
  return events.at(-1)?.workflow?.dependents[dependent];
}

// What the next reconcile ends: it may have come and gone between two looks.
const PASSING = new Set<DependentOutcome["kind"]>(["created", "updated", "deleted", "failed"]);

/** How many events of an operator were looked at when a dependent was last waited for. */
const looked = new WeakMap<TestOperator, Map<string, number>>();

/**
 * Waits until a reconcile leaves a dependent in such a state, and returns that: the last reconcile, or, for what passes, any
 * reconcile since the dependent was last waited for.
 */
export function untilOutcome(
  running: TestOperator,
  dependent: string,
  kind: DependentOutcome["kind"],
): Promise<DependentOutcome> {
  const since = looked.get(running) ?? new Map<string, number>();
  looked.set(running, since);
  const { events } = running;
  return waitFor(`dependent "${dependent}" is ${kind}`, () => {
    const first = PASSING.has(kind) ? (since.get(dependent) ?? 0) : Math.max(0, events.length - 1);
    const index = events.findIndex((event, at) => at >= first && event.workflow?.dependents[dependent]?.kind === kind);
    if (index < 0) return undefined;
    since.set(dependent, index + 1);
    return events[index]?.workflow?.dependents[dependent];
  });
}

/** How long a test may take that waits for the garbage collector. */
export const COLLECTING = { timeoutMs: 60_000 };

/** Waits until the garbage collector has deleted an object; that of Kubernetes looks for new kinds of owners every 30 s. */
export async function untilCollected<R extends KubernetesObject>(
  { get }: Pick<Space, "get">,
  kind: ResourceClass<R>,
  name: string,
): Promise<void> {
  const isGone = async () => (await get(kind, name)) === undefined;
  await waitFor(`${kind.definition.kind} ${name} is collected`, isGone, { timeoutMs: 45_000 });
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
