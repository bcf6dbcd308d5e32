// Finds reads of metadata that is no input of the controller, while a tool asks for them. Nobody does in production, where this costs nothing.
import { channel } from "node:diagnostics_channel";
import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import type { ControllerDefinition } from "./controller-definition.js";

/** Told when a function reads a label or an annotation of the primary that is no input: the `controller`, the `input`, and the `primary` by its key. */
export const unlistedReadChannel = channel("gen-operator.unlisted-read");

type Member = "labels" | "annotations";
type Note = (input: string) => void;

/** Watches what the functions of a controller read of its primaries. */
export class ReadObserver {
  readonly #definition: ControllerDefinition;
  readonly #known = new Set<string>();
  /** The primaries that are observed, by what the functions get. */
  readonly #originals = new WeakMap<KubernetesObject, KubernetesObject>();

  constructor(definition: ControllerDefinition) {
    this.#definition = definition;
  }

  /** Returns what functions get for a primary: the primary itself, unless a tool asks for reads. */
  observe(
    primary: KubernetesObject,
    { key, logger }: { readonly key: string; readonly logger: Logger },
  ): KubernetesObject {
    const { name: controller, generationAware, defaultFilters } = this.#definition;
    if (!unlistedReadChannel.hasSubscribers || generationAware === false || defaultFilters === false) return primary;
    const observed = this.#observed(primary, (input) => {
      if (this.#known.has(input)) return;
      this.#known.add(input);
      const message =
        `a function reads ${input} of the primary, which is no input of the controller, so a change of it causes no reconcile; ` +
        "run gen-operator generate, or add it to inputs";
      logger.warn({ input }, message);
      unlistedReadChannel.publish({ controller, input, primary: key });
    });
    this.#originals.set(observed, primary);
    return observed;
  }

  /** Returns the primary itself for what functions got. */
  originalOf(given: KubernetesObject): KubernetesObject {
    return this.#originals.get(given) ?? given;
  }

  // Getters instead of proxies: a structured clone and a spread have to work as in production.
  #observed(primary: KubernetesObject, note: Note): KubernetesObject {
    const metadata = { ...primary.metadata };
    for (const member of ["labels", "annotations"] as const) {
      const values = this.#observedMember(member, primary.metadata[member], note);
      if (values !== undefined) Object.defineProperty(metadata, member, { enumerable: true, get: values });
    }
    return Object.freeze({ ...primary, metadata: Object.freeze(metadata) });
  }

  /** Returns what reads a member; undefined if all of it is an input. */
  #observedMember(member: Member, values: { readonly [key: string]: string } | undefined, note: Note) {
    const { inputs = [] } = this.#definition;
    const whole = `metadata.${member}` as const;
    if (inputs.includes(whole)) return undefined;
    const isListed = (key: string) => inputs.includes(`${whole}['${key}']`);
    if (!inputs.some((input) => input.startsWith(`${whole}[`)))
      return () => {
        note(whole);
        return values;
      };
    if (values === undefined) return undefined;
    const observed = {};
    for (const [key, value] of Object.entries(values)) {
      const get = () => {
        if (!isListed(key)) note(`${whole}['${key}']`);
        return value;
      };
      Object.defineProperty(observed, key, { enumerable: true, get });
    }
    return () => Object.freeze(observed);
  }
}
