import { isApiError } from "../base/errors.js";
import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import { messageOf, type Logger } from "../base/logger.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import { inventoryAnnotationOf } from "../base/primary-link.js";
import type { DriverRun } from "../workflow/dependents/driver.js";
import {
  entryKeyOf,
  formatInventory,
  inventoryOf,
  parseInventory,
  removedOf,
  withoutEntries,
  type InventoryEntry,
} from "../workflow/inventory.js";
import { pruneWorkflow, type RemovedDrivers, type RemovedEntry } from "../workflow/prune.js";
import type { RunOptions } from "../workflow/run.js";
import type { WorkflowDefinition } from "../workflow/definition/workflow-definition.js";
import { withAddition, type WorkflowResult } from "../workflow/workflow-result.js";
import { planMergePatch } from "../write/plan.js";
import type { PrimaryWrite } from "./primary-write.js";

/** With what the inventories of the primaries of one controller are kept. */
export interface InventoryKeeperOptions {
  readonly controller: string;
  readonly workflow: WorkflowDefinition;
  /** The other workflows of the controller. What they have is not noted, and was not removed either. */
  readonly others?: readonly WorkflowDefinition[];
  readonly write: Pick<PrimaryWrite, "target" | "writer">;
  readonly removedDrivers: RemovedDrivers;
}

