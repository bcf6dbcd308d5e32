// Anyone who may write ConfigMaps, Secrets or the status of a primary can put an id there. So each kept state has a proof beside it that only
// the operator can make, and a state without one gives no right to fetch, update or delete anything.
import { createHash } from "node:crypto";
import { objectIn, type KubernetesObject } from "../../base/kubernetes-object.js";
import type { ProofKey } from "../../base/proof-key.js";

/** Whether this operator kept a state: under the names of today (`current`), under earlier ones (`former`), or nothing proves it. */
export type Standing = "current" | "former" | "unproven";

interface StateProofsOptions {
  /** Returns the key; throws before it is loaded. */
  key(): ProofKey;
  /** The name of the controller, and those that it had. */
  readonly controllers: readonly [string, ...string[]];
  /** The name of the dependent, and those that it had. */
  readonly dependents: readonly [string, ...string[]];
}

/** Proves the states of one dependent. A proof is about the primary by its uid, the dependent of a controller, the item, and the whole state. */
export class StateProofs {
  readonly #options: StateProofsOptions;
  /** Pairs of a controller and a dependent, those of today first. */
  readonly #names: readonly (readonly [controller: string, dependent: string])[];

  constructor(options: StateProofsOptions) {
    this.#options = options;
    this.#names = options.controllers.flatMap((controller) =>
      options.dependents.map((dependent) => [controller, dependent] as const),
    );
  }

  sign(primary: KubernetesObject, item: string, state: unknown): string {
    return this.#options.key().sign(factsOf(this.#names[0]!, primary, item, state));
  }

  /** Judges a state by its proof; a list of proofs, separated by spaces, proves it if one of them does. */
  judge(primary: KubernetesObject, item: string, state: unknown, proof: string | undefined): Standing {
    if (proof === undefined) return "unproven";
    const key = this.#options.key();
    const proofs = proof.split(" ");
    const found = this.#names.findIndex((names) => {
      const facts = factsOf(names, primary, item, state);
      return proofs.some((each) => key.proves(each, facts));
    });
    return found === 0 ? "current" : found > 0 ? "former" : "unproven";
  }

  /** Returns the annotations of the primary that may have the proof of an item, that of today first. */
  annotationsOn(item: string): readonly [string, ...string[]] {
    return this.#names.map((names) => annotationOf([...names, item])) as unknown as [string, ...string[]];
  }
}

/** Returns the name of an annotation with a proof, which differs with the facts. */
export function annotationOf(facts: readonly string[]): string {
  const hash = createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 16);
  return `gen-operator.dev/proof-${hash}`;
}

/** Returns a state as a text that does not depend on where it is kept: the API server may store the members of an object in another order. */
function textOfState(state: unknown): string {
  if (typeof state !== "string") return JSON.stringify(sorted(state));
  const object = objectIn(state);
  return object === undefined ? state : JSON.stringify(sorted(object));
}

function factsOf(
  [controller, dependent]: readonly [controller: string, dependent: string],
  { metadata: { uid } }: KubernetesObject,
  item: string,
  state: unknown,
): readonly (string | undefined)[] {
  return ["external-state", controller, uid, dependent, item, textOfState(state)];
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, each]) => [name, sorted(each)]));
}
