import type { Logger } from "./base/logger.js";
import type { ApiClient } from "./cluster/api-client.js";
import type { SharedInformers } from "./cluster/shared-informers.js";
import { ControllerSources } from "./events/controller-sources.js";
import type { ControllerDefinition } from "./reconcile/controller-definition.js";
import { Controller } from "./reconcile/controller.js";
import { PrimaryReconciler } from "./reconcile/primary-reconciler.js";
import type { ReconcileObserver } from "./reconcile/reconcile-event.js";
import { Writer } from "./write/apply.js";

/** What the controllers of an operator share. */
export interface SharedParts {
  readonly client: ApiClient;
  readonly informers: SharedInformers;
  readonly logger: Logger;
  readonly observer?: ReconcileObserver | undefined;
  /** The field managers of all controllers, whose entries in managed fields are kept. */
  readonly fieldManagers: readonly string[];
}

/** Returns under which name a controller writes. */
export function fieldManagerOf({ fieldManager, name }: ControllerDefinition): string {
  return fieldManager ?? name;
}

/** A controller with everything that it watches, from one start to one stop. */
export class RunningController {
  readonly definition: ControllerDefinition;
  readonly sources: ControllerSources;
  readonly #controller: Controller;

  constructor(definition: ControllerDefinition, { client, informers, logger, observer, fieldManagers }: SharedParts) {
    const { workflow, namespaces, labelSelector } = definition;
    this.definition = definition;
    const fieldManager = fieldManagerOf(definition);
    this.sources = new ControllerSources({
      controller: definition.name,
      primary: workflow.primary,
      dependents: workflow.dependents.map((dependent) => ({
        ...dependent,
        isActivatedLater: dependent.activationCondition !== undefined,
      })),
      namespaces,
      labelSelector,
      fieldManager,
      client,
      informers,
      logger,
      onPrimaryChange: (change) => this.#controller.onPrimaryChange(change),
      onSecondaryChange: (primaries, cause) => this.#controller.onSecondaryChange(primaries, cause),
    });
    const { primaries, dependents } = this.sources;
    const writer = new Writer(client, fieldManager, fieldManagers);
    const runner = new PrimaryReconciler(definition, { client, primaries, sources: dependents, writer });
    this.#controller = new Controller(definition, { primaries, runner, logger, observer });
  }

  /** Starts all that it watches; resolves when the state is known. */
  startSources(): Promise<void> {
    return this.sources.start();
  }

  /** Begins to reconcile. */
  startReconciling(): void {
    this.#controller.start();
  }

  /** Finishes the reconciles under way, for `deadlineMs` at most; tells whether all of them did. */
  stopReconciling(deadlineMs: number): Promise<boolean> {
    return this.#controller.stop(deadlineMs);
  }

  /** Stops all that it watches. */
  stopSources(): Promise<void> {
    return this.sources.stop();
  }
}
