import { keyOf, type KubernetesObject, type ObjectRef } from "../base/kubernetes-object.js";
import { nameOfType } from "../base/resource-definition.js";
import type { ResourceView } from "./resource-view.js";

/** An event source with a view. Its client is set if it watches another cluster than the operator's own. */
interface ViewHolder {
  readonly client?: object | undefined;
}

/** The views of one controller: its own writes and deletions through one of them are no events of the others. */
export class OwnViews {
  readonly #holders = new Map<ResourceView, ViewHolder>();
  #primaries: ResourceView | undefined;

  add(view: ResourceView, holder: ViewHolder, { isOfPrimaries = false }: { isOfPrimaries?: boolean } = {}): void {
    this.#holders.set(view, holder);
    if (isOfPrimaries) this.#primaries = view;
  }

  delete(view: ResourceView): void {
    this.#holders.delete(view);
  }

  /**
   * Returns the views in which a change through `view` is no event: that view, and those that may show the same objects, each from a watch of
   * its own. `primary` is reconciled: any other one that it changes has to be, too, so in the view of the primaries that is an event.
   */
  around(view: ResourceView, changed: ObjectRef, primary?: KubernetesObject): readonly ResourceView[] {
    const holder = this.#holders.get(view);
    const kind = nameOfType(view.definition);
    const views = [...this.#holders].flatMap(([other, { client }]) =>
      client === holder?.client && nameOfType(other.definition) === kind ? other : [],
    );
    const all = holder === undefined ? [view] : views;
    const isOther = primary !== undefined && keyOf(primary.metadata) !== keyOf(changed);
    return isOther ? all.filter((each) => each !== this.#primaries) : all;
  }
}
