/**
 * A set of keys that is always in order.
 *
 * Insertion moves the tail of one array, which stays cheaper than a tree up to some hundred thousand keys; a range costs a
 * binary search. Kubernetes orders by the bytes of `namespace/name`; names are ASCII, so comparing strings does the same.
 */
export class SortedKeys {
  readonly #keys: string[] = [];

  get size(): number {
    return this.#keys.length;
  }

  /** Adds a key that may be there already. */
  add(key: string): void {
    const index = this.#firstNotBelow(key);
    if (this.#keys[index] === key) return;
    // Objects are often created in order, and then no search result has to be shifted.
    if (index === this.#keys.length) this.#keys.push(key);
    else this.#keys.splice(index, 0, key);
  }

  /** Removes a key that may be missing. */
  delete(key: string): void {
    const index = this.#firstNotBelow(key);
    if (this.#keys[index] === key) this.#keys.splice(index, 1);
  }

  /** Returns the keys that start with `prefix`, in order. */
  withPrefix(prefix: string): string[] {
    if (prefix === "") return this.#keys.slice();
    return this.#keys.slice(this.#firstNotBelow(prefix), this.#firstNotBelow(endOfPrefix(prefix)));
  }

  #firstNotBelow(key: string): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#keys[middle] as string) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function endOfPrefix(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}
