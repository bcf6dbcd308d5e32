import { createHmac, timingSafeEqual } from "node:crypto";

/** The storage of an operator's proof key. */
export interface ProofKeys {
  /** Returns the key, and creates it if there is none. */
  load(signal?: AbortSignal): Promise<ProofKey>;
  /** Returns the key, or undefined if there is none or the operator is not permitted to read it. */
  find(): Promise<ProofKey | undefined>;
}

/**
 * Signs values that the operator stores where other clients can write: ids of external resources, and links to objects outside of the namespace of
 * their primary. The key never leaves the namespace of the operator, so a valid proof was created by this operator for exactly these facts.
 */
export class ProofKey {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** Returns the proof of a list of facts: their HMAC-SHA-256, truncated to 128 bits, in base64url. Their order matters. */
  sign(facts: readonly (string | undefined)[]): string {
    // JSON distinguishes ["ab", "c"] from ["a", "bc"], and an absent fact from an empty one.
    const text = JSON.stringify(facts.map((fact) => fact ?? null));
    return createHmac("sha256", this.#key).update(text).digest().subarray(0, 16).toString("base64url");
  }

  proves(proof: string | undefined, facts: readonly (string | undefined)[]): boolean {
    if (proof === undefined) return false;
    const [given, expected] = [Buffer.from(proof), Buffer.from(this.sign(facts))];
    return given.length === expected.length && timingSafeEqual(given, expected);
  }
}
