/** Any of the filters of an event source, or a part of one. */
export type Filter<Args extends readonly unknown[]> = (...args: Args) => boolean;

/** Combines filters into one that lets pass what all of them let pass. */
export function allOf<Args extends readonly unknown[]>(...filters: readonly Filter<Args>[]): Filter<Args> {
  return (...args) => filters.every((filter) => filter(...args));
}

/** Combines filters into one that lets pass what at least one of them lets pass. */
export function anyOf<Args extends readonly unknown[]>(...filters: readonly Filter<Args>[]): Filter<Args> {
  return (...args) => filters.some((filter) => filter(...args));
}

/** Turns a filter into one that lets pass what it does not. */
export function not<Args extends readonly unknown[]>(filter: Filter<Args>): Filter<Args> {
  return (...args) => !filter(...args);
}
