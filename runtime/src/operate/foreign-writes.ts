import type { EventSink } from "../base/activity.js";
import { systemClock, type Clock } from "../base/clock.js";
import type { ManagedWrite } from "../base/decoded-resource.js";
import { describeObject, keyOf, type KubernetesObject } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { secondsOf, type OwnWrites } from "../client/own-writes.js";
import { collectionPath, objectPath } from "../client/resource-path.js";

/** What finds the writes of another process under the field manager of a controller. */
export interface ForeignWritesOptions {
  readonly controller: string;
  readonly fieldManagers: readonly string[];
  readonly writes: Pick<OwnWrites, "isForeign" | "time">;
  readonly events: EventSink;
  readonly logger: Logger;
  /** Told of each of these writes. */
  readonly onForeignWrite?: ((write: { readonly controller: string }) => void) | undefined;
  readonly clock?: Clock;
}

/** A write that the watch has brought, and the primary that its object belongs to. */
export interface ObservedWrite {
  readonly definition: ResourceDefinition;
  readonly object: KubernetesObject;
  readonly written: ManagedWrite;
  readonly primary: KubernetesObject;
}

// By then the API server has executed, or never will, what the leader before sent.
const SETTLED_SECONDS = 60;
const REPORT_EVERY_MS = 600_000;

/**
 * Finds a second operator of one controller: a write under its field manager, newer than the leadership of this process, that this process did
 * not send. Both may have a right to their objects, so it is only reported.
 */
export class ForeignWrites {
  readonly #options: ForeignWritesOptions;
  /** From which time of the API server on writes count; absent while this process does not lead. */
  #since: number | undefined;
  #quietUntil = -Infinity;

  constructor(options: ForeignWritesOptions) {
    this.#options = options;
  }

  /** Begins, as this process leads from now on. */
  begin(): void {
    const { time } = this.#options.writes;
    if (time !== undefined) this.#since = time + SETTLED_SECONDS;
  }

  /** Ends, as another process may lead from now on. */
  end(): void {
    this.#since = undefined;
  }

  observe({ definition, object, written, primary }: ObservedWrite): void {
    const { fieldManagers, writes, controller, onForeignWrite } = this.#options;
    if (this.#since === undefined || !fieldManagers.includes(written.fieldManager)) return;
    const time = secondsOf(written.time);
    if (time <= this.#since) return;
    const { namespace } = object.metadata;
    const paths = [objectPath(definition, object.metadata), collectionPath(definition, namespace)];
    if (!writes.isForeign(paths, time)) return;
    onForeignWrite?.({ controller });
    this.#report({ definition, object, written, primary });
  }

  #report({ definition, object, written, primary }: ObservedWrite): void {
    const { controller, events, logger, clock = systemClock } = this.#options;
    if (clock.now() < this.#quietUntil) return;
    this.#quietUntil = clock.now() + REPORT_EVERY_MS;
    const { fieldManager, time } = written;
    const message =
      `${describeObject(definition, object.metadata)} was written at ${time} by field manager "${fieldManager}", and not by this process: ` +
      `another process runs controller "${controller}"; stop one of the two, or give them different namespaces, selectors or field managers`;
    const fields = { controller, primary: keyOf(primary.metadata), object: keyOf(object.metadata), fieldManager, time };
    logger.warn(fields, message);
    events.record(
      { controller, about: primary },
      { type: "Warning", reason: "SecondOperator", action: "Watch", note: message },
    );
  }
}
