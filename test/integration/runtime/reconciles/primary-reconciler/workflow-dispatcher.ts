// A dispatcher whose dependents are in memory; the primaries are on a server.
import type { PrimaryOutcome } from "#runtime/queue/controller.js";
import type { Context } from "#runtime/workflow/context.js";
import type { DependentDefinition, WorkflowDefinition } from "#runtime/workflow/workflow-definition.js";
import type { WorkflowResult } from "#runtime/workflow/run.js";
import {
  createFakeReconciler,
  definitionOf,
  FakeCluster,
  type FakeDependent,
} from "../../../../unit/runtime/workflow/fake-cluster.js";
import { createDispatcher, FINALIZER, markForDeletion, Page, type DispatcherOptions } from "./page-dispatcher.js";

let count = 0;

/** What the functions of these tests look at. */
export interface Args {
  readonly context: Context & { readonly workflow: NonNullable<Context["workflow"]> };
  readonly secondary: { readonly [name: string]: unknown };
  readonly workflow?: WorkflowResult;
}

type Options = Omit<DispatcherOptions, "dependents" | "workflows"> & {
  readonly dependents?: readonly FakeDependent[];
  readonly workflows?: { readonly [name: string]: readonly FakeDependent[] };
};

/** A dispatcher whose dependents are in memory. */
export async function createWorkflowDispatcher({ dependents = [{ name: "a" }], workflows = {}, ...options }: Options) {
  const cluster = new FakeCluster();
  const all = [...dependents, ...Object.values(workflows).flat()];
  const workflowOf = (each: readonly FakeDependent[]): WorkflowDefinition => ({
    primary: Page.definition,
    dependents: each.map(definitionOf) as DependentDefinition[],
  });
  const others = Object.fromEntries(Object.entries(workflows).map(([name, each]) => [name, workflowOf(each)]));
  const reconcilerOf = (dependent: DependentDefinition) =>
    createFakeReconciler(
      all.find(({ name }) => name === dependent.name)!,
      cluster,
    );
  const dispatcher = await createDispatcher({
    ...options,
    dependents: workflowOf(dependents).dependents,
    workflows: others,
    dependencies: { reconcilerOf },
  });
  const names = { next: 0 };
  const title = `runs-${++count}`;
  return {
    cluster,
    dispatcher,
    /** The workflows as the controller was given them. */
    workflows: others,
    async reconcile(finalizers: string[] = [FINALIZER]): Promise<PrimaryOutcome> {
      const entry = await dispatcher.create(`${title}-${++names.next}`, { metadata: { finalizers } });
      return dispatcher.run(entry);
    },
    async cleanUp(): Promise<PrimaryOutcome & { readonly isKept: boolean }> {
      const name = `${title}-${++names.next}`;
      await dispatcher.create(name, { metadata: { finalizers: [FINALIZER] } });
      const outcome = await dispatcher.run(await markForDeletion(dispatcher, name));
      return { ...outcome, isKept: (await dispatcher.read(name))?.metadata.finalizers?.includes(FINALIZER) === true };
    },
  };
}
