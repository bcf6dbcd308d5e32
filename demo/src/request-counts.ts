import type { RequestObservation } from "@gen-operator/runtime";

/** Counts requests by verb and kind. */
export class RequestCounts {
  readonly #counts = new Map<string, number>();

  /** Takes a request. */
  add({ method, path }: RequestObservation): void {
    const [, plural, , subresource] = /\/namespaces\/[^/]+\/([^/?]+)(\/[^/?]+)?(\/[^/?]+)?/.exec(path) ?? [];
    const verb = method === "PATCH" ? "apply" : method.toLowerCase();
    const key = `${verb} ${plural ?? path.split("?")[0]}${subresource ?? ""}`;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  /** Returns all counts, the largest first. */
  toString(): string {
    const sorted = [...this.#counts].sort(([a, left], [b, right]) => right - left || (a < b ? -1 : 1));
    return sorted.map(([key, count]) => `${count} × ${key}`).join(", ");
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }
}
