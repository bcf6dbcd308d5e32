import { keyOf, type KubernetesObject } from "../base/kubernetes-object.js";
import { nameOfType } from "../base/resource-definition.js";
import type { OwnChange } from "./own-deletions.js";
import type { ResourceView } from "./resource-view.js";

/** The views of one controller: its own writes and deletions through one of them are no events of the others. */
export class OwnViews {
  readonly #holders = new Map<ResourceView, { readonly client?: object | undefined }>();

  /** Adds the view of an event source, whose client is set if it watches another cluster than the operator's own. */
  add(view: ResourceView, holder: { readonly client?: object | undefined }): void {
    this.#holders.set(view, holder);
  }

  delete(view: ResourceView): void {
    this.#holders.delete(view);
  }

  /** Returns the views that may show what is changed through `view` for a primary, each from a watch of its own. */
  around(view: ResourceView, primary?: KubernetesObject): OwnChange {
    const holder = this.#holders.get(view);
    const kind = nameOfType(view.definition);
    const views = [...this.#holders].flatMap(([other, { client }]) =>
      client === holder?.client && nameOfType(other.definition) === kind ? other : [],
    );
    return { views: holder === undefined ? [view] : views, madeFor: primary && keyOf(primary.metadata) };
  }
}
