import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import type { DecodedResource } from "../cluster/decode-resource.js";
import { kindNameOf } from "../base/resource-definition.js";
import type { ResourceView } from "../cluster/resource-view.js";
import type { Writer, Written } from "../write/apply.js";
import { completeDesired, findLive, keyOfDesired, type DesiredObject } from "./dependent-object.js";
import type { DependentDriver, DriverRun, Live, Wanted } from "./driver.js";
import type { LoopListener } from "./loop-listener.js";
import type { PlanNode } from "./plan.js";
import type { KubernetesDependent } from "./workflow-definition.js";

export type { Writer } from "../write/apply.js";

/** Where the objects of a dependent are known. */
export interface DependentSource extends Pick<DependentDriver, "activate" | "deactivate"> {
  readonly cache: ResourceView;
}

/** What a driver of objects of Kubernetes works with. */
export interface KubernetesDriverOptions {
  readonly node: PlanNode<KubernetesDependent>;
  readonly source: DependentSource;
  readonly writer: Writer;
  readonly loops?: LoopListener | undefined;
}

/** Finds, writes and removes the objects of one dependent in Kubernetes. */
export class KubernetesDriver implements DependentDriver {
  readonly #node: PlanNode<KubernetesDependent>;
  readonly #definition: KubernetesDependent;
  readonly #source: DependentSource;
  readonly #writer: Writer;
  readonly #loops: LoopListener | undefined;

  constructor({ node, source, writer, loops }: KubernetesDriverOptions) {
    this.#node = node;
    this.#definition = node.definition;
    this.#source = source;
    this.#writer = writer;
    this.#loops = loops;
  }

  get isGarbageCollected(): boolean {
    return this.#definition.isGarbageCollected;
  }

  get capabilities(): DependentDriver["capabilities"] {
    const isWritten = this.#definition.mode !== "readOnly";
    return { write: isWritten, remove: isWritten };
  }

  activate(primary: ObjectKey): Promise<void> {
    return this.#source.activate(primary);
  }

  deactivate(primary: ObjectKey): Promise<void> {
    return this.#source.deactivate(primary);
  }

  complete({ primary, definition, namespaces }: DriverRun, desired: unknown): Wanted {
    const object = completeDesired(desired, { node: this.#node, primary, definition, namespaces });
    return { id: keyOfDesired(object), object };
  }

  find({ primary }: Pick<DriverRun, "primary">, wanted?: Wanted): DecodedResource | undefined {
    const facts = { node: this.#node, primaryKey: keyOf(primary.metadata), desiredKey: wanted?.id as ObjectKey };
    return findLive(this.#source.cache, facts);
  }

  findItems(): ReadonlyMap<string, Live> {
    throw new Error(`dependent "${this.#definition.name}" is no bulk dependent`);
  }

  async write(
    { context, primary }: DriverRun,
    wanted: Wanted,
    live: Live | undefined,
  ): Promise<"created" | "updated" | "unchanged"> {
    const written = await this.#writer.apply(this.#target, wanted.object as DesiredObject, {
      live: live as DecodedResource | undefined,
    });
    const { kind, verdict } = written;
    this.#tellOfLoop(primary, wanted, written);
    if (verdict !== undefined && live !== undefined)
      context.logger.debug({ dependent: this.#definition.name, ...verdict }, "the live object was not as desired");
    return kind;
  }

  async remove(_run: DriverRun, live: Live): Promise<void> {
    const object = live.object as KubernetesObject;
    if (object.metadata.deletionTimestamp === undefined) await this.#writer.delete(this.#target, object);
  }

  #tellOfLoop(primary: KubernetesObject, { id }: Wanted, { loop, postponedMs }: Written): void {
    if (loop === undefined && postponedMs === undefined) return;
    const { name: dependent, resource } = this.#definition;
    const at = { dependent, primary, kind: kindNameOf(resource), object: id as ObjectKey };
    if (loop !== undefined) this.#loops?.onLoop(at, loop);
    if (postponedMs !== undefined) this.#loops?.onPostponed(at, postponedMs);
  }

  get #target() {
    return { definition: this.#definition.resource, cache: this.#source.cache };
  }
}
