const NONE: ReadonlySet<string> = new Set();

/** What leads to what, found from either end. */
export class Links {
  readonly #targets = new Map<string, ReadonlySet<string>>();
  readonly #origins = new Map<string, Set<string>>();

  get isEmpty(): boolean {
    return this.#targets.size === 0;
  }

  /** Replaces all links of `origin`. */
  set(origin: string, targets: Iterable<string>): void {
    const after = new Set(targets);
    for (const target of this.from(origin)) {
      const origins = this.#origins.get(target);
      origins?.delete(origin);
      if (origins?.size === 0) this.#origins.delete(target);
    }
    if (after.size === 0) this.#targets.delete(origin);
    else this.#targets.set(origin, after);
    for (const target of after) this.#origins.set(target, (this.#origins.get(target) ?? new Set()).add(origin));
  }

  from(origin: string): ReadonlySet<string> {
    return this.#targets.get(origin) ?? NONE;
  }

  to(target: string): ReadonlySet<string> {
    return this.#origins.get(target) ?? NONE;
  }
}
