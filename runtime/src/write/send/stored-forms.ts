import { keyOf, type ObjectRef } from "../../base/kubernetes-object.js";
import type { ResourceView } from "../../cache/resource-view.js";
import type { Application } from "./apply-matcher.js";

interface StoredForm {
  readonly sent: string;
  readonly stored: string;
}

/** What the server made of values that it normalises in ways that no schema tells: else such an object would be written in every reconcile. */
export class StoredForms {
  readonly #forms = new WeakMap<ResourceView, Map<string, StoredForm>>();

  /** Tells whether the same was sent before, and stored as it is now. */
  isKnown({ target, part, desired }: Application, formOf: () => StoredForm): boolean {
    const known = this.#forms.get(target.cache)?.get(`${part} ${keyOf(desired.metadata)}`);
    if (known === undefined) return false;
    const { sent, stored } = formOf();
    return known.sent === sent && known.stored === stored;
  }

  remember({ target: { cache }, part, desired }: Application, form: StoredForm): void {
    let forms = this.#forms.get(cache);
    if (forms === undefined) {
      this.#forms.set(cache, (forms = new Map()));
      // What somebody else deleted, such as the garbage collector.
      cache.onChange((change) => void (change.kind === "deleted" && this.forget(cache, change.object.metadata)));
    }
    forms.set(`${part} ${keyOf(desired.metadata)}`, form);
  }

  forget(cache: ResourceView, ref: ObjectRef): void {
    for (const part of ["object", "status"]) this.#forms.get(cache)?.delete(`${part} ${keyOf(ref)}`);
  }
}
