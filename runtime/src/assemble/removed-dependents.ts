import { findError, type ApiError } from "../base/errors.js";
import type { ObjectKey } from "../base/kubernetes-object.js";
import { byDefaultAnnotations } from "../sources/mappers.js";
import { KindSource } from "../sources/kind/kind-source.js";
import type { ControllerDefinition } from "../reconcile/controller-definition.js";
import type { DriverParts } from "./dependent-drivers.js";
import type { DependentDriver } from "../workflow/dependents/driver.js";
import { definitionOf, entryKeyOf, isOfKind, type InventoryEntry } from "../workflow/inventory.js";
import { KubernetesDriver, type DependentSource } from "../workflow/dependents/kubernetes-driver.js";
import type { RemovedDrivers, RemovedEntry } from "../workflow/prune.js";
import { isKubernetes, type KubernetesDependent } from "../workflow/definition/workflow-definition.js";
import { Writer } from "../write/apply.js";

interface Opened {
  readonly driver: Promise<DependentDriver | undefined>;
  /** The primaries of which something may be left. */
  readonly users: Set<ObjectKey>;
  /** The event source of its own, which ends with the last user. */
  readonly source?: string;
}

const NOT_SERVED = new Error("its kind is not served");

// A watch that failed is not begun again by every reconcile.
const TRY_AGAIN_AFTER_MS = 10_000;

/**
 * The drivers of what a controller no longer has. Each needs to know what is left: from the watch of a dependent that looks at the same
 * objects, or from one of its own, of metadata alone, as long as a primary notes that something may be left.
 */
export class RemovedDependents implements RemovedDrivers {
  readonly #definition: ControllerDefinition;
  readonly #parts: DriverParts;
  readonly #opened = new Map<string, Opened>();
  readonly #failures = new Map<string, { readonly at: number; readonly error: unknown }>();

  constructor(definition: ControllerDefinition, parts: DriverParts) {
    this.#definition = definition;
    this.#parts = parts;
  }

  async open(removed: RemovedEntry, primary: ObjectKey): Promise<DependentDriver | undefined> {
    const key = entryKeyOf(removed.entry);
    const failure = this.#failures.get(key);
    if (failure !== undefined && performance.now() - failure.at < TRY_AGAIN_AFTER_MS) {
      if (isNotServed(failure.error)) return undefined;
      throw failure.error;
    }
    let opened = this.#opened.get(key);
    if (opened === undefined) this.#opened.set(key, (opened = this.#begin(removed)));
    if (!removed.isDeclared) opened.users.add(primary);
    try {
      return await opened.driver;
    } catch (error) {
      await this.#end(key, opened);
      this.#failures.set(key, { at: performance.now(), error });
      // A kind that does not exist has no objects.
      if (isNotServed(error)) return undefined;
      throw error;
    }
  }

  close({ entry, isDeclared }: RemovedEntry, primary: ObjectKey): void {
    const key = entryKeyOf(entry);
    const opened = this.#opened.get(key);
    opened?.users.delete(primary);
    // What the workflow says is looked for at every primary.
    if (opened !== undefined && opened.users.size === 0 && !isDeclared) void this.#end(key, opened);
  }

  #begin({ entry, policy }: RemovedEntry): Opened {
    const users = new Set<ObjectKey>();
    const shared = this.#sharedSource(entry);
    if (shared !== undefined) return { users, driver: Promise.resolve(this.#driverOf(entry, policy, shared)) };
    const name = `removed ${entry.name} (${entry.plural})`;
    const start = async () => {
      // Nobody has to install what is looked for only to be removed, so no watch of it may complain.
      if (!(await this.#clientOf(entry).isServed(definitionOf(entry)))) throw NOT_SERVED;
      const source = this.#createSource(name, entry);
      await this.#parts.sources.register(source);
      // After the stop nothing is started any more, and what is not known must not be taken for gone.
      if (source.health.status !== "healthy") throw new Error(`the watch of ${entry.plural} does not run`);
      const nothing = async () => {};
      return this.#driverOf(entry, policy, { cache: source.view, activate: nothing, deactivate: nothing });
    };
    return { users, source: name, driver: start() };
  }

  async #end(key: string, opened: Opened): Promise<void> {
    if (this.#opened.get(key) !== opened) return;
    this.#opened.delete(key);
    if (opened.source !== undefined) await this.#parts.sources.deregister(opened.source);
  }

  #createSource(name: string, entry: InventoryEntry): KindSource {
    const { primary } = this.#definition.workflow;
    const connection = this.#clientOf(entry).connection;
    const isElsewhere = entry.cluster !== undefined;
    return new KindSource({
      name,
      request: {
        definition: definitionOf(entry),
        isMetadataOnly: true,
        connection: isElsewhere ? connection : undefined,
      },
      namespaces: entry.namespace === undefined ? "sameAsController" : [entry.namespace],
      isInternal: true,
      mapper: isElsewhere ? byDefaultAnnotations({ definition: primary }) : undefined,
    });
  }

  // A dependent of the same kind that sees all objects that are meant.
  #sharedSource(entry: InventoryEntry): DependentSource | undefined {
    const { dependents } = this.#definition.workflow;
    const found = dependents.filter(isKubernetes).find((each) => seesAllOf(each, entry));
    return found && this.#parts.sources.dependents.get(found.name);
  }

  #driverOf(entry: InventoryEntry, policy: RemovedEntry["policy"], source: DependentSource): DependentDriver {
    const { fieldManager = this.#definition.name, name: controller } = this.#definition;
    const client = () => this.#clientOf(entry);
    const definition: KubernetesDependent = {
      name: entry.name,
      resource: source.cache.definition,
      dependsOn: [],
      isGarbageCollected: false,
      onDelete: policy === "orphan" ? "orphan" : "delete",
      usesServerSideApply: entry.put !== true,
    };
    const edges = { dependsOn: [], dependents: [], itemsDependOn: [], itemDependents: [] };
    const node = { definition, ...edges };
    const writer = new Writer(client, fieldManager, this.#parts.fieldManagers);
    return new KubernetesDriver({ node, source, writer, client, controller });
  }

  #clientOf({ cluster }: InventoryEntry) {
    const { client, clusters } = this.#parts;
    if (cluster === undefined) return client;
    const found = clusters?.get(cluster);
    if (found === undefined) throw new Error(`it lived in cluster "${cluster}", which the operator does not know`);
    return found;
  }
}

function seesAllOf(dependent: KubernetesDependent, entry: InventoryEntry): boolean {
  const { resource, cluster, namespace, labelSelector, fieldSelector, eventSource, activationCondition } = dependent;
  const isWhole = [labelSelector, fieldSelector, eventSource, activationCondition, dependent.filters].every(
    (limit) => limit === undefined,
  );
  return isWhole && cluster === entry.cluster && namespace === entry.namespace && isOfKind(entry, resource);
}

function isNotServed(error: unknown): boolean {
  return error === NOT_SERVED || findError<ApiError>(error, "ApiError")?.code === 404;
}