/** Notes at every primary which dependents it has, and deletes what is left of those that the workflow no longer has. */
export class InventoryKeeper {
  readonly #options: InventoryKeeperOptions;
  readonly #annotation: string;
  readonly #isNoted: boolean;
  readonly #current: readonly InventoryEntry[];
  /** What any workflow of the controller has. */
  readonly #known: readonly InventoryEntry[];
  /** The text of an inventory without anything that is left. */
  readonly #currentText: string | undefined;
  readonly #declared: readonly InventoryEntry[];
  /** Most primaries note the same. */
  #lastParsed: { readonly text: string | undefined; readonly entries: readonly InventoryEntry[] } = {
    text: undefined,
    entries: [],
  };
  readonly #warned = new Set<string>();
  /** What is looked for because a primary notes it, by primary. */
  readonly #opened = new Map<ObjectKey, readonly RemovedEntry[]>();

  constructor(options: InventoryKeeperOptions) {
    const { workflow, controller, others = [] } = options;
    this.#options = options;
    this.#annotation = inventoryAnnotationOf(controller);
    this.#isNoted = workflow.inventory !== false;
    this.#current = inventoryOf(workflow);
    this.#known = [workflow, ...others].flatMap(inventoryOf);
    this.#currentText = formatInventory(this.#current);
    this.#declared = removedOf(workflow);
  }

  /**
   * Notes what the workflow has, before the first object is made; returns the new state of the primary, or undefined if it is gone. What
   * the primary noted before is kept until nothing is left of it.
   */
  async note(primary: DecodedResource, logger: Logger): Promise<DecodedResource | undefined> {
    const text = this.#textOf(primary.object);
    if (!this.#isNoted || text === this.#currentText) return primary;
    return this.#write(primary, this.#textWith(this.#leftOf(text)), logger);
  }

  /** Returns the annotations that `note` would write, for a request that is made before anyway. */
  annotationsFor(primary: KubernetesObject): { readonly [name: string]: string } {
    const text = this.#textOf(primary);
    const wanted = this.#isNoted ? this.#textWith(this.#leftOf(text)) : undefined;
    return wanted === undefined || wanted === text ? {} : { [this.#annotation]: wanted };
  }

  /** Deletes what a run leaves, and completes its result by that. */
  async prune(options: RunOptions, result: WorkflowResult, isCleanup: boolean): Promise<WorkflowResult> {
    const { primary, context, definition, namespaces, plan, drivers } = options;
    const { removedDrivers } = this.#options;
    const removed = this.#removedFrom(primary);
    if (!this.#isNoted && removed.length === 0) return result;
    const key = keyOf(primary.metadata);
    const noted = removed.filter(({ isDeclared }) => !isDeclared);
    if (noted.length > 0) this.#opened.set(key, noted);
    const run = { primary, context, definition, namespaces, secondary: {} } as unknown;
    const what = { plan, drivers, run: run as DriverRun, result, isCleanup, findsLeftovers: this.#isNoted, removed };
    const pruned = await pruneWorkflow({ ...what, removedDrivers });
    this.#warn(pruned.removed, context.logger);
    if (!isCleanup) await this.#shrink(primary, pruned.left, context.logger);
    if (pruned.left.length === 0) this.#opened.delete(key);
    if (removed.length === 0 && pruned.errors.size === 0 && pruned.isGone) return result;
    return withAddition(result, {
      ...(removed.length === 0 ? {} : { removed: pruned.removed }),
      errors: pruned.errors,
      isReady: pruned.isGone || !isCleanup,
    });
  }

  /** Forgets a primary that is gone. */
  release(key: ObjectKey): void {
    for (const removed of this.#opened.get(key) ?? []) this.#options.removedDrivers.close(removed, key);
    this.#opened.delete(key);
  }

  #removedFrom(primary: KubernetesObject): readonly RemovedEntry[] {
    const { removed = {} } = this.#options.workflow;
    const left = this.#isNoted ? this.#leftOf(this.#textOf(primary)) : [];
    if (left.length === 0 && this.#declared.length === 0) return [];
    const declared = new Set(this.#declared.map(entryKeyOf));
    return [...left, ...withoutEntries(this.#declared, left)].map((entry) => {
      const isDeclared = declared.has(entryKeyOf(entry));
      return { entry, isDeclared, policy: isDeclared ? removed[entry.name]!.policy : "delete" };
    });
  }

  // What a primary notes and the workflow no longer has.
  #leftOf(text: string | undefined): readonly InventoryEntry[] {
    if (text === undefined || text === this.#currentText) return [];
    if (this.#lastParsed.text !== text)
      this.#lastParsed = { text, entries: withoutEntries(parseInventory(text), this.#known) };
    return this.#lastParsed.entries;
  }

  #textOf({ metadata }: KubernetesObject): string | undefined {
    return metadata.annotations?.[this.#annotation];
  }

  #textWith(left: readonly InventoryEntry[]): string | undefined {
    return formatInventory([...this.#current, ...left]);
  }

  async #shrink(primary: KubernetesObject, left: readonly InventoryEntry[], logger: Logger): Promise<void> {
    const latest = this.#options.write.target.cache.get(keyOf(primary.metadata));
    if (!this.#isNoted || latest === undefined || latest.object.metadata.uid !== primary.metadata.uid) return;
    const noted = this.#leftOf(this.#textOf(latest.object));
    if (noted.length === 0) return;
    const keys = new Set(left.map(entryKeyOf));
    const still = noted.filter((entry) => keys.has(entryKeyOf(entry)));
    if (still.length < noted.length) await this.#write(latest, this.#textWith(still), logger);
  }

  /** Writes the annotation and nothing else, for this uid alone; by a merge patch, so that no apply of the primary takes it away. */
  async #write(
    primary: DecodedResource,
    text: string | undefined,
    logger: Logger,
  ): Promise<DecodedResource | undefined> {
    const before = primary.object;
    if (this.#textOf(before) === text) return primary;
    const { target, writer } = this.#options.write;
    const { sender } = writer;
    const { definition } = target;
    const { name, namespace, uid } = before.metadata;
    const metadata = { name, namespace, uid, annotations: { [this.#annotation]: text ?? null } };
    const plan = planMergePatch(definition, { metadata } as never, false);
    try {
      const sent = await sender.send({ target, plan, before: primary, isUrgent: true });
      return sent.kind === "postponed" ? primary : sent.entry;
    } catch (error) {
      if (isApiError(error, 404)) return undefined;
      // Another one has its name, or the server gave up against others who write it.
      if (isApiError(error, 409) && (await sender.read(target, before.metadata))?.object.metadata.uid !== uid)
        return undefined;
      if (!isApiError(error, 403)) throw error;
      const advice = `grant patch on ${definition.plural}, or state inventory: false in the workflow`;
      const loss = "what a later version no longer has will not be found";
      this.#warnOnce(
        logger,
        `the inventory cannot be noted at its primary, so that ${loss}; ${advice}: ${messageOf(error)}`,
      );
      return primary;
    }
  }

  #warn(removed: WorkflowResult["removed"] & object, logger: Logger): void {
    for (const [name, outcome] of Object.entries(removed))
      if (outcome.kind === "failed")
        this.#warnOnce(
          logger,
          `${messageOf(outcome.error)}; state what becomes of it as removed.${name} in the workflow, so that the operator gets the rights ` +
            "for it",
        );
  }

  #warnOnce(logger: Logger, message: string): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    logger.warn({}, message);
  }
}
