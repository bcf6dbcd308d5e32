import { systemClock, type Clock } from "../../base/clock.js";
import { describeObject, keyOf, type JsonValue, type ObjectRef } from "../../base/kubernetes-object.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import type { ResourceView } from "../../cache/resource-view.js";
import { isEmptyValue } from "../../match/json-value.js";
import { schemaOf, type SchemaNode } from "../../match/schema-node.js";
import type { Difference } from "../../match/match.js";
import type { Application } from "./apply-matcher.js";
import type { WriteCause } from "./postponed-write.js";

const HOLDS_MS = 600_000;

interface StoredForm {
  readonly sent: string;
  readonly stored: string;
}

/**
 * What the server stores otherwise than it is sent, in ways that no schema tells: else such an object would be written in every reconcile. The
 * reason may be an admission policy, and may go, so a form holds for ten minutes; then the same is sent once more.
 */
export class StoredForms {
  readonly #clock: Clock;
  readonly #forms = new WeakMap<ResourceView, Map<string, StoredForm & { readonly places: string; until: number }>>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** Tells whether the same was sent before, and stored as it is now. Says no when the form has held long enough, which then holds again. */
  isKnown({ target, part, desired }: Application, formOf: () => StoredForm): boolean {
    const known = this.#forms.get(target.cache)?.get(`${part} ${keyOf(desired.metadata)}`);
    if (known === undefined) return false;
    const { sent, stored } = formOf();
    if (known.sent !== sent || known.stored !== stored) return false;
    const isHolding = this.#clock.now() < known.until;
    if (!isHolding) known.until = this.#clock.now() + HOLDS_MS;
    return isHolding;
  }

  /** Learns how an object is stored, and warns of the places that differ if they are not known yet. */
  learn(
    { target: { cache, definition }, part, desired }: Application,
    form: StoredForm,
    { differences, cause }: { differences: readonly Difference[]; cause: WriteCause | undefined },
  ): void {
    let forms = this.#forms.get(cache);
    if (forms === undefined) {
      this.#forms.set(cache, (forms = new Map()));
      // What somebody else deleted, such as the garbage collector.
      cache.onChange((change) => void (change.kind === "deleted" && this.forget(cache, change.object.metadata)));
    }
    const key = `${part} ${keyOf(desired.metadata)}`;
    const paths = differences.map(({ path }) => path);
    const places = paths.join(", ");
    const isTold = forms.get(key)?.places === places;
    forms.set(key, { ...form, places, until: this.#clock.now() + HOLDS_MS });
    if (isTold || paths.length === 0) return;
    const what = `${part === "status" ? "the status of " : ""}${describeObject(definition, desired.metadata)}`;
    cause?.logger?.warn(
      { dependent: cause.dependent, paths },
      `${what} is stored otherwise than desired (${places}): ${likelyCauseOf(paths, { desired, definition })}. This counts as desired, and is ` +
        "sent again after 10 minutes at the earliest; exempt the object from the policy, or desire what is stored",
    );
  }

  /** Forgets how an object is stored, or one part of it. */
  forget(cache: ResourceView, ref: ObjectRef, parts: readonly Application["part"][] = ["object", "status"]): void {
    for (const part of parts) this.#forms.get(cache)?.delete(`${part} ${keyOf(ref)}`);
  }
}

// The API server fills in what is empty and writes some formats in its own way; anything else it stores as it was sent.
function likelyCauseOf(
  paths: readonly string[],
  { desired, definition }: { desired: object; definition: ResourceDefinition },
): string {
  const isNormalized = paths.every((path) => {
    const steps = [...path.matchAll(/([^.[\]]+)|\[(\d+)\]/g)].map(([, name, index]) => name ?? Number(index));
    let [value, schema]: [unknown, SchemaNode] = [desired, schemaOf(definition)];
    for (const step of steps) {
      value = (value as { readonly [name: string]: unknown } | null | undefined)?.[step];
      schema = typeof step === "number" ? schema.items : schema.property(step);
    }
    const isEmpty = value === undefined || isEmptyValue(value as JsonValue);
    return isEmpty || schema.isTime || schema.isBytes || schema.isQuantity;
  });
  return isNormalized
    ? "the API server, or an admission policy or webhook, changes it"
    : "an admission policy or webhook, or the API server, changes it";
}
