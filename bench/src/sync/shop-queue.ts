const LONGEST_TURN_MS = 10;

/** A queue of owners with no-op reconciles; an owner that is added several times is reconciled once. Both clients use it. */
export class ShopQueue {
  readonly #waiting = new Set<string>();
  readonly #onReconciled: (isIdle: boolean) => void;
  #isDraining = false;

  constructor(onReconciled: (isIdle: boolean) => void) {
    this.#onReconciled = onReconciled;
  }

  add(owner: string): void {
    this.#waiting.add(owner);
    if (this.#isDraining) return;
    this.#isDraining = true;
    setImmediate(() => void this.#drain());
  }

  async #drain(): Promise<void> {
    const startedAt = performance.now();
    for (const owner of this.#waiting) {
      this.#waiting.delete(owner);
      await reconcile(owner);
      this.#onReconciled(this.#waiting.size === 0);
      if (performance.now() - startedAt > LONGEST_TURN_MS) return void setImmediate(() => void this.#drain());
    }
    this.#isDraining = false;
  }
}

async function reconcile(_owner: string): Promise<void> {}
