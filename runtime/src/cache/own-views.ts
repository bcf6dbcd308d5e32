import { nameOfType } from "../base/resource-definition.js";
import type { ResourceView } from "./resource-view.js";

/** What has a view: its client is that of the cluster that it watches, if that is another one than the operator's. */
interface ViewHolder {
  readonly client?: object | undefined;
}

/** The views of one controller: its own writes and deletions through one of them are no events of the others. */
export class OwnViews {
  readonly #holders = new Map<ResourceView, ViewHolder>();

  add(view: ResourceView, holder: ViewHolder): void {
    this.#holders.set(view, holder);
  }

  delete(view: ResourceView): void {
    this.#holders.delete(view);
  }

  /** Yields the other views that may show the same objects as `view`, each from a watch of its own. */
  *beside(view: ResourceView): Iterable<ResourceView> {
    const holder = this.#holders.get(view);
    if (holder === undefined) return;
    const kind = nameOfType(view.definition);
    for (const [other, { client }] of this.#holders)
      if (other !== view && client === holder.client && nameOfType(other.definition) === kind) yield other;
  }
}
