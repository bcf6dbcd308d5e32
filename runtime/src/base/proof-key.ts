import { createHmac, timingSafeEqual } from "node:crypto";

/** Where the key of an operator is kept. */
export interface ProofKeys {
  /** Returns the key, which is created if there is none. */
  load(signal?: AbortSignal): Promise<ProofKey>;
  /** Returns the key; undefined if there is none, or the operator may not read it. */
  find(): Promise<ProofKey | undefined>;
}

/**
 * Signs what the operator stores where others can write: the ids of external resources, and links to objects outside the namespace of their
 * primary. The key never leaves the namespace of the operator, so a valid proof was made by this operator for exactly these facts.
 */
export class ProofKey {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** Returns the proof of some facts, in this order: an HMAC-SHA-256 as base64url, cut to 128 bits. */
  sign(facts: readonly (string | undefined)[]): string {
    // JSON tells ["ab", "c"] from ["a", "bc"], and an absent fact from an empty one.
    const text = JSON.stringify(facts.map((fact) => fact ?? null));
    return createHmac("sha256", this.#key).update(text).digest().subarray(0, 16).toString("base64url");
  }

  proves(proof: string | undefined, facts: readonly (string | undefined)[]): boolean {
    if (proof === undefined) return false;
    const [given, expected] = [Buffer.from(proof), Buffer.from(this.sign(facts))];
    return given.length === expected.length && timingSafeEqual(given, expected);
  }
}
