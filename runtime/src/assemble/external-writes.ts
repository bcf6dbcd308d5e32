// What becomes known of the writes of external dependents: log lines, metrics, and loops, as of the writes of Kubernetes objects.
import { hash } from "node:crypto";
import { EXTERNAL_KIND, type LoopListener, type LoopWrite, type PostponedWrite } from "../base/activity.js";
import type { KubernetesObject } from "../base/kubernetes-object.js";
import { LoopDetector, type ObservedWrite } from "../match/loop-detector.js";
import type { DependentRun } from "../workflow/dependents/dependent-reconciler.js";
import type { ExternalWrite, ExternalWriteLog } from "../workflow/dependents/external-reconciler.js";

/** A write of a resource outside Kubernetes. */
export interface ExternalWriteEvent {
  readonly controller: string;
  readonly dependent: string;
  readonly verb: "created" | "updated" | "deleted";
}

interface ExternalWritesOptions {
  readonly controller: string;
  readonly dependent: string;
  /** The loops of the controller, which are there once it runs. */
  readonly loops: () => LoopListener;
  readonly onWrite?: ((event: ExternalWriteEvent) => void) | undefined;
}

/** The writes of one external dependent. */
export class ExternalWrites implements ExternalWriteLog {
  readonly #options: ExternalWritesOptions;
  readonly #detector = new LoopDetector();

  constructor(options: ExternalWritesOptions) {
    this.#options = options;
  }

  postponementOf({ primary }: DependentRun, write: ExternalWrite): PostponedWrite | undefined {
    const { dependent, loops } = this.#options;
    const pause = this.#detector.postponementOf(loopKeyOf(primary, write.key), () => this.#observedOf(primary, write));
    if (pause === undefined) return undefined;
    const { pauseMs, ...loop } = pause;
    const postponed: PostponedWrite = { ...this.#placeOf(write), ...loop, managers: [], retryAfterMs: pauseMs };
    loops().onPostponed(postponed, { primary, dependent });
    return postponed;
  }

  note({ primary, context }: DependentRun, verb: ExternalWriteEvent["verb"], write: ExternalWrite): void {
    const { controller, dependent, loops, onWrite } = this.#options;
    const { key: item, id } = write;
    const fields = { dependent, ...(item === "" ? {} : { item }), ...(id === "" ? {} : { id }) };
    const which = item === "" ? `"${dependent}"` : `"${dependent}", item "${item}"`;
    context.logger.info(fields, `${verb} the resource${id === "" ? "" : ` "${id}"`} of external dependent ${which}`);
    onWrite?.({ controller, dependent, verb });
    // A deletion ends what was written; that it is made again shows in the creation.
    if (verb === "deleted") return;
    const loop = this.#detector.noteWrite(loopKeyOf(primary, item), this.#observedOf(primary, write));
    if (loop === undefined) return;
    const written: LoopWrite = { ...this.#placeOf(write), ...loop };
    loops().onLoop(written, { primary, dependent });
  }

  noteMatch({ primary }: DependentRun, key: string): void {
    if (this.#detector.size > 0) this.#detector.noteMatch(loopKeyOf(primary, key));
  }

  #observedOf(primary: KubernetesObject, { desired }: ExternalWrite): ObservedWrite {
    return { content: digestOf(desired), input: this.#options.loops().inputOf(primary) };
  }

  #placeOf({ key }: ExternalWrite): Pick<LoopWrite, "kind" | "object" | "paths"> {
    const { dependent } = this.#options;
    return { kind: EXTERNAL_KIND, object: (key === "" ? dependent : `${dependent}/${key}`) as never, paths: [] };
  }
}

function loopKeyOf({ metadata: { uid = "" } }: KubernetesObject, key: string): string {
  return `${uid} ${key}`;
}

// What is desired is the user's own, and may be no JSON.
function digestOf(desired: object | undefined): string {
  try {
    return hash("sha1", JSON.stringify(desired ?? null), "base64");
  } catch {
    return "";
  }
}
